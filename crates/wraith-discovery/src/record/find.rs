//! Looking for what a slot says: in the hour that it is, and around a full hour also in the other one that its writer may be in.

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

/// Seconds between two looks for one record. Nodes of the DHT ban who asks them several times a second.
const PAUSES: [u64; 6] = [1, 1, 2, 3, 5, 10];

/// How long it is known where a record would be: nodes come and go.
const GLANCES_FOR: Duration = Duration::from_secs(60);

/// Pauses between looks for what may not be there yet.
#[derive(Debug, Default)]
pub struct Pace(usize);

impl Pace {
    pub async fn wait(&mut self) {
        let seconds = PAUSES[self.0.min(PAUSES.len() - 1)];
        self.0 += 1;
        sleep(Duration::from_secs(seconds)).await;
    }
}

/// Looks at one store for what a slot says, as often as wanted; each thing it says is told once.
#[derive(Debug)]
pub struct RecordFinder {
    store: Arc<dyn RecordStore>,
    slot: Slot,
    /// The only hour to look in.
    only: Option<u64>,
    /// When the newest that was told was written, and its sequence number.
    newest: Option<(u64, i64)>,
    /// When and in which hours everybody was asked, for [`Self::glance`].
    looked: Option<(Instant, Vec<u64>)>,
}

impl RecordFinder {
    pub fn new(store: Arc<dyn RecordStore>, slot: Slot) -> Self {
        Self { store, slot, only: None, newest: None, looked: None }
    }

    /// The same for a slot that is of one hour itself.
    pub fn only_in(mut self, hour: u64) -> Self {
        self.only = Some(hour);
        self
    }

    /// Looks once and tells what is fresh and newer than what was told before, until `tell` breaks off.
    ///
    /// # Errors
    /// Nobody could be asked.
    pub async fn look(
        &mut self,
        tell: impl FnMut(Content) -> ControlFlow<()>,
    ) -> Result<(), PlaceError> {
        self.look_with(|store, key| store.get(key), tell).await
    }

    /// The same with few questions, most of the time: each record is looked for with all of them first, and again after
    /// [`GLANCES_FOR`].
    ///
    /// # Errors
    /// As of [`Self::look`]; then all are asked next time.
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

/// What one store knows of where somebody can be reached.
pub type ReachFound = (Place, Result<Reach, PlaceError>);

/// Tells where the writer of `slot` can be reached according to this store, again whenever that changes, for ever.
pub async fn search(store: Arc<dyn RecordStore>, slot: Slot, tell: mpsc::Sender<ReachFound>) {
    let place = store.place();
    let mut finder = RecordFinder::new(store, slot);
    let (mut pace, mut last) = (Pace::default(), None);
    loop {
        let looked = finder
            .look(|content| {
                if content.kind == Kind::Here {
                    let reach = Ok(content.reach);
                    // Nobody is kept waiting in the middle of a lookup: who does not take what was found gets it at the next.
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
