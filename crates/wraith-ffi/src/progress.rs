//! How far a transfer is: figures that whoever draws reads at a pace of its own.

use std::sync::{Mutex, PoisonError};

use wraith::ProgressReader;

/// How far a transfer is at one moment.
#[derive(Clone, Debug, uniffi::Record)]
pub struct Progress {
    /// Bytes settled: moved, there already, or of files that failed.
    pub bytes: u64,
    /// Bytes of all files in the offer.
    pub bytes_total: u64,
    /// Files settled.
    pub files: u64,
    /// Files in the offer.
    pub files_total: u64,
    /// Bytes that moved in a second, over the last five seconds.
    pub bytes_per_second: u64,
    /// Seconds until the end at this rate; none while nothing moves.
    pub eta_seconds: Option<u64>,
    /// The file that is being moved, escaped for a terminal.
    pub current_file: String,
    /// What leads to the other side: loopback, lan, direct, relay or custom; none while nobody is connected.
    pub path: Option<String>,
    /// Nobody is connected, so nothing can move.
    pub is_waiting: bool,
}

impl From<wraith::Progress> for Progress {
    fn from(progress: wraith::Progress) -> Self {
        Self {
            eta_seconds: progress.eta_seconds(),
            bytes: progress.bytes,
            bytes_total: progress.bytes_total,
            files: progress.files,
            files_total: progress.files_total,
            bytes_per_second: progress.bytes_per_second,
            current_file: progress.current_file,
            path: progress.path.map(|path| path.name().to_owned()),
            is_waiting: progress.is_waiting,
        }
    }
}

/// A reader that several threads may read, one after the other.
#[derive(Debug)]
pub(crate) struct Reader(Mutex<ProgressReader>);

impl Reader {
    pub fn new(reader: ProgressReader) -> Self {
        Self(Mutex::new(reader))
    }

    /// None before anything was offered.
    pub fn read(&self) -> Option<Progress> {
        // A reader is figures; a panic elsewhere leaves nothing half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).read().map(Progress::from)
    }
}
