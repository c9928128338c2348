//! What a send must remember so that the same send, begun again after a crash, offers the same things under the same ticket: the
//! capability secret and the port; for whom it is good, if a code brings it; who has come to fetch, so that they find the
//! sender again where its address is another one by then; and which content the files had, so that they need not be read
//! again ([`SentRoots`]).
//!
//! A capability that a code brings is good for the identities that proved the words of the code ([`super::holders`]), and is
//! never the one of a ticket that people carry, which is good for whoever has it: the two are different records.
//!
//! Invariant: at most one process uses a record at a time (it holds a lock as long as the send runs), so two sends of the same
//! paths never share a secret. A record is removed once the receiver has everything.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use data_encoding::BASE32_NOPAD;
use serde::{Deserialize, Serialize};
use wraith_crypto::NodeId;
use wraith_discovery::Capability;
use wraith_transfer::SentRoots;
use zeroize::{Zeroize, Zeroizing};

use super::dir::StateDir;
use super::error::{StateError, StateErrorKind};
use super::file::{Format, StateFile};
use super::holders::{HolderEntry, Holders};
use super::identity::random;

const FOLDER: &str = "sends";
const LOCK: &str = "lock";
const ROOTS: &str = "roots";
/// Receivers of one send that are remembered. More at once find the sender by its ticket's addresses, or by a new ticket.
pub const MAX_RECEIVERS: usize = 16;
/// A ticket nobody used for a week is forgotten: long enough for an interrupted transfer over a holiday, short enough
/// that a secret does not stay valid for ever.
const MAX_AGE: Duration = Duration::from_secs(7 * 24 * 3600);
/// A tenth of a second in all: an ending process needs less, and a second send of the same paths hardly notices.
const LOCK_TRIES: u32 = 20;
const LOCK_PAUSE: Duration = Duration::from_millis(5);
const FORMAT: Format = Format {
    version: 2,
    version_of: |text| serde_json::from_str(text).ok().map(|Version { version }| version),
    // Far more than a record takes.
    max_bytes: 64 << 10,
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
    /// NodeIds of those who have come to fetch, the last first.
    receivers: Vec<String>,
    /// For whom it is good; none of a ticket that people carry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    holders: Option<Vec<HolderEntry>>,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.capability.zeroize();
    }
}

/// The remembered, or new, secret and port of one send. Holds the lock on its record until dropped or forgotten. What changes in
/// it may be changed by several threads.
#[derive(Debug)]
pub struct UnfinishedSend {
    capability: Capability,
    remembered: Mutex<Remembered>,
}

#[derive(Debug)]
struct Remembered {
    port: Option<u16>,
    receivers: Vec<NodeId>,
    /// None: it is good for whoever has it.
    holders: Option<Holders>,
    /// None when nothing is remembered: in memory, because another process sends the same paths right now, or because it is over.
    owned: Option<Owned>,
}

#[derive(Debug)]
struct Owned {
    file: StateFile,
    lock: PathBuf,
    _locked: File,
}

impl UnfinishedSend {
    /// What is remembered of an unfinished send of these paths (canonical, in this order), or a new secret, which is good for
    /// whoever has it.
    ///
    /// # Errors
    /// The record cannot be read or is of a newer version, or the system has no randomness.
    pub fn open(state: &StateDir, canonical_paths: &[PathBuf]) -> Result<Self, StateError> {
        Self::open_with(state, canonical_paths, None)
    }

    /// The same of a send by code to so many receivers: the secret is good for those that [`Self::admit`] names.
    ///
    /// # Errors
    /// As of [`Self::open`].
    pub fn open_for_holders(
        state: &StateDir,
        canonical_paths: &[PathBuf],
        max: usize,
    ) -> Result<Self, StateError> {
        let mut record = canonical_paths.to_vec();
        // No path has a zero byte.
        record.push("\0code".into());
        Self::open_with(state, &record, Some(Holders::new(max)))
    }

    fn open_with(
        state: &StateDir,
        record: &[PathBuf],
        holders: Option<Holders>,
    ) -> Result<Self, StateError> {
        let Some(folder) = state.with_subfolder(FOLDER)? else { return Self::new(holders) };
        forget_old(folder);
        let name = Path::new(FOLDER).join(record_name(record));
        let file = StateFile::new(folder, name, FORMAT);
        let lock = file.path().with_extension(LOCK);
        let failed = |e| StateError::disk(format_args!("cannot use {}", file.path().display()), &e);
        let Some(locked) = lock_patiently(&lock).map_err(failed)? else {
            return Self::new(holders);
        };
        let text = match file.read() {
            Err(error) if is_worthless(&error) => None,
            text => text?,
        };
        let mut send = Self::new(holders)?;
        let mut remembered = send.lock();
        remembered.owned = Some(Owned { file, lock, _locked: locked });
        let found = text.and_then(|text| remembered.read(&text));
        drop(remembered);
        send.capability = found.unwrap_or(send.capability);
        Ok(send)
    }

    /// A new secret that nothing is remembered of, good for whoever has it.
    ///
    /// # Errors
    /// The system has no randomness.
    pub fn unremembered() -> Result<Self, StateError> {
        Self::new(None)
    }

    /// The same, good for those that [`Self::admit`] names, so many at once.
    ///
    /// # Errors
    /// The system has no randomness.
    pub fn unremembered_for_holders(max: usize) -> Result<Self, StateError> {
        Self::new(Some(Holders::new(max)))
    }

    fn new(holders: Option<Holders>) -> Result<Self, StateError> {
        let remembered = Remembered { port: None, receivers: Vec::new(), holders, owned: None };
        Ok(Self { capability: new_capability()?, remembered: Mutex::new(remembered) })
    }

    /// Begins anew: whatever an earlier run gave to anybody is worth nothing from now on.
    ///
    /// # Errors
    /// The system has no randomness.
    pub fn renew(&mut self) -> Result<(), StateError> {
        self.capability = new_capability()?;
        let mut remembered = self.lock();
        (remembered.port, remembered.receivers) = (None, Vec::new());
        if let Some(owned) = &remembered.owned {
            // Marks under another key, which nobody can read any more.
            let _ = fs::remove_file(owned.file.path().with_extension(ROOTS));
        }
        if let Some(holders) = &mut remembered.holders {
            holders.read(&[]);
        }
        Ok(())
    }

    /// The secret of the ticket.
    pub const fn capability(&self) -> &Capability {
        &self.capability
    }

    /// Which content the files had when they were read, as far as that is remembered.
    pub fn sent_roots(&self) -> SentRoots {
        let key = wraith_crypto::kdf::derive("wraith/1 sent roots", self.capability.as_bytes());
        let file = self.lock().owned.as_ref().and_then(|owned| {
            let mut options = OpenOptions::new();
            let options = options.read(true).write(true).create(true).truncate(false).mode(0o600);
            // Without it they are read again.
            options.open(owned.file.path().with_extension(ROOTS)).ok()
        });
        match file {
            Some(file) => SentRoots::kept_in(file, &key),
            None => SentRoots::in_memory(&key),
        }
    }

    /// The port of last time.
    pub fn port(&self) -> Option<u16> {
        self.lock().port
    }

    /// Remembers the secret with the port that is in use now. Call before the ticket is shown.
    ///
    /// # Errors
    /// The record cannot be written.
    pub fn remember(&self, port: u16) -> Result<(), StateError> {
        self.change(|remembered| {
            let is_new = remembered.port != Some(port);
            remembered.port = Some(port);
            is_new
        })
    }

    /// Who has come to fetch, the last first.
    pub fn receivers(&self) -> Vec<NodeId> {
        self.lock().receivers.clone()
    }

    /// Remembers that this receiver has come to fetch.
    ///
    /// # Errors
    /// The record cannot be written.
    pub fn remember_receiver(&self, receiver: NodeId) -> Result<(), StateError> {
        self.change(|Remembered { receivers, .. }| {
            if receivers.first() == Some(&receiver) {
                return false;
            }
            receivers.retain(|known| *known != receiver);
            receivers.insert(0, receiver);
            receivers.truncate(MAX_RECEIVERS);
            true
        })
    }

    /// This receiver has everything, and need not find us again.
    ///
    /// # Errors
    /// The record cannot be written.
    pub fn forget_receiver(&self, receiver: NodeId) -> Result<(), StateError> {
        self.change(|Remembered { receivers, holders, .. }| {
            receivers.retain(|known| *known != receiver);
            holders.iter_mut().for_each(|holders| holders.set_begun(receiver, false));
            true
        })
    }

    /// Whether the secret is good for this one.
    pub fn admits(&self, receiver: NodeId) -> bool {
        self.lock().holders.as_ref().is_none_or(|holders| holders.admits(receiver))
    }

    /// For whom the secret is good; None: for whoever has it.
    pub fn holders(&self) -> Option<Vec<NodeId>> {
        self.lock().holders.as_ref().map(Holders::nodes)
    }

    /// A code brought the secret to this one: it is good for it from now on.
    ///
    /// # Errors
    /// The record cannot be written. It holds all the same until this is dropped.
    pub fn admit(&self, receiver: NodeId) -> Result<(), StateError> {
        self.change(|Remembered { holders, .. }| {
            holders.iter_mut().for_each(|holders| holders.admit(receiver));
            holders.is_some()
        })
    }

    /// This one has accepted, and its files begin to move.
    ///
    /// # Errors
    /// The record cannot be written.
    pub fn has_begun(&self, receiver: NodeId) -> Result<(), StateError> {
        self.change(|Remembered { holders, .. }| {
            holders.iter_mut().for_each(|holders| holders.set_begun(receiver, true));
            holders.is_some()
        })
    }

    /// The send was stopped, or failed, in good order: it stays good for those who have begun to receive, and for those whom the
    /// user knows; if there are none, it is forgotten. A send that dies is remembered as it was.
    pub fn settle(&self, is_known: impl Fn(NodeId) -> bool) {
        let settled = self.change(|remembered| {
            let Remembered { receivers, holders: Some(holders), .. } = remembered else {
                return false;
            };
            holders.settle(is_known);
            receivers.retain(|receiver| holders.admits(*receiver));
            true
        });
        // What cannot be written cannot be kept either.
        if settled.is_err() || self.holders().is_some_and(|holders| holders.is_empty()) {
            self.forget();
        }
    }

    /// The receiver has everything: the ticket ends here.
    pub fn forget(&self) {
        if let Some(owned) = self.lock().owned.take() {
            // Nothing is lost when this fails: the record expires.
            let _ = fs::remove_file(owned.file.path());
            let _ = fs::remove_file(owned.file.path().with_extension(ROOTS));
            let _ = fs::remove_file(&owned.lock);
        }
    }

    /// Changes what is remembered, and writes it down if `change` says so.
    fn change(&self, change: impl FnOnce(&mut Remembered) -> bool) -> Result<(), StateError> {
        let mut remembered = self.lock();
        if change(&mut remembered) { remembered.write(&self.capability) } else { Ok(()) }
    }

    fn lock(&self) -> MutexGuard<'_, Remembered> {
        // Plain lists; a panic elsewhere leaves nothing half done.
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Remembered {
    fn write(&self, capability: &Capability) -> Result<(), StateError> {
        let (Some(owned), Some(port)) = (&self.owned, self.port) else { return Ok(()) };
        let capability = BASE32_NOPAD.encode(capability.as_bytes());
        let receivers = self.receivers.iter().map(ToString::to_string).collect();
        let holders = self.holders.as_ref().map(Holders::entries);
        let entry = Entry { version: FORMAT.version, capability, port, receivers, holders };
        let text = serde_json::to_string(&entry).expect("plain fields are JSON");
        owned.file.replace(text.into())
    }

    /// Takes what was written; the capability, if it makes sense.
    fn read(&mut self, text: &str) -> Option<Capability> {
        let entry: Entry = serde_json::from_str(text).ok()?;
        let secret = Zeroizing::new(BASE32_NOPAD.decode(entry.capability.as_bytes()).ok()?);
        let capability = Capability::from_bytes(secret.as_slice().try_into().ok()?);
        if entry.version != FORMAT.version || entry.port == 0 {
            return None;
        }
        let receivers = entry.receivers.iter().take(MAX_RECEIVERS);
        self.receivers = receivers.filter_map(|text| text.parse().ok()).collect();
        match (&mut self.holders, &entry.holders) {
            (Some(holders), Some(entries)) => holders.read(entries),
            (None, None) => {}
            _ => return None,
        }
        self.port = Some(entry.port);
        Some(capability)
    }
}

fn new_capability() -> Result<Capability, StateError> {
    let mut secret = Zeroizing::new([0; Capability::LEN]);
    random(&mut *secret)?;
    Ok(Capability::from_bytes(*secret))
}

/// Whether a record is no use to anybody and may be replaced.
fn is_worthless(error: &StateError) -> bool {
    matches!(error.kind(), StateErrorKind::Damaged | StateErrorKind::Exposed)
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
            let _ = fs::remove_file(file.path().with_extension(ROOTS));
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
        let first = UnfinishedSend::open(&home, &paths(&["/a", "/b"])).unwrap();
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
        let first = UnfinishedSend::open(&home, &paths(&["/a"])).unwrap();
        first.remember(4433).unwrap();
        let secret = first.capability().clone();
        let path = folder.path().join(FOLDER).join(record_name(&paths(&["/a"])));
        let node = |n| wraith_crypto::SecretIdentity::from_seed([n; 32]).node_id();
        for n in 0..2 * MAX_RECEIVERS as u8 {
            faults::set(Some(Fault::Error(Step::Rename)));
            first.remember_receiver(node(100)).unwrap_err();
            faults::set(None);
            let mut there =
                Remembered { port: None, receivers: vec![], holders: None, owned: None };
            let capability = there.read(&fs::read_to_string(&path).unwrap());
            assert_eq!(capability.as_ref(), Some(&secret), "a full disk leaves what was there");
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
    fn a_record_of_another_version_is_no_record_and_a_newer_one_left_alone() {
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
        assert_eq!(before.port(), None);
        assert_ne!(before.capability().as_bytes(), &[3; Capability::LEN]);
        drop(before);
        let newer = record(3);
        let old = SystemTime::now() - MAX_AGE - Duration::from_secs(60);
        File::options().write(true).open(&path).unwrap().set_modified(old).unwrap();
        let error = UnfinishedSend::open(&home, &paths(&["/a"])).unwrap_err();
        assert_eq!(error.kind(), StateErrorKind::Newer);
        assert_eq!(fs::read_to_string(&path).unwrap(), newer);
    }

    #[test]
    fn what_a_code_brought_is_good_for_who_had_the_code_also_after_a_crash() {
        let (_folder, home) = home();
        let open = |max| UnfinishedSend::open_for_holders(&home, &paths(&["/a"]), max).unwrap();
        let node = |n| wraith_crypto::SecretIdentity::from_seed([n; 32]).node_id();
        let first = open(1);
        first.remember(4433).unwrap();
        let secret = first.capability().clone();
        assert!(!first.admits(node(1)), "a capability that was not brought is good for nobody");
        first.admit(node(1)).unwrap();
        drop(first);
        let again = open(1);
        assert_eq!((again.capability(), again.holders()), (&secret, Some(vec![node(1)])));
        assert!(again.admits(node(1)) && !again.admits(node(2)));
        // The ticket of the same paths that people carry is another one.
        let bearer = UnfinishedSend::open(&home, &paths(&["/a"])).unwrap();
        assert_ne!(bearer.capability(), &secret);
        assert!(bearer.admits(node(2)));
    }

    #[test]
    fn a_send_by_code_that_was_stopped_is_remembered_for_who_has_begun_only() {
        let (_folder, home) = home();
        let open = || UnfinishedSend::open_for_holders(&home, &paths(&["/a"]), 2).unwrap();
        let node = |n| wraith_crypto::SecretIdentity::from_seed([n; 32]).node_id();
        let begun = open();
        begun.remember(1).unwrap();
        let secret = begun.capability().clone();
        begun.admit(node(1)).unwrap();
        begun.admit(node(2)).unwrap();
        begun.has_begun(node(2)).unwrap();
        begun.settle(|_| false);
        drop(begun);
        let again = open();
        assert_eq!((again.capability(), again.holders()), (&secret, Some(vec![node(2)])));
        again.forget_receiver(node(2)).unwrap();
        again.settle(|_| false);
        drop(again);
        assert_ne!(open().capability(), &secret);
    }

    #[test]
    fn a_send_that_begins_anew_ends_what_was_given_before() {
        let (_folder, home) = home();
        let open = || UnfinishedSend::open_for_holders(&home, &paths(&["/a"]), 1).unwrap();
        let node = wraith_crypto::SecretIdentity::from_seed([1; 32]).node_id();
        let mut first = open();
        let secret = first.capability().clone();
        first.remember(1).unwrap();
        first.admit(node).unwrap();
        first.has_begun(node).unwrap();
        first.renew().unwrap();
        assert_eq!((first.port(), first.holders()), (None, Some(Vec::new())));
        first.remember(2).unwrap();
        let renewed = first.capability().clone();
        drop(first);
        let again = open();
        assert!(again.capability() == &renewed && renewed != secret && !again.admits(node));
    }

    #[test]
    fn a_finished_send_is_forgotten() {
        let (_folder, home) = home();
        let first = UnfinishedSend::open(&home, &paths(&["/a"])).unwrap();
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
        let first = UnfinishedSend::open(&home, &paths(&["/a"])).unwrap();
        first.remember(1).unwrap();
        let second = UnfinishedSend::open(&home, &paths(&["/a"])).unwrap();
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
        let first = UnfinishedSend::open(&home, &paths(&["/a"])).unwrap();
        first.remember(1).unwrap();
        drop(first);
        let path = folder.path().join(FOLDER).join(record_name(&paths(&["/a"])));
        fs::write(&path, b"{\"version\":1,\"capab").unwrap();
        let next = UnfinishedSend::open(&home, &paths(&["/a"])).unwrap();
        assert_eq!(next.port(), None);
        next.remember(7).unwrap();
        drop(next);
        assert_eq!(UnfinishedSend::open(&home, &paths(&["/a"])).unwrap().port(), Some(7));
    }

    #[test]
    fn a_record_older_than_a_week_is_forgotten() {
        let (folder, home) = home();
        let first = UnfinishedSend::open(&home, &paths(&["/a"])).unwrap();
        first.remember(1).unwrap();
        drop(first);
        let path = folder.path().join(FOLDER).join(record_name(&paths(&["/a"])));
        let old = SystemTime::now() - MAX_AGE - Duration::from_secs(60);
        File::options().write(true).open(&path).unwrap().set_modified(old).unwrap();
        assert_eq!(UnfinishedSend::open(&home, &paths(&["/a"])).unwrap().port(), None);
    }
}
