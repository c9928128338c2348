//! A sender that is dialled: takes connections until as many receivers as were wanted have confirmed everything.
//!
//! Everyone who can prove the NodeId gets a connection, but only who knows the secret becomes a receiver, and each is served
//! on its own: one that fails takes nothing from the others. A receiver that comes back replaces its own earlier
//! connection, which may look alive for a while after its process died. Two programs of one identity have one place, if there is no
//! other, and it is that one's whose user accepts first.

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

/// What the transfers' threads tell.
pub(crate) enum News {
    /// The session's peer knows the secret; which run of it this is, where it says. Its thread waits for the verdict: to who is sent
    /// away nothing is offered, and nothing is told of it.
    Knows(u64, Option<u64>, std::sync::mpsc::Sender<()>),
    /// Its receiver has accepted.
    Accepted(u64),
    Ended(u64, Box<Result<SendReport, TransferError>>),
    /// The tree cannot be offered.
    Unreadable(TransferError),
}

/// Of the two codes of an offer.
#[derive(Clone, Copy)]
enum Kind {
    Short,
    Long,
}

/// See the module.
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
    /// A long code for the same, if there is one.
    long_code: LongCode,
    shared: Shared,
    tell: UnboundedSender<News>,
    sessions: Vec<Session>,
    sent: Sent,
    next_id: u64,
    /// Options whose tree is walked already, for the next session.
    surveyed: Option<(u64, Arc<SendOptions>)>,
    /// When to give up waiting; `None` while a receiver is served, or when the wait has no limit.
    deadline: Option<Instant>,
    /// How long the one receiver that was lost may take to come back.
    window: Window,
    /// How the last receiver was lost.
    lost: Option<TransferError>,
    /// Nobody new can come any more, and why.
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

    /// Serves until the receivers have confirmed everything, or there is no point in waiting longer.
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
        // An endless offer goes on with the same ticket another day.
        if self.settings.receivers.is_some() && sent.lacking == 0 {
            self.unfinished.forget();
        }
        Ok(sent)
    }

    async fn serve(&mut self, news: &mut UnboundedReceiver<News>) -> Result<(), Error> {
        self.survey();
        if let Some(code) = &mut self.code {
            code.begin();
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
                            // Its thread may have ended meanwhile.
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
                    LongCodeNews::Made(code) => self.shared.hub.tell(Event::LongCode(code)),
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
                        // The last receipt came with the wish to stop.
                        (Some(wanted), _) if self.sent.receivers == wanted => Ok(()),
                        _ => Err(Error::cancelled(Role::Sender)),
                    };
                }
            }
        }
    }

    /// More than one receiver may come.
    fn is_several(&self) -> bool {
        self.settings.receivers != Some(1)
    }

    /// The sessions that are served now.
    fn receivers(&self) -> impl Iterator<Item = &Session> {
        self.sessions.iter().filter(|session| session.standing == Standing::Receiver)
    }

    /// For the end of the sentence about a code that ended.
    fn who_has_it(&self, nobody: &str) -> String {
        match self.sent.receivers {
            0 => nobody.to_owned(),
            1 => " (1 receiver had everything)".to_owned(),
            n => format!(" ({n} receivers had everything)"),
        }
    }

    /// Something happened to the code. Some if with it everything ends.
    fn code_event(&mut self, event: CodeEvent, of: Kind) -> Option<Error> {
        let hub = &self.shared.hub;
        let failure = match event {
            CodeEvent::Used { place, joiner: peer } => {
                hub.tell(Event::CodeUsed { place, peer });
                self.send_away_who_lost_their_place();
                if !self.is_several() {
                    self.withdraw_other(of);
                }
                return None;
            }
            CodeEvent::LeftCall(_, call) => {
                self.ways.let_in(call.punch_secret, call.reach.addresses);
                return None;
            }
            CodeEvent::Lost(place, why) => {
                hub.tell(Event::PlaceLost { place, why });
                return None;
            }
            CodeEvent::Back(place) => {
                hub.tell(Event::PlaceBack(place));
                return None;
            }
            CodeEvent::WrongGuess(place) => {
                hub.tell(Event::CodeBurned(place.clone()));
                burned(place, &self.who_has_it(", and nobody got anything"))
            }
            CodeEvent::Expired => {
                hub.tell(Event::CodeExpired);
                expired(&self.who_has_it(""))
            }
            _ => return None,
        };
        let is_idle = self.receivers().next().is_none() && self.lost.is_none();
        if is_idle {
            return Some(failure);
        }
        if self.is_several() {
            self.shared.hub.tell(Event::NobodyNew(failure.clone()));
        }
        self.closing = Some(failure);
        None
    }

    /// The two codes stand for one place: when one was used the other is good for nobody.
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

    /// Sees to the path of a receiver's connection.
    fn attend(&self, id: u64) {
        if let Some(session) = self.sessions.iter().find(|session| session.id == id) {
            let receiver = self.is_several().then_some(id);
            self.ways.attend(&session.connection, PathRole::Responder, &self.shared.hub, receiver);
        }
    }

    /// Walks the tree for the first session while nobody is here yet.
    fn survey(&mut self) {
        let (id, options) = self.prepare();
        let (theirs, tell) = (Arc::clone(&options), self.tell.clone());
        let walk = move || {
            if let Err(error) = theirs.survey() {
                drop(tell.send(News::Unreadable(error)));
            }
        };
        // Without a thread the first receiver waits for the counts.
        drop(thread::Builder::new().name("wraith-survey".into()).spawn(walk));
        self.surveyed = Some((id, options));
    }
}

/// Whatever ends the work ends the transfers: their threads hear of it by the connection.
impl Drop for Serving {
    fn drop(&mut self) {
        if let Some((_, options)) = &self.surveyed {
            // A walk that nobody waits for.
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
            // All places have ended; what is served goes on.
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
