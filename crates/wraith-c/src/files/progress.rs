//! Progress figures of a transfer.

use std::sync::{Mutex, MutexGuard, PoisonError};

use wraith::ProgressReader;

use crate::border::c_struct;

c_struct! {
    /// Progress of a transfer, or its final figures.
    #[derive(Default, PartialEq, Eq)]
    pub struct wraith_progress_t {
        /// Bytes settled: transferred, already present, or of failed files.
        pub bytes: u64,
        /// Bytes of all files in the offer.
        pub bytes_total: u64,
        /// Number of settled files.
        pub files: u64,
        /// Number of files in the offer.
        pub files_total: u64,
        /// Bytes transferred per second, averaged over the last five seconds.
        pub bytes_per_second: u64,
        /// Number of receivers that confirmed everything; set when an offer has ended.
        pub receivers: u64,
    }
}

/// The figures of a transfer: none yet, those of its reader, or the final ones.
#[derive(Default)]
pub(crate) struct Figures(Mutex<FiguresState>);

#[derive(Default)]
struct FiguresState {
    reader: Option<ProgressReader>,
    last: wraith_progress_t,
}

impl Figures {
    /// Sets the source of the figures.
    pub fn set_reader(&self, reader: ProgressReader) {
        self.lock().reader = Some(reader);
    }

    /// Returns true between the start of the transfer and its end.
    pub fn are_moving(&self) -> bool {
        self.lock().reader.is_some()
    }

    /// Returns the current figures.
    pub fn read(&self) -> wraith_progress_t {
        self.lock().read()
    }

    /// Fixes the final figures.
    pub fn end(&self, receivers: u64) {
        let mut state = self.lock();
        state.last = wraith_progress_t { bytes_per_second: 0, receivers, ..state.read() };
        state.reader = None;
    }

    fn lock(&self) -> MutexGuard<'_, FiguresState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FiguresState {
    fn read(&mut self) -> wraith_progress_t {
        if let Some(now) = self.reader.as_mut().and_then(ProgressReader::read) {
            self.last = wraith_progress_t {
                bytes: now.bytes,
                bytes_total: now.bytes_total,
                files: now.files,
                files_total: now.files_total,
                bytes_per_second: now.bytes_per_second,
                receivers: 0,
            };
        }
        self.last
    }
}
