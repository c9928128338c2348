//! What a `wraith send` must remember so that the same command, run again after a crash, offers the same things under
//! the same ticket: the capability secret and the port; and who has begun to fetch them, so that they find the sender
//! again where its address is another one by then.
//!
//! Invariant: at most one process uses a record at a time (it holds a lock on the file), so two sends of the same
//! paths never share a secret. A record is removed once the receiver has everything.

use std::cell::RefCell;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use data_encoding::BASE32_NOPAD;
use serde::{Deserialize, Serialize};
use wraith_crypto::NodeId;
use wraith_discovery::Capability;

use crate::failure::Failure;
use crate::home::Home;
use crate::regain::MAX_RECEIVERS;

const FOLDER: &str = "sends";
/// A ticket nobody used for a week is forgotten: long enough for an interrupted transfer over a holiday, short enough
/// that a secret does not stay valid for ever.
const MAX_AGE: Duration = Duration::from_secs(7 * 24 * 3600);
/// Far more than a record takes.
const MAX_RECORD_BYTES: u64 = 4096;
/// A tenth of a second in all: an ending process needs less, and a second send of the same paths hardly notices.
const LOCK_TRIES: u32 = 20;
const LOCK_PAUSE: Duration = Duration::from_millis(5);
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Record {
    version: u32,
    capability: String,
    port: u16,
    /// NodeIds of those who have begun to fetch, the last first.
    #[serde(default)]
    receivers: Vec<String>,
}

/// The remembered, or new, secret and port of one send. Holds the lock on its record until dropped.
#[derive(Debug)]
pub struct PendingSend {
    capability: Capability,
    port: Option<u16>,
    receivers: RefCell<Vec<NodeId>>,
    /// None when another process sends the same paths right now: then nothing is remembered.
    file: Option<(PathBuf, File)>,
}

impl PendingSend {
    /// What is remembered of an unfinished send of these paths (canonical, in this order), or a new secret.
    ///
    /// # Errors
    /// The record cannot be read or written, or the system has no randomness.
    pub fn open(home: &Home, canonical_paths: &[PathBuf]) -> Result<Self, Failure> {
        let folder = home.subfolder(FOLDER)?;
        forget_old(&folder);
        let path = folder.join(record_name(canonical_paths));
        let failed = |e: io::Error| Failure::disk(format!("cannot use {}", path.display()), &e);
        let Some(mut file) = lock_patiently(&path).map_err(failed)? else {
            return Self::unremembered();
        };
        let mut text = String::new();
        (&mut file).take(MAX_RECORD_BYTES).read_to_string(&mut text).unwrap_or_default();
        let file = Some((path, file));
        match parse(&text) {
            Some((capability, port, receivers)) => {
                let receivers = RefCell::new(receivers);
                Ok(Self { capability, port: Some(port), receivers, file })
            }
            None => Ok(Self { file, ..Self::unremembered()? }),
        }
    }

    /// A new secret that nothing is remembered of.
    pub fn unremembered() -> Result<Self, Failure> {
        let receivers = RefCell::default();
        Ok(Self { capability: new_capability()?, port: None, receivers, file: None })
    }

    pub const fn capability(&self) -> &Capability {
        &self.capability
    }

    /// The port of last time.
    pub const fn port(&self) -> Option<u16> {
        self.port
    }

    /// Remembers the secret with the port that is in use now. Call before the ticket is shown.
    pub fn remember(&mut self, port: u16) -> Result<(), Failure> {
        if self.port == Some(port) {
            return Ok(());
        }
        self.write(port)?;
        self.port = Some(port);
        Ok(())
    }

    /// Who has begun to fetch, the last first.
    pub fn receivers(&self) -> Vec<NodeId> {
        self.receivers.borrow().clone()
    }

    /// Remembers that this receiver has begun to fetch.
    pub fn remember_receiver(&self, receiver: NodeId) -> Result<(), Failure> {
        let mut receivers = self.receivers.borrow_mut();
        if receivers.first() == Some(&receiver) {
            return Ok(());
        }
        receivers.retain(|known| *known != receiver);
        receivers.insert(0, receiver);
        receivers.truncate(MAX_RECEIVERS);
        drop(receivers);
        self.port.map_or(Ok(()), |port| self.write(port))
    }

    /// This receiver has everything, and need not find us again.
    pub fn forget_receiver(&self, receiver: NodeId) -> Result<(), Failure> {
        self.receivers.borrow_mut().retain(|known| *known != receiver);
        self.port.map_or(Ok(()), |port| self.write(port))
    }

    fn write(&self, port: u16) -> Result<(), Failure> {
        let Some((path, file)) = &self.file else { return Ok(()) };
        let capability = BASE32_NOPAD.encode(self.capability.as_bytes());
        let receivers = self.receivers.borrow().iter().map(ToString::to_string).collect();
        let record = Record { version: VERSION, capability, port, receivers };
        let mut text = serde_json::to_vec(&record).expect("a record of plain fields is JSON");
        // Over what is there, and never shorter (blanks at the end are none): a program that is killed here, or a disk that is
        // full, must not take the secret along.
        let mut write = |mut file: &File| {
            let len = file.metadata()?.len().min(MAX_RECORD_BYTES) as usize;
            text.resize(text.len().max(len), b' ');
            file.rewind()?;
            file.write_all(&text)?;
            file.set_len(text.len() as u64)
        };
        write(file).map_err(|e| Failure::disk(format!("cannot write {}", path.display()), &e))
    }

    /// The receiver has everything: the ticket ends here.
    pub fn forget(self) {
        if let Some((path, _locked)) = &self.file {
            // Nothing is lost when this fails: the record expires.
            let _ = fs::remove_file(path);
        }
    }
}

fn new_capability() -> Result<Capability, Failure> {
    let mut secret = [0; Capability::LEN];
    getrandom::fill(&mut secret)
        .map_err(|e| Failure::disk("no randomness from the system", &io::Error::other(e)))?;
    Ok(Capability::from_bytes(secret))
}

fn parse(text: &str) -> Option<(Capability, u16, Vec<NodeId>)> {
    let record: Record = serde_json::from_str(text).ok()?;
    let secret = BASE32_NOPAD.decode(record.capability.as_bytes()).ok()?;
    let capability = Capability::from_bytes(secret.try_into().ok()?);
    let receivers = record.receivers.iter().take(MAX_RECEIVERS);
    let receivers = receivers.filter_map(|text| text.parse().ok()).collect();
    (record.version == VERSION && record.port != 0).then_some((capability, record.port, receivers))
}

/// Named by a hash, so that the folder tells nobody what was sent, and any path fits.
fn record_name(canonical_paths: &[PathBuf]) -> String {
    let mut material = Vec::new();
    for path in canonical_paths {
        let bytes = path.as_os_str().as_bytes();
        material.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
        material.extend_from_slice(bytes);
    }
    let hash = wraith_crypto::kdf::derive("wraith/1 pending send", &material);
    BASE32_NOPAD.encode(&hash[..20]).to_ascii_lowercase()
}

/// As [`lock`], but a process that was just killed gets a moment to let go.
fn lock_patiently(path: &Path) -> io::Result<Option<File>> {
    for _ in 0..LOCK_TRIES {
        if let Some(file) = lock(path)? {
            return Ok(Some(file));
        }
        std::thread::sleep(LOCK_PAUSE);
    }
    lock(path)
}

/// Opens and locks the record; None when another process has the lock.
fn lock(path: &Path) -> io::Result<Option<File>> {
    loop {
        let mut options = OpenOptions::new();
        let file =
            options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Ok(None),
            Err(fs::TryLockError::Error(e)) => return Err(e),
        }
        // Its last owner may have removed the file between our open and our lock; then it is not the record any more.
        match fs::metadata(path) {
            Ok(now) if now.ino() == file.metadata()?.ino() => return Ok(Some(file)),
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(e),
        }
    }
}

/// Removes records past [`MAX_AGE`] that nobody uses. What fails here is tried again at the next send.
fn forget_old(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let age = entry.metadata().and_then(|m| m.modified()).map(|t| t.elapsed());
        if !matches!(age, Ok(Ok(age)) if age > MAX_AGE) {
            continue;
        }
        if let Ok(Some(_locked)) = lock(&entry.path()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    fn home() -> (tempfile::TempDir, Home) {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path().to_owned()).unwrap();
        (folder, home)
    }

    fn paths(names: &[&str]) -> Vec<PathBuf> {
        names.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn the_same_paths_get_the_same_secret_and_port_again() {
        let (_folder, home) = home();
        let mut first = PendingSend::open(&home, &paths(&["/a", "/b"])).unwrap();
        first.remember(4433).unwrap();
        let secret = first.capability().clone();
        drop(first);
        let again = PendingSend::open(&home, &paths(&["/a", "/b"])).unwrap();
        assert_eq!((again.capability(), again.port()), (&secret, Some(4433)));
        let other = PendingSend::open(&home, &paths(&["/a/b"])).unwrap();
        assert_ne!(other.capability(), &secret);
    }

    #[test]
    fn receivers_come_and_go_without_the_secret_ever_being_off_the_disk() {
        let (folder, home) = home();
        let mut first = PendingSend::open(&home, &paths(&["/a"])).unwrap();
        first.remember(4433).unwrap();
        let path = folder.path().join(FOLDER).join(record_name(&paths(&["/a"])));
        let len = || fs::metadata(&path).unwrap().len();
        let node = |n| wraith_crypto::SecretIdentity::from_seed([n; 32]).node_id();
        let mut before = len();
        for n in 0..2 * MAX_RECEIVERS as u8 {
            first.remember_receiver(node(n)).unwrap();
            assert!(len() >= before && len() <= MAX_RECORD_BYTES);
            before = len();
        }
        (0..MAX_RECEIVERS as u8 + 14).for_each(|n| first.forget_receiver(node(n)).unwrap());
        assert_eq!(len(), before, "what was there is written over, never cut off first");
        let secret = first.capability().clone();
        drop(first);
        let again = PendingSend::open(&home, &paths(&["/a"])).unwrap();
        assert_eq!((again.capability(), again.port()), (&secret, Some(4433)));
        assert_eq!(again.receivers(), [node(31), node(30)]);
    }

    #[test]
    fn a_finished_send_is_forgotten() {
        let (_folder, home) = home();
        let mut first = PendingSend::open(&home, &paths(&["/a"])).unwrap();
        first.remember(1).unwrap();
        let secret = first.capability().clone();
        first.forget();
        let next = PendingSend::open(&home, &paths(&["/a"])).unwrap();
        assert_ne!(next.capability(), &secret);
        assert_eq!(next.port(), None);
    }

    #[test]
    fn two_sends_at_once_never_share_a_secret() {
        let (_folder, home) = home();
        let mut first = PendingSend::open(&home, &paths(&["/a"])).unwrap();
        first.remember(1).unwrap();
        let mut second = PendingSend::open(&home, &paths(&["/a"])).unwrap();
        assert_ne!(first.capability(), second.capability());
        second.remember(2).unwrap();
        second.forget();
        let secret = first.capability().clone();
        drop(first);
        assert_eq!(PendingSend::open(&home, &paths(&["/a"])).unwrap().capability(), &secret);
    }

    #[test]
    fn a_damaged_record_is_replaced() {
        let (folder, home) = home();
        let mut first = PendingSend::open(&home, &paths(&["/a"])).unwrap();
        first.remember(1).unwrap();
        drop(first);
        let path = folder.path().join(FOLDER).join(record_name(&paths(&["/a"])));
        fs::write(&path, b"{\"version\":1,\"capab").unwrap();
        let mut next = PendingSend::open(&home, &paths(&["/a"])).unwrap();
        assert_eq!(next.port(), None);
        next.remember(7).unwrap();
        drop(next);
        assert_eq!(PendingSend::open(&home, &paths(&["/a"])).unwrap().port(), Some(7));
    }

    #[test]
    fn a_record_older_than_a_week_is_forgotten() {
        let (folder, home) = home();
        let mut first = PendingSend::open(&home, &paths(&["/a"])).unwrap();
        first.remember(1).unwrap();
        drop(first);
        let path = folder.path().join(FOLDER).join(record_name(&paths(&["/a"])));
        let old = SystemTime::now() - MAX_AGE - Duration::from_secs(60);
        File::options().write(true).open(&path).unwrap().set_modified(old).unwrap();
        assert_eq!(PendingSend::open(&home, &paths(&["/a"])).unwrap().port(), None);
    }
}
