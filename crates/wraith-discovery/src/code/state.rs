//! The creator's shared state of an announced code, and its events.
//!
//! Invariant: one message is verified at a time across all places, so two places cannot both accept a
//! guess.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::{mpsc, watch};
use wraith_crypto::NodeId;
use zeroize::Zeroizing;

use super::MakeTicket;
use super::creator::{Creator, ProofVerdict};
use super::message::Message;
use super::pake::{HELLO_LEN, TicketSide};
use crate::contact::PunchRequest;
use crate::place::{PlaceError, PlaceName, Question, Refusal, Responder, Response};

/// An event for the creator of a code.
#[derive(Debug)]
#[non_exhaustive]
pub enum CodeEvent {
    /// A joiner guessed wrong at this place, and the code is no longer valid.
    WrongGuess(PlaceName),
    /// A joiner proved the words. It gets the ticket, or its own ticket follows.
    Used {
        /// The meeting place.
        place: PlaceName,
        /// The joiner's claimed identity. Its ticket is for this identity.
        joiner: NodeId,
    },
    /// A joiner of a long code has published its addresses. [`Self::Used`] follows once the joiner
    /// can see its admission.
    PunchRequest(PlaceName, PunchRequest),
    /// The joiner's ticket.
    Ticket {
        /// The ticket's bytes.
        ticket: Zeroizing<Vec<u8>>,
        /// Source address on a local network. The sender is reachable there, even at an address
        /// that is not valid elsewhere.
        from: Option<SocketAddr>,
    },
    /// The code expired unused.
    Expired,
    /// No joiner can arrive at this place at present.
    Lost(PlaceName, PlaceError),
    /// The place has recovered.
    Back(PlaceName),
}

/// Ends the code of a creator from outside.
pub trait EndCode: fmt::Debug + Send + Sync {
    /// Refuses further joiners for this reason, unless the code has ended already.
    fn end(&self, why: Refusal);
}

/// Receives events.
pub type Events = mpsc::UnboundedSender<CodeEvent>;

/// State of an announced code; see the module documentation.
pub struct CreatorState {
    exchange: Mutex<Exchange>,
    /// The creator's identity.
    own: NodeId,
    side: TicketSide,
    ticket: MakeTicket,
    /// One event per right proof and per change of a place; these are few, so the channel needs no
    /// limit.
    events: Events,
    end: watch::Sender<Option<Refusal>>,
}

/// State behind the lock.
struct Exchange {
    creator: Creator,
    /// The joiner has the ticket and has not sent it yet.
    awaits_ticket: bool,
}

impl CreatorState {
    /// Wraps `creator`. `end` is notified when new joiners are refused.
    pub fn new(
        creator: Creator,
        own: NodeId,
        side: TicketSide,
        ticket: MakeTicket,
        events: Events,
        end: watch::Sender<Option<Refusal>>,
    ) -> Self {
        let exchange = Mutex::new(Exchange { creator, awaits_ticket: side == TicketSide::Joiner });
        Self { exchange, own, side, ticket, events, end }
    }

    pub fn emit(&self, event: CodeEvent) {
        // Without a handle the event is dropped.
        let _ = self.events.send(event);
    }

    /// Returns the expiry time of the unused code.
    pub fn expires(&self) -> Instant {
        self.lock().creator.expires()
    }

    /// Expires the code unless it has ended already.
    pub fn expire(&self) {
        if self.lock().creator.refusal_at(Instant::now()) == Some(Refusal::Expired) {
            self.emit(CodeEvent::Expired);
            self.end.send_replace(Some(Refusal::Expired));
        }
    }

    fn handle_message(
        &self,
        hello: &[u8; HELLO_LEN],
        message: Message,
        question: &Question<'_>,
    ) -> Option<Response> {
        let now = Instant::now();
        let mut exchange = self.lock();
        Some(match message {
            Message::Hello(_) => response_with(&match exchange.creator.answer_hello(now, hello) {
                Ok(answer) => Message::Answer(answer),
                Err(why) => Message::Refused(why),
            }),
            Message::Proof(proof) => {
                let given = |joiner| match self.side {
                    TicketSide::Creator => (self.ticket)(joiner, question.seen),
                    TicketSide::Joiner => Some(Zeroizing::new(self.own.as_bytes().to_vec())),
                };
                let verdict = exchange.creator.verify_proof(now, hello, &proof, given);
                let end = exchange.creator.refusal_at(now).filter(|_| !exchange.awaits_ticket);
                self.proof_response(verdict, end, question.place)
            }
            Message::Ticket(ticket) if self.side == TicketSide::Joiner => {
                match exchange.creator.open_ticket(hello, &ticket) {
                    // A repeated ticket is acknowledged again, but reported once.
                    Ok(ticket) if std::mem::take(&mut exchange.awaits_ticket) => {
                        let event = CodeEvent::Ticket { ticket, from: question.from };
                        self.response_with_event(
                            &Message::Ack,
                            event,
                            exchange.creator.refusal_at(now),
                        )
                    }
                    Ok(_) => response_with(&Message::Ack),
                    Err(why) => response_with(&Message::Refused(why)),
                }
            }
            _ => return None,
        })
    }

    /// Builds the response to a proof; `end` is set if the code ends with it.
    fn proof_response(
        &self,
        verdict: ProofVerdict,
        end: Option<Refusal>,
        place: &PlaceName,
    ) -> Response {
        match verdict {
            ProofVerdict::Right { welcome, joiner, first: true } => {
                let event = CodeEvent::Used { place: place.clone(), joiner };
                self.response_with_event(&Message::Welcome(welcome), event, end)
            }
            ProofVerdict::Right { welcome, first: false, .. } => {
                response_with(&Message::Welcome(welcome))
            }
            ProofVerdict::Refused(Refusal::Wrong) => {
                let event = CodeEvent::WrongGuess(place.clone());
                self.response_with_event(
                    &Message::Refused(Refusal::Wrong),
                    event,
                    Some(Refusal::Burned),
                )
                .ending(Refusal::Burned)
            }
            ProofVerdict::Refused(why) => {
                let ended = self.end.clone();
                response_with(&Message::Refused(why)).on_sent(move || {
                    // The offer may have had no room left for a joiner with the right words.
                    if end.is_some() {
                        ended.send_if_modified(|known| match known {
                            None => {
                                *known = end;
                                true
                            }
                            Some(_) => false,
                        });
                    }
                })
            }
        }
    }

    /// Builds a response that reports `event` after it was sent, and the end if it has come.
    fn response_with_event(
        &self,
        message: &Message,
        event: CodeEvent,
        end: Option<Refusal>,
    ) -> Response {
        let (events, ended) = (self.events.clone(), self.end.clone());
        response_with(message).on_sent(move || {
            let _ = events.send(event);
            if end.is_some() {
                ended.send_replace(end);
            }
        })
    }

    fn lock(&self) -> MutexGuard<'_, Exchange> {
        // A panic cannot leave the creator inconsistent.
        self.exchange.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn response_with(message: &Message) -> Response {
    Response::new(message.encode())
}

impl EndCode for CreatorState {
    fn end(&self, why: Refusal) {
        let mut exchange = self.lock();
        if exchange.creator.refusal_at(Instant::now()).is_none() {
            exchange.creator.close(why);
            self.end.send_replace(Some(why));
        }
    }
}

impl Responder for CreatorState {
    fn respond(&self, question: &Question<'_>) -> Option<Response> {
        let Message::Hello(hello) = Message::decode(question.opening)? else { return None };
        let message = Message::decode(question.message)?;
        self.handle_message(&hello, message, question)
    }
}

impl fmt::Debug for CreatorState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CreatorState").finish_non_exhaustive()
    }
}
