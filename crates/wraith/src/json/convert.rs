//! The conversion of the library's events to their JSON form.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use data_encoding::{BASE32_NOPAD, HEXLOWER};
use wraith_crypto::{NodeId, implementation};
use wraith_discovery::PlaceName;
use wraith_files::{Change, shown};
use wraith_transfer::{Durability, FileStatus, Receipt, ReceiveReport, SendReport};
use wraith_transport::KEY_AGREEMENT;

use super::{Event, Text};
use crate::event::Event as LibraryEvent;
use crate::node::Node;

/// The event at the end of a transfer, from the report of either side.
macro_rules! done {
    ($converter:ident, $report:ident, [$files:expr, $already_here:expr, $skipped:expr]) => {{
        let seconds = $converter.seconds();
        Event::Done {
            files: $files,
            bytes: $report.receipt.bytes,
            bytes_moved: $report.bytes_moved,
            wire_bytes: $report.wire_bytes,
            connections: $report.connections,
            lanes: $report.connections,
            already_here: $already_here,
            skipped: $skipped,
            failed: $report.failed,
            left_out: $report.left_out,
            seconds,
            bytes_per_second: rate($report.bytes_moved, seconds),
            receipt: receipt_text(&$report.receipt),
            durability: durability_name($report.receipt.durability()).into(),
        }
    }};
}

/// Converts the events of one side's transfer, over all its connections. An offer to several
/// receivers has a converter for each.
///
/// Convert each event when it comes: the `seconds` of `done` run from the conversion of
/// [`Event::Accepted`](crate::Event::Accepted) to that of the end.
#[derive(Debug)]
pub struct EventConverter {
    node: Node,
    state: Mutex<State>,
}

/// Figures of earlier events that later ones repeat.
#[derive(Debug, Default)]
struct State {
    files: u64,
    bytes: u64,
    already_here: u64,
    /// Time when the offer was accepted on this connection. Both sides know this moment, whichever
    /// started first.
    accepted: Option<Instant>,
}

impl EventConverter {
    /// Creates a converter for a transfer of `node`.
    pub fn new(node: &Node) -> Self {
        Self { node: node.clone(), state: Mutex::default() }
    }

    /// Returns the JSON form of an event of the engine. `None` for events that have none.
    pub fn transfer_event(&self, event: &wraith_transfer::Event<'_>) -> Option<Event> {
        self.event(&LibraryEvent::of(event)?)
    }

    /// Returns the JSON form of an event. `None` for events that have none: some only concern
    /// people, and a program gets the end of a transfer as its result.
    pub fn event(&self, event: &LibraryEvent) -> Option<Event> {
        Some(match event {
            LibraryEvent::CodeUsed { place, peer } => Event::Code {
                state: "used".into(),
                place: Some(name(place)),
                message: None,
                peer: Some(peer.to_string().into()),
                contact: self.contact(*peer),
            },
            LibraryEvent::CodeBurned(place) => code("wrong_guess", Some(place), None),
            LibraryEvent::CodeExpired => code("expired", None, None),
            LibraryEvent::PlaceLost { place, why } => {
                code("lost", Some(place), Some(why.to_string()))
            }
            LibraryEvent::PlaceBack(place) => code("back", Some(place), None),
            LibraryEvent::LongCode(code) => {
                let command = format!("wraith receive {code}").into();
                Event::LongCode { code: code.to_string().into(), command }
            }
            LibraryEvent::PeerFound(at) => {
                Event::Met { place: at.place().map_or("address".into(), name) }
            }
            LibraryEvent::ContactsChanged(contacts) => {
                Event::ContactsChanged { contacts: *contacts as u64 }
            }
            LibraryEvent::ClocksDiffer { peer, seconds } => Event::ClocksDiffer {
                peer: peer.map(|peer| peer.to_string().into()),
                contact: peer.and_then(|peer| self.contact(peer)),
                seconds: *seconds,
            },
            LibraryEvent::Note { path, what } => note(path, what),
            LibraryEvent::StateNotStored(why) | LibraryEvent::ReceiptNotStored(why) => {
                note("", why)
            }
            LibraryEvent::MakingLongCode(places) => {
                let at = places.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ");
                note("", &format!("asking for a place to wait {at}, for up to 10 s"))
            }
            LibraryEvent::ClosedToNewReceivers(_) => {
                note("", "no new receiver can use the code; current transfers continue")
            }
            LibraryEvent::ConnectionLost { why, seconds_left } => {
                reconnecting(format!("the connection was lost: {why}"), *seconds_left)
            }
            LibraryEvent::Stopped { by, seconds_left: Some(seconds_left) } => {
                reconnecting(format!("stopped by the {by}'s user"), *seconds_left)
            }
            LibraryEvent::ReceiverFailed(error) => Event::ReceiverFailed {
                code: error.exit().name().into(),
                message: error.to_string().into(),
            },
            LibraryEvent::Sent { report } => self.sent(report),
            LibraryEvent::ReceiptStored(place) => {
                Event::Receipt { path: shown(place.as_os_str().as_encoded_bytes()).into() }
            }
            event => return self.of_engine(event),
        })
    }

    /// Returns the JSON form of an event that reports one of the engine.
    fn of_engine(&self, event: &LibraryEvent) -> Option<Event> {
        Some(match event {
            LibraryEvent::Connected { peer, remote, suite } => {
                let route = self.node.route(remote);
                Event::Connected {
                    peer: peer.to_string().into(),
                    address: self.node.shown(remote).into(),
                    path: route.kind.name().into(),
                    how: route.origin.name().into(),
                    contact: self.contact(*peer),
                    suite: format!("{KEY_AGREEMENT}, {}", suite.name()).into(),
                    backend: implementation(*suite).into(),
                }
            }
            LibraryEvent::Path { peer, remote, route, why } => Event::Path {
                peer: peer.to_string().into(),
                address: self.node.shown(remote).into(),
                path: route.kind.name().into(),
                how: route.origin.name().into(),
                message: why.clone().map(Text::from),
            },
            LibraryEvent::Offered(offer) => {
                let (files, bytes) = (offer.files, offer.bytes);
                let mut state = self.lock();
                let accepted = state.accepted;
                *state = State { files, bytes, already_here: 0, accepted };
                Event::Offer {
                    name: offer.name.clone().into(),
                    files,
                    folders: offer.folders,
                    links: offer.links,
                    bytes,
                    largest: offer.largest,
                    left_out: offer.left_out,
                }
            }
            LibraryEvent::Accepted => {
                let mut state = self.lock();
                state.accepted = Some(Instant::now());
                Event::Accept { files: state.files, bytes: state.bytes }
            }
            LibraryEvent::File { path, status, bytes, root, position_free_root, change } => {
                self.lock().already_here += u64::from(*status == FileStatus::AlreadyHere);
                let hex = |root: &[u8; 32]| Text::from(HEXLOWER.encode(root));
                Event::File {
                    path: path.clone().into(),
                    status: status.name().into(),
                    bytes: *bytes,
                    root: root.as_ref().map(hex),
                    position_free_root: position_free_root.as_ref().map(hex),
                    change: change.map(|change: Change| change.name().into()),
                }
            }
            _ => return None,
        })
    }

    /// Returns the event at the end of a sender's transfer.
    fn sent(&self, report: &SendReport) -> Event {
        let Receipt { verified, kept, .. } = report.receipt;
        let already_here = self.lock().already_here.min(verified);
        done!(self, report, [verified, already_here, kept])
    }

    /// Returns the event at the end of a receiver's transfer. Without the earlier events, its
    /// `seconds` are 0.
    pub fn received(&self, report: &ReceiveReport) -> Event {
        let files = report.files + report.already_here;
        done!(self, report, [files, report.already_here, report.skipped])
    }

    fn seconds(&self) -> f64 {
        self.lock().accepted.map_or(0.0, |at| at.elapsed().as_secs_f64())
    }

    fn contact(&self, peer: NodeId) -> Option<Text> {
        let name = self.node.contacts().load().ok()?.with(peer)?.name.to_string();
        Some(name.into())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns `bytes` per second; 0 if no time has passed.
pub fn rate(bytes: u64, seconds: f64) -> u64 {
    if seconds > 0.0 { (bytes as f64 / seconds) as u64 } else { 0 }
}

/// Returns the name of a durability for programs.
pub fn durability_name(durability: Option<Durability>) -> &'static str {
    match durability {
        Some(Durability::OnDisk) => "on-disk",
        Some(Durability::NotAwaited) => "not-awaited",
        Some(Durability::CannotSync) => "cannot-sync",
        None => "unknown",
    }
}

fn receipt_text(receipt: &Receipt) -> Text {
    BASE32_NOPAD.encode(&receipt.to_bytes()).to_ascii_lowercase().into()
}

fn name(place: &PlaceName) -> Text {
    place.name().to_owned().into()
}

fn code(state: &'static str, place: Option<&PlaceName>, message: Option<String>) -> Event {
    let (state, message) = (state.into(), message.map(Text::from));
    Event::Code { state, place: place.map(name), message, peer: None, contact: None }
}

fn note(path: &str, message: &str) -> Event {
    Event::Note { path: path.to_owned().into(), message: message.to_owned().into() }
}

fn reconnecting(message: String, seconds_left: u64) -> Event {
    Event::Reconnecting { message: message.into(), seconds_left }
}
