//! What a send must remember so that the same send, begun again after a crash, offers the same things under the same ticket: the
//! capability secret and the port; for whom it is good, if a code brings it; who has come to fetch, so that they find the
//! sender again where its address is another one by then; and which content the files had, so that they need not be read
//! again ([`SentRoots`]).
//!
//! A capability that a code brings is good for the identities that proved the words of the code ([`super::allowlist`]), and is
//! never the one of a ticket that people carry, which is good for whoever has it: the two are different records.
//!
//! Invariant: at most one process uses a record at a time (it holds a lock as long as the send runs), so two sends of the same
//! paths never share a secret. A record is removed once the receiver has everything.

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
use super::dir::{StateDir, is_absent};
use super::error::{StateError, StateErrorKind};
use super::file::{Format, StateFile};
use super::identity::random;
use super::lock_file::{lock, lock_patiently};

const FOLDER: &str = "sends";
const LOCK: &str = "lock";
const ROOTS: &str = "roots";
/// Receivers of one send that are remembered. More at once find the sender by its ticket's addresses, or by a new ticket.
pub const MAX_RECEIVERS: usize = 16;
/// A ticket nobody used for a week is forgotten: long enough for an interrupted transfer over a holiday, short enough
/// that a secret does not stay valid for ever.
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
    /// NodeIds of those who have come to fetch, the last first.
    receivers: Vec<String>,
    /// For whom it is good; none of a ticket that people carry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    allowlist: Option<Vec<AllowedEntry>>,
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
    allowlist: Option<Allowlist>,
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
    /// What is remembered of an unfinished send of these paths (canonical, in this order) to this recipient, or a new secret.
    ///
    /// # Errors
    /// The record cannot be read or is of a newer version, or the system has no randomness.
    pub fn open(
        state: &StateDir,
        canonical_paths: &[PathBuf],
        recipient: &Recipient,
    ) -> Result<Self, StateError> {
        let Some(folder) = state.with_subfolder(FOLDER)? else {
            return Self::unremembered(recipient);
        };
        forget_old(folder);
        let name = Path::new(FOLDER).join(recipient.record_name(canonical_paths));
        let file = StateFile::new(folder, name, FORMAT);
        let lock = file.path().with_extension(LOCK);
        let failed = |e| StateError::disk(format_args!("cannot use {}", file.path().display()), &e);
        let Some(locked) = lock_patiently(&lock).map_err(failed)? else {
            return Self::unremembered(recipient);
        };
        let text = match file.read() {
            Err(error) if is_worthless(&error) => None,
            text => text?,
        };
        let mut send = Self::unremembered(recipient)?;
        let mut remembered = send.lock();
        remembered.owned = Some(Owned { file, lock, _locked: locked });
        let found = text.and_then(|text| remembered.read(&text));
        drop(remembered);
        send.capability = found.unwrap_or(send.capability);
        Ok(send)
    }

    /// A new secret that nothing is remembered of.
    ///
    /// # Errors
    /// The system has no randomness.
    pub fn unremembered(recipient: &Recipient) -> Result<Self, StateError> {
        let (allowlist, receivers) = (recipient.allowlist(), Vec::new());
        let remembered = Remembered { port: None, receivers, allowlist, owned: None };
        Ok(Self { capability: new_capability()?, remembered: Mutex::new(remembered) })
    }

    /// Begins anew: whatever an earlier run gave to anybody is worth nothing from now on.
    ///
    /// # Errors
    /// What that run wrote down cannot be removed, or the system has no randomness.
    pub fn renew(&mut self) -> Result<(), StateError> {
        self.capability = new_capability()?;
        let mut remembered = self.lock();
        (remembered.port, remembered.receivers) = (None, Vec::new());
        if let Some(owned) = &remembered.owned {
            // Marks under another key, which nobody can read any more.
            let _ = fs::remove_file(owned.file.path().with_extension(ROOTS));
            remove(owned.file.path()).map_err(|e| {
                StateError::disk(format_args!("cannot remove {}", owned.file.path().display()), &e)
            })?;
        }
        if let Some(allowlist) = &mut remembered.allowlist {
            allowlist.read(&[]);
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

    /// Remembers the secret with the port that is in use now, and that it is in use. Call before the ticket is shown.
    ///
    /// # Errors
    /// The record cannot be written.
    pub fn remember(&self, port: u16) -> Result<(), StateError> {
        self.change(|remembered| {
            remembered.port = Some(port);
            true
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
        self.change(|Remembered { receivers, allowlist, .. }| {
            receivers.retain(|known| *known != receiver);
            allowlist.iter_mut().for_each(|allowlist| allowlist.set(receiver, Stage::Done));
            true
        })
    }

    /// Whether the secret is good for this one.
    pub fn admits(&self, receiver: NodeId) -> bool {
        self.lock().allowlist.as_ref().is_none_or(|allowlist| allowlist.admits(receiver))
    }

    /// For whom the secret is good; None: for whoever has it.
    pub fn allowed(&self) -> Option<Vec<NodeId>> {
        self.lock().allowlist.as_ref().map(Allowlist::nodes)
    }

    /// A code brought the secret to this one: it is good for it from now on.
    ///
    /// # Errors
    /// The record cannot be written. It holds all the same until this is dropped.
    pub fn admit(&self, receiver: NodeId) -> Result<(), StateError> {
        self.change(|Remembered { allowlist, .. }| {
            allowlist.iter_mut().for_each(|allowlist| allowlist.admit(receiver));
            allowlist.is_some()
        })
    }

    /// This one has accepted, and its files begin to move.
    ///
    /// # Errors
    /// The record cannot be written.
    pub fn has_begun(&self, receiver: NodeId) -> Result<(), StateError> {
        self.change(|Remembered { allowlist, .. }| {
            allowlist.iter_mut().for_each(|allowlist| allowlist.set(receiver, Stage::Begun));
            allowlist.is_some()
        })
    }

    /// The send was stopped, or failed, in good order: it stays good for those who have begun to receive, and for those whom the
    /// user knows; if there are none, it is forgotten. A send that dies is remembered as it was.
    pub fn settle(&self, is_known: impl Fn(NodeId) -> bool) {
        let settled = self.change(|remembered| {
            let Remembered { receivers, allowlist: Some(allowlist), .. } = remembered else {
                return false;
            };
            allowlist.settle(is_known);
            receivers.retain(|receiver| allowlist.admits(*receiver));
            true
        });
        // What cannot be written cannot be kept either.
        if settled.is_err() || self.allowed().is_some_and(|allowlist| allowlist.is_empty()) {
            self.forget();
        }
    }

    /// The receiver has everything: the ticket ends here. Whether nothing of it is left; what is left expires.
    pub fn forget(&self) -> bool {
        let Some(owned) = self.lock().owned.take() else { return true };
        let is_gone = remove(owned.file.path()).is_ok();
        let _ = fs::remove_file(owned.file.path().with_extension(ROOTS));
        let _ = fs::remove_file(&owned.lock);
        is_gone
    }

    /// Whether an earlier send of this wrote something down that may still be there.
    pub fn may_be_remembered(
        state: &StateDir,
        canonical_paths: &[PathBuf],
        recipient: &Recipient,
    ) -> bool {
        let name = Path::new(FOLDER).join(recipient.record_name(canonical_paths));
        state.folder().is_some_and(|folder| !is_absent(&folder.join(name)))
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
        let allowlist = self.allowlist.as_ref().map(Allowlist::entries);
        let entry = Entry { version: FORMAT.version, capability, port, receivers, allowlist };
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

/// Whether a record is no use to anybody and may be replaced.
fn is_worthless(error: &StateError) -> bool {
    matches!(error.kind(), StateErrorKind::Damaged | StateErrorKind::Exposed)
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
