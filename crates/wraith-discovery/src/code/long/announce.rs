//! Long codes, the creator's side: waits for joiners at all record stores, such as the DHT.
//!
//! Records are stored under keys that change every hour (SPEC §11.9). Each store has a task. The
//! task keeps the creator's offer published under the key of the current hour and, ahead of time,
//! of the next. A joiner answers under the key of the hour in which it found the offer, so the task
//! looks for answers under all those keys. The tasks share one [`CodeUses`], so a use at one store
//! is a use at all of them.

use std::collections::VecDeque;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::select;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tracing::debug;
use wraith_crypto::NodeId;
use zeroize::Zeroizing;

use super::keys::CodeKeys;
use super::message::{Join, Offer};
use crate::backoff::Backoff;
use crate::code::announce::{CodeAnnouncement, CodeOptions, PlaceStatus};
use crate::code::state::{CodeEvent, EndCode, Events};
use crate::code::{Code, MakeTicket, NoRandomness, TicketSide};
use crate::contact::PunchRequest;
use crate::place::{EndSignal, PlaceError, Refusal};
use crate::places::Places;
use crate::reach::MakeReach;
use crate::record::content::{Content, Kind};
use crate::record::find::RecordFinder;
use crate::record::hour::{CLOCK_SKEW_SECONDS, hour_of};
use crate::store::RecordStore;
use crate::wall_clock::unix_seconds;

/// Longest delay of the code to test whether a store is reachable.
const PROBE_TIMEOUT: Duration = Duration::from_secs(3);
/// Intervals between searches for a joiner, by the age of the code. DHT nodes ban clients that
/// request one target several times a second, and a code that waits for hours should cost them
/// little.
const LOOKUP_INTERVALS: [(Duration, Duration); 2] = [
    (Duration::from_secs(120), Duration::from_secs(1)),
    (Duration::from_secs(600), Duration::from_secs(2)),
];
/// Interval after that.
const SLOW_LOOKUP_INTERVAL: Duration = Duration::from_secs(5);
/// Interval between republications of an offer.
const REPUBLISH_INTERVAL: Duration = Duration::from_secs(15 * 60);
/// Lifetime of an offer; at most that of the code.
const OFFER_LIFE_SECONDS: u64 = 20 * 60;
/// Lifetime of the reply to the last joiner, during which it is kept published. A joiner needs
/// seconds.
const REPLY_LIFE: Duration = Duration::from_secs(120);
/// Lead time for publishing the next hour's offer.
const LEAD_SECONDS: u64 = 120;
/// Served joiners whose reply is kept. A code has fewer joiners within minutes.
const MAX_SERVED: usize = 64;

/// Makes a long code and waits for joiners at the record stores, as the identity `own`. `ticket`
/// makes a joiner's ticket. `reach` returns the creator's addresses: both sides may have to start
/// sending. Otherwise like [`crate::announce`], except that joiners are served at once: only the
/// caller has the code before it is shown.
///
/// Returns once a store has answered, or after 3 s. Cancel-safe; must be called in a tokio runtime.
///
/// # Errors
/// [`NoRandomness`]
pub async fn announce_long(
    places: &Places,
    options: CodeOptions,
    own: NodeId,
    ticket: MakeTicket,
    reach: MakeReach,
) -> Result<CodeAnnouncement, NoRandomness> {
    let mut random = [0; 12];
    getrandom::fill(&mut random).map_err(|_| NoRandomness)?;
    let code = Code::long(random);
    let (events, event_receiver) = mpsc::unbounded_channel();
    let (ended, end) = EndSignal::channel();
    let (stop, stopped) = watch::channel(false);
    let uses =
        CodeUses { left: options.uses.max(1), served: VecDeque::new(), ended: None, version: 0 };
    let creator = Arc::new(LongCodeCreator {
        own,
        side: options.ticket_side,
        words: code.secret(),
        ticket,
        reach,
        expires: Instant::now() + options.life,
        uses: Mutex::new(uses),
        events,
        ended,
    });
    let (mut at, mut missing, mut tasks) = (Vec::new(), Vec::new(), JoinSet::new());
    for (store, answer) in probe_all(&places.stores).await {
        let place = store.place();
        let is_up = answer.is_ok();
        match answer {
            Ok(()) => at.push(place.clone()),
            Err(why) => missing.push((place.clone(), why)),
        }
        let waiter = StoreTask {
            store,
            creator: Arc::clone(&creator),
            status: PlaceStatus::new(place, is_up),
            hours: Vec::new(),
            published: None,
        };
        tasks.spawn(waiter.run(stopped.clone()));
    }
    let expiring = Arc::clone(&creator);
    tasks.spawn(async move {
        sleep_until(expiring.expires).await;
        expiring.end(Refusal::Expired);
    });
    let stop = (stop, creator as Arc<dyn EndCode>);
    Ok(CodeAnnouncement::stored(code, (at, missing), end, stop, event_receiver, tasks))
}

/// Probes all stores in parallel.
async fn probe_all(
    stores: &[Arc<dyn RecordStore>],
) -> Vec<(Arc<dyn RecordStore>, Result<(), PlaceError>)> {
    let mut probes = JoinSet::new();
    for (index, store) in stores.iter().enumerate() {
        let probe = store.probe();
        probes.spawn(async move {
            let answer = timeout(PROBE_TIMEOUT, probe).await;
            (index, answer.unwrap_or(Err(PlaceError::Silent)))
        });
    }
    let mut answers: Vec<_> =
        stores.iter().map(|store| (Arc::clone(store), Err(PlaceError::Silent))).collect();
    while let Some(probed) = probes.join_next().await {
        if let Ok((index, answer)) = probed {
            answers[index].1 = answer;
        }
    }
    answers
}

/// State shared by the tasks of all stores.
struct LongCodeCreator {
    own: NodeId,
    side: TicketSide,
    words: Zeroizing<String>,
    ticket: MakeTicket,
    reach: MakeReach,
    expires: Instant,
    uses: Mutex<CodeUses>,
    events: Events,
    ended: watch::Sender<Option<Refusal>>,
}

/// Remaining uses and served joiners.
struct CodeUses {
    left: u32,
    /// Served joiners with their tickets; the last one is in the offer.
    served: VecDeque<(NodeId, Zeroizing<Vec<u8>>)>,
    ended: Option<Refusal>,
    /// Counts changes of the offer.
    version: u64,
}

impl LongCodeCreator {
    fn emit(&self, event: CodeEvent) {
        // Without a handle the event is dropped.
        let _ = self.events.send(event);
    }

    fn uses(&self) -> MutexGuard<'_, CodeUses> {
        // Only `ticket` may panic under the lock, before any change.
        self.uses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Admits a joiner if possible. Returns whether the offer has changed, and whether the joiner
    /// is new.
    fn admit(&self, join: &Join) -> (bool, bool) {
        let mut uses = self.uses();
        if let Some(at) = uses.served.iter().position(|(joiner, _)| *joiner == join.joiner) {
            // The joiner has not seen its reply, perhaps because another joiner's replaced it.
            let again = uses.served.remove(at).expect("the position was just found");
            uses.served.push_back(again);
            uses.version += 1;
            return (true, false);
        }
        if uses.ended.is_some() || join.side != self.side {
            return (false, false);
        }
        let ticket = match self.side {
            TicketSide::Creator => (self.ticket)(join.joiner, None),
            TicketSide::Joiner => Some(Zeroizing::default()),
        };
        let Some(ticket) = ticket else {
            uses.end(Refusal::Used);
            self.ended.send_replace(Some(Refusal::Used));
            return (true, false);
        };
        if uses.served.len() >= MAX_SERVED {
            uses.served.pop_front();
        }
        uses.served.push_back((join.joiner, ticket));
        // An unlimited code stays unlimited.
        uses.left -= u32::from(uses.left != u32::MAX);
        if uses.left == 0 {
            uses.ended = Some(Refusal::Used);
        }
        uses.version += 1;
        (true, true)
    }

    /// Returns the record's present content and its version.
    fn content(&self, now: u64) -> (u64, Content) {
        let uses = self.uses();
        let served = uses.served.back().cloned();
        let life = match uses.ended {
            // The normal lifetime applies after a joiner as well: others may follow, and the offer
            // is republished only when due.
            None => {
                let left = self.expires.saturating_duration_since(Instant::now()).as_secs();
                left.min(OFFER_LIFE_SECONDS)
            }
            Some(_) => REPLY_LIFE.as_secs(),
        };
        let offer = Offer { creator: self.own, side: self.side, ended: uses.ended, served };
        let content = Content::new(Kind::Offer, now, life, (self.reach)(None));
        (uses.version, content.with_body(offer.encode()))
    }
}

impl CodeUses {
    /// Ends the code; the offer then has the reason.
    fn end(&mut self, why: Refusal) {
        self.ended = Some(why);
        self.version += 1;
    }
}

impl EndCode for LongCodeCreator {
    fn end(&self, why: Refusal) {
        let mut uses = self.uses();
        if uses.ended.is_none() {
            uses.end(why);
            if why == Refusal::Expired {
                self.emit(CodeEvent::Expired);
            }
            self.ended.send_replace(Some(why));
        }
    }
}

impl fmt::Debug for LongCodeCreator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LongCodeCreator").finish_non_exhaustive()
    }
}

/// Task of one store.
struct StoreTask {
    store: Arc<dyn RecordStore>,
    creator: Arc<LongCodeCreator>,
    status: PlaceStatus,
    /// Hours with a published offer.
    hours: Vec<CreatorHour>,
    /// Published version of the offer, and the time of its publication.
    published: Option<(u64, Instant)>,
}

/// The creator's keys and joiner search of one hour.
struct CreatorHour {
    keys: CodeKeys,
    joiners: RecordFinder,
}

impl StoreTask {
    async fn run(mut self, mut stopped: watch::Receiver<bool>) {
        select! {
            () = self.serve_store() => return,
            stopped = stopped.wait_for(|stopped| *stopped) => if stopped.is_err() { return },
        }
        // The newest hour comes first, because time may run out before the other hours.
        for hour in self.hours.iter().rev() {
            if let Err(why) = self.put(hour, &Content::withdrawn(unix_seconds())).await {
                debug!(place = self.store.place().name(), %why, "a code was not withdrawn");
            }
        }
    }

    /// Runs until the code has ended and the last joiner had time to read its reply.
    async fn serve_store(&mut self) {
        let (begun, mut backoff) = (Instant::now(), Backoff::of_a_place());
        let mut ended: Option<Instant> = None;
        loop {
            match self.update_store().await {
                Ok(()) => {
                    backoff.succeeded(Instant::now());
                    self.status.mark_up(|event| self.creator.emit(event));
                }
                Err(why) => {
                    self.status.mark_down(why, |event| self.creator.emit(event));
                    backoff.wait().await;
                    continue;
                }
            }
            let is_over = self.creator.uses().ended.is_some();
            let now = Instant::now();
            if is_over && now >= *ended.get_or_insert(now) + REPLY_LIFE {
                return;
            }
            let mut looks = LOOKUP_INTERVALS.into_iter();
            let interval = looks.find(|(for_long, _)| now < begun + *for_long);
            sleep(interval.map_or(SLOW_LOOKUP_INTERVAL, |(_, interval)| interval)).await;
        }
    }

    /// Publishes changes and looks for a joiner once.
    async fn update_store(&mut self) -> Result<(), PlaceError> {
        let has_new_hour = self.update_hours().await?;
        let version = self.creator.uses().version;
        let is_current = self.published.is_some_and(|(published, at)| {
            published == version && at.elapsed() < REPUBLISH_INTERVAL
        });
        if has_new_hour || !is_current {
            self.publish().await?;
        }
        for at in 0..self.hours.len() {
            if let Some(join) = self.find_joiner(at).await? {
                self.admit_joiner(at, &join).await?;
            }
        }
        Ok(())
    }

    /// Updates the hours in which an offer must be published: the current one, and the next shortly
    /// before it starts. The previous one stays while slow clocks may still be in it.
    async fn update_hours(&mut self) -> Result<bool, PlaceError> {
        let now = unix_seconds();
        self.hours.retain(|hour| hour.keys.hour >= hour_of(now.saturating_sub(CLOCK_SKEW_SECONDS)));
        let mut has_new = false;
        for hour in [hour_of(now), hour_of(now + LEAD_SECONDS)] {
            if self.hours.iter().all(|known| known.keys.hour != hour) {
                let keys = CodeKeys::of(&self.creator.words, hour).await?;
                let joiners = RecordFinder::new(Arc::clone(&self.store), keys.join.clone());
                self.hours.push(CreatorHour { keys, joiners: joiners.in_hour(hour) });
                has_new = true;
            }
        }
        Ok(has_new)
    }

    async fn publish(&mut self) -> Result<(), PlaceError> {
        let (version, content) = self.creator.content(unix_seconds());
        for hour in &self.hours {
            self.put(hour, &content).await?;
        }
        self.published = Some((version, Instant::now()));
        Ok(())
    }

    async fn put(&self, hour: &CreatorHour, content: &Content) -> Result<(), PlaceError> {
        let CodeKeys { hour, offer, .. } = &hour.keys;
        self.store.put(offer.seed(*hour), offer.seal(*hour, content)?).await
    }

    /// Returns a joiner of this hour and its addresses.
    async fn find_joiner(&mut self, at: usize) -> Result<Option<(Join, Content)>, PlaceError> {
        let mut found = None;
        let lookup = self.hours[at].joiners.lookup(|content| {
            if content.kind == Kind::Join {
                found = Join::decode(&content.body).map(|join| (join, content));
            }
            // The first joiner found is served at once.
            if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        lookup.await?;
        Ok(found)
    }

    /// Admits a joiner. Reports it after the reply was published.
    async fn admit_joiner(
        &mut self,
        at: usize,
        (join, content): &(Join, Content),
    ) -> Result<(), PlaceError> {
        let creator = Arc::clone(&self.creator);
        let (has_changed, is_new) = creator.admit(join);
        if !has_changed {
            return Ok(());
        }
        let place = self.store.place();
        if is_new {
            let (peer, reach) = (join.joiner, content.reach.clone());
            let punch_secret = self.hours[at].keys.punch_secret(creator.own, peer);
            let call = PunchRequest { peer, reach, punch_secret };
            creator.emit(CodeEvent::PunchRequest(place.clone(), call));
        }
        // The joiner's hour is published first.
        self.hours.swap(0, at);
        self.publish_with_retries().await;
        if is_new {
            creator.emit(CodeEvent::Used { place, joiner: join.joiner });
            if self.creator.side == TicketSide::Joiner {
                let ticket = join.ticket.clone();
                creator.emit(CodeEvent::Ticket { ticket, from: None });
            }
            let ended = creator.uses().ended;
            if ended.is_some() {
                creator.ended.send_replace(ended);
            }
        }
        Ok(())
    }

    /// Publishes until it succeeds: an admitted joiner must see its reply.
    async fn publish_with_retries(&mut self) {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(20));
        while let Err(why) = self.publish().await {
            self.status.mark_down(why, |event| self.creator.emit(event));
            backoff.wait().await;
        }
    }
}
