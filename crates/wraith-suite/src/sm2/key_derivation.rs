//! Key derivation of SM2 (GB/T 32918.3 §5.4.3 and .4 §5.4.3): a stream of SM3 hashes over a secret
//! and a counter.

use zeroize::Zeroize;

use crate::hash::Sm3;

/// A stream of derived bytes. Wiped when dropped.
pub(crate) struct KeyStream {
    /// A hash that has absorbed the secret.
    start: Sm3,
    /// The counter of the next block, from 1.
    counter: u32,
}

impl KeyStream {
    /// Maximum length of a stream in bytes.
    pub(crate) const MAX: usize = 1 << 30;

    pub(crate) fn new(secret: &[&[u8]]) -> Self {
        let mut start = Sm3::new();
        secret.iter().for_each(|part| start.update(part));
        Self { start, counter: 1 }
    }

    /// Xors the stream onto `data`, at most [`Self::MAX`] bytes. Returns whether any byte of the
    /// stream was not zero.
    pub(crate) fn apply(mut self, data: &mut [u8]) -> bool {
        assert!(data.len() <= Self::MAX, "the caller checked the length");
        let mut any = 0;
        for chunk in data.chunks_mut(Sm3::DIGEST_BYTES) {
            let mut hash = self.start.clone();
            hash.update(&self.counter.to_be_bytes());
            self.counter += 1;
            let mut block = hash.finish();
            for (byte, key) in chunk.iter_mut().zip(&block) {
                *byte ^= key;
                any |= key;
            }
            block.zeroize();
        }
        any != 0
    }
}
