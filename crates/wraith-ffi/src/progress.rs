//! Progress of a transfer. The application polls it as often as it draws.

use std::sync::{Mutex, PoisonError};

use wraith::ProgressReader;

/// Progress of a transfer at one moment.
#[derive(Clone, Debug, uniffi::Record)]
pub struct Progress {
    /// Bytes finished: transferred, already present, or of failed files.
    pub bytes: u64,
    /// Total size of the files in the offer, in bytes.
    pub bytes_total: u64,
    /// Number of finished files.
    pub files: u64,
    /// Number of files in the offer.
    pub files_total: u64,
    /// Rate in bytes per second, averaged over the last five seconds.
    pub bytes_per_second: u64,
    /// Estimated seconds until the end at this rate, or null while nothing is transferred.
    pub eta_seconds: Option<u64>,
    /// Current file, escaped for a terminal.
    pub current_file: String,
    /// Kind of the network path: loopback, lan, direct, relay or custom; null without a connection.
    pub path: Option<String>,
    /// Whether the transfer waits for a connection.
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

/// A progress reader shared by threads.
#[derive(Debug)]
pub(crate) struct SharedProgressReader(Mutex<ProgressReader>);

impl SharedProgressReader {
    pub fn new(reader: ProgressReader) -> Self {
        Self(Mutex::new(reader))
    }

    /// Returns the progress, or `None` before an offer has arrived.
    pub fn read(&self) -> Option<Progress> {
        // Ignores poisoning: a reader holds figures only, so a panic elsewhere leaves no partial
        // state.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).read().map(Progress::from)
    }
}
