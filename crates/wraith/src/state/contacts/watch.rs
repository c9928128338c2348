//! Watches the contacts file for changes by another process or by hand.
//!
//! Where inotify works, the watch waits for its events and uses no timer. If inotify is unavailable
//! (the kernel's limit of watches is reached), the watch reports a possible change every
//! [`RELOAD_INTERVAL`], without looking at the file. Contacts in memory report their own changes.
//! After each report, the contacts are read again.

use std::io;
use std::path::Path;
use std::time::Duration;

use tokio::io::unix::AsyncFd;
use tokio::sync::watch;
use tokio::time::sleep;
use wraith_files::FolderWatch;

use crate::state::StateDir;

/// File name within the state folder ([`crate::state`]).
const CONTACTS_FILE: &str = "contacts.toml";
/// Poll interval if inotify is unavailable.
const RELOAD_INTERVAL: Duration = Duration::from_secs(2);

/// A watch of the contacts file (see the module docs).
#[derive(Debug)]
pub(crate) enum ContactsWatch {
    Told(AsyncFd<FolderWatch>),
    /// The kernel's limit of watches is reached.
    Unwatched,
    InMemory(watch::Receiver<()>),
}

impl ContactsWatch {
    pub fn new(state: &StateDir) -> Self {
        match state.folder() {
            Some(folder) => watched(folder).map_or(Self::Unwatched, Self::Told),
            None => Self::InMemory(state.contacts().changes_in_memory()),
        }
    }

    /// Waits until something in the folder changes. Cancel-safe.
    pub async fn changed(&mut self) {
        let watch = match self {
            Self::Told(watch) => watch,
            Self::Unwatched => return sleep(RELOAD_INTERVAL).await,
            Self::InMemory(changes) => {
                if changes.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
                return;
            }
        };
        loop {
            let Ok(mut ready) = watch.readable().await else {
                return std::future::pending().await;
            };
            let any = watch.get_ref().take_changes();
            ready.clear_ready();
            if any {
                return;
            }
        }
    }
}

/// Watches the folder and, if the file is a link, the folder of its target.
fn watched(folder: &Path) -> io::Result<AsyncFd<FolderWatch>> {
    let watch = FolderWatch::new()?;
    watch.add(folder)?;
    let file = folder.join(CONTACTS_FILE).canonicalize().ok();
    if let Some(elsewhere) = file.as_deref().and_then(Path::parent) {
        watch.add(elsewhere)?;
    }
    registered(watch)
}

/// Registers the descriptor. The call is deprecated because it accepts types that may close their
/// descriptor early; a [`FolderWatch`] keeps it open.
#[allow(deprecated, reason = "sound for a FolderWatch, and the other call is unsafe")]
fn registered(watch: FolderWatch) -> io::Result<AsyncFd<FolderWatch>> {
    AsyncFd::new(watch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_replaced_file_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let mut watch = ContactsWatch::new(&StateDir::in_folder(folder.path()));
        std::fs::write(folder.path().join("new"), "x").unwrap();
        watch.changed().await;
        std::fs::rename(folder.path().join("new"), folder.path().join("contacts.toml")).unwrap();
        watch.changed().await;
    }
}
