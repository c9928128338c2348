//! A file of unknown length: grows under a hidden name and gets its final name when it is complete.
//!
//! Without a length there is no journal, so an unfinished file cannot be continued by another
//! process. It is removed on drop. If the process is killed, the next file of that name removes the
//! leftovers.

use std::num::NonZeroU64;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{Advice, AtFlags, Mode, fadvise, unlinkat};
use rustix::io::Errno;

use crate::commit::{CommitOptions, Committed, HiddenFile, commit};
use crate::error::{Context, Error, Result};
use crate::hash::Root;
use crate::hidden_names::replacement_name;
use crate::path::{RelPath, shown};
use crate::small_file::create_hidden;
use crate::target::TargetDir;
use crate::tree::Tree;
use crate::write::write_all_at;

/// Mode of a file if the sender specifies no mode. The umask applies.
const MODE: Mode = Mode::from_raw_mode(0o666);

/// Bytes after which their write-back begins, so that little work is left for the end.
const WRITE_BACK_BYTES: u64 = 8 * 1024 * 1024;

/// A file of unknown length; see the module documentation.
#[derive(Debug)]
pub struct StreamFile {
    target: TargetDir,
    dir: Arc<OwnedFd>,
    fd: OwnedFd,
    path: RelPath,
    hidden: Vec<u8>,
    written: u64,
    /// Number of bytes handed to write-back.
    begun: u64,
    has_name: bool,
}

impl TargetDir {
    /// Creates the file `path`, to be written from its first byte to its last. [`Error::InUse`] if
    /// another process is writing it.
    pub fn create_stream(&self, path: &RelPath) -> Result<StreamFile> {
        let dir = self.parent(path)?;
        let hidden = replacement_name(path.file_name());
        let fd = create_hidden(dir.as_fd(), &hidden, MODE).map_err(|errno| match errno {
            Errno::BUSY => Error::InUse { path: shown(path.as_bytes()) },
            errno => Error::os(path.as_bytes(), "create it", errno),
        })?;
        let (target, path) = (self.clone(), path.clone());
        Ok(StreamFile { target, dir, fd, path, hidden, written: 0, begun: 0, has_name: false })
    }
}

impl StreamFile {
    /// Appends verified bytes.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let written = write_all_at(self.fd.as_fd(), &[bytes], self.written);
        written.context(self.path.as_bytes(), "write it")?;
        self.written += bytes.len() as u64;
        if self.written - self.begun >= WRITE_BACK_BYTES {
            // With DontNeed, Linux begins to write the range back. The call is only a hint and its
            // error is ignored; the final sync reports lost content.
            let len = NonZeroU64::new(self.written - self.begun);
            let _ = fadvise(&self.fd, self.begun, len, Advice::DontNeed);
            self.begun = self.written;
        }
        Ok(())
    }

    /// Returns the target directory.
    pub fn target(&self) -> &TargetDir {
        &self.target
    }

    /// Gives the file its name. `root` is the BLAKE3 hash of the written content.
    pub fn finish(mut self, root: &Root, commit_options: CommitOptions) -> Result<Committed> {
        if commit_options.sync {
            self.target.sync_file(self.fd.as_fd(), &self.path)?;
        }
        // Only the name itself is compared; a numbered name belongs to another file.
        let same = |_: std::os::fd::BorrowedFd<'_>, name: &[u8]| {
            name == self.path.file_name()
                && self
                    .target
                    .root_of(&self.path, Tree::Blake3, || true)
                    .is_ok_and(|there| there.as_ref() == Some(root))
        };
        let file = HiddenFile { fd: &self.fd, name: &self.hidden, same };
        let committed = commit(&file, self.dir.as_fd(), &self.path, commit_options.on_conflict)?;
        self.has_name = committed.outcome.is_new();
        self.target.note_parent(&self.path);
        Ok(committed)
    }
}

impl Drop for StreamFile {
    fn drop(&mut self) {
        if !self.has_name {
            // If the removal fails, the next file of that name clears it.
            let _ = unlinkat(&self.dir, &self.hidden, AtFlags::empty());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::commit::{OnConflict, Outcome};

    fn finish(dir: &std::path::Path, content: &[u8], on_conflict: OnConflict) -> Committed {
        let target = TargetDir::open(dir).unwrap();
        let mut file = target.create_stream(&RelPath::parse(b"a.txt").unwrap()).unwrap();
        content.chunks(3).for_each(|piece| file.write(piece).unwrap());
        let commit_options = CommitOptions { on_conflict, sync: true };
        file.finish(blake3::hash(content).as_bytes(), commit_options).unwrap()
    }

    #[test]
    fn a_stream_gets_its_name_at_the_end_and_replaces_nothing_unasked() {
        let dir = tempfile::tempdir().unwrap();
        let read = |name: &str| fs::read(dir.path().join(name)).unwrap();
        assert_eq!(finish(dir.path(), b"first", OnConflict::Rename).outcome, Outcome::Created);
        assert_eq!(finish(dir.path(), b"first", OnConflict::Rename).outcome, Outcome::AlreadyHere);
        assert_eq!(finish(dir.path(), b"other", OnConflict::Skip).outcome, Outcome::Skipped);
        assert_eq!(read("a.txt"), b"first");
        let renamed = finish(dir.path(), b"other", OnConflict::Rename);
        assert_eq!((renamed.outcome, read("a (1).txt")), (Outcome::Renamed, b"other".to_vec()));
        assert_eq!(finish(dir.path(), b"last", OnConflict::Overwrite).outcome, Outcome::Replaced);
        assert_eq!(read("a.txt"), b"last");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn an_unfinished_stream_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let target = TargetDir::open(dir.path()).unwrap();
        let path = RelPath::parse(b"a").unwrap();
        let mut file = target.create_stream(&path).unwrap();
        file.write(b"half").unwrap();
        assert!(matches!(target.create_stream(&path), Err(Error::InUse { .. })));
        drop(file);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
