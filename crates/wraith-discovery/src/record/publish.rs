//! Keeps a record up to date at all stores, and withdraws it at the end.
//!
//! A record is republished when it changes, before it expires, and up to five minutes ahead of the
//! next hour. The lead time is random: records that all appear at the full hour could be attributed
//! to one program. The record of an hour is never late, so a search succeeds at any minute.
//!
//! Invariant: only one task writes under a storage key, so writes do not race.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::select;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};
use tracing::debug;

use super::content::Content;
use super::hour::hour_of;
use super::slot::Slot;
use crate::backoff::Backoff;
use crate::place::{PlaceError, PlaceName};
use crate::store::RecordStore;
use crate::suspension::sleep_or_wake;
use crate::wall_clock::unix_seconds;

/// Longest lead time of the next hour's record in seconds.
const MAX_LEAD_SECONDS: u64 = 300;
/// Longest sleep before the clock is read again: it may be set.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);
/// Least interval between republications of a changing record; each costs about thirty datagrams.
const CHANGE_INTERVAL: Duration = Duration::from_secs(10);
/// Number of hours whose records may still be found: the current one, and the previous or the next.
const MAX_WRITTEN_HOURS: usize = 2;
/// Time limit of a withdrawal. A user who pressed Ctrl-C waits for it.
pub const WITHDRAW_TIMEOUT: Duration = Duration::from_secs(3);

/// Makes the current content; the argument is the time in Unix seconds.
pub type MakeContent = Arc<dyn Fn(u64) -> Content + Send + Sync>;
/// Receives the result of each write.
pub type Report = Arc<dyn Fn(&PlaceName, Result<(), PlaceError>) + Send + Sync>;

/// A record that is kept up to date. After drop it stays until it expires;
/// [`Publication::withdraw`] overwrites it.
pub struct Publication {
    commands: watch::Sender<WriterCommand>,
    tasks: JoinSet<()>,
}

#[derive(Clone, Copy, Default)]
struct WriterCommand {
    /// Counts changes of the content.
    version: u64,
    withdraw: bool,
}

impl Publication {
    /// Keeps the output of `make` published in `slot` at all `stores`, and republishes it at least
    /// every `every`. Must be called in a tokio runtime.
    pub fn start(
        stores: &[Arc<dyn RecordStore>],
        slot: &Slot,
        every: Duration,
        make: &MakeContent,
        report: &Report,
    ) -> Self {
        let commands = watch::Sender::default();
        let mut tasks = JoinSet::new();
        for store in stores {
            let writer = Writer {
                store: Arc::clone(store),
                slot: slot.clone(),
                every,
                make: Arc::clone(make),
                report: Arc::clone(report),
                lead: random_below(MAX_LEAD_SECONDS),
                written: Vec::new(),
            };
            tasks.spawn(writer.run(commands.subscribe()));
        }
        Self { commands, tasks }
    }

    /// Republishes after the content changed.
    pub fn update(&self) {
        self.commands.send_modify(|commands| commands.version += 1);
    }

    /// Overwrites the record with an empty one, within [`WITHDRAW_TIMEOUT`].
    pub async fn withdraw(mut self) {
        self.commands.send_modify(|commands| commands.withdraw = true);
        let all = async { while self.tasks.join_next().await.is_some() {} };
        let _ = timeout(WITHDRAW_TIMEOUT, all).await;
    }
}

impl fmt::Debug for Publication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publication").field("stores", &self.tasks.len()).finish_non_exhaustive()
    }
}

/// Task of one store.
struct Writer {
    store: Arc<dyn RecordStore>,
    slot: Slot,
    every: Duration,
    make: MakeContent,
    report: Report,
    /// Seconds by which this task runs ahead of the clock.
    lead: u64,
    /// Hours with a record, or with an attempt to write one.
    written: Vec<u64>,
}

impl Writer {
    async fn run(mut self, mut commands: watch::Receiver<WriterCommand>) {
        let mut withdrawn = commands.clone();
        select! {
            // A write in progress at this moment is overwritten like earlier writes.
            ordered = withdrawn.wait_for(|commands| commands.withdraw) => if ordered.is_err() {
                // The publication was dropped, and this task is about to end.
                return;
            },
            () = self.write_loop(&mut commands) => {}
        }
        self.withdraw().await;
    }

    async fn write_loop(&mut self, commands: &mut watch::Receiver<WriterCommand>) {
        let mut backoff = Backoff::of_a_place();
        loop {
            commands.borrow_and_update();
            let (now, begun) = (unix_seconds(), Instant::now());
            let hour = hour_of(now + self.lead);
            let written = self.write(hour, &(self.make)(now)).await;
            let failed = written.is_err();
            (self.report)(&self.store.place(), written);
            if failed {
                backoff.wait().await;
                continue;
            }
            backoff.succeeded(Instant::now());
            self.wait(now, hour, commands).await;
            sleep_until(begun + CHANGE_INTERVAL).await;
        }
    }

    async fn write(&mut self, hour: u64, content: &Content) -> Result<(), PlaceError> {
        if !self.written.contains(&hour) {
            self.written.push(hour);
            if self.written.len() > MAX_WRITTEN_HOURS {
                self.written.remove(0);
            }
        }
        let record = self.slot.seal(hour, content)?;
        self.store.put(self.slot.seed(hour), record).await
    }

    /// Waits until the content changes, a republication is due, or the hour changes.
    async fn wait(&self, written: u64, hour: u64, commands: &mut watch::Receiver<WriterCommand>) {
        let due = written + self.every.as_secs();
        loop {
            let now = unix_seconds();
            if now >= due || now < written || hour_of(now + self.lead) != hour {
                return;
            }
            let pause = Duration::from_secs(due - now).min(LONGEST_SLEEP);
            select! {
                () = sleep_or_wake(pause) => {}
                changed = commands.changed() => if changed.is_ok() { return },
            }
        }
    }

    async fn withdraw(&mut self) {
        // The newest hour comes first, because peers search for its record, and time may run out
        // before the other hours.
        for hour in std::mem::take(&mut self.written).into_iter().rev() {
            if let Err(why) = self.write(hour, &Content::withdrawn(unix_seconds())).await {
                debug!(place = self.store.place().name(), %why, "a record was not withdrawn");
            }
        }
    }
}

/// Returns a random number below `bound`. Without randomness it returns 0, which is acceptable.
fn random_below(bound: u64) -> u64 {
    getrandom::u64().unwrap_or_default() % bound
}
