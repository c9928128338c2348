//! Keeping a record up to date at every store for as long as somebody serves, and withdrawing it in the end.
//!
//! A record is written anew when it changes, before it expires, and for the next hour up to five minutes ahead: at a moment of
//! its own, because records that all appear at the full hour could be told to be of one program, and never late, so that whoever
//! looks finds it whatever the minute.
//!
//! Invariant: a key is written by one task only, so no two puts of it race.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::select;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tracing::debug;

use super::content::Content;
use super::hour::{hour_of, unix_seconds};
use super::slot::Slot;
use crate::backoff::Backoff;
use crate::place::{Place, PlaceError};
use crate::store::RecordStore;

/// Seconds that the record of the next hour is written ahead at most.
const MAX_LEAD_SECONDS: u64 = 300;
/// The clock is looked at again after this time at the latest: it may be set, and it goes on while the machine sleeps.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);
/// Between two writings of what changes all the time: each costs some thirty datagrams.
const CHANGE_INTERVAL: Duration = Duration::from_secs(10);
/// Hours whose records may still be found: this one, and the one before or the next.
const MAX_WRITTEN_HOURS: usize = 2;
/// How long withdrawing may take. A user who has pressed Ctrl-C waits for it.
pub const WITHDRAW_TIMEOUT: Duration = Duration::from_secs(3);

/// Makes what the record says now, in unix seconds.
pub type MakeContent = Arc<dyn Fn(u64) -> Content + Send + Sync>;
/// Told what became of each attempt to write.
pub type Report = Arc<dyn Fn(&Place, Result<(), PlaceError>) + Send + Sync>;

/// A record that is kept up to date, until this is dropped. Then it stays until it expires; [`Publication::withdraw`] overwrites it.
pub struct Publication {
    orders: watch::Sender<Orders>,
    tasks: JoinSet<()>,
}

#[derive(Clone, Copy, Default)]
struct Orders {
    /// Counts changes of what the record says.
    version: u64,
    withdraw: bool,
}

impl Publication {
    /// Keeps what `make` makes published in `slot` at all `stores`, written anew after `every` at the latest. Must be called in a
    /// tokio runtime.
    pub fn start(
        stores: &[Arc<dyn RecordStore>],
        slot: &Slot,
        every: Duration,
        make: &MakeContent,
        report: &Report,
    ) -> Self {
        let orders = watch::Sender::default();
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
            tasks.spawn(writer.run(orders.subscribe()));
        }
        Self { orders, tasks }
    }

    /// What the record says has changed.
    pub fn update(&self) {
        self.orders.send_modify(|orders| orders.version += 1);
    }

    /// Overwrites the record with an empty one, within [`WITHDRAW_TIMEOUT`].
    pub async fn withdraw(mut self) {
        self.orders.send_modify(|orders| orders.withdraw = true);
        let all = async { while self.tasks.join_next().await.is_some() {} };
        let _ = timeout(WITHDRAW_TIMEOUT, all).await;
    }
}

impl fmt::Debug for Publication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publication").field("stores", &self.tasks.len()).finish_non_exhaustive()
    }
}

/// One store's task.
struct Writer {
    store: Arc<dyn RecordStore>,
    slot: Slot,
    every: Duration,
    make: MakeContent,
    report: Report,
    /// Seconds by which this one is ahead of the clock.
    lead: u64,
    /// Hours in which something was written, or perhaps was.
    written: Vec<u64>,
}

impl Writer {
    async fn run(mut self, mut orders: watch::Receiver<Orders>) {
        let mut withdrawn = orders.clone();
        select! {
            // What is being written when this comes is overwritten like the rest.
            ordered = withdrawn.wait_for(|orders| orders.withdraw) => if ordered.is_err() {
                // Nobody holds the publication any more, and this task is about to end.
                return;
            },
            () = self.write_for_ever(&mut orders) => {}
        }
        self.withdraw().await;
    }

    async fn write_for_ever(&mut self, orders: &mut watch::Receiver<Orders>) {
        let mut backoff = Backoff::of_a_place();
        loop {
            orders.borrow_and_update();
            let (now, begun) = (unix_seconds(), Instant::now());
            let hour = hour_of(now + self.lead);
            let written = self.write(hour, &(self.make)(now)).await;
            let failed = written.is_err();
            (self.report)(&self.store.place(), written);
            if failed {
                backoff.wait().await;
                continue;
            }
            backoff.reset();
            self.wait(now, hour, orders).await;
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

    /// Until the record has changed, is due, or belongs to another hour.
    async fn wait(&self, written: u64, hour: u64, orders: &mut watch::Receiver<Orders>) {
        let due = written + self.every.as_secs();
        loop {
            let now = unix_seconds();
            if now >= due || now < written || hour_of(now + self.lead) != hour {
                return;
            }
            let pause = Duration::from_secs(due - now).min(LONGEST_SLEEP);
            select! {
                () = sleep(pause) => {}
                changed = orders.changed() => if changed.is_ok() { return },
            }
        }
    }

    async fn withdraw(&mut self) {
        // The newest first: that is the one that is looked for, and there may be no time for the others.
        for hour in std::mem::take(&mut self.written).into_iter().rev() {
            if let Err(why) = self.write(hour, &Content::withdrawn(unix_seconds())).await {
                debug!(place = self.store.place().name(), %why, "a record was not withdrawn");
            }
        }
    }
}

/// A random number below `bound`; 0 without randomness, which is as good as any other.
fn random_below(bound: u64) -> u64 {
    getrandom::u64().unwrap_or_default() % bound
}
