//! Atomic replacement of state files: write beside the file, flush to disk, rename. No other code
//! writes them.
//!
//! Invariant: a reader finds the complete old content or the complete new one, at any time and
//! after any crash. The rename needs a [`FolderLock`], so a holder that has read the file knows
//! what it replaces.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::{NamedTempFile, PersistError};

const LOCK: &str = ".lock";
/// Prefix of a file's name until it is renamed.
const NEW: &str = ".wraith-new.";
/// A file with this prefix and of this age is abandoned.
const NEW_LIFE: Duration = Duration::from_secs(24 * 3600);

/// The lock of a folder, held until dropped. Every change of the state takes the lock of its folder
/// first.
#[derive(Debug)]
pub(super) struct FolderLock {
    _file: File,
}

impl FolderLock {
    /// Creates the folder if it is missing, and waits for its lock.
    pub(super) fn wait(folder: &Path) -> io::Result<Self> {
        make_folder(folder)?;
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(false).mode(0o600);
        let file = file.open(folder.join(LOCK))?;
        file.lock()?;
        Ok(Self { _file: file })
    }
}

/// Creates a folder that only its owner can enter, with its parents.
pub(super) fn make_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// New content of a file, not yet in place. Drop without [`Self::finish`] discards it.
#[derive(Debug)]
pub(super) struct Commit {
    new: NamedTempFile,
    path: PathBuf,
}

impl Commit {
    /// Starts new content for the file at `path`. If `path` is a link, its target is replaced.
    pub(super) fn start(path: &Path) -> io::Result<Self> {
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let folder = path.parent().expect("a file of the state is in a folder");
        remove_abandoned(folder);
        fault_point(CommitStep::Create)?;
        // The file is created with mode 0600.
        let new = tempfile::Builder::new().prefix(NEW).tempfile_in(folder)?;
        Ok(Self { new, path })
    }

    /// Returns the file for the new content.
    pub(super) fn file(&self) -> &File {
        self.new.as_file()
    }

    /// Moves the content into place. When this returns, it survives a power cut.
    pub(super) fn finish(self, _lock: &FolderLock) -> io::Result<()> {
        self.persist(|new, path| new.persist(path))
    }

    /// Like [`Self::finish`], for a file that must not exist yet. Fails if there is one.
    pub(super) fn finish_new(self) -> io::Result<()> {
        self.persist(|new, path| new.persist_noclobber(path))
    }

    fn persist(
        self,
        persist: impl FnOnce(NamedTempFile, &Path) -> Result<File, PersistError>,
    ) -> io::Result<()> {
        let folder = self.path.parent().expect("a file of the state is in a folder");
        fault_point(CommitStep::SyncFile)?;
        self.new.as_file().sync_all()?;
        fault_point(CommitStep::Rename)?;
        persist(self.new, &self.path)?;
        fault_point(CommitStep::SyncFolder)?;
        File::open(folder)?.sync_all()
    }
}

/// Replaces the content of the file at `path` by `bytes`.
pub(super) fn replace(path: &Path, bytes: &[u8], lock: &FolderLock) -> io::Result<()> {
    let commit = Commit::start(path)?;
    fault_point(CommitStep::Write)?;
    commit.file().write_all(bytes)?;
    commit.finish(lock)
}

/// Removes files of programs that were killed during a commit. A failure is retried at the next
/// commit.
fn remove_abandoned(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if !entry.file_name().as_encoded_bytes().starts_with(NEW.as_bytes()) {
            continue;
        }
        let written = entry.metadata().and_then(|metadata| metadata.modified());
        let age = written.ok().and_then(|time| SystemTime::now().duration_since(time).ok());
        if age.is_some_and(|age| age > NEW_LIFE) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// The steps of a commit. At each of them, the commit can fail or the program can end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommitStep {
    Create,
    Write,
    SyncFile,
    Rename,
    SyncFolder,
}

#[cfg(not(test))]
fn fault_point(_: CommitStep) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
use faults::fault_point;

#[cfg(test)]
pub(super) mod faults {
    //! Fault injection: makes a commit of this thread fail, or end the process, at a step.

    use std::cell::Cell;
    use std::io;

    use super::CommitStep;

    #[derive(Clone, Copy, Debug)]
    pub(in crate::state) enum Fault {
        Error(CommitStep),
        Kill(CommitStep),
    }

    thread_local! {
        static FAULT: Cell<Option<Fault>> = const { Cell::new(None) };
    }

    pub(in crate::state) fn set(fault: Option<Fault>) {
        FAULT.set(fault);
    }

    pub(super) fn fault_point(now: CommitStep) -> io::Result<()> {
        match FAULT.get() {
            Some(Fault::Error(step)) if step == now => {
                Err(io::Error::from_raw_os_error(libc::ENOSPC))
            }
            Some(Fault::Kill(step)) if step == now => std::process::abort(),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::faults::Fault;
    use super::*;

    const STEPS: [CommitStep; 5] = [
        CommitStep::Create,
        CommitStep::Write,
        CommitStep::SyncFile,
        CommitStep::Rename,
        CommitStep::SyncFolder,
    ];
    /// The file that a child process replaces, and the step at which it exits.
    const CHILD: &str = "WRAITH_TEST_COMMIT";

    /// Returns the expected content of the file if the commit ends at `step`.
    fn expected(step: CommitStep) -> &'static [u8] {
        if step == CommitStep::SyncFolder { b"new" } else { b"old" }
    }

    fn replace_by_new(path: &Path) -> io::Result<()> {
        let lock = FolderLock::wait(path.parent().unwrap())?;
        replace(path, b"new", &lock)
    }

    #[test]
    fn a_commit_that_fails_at_any_step_leaves_the_old_file_and_nothing_beside_it() {
        for step in STEPS {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("file");
            fs::write(&path, b"old").unwrap();
            faults::set(Some(Fault::Error(step)));
            let failed = replace_by_new(&path);
            faults::set(None);
            assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::StorageFull);
            assert_eq!(fs::read(&path).unwrap(), expected(step), "{step:?}");
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "the file and its lock");
            replace_by_new(&path).unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"new");
        }
    }

    #[test]
    fn a_program_killed_at_any_step_leaves_the_old_file_and_no_lock() {
        if let Some(child) = std::env::var_os(CHILD) {
            let (step, path) = child.to_str().unwrap().split_once(' ').unwrap();
            let step = STEPS.into_iter().find(|s| format!("{s:?}") == step).unwrap();
            faults::set(Some(Fault::Kill(step)));
            replace_by_new(Path::new(path)).unwrap();
            return;
        }
        let name =
            "state::commit::tests::a_program_killed_at_any_step_leaves_the_old_file_and_no_lock";
        for step in STEPS {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("file");
            fs::write(&path, b"old").unwrap();
            let mut child = Command::new(std::env::current_exe().unwrap());
            child.args(["--exact", name]).env(CHILD, format!("{step:?} {}", path.display()));
            let output = child.output().unwrap();
            assert!(!output.status.success(), "the child was to be killed at {step:?}");
            assert_eq!(fs::read(&path).unwrap(), expected(step), "{step:?}");
            replace_by_new(&path).unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"new");
        }
    }

    #[test]
    fn old_temporary_files_of_a_killed_program_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let (old, young) =
            (folder.path().join(".wraith-new.a"), folder.path().join(".wraith-new.b"));
        for path in [&old, &young] {
            fs::write(path, b"").unwrap();
        }
        let time = SystemTime::now() - NEW_LIFE - Duration::from_secs(60);
        File::options().write(true).open(&old).unwrap().set_modified(time).unwrap();
        replace_by_new(&folder.path().join("file")).unwrap();
        assert!(!old.exists() && young.exists());
    }
}
