//! Hears of changes to the file of contacts: by another process, or by hand.
//!
//! Invariant: it waits for the kernel's word (inotify) and has no timer; where the kernel gives none, or the contacts are in
//! memory, no change is heard of.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;
use tokio::io::unix::AsyncFd;

use crate::state::StateDir;

/// Room for a few events with the longest names.
const EVENTS_BYTES: usize = 4096;

/// See the module.
#[derive(Debug)]
pub(super) struct ContactsWatch(Option<AsyncFd<OwnedFd>>);

impl ContactsWatch {
    pub fn new(state: &StateDir) -> Self {
        let watch = state.folder().and_then(|folder| {
            let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok()?;
            // A file that is replaced is moved to its name; one that is edited in place is closed.
            let what = WatchFlags::MOVED_TO | WatchFlags::CLOSE_WRITE | WatchFlags::DELETE;
            inotify::add_watch(&inotify, folder, what).ok()?;
            registered(inotify).ok()
        });
        Self(watch)
    }

    /// Waits until something in the folder has changed. Cancel-safe.
    pub async fn changed(&mut self) {
        let Some(inotify) = &self.0 else { return std::future::pending().await };
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
