//! State of an unfinished send. After a crash the same send, started again, offers the same files
//! under the same ticket.
//!
//! A record holds:
//!
//! - the capability (the secret in the ticket, which permits a fetch) and the port;
//! - the allowlist, if the ticket is delivered by a code;
//! - the receivers that have connected, so that they find the sender again after a change of its
//!   address;
//! - the content hashes of files, so that they need not be read again ([`SentRoots`]).
//!
//! A capability that a code delivers is valid only for the identities that proved the words of the
//! code ([`super::allowlist`]). The capability of a bearer ticket is valid for any receiver that
//! has the ticket. The two are never the same: they are in different records.
//!
//! Invariant: at most one process uses a record at a time, by a lock held for the duration of the
//! send. So two sends of the same paths never share a secret. A record is removed once the receiver
//! has everything.

mod recipient;
#[cfg(test)]
mod tests;

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use data_encoding::BASE32_NOPAD;
use serde::{Deserialize, Serialize};
use wraith_crypto::NodeId;
use wraith_discovery::Capability;
use wraith_transfer::SentRoots;
use zeroize::{Zeroize, Zeroizing};

pub use self::recipient::Recipient;
use super::allowlist::{AllowedEntry, Allowlist, Stage};
use super::dir::StateDir;
use super::error::{StateError, StateErrorKind};
use super::file::{Format, StateFile};
use super::folder::is_absent;
use super::identity::random;
use super::lock_file::{lock, lock_patiently};

const FOLDER: &str = "sends";
const LOCK: &str = "lock";
const ROOTS: &str = "roots";
/// Maximum number of receivers stored per send. Others find the sender by the addresses of its
/// ticket, or need a new ticket.
pub const MAX_RECEIVERS: usize = 16;
/// A ticket unused for a week is forgotten: long enough for an interrupted transfer over a holiday,
/// short enough that a secret does not stay valid for ever.
const MAX_AGE: Duration = Duration::from_secs(7 * 24 * 3600);
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
    /// NodeIds of receivers that came to fetch, the latest first.
    receivers: Vec<String>,
    /// The allowlist; `None` for a bearer ticket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    allowlist: Option<Vec<AllowedEntry>>,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.capability.zeroize();
    }
}

/// The stored or new secret and port of one send. Holds the lock on its record until dropped or
/// forgotten. Several threads may change it.
#[derive(Debug)]
pub struct UnfinishedSend {
    capability: Capability,
    record: Mutex<SendRecord>,
}

#[derive(Debug)]
struct SendRecord {
    port: Option<u16>,
    receivers: Vec<NodeId>,
    /// `None`: the secret is valid for any bearer.
    allowlist: Option<Allowlist>,
    /// `None` if nothing is stored: in memory, because another process is sending the same paths,
    /// or because the send is over.
    owned: Option<LockedFile>,
}

#[derive(Debug)]
struct LockedFile {
    file: StateFile,
    lock: PathBuf,
    _locked: File,
}

impl UnfinishedSend {
    /// Opens the record of an unfinished send of these paths (canonical, in this order) to this
    /// recipient, or creates a new secret.
    ///
    /// # Errors
    /// The record cannot be read or has a newer version, or the system has no randomness.
    pub fn open(
        state: &StateDir,
        canonical_paths: &[PathBuf],
        recipient: &Recipient,
    ) -> Result<Self, StateError> {
        let Some(folder) = state.with_subfolder(FOLDER)? else {
            return Self::in_memory(recipient);
        };
        forget_old(folder);
        let name = Path::new(FOLDER).join(recipient.record_name(canonical_paths));
        let file = StateFile::new(folder, name, FORMAT);
        let lock = file.path().with_extension(LOCK);
        let failed = |e| StateError::disk(format_args!("cannot use {}", file.path().display()), &e);
        let Some(locked) = lock_patiently(&lock).map_err(failed)? else {
            return Self::in_memory(recipient);
        };
        let text = match file.read() {
            Err(error) if is_worthless(&error) => None,
            text => text?,
        };
        let mut send = Self::in_memory(recipient)?;
        let mut record = send.lock();
        record.owned = Some(LockedFile { file, lock, _locked: locked });
        let found = text.and_then(|text| record.read(&text));
        drop(record);
        send.capability = found.unwrap_or(send.capability);
        Ok(send)
    }

    /// Creates a new secret that is not stored.
    ///
    /// # Errors
    /// The system has no randomness.
    pub fn in_memory(recipient: &Recipient) -> Result<Self, StateError> {
        let (allowlist, receivers) = (recipient.allowlist(), Vec::new());
        let record = SendRecord { port: None, receivers, allowlist, owned: None };
        Ok(Self { capability: new_capability()?, record: Mutex::new(record) })
    }

    /// Starts anew: all tickets of earlier runs become invalid.
    ///
    /// # Errors
    /// The earlier record cannot be removed, or the system has no randomness.
    pub fn renew(&mut self) -> Result<(), StateError> {
        self.capability = new_capability()?;
        let mut record = self.lock();
        (record.port, record.receivers) = (None, Vec::new());
        if let Some(owned) = &record.owned {
            // These marks are under the old key and can no longer be read.
            let _ = fs::remove_file(owned.file.path().with_extension(ROOTS));
            remove(owned.file.path()).map_err(|e| {
                StateError::disk(format_args!("cannot remove {}", owned.file.path().display()), &e)
            })?;
        }
        if let Some(allowlist) = &mut record.allowlist {
            allowlist.read(&[]);
        }
        Ok(())
    }

    /// Returns the secret of the ticket.
    pub const fn capability(&self) -> &Capability {
        &self.capability
    }

    /// Returns the stored content hashes of the files.
    pub fn sent_roots(&self) -> SentRoots {
        let key = wraith_crypto::kdf::derive("wraith/1 sent roots", self.capability.as_bytes());
        let file = self.lock().owned.as_ref().and_then(|owned| {
            let mut options = OpenOptions::new();
            let options = options.read(true).write(true).create(true).truncate(false).mode(0o600);
            // Without the file, the contents are read again.
            options.open(owned.file.path().with_extension(ROOTS)).ok()
        });
        match file {
            Some(file) => SentRoots::kept_in(file, &key),
            None => SentRoots::in_memory(&key),
        }
    }

    /// Returns the port of the earlier run.
    pub fn port(&self) -> Option<u16> {
        self.lock().port
    }

    /// Stores the secret with the current port, and marks it as in use. Call this before the ticket
    /// is shown.
    ///
    /// # Errors
    /// The record cannot be written.
    pub fn remember(&self, port: u16) -> Result<(), StateError> {
        self.change(|record| {
            record.port = Some(port);
            true
        })
    }

    /// Returns the receivers that came to fetch, the latest first.
    pub fn receivers(&self) -> Vec<NodeId> {
        self.lock().receivers.clone()
    }

    /// Stores that this receiver came to fetch.
    ///
    /// # Errors
    /// The record cannot be written.
    pub fn add_receiver(&self, receiver: NodeId) -> Result<(), StateError> {
        self.change(|SendRecord { receivers, .. }| {
            if receivers.first() == Some(&receiver) {
                return false;
            }
            receivers.retain(|known| *known != receiver);
            receivers.insert(0, receiver);
            receivers.truncate(MAX_RECEIVERS);
            true
        })
    }

    /// Removes a receiver that has everything and need not find the sender again.
    ///
    /// # Errors
    /// The record cannot be written.
    pub fn remove_receiver(&self, receiver: NodeId) -> Result<(), StateError> {
        self.change(|SendRecord { receivers, allowlist, .. }| {
            receivers.retain(|known| *known != receiver);
            allowlist.iter_mut().for_each(|allowlist| allowlist.set(receiver, Stage::Done));
            true
        })
    }

    /// Returns whether the secret is valid for this receiver.
    pub fn admits(&self, receiver: NodeId) -> bool {
        self.lock().allowlist.as_ref().is_none_or(|allowlist| allowlist.admits(receiver))
    }

    /// Returns the receivers for which the secret is valid and that are not done; `None` means any
    /// bearer.
    pub fn allowed(&self) -> Option<Vec<NodeId>> {
        self.lock().allowlist.as_ref().map(Allowlist::nodes)
    }

    /// Returns whether this receiver has everything, and may not take another place.
    pub fn is_done(&self, receiver: NodeId) -> bool {
        self.lock().allowlist.as_ref().is_some_and(|allowlist| allowlist.is_done(receiver))
    }

    /// Returns whether codes can admit no further receiver.
    pub fn is_full(&self) -> bool {
        self.lock().allowlist.as_ref().is_some_and(Allowlist::is_full)
    }

    /// Adds a receiver to which a code is about to deliver the secret. The secret is valid for it
    /// from now on. Returns false if all places are taken, by receivers of any code of this send.
    /// The second value is the error if the record cannot be written; the change still holds until
    /// this is dropped.
    pub fn admit(&self, receiver: NodeId) -> (bool, Result<(), StateError>) {
        let mut is_admitted = true;
        let written = self.change(|SendRecord { allowlist, .. }| {
            is_admitted = allowlist.as_mut().is_none_or(|allowlist| allowlist.admit(receiver));
            is_admitted && allowlist.is_some()
        });
        (is_admitted, written)
    }

    /// Records that this receiver accepted and its files begin to move.
    ///
    /// # Errors
    /// The record cannot be written.
    pub fn record_accepted(&self, receiver: NodeId) -> Result<(), StateError> {
        self.change(|SendRecord { allowlist, .. }| {
            allowlist.iter_mut().for_each(|allowlist| allowlist.set(receiver, Stage::Begun));
            allowlist.is_some()
        })
    }

    /// Handles an orderly stop or failure of the send. It stays valid for receivers that have begun
    /// and for contacts of the user; if there are none, the record is removed. The record of a send
    /// that crashes stays as it was.
    pub fn end_run(&self, is_known: impl Fn(NodeId) -> bool) {
        let settled = self.change(|record| {
            let SendRecord { receivers, allowlist: Some(allowlist), .. } = record else {
                return false;
            };
            allowlist.retain_resumable(is_known);
            receivers.retain(|receiver| allowlist.admits(*receiver));
            true
        });
        // If the record cannot be written, it must not be kept either.
        if settled.is_err() || self.allowed().is_some_and(|allowlist| allowlist.is_empty()) {
            self.forget();
        }
    }

    /// Removes the record because the receiver has everything; the ticket ends here. Returns
    /// whether nothing is left. Remains expire.
    pub fn forget(&self) -> bool {
        let Some(owned) = self.lock().owned.take() else { return true };
        let is_gone = remove(owned.file.path()).is_ok();
        let _ = fs::remove_file(owned.file.path().with_extension(ROOTS));
        let _ = fs::remove_file(&owned.lock);
        is_gone
    }

    /// Returns whether a record of an earlier run of this send may still exist.
    pub fn may_exist(state: &StateDir, canonical_paths: &[PathBuf], recipient: &Recipient) -> bool {
        let name = Path::new(FOLDER).join(recipient.record_name(canonical_paths));
        state.folder().is_some_and(|folder| !is_absent(&folder.join(name)))
    }

    /// Applies `change`, and writes the record if it returns true.
    fn change(&self, change: impl FnOnce(&mut SendRecord) -> bool) -> Result<(), StateError> {
        let mut record = self.lock();
        if change(&mut record) { record.write(&self.capability) } else { Ok(()) }
    }

    fn lock(&self) -> MutexGuard<'_, SendRecord> {
        // Ignores poisoning: these are plain lists, and a panic elsewhere leaves none inconsistent.
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SendRecord {
    fn write(&self, capability: &Capability) -> Result<(), StateError> {
        let (Some(owned), Some(port)) = (&self.owned, self.port) else { return Ok(()) };
        let capability = BASE32_NOPAD.encode(capability.as_bytes());
        let receivers = self.receivers.iter().map(ToString::to_string).collect();
        let allowlist = self.allowlist.as_ref().map(Allowlist::entries);
        let entry = Entry { version: FORMAT.version, capability, port, receivers, allowlist };
        let text = serde_json::to_string(&entry).expect("plain fields are JSON");
        owned.file.replace(text.into())
    }

    /// Parses a record. Returns its capability if the record is valid.
    fn read(&mut self, text: &str) -> Option<Capability> {
        let entry: Entry = serde_json::from_str(text).ok()?;
        let secret = Zeroizing::new(BASE32_NOPAD.decode(entry.capability.as_bytes()).ok()?);
        let capability = Capability::from_bytes(secret.as_slice().try_into().ok()?);
        if entry.version != FORMAT.version || entry.port == 0 {
            return None;
        }
        let receivers = entry.receivers.iter().take(MAX_RECEIVERS);
        self.receivers = receivers.filter_map(|text| text.parse().ok()).collect();
        match (&mut self.allowlist, &entry.allowlist) {
            (Some(allowlist), Some(entries)) => allowlist.read(entries),
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

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// Returns whether a record is useless and may be replaced.
fn is_worthless(error: &StateError) -> bool {
    matches!(error.kind(), StateErrorKind::Damaged | StateErrorKind::Exposed)
}

/// Removes unused records older than [`MAX_AGE`], and locks without a record. A failure is retried
/// at the next send.
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
