//! The output of a command: standard output, or a file that appears when it is complete.
//!
//! Invariant: the given name refers either to its old content or to the complete result. A device
//! or a pipe is the exception: it is written to directly, because it cannot be replaced.

use std::ffi::OsString;
use std::fs::{File, Metadata, Permissions};
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::Mode;
use rustix::process::umask;
use tempfile::{NamedTempFile, TempPath};

use super::args::OutArgs;
use super::input::name;
use crate::failure::{Exit, Failure};
use crate::report::{Event, Reporter};

/// The permitted readers of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readers {
    /// Every user that the umask permits.
    Anybody,
    /// Only the owner, because the result is a secret.
    Owner,
}

/// File mode of a secret: access for its owner only.
const OWNERS: u32 = 0o600;

/// The temporary files of this process, for removal after a signal.
static BEGUN: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Removes all unfinished output files.
pub fn abandon() {
    for path in BEGUN.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        // It may be gone already.
        let _ = std::fs::remove_file(path);
    }
}

/// The identity of an output, for comparison.
#[derive(Debug, PartialEq, Eq)]
pub struct OutputId {
    device: u64,
    inode: u64,
    /// The name of a file; then device and inode are those of its folder.
    file: Option<OsString>,
}

/// An output while it is written.
pub struct Output {
    to: Destination,
    bytes: u64,
    /// Whether the reader of standard output has closed the pipe.
    is_gone: bool,
}

enum Destination {
    Stdout,
    /// An existing entry that is no regular file.
    Device(File, PathBuf),
    File {
        file: File,
        temporary: TempPath,
        path: PathBuf,
        force: bool,
        /// Final mode of the file. Until it is renamed, only its owner can read it.
        mode: u32,
    },
}

impl Output {
    /// Opens the output that `args` name. `is_text`: it may go to a terminal.
    pub fn open(
        args: &OutArgs,
        readers: Readers,
        is_text: bool,
        reporter: &dyn Reporter,
    ) -> Result<Self, Failure> {
        let to = match args.out.as_deref() {
            Some(path) if path.as_os_str() != "-" => Destination::open(path, args.force, readers)?,
            _ if !is_text && io::stdout().is_terminal() && !args.force => {
                return Err(Failure::new(
                    Exit::Usage,
                    "the result is binary, and standard output is a terminal",
                )
                .hint("write it to a file with -o FILE, or to a pipe with |"));
            }
            _ => {
                reporter.keep_off_stdout();
                Destination::Stdout
            }
        };
        Ok(Self { to, bytes: 0, is_gone: false })
    }

    /// Returns the identity of the output, for comparison. A file is identified by its folder and
    /// its name, whatever path leads there.
    pub fn place(&self) -> Result<OutputId, Failure> {
        let of = |found: io::Result<Metadata>, path: &Path, file| match found {
            Ok(found) => Ok(OutputId { device: found.dev(), inode: found.ino(), file }),
            Err(error) => Err(cannot_write(path, &error)),
        };
        match &self.to {
            Destination::Stdout => Ok(OutputId { device: 0, inode: 0, file: None }),
            Destination::Device(file, path) => of(file.metadata(), path, None),
            Destination::File { path, .. } => {
                of(folder(path).metadata(), path, path.file_name().map(ToOwned::to_owned))
            }
        }
    }

    /// Returns whether the reader has closed the pipe. Later writes are discarded.
    pub fn is_gone(&self) -> bool {
        self.is_gone
    }

    /// Writes verified data.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        if self.is_gone {
            return Ok(());
        }
        let written = match &mut self.to {
            Destination::Stdout => io::stdout().write_all(bytes),
            Destination::Device(file, _) | Destination::File { file, .. } => file.write_all(bytes),
        };
        match written {
            Ok(()) => self.bytes += bytes.len() as u64,
            Err(error)
                if error.kind() == io::ErrorKind::BrokenPipe
                    && matches!(self.to, Destination::Stdout) =>
            {
                self.is_gone = true;
            }
            Err(error) => return Err(self.cannot(&error)),
        }
        Ok(())
    }

    /// Completes the output: the file appears under its name. Reports `what` and `algorithm` to
    /// programs, unless the reader closed the pipe.
    pub fn finish(
        mut self,
        what: &str,
        algorithm: Option<&str>,
        reporter: &dyn Reporter,
    ) -> Result<(), Failure> {
        let flushed = match &mut self.to {
            Destination::Stdout => io::stdout().flush(),
            Destination::Device(file, _) => file.flush(),
            Destination::File { file, .. } => file.sync_all(),
        };
        match flushed {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                return Err(self.cannot(&error));
            }
            _ => {}
        }
        if self.is_gone {
            return Ok(());
        }
        let bytes = self.bytes;
        let path = match self.to {
            Destination::Stdout => None,
            Destination::Device(_, path) => Some(path),
            Destination::File { file, temporary, path, force, mode } => {
                if mode != OWNERS {
                    // If this fails, the file stays readable only by its owner.
                    let _ = file.set_permissions(Permissions::from_mode(mode));
                }
                appear(temporary, &path, force)?;
                Some(path)
            }
        };
        let path = path.map(|path| name(&path));
        reporter.event(&Event::Written { what, algorithm, path: path.as_deref(), bytes });
        Ok(())
    }

    fn cannot(&self, error: &io::Error) -> Failure {
        match &self.to {
            Destination::Stdout => Failure::disk("cannot write to standard output", error),
            Destination::Device(_, path) | Destination::File { path, .. } => {
                cannot_write(path, error)
            }
        }
    }
}

impl Destination {
    fn open(path: &Path, force: bool, readers: Readers) -> Result<Self, Failure> {
        match path.metadata() {
            Ok(found) if found.is_dir() => {
                return Err(Failure::new(Exit::Usage, format!("{} is a folder", name(path)))
                    .hint("name a file in that folder"));
            }
            Ok(found) if !found.is_file() => return Self::device(path, force, readers),
            _ => {}
        }
        if !force && path.symlink_metadata().is_ok() {
            return Err(is_there(path));
        }
        // Never readable by more users than the file that it replaces.
        let replaced = path.symlink_metadata().map_or(0o666, |found| found.permissions().mode());
        let mode = match readers {
            Readers::Owner => OWNERS,
            Readers::Anybody => OWNERS | (0o066 & replaced & !umask_now().bits()),
        };
        // The lock is held until the file is listed, so that `abandon` cannot miss it.
        let mut begun = BEGUN.lock().unwrap_or_else(PoisonError::into_inner);
        let made = tempfile::Builder::new()
            .prefix(".wraith-")
            .permissions(Permissions::from_mode(OWNERS))
            .tempfile_in(folder(path));
        let made: NamedTempFile = made.map_err(|error| cannot_write(path, &error))?;
        begun.push(made.path().to_owned());
        let (file, temporary) = made.into_parts();
        Ok(Self::File { file, temporary, path: path.to_owned(), force, mode })
    }
}

impl Destination {
    /// Opens a device, a pipe or a socket. Checks the opened entry itself, because the name may
    /// have changed its meaning. In a shared folder, a pipe may belong to another user.
    fn device(path: &Path, force: bool, readers: Readers) -> Result<Self, Failure> {
        let file = File::options().write(true).open(path);
        let file = file.map_err(|error| cannot_write(path, &error))?;
        let found = file.metadata().map_err(|error| cannot_write(path, &error))?;
        let is_ours = found.uid() == rustix::process::geteuid().as_raw();
        let is_device = found.file_type().is_char_device();
        if found.is_file() || !(is_device || is_ours || (force && readers == Readers::Anybody)) {
            return Err(Failure::new(
                Exit::Usage,
                format!("{} belongs to another user", name(path)),
            )
            .hint("use a file, or a pipe of your own"));
        }
        Ok(Self::Device(file, path.to_owned()))
    }
}

/// Returns the umask, which can only be read by setting it. Meanwhile, a file made by another
/// thread would be restricted to its owner.
fn umask_now() -> Mode {
    let mask = umask(Mode::RWXG | Mode::RWXO);
    umask(mask);
    mask
}

/// Returns the folder of a file.
fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Renames the temporary file to its final name.
fn appear(temporary: TempPath, path: &Path, force: bool) -> Result<(), Failure> {
    let mut begun = BEGUN.lock().unwrap_or_else(PoisonError::into_inner);
    begun.retain(|each| *each != *temporary);
    let named = match force {
        true => temporary.persist(path),
        false => temporary.persist_noclobber(path),
    };
    named.map_err(|error| match error.error.kind() {
        io::ErrorKind::AlreadyExists => is_there(path),
        _ => cannot_write(path, &error.error),
    })
}

fn is_there(path: &Path) -> Failure {
    Failure::new(Exit::Usage, format!("{} already exists", name(path)))
        .hint("choose another name, or replace it with --force")
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::disk(format!("cannot write {}", name(path)), error)
}
