//! The side that made the code (the creator): waits with a code at all meeting places at once.
//!
//! Each place has a task. The task announces a nameplate (the number in the code) until all places
//! agree on one. It serves joiners from [`CodeAnnouncement::start_serving`] on, and announces the
//! nameplate again after the place was lost. The tasks share one [`CreatorState`], so a code allows
//! one guess at all places together.

use std::sync::Arc;
use std::time::Duration;

use tokio::select;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tracing::debug;
use wraith_crypto::NodeId;

use super::creator::Creator;
use super::pake::TicketSide;
use super::state::{CodeEvent, CreatorState, EndCode};
use super::text::Code;
use super::{MakeTicket, NoRandomness};
use crate::backoff::Backoff;
use crate::place::{
    Announcement, CLOSE_MESSAGE_TIMEOUT, EndSignal, MeetingPlace, PlaceError, PlaceName, Refusal,
    Topic,
};
use crate::places::Places;
use crate::record::publish::WITHDRAW_TIMEOUT;

/// Longest delay of the code while a server selects a nameplate. The local network takes as long
/// (`crate::lan`), and both run at the same time, so the code is on the screen within 300 ms.
const NAMEPLATE_TIMEOUT: Duration = Duration::from_millis(200);
/// The same limit for the local network. A claim takes longer only if hundreds of senders on one
/// machine or network start together.
const CLAIM_TIMEOUT: Duration = Duration::from_secs(60);
/// The same limit if no other place is available, because the code is useless without the server.
const ONLY_PLACE_TIMEOUT: Duration = Duration::from_secs(3);
/// Highest nameplate requested. Three digits are quick to say, and two codes on one local network
/// rarely collide.
const SHORT_NAMEPLATES: u32 = 999;
/// Most rounds in which places agree on one nameplate. A second round is rare: it follows if a
/// place had to choose another number.
const MAX_ROUNDS: usize = 6;

/// Options of a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CodeOptions {
    /// The side that has the ticket.
    pub ticket_side: TicketSide,
    /// Lifetime of an unused code.
    pub life: Duration,
    /// Number of identities that may use the code; `u32::MAX` means any number. A code for more
    /// than one has a third word.
    pub uses: u32,
}

impl CodeOptions {
    /// Returns the options of a code for one joiner.
    pub const fn new(ticket_side: TicketSide, life: Duration) -> Self {
        Self { ticket_side, life, uses: 1 }
    }

    /// Sets the number of joiners.
    pub const fn uses(mut self, uses: u32) -> Self {
        self.uses = uses;
        self
    }
}

/// An announced code. Drop withdraws it.
#[derive(Debug)]
pub struct CodeAnnouncement {
    code: Code,
    places: Vec<PlaceName>,
    missing: Vec<(PlaceName, PlaceError)>,
    /// Tasks of a short code before [`Self::start_serving`].
    prepared_tasks: Option<PreparedTasks>,
    /// Withdraws a long code.
    stop: Option<watch::Sender<bool>>,
    creator: Arc<dyn EndCode>,
    /// The last joiner came by another code, so no reply of this one need stay.
    is_used_elsewhere: bool,
    end: EndSignal,
    events: mpsc::UnboundedReceiver<CodeEvent>,
    /// Tasks of broadcast places, and of all other places. The other places get the reason when a
    /// code ends.
    broadcasts: JoinSet<()>,
    mailboxes: JoinSet<()>,
}

/// Tasks that wait for [`CodeAnnouncement::start_serving`].
#[derive(Debug)]
struct PreparedTasks {
    state: Arc<CreatorState>,
    /// The tasks' channels, and whether each place was listed to the caller.
    waiting: Vec<(mpsc::UnboundedSender<PlaceCommand>, bool)>,
}

/// A command for a place's task.
#[derive(Debug)]
enum PlaceCommand {
    /// Announce another nameplate, and report again.
    Announce(Topic),
    /// Serve joiners.
    Serve(ServeParams),
}

/// Parameters for a place's task to serve joiners.
#[derive(Debug)]
struct ServeParams {
    nameplate: u32,
    state: Arc<CreatorState>,
    end: EndSignal,
    /// Whether the place was listed to the caller.
    is_listed: bool,
}

/// Report of a place's task: the place's index and the announced nameplate.
type Report = (usize, Announced);
type Announced = Result<Option<u32>, PlaceError>;

/// Makes a code and prepares to wait for joiners at all places, as the identity `own`. `ticket`
/// makes the ticket for a joiner with the right words; it is not called if the joiner has the
/// ticket.
///
/// Returns once the code can be shown. A server has 200 ms to select a nameplate, or 3 s if there
/// is no other place. Cancel-safe; must be called in a tokio runtime.
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
    let requested = 1 + u32::from_be_bytes([a, b, c, d]) % SHORT_NAMEPLATES;
    Ok(announce_at(requested, words, places.all(), options, own, ticket).await)
}

/// Same as [`announce`], with a requested nameplate and words from these random bytes: two words
/// for one use, three for more.
pub(super) async fn announce_at(
    requested: u32,
    words: [u8; 6],
    all: Vec<Arc<dyn MeetingPlace>>,
    options: CodeOptions,
    own: NodeId,
    ticket: MakeTicket,
) -> CodeAnnouncement {
    let names: Vec<PlaceName> = all.iter().map(|place| place.place()).collect();
    let (report, mut reports) = mpsc::unbounded_channel();
    let (mut broadcasts, mut mailboxes) = (JoinSet::new(), JoinSet::new());
    let are_near: Vec<_> = all.iter().map(|place| place.caps().broadcast).collect();
    let mut commands = Vec::new();
    for (index, place) in all.into_iter().enumerate() {
        let (sender, receiver) = mpsc::unbounded_channel();
        commands.push(sender);
        let tasks = if place.caps().broadcast { &mut broadcasts } else { &mut mailboxes };
        tasks.spawn(announce_nameplate(place, requested, index, report.clone(), receiver));
    }
    drop(report);
    let (nameplate, announced) =
        agree_on_nameplate(requested, &commands, &are_near, &mut reports).await;

    let [a, b, c, d, ..] = words;
    let code = match options.uses {
        1 => Code::new(nameplate, [a, b, c, d]),
        _ => Code::for_several(nameplate, words),
    };
    let expires = std::time::Instant::now() + options.life;
    let creator = Creator::new(code.clone(), options.ticket_side, expires).with_uses(options.uses);
    let (emit, events) = mpsc::unbounded_channel();
    let (ended, end) = EndSignal::channel();
    let state = Arc::new(CreatorState::new(creator, own, options.ticket_side, ticket, emit, ended));
    let (mut places, mut missing, mut waiting) = (Vec::new(), Vec::new(), Vec::new());
    for ((place, report), commands) in names.into_iter().zip(announced).zip(commands) {
        let is_up = matches!(report, Some(Ok(_)));
        waiting.push((commands, is_up));
        match report {
            Some(Ok(_)) => places.push(place),
            Some(Err(why)) => missing.push((place, why)),
            None => missing.push((place, PlaceError::Silent)),
        }
    }
    let creator = Arc::clone(&state) as Arc<dyn EndCode>;
    let (prepared_tasks, stop) = (Some(PreparedTasks { state, waiting }), None);
    CodeAnnouncement {
        code,
        places,
        missing,
        prepared_tasks,
        stop,
        creator,
        is_used_elsewhere: false,
        end,
        events,
        broadcasts,
        mailboxes,
    }
}

/// Lets all places announce one nameplate. Returns it, and the last report of each place. A place
/// where another code has the nameplate chooses another one, which the other places then announce.
async fn agree_on_nameplate(
    requested: u32,
    commands: &[mpsc::UnboundedSender<PlaceCommand>],
    are_near: &[bool],
    reports: &mut mpsc::UnboundedReceiver<Report>,
) -> (u32, Vec<Option<Announced>>) {
    let mut nameplate = requested;
    let mut announced = vec![None; commands.len()];
    for _ in 0..MAX_ROUNDS {
        collect_reports(&mut announced, are_near, reports).await;
        let is_taken = |report: &Option<Announced>| matches!(report, Some(Err(PlaceError::Taken)));
        let chosen = announced.iter().flatten().filter_map(|report| *report.as_ref().ok()?);
        let other = chosen.clone().find(|chosen| *chosen != nameplate);
        let exact = match other {
            Some(other) => {
                nameplate = other;
                true
            }
            // Another code has the nameplate at this place: all choose anew.
            None if announced.iter().any(is_taken) && chosen.count() > 0 => {
                nameplate = 1 + getrandom::u32().unwrap_or(nameplate) % SHORT_NAMEPLATES;
                false
            }
            None => break,
        };
        for (report, commands) in announced.iter_mut().zip(commands) {
            let is_other = matches!(report, Some(Ok(Some(chosen))) if *chosen != nameplate);
            if is_other || is_taken(report) {
                *report = None;
                // A finished task had no usable place.
                let _ =
                    commands.send(PlaceCommand::Announce(Topic::Nameplate { nameplate, exact }));
            }
        }
    }
    (nameplate, announced)
}

/// Collects the missing reports. The wait is short once any place is up, except for the local
/// network: it needs no server that may stall.
async fn collect_reports(
    announced: &mut [Option<Announced>],
    are_near: &[bool],
    reports: &mut mpsc::UnboundedReceiver<Report>,
) {
    let started = Instant::now();
    while !announced.iter().all(Option::is_some) {
        let is_up = announced.iter().flatten().any(Result::is_ok);
        let is_claiming =
            announced.iter().zip(are_near).any(|(report, near)| report.is_none() && *near);
        let patience = match is_up {
            _ if is_claiming => CLAIM_TIMEOUT,
            true => NAMEPLATE_TIMEOUT,
            false => ONLY_PLACE_TIMEOUT,
        };
        match timeout_at(started + patience, reports.recv()).await {
            Ok(Some((index, report))) => announced[index] = Some(report),
            Ok(None) | Err(_) => return,
        }
    }
}

impl CodeAnnouncement {
    /// Wraps a long code, which `tasks` serve until they see `stop`.
    pub(super) fn stored(
        code: Code,
        (places, missing): AnnouncedAndFailed,
        end: EndSignal,
        (stop, creator): (watch::Sender<bool>, Arc<dyn EndCode>),
        events: mpsc::UnboundedReceiver<CodeEvent>,
        tasks: JoinSet<()>,
    ) -> Self {
        Self {
            code,
            places,
            missing,
            prepared_tasks: None,
            stop: Some(stop),
            creator,
            is_used_elsewhere: false,
            end,
            events,
            broadcasts: JoinSet::new(),
            mailboxes: tasks,
        }
    }

    /// Returns the code.
    pub const fn code(&self) -> &Code {
        &self.code
    }

    /// Returns the places where the code waits. If there are none, the code is useless.
    pub fn places(&self) -> &[PlaceName] {
        &self.places
    }

    /// Returns the places that failed, with reasons. A place that recovers is reported as
    /// [`CodeEvent::Back`].
    pub fn missing(&self) -> &[(PlaceName, PlaceError)] {
        &self.missing
    }

    /// Starts to serve joiners and to report events, so the code can be shown first. Must be called
    /// in a tokio runtime. Further calls have no effect, nor do calls with a long code.
    pub fn start_serving(&mut self) {
        let Some(PreparedTasks { state, waiting }) = self.prepared_tasks.take() else { return };
        for (commands, is_listed) in waiting {
            let (nameplate, state) = (self.code.nameplate(), Arc::clone(&state));
            // A finished task had no usable place.
            let end = self.end.clone();
            let params = ServeParams { nameplate, state, end, is_listed };
            let _ = commands.send(PlaceCommand::Serve(params));
        }
        let mut end = self.end.clone();
        self.mailboxes.spawn(async move {
            select! {
                () = sleep_until(state.expires().into()) => state.expire(),
                _ = end.wait() => {}
            }
        });
    }

    /// Returns the next event, or `None` if no place is left. Cancel-safe.
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

    /// Refuses further joiners as too late: another code of the same offer has served the last one.
    /// No effect on a code that has ended.
    pub fn end_as_used(&mut self) {
        self.is_used_elsewhere = self.end.reached().is_none();
        self.creator.end(Refusal::Used);
    }

    /// Withdraws the code.
    ///
    /// If it has ended, the places first get the reason, within half a second: without the reason,
    /// a server would report that nobody waits there. An unused long code is overwritten at its
    /// stores within 3 s. The reply to the joiner of a used one stays for two minutes.
    pub async fn close(mut self) {
        if let Some(stop) = self.stop {
            if self.is_used_elsewhere || self.end.reached() != Some(Refusal::Used) {
                stop.send_replace(true);
                let stopped = async { while self.mailboxes.join_next().await.is_some() {} };
                let _ = timeout(WITHDRAW_TIMEOUT, stopped).await;
            }
            return;
        }
        self.broadcasts.abort_all();
        if self.end.reached().is_some() {
            let ended = async { while self.mailboxes.join_next().await.is_some() {} };
            let _ = timeout(CLOSE_MESSAGE_TIMEOUT, ended).await;
        }
    }
}

/// Task of one place: announces the requested nameplate, or another one on command, and reports the
/// results. After the start it keeps the code's nameplate announced until the code or the task ends.
async fn announce_nameplate(
    place: Arc<dyn MeetingPlace>,
    requested: u32,
    index: usize,
    report: mpsc::UnboundedSender<Report>,
    mut commands: mpsc::UnboundedReceiver<PlaceCommand>,
) {
    let mut topic = Topic::Nameplate { nameplate: requested, exact: false };
    let (mut announcement, ServeParams { nameplate, state, mut end, is_listed }) = loop {
        let mut announcement = place.announce(topic).await;
        let named = announcement.as_ref().map(|it| it.nameplate()).map_err(Clone::clone);
        let _ = report.send((index, named));
        match next_command(&mut commands, &mut announcement).await {
            Some(PlaceCommand::Announce(other)) => topic = other,
            Some(PlaceCommand::Serve(params)) => break (announcement, params),
            None => return,
        }
    };
    drop(report);
    let exactly = Topic::Nameplate { nameplate, exact: true };
    if !matches!(&announcement, Ok(it) if it.nameplate().is_none_or(|n| n == nameplate)) {
        if is_unusable(&announcement) {
            return;
        }
        // Dropped first, so that the server counts one connection of this client at a time.
        drop(announcement);
        announcement = place.announce(exactly).await;
    }
    let mut status = PlaceStatus::new(place.place(), is_listed);
    let mut backoff = Backoff::of_a_place();
    loop {
        let served = match announcement {
            Ok(announcement) => {
                backoff.succeeded(Instant::now());
                status.mark_up(|event| state.emit(event));
                announcement.serve_queries(state.clone(), end.clone()).await
            }
            Err(why) => Err(why),
        };
        let Err(why) = served else { return };
        let is_unusable = matches!(why, PlaceError::Unusable(_));
        status.mark_down(why, |event| state.emit(event));
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

/// Waits for the next command, and keeps the announced nameplate meanwhile.
async fn next_command(
    commands: &mut mpsc::UnboundedReceiver<PlaceCommand>,
    announcement: &mut Result<Box<dyn Announcement>, PlaceError>,
) -> Option<PlaceCommand> {
    let hold = async {
        match announcement {
            Ok(announcement) => announcement.hold().await,
            Err(_) => std::future::pending().await,
        }
    };
    select! {
        command = commands.recv() => command,
        () = hold => None,
    }
}

fn is_unusable(announced: &Result<Box<dyn Announcement>, PlaceError>) -> bool {
    matches!(announced, Err(PlaceError::Unusable(_)))
}

/// Places where the code waits, and failed places.
pub(super) type AnnouncedAndFailed = (Vec<PlaceName>, Vec<(PlaceName, PlaceError)>);

/// State of a place as last reported to the caller: up, down, or not reported.
pub(super) struct PlaceStatus {
    place: PlaceName,
    is_up: Option<bool>,
}

impl PlaceStatus {
    /// Creates the status of a listed or a failed place.
    pub fn new(place: PlaceName, is_listed: bool) -> Self {
        Self { place, is_up: is_listed.then_some(true) }
    }

    pub fn mark_up(&mut self, emit: impl FnOnce(CodeEvent)) {
        if self.is_up != Some(true) {
            debug!(place = self.place.name(), "code announced");
            emit(CodeEvent::Back(self.place.clone()));
        }
        self.is_up = Some(true);
    }

    pub fn mark_down(&mut self, why: PlaceError, emit: impl FnOnce(CodeEvent)) {
        debug!(place = self.place.name(), %why, "code not announced");
        if self.is_up != Some(false) {
            emit(CodeEvent::Lost(self.place.clone(), why));
        }
        self.is_up = Some(false);
    }
}
