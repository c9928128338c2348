//! The file whose lock says that a process uses the record beside it. It goes with the record.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

/// A tenth of a second in all: an ending process needs less, and a second send of the same paths hardly notices.
const LOCK_TRIES: u32 = 20;
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// As [`lock`], but a process that was just killed gets a moment to let go.
pub(crate) fn lock_patiently(path: &Path) -> io::Result<Option<File>> {
    for _ in 0..LOCK_TRIES {
        if let Some(file) = lock(path)? {
            return Ok(Some(file));
        }
        std::thread::sleep(LOCK_PAUSE);
    }
    lock(path)
}

/// Makes and locks the file of a lock; None when another process has it.
pub(super) fn lock(path: &Path) -> io::Result<Option<File>> {
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
