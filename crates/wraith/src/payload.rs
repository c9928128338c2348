//! The content of an offer: files and folders, or one byte stream.

use std::ffi::OsString;
use std::fs::{File, FileType};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use tokio::io::AsyncRead;
use wraith_files::{RelPath, Walk, shown};
use wraith_transfer::StreamSource;

use crate::blocking_io::Blocking;
use crate::error::{Error, ErrorKind, plain};

/// The content of an offer.
#[derive(Clone, Debug)]
pub struct Payload {
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) stream: Option<StreamSource>,
    stream_name: String,
}

impl Payload {
    /// Files and folders. Each is offered under the last component of its path.
    pub fn paths(paths: impl IntoIterator<Item: Into<PathBuf>>) -> Self {
        let paths = paths.into_iter().map(Into::into).collect();
        Self { paths, stream: None, stream_name: String::new() }
    }

    /// A byte stream that is read once. A receiver without a stream target stores it as a file of
    /// this name. `size` is for display only.
    ///
    /// A thread of its own calls `input`, which may block for any time. Nothing is read before a
    /// receiver has accepted. `input` is dropped once it has returned after the end of the offer, so
    /// an `input` that blocks keeps its thread. If `input` fails or panics, both sides end with
    /// [`ErrorKind::Stream`] or [`ErrorKind::Panicked`].
    pub fn reader(
        name: impl Into<String>,
        size: Option<u64>,
        input: impl Read + Send + 'static,
    ) -> Self {
        let stream_name = name.into();
        let stream = Some(StreamSource::new(stream_name.clone(), size, input));
        Self { paths: Vec::new(), stream, stream_name }
    }

    /// Like [`reader`](Self::reader), for an asynchronous reader such as a socket of tokio.
    ///
    /// # Panics
    /// Outside of a tokio runtime. The reader is polled in the runtime of this call, by a thread that
    /// it keeps while it is pending.
    pub fn async_reader(
        name: impl Into<String>,
        size: Option<u64>,
        input: impl AsyncRead + Send + 'static,
    ) -> Self {
        Self::reader(name, size, Blocking::new(input))
    }

    /// Validates the paths, each alone and against the others, and makes them absolute. Links are
    /// resolved except in the last component. Nothing below the paths is read.
    pub(crate) fn checked(mut self) -> Result<Self, Error> {
        if self.is_stream() {
            let name = self.stream_name.as_bytes();
            let fits = RelPath::parse(name).is_ok_and(|name| name.depth() == 1);
            if !fits {
                let message = "the name of a stream must be the name of one file";
                return Err(Error::new(ErrorKind::InvalidInput, message));
            }
            return Ok(self);
        }
        if self.paths.is_empty() {
            return Err(Error::new(ErrorKind::InvalidInput, "there is nothing to send"));
        }
        let paths = self.paths.iter().map(|path| canonical(path));
        self.paths = paths.collect::<Result<_, _>>()?;
        Walk::new(&self.paths)
            .map_err(|error| Error::new(ErrorKind::InvalidInput, format!("cannot send {error}")))?;
        Ok(self)
    }

    /// Returns true for a stream. A stream can be read once only, so no later run can resume it.
    pub(crate) fn is_stream(&self) -> bool {
        self.stream.is_some()
    }
}

macro_rules! from_paths {
    ($($path:ty),*) => { $(
        impl From<$path> for Payload {
            fn from(path: $path) -> Self {
                Self::paths([path])
            }
        }
    )* };
}

from_paths!(PathBuf, &Path, &PathBuf, String, OsString, &str);

impl From<Vec<PathBuf>> for Payload {
    fn from(paths: Vec<PathBuf>) -> Self {
        Self::paths(paths)
    }
}

/// Returns the absolute path with links resolved, except in the last component: a link is sent as a
/// link.
fn canonical(path: &Path) -> Result<PathBuf, Error> {
    let name = || shown(path.as_os_str().as_bytes());
    let missing = |error: io::Error| {
        let not_there = error.kind() == io::ErrorKind::NotFound;
        let kind = if not_there { ErrorKind::InvalidInput } else { ErrorKind::Disk };
        Error::new(kind, format!("cannot send {}: {}", name(), plain(&error)))
    };
    let named = path.symlink_metadata().map_err(missing)?;
    // Report an unreadable path now, before a receiver waits for it.
    match named.file_type() {
        kind if kind.is_file() => drop(File::open(path).map_err(missing)?),
        kind if kind.is_dir() => drop(path.read_dir().map_err(missing)?),
        _ => {}
    }
    if path.metadata().is_ok_and(|there| is_special(there.file_type())) {
        let message =
            format!("cannot send {}: it is a pipe, socket or device, not a file or folder", name());
        return Err(Error::because(ErrorKind::InvalidInput, message, crate::Cause::NoContent));
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => {
            let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
            Ok(parent.canonicalize().map_err(missing)?.join(name))
        }
        // `.`, `..`, `/` and `x/..` have no name of their own until they are resolved.
        _ => path.canonicalize().map_err(missing),
    }
}

/// Returns true for pipes, sockets and devices, which have no content of their own.
fn is_special(kind: FileType) -> bool {
    !(kind.is_file() || kind.is_dir() || kind.is_symlink())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_path_is_an_error_before_the_offer_starts() {
        let error = Payload::from("/no/such/file").checked().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().starts_with("cannot send /no/such/file: "), "{error}");
    }

    #[test]
    fn a_device_has_no_content_to_send() {
        let error = Payload::from("/dev/null").checked().unwrap_err();
        assert!(error.to_string().contains("device"), "{error}");
    }

    #[test]
    fn a_stream_has_the_name_of_one_file() {
        for name in ["a/b", "..", ""] {
            assert!(Payload::reader(name, None, io::empty()).checked().is_err(), "{name:?}");
        }
        assert!(Payload::reader("backup.tar", None, io::empty()).checked().is_ok());
    }
}
