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
use super::hour::{hours_to_look_in, unix_seconds};
use super::slot::Slot;
use crate::place::{Place, PlaceError};
use crate::reach::Reach;
use crate::store::{RecordKey, RecordLookup, RecordStore};

/// Seconds between two searches for one record. DHT nodes ban clients that ask several times a
/// second.
const PAUSES: [u64; 6] = [1, 1, 2, 3, 5, 10];

/// Time for which the nodes of a record stay known; nodes join and leave.
const GLANCES_FOR: Duration = Duration::from_secs(60);

/// Pauses between searches for a record that may not exist yet.
#[derive(Debug, Default)]
pub struct Pace(usize);

impl Pace {
    pub async fn wait(&mut self) {
        let seconds = PAUSES[self.0.min(PAUSES.len() - 1)];
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
    /// Time and hours of the last full search, for [`Self::glance`].
    looked: Option<(Instant, Vec<u64>)>,
}

impl RecordFinder {
    pub fn new(store: Arc<dyn RecordStore>, slot: Slot) -> Self {
        Self { store, slot, only: None, newest: None, looked: None }
    }

    /// Restricts the search to one hour, for a slot that belongs to it.
    pub fn only_in(mut self, hour: u64) -> Self {
        self.only = Some(hour);
        self
    }

    /// Searches once. Reports fresh contents that are newer than the last reported one, until
    /// `tell` breaks.
    ///
    /// # Errors
    /// No node could be asked.
    pub async fn look(
        &mut self,
        tell: impl FnMut(Content) -> ControlFlow<()>,
    ) -> Result<(), PlaceError> {
        self.look_with(|store, key| store.get(key), tell).await
    }

    /// Same as [`Self::look`] with few queries: a full search comes first and is repeated after
    /// [`GLANCES_FOR`].
    ///
    /// # Errors
    /// Same as [`Self::look`]; after this call, the next search is a full one.
    pub async fn glance(
        &mut self,
        tell: impl FnMut(Content) -> ControlFlow<()>,
    ) -> Result<(), PlaceError> {
        let hours = self.hours();
        let is_glance = self.looked.as_ref().is_some_and(|(at, of)| {
            at.elapsed() < GLANCES_FOR && hours.iter().all(|hour| of.contains(hour))
        });
        let result = match is_glance {
            true => self.look_with(|store, key| store.glance(key), tell).await,
            false => self.look(tell).await,
        };
        if result.is_err() {
            self.looked = None;
        } else if !is_glance {
            self.looked = Some((Instant::now(), hours));
        }
        result
    }

    fn hours(&self) -> Vec<u64> {
        self.only.map_or_else(|| hours_to_look_in(unix_seconds()), |hour| vec![hour])
    }

    async fn look_with(
        &mut self,
        get: impl Fn(&dyn RecordStore, RecordKey) -> Box<dyn RecordLookup>,
        mut tell: impl FnMut(Content) -> ControlFlow<()>,
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
                if tell(content).is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// A store's result: the peer's addresses or an error.
pub type ReachFound = (Place, Result<Reach, PlaceError>);

/// Reports the addresses of the writer of `slot` at this store, and all their changes, forever.
pub async fn search(store: Arc<dyn RecordStore>, slot: Slot, tell: mpsc::Sender<ReachFound>) {
    let place = store.place();
    let mut finder = RecordFinder::new(store, slot);
    let (mut pace, mut last) = (Pace::default(), None);
    loop {
        let looked = finder
            .look(|content| {
                if content.kind == Kind::Here {
                    let reach = Ok(content.reach);
                    // A lookup does not wait for the receiver: a result that is not taken is
                    // reported by the next search.
                    if last.as_ref() != Some(&reach)
                        && tell.try_send((place.clone(), reach.clone())).is_ok()
                    {
                        last = Some(reach);
                    }
                }
                ControlFlow::Continue(())
            })
            .await;
        if let Err(why) = looked
            && last != Some(Err(why.clone()))
        {
            last = Some(Err(why.clone()));
            // Without a receiver this task is about to end.
            let _ = tell.send((place.clone(), Err(why))).await;
        }
        pace.wait().await;
    }
}
