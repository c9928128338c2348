//! The input of a command: a file, or standard input.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use wraith_files::shown;
use zeroize::Zeroizing;

use crate::failure::{Exit, Failure};

/// Maximum length of a message to sign in bytes, because it must fit in memory.
const MESSAGE_MAX: u64 = 1 << 30;
/// Initial buffer for reading a whole input: larger than a key file.
const FIRST_BYTES: usize = 1 << 17;

/// Whether a command has opened standard input. A second reader would find nothing and take that
/// for an empty text.
static IS_STDIN_TAKEN: AtomicBool = AtomicBool::new(false);

/// An open file or standard input, with its name for errors.
pub struct Input {
    reader: Box<dyn Read>,
    name: String,
    /// Whether the end was reached. A terminal would return more data after a typed end.
    is_over: bool,
}

impl Input {
    /// Opens a file. `-` or None opens standard input, which can be opened only once.
    pub fn open(path: Option<&Path>) -> Result<Self, Failure> {
        match path {
            Some(path) if path.as_os_str() != "-" => {
                let file = File::open(path).map_err(|error| cannot_read(&name(path), &error))?;
                Ok(Self::of(Box::new(file), name(path)))
            }
            _ if IS_STDIN_TAKEN.swap(true, Ordering::Relaxed) => Err(two_of_stdin()),
            _ => Ok(Self::of(Box::new(io::stdin()), "standard input".to_owned())),
        }
    }

    fn of(reader: Box<dyn Read>, name: String) -> Self {
        Self { reader, name, is_over: false }
    }

    /// Fills `buffer`. Returns fewer bytes only at the end of the input.
    pub fn fill(&mut self, buffer: &mut [u8]) -> Result<usize, Failure> {
        let mut filled = 0;
        while filled < buffer.len() && !self.is_over {
            match self.reader.read(&mut buffer[filled..]) {
                Ok(0) => self.is_over = true,
                Ok(n) => filled += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(cannot_read(&self.name, &error)),
            }
        }
        Ok(filled)
    }

    /// Reads the whole input; `None` if it has more than `max` bytes.
    pub fn all(&mut self, max: u64) -> Result<Option<Zeroizing<Vec<u8>>>, Failure> {
        let most = usize::try_from(max).unwrap_or(usize::MAX - 1) + 1;
        let mut bytes = Zeroizing::new(Vec::with_capacity(most.min(FIRST_BYTES)));
        loop {
            let at = bytes.len();
            let end = bytes.capacity().min(most);
            bytes.resize(end, 0);
            let filled = at + self.fill(&mut bytes[at..])?;
            bytes.truncate(filled);
            if filled == most {
                return Ok(None);
            }
            if filled < end {
                return Ok(Some(bytes));
            }
            // A vector that grows by itself would leave a copy of the secret behind.
            let mut larger = Zeroizing::new(Vec::with_capacity(2 * end));
            larger.extend_from_slice(&bytes);
            bytes = larger;
        }
    }

    /// Reads a whole message to sign.
    pub fn message(&mut self) -> Result<Zeroizing<Vec<u8>>, Failure> {
        self.all(MESSAGE_MAX)?.ok_or_else(|| {
            Failure::new(Exit::Usage, format!("{} is larger than 1 GiB", self.name))
                .hint("sign its hash: wraith crypto hash SHA-512 FILE")
        })
    }
}

/// Fails before any read if standard input is named twice.
pub fn at_most_one_stdin<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Result<(), Failure> {
    match paths.into_iter().filter(|path| path.as_os_str() == "-").count() {
        0 | 1 => Ok(()),
        _ => Err(two_of_stdin()),
    }
}

fn two_of_stdin() -> Failure {
    Failure::new(Exit::Usage, "standard input is named twice, and can be read only once")
        .hint("use a file for one of them")
}

/// Returns a path for display.
pub fn name(path: &Path) -> String {
    shown(path.as_os_str().as_bytes()).to_string()
}

fn cannot_read(name: &str, error: &io::Error) -> Failure {
    Failure::disk(format!("cannot read {name}"), error)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A terminal where Ctrl-D is typed, and then more.
    struct Typed(Vec<&'static [u8]>);

    impl Read for Typed {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let line = self.0.remove(0);
            buffer[..line.len()].copy_from_slice(line);
            Ok(line.len())
        }
    }

    #[test]
    fn an_end_that_is_typed_once_stays_the_end() {
        let typed = Typed(vec![b"one\n", b"", b"two\n"]);
        let mut input = Input::of(Box::new(typed), "a terminal".to_owned());
        let mut buffer = [0; 16];
        assert_eq!(input.fill(&mut buffer).unwrap(), 4);
        assert_eq!(input.fill(&mut buffer).unwrap(), 0);
        assert!(input.all(100).unwrap().unwrap().is_empty());
    }
}
