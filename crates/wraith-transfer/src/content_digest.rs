//! Order-independent hash of the results of all entries of a transfer.
//!
//! LtHash16 (Bellare & Micciancio 1997; Lewi, Kim, Maykov & Weis 2019): each item is expanded to
//! 1024 words of 16 bits and the words are added up. Two workers can thus add files in any order
//! and both sides still agree. Finding another set of items with the same sum is a lattice problem
//! of about 200 bits.
//!
//! An item is (entry number, root) for the content of a file; the root is the hash of the whole
//! file. For an entry that the receiver does not have, the item is (entry number, reason).

use crate::exception::Exception;

/// Number of words in the sum.
const WORDS: usize = 1024;

/// An order-independent hash of (entry number, root) and (entry number, reason) pairs.
#[derive(Clone)]
pub struct ContentDigest {
    sum: Box<[u16; WORDS]>,
}

impl ContentDigest {
    /// Returns the hash of the empty set.
    pub fn new() -> Self {
        Self { sum: Box::new([0; WORDS]) }
    }

    /// Adds the content of one file. Adding it twice differs from adding it once.
    pub fn add(&mut self, entry: u32, root: &[u8; 32]) {
        self.add_item("wraith/1 contents item", entry, root);
    }

    /// Records that the receiver does not have an entry.
    pub fn except(&mut self, entry: u32, exception: Exception) {
        self.add_item("wraith/1 contents exception", entry, &[exception.number()]);
    }

    fn add_item(&mut self, context: &str, entry: u32, what: &[u8]) {
        let mut hasher = blake3::Hasher::new_derive_key(context);
        hasher.update(&entry.to_be_bytes());
        hasher.update(what);
        let mut wide = [0u8; 2 * WORDS];
        hasher.finalize_xof().fill(&mut wide);
        for (sum, word) in self.sum.iter_mut().zip(wide.chunks_exact(2)) {
            *sum = sum.wrapping_add(u16::from_be_bytes([word[0], word[1]]));
        }
    }

    /// Returns the 32-byte hash of all items added so far.
    pub fn digest(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key("wraith/1 contents");
        for word in self.sum.iter() {
            hasher.update(&word.to_be_bytes());
        }
        *hasher.finalize().as_bytes()
    }
}

impl Default for ContentDigest {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for ContentDigest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ContentDigest").field(&blake3::Hash::from_bytes(self.digest())).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_files_does_not_matter_and_everything_else_does() {
        let of = |items: &[(u32, u8)]| {
            let mut contents = ContentDigest::new();
            items.iter().for_each(|&(entry, byte)| contents.add(entry, &[byte; 32]));
            contents.digest()
        };
        assert_eq!(of(&[(0, 1), (1, 2), (2, 3)]), of(&[(2, 3), (0, 1), (1, 2)]));
        assert_ne!(of(&[(0, 1), (1, 2)]), of(&[(0, 2), (1, 1)]));
        assert_ne!(of(&[(0, 1)]), of(&[(0, 1), (0, 1)]));
        assert_ne!(of(&[(0, 1)]), of(&[]));
    }

    #[test]
    fn exceptions_enter_the_digest_with_their_reason() {
        let of = |items: &[(u32, Exception)]| {
            let mut contents = ContentDigest::new();
            items.iter().for_each(|&(entry, exception)| contents.except(entry, exception));
            contents.digest()
        };
        let (skipped, blocked) = (Exception::Skipped, Exception::Blocked);
        assert_ne!(of(&[(0, skipped)]), of(&[]));
        assert_ne!(of(&[(0, skipped)]), of(&[(0, blocked)]));
        assert_ne!(of(&[(0, skipped)]), of(&[(1, skipped)]));
        assert_eq!(of(&[(0, skipped), (1, blocked)]), of(&[(1, blocked), (0, skipped)]));
    }
}
