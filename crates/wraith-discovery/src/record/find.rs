//! Searches for the record of a slot (a secret of both sides, see [`super::slot`]) for the current
//! hour. Around a full hour it also searches the record of the adjacent hour, because the writer's
//! clock may differ.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use tracing::debug;

use super::content::{Content, Kind};
use super::hour::hours_to_search;
use super::slot::Slot;
use crate::place::{PlaceError, PlaceName};
use crate::reach::Reach;
use crate::store::{RecordKey, RecordLookup, RecordStore};
use crate::wall_clock::unix_seconds;

/// Seconds between two searches for one record. DHT nodes ban clients that ask several times a
/// second.
const LOOKUP_PAUSES_SECONDS: [u64; 6] = [1, 1, 2, 3, 5, 10];

/// Time for which the nodes of a record stay known; nodes join and leave.
const KNOWN_NODES_LIFE: Duration = Duration::from_secs(60);

/// Pauses between searches for a record that may not exist yet.
#[derive(Debug, Default)]
pub struct LookupBackoff(usize);

impl LookupBackoff {
    pub async fn wait(&mut self) {
        let seconds = LOOKUP_PAUSES_SECONDS[self.0.min(LOOKUP_PAUSES_SECONDS.len() - 1)];
        self.0 += 1;
        sleep(Duration::from_secs(seconds)).await;
    }
}

/// Repeated search for a slot's record at one store. Each content is reported once.
#[derive(Debug)]
pub struct RecordFinder {
    store: Arc<dyn RecordStore>,
    slot: Slot,
    /// The only hour to search.
    only: Option<u64>,
    /// Time and sequence number of the newest reported record.
    newest: Option<(u64, i64)>,
    /// Time and hours of the last full search, for [`Self::lookup_known_nodes`].
    last_full_lookup: Option<(Instant, Vec<u64>)>,
}

impl RecordFinder {
    pub fn new(store: Arc<dyn RecordStore>, slot: Slot) -> Self {
        Self { store, slot, only: None, newest: None, last_full_lookup: None }
    }

    /// Restricts the search to one hour, for a slot that belongs to it.
    pub fn in_hour(mut self, hour: u64) -> Self {
        self.only = Some(hour);
        self
    }

    /// Searches once. Reports fresh contents that are newer than the last reported one, until
    /// `report` breaks.
    ///
    /// # Errors
    /// No node could be asked.
    pub async fn lookup(
        &mut self,
        report: impl FnMut(Content) -> ControlFlow<()>,
    ) -> Result<(), PlaceError> {
        self.lookup_with(|store, key| store.get(key), report).await
    }

    /// Same as [`Self::lookup`] with few queries: a full search comes first and is repeated after
    /// [`KNOWN_NODES_LIFE`].
    ///
    /// # Errors
    /// Same as [`Self::lookup`]; after this call, the next search is a full one.
    pub async fn lookup_known_nodes(
        &mut self,
        report: impl FnMut(Content) -> ControlFlow<()>,
    ) -> Result<(), PlaceError> {
        let hours = self.hours();
        let is_glance = self.last_full_lookup.as_ref().is_some_and(|(at, of)| {
            at.elapsed() < KNOWN_NODES_LIFE && hours.iter().all(|hour| of.contains(hour))
        });
        let result = match is_glance {
            true => self.lookup_with(|store, key| store.get_from_known_nodes(key), report).await,
            false => self.lookup(report).await,
        };
        if result.is_err() {
            self.last_full_lookup = None;
        } else if !is_glance {
            self.last_full_lookup = Some((Instant::now(), hours));
        }
        result
    }

    fn hours(&self) -> Vec<u64> {
        self.only.map_or_else(|| hours_to_search(unix_seconds()), |hour| vec![hour])
    }

    async fn lookup_with(
        &mut self,
        get: impl Fn(&dyn RecordStore, RecordKey) -> Box<dyn RecordLookup>,
        mut report: impl FnMut(Content) -> ControlFlow<()>,
    ) -> Result<(), PlaceError> {
        for hour in self.hours() {
            let mut lookup = get(&*self.store, self.slot.seed(hour).key());
            while let Some(record) = lookup.next().await? {
                let Some(content) = self.slot.open(hour, &record.value) else {
                    debug!(place = self.store.place().name(), "a record does not open");
                    continue;
                };
                let written = Some((content.written, record.seq));
                if !content.is_fresh(unix_seconds()) || written <= self.newest {
                    continue;
                }
                self.newest = written;
                if report(content).is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// A store's result: the peer's addresses or an error.
pub type ReachReport = (PlaceName, Result<Reach, PlaceError>);

/// Reports the addresses of the writer of `slot` at this store, and all their changes, forever.
pub async fn report_reach(
    store: Arc<dyn RecordStore>,
    slot: Slot,
    report: mpsc::Sender<ReachReport>,
) {
    let place = store.place();
    let mut finder = RecordFinder::new(store, slot);
    let (mut backoff, mut last) = (LookupBackoff::default(), None);
    loop {
        let result = finder
            .lookup(|content| {
                if content.kind == Kind::Reach {
                    let reach = Ok(content.reach);
                    // A lookup does not wait for the receiver: a result that is not taken is
                    // reported by the next search.
                    if last.as_ref() != Some(&reach)
                        && report.try_send((place.clone(), reach.clone())).is_ok()
                    {
                        last = Some(reach);
                    }
                }
                ControlFlow::Continue(())
            })
            .await;
        if let Err(why) = result
            && last != Some(Err(why.clone()))
        {
            last = Some(Err(why.clone()));
            // Without a receiver this task is about to end.
            let _ = report.send((place.clone(), Err(why))).await;
        }
        backoff.wait().await;
    }
}
