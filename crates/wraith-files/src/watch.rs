//! Reports changes of the files in folders, by inotify.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;

/// Buffer for a few inotify events with names of maximum length.
const EVENTS_BYTES: usize = 4096;

/// A watch of folders. Its descriptor becomes readable once a file there is replaced, written or
/// removed.
#[derive(Debug)]
pub struct FolderWatch(OwnedFd);

impl FolderWatch {
    /// Watches no folder yet.
    ///
    /// # Errors
    /// The kernel's limit of watches is reached, or it has no inotify.
    pub fn new() -> io::Result<Self> {
        Ok(Self(inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?))
    }

    /// Watches `folder`, too. Adding a folder again changes nothing.
    ///
    /// # Errors
    /// As [`Self::new`], or the folder does not exist.
    pub fn add(&self, folder: &Path) -> io::Result<()> {
        // Replacing a file moves it to its name; editing in place closes it.
        let what = WatchFlags::MOVED_TO
            | WatchFlags::MOVED_FROM
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::DELETE;
        inotify::add_watch(&self.0, folder, what)?;
        Ok(())
    }

    /// Takes the changes so far, without waiting. Returns whether there were any.
    pub fn take_changes(&self) -> bool {
        let mut buffer = [MaybeUninit::uninit(); EVENTS_BYTES];
        let mut reader = inotify::Reader::new(&self.0, &mut buffer);
        let mut any = false;
        loop {
            match reader.next() {
                Ok(_) => any = true,
                Err(Errno::INTR) => {}
                Err(_) => return any,
            }
        }
    }
}

impl AsFd for FolderWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for FolderWatch {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn replaced_written_and_removed_files_are_changes_and_reads_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "old").unwrap();
        let watch = FolderWatch::new().unwrap();
        watch.add(folder.path()).unwrap();
        assert!(!watch.take_changes());
        fs::read(&path).unwrap();
        assert!(!watch.take_changes());
        fs::write(&path, "new").unwrap();
        assert!(watch.take_changes() && !watch.take_changes());
        fs::rename(&path, folder.path().join("other")).unwrap();
        assert!(watch.take_changes());
        fs::remove_file(folder.path().join("other")).unwrap();
        assert!(watch.take_changes());
        assert!(watch.add(&path).is_err());
    }
}
