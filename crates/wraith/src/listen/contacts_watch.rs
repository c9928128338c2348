//! Hears of changes to the file of contacts: by another process, or by hand.
//!
//! Invariant: it waits for the kernel's word (inotify) and has no timer. Where the kernel gives none, changes may be at any time:
//! then it tells of one now and then. Contacts in memory have no watch.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;
use tokio::io::unix::AsyncFd;
use tokio::time::sleep;

use crate::state::StateDir;

/// Room for a few events with the longest names.
const EVENTS_BYTES: usize = 4096;

/// A part of the state ([`crate::state`]).
const CONTACTS_FILE: &str = "contacts.toml";
/// How often the contacts are looked at where the kernel does not tell.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// See the module.
#[derive(Debug)]
pub(super) enum ContactsWatch {
    Told(AsyncFd<OwnedFd>),
    /// The kernel has no more watches.
    Untold,
    InMemory,
}

impl ContactsWatch {
    pub fn new(state: &StateDir) -> Self {
        let Some(folder) = state.folder() else { return Self::InMemory };
        watched(folder).map_or(Self::Untold, Self::Told)
    }

    /// Waits until something in the folder has changed. Cancel-safe.
    pub async fn changed(&mut self) {
        let inotify = match self {
            Self::Told(inotify) => inotify,
            Self::Untold => return sleep(LOOK_INTERVAL).await,
            Self::InMemory => return std::future::pending().await,
        };
        loop {
            let Ok(mut ready) = inotify.readable().await else {
                return std::future::pending().await;
            };
            let mut buffer = [MaybeUninit::uninit(); EVENTS_BYTES];
            let mut reader = inotify::Reader::new(inotify.get_ref(), &mut buffer);
            let mut any = false;
            loop {
                match reader.next() {
                    Ok(_) => any = true,
                    Err(Errno::INTR) => {}
                    Err(_) => break,
                }
            }
            ready.clear_ready();
            if any {
                return;
            }
        }
    }
}

/// Watches the folder, and the one that the file is in if it is a link.
fn watched(folder: &Path) -> Option<AsyncFd<OwnedFd>> {
    let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok()?;
    // A file that is replaced is moved to its name; one that is edited in place is closed.
    let what = WatchFlags::MOVED_TO
        | WatchFlags::MOVED_FROM
        | WatchFlags::CLOSE_WRITE
        | WatchFlags::DELETE;
    inotify::add_watch(&inotify, folder, what).ok()?;
    let file = folder.join(CONTACTS_FILE).canonicalize().ok();
    if let Some(elsewhere) = file.as_deref().and_then(Path::parent) {
        // The same folder again changes nothing.
        inotify::add_watch(&inotify, elsewhere, what).ok()?;
    }
    registered(inotify).ok()
}

/// The call is deprecated because it takes types that may close their descriptor early. An [`OwnedFd`] keeps it open.
#[allow(deprecated, reason = "sound for an OwnedFd, and the other call is unsafe")]
fn registered(inotify: OwnedFd) -> std::io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::new(inotify)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_that_is_replaced_is_heard_of() {
        let folder = tempfile::tempdir().unwrap();
        let mut watch = ContactsWatch::new(&StateDir::in_folder(folder.path()));
        std::fs::write(folder.path().join("new"), "x").unwrap();
        watch.changed().await;
        std::fs::rename(folder.path().join("new"), folder.path().join("contacts.toml")).unwrap();
        watch.changed().await;
    }
}
