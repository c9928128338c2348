//! The table of `wraith speed`: a row for each operation of each algorithm, with the scope of its
//! measured time.
//!
//! The measured time contains the operation and, for output of variable length, its allocation. It
//! includes the setup of the key only in two cases: in rows named "new key", and for authentication
//! codes, which set up the key for each message. A row's name is the algorithm's name, a space, and
//! the operation.

mod aead;
mod derive;
mod parts;
mod public;
mod symmetric;

use std::fmt::Display;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Runs the operation this many times. Returns the elapsed time.
pub type Work = Box<dyn FnMut(u64) -> Duration>;

/// An operation to measure.
pub struct Row {
    /// Algorithm and operation.
    pub name: String,
    /// Length of the text, for operations that process one.
    pub bytes: Option<u32>,
    /// The parts of the measured time.
    pub scope: &'static str,
    /// The implementation.
    pub backend: String,
    make: Box<dyn Fn() -> Result<Work, String>>,
}

impl Row {
    fn new(
        name: String,
        bytes: Option<u32>,
        scope: &'static str,
        backend: &impl Display,
        make: impl Fn() -> Result<Work, String> + 'static,
    ) -> Self {
        Self { name, bytes, scope, backend: backend.to_string(), make: Box::new(make) }
    }

    /// Prepares the operation, and runs it once.
    pub fn prepare(&self) -> Result<Work, String> {
        (self.make)()
    }

    /// Returns whether `words` are the name of its algorithm, the first word of its own name.
    pub fn is_of(&self, words: &str) -> bool {
        self.name.split(' ').next().is_some_and(|algorithm| letters(algorithm) == letters(words))
    }

    /// Returns whether its name contains `words`, without regard to case and punctuation.
    pub fn is(&self, words: &str) -> bool {
        let words = letters(words);
        !words.is_empty() && letters(&self.name).contains(&words)
    }

    /// Returns whether `words` are its full name.
    pub fn is_called(&self, words: &str) -> bool {
        letters(&self.name) == letters(words)
    }
}

/// Returns the letters and digits of a text, in lower case.
pub fn letters(text: &str) -> String {
    text.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// Returns all rows. Operations on a text have a row for each length in `bytes`.
pub fn all(bytes: &[u32]) -> Vec<Row> {
    let mut rows = Vec::new();
    for &bytes in bytes {
        symmetric::rows(bytes, &mut rows);
    }
    public::rows(&mut rows);
    derive::rows(&mut rows);
    parts::rows(&mut rows);
    rows
}

/// Returns a key or an IV. It is not all zeros, so that the halves of an XTS key differ.
fn key(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (i * 7 + 1) as u8).collect()
}

/// Measures an operation that needs no preparation between runs. The first run must succeed.
fn repeated<T: 'static, E: ToString>(
    mut operation: impl FnMut() -> Result<T, E> + 'static,
) -> Result<Work, String> {
    operation().map_err(|error| error.to_string())?;
    Ok(Box::new(move |n| {
        let begin = Instant::now();
        for _ in 0..n {
            drop(black_box(operation()));
        }
        begin.elapsed()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_a_name_of_its_own_and_works() {
        let mut names = std::collections::BTreeSet::new();
        for row in all(&[1024]) {
            assert!(names.insert(row.name.clone()), "{} is there twice", row.name);
            let is_slow = row.name.contains("SLH-DSA") || row.name.contains("RSA-4096");
            if is_slow {
                continue;
            }
            match row.prepare() {
                Ok(_) => {}
                Err(why) => panic!("{}: {why}", row.name),
            }
        }
        for name in ["SHA-256 hash", "AES-128-CBC decrypt", "AES-256-GCM encrypt", "Ed25519 sign"] {
            assert!(names.contains(name), "{name} is not there");
        }
    }
}
