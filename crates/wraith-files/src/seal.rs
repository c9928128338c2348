//! Completion of a part file: proves its root (the hash of the file), sets mode and time, and gives
//! the file its name. After the proof, nothing is written to the file.

use std::os::fd::{AsFd, BorrowedFd};

use crate::commit::{CommitOptions, Committed, HiddenFile, OnConflict, commit};
use crate::compare::{has_root, has_root_open};
use crate::error::{Error, Result};
use crate::hash::{CHUNK_BYTES, Root};
use crate::journal::JournalEntry;
use crate::only_writer::OnlyWriter;
use crate::part_file::{PartFile, PartState};
use crate::path::shown;
use crate::read::read_chunk;
use crate::runs::{Run, RunCursor, Runs};
use crate::write::{is_all_zero, set_metadata};

impl PartFile {
    /// Gives the complete file its mode, time and name if `root` is its hash. Otherwise returns
    /// [`Error::Mismatch`] and deletes the part. After any other error the part stays as it is, to
    /// be finished later.
    pub fn finish(&self, root: &Root, commit_options: CommitOptions) -> Result<Committed> {
        self.seal(root)?;
        if commit_options.sync {
            self.target.stable.sync_one(self.fd(), self.path.as_bytes())?;
        }
        self.name(commit_options.on_conflict)
    }

    /// The first half of [`Self::finish`]: proves the root and sets mode and time. Nothing is
    /// written to the part after that. If another program has written to it, the whole part is read
    /// again. If its content is not the verified one, returns [`Error::Changed`], and the part
    /// stays for a recheck.
    pub fn seal(&self, root: &Root) -> Result<()> {
        let mut state = self.lock();
        if state.journal.is_none() || !state.writing.is_empty() {
            return Err(self.misuse("it is finished already, or still being written"));
        }
        if state.have.count() != self.chunks() {
            return Err(self.misuse("chunks are missing"));
        }
        let holes = std::mem::take(&mut state.unhashed_holes);
        holes.iter().for_each(|hole| state.root.set_zeros(hole, self.size));
        if state.root.finish(self.size) != Some(*root) {
            self.remove(&mut state)?;
            return Err(Error::Mismatch { path: shown(self.path.as_bytes()) });
        }
        let fd = self.fd();
        let is_alone = state.writer.is_alone(fd);
        self.target.add_metadata_errors(set_metadata(fd, self.mode, self.mtime));
        // From here on the stamp detects every change, so no change falls between the stamp and a
        // check.
        let writer = OnlyWriter::of(fd, self.size);
        if !is_alone || !self.has_zeros_in_holes(&mut state) {
            let is_right = has_root_open(fd, self.size, (self.tree, root));
            if !is_right || !writer.is_alone(fd) {
                state.writer.disturb();
                return Err(Error::Changed { path: shown(self.path.as_bytes()) });
            }
        }
        state.writer = writer;
        state.sealed = Some(*root);
        Ok(())
    }

    /// The second half: gives the sealed file its name. Returns [`Error::Changed`] if another
    /// program has written to the file after [`Self::seal`].
    pub fn name(&self, on_conflict: OnConflict) -> Result<Committed> {
        let mut state = self.lock();
        let Some(root) = state.sealed.filter(|_| state.journal.is_some()) else {
            return Err(self.misuse("it is not complete, or finished already"));
        };
        if !state.writer.is_alone(self.fd.as_fd()) {
            return Err(Error::Changed { path: shown(self.path.as_bytes()) });
        }
        let same =
            |dir: BorrowedFd<'_>, name: &[u8]| has_root(dir, name, self.size, (self.tree, &root));
        let part = HiddenFile { fd: &self.fd, name: &self.names.part, same };
        let committed = commit(&part, self.parent.as_fd(), &self.path, on_conflict)?;
        self.target.stable.note_parent(&self.path);
        if committed.outcome.is_new() {
            self.retire(&mut state);
        } else {
            self.remove(&mut state)?;
        }
        Ok(committed)
    }

    /// Checks once more that the received holes are zeros. If another program writes into a hole in
    /// the moment of a write of this process, no other check detects that. The extent map proves
    /// nearly all holes without reading; without a map there is no such check.
    fn has_zeros_in_holes(&self, state: &mut PartState) -> bool {
        let Some(journal) = state.journal.as_mut().filter(|_| self.sparse && self.tells_holes())
        else {
            return true;
        };
        let mut buffer = vec![0; CHUNK_BYTES];
        let mut is_zero = |index| {
            let read = read_chunk(self.fd(), self.size, index, &mut buffer);
            read.is_ok_and(|read| is_all_zero(&buffer[..read]))
        };
        let mut holds = true;
        let replayed = journal.replay(|record| {
            if let JournalEntry::Hole { first, count } = record {
                let runs = Runs::of(self.fd(), RunCursor::of(self.size, true));
                holds = runs.within(&(first..first + count)).all(|run| match run {
                    Run::Hole(_) => true,
                    Run::Data(mut chunks) => chunks.all(&mut is_zero),
                });
            }
            holds
        });
        holds && replayed.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    use super::*;
    use crate::entry::{Entry, Kind, Mtime};
    use crate::hash::small_root;
    use crate::path::RelPath;
    use crate::target::TargetDir;
    use crate::tree::Tree;

    #[test]
    fn a_foreign_write_into_a_hole_during_an_own_write_is_detected() {
        let dir = tempfile::tempdir_in(".").unwrap();
        let target = TargetDir::open(dir.path()).unwrap();
        let mut bytes = vec![0; 9 * CHUNK_BYTES];
        bytes[..CHUNK_BYTES].fill(1);
        let kind = Kind::File { size: bytes.len() as u64, sparse: Some(Tree::Blake3) };
        let path = RelPath::parse(b"f").unwrap();
        let entry = Entry { path, kind, mode: 0o644, mtime: Mtime { s: 5, ns: 5 } };
        let part = target.open_or_resume(&entry, &[1; 32]).unwrap();
        let first = &bytes[..CHUNK_BYTES];
        part.write_hole(1..9).unwrap();
        let mut claim = part.claim(0..1).unwrap().unwrap();
        claim.has_written = true;
        let theirs = File::options().write(true).open(dir.path().join(".f.wraith-part")).unwrap();
        theirs.write_all_at(b"theirs", 5 * CHUNK_BYTES as u64 + 9).unwrap();
        drop(claim);
        part.write_chunk(0, &[first], Tree::Blake3.chunk_cv(0, &[first])).unwrap();
        let root = small_root(&bytes);
        let finished = part.finish(&root, CommitOptions::default());
        assert!(matches!(finished, Err(Error::Changed { .. })), "{finished:?}");
        drop(part);
        // Only that chunk is fetched again.
        let mut part = target.open_or_resume(&entry, &[1; 32]).unwrap();
        part.recheck(|_| true).unwrap();
        assert!(part.have().missing(9).eq(std::iter::once(5..6)));
        part.write_hole(5..6).unwrap();
        part.finish(&root, CommitOptions::default()).unwrap();
        drop(part);
        assert!(std::fs::read(dir.path().join("f")).unwrap() == bytes);
    }
}
