//! Waiting with a code at every place at once, for who made it.
//!
//! Each place is a task: it announces a nameplate, serves joiners from [`CodeAnnouncement::begin`] on, and announces it again
//! when the place was lost. The tasks share one [`CreatorState`], so a code is one guess however many places there are.

use std::sync::Arc;
use std::time::Duration;

use tokio::select;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tracing::debug;
use wraith_crypto::NodeId;

use super::creator::Creator;
use super::pake::TicketSide;
use super::state::{CodeEvent, CreatorState};
use super::text::Code;
use super::{MakeTicket, NoRandomness};
use crate::backoff::Backoff;
use crate::place::{
    Announcement, End, LAST_WORD_TIMEOUT, MeetingPlace, Place, PlaceError, Refusal, Topic,
};
use crate::places::Places;
use crate::record::publish::WITHDRAW_TIMEOUT;

/// How long the code may be held back for a server to name a nameplate. The code is on the screen within 300 ms.
const NAMEPLATE_TIMEOUT: Duration = Duration::from_millis(200);
/// The same when there is nowhere else to wait, so that without the server there is no point in a code.
const ONLY_PLACE_TIMEOUT: Duration = Duration::from_secs(3);
/// Nameplates that are wished for: three digits at most are quick to say, and on one local network two people rarely pick
/// the same.
const SHORT_NAMEPLATES: u32 = 999;

/// What a code is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CodeOptions {
    /// Who has the ticket.
    pub ticket_side: TicketSide,
    /// How long it is good if nobody uses it.
    pub life: Duration,
    /// How many identities may use it; `u32::MAX` is any number. With more than one it has a third word.
    pub uses: u32,
}

impl CodeOptions {
    /// A code for one joiner.
    pub const fn new(ticket_side: TicketSide, life: Duration) -> Self {
        Self { ticket_side, life, uses: 1 }
    }

    /// The same, for so many.
    pub const fn uses(mut self, uses: u32) -> Self {
        self.uses = uses;
        self
    }
}

/// A code that is waited with, until this is dropped.
#[derive(Debug)]
pub struct CodeAnnouncement {
    code: Code,
    places: Vec<Place>,
    missing: Vec<(Place, PlaceError)>,
    /// Of a short code, until [`Self::begin`].
    prepared: Option<Prepared>,
    /// Of a long code: withdraws it.
    stop: Option<watch::Sender<bool>>,
    end: End,
    events: mpsc::UnboundedReceiver<CodeEvent>,
    /// Of places where everybody hears everything, and of the others, which are told why a code has ended.
    broadcasts: JoinSet<()>,
    mailboxes: JoinSet<()>,
}

/// What waits for [`CodeAnnouncement::begin`].
#[derive(Debug)]
struct Prepared {
    state: Arc<CreatorState>,
    /// The tasks that wait, and whether their place is among those that were told.
    waiting: Vec<(oneshot::Sender<Begin>, bool)>,
}

/// What a place's task needs to serve joiners.
#[derive(Debug)]
struct Begin {
    nameplate: u32,
    state: Arc<CreatorState>,
    end: End,
    /// The user was told that we wait there.
    is_listed: bool,
}

/// What a place's task says at first: what was announced there.
type Report = (usize, Result<Option<u32>, PlaceError>);

/// Makes a code and prepares to wait for joiners with it at all places, as the identity `own`. `ticket` makes what a joiner with
/// the right words gets; it is not called if the joiner has the ticket.
///
/// Done when the code can be shown: a server is given 200 ms to name a nameplate, and 3 s if there is nowhere else.
/// Cancel-safe; must be called in a tokio runtime.
///
/// # Errors
/// [`NoRandomness`]
pub async fn announce(
    places: &Places,
    options: CodeOptions,
    own: NodeId,
    ticket: MakeTicket,
) -> Result<CodeAnnouncement, NoRandomness> {
    let mut random = [0; 10];
    getrandom::fill(&mut random).map_err(|_| NoRandomness)?;
    let [a, b, c, d, words @ ..] = random;
    let wish = 1 + u32::from_be_bytes([a, b, c, d]) % SHORT_NAMEPLATES;
    Ok(announce_at(wish, words, places.all(), options, own, ticket).await)
}

/// The same with this nameplate, if it is free, and words from these random bytes: two for one use, three for more.
pub(super) async fn announce_at(
    wish: u32,
    words: [u8; 6],
    all: Vec<Arc<dyn MeetingPlace>>,
    options: CodeOptions,
    own: NodeId,
    ticket: MakeTicket,
) -> CodeAnnouncement {
    let names: Vec<Place> = all.iter().map(|place| place.place()).collect();
    let (report, mut reports) = mpsc::unbounded_channel();
    let (mut broadcasts, mut mailboxes) = (JoinSet::new(), JoinSet::new());
    let mut begins = Vec::new();
    for (index, place) in all.into_iter().enumerate() {
        let (begin, begun) = oneshot::channel();
        begins.push(begin);
        let tasks = if place.caps().broadcast { &mut broadcasts } else { &mut mailboxes };
        tasks.spawn(wait_at(place, wish, index, report.clone(), begun));
    }
    drop(report);
    let announced = first_reports(names.len(), &mut reports).await;
    let mut named = announced.iter().flatten().filter_map(|report| *report.as_ref().ok()?);
    let nameplate = named.find(|nameplate| *nameplate != wish).unwrap_or(wish);

    let [a, b, c, d, ..] = words;
    let code = match options.uses {
        1 => Code::new(nameplate, [a, b, c, d]),
        _ => Code::for_several(nameplate, words),
    };
    let expires = std::time::Instant::now() + options.life;
    let creator = Creator::new(code.clone(), options.ticket_side, expires).with_uses(options.uses);
    let (tell, events) = mpsc::unbounded_channel();
    let (ended, end) = End::channel();
    let state = Arc::new(CreatorState::new(creator, own, options.ticket_side, ticket, tell, ended));
    let (mut places, mut missing, mut waiting) = (Vec::new(), Vec::new(), Vec::new());
    for ((place, report), begin) in names.into_iter().zip(announced).zip(begins) {
        let is_up = matches!(report, Some(Ok(_)));
        waiting.push((begin, is_up));
        match report {
            Some(Ok(_)) => places.push(place),
            Some(Err(why)) => missing.push((place, why)),
            None => missing.push((place, PlaceError::Silent)),
        }
    }
    let (prepared, stop) = (Some(Prepared { state, waiting }), None);
    CodeAnnouncement { code, places, missing, prepared, stop, end, events, broadcasts, mailboxes }
}

/// What so many places report in time. It is short once there is a place where the code is good.
async fn first_reports(
    count: usize,
    reports: &mut mpsc::UnboundedReceiver<Report>,
) -> Vec<Option<Result<Option<u32>, PlaceError>>> {
    let begun = Instant::now();
    let mut announced = vec![None; count];
    loop {
        let is_up = announced.iter().flatten().any(Result::is_ok);
        let patience = if is_up { NAMEPLATE_TIMEOUT } else { ONLY_PLACE_TIMEOUT };
        if announced.iter().all(Option::is_some) {
            return announced;
        }
        match timeout_at(begun + patience, reports.recv()).await {
            Ok(Some((index, report))) => announced[index] = Some(report),
            Ok(None) | Err(_) => return announced,
        }
    }
}

impl CodeAnnouncement {
    /// One of a long code, which `tasks` wait with until they see `stop`.
    pub(super) fn stored(
        code: Code,
        (places, missing): AtAndMissing,
        end: End,
        stop: watch::Sender<bool>,
        events: mpsc::UnboundedReceiver<CodeEvent>,
        tasks: JoinSet<()>,
    ) -> Self {
        let (prepared, stop, broadcasts) = (None, Some(stop), JoinSet::new());
        let mailboxes = tasks;
        Self { code, places, missing, prepared, stop, end, events, broadcasts, mailboxes }
    }

    /// The code to say.
    pub const fn code(&self) -> &Code {
        &self.code
    }

    /// Where it is waited. Empty if there is no such place: then the code is good for nothing.
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// Where it is not although it was to be, and why. What is missing now may come: that is told as [`CodeEvent::Back`].
    pub fn missing(&self) -> &[(Place, PlaceError)] {
        &self.missing
    }

    /// Begins to serve joiners, and to tell. Until then they wait: so the code is shown first. Must be called in a tokio
    /// runtime; a second time it does nothing, nor with a long code.
    pub fn begin(&mut self) {
        let Some(Prepared { state, waiting }) = self.prepared.take() else { return };
        for (begin, is_listed) in waiting {
            let (nameplate, state) = (self.code.nameplate(), Arc::clone(&state));
            // A task that is gone already had no place to wait at.
            let _ = begin.send(Begin { nameplate, state, end: self.end.clone(), is_listed });
        }
        let mut end = self.end.clone();
        self.mailboxes.spawn(async move {
            select! {
                () = sleep_until(state.expires().into()) => state.expire(),
                _ = end.wait() => {}
            }
        });
    }

    /// The next event; None if there is no place left from which one can come. Cancel-safe.
    pub async fn next_event(&mut self) -> Option<CodeEvent> {
        loop {
            let running = self.broadcasts.len() + self.mailboxes.len();
            select! {
                biased;
                event = self.events.recv() => return event,
                Some(_) = self.broadcasts.join_next() => {}
                Some(_) = self.mailboxes.join_next() => {}
                () = std::future::ready(()), if running == 0 => return None,
            }
        }
    }

    /// Withdraws the code. If it has ended, places where latecomers can learn why are told first, for half a second at
    /// most: a server would otherwise say that nobody waits there. A long code that nobody used is overwritten where it was stored, within
    /// 3 s; what was said to who used it stays for two minutes.
    pub async fn close(mut self) {
        if let Some(stop) = self.stop {
            if self.end.reached() != Some(Refusal::Used) {
                stop.send_replace(true);
                let stopped = async { while self.mailboxes.join_next().await.is_some() {} };
                let _ = timeout(WITHDRAW_TIMEOUT, stopped).await;
            }
            return;
        }
        self.broadcasts.abort_all();
        if self.end.reached().is_some() {
            let ended = async { while self.mailboxes.join_next().await.is_some() {} };
            let _ = timeout(LAST_WORD_TIMEOUT, ended).await;
        }
    }
}

/// One place's task: announces the wish, reports, and once begun keeps the code's own nameplate announced until the code or
/// the task ends.
async fn wait_at(
    place: Arc<dyn MeetingPlace>,
    wish: u32,
    index: usize,
    report: mpsc::UnboundedSender<Report>,
    begun: oneshot::Receiver<Begin>,
) {
    let mut announcement = place.announce(Topic::Nameplate { nameplate: wish, exact: false }).await;
    let named = announcement.as_ref().map(|it| it.nameplate()).map_err(Clone::clone);
    let _ = report.send((index, named));
    drop(report);
    let Ok(Begin { nameplate, state, mut end, is_listed }) = begun.await else { return };
    let exactly = Topic::Nameplate { nameplate, exact: true };
    if !matches!(&announcement, Ok(it) if it.nameplate().is_none_or(|n| n == nameplate)) {
        if is_unusable(&announcement) {
            return;
        }
        // A server that is asked twice at once is not asked more than a joiner asks it.
        drop(announcement);
        announcement = place.announce(exactly).await;
    }
    let mut status = Status::new(place.place(), is_listed);
    let mut backoff = Backoff::of_a_place();
    loop {
        let served = match announcement {
            Ok(announcement) => {
                backoff.reset();
                status.up(|event| state.tell(event));
                announcement.serve(state.clone(), end.clone()).await
            }
            Err(why) => Err(why),
        };
        let Err(why) = served else { return };
        let is_unusable = matches!(why, PlaceError::Unusable(_));
        status.down(why, |event| state.tell(event));
        if is_unusable {
            return;
        }
        select! {
            () = backoff.wait() => {}
            _ = end.wait() => return,
        }
        announcement = place.announce(exactly).await;
    }
}

fn is_unusable(announced: &Result<Box<dyn Announcement>, PlaceError>) -> bool {
    matches!(announced, Err(PlaceError::Unusable(_)))
}

/// Where a code waits, and where it does not.
pub(super) type AtAndMissing = (Vec<Place>, Vec<(Place, PlaceError)>);

/// What the user knows of a place: that it is up, that it is down, or neither.
pub(super) struct Status {
    place: Place,
    known: Option<bool>,
}

impl Status {
    /// Of a place that the user was told of, or of one that is missing.
    pub fn new(place: Place, is_listed: bool) -> Self {
        Self { place, known: is_listed.then_some(true) }
    }

    pub fn up(&mut self, tell: impl FnOnce(CodeEvent)) {
        if self.known != Some(true) {
            debug!(place = self.place.name(), "a code waits");
            tell(CodeEvent::Back(self.place.clone()));
        }
        self.known = Some(true);
    }

    pub fn down(&mut self, why: PlaceError, tell: impl FnOnce(CodeEvent)) {
        debug!(place = self.place.name(), %why, "a code does not wait");
        if self.known != Some(false) {
            tell(CodeEvent::Lost(self.place.clone(), why));
        }
        self.known = Some(false);
    }
}
