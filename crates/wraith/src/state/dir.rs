//! Location of the state: a folder, or memory only.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use wraith_crypto::identity::SecretIdentity;

use super::commit;
use super::contacts::ContactStore;
use super::error::StateError;
use super::folder::{check_folder, is_absent};
use super::identity;

/// The persistent state of a machine, or of one program on it. Clones are handles of the same
/// state.
#[derive(Clone, Debug)]
pub struct StateDir(Arc<Backing>);

#[derive(Debug)]
enum Backing {
    Folder(PathBuf),
    Memory { identity: Box<SecretIdentity>, contacts: ContactStore },
}

/// Returns the folder of the `wraith` program: `$WRAITH_HOME`, else `$XDG_CONFIG_HOME/wraith`, else
/// `~/.config/wraith`. It need not exist. `None` if none of these variables is set.
pub fn users_folder() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    variable("WRAITH_HOME")
        .or_else(|| variable("XDG_CONFIG_HOME").map(|c| c.join("wraith")))
        .or_else(|| variable("HOME").map(|h| h.join(".config/wraith")))
}

impl StateDir {
    /// Uses the state in this folder, which is created on the first write.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        Self(Arc::new(Backing::Folder(folder.into())))
    }

    /// Creates a new identity and empty contacts, which last as long as this and its clones.
    /// Nothing is written to disk, and no later run can resume a transfer.
    ///
    /// # Errors
    /// The system provides no randomness.
    pub fn in_memory() -> Result<Self, StateError> {
        let identity = Box::new(SecretIdentity::from_seed(*identity::new_seed()?));
        Ok(Self(Arc::new(Backing::Memory { identity, contacts: ContactStore::in_memory() })))
    }

    /// Returns the folder; `None` in memory.
    pub fn folder(&self) -> Option<&Path> {
        match &*self.0 {
            Backing::Folder(folder) => Some(folder),
            Backing::Memory { .. } => None,
        }
    }

    /// Returns whether there is an identity, or may be one that cannot be examined.
    pub fn may_have_identity(&self) -> bool {
        match &*self.0 {
            Backing::Folder(folder) => !is_absent(&folder.join(identity::IDENTITY_FILE)),
            Backing::Memory { .. } => true,
        }
    }

    /// Checks that only this user can have written the state.
    ///
    /// # Errors
    /// Other users can write to the folder, or it belongs to another user.
    pub fn check(&self) -> Result<(), StateError> {
        self.folder().map_or(Ok(()), check_folder)
    }

    /// Returns the identity; creates it on first use.
    ///
    /// # Errors
    /// The file cannot be read or created, is not an identity, or can be read by other users.
    pub fn identity(&self) -> Result<SecretIdentity, StateError> {
        match &*self.0 {
            Backing::Folder(folder) => identity::load_or_make(folder),
            Backing::Memory { identity, .. } => Ok((**identity).clone()),
        }
    }

    /// Returns the store of contacts.
    pub fn contacts(&self) -> ContactStore {
        match &*self.0 {
            Backing::Folder(folder) => ContactStore::in_folder(folder),
            Backing::Memory { contacts, .. } => contacts.clone(),
        }
    }

    /// Creates a folder inside the state folder if it is missing, and returns the state folder;
    /// `None` in memory.
    pub(super) fn with_subfolder(&self, name: &str) -> Result<Option<&Path>, StateError> {
        let Some(folder) = self.folder() else { return Ok(None) };
        let inner = folder.join(name);
        commit::make_folder(&inner)
            .map_err(|e| StateError::disk(format_args!("cannot make {}", inner.display()), &e))?;
        Ok(Some(folder))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{
        ReceivedListRecorder, ReceivedStore, Recipient, SavedTicket, UnfinishedSend,
    };

    #[test]
    fn in_memory_there_are_an_identity_and_contacts_and_nothing_else_is_remembered() {
        let state = StateDir::in_memory().unwrap();
        let again = state.clone();
        assert_eq!(state.identity().unwrap().node_id(), again.identity().unwrap().node_id());
        let somebody = SecretIdentity::from_seed([1; 32]).node_id();
        let added = state.contacts().change(|book| -> Result<(), StateError> {
            Ok(book.add(&"anna".parse().unwrap(), somebody)?)
        });
        added.unwrap();
        assert!(again.contacts().load().unwrap().with(somebody).is_some());
        assert!(StateDir::in_memory().unwrap().contacts().load().unwrap().contacts().is_empty());

        let paths = [PathBuf::from("/a")];
        let send = UnfinishedSend::open(&state, &paths, &Recipient::Bearer).unwrap();
        send.remember(1).unwrap();
        let secret = send.capability().clone();
        drop(send);
        assert_ne!(
            UnfinishedSend::open(&state, &paths, &Recipient::Bearer).unwrap().capability(),
            &secret
        );
        let code = wraith_discovery::Code::new(7, [1; 4]);
        assert_eq!(SavedTicket::of(&state, &code).ticket().unwrap(), None);
        assert!(ReceivedStore::of(&state).unwrap().all().unwrap().is_empty());
        let _ = ReceivedListRecorder::new(&state, Path::new("/"), Some(1 << 20));
    }
}
