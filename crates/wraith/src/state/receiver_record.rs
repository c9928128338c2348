//! Records of the processes on this machine that currently receive a transfer. Each record has the
//! target folder of its process.
//!
//! So a second receiver of the same transfer, such as one in a forgotten terminal, can name the
//! first. After a receiver was killed, the next one continues its transfer: it takes over the
//! instance number of the killed one (SPEC §10.2), by which the sender identifies a receiver.
//!
//! Invariant: a process holds the lock of its record for its whole life. An unlocked record belongs
//! to a dead process and is not reported. After a crash of the machine no record is needed, so
//! records are written in place and not flushed.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use data_encoding::BASE32_NOPAD;
use serde::{Deserialize, Serialize};
use wraith_discovery::Ticket;

use super::dir::StateDir;
use super::error::StateError;
use super::lock_file::lock;

const FOLDER: &str = "receiving";
/// Maximum number of receivers of one transfer that are examined; no user has so many terminals.
const OTHERS_MAX: usize = 64;
/// Records of processes that died this long ago are useless: their senders have given up.
const MAX_AGE: Duration = Duration::from_secs(24 * 3600);
/// Size limit, far above any record.
const MAX_BYTES: u64 = 64 << 10;
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct StoredRecord {
    version: u32,
    process: u32,
    folder: String,
    /// The transfer is complete. The record remains for waiting processes that have not read it
    /// yet.
    #[serde(default)]
    is_finished: bool,
    /// The sender may keep a place for this instance: it has accepted, or succeeds one that had.
    #[serde(default)]
    holds_place: bool,
}

/// Another process on this machine that receives the same transfer, or has just received it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherReceiver {
    /// The process ID.
    pub process: u32,
    /// The target folder, formatted for people.
    pub folder: String,
}

/// This process among the receivers of one transfer.
#[derive(Debug)]
pub(crate) struct ReceiverRecord {
    /// The folder of the records; `None` if nothing can be stored.
    folder: Option<PathBuf>,
    /// Common prefix of the records of this transfer.
    prefix: String,
    instance: u64,
    /// `None` before the record exists, or if nothing can be stored.
    lock: Mutex<Option<File>>,
    /// See [`StoredRecord::holds_place`].
    holds_place: AtomicBool,
}

impl ReceiverRecord {
    /// Creates a receiver for this ticket. Records that cannot be read or written are ignored.
    pub fn of(state: &StateDir, ticket: &Ticket) -> Self {
        let mut what = ticket.node_id().as_bytes().to_vec();
        what.extend_from_slice(ticket.capability().as_bytes());
        Self::among(state, &what)
    }

    /// Creates a receiver for a listener.
    pub fn listener(state: &StateDir) -> Self {
        Self::among(state, b"")
    }

    fn among(state: &StateDir, what: &[u8]) -> Self {
        let hash = wraith_crypto::kdf::derive("wraith/1 receiving", what);
        let prefix = BASE32_NOPAD.encode(&hash[..20]).to_ascii_lowercase();
        let instance = getrandom::u64().unwrap_or_else(|_| std::process::id().into());
        let state = state.with_subfolder(FOLDER).ok().flatten();
        let folder = state.map(|state| state.join(FOLDER));
        let (lock, holds_place) = (Mutex::default(), AtomicBool::new(false));
        let mut receiving = Self { folder, prefix, instance, lock, holds_place };
        receiving.forget_old();
        receiving.take_over_dead_process();
        receiving
    }

    /// Returns the number that identifies this receiver to the sender. `None` without a locked
    /// record: a successor could not take over the number then, and the sender would keep the place
    /// for a dead process.
    pub fn instance(&self) -> Option<u64> {
        self.lock_file().as_ref().map(|_| self.instance)
    }

    /// Publishes this receiver to other processes: its user has accepted.
    ///
    /// # Errors
    /// The record cannot be written. The transfer works all the same.
    pub fn record_accepted(&self, into: &str) -> Result<(), StateError> {
        self.holds_place.store(true, Relaxed);
        self.write(into, false)
    }

    /// Returns whether the sender may keep a place for this instance. Then a later run has to succeed
    /// it, so the record must stay.
    pub fn holds_place(&self) -> bool {
        self.holds_place.load(Relaxed)
    }

    /// Records that this process has not accepted and waits for another that may.
    ///
    /// # Errors
    /// The record cannot be written. A receiver that finishes before the next poll is then not
    /// reported.
    pub fn record_waiting(&self) -> Result<(), StateError> {
        self.write("", false)
    }

    /// Writes the record. An empty `into` means that this receiver has not accepted and is not
    /// reported.
    fn write(&self, into: &str, is_finished: bool) -> Result<(), StateError> {
        let Some(path) = self.path(self.instance) else { return Ok(()) };
        let process = std::process::id();
        let (folder, holds_place) = (into.to_owned(), self.holds_place());
        let record = StoredRecord { version: VERSION, process, folder, is_finished, holds_place };
        let text = serde_json::to_string(&record).expect("plain fields are JSON");
        let mut held = self.lock_file();
        let mut write = || -> io::Result<()> {
            if held.is_none() {
                *held = Some(create_locked(&path)?);
            }
            held.as_ref().map_or(Ok(()), |mut file| {
                file.set_len(0)?;
                file.rewind()?;
                file.write_all(text.as_bytes())
            })
        };
        write().map_err(|e| StateError::cannot_write(&path, &e))
    }

    /// Returns another process that receives the same transfer, or that finished while this one
    /// waited.
    pub fn other(&self) -> Option<OtherReceiver> {
        let found = self.others(|_, record| {
            let StoredRecord { process, folder, .. } = record?;
            (!folder.is_empty()).then_some(OtherReceiver { process, folder })
        });
        found.into_iter().next()
    }

    /// Ends this receiver for good, so that no other process takes it over. `into` is the folder of
    /// the complete transfer; `None` if it is not complete.
    pub fn end(&self, into: Option<&str>) {
        let is_published =
            into.is_some_and(|into| self.is_awaited() && self.write(into, true).is_ok());
        if let (Some(path), Some(_locked)) = (self.path(self.instance), self.lock_file().take())
            && !is_published
        {
            // A failure is harmless: the record expires.
            let _ = fs::remove_file(path);
        }
        // Every waiting process reads the records of finished ones; the last one removes them.
        if !self.is_awaited() {
            self.others(|path, record| {
                record.filter(|record| record.is_finished).map(|_| fs::remove_file(path).is_ok())
            });
        }
    }

    /// Returns whether another process waits for the result of this transfer.
    fn is_awaited(&self) -> bool {
        let waiting = self.others(|_, record| {
            record.filter(|record| record.folder.is_empty() && !record.is_finished)
        });
        !waiting.is_empty()
    }

    /// Applies `look` to the records of other receivers that are alive or have finished.
    fn others<T>(&self, look: impl Fn(&Path, Option<StoredRecord>) -> Option<T>) -> Vec<T> {
        let others = self.records().into_iter().filter(|(n, _)| *n != self.instance);
        let look = |(_, path): (u64, PathBuf)| {
            let file = File::open(&path).ok()?;
            let record = read(&file);
            // A shared lock: two concurrent readers do not disturb each other.
            let is_alive = matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
            let is_finished = record.as_ref().is_some_and(|record| record.is_finished);
            if is_alive || is_finished { look(&path, record) } else { None }
        };
        others.take(OTHERS_MAX).filter_map(look).collect()
    }

    /// Takes over the instance of a receiver that died, if there is one. One for which the sender may
    /// keep a place comes first. A finished receiver is not taken over.
    fn take_over_dead_process(&mut self) {
        let mut dead = None;
        for (instance, path) in self.records().into_iter().take(OTHERS_MAX) {
            let Ok(Some(locked)) = lock(&path) else { continue };
            let record = File::open(&path).ok().and_then(|file| read(&file));
            if record.as_ref().is_some_and(|record| record.is_finished) {
                continue;
            }
            let holds_place = record.is_some_and(|record| record.holds_place);
            if dead.is_none() || holds_place {
                dead = Some((instance, locked, holds_place));
            }
            if holds_place {
                break;
            }
        }
        let Some((instance, locked, holds_place)) = dead else { return };
        // The record still names the folder of the dead receiver.
        let _ = locked.set_len(0);
        self.instance = instance;
        self.holds_place = AtomicBool::new(holds_place);
        *self.lock_file() = Some(locked);
    }

    /// Returns the instances of this transfer, each with the path of its record.
    fn records(&self) -> Vec<(u64, PathBuf)> {
        let instances = self.entries().filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let (prefix, instance) = name.split_once('-')?;
            let instance = (prefix == self.prefix).then(|| u64::from_str_radix(instance, 16).ok());
            Some((instance??, entry.path()))
        });
        instances.collect()
    }

    fn entries(&self) -> impl Iterator<Item = fs::DirEntry> {
        let entries = self.folder.as_ref().and_then(|folder| fs::read_dir(folder).ok());
        entries.into_iter().flatten().flatten()
    }

    fn path(&self, instance: u64) -> Option<PathBuf> {
        let folder = self.folder.as_ref()?;
        Some(folder.join(format!("{}-{instance:016x}", self.prefix)))
    }

    /// Removes unlocked records older than [`MAX_AGE`]. A failure is retried the next time.
    fn forget_old(&self) {
        for entry in self.entries() {
            let age = entry.metadata().and_then(|m| m.modified()).map(|t| t.elapsed());
            let is_old = matches!(age, Ok(Ok(age)) if age > MAX_AGE);
            if is_old && let Ok(Some(_locked)) = lock(&entry.path()) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    fn lock_file(&self) -> MutexGuard<'_, Option<File>> {
        // Ignores poisoning: there is a lock or none, and a panic elsewhere leaves it consistent.
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads a record. Returns `None` for a damaged one and for a newer one, whose meaning is unknown.
fn read(file: &File) -> Option<StoredRecord> {
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok().filter(|record: &StoredRecord| record.version == VERSION)
}

/// Creates a record that is locked before it has its name. A record that exists unlocked for a
/// moment could be read as that of a dead process, or be taken over by a receiver that starts.
fn create_locked(path: &Path) -> io::Result<File> {
    let new = path.with_extension("new");
    let mut options = OpenOptions::new();
    let file = options.write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    if let Err(error) = file.lock().and_then(|()| fs::rename(&new, path)) {
        let _ = fs::remove_file(&new);
        return Err(error);
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::SystemTime;

    use wraith_crypto::SecretIdentity;
    use wraith_discovery::Capability;

    use super::*;

    fn ticket(n: u8) -> Ticket {
        let node_id = SecretIdentity::from_seed([1; 32]).node_id();
        Ticket::new(node_id, Capability::from_bytes([n; 16]), vec!["127.0.0.1:9".parse().unwrap()])
    }

    fn receiving(home: &Path, n: u8) -> ReceiverRecord {
        ReceiverRecord::of(&StateDir::in_folder(home), &ticket(n))
    }

    #[test]
    fn a_live_receiver_that_accepted_is_reported_to_others_of_the_transfer() {
        let home = tempfile::tempdir().unwrap();
        let (one, two) = (receiving(home.path(), 1), receiving(home.path(), 1));
        let elsewhere = receiving(home.path(), 2);
        assert_eq!(one.instance(), None, "it has no record");
        assert_ne!(one.instance, two.instance);
        assert_eq!(two.other(), None, "it has not accepted");
        one.record_accepted("/here").unwrap();
        let expected = OtherReceiver { process: std::process::id(), folder: "/here".into() };
        assert_eq!(two.other(), Some(expected));
        assert_eq!((one.other(), elsewhere.other()), (None, None));
        one.end(None);
        assert_eq!(two.other(), None);
        assert_eq!(fs::read_dir(home.path().join(FOLDER)).unwrap().count(), 0);
    }

    #[test]
    fn a_finished_receiver_is_reported_only_to_waiting_ones() {
        let home = tempfile::tempdir().unwrap();
        let (one, waits) = (receiving(home.path(), 1), receiving(home.path(), 1));
        let also_waits = receiving(home.path(), 1);
        waits.record_waiting().unwrap();
        also_waits.record_waiting().unwrap();
        assert_eq!(one.other(), None, "who waits receives nothing");
        one.record_accepted("/here").unwrap();
        one.end(Some("/here"));
        assert_eq!(waits.other().unwrap().folder, "/here");
        assert_eq!(also_waits.other().unwrap().folder, "/here");
        waits.end(None);
        assert_eq!(also_waits.other().unwrap().folder, "/here", "the other may not have read it");
        let new = receiving(home.path(), 1);
        assert_ne!(new.instance, one.instance, "a finished receiver is not taken over");
        also_waits.end(None);
        let alone = receiving(home.path(), 1);
        alone.record_accepted("/here").unwrap();
        alone.end(Some("/here"));
        assert_eq!(fs::read_dir(home.path().join(FOLDER)).unwrap().count(), 0);
    }

    #[test]
    fn a_dead_receiver_is_not_reported_and_its_instance_is_taken_over_once() {
        let home = tempfile::tempdir().unwrap();
        let dead = receiving(home.path(), 1);
        dead.record_accepted("/here").unwrap();
        let instance = dead.instance();
        // The kernel does the same when a process dies.
        drop(dead);
        let (heir, other) = (receiving(home.path(), 1), receiving(home.path(), 1));
        assert_eq!(heir.instance(), instance);
        assert_ne!(other.instance(), instance);
        assert_eq!(other.other(), None, "it has taken over, and has not accepted");
        heir.record_accepted("/here").unwrap();
        assert!(other.other().is_some());
    }

    #[test]
    fn a_dead_receiver_that_had_accepted_is_taken_over_before_one_that_waited() {
        for waits_first in [false, true] {
            let home = tempfile::tempdir().unwrap();
            let (waited, accepted) = (receiving(home.path(), 1), receiving(home.path(), 1));
            if waits_first {
                waited.record_waiting().unwrap();
            }
            accepted.record_accepted("/here").unwrap();
            waited.record_waiting().unwrap();
            let expected = accepted.instance();
            drop((waited, accepted));
            // A successor that dies before it accepts passes the place on.
            for _ in 0..2 {
                let heir = receiving(home.path(), 1);
                assert_eq!(heir.instance(), expected);
                assert!(heir.holds_place());
                heir.record_waiting().unwrap();
            }
        }
    }

    #[test]
    fn without_a_record_there_is_no_instance() {
        let home = tempfile::tempdir().unwrap();
        let one = receiving(home.path(), 1);
        // No record can be created in the place of a folder.
        fs::create_dir(one.path(one.instance).unwrap()).unwrap();
        assert!(one.record_waiting().is_err());
        assert_eq!(one.instance(), None);
        assert_eq!(fs::read_dir(home.path().join(FOLDER)).unwrap().count(), 1, "nothing is left");
    }

    #[test]
    fn a_record_is_written_while_others_read_and_start() {
        let home = tempfile::tempdir().unwrap();
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let reader = receiving(home.path(), 1);
                while !is_over.load(Relaxed) {
                    reader.other();
                    // It takes over a record that is not locked.
                    receiving(home.path(), 1);
                }
            });
            let waits = receiving(home.path(), 1);
            let missed = (0..300).filter(|_| {
                let one = receiving(home.path(), 1);
                one.record_accepted("/here").unwrap();
                let is_reported = waits.other().is_some();
                one.end(None);
                !is_reported
            });
            let missed = missed.count();
            is_over.store(true, Relaxed);
            assert_eq!(missed, 0);
        });
    }

    #[test]
    fn without_storage_there_is_no_instance_and_no_report() {
        for state in [StateDir::in_memory().unwrap(), StateDir::in_folder("/dev/null/home")] {
            let receiving = ReceiverRecord::of(&state, &ticket(1));
            receiving.record_accepted("/here").unwrap();
            assert_eq!((receiving.instance(), receiving.other()), (None, None));
            receiving.end(None);
        }
    }

    #[test]
    fn damaged_records_are_ignored_and_old_ones_removed() {
        let home = tempfile::tempdir().unwrap();
        let one = receiving(home.path(), 1);
        one.record_accepted("/here").unwrap();
        let path = one.path(one.instance).unwrap();
        let newer = r#"{"version":2,"process":1,"folder":"/here"}"#;
        for text in ["{", newer] {
            fs::write(&path, text).unwrap();
            assert_eq!(receiving(home.path(), 1).other(), None);
        }
        drop(one);
        let old = SystemTime::now() - MAX_AGE - Duration::from_secs(60);
        OpenOptions::new().write(true).open(path).unwrap().set_modified(old).unwrap();
        // A process that another test is starting holds the lock until its exec. A later scan
        // removes the record.
        let mut left = (0..100).map(|_| {
            std::thread::park_timeout(Duration::from_millis(5));
            receiving(home.path(), 2);
            fs::read_dir(home.path().join(FOLDER)).unwrap().count()
        });
        assert!(left.any(|left| left == 0));
    }
}
