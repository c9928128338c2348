//! The dialled sender: accepts connections until the requested number of receivers has confirmed
//! everything.
//!
//! - Every peer that proves its NodeId (its public key) gets a connection. Only a peer that also
//!   has the secret of the ticket becomes a receiver.
//! - Each receiver is served independently: if one fails, the others continue.
//! - A receiver that reconnects replaces its own earlier connection, which may look alive for a
//!   while after its process died.
//! - If only one more receiver is allowed, two programs with one identity compete for its place.
//!   The program whose user accepts first gets it.

mod long_code;
mod sessions;

use std::sync::Arc;
use std::thread;

use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::time::{Instant, sleep_until};
use wraith_discovery::{CodeAnnouncement, CodeEvent};
use wraith_transfer::{
    ParallelConnections, Role, SendOptions, SendReport, SentRoots, TransferError, close,
};
use wraith_transport::{Endpoint, Role as PathRole};

use self::long_code::LongCodeNews;
use self::sessions::{Session, Standing};
use super::rediscovery::Rediscovery;
use super::retry::{Window, not_back};
use super::task::Shared;
use crate::code_end::{burned, expired};
use crate::error::{Cause, Error, ErrorKind};
use crate::event::Event;
use crate::node::Node;
use crate::payload::Payload;
use crate::report::Sent;
use crate::settings::SendSettings;
use crate::state::UnfinishedSend;
use crate::ways::Ways;

pub(crate) use self::long_code::LongCode;

/// Messages from the threads of the transfers.
pub(crate) enum News {
    /// The session's peer has sent the secret, and its instance if it has one. Its thread waits for
    /// the verdict: a rejected peer gets no offer and causes no events.
    Knows(u64, Option<u64>, std::sync::mpsc::Sender<()>),
    /// The session's receiver has accepted.
    Accepted(u64),
    Ended(u64, Box<Result<SendReport, TransferError>>),
    /// The tree cannot be offered.
    Unreadable(TransferError),
}

/// The two codes of an offer.
#[derive(Clone, Copy)]
enum Kind {
    Short,
    Long,
}

/// A serving sender (see the module docs).
pub(crate) struct Serving {
    node: Node,
    payload: Payload,
    settings: SendSettings,
    unfinished: Arc<UnfinishedSend>,
    rediscovery: Rediscovery,
    endpoint: Endpoint,
    ways: Ways,
    parallel: ParallelConnections,
    sent_roots: SentRoots,
    code: Option<CodeAnnouncement>,
    /// A long code for the same offer, if there is one.
    long_code: LongCode,
    shared: Shared,
    tell: UnboundedSender<News>,
    sessions: Vec<Session>,
    sent: Sent,
    next_id: u64,
    /// Options for the next session, whose tree is already walked.
    surveyed: Option<(u64, Arc<SendOptions>)>,
    /// When to stop waiting; `None` while a receiver is served, or if the wait has no limit.
    deadline: Option<Instant>,
    /// The reconnect window of a single receiver.
    window: Window,
    /// The error with which the last receiver was lost.
    lost: Option<TransferError>,
    /// Why no further receiver can come; `None` while one can.
    closing: Option<Error>,
}

impl Serving {
    #[allow(clippy::too_many_arguments, reason = "an offer's parts, put together once")]
    pub fn new(
        node: Node,
        payload: Payload,
        settings: SendSettings,
        unfinished: Arc<UnfinishedSend>,
        rediscovery: Rediscovery,
        ways: Ways,
        parallel: ParallelConnections,
        code: Option<CodeAnnouncement>,
        long_code: LongCode,
        shared: Shared,
    ) -> (Self, UnboundedReceiver<News>) {
        let (tell, news) = mpsc::unbounded_channel();
        let sent_roots = unfinished.sent_roots();
        let deadline = settings.patience.first.map(|first| Instant::now() + first);
        let settings_patience = settings.patience;
        let sent = Sent { receivers: 0, lacking: 0, last: None, report: None };
        let (sessions, next_id, surveyed) = (Vec::new(), 0, None);
        let (lost, closing) = (None, None);
        let serving = Self {
            node,
            payload,
            settings,
            unfinished,
            rediscovery,
            endpoint: ways.endpoint().clone(),
            ways,
            parallel,
            sent_roots,
            code,
            long_code,
            shared,
            tell,
            sessions,
            sent,
            next_id,
            surveyed,
            deadline,
            window: Window::new(settings_patience),
            lost,
            closing,
        };
        (serving, news)
    }

    /// Serves until the receivers have confirmed everything, or further waiting is pointless.
    pub async fn run(mut self, mut news: UnboundedReceiver<News>) -> Result<Sent, Error> {
        let result = self.serve(&mut news).await;
        self.endpoint.start_close();
        self.endpoint.closed().await;
        let (code, long_code) = (self.code.take(), std::mem::take(&mut self.long_code));
        let short = async {
            if let Some(code) = code {
                code.close().await;
            }
        };
        tokio::join!(short, long_code.close(), self.rediscovery.close());
        if result.is_err() || self.settings.receivers.is_none() {
            let contacts = self.node.contacts().load().ok();
            let is_known = |node| contacts.as_ref().is_some_and(|book| book.with(node).is_some());
            self.unfinished.settle(is_known);
        }
        result?;
        let sent = self.sent.clone();
        if let Some((peer, remote)) = &sent.last {
            self.node.remember_meeting(*peer, remote);
        }
        // An offer to any number of receivers continues with the same ticket later.
        if self.settings.receivers.is_some() && sent.lacking == 0 {
            self.unfinished.forget();
        }
        Ok(sent)
    }

    async fn serve(&mut self, news: &mut UnboundedReceiver<News>) -> Result<(), Error> {
        self.survey();
        if let Some(code) = &mut self.code {
            code.start_serving();
        }
        let (endpoint, token) = (self.endpoint.clone(), self.shared.token.clone());
        let mut changes = self.ways.changes();
        loop {
            tokio::select! {
                Ok(()) = changes.changed() => self.rediscovery.addresses_changed(),
                connection = endpoint.accept() => match connection {
                    Some(connection) => self.admit(connection),
                    None => return Err(Error::new(ErrorKind::Other, "the socket is gone")),
                },
                Some(happened) = news.recv() => match happened {
                    News::Knows(id, instance, verdict) => {
                        if self.choose(id, instance).await {
                            self.attend(id);
                            // The session's thread may have ended meanwhile.
                            let _ = verdict.send(());
                        }
                    }
                    News::Accepted(id) => self.accepted(id),
                    News::Unreadable(error) => return Err(error.into()),
                    News::Ended(id, result) => {
                        if let Some(end) = self.ended(id, *result, news).await {
                            return end;
                        }
                    }
                },
                Some(event) = next_of(&mut self.code) => {
                    if let Some(failure) = self.code_event(event, Kind::Short) {
                        self.stop_all(news).await;
                        return Err(failure);
                    }
                }
                happened = self.long_code.next() => match happened {
                    LongCodeNews::Made(code) => self.shared.publisher.tell(Event::LongCode(code)),
                    LongCodeNews::Event(event) => {
                        if let Some(failure) = self.code_event(event, Kind::Long) {
                            self.stop_all(news).await;
                            return Err(failure);
                        }
                    }
                },
                () = sleep_until_if(self.deadline) => {
                    return Err(match self.lost.take() {
                        Some(error) => not_back(error, self.settings.patience.reconnect).into(),
                        None => nobody_came(),
                    });
                }
                () = token.cancelled() => {
                    let is_idle = self.receivers().next().is_none();
                    self.stop_all(news).await;
                    return match (self.settings.receivers, is_idle) {
                        (None, true) => Ok(()),
                        // The last receipt arrived together with the stop request.
                        (Some(wanted), _) if self.sent.receivers == wanted => Ok(()),
                        _ => Err(Error::cancelled(Role::Sender)),
                    };
                }
            }
        }
    }

    /// Returns true if more than one receiver may come.
    fn is_several(&self) -> bool {
        self.settings.receivers != Some(1)
    }

    /// Returns the sessions being served.
    fn receivers(&self) -> impl Iterator<Item = &Session> {
        self.sessions.iter().filter(|session| session.standing == Standing::Receiver)
    }

    /// Returns the end of the sentence about a code that ended.
    fn who_has_it(&self, nobody: &str) -> String {
        match self.sent.receivers {
            0 => nobody.to_owned(),
            1 => " (1 receiver had everything)".to_owned(),
            n => format!(" ({n} receivers had everything)"),
        }
    }

    /// Handles an event of a code. Returns an error if it ends the offer.
    fn code_event(&mut self, event: CodeEvent, of: Kind) -> Option<Error> {
        let publisher = &self.shared.publisher;
        let failure = match event {
            CodeEvent::Used { place, joiner: peer } => {
                publisher.tell(Event::CodeUsed { place, peer });
                self.send_away_who_lost_their_place();
                if !self.is_several() {
                    self.withdraw_other(of);
                }
                return None;
            }
            CodeEvent::PunchRequest(_, call) => {
                self.ways.let_in(call.punch_secret, call.reach.addresses);
                return None;
            }
            CodeEvent::Lost(place, why) => {
                publisher.tell(Event::PlaceLost { place, why });
                return None;
            }
            CodeEvent::Back(place) => {
                publisher.tell(Event::PlaceBack(place));
                return None;
            }
            CodeEvent::WrongGuess(place) => {
                publisher.tell(Event::CodeBurned(place.clone()));
                burned(place, &self.who_has_it("; no receiver got any file"))
            }
            CodeEvent::Expired => {
                publisher.tell(Event::CodeExpired);
                expired(&self.who_has_it(""))
            }
            _ => return None,
        };
        let is_idle = self.receivers().next().is_none() && self.lost.is_none();
        if is_idle {
            return Some(failure);
        }
        if self.is_several() {
            self.shared.publisher.tell(Event::NobodyNew(failure.clone()));
        }
        self.closing = Some(failure);
        None
    }

    /// Withdraws the other code. The two codes share one place: when one was used, the other is
    /// void.
    fn withdraw_other(&mut self, used: Kind) {
        match used {
            Kind::Long => {
                if let Some(code) = self.code.take() {
                    tokio::spawn(code.close());
                }
            }
            Kind::Short => drop(tokio::spawn(std::mem::take(&mut self.long_code).close())),
        }
    }

    /// Manages the path of a receiver's connection.
    fn attend(&self, id: u64) {
        if let Some(session) = self.sessions.iter().find(|session| session.id == id) {
            let receiver = self.is_several().then_some(id);
            self.ways.attend(
                &session.connection,
                PathRole::Responder,
                &self.shared.publisher,
                receiver,
            );
        }
    }

    /// Walks the tree for the first session before any receiver is connected.
    fn survey(&mut self) {
        let (id, options) = self.prepare();
        let (theirs, tell) = (Arc::clone(&options), self.tell.clone());
        let walk = move || {
            if let Err(error) = theirs.survey() {
                drop(tell.send(News::Unreadable(error)));
            }
        };
        // If no thread starts, the first receiver waits for the counts.
        drop(thread::Builder::new().name("wraith-survey".into()).spawn(walk));
        self.surveyed = Some((id, options));
    }
}

/// Ends all transfers when the work ends in any way. Their threads notice by the closed connection.
impl Drop for Serving {
    fn drop(&mut self) {
        if let Some((_, options)) = &self.surveyed {
            // Stops a walk that no session waits for.
            options.cancel.cancel();
        }
        for session in &self.sessions {
            session.options.cancel.cancel();
            session.connection.close(close::CANCELLED, "");
        }
    }
}

async fn next_of(code: &mut Option<CodeAnnouncement>) -> Option<CodeEvent> {
    match code {
        Some(code) => match code.next_event().await {
            Some(event) => Some(event),
            // All places have ended; running sessions continue.
            None => std::future::pending().await,
        },
        None => std::future::pending().await,
    }
}

async fn sleep_until_if(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

fn nobody_came() -> Error {
    Error::because(ErrorKind::NotFound, "no receiver came in time", Cause::NobodyCame)
}
