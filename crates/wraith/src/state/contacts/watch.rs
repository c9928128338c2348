//! Watches the contacts file for changes by another process or by hand.
//!
//! Where inotify works, the watch waits for its events and uses no timer. If inotify is unavailable
//! (the kernel's limit of watches is reached), the watch reports a possible change every
//! [`RELOAD_INTERVAL`], without looking at the file. Contacts in memory are not watched: no change
//! is ever reported. After each report, the listener reads the file again.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;
use tokio::io::unix::AsyncFd;
use tokio::time::sleep;

use crate::state::StateDir;

/// Buffer for a few inotify events with names of maximum length.
const EVENTS_BYTES: usize = 4096;

/// File name within the state folder ([`crate::state`]).
const CONTACTS_FILE: &str = "contacts.toml";
/// Poll interval if inotify is unavailable.
const RELOAD_INTERVAL: Duration = Duration::from_secs(2);

/// A watch of the contacts file (see the module docs).
#[derive(Debug)]
pub(crate) enum ContactsWatch {
    Told(AsyncFd<OwnedFd>),
    /// The kernel's limit of watches is reached.
    Unwatched,
    InMemory,
}

impl ContactsWatch {
    pub fn new(state: &StateDir) -> Self {
        let Some(folder) = state.folder() else { return Self::InMemory };
        watched(folder).map_or(Self::Unwatched, Self::Told)
    }

    /// Waits until something in the folder changes. Cancel-safe.
    pub async fn changed(&mut self) {
        let inotify = match self {
            Self::Told(inotify) => inotify,
            Self::Unwatched => return sleep(RELOAD_INTERVAL).await,
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

/// Watches the folder and, if the file is a link, the folder of its target.
fn watched(folder: &Path) -> Option<AsyncFd<OwnedFd>> {
    let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok()?;
    // Replacing a file moves it to its name; editing in place closes it.
    let what = WatchFlags::MOVED_TO
        | WatchFlags::MOVED_FROM
        | WatchFlags::CLOSE_WRITE
        | WatchFlags::DELETE;
    inotify::add_watch(&inotify, folder, what).ok()?;
    let file = folder.join(CONTACTS_FILE).canonicalize().ok();
    if let Some(elsewhere) = file.as_deref().and_then(Path::parent) {
        // Adding the same folder again changes nothing.
        inotify::add_watch(&inotify, elsewhere, what).ok()?;
    }
    registered(inotify).ok()
}

/// Registers the descriptor. The call is deprecated because it accepts types that may close their
/// descriptor early; an [`OwnedFd`] keeps it open.
#[allow(deprecated, reason = "sound for an OwnedFd, and the other call is unsafe")]
fn registered(inotify: OwnedFd) -> std::io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::new(inotify)
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
