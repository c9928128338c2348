//! What `wraith speed` measures: a row for each operation of each algorithm, with what is within the measured time.
//!
//! A key is set up before the time begins, but for rows that say "new key", and for authentication codes, which begin anew with each message. Nothing else is in
//! it but the operation and, where it gives bytes that are as long as it likes, their allocation. A name is the algorithm's, a space, and the operation.

mod aead;
mod derive;
mod parts;
mod public;
mod symmetric;

use std::fmt::Display;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Does the operation so often, and says how long it took.
pub type Work = Box<dyn FnMut(u64) -> Duration>;

/// An operation.
pub struct Row {
    /// Algorithm and operation.
    pub name: String,
    /// Of the text, where it is about one.
    pub bytes: Option<u32>,
    /// What is within the measured time.
    pub scope: &'static str,
    /// What computes it.
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

    /// Sets up what is needed, and does it once.
    pub fn begin(&self) -> Result<Work, String> {
        (self.make)()
    }

    /// Whether `words` are the name of its algorithm, which is the first word of its own.
    pub fn is_of(&self, words: &str) -> bool {
        self.name.split(' ').next().is_some_and(|algorithm| letters(algorithm) == letters(words))
    }

    /// Whether `words` stand in its name, whatever their case and the signs between them.
    pub fn is(&self, words: &str) -> bool {
        let words = letters(words);
        !words.is_empty() && letters(&self.name).contains(&words)
    }

    /// Whether that is all of its name.
    pub fn is_called(&self, words: &str) -> bool {
        letters(&self.name) == letters(words)
    }
}

/// Letters and digits, in lower case.
pub fn letters(text: &str) -> String {
    text.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// Every row; those about a text once for each of these lengths.
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

/// A key, or an IV. Not all zeros, so that the halves of a key of XTS differ.
fn key(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (i * 7 + 1) as u8).collect()
}

/// An operation that needs nothing between two times. It must work the first time.
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
            match row.begin() {
                Ok(_) => {}
                Err(why) => panic!("{}: {why}", row.name),
            }
        }
        for name in ["SHA-256 hash", "AES-128-CBC decrypt", "AES-256-GCM encrypt", "Ed25519 sign"] {
            assert!(names.contains(name), "{name} is not there");
        }
    }
}
