//! What a send must remember so that the same send, begun again after a crash, offers the same things under the same ticket: the
//! capability secret and the port; and who has begun to fetch them, so that they find the sender again where its address is
//! another one by then.
//!
//! Invariant: at most one process uses a record at a time (it holds a lock as long as the send runs), so two sends of the same
//! paths never share a secret. A record is removed once the receiver has everything.

use std::cell::RefCell;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use data_encoding::BASE32_NOPAD;
use serde::{Deserialize, Serialize};
use wraith_crypto::NodeId;
use wraith_discovery::Capability;

use super::dir::StateDir;
use super::error::{StateError, StateErrorKind};
use super::file::{Format, StateFile};
use super::identity::random;

const FOLDER: &str = "sends";
const LOCK: &str = "lock";
/// Receivers of one send that are remembered. More at once find the sender by its ticket's addresses, or by a new ticket.
pub const MAX_RECEIVERS: usize = 16;
/// A ticket nobody used for a week is forgotten: long enough for an interrupted transfer over a holiday, short enough
/// that a secret does not stay valid for ever.
const MAX_AGE: Duration = Duration::from_secs(7 * 24 * 3600);
/// A tenth of a second in all: an ending process needs less, and a second send of the same paths hardly notices.
const LOCK_TRIES: u32 = 20;
const LOCK_PAUSE: Duration = Duration::from_millis(5);
const FORMAT: Format = Format {
    version: 1,
    version_of: |text| serde_json::from_str(text).ok().map(|Version { version }| version),
    // Far more than a record takes.
    max_bytes: 4096,
    is_secret: true,
};

#[derive(Deserialize)]
struct Version {
    version: u32,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    version: u32,
    capability: String,
    port: u16,
    /// NodeIds of those who have begun to fetch, the last first.
    #[serde(default)]
    receivers: Vec<String>,
}

/// The remembered, or new, secret and port of one send. Holds the lock on its record until dropped.
#[derive(Debug)]
pub struct UnfinishedSend {
    capability: Capability,
    port: Option<u16>,
    receivers: RefCell<Vec<NodeId>>,
    /// None when nothing is remembered: in memory, or because another process sends the same paths right now.
    owned: Option<Owned>,
}

#[derive(Debug)]
struct Owned {
    file: StateFile,
    lock: PathBuf,
    _locked: File,
}

impl UnfinishedSend {
    /// What is remembered of an unfinished send of these paths (canonical, in this order), or a new secret.
    ///
    /// # Errors
    /// The record cannot be read or is of a newer version, or the system has no randomness.
    pub fn open(state: &StateDir, canonical_paths: &[PathBuf]) -> Result<Self, StateError> {
        let Some(folder) = state.with_subfolder(FOLDER)? else { return Self::unremembered() };
        forget_old(folder);
        let name = Path::new(FOLDER).join(record_name(canonical_paths));
        let file = StateFile::new(folder, name, FORMAT);
        let lock = file.path().with_extension(LOCK);
        let failed = |e| StateError::disk(format_args!("cannot use {}", file.path().display()), &e);
        let Some(locked) = lock_patiently(&lock).map_err(failed)? else {
            return Self::unremembered();
        };
        let text = match file.read() {
            Err(error) if is_worthless(&error) => None,
            text => text?,
        };
        let owned = Some(Owned { file, lock, _locked: locked });
        match text.and_then(|text| parse(&text)) {
            Some((capability, port, receivers)) => {
                let receivers = RefCell::new(receivers);
                Ok(Self { capability, port: Some(port), receivers, owned })
            }
            None => Ok(Self { owned, ..Self::unremembered()? }),
        }
    }

    /// A new secret that nothing is remembered of.
    ///
    /// # Errors
    /// The system has no randomness.
    pub fn unremembered() -> Result<Self, StateError> {
        let receivers = RefCell::default();
        let mut secret = [0; Capability::LEN];
        random(&mut secret)?;
        let capability = Capability::from_bytes(secret);
        Ok(Self { capability, port: None, receivers, owned: None })
    }

    /// The secret of the ticket.
    pub const fn capability(&self) -> &Capability {
        &self.capability
    }

    /// The port of last time.
    pub const fn port(&self) -> Option<u16> {
        self.port
    }

    /// Remembers the secret with the port that is in use now. Call before the ticket is shown.
    ///
    /// # Errors
    /// The record cannot be written.
    pub fn remember(&mut self, port: u16) -> Result<(), StateError> {
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
    ///
    /// # Errors
    /// The record cannot be written.
    pub fn remember_receiver(&self, receiver: NodeId) -> Result<(), StateError> {
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
    ///
    /// # Errors
    /// The record cannot be written.
    pub fn forget_receiver(&self, receiver: NodeId) -> Result<(), StateError> {
        self.receivers.borrow_mut().retain(|known| *known != receiver);
        self.port.map_or(Ok(()), |port| self.write(port))
    }

    fn write(&self, port: u16) -> Result<(), StateError> {
        let Some(owned) = &self.owned else { return Ok(()) };
        let capability = BASE32_NOPAD.encode(self.capability.as_bytes());
        let receivers = self.receivers.borrow().iter().map(ToString::to_string).collect();
        let entry = Entry { version: FORMAT.version, capability, port, receivers };
        let text = serde_json::to_string(&entry).expect("plain fields are JSON");
        owned.file.replace(text.into())
    }

    /// The receiver has everything: the ticket ends here.
    pub fn forget(self) {
        if let Some(owned) = &self.owned {
            // Nothing is lost when this fails: the record expires.
            let _ = fs::remove_file(owned.file.path());
            let _ = fs::remove_file(&owned.lock);
        }
    }
}

/// Whether a record is no use to anybody and may be replaced.
fn is_worthless(error: &StateError) -> bool {
    matches!(error.kind(), StateErrorKind::Damaged | StateErrorKind::Exposed)
}

fn parse(text: &str) -> Option<(Capability, u16, Vec<NodeId>)> {
    let entry: Entry = serde_json::from_str(text).ok()?;
    let secret = BASE32_NOPAD.decode(entry.capability.as_bytes()).ok()?;
    let capability = Capability::from_bytes(secret.try_into().ok()?);
    let receivers = entry.receivers.iter().take(MAX_RECEIVERS);
    let receivers = receivers.filter_map(|text| text.parse().ok()).collect();
    (entry.version == FORMAT.version && entry.port != 0)
        .then_some((capability, entry.port, receivers))
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

/// Makes and locks the file of a lock; None when another process has it.
fn lock(path: &Path) -> io::Result<Option<File>> {
    loop {
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(false).mode(0o600).open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Ok(None),
            Err(fs::TryLockError::Error(e)) => return Err(e),
        }
        // Its last owner may have removed the file between our open and our lock; then it locks nothing any more.
        match fs::metadata(path) {
            Ok(now) if now.ino() == file.metadata()?.ino() => return Ok(Some(file)),
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(e),
        }
    }
}

/// Removes records past [`MAX_AGE`] that nobody uses, and locks without a record. What fails here is tried again at the next send.
fn forget_old(state: &Path) {
    let is_old = |path: &Path| {
        let age = fs::metadata(path).and_then(|m| m.modified()).map(|t| t.elapsed());
        matches!(age, Ok(Ok(age)) if age > MAX_AGE)
    };
    for entry in fs::read_dir(state.join(FOLDER)).into_iter().flatten().flatten() {
        if entry.file_name().as_bytes().starts_with(b".") {
            continue;
        }
        let file = StateFile::new(state, entry.path().with_extension(""), FORMAT);
        let is_newer = file.read().is_err_and(|error| error.kind() == StateErrorKind::Newer);
        let is_kept = file.path().exists() && !is_old(file.path());
        if is_kept || is_newer || !is_old(&entry.path()) {
            continue;
        }
        let lock_path = file.path().with_extension(LOCK);
        if let Ok(Some(_locked)) = lock(&lock_path) {
            let _ = fs::remove_file(file.path());
            let _ = fs::remove_file(&lock_path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::time::SystemTime;

    use super::*;
    use crate::state::commit::Step;
    use crate::state::commit::faults::{self, Fault};

    fn home() -> (tempfile::TempDir, StateDir) {
        let folder = tempfile::tempdir().unwrap();
        let home = StateDir::in_folder(folder.path());
        (folder, home)
    }

    fn paths(names: &[&str]) -> Vec<PathBuf> {
        names.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn the_same_paths_get_the_same_secret_and_port_again() {
        let (_folder, home) = home();
        let mut first = UnfinishedSend::open(&home, &paths(&["/a", "/b"])).unwrap();
        first.remember(4433).unwrap();
        let secret = first.capability().clone();
        drop(first);
        let again = UnfinishedSend::open(&home, &paths(&["/a", "/b"])).unwrap();
        assert_eq!((again.capability(), again.port()), (&secret, Some(4433)));
        let other = UnfinishedSend::open(&home, &paths(&["/a/b"])).unwrap();
        assert_ne!(other.capability(), &secret);
    }

    #[test]
    fn receivers_come_and_go_without_the_secret_ever_being_off_the_disk() {
        let (folder, home) = home();
        let mut first = UnfinishedSend::open(&home, &paths(&["/a"])).unwrap();
        first.remember(4433).unwrap();
        let secret = first.capability().clone();
        let path = folder.path().join(FOLDER).join(record_name(&paths(&["/a"])));
        let node = |n| wraith_crypto::SecretIdentity::from_seed([n; 32]).node_id();
        for n in 0..2 * MAX_RECEIVERS as u8 {
            faults::set(Some(Fault::Error(Step::Rename)));
            first.remember_receiver(node(100)).unwrap_err();
            faults::set(None);
            let (capability, ..) = parse(&fs::read_to_string(&path).unwrap()).unwrap();
            assert_eq!(capability, secret, "a full disk leaves what was there");
            first.remember_receiver(node(n)).unwrap();
        }
        first.forget_receiver(node(100)).unwrap();
        (0..MAX_RECEIVERS as u8 + 14).for_each(|n| first.forget_receiver(node(n)).unwrap());
        drop(first);
        let again = UnfinishedSend::open(&home, &paths(&["/a"])).unwrap();
        assert_eq!((again.capability(), again.port()), (&secret, Some(4433)));
        assert_eq!(again.receivers(), [node(31), node(30)]);
    }

    #[test]
    fn a_record_of_before_is_read_and_one_of_a_newer_version_left_alone() {
        let (folder, home) = home();
        let path = folder.path().join(FOLDER).join(record_name(&paths(&["/a"])));
        drop(UnfinishedSend::open(&home, &paths(&["/a"])).unwrap());
        let secret = BASE32_NOPAD.encode(&[3; Capability::LEN]);
        let record = |version| {
            // Blanks at the end are those of a record that was once longer.
            let text =
                format!("{{\"version\":{version},\"capability\":\"{secret}\",\"port\":5}}    ");
            fs::write(&path, &text).unwrap();
            fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
            text
        };
        record(1);
        let before = UnfinishedSend::open(&home, &paths(&["/a"])).unwrap();
        assert_eq!(before.port(), Some(5));
        assert_eq!(before.capability().as_bytes(), &[3; Capability::LEN]);
        drop(before);
        let newer = record(2);
        let old = SystemTime::now() - MAX_AGE - Duration::from_secs(60);
        File::options().write(true).open(&path).unwrap().set_modified(old).unwrap();
        let error = UnfinishedSend::open(&home, &paths(&["/a"])).unwrap_err();
        assert_eq!(error.kind(), StateErrorKind::Newer);
        assert_eq!(fs::read_to_string(&path).unwrap(), newer);
    }

    #[test]
    fn a_finished_send_is_forgotten() {
        let (_folder, home) = home();
        let mut first = UnfinishedSend::open(&home, &paths(&["/a"])).unwrap();
        first.remember(1).unwrap();
        let secret = first.capability().clone();
        first.forget();
        let next = UnfinishedSend::open(&home, &paths(&["/a"])).unwrap();
        assert_ne!(next.capability(), &secret);
        assert_eq!(next.port(), None);
    }

    #[test]
    fn two_sends_at_once_never_share_a_secret() {
        let (_folder, home) = home();
        let mut first = UnfinishedSend::open(&home, &paths(&["/a"])).unwrap();
        first.remember(1).unwrap();
        let mut second = UnfinishedSend::open(&home, &paths(&["/a"])).unwrap();
        assert_ne!(first.capability(), second.capability());
        second.remember(2).unwrap();
        second.forget();
        let secret = first.capability().clone();
        drop(first);
        assert_eq!(UnfinishedSend::open(&home, &paths(&["/a"])).unwrap().capability(), &secret);
    }

    #[test]
    fn a_damaged_record_is_replaced() {
        let (folder, home) = home();
        let mut first = UnfinishedSend::open(&home, &paths(&["/a"])).unwrap();
        first.remember(1).unwrap();
        drop(first);
        let path = folder.path().join(FOLDER).join(record_name(&paths(&["/a"])));
        fs::write(&path, b"{\"version\":1,\"capab").unwrap();
        let mut next = UnfinishedSend::open(&home, &paths(&["/a"])).unwrap();
        assert_eq!(next.port(), None);
        next.remember(7).unwrap();
        drop(next);
        assert_eq!(UnfinishedSend::open(&home, &paths(&["/a"])).unwrap().port(), Some(7));
    }

    #[test]
    fn a_record_older_than_a_week_is_forgotten() {
        let (folder, home) = home();
        let mut first = UnfinishedSend::open(&home, &paths(&["/a"])).unwrap();
        first.remember(1).unwrap();
        drop(first);
        let path = folder.path().join(FOLDER).join(record_name(&paths(&["/a"])));
        let old = SystemTime::now() - MAX_AGE - Duration::from_secs(60);
        File::options().write(true).open(&path).unwrap().set_modified(old).unwrap();
        assert_eq!(UnfinishedSend::open(&home, &paths(&["/a"])).unwrap().port(), None);
    }
}
