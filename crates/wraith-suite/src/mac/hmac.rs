//! HMAC (RFC 2104) over any block-wise hash function.

use zeroize::optimization_barrier;

use super::{Algorithm, Mac, same};
use crate::hash::{Function, with_function};
use crate::{Unauthentic, hash};

/// Maximum length of an input block in bytes: SHA3-224's.
const BLOCK_MAX: usize = 144;

/// HMAC over one message. Before the first `update` it is a prepared key, and can be cloned for
/// many messages: both hashes have already absorbed their key block. Wiped when dropped.
#[derive(Clone)]
pub struct Hmac<F: Function> {
    inner: F,
    outer: F,
}

impl<F: Function> Hmac<F> {
    /// Length of a tag in bytes.
    pub const TAG_BYTES: usize = F::DIGEST_BYTES;

    /// Starts a message under `key`, of any length. A random key longer than a tag adds no
    /// security.
    #[must_use]
    pub fn new(key: &[u8]) -> Self {
        let mut whole = [0; BLOCK_MAX];
        let block = &mut whole[..F::BLOCK_BYTES];
        if key.len() <= F::BLOCK_BYTES {
            block[..key.len()].copy_from_slice(key);
        } else {
            let mut hash = F::default();
            hash.update(key);
            hash.write(block);
        }
        let (mut inner, mut outer) = (F::default(), F::default());
        block.iter_mut().for_each(|byte| *byte ^= 0x36);
        inner.update(block);
        block.iter_mut().for_each(|byte| *byte ^= 0x36 ^ 0x5c);
        outer.update(block);
        whole = [0; BLOCK_MAX];
        optimization_barrier(&whole);
        Self { inner, outer }
    }

    /// Authenticates the next piece of the message.
    #[inline]
    pub fn update(&mut self, data: &[u8]) {
        self.inner.update(data);
    }

    /// Writes the tag of the message to the front of `out`.
    ///
    /// # Panics
    /// If `out` is shorter than [`Self::TAG_BYTES`].
    #[inline]
    pub fn finish(mut self, out: &mut [u8]) {
        let out = &mut out[..F::DIGEST_BYTES];
        self.inner.write(out);
        self.outer.update(out);
        self.outer.write(out);
    }

    /// Verifies the tag of the message, in constant time.
    ///
    /// # Errors
    /// [`Unauthentic`] if `tag` is wrong.
    pub fn verify(self, tag: &[u8]) -> Result<(), Unauthentic> {
        let mut expected = [0; hash::DIGEST_MAX];
        let expected = &mut expected[..F::DIGEST_BYTES];
        self.finish(expected);
        same(expected, tag)
    }
}

wraith_crypto::redacted_debug!([F: Function] |it: Hmac<F>| hash: F::ALGORITHM);

/// An HMAC with its name in [`Algorithm`].
struct AlgorithmHmac<F: Function>(Algorithm, Hmac<F>);

impl<F: Function> Mac for AlgorithmHmac<F> {
    fn algorithm(&self) -> Algorithm {
        self.0
    }

    fn update(&mut self, data: &[u8]) {
        self.1.update(data);
    }

    fn finish_into(self: Box<Self>, out: &mut [u8]) {
        self.1.finish(out);
    }
}

/// Starts a message under `key`. Returns `None` if `algorithm` is not an HMAC.
pub(super) fn start(algorithm: Algorithm, key: &[u8]) -> Option<Box<dyn Mac>> {
    fn named<F: Function>(algorithm: Algorithm, key: &[u8]) -> Option<Box<dyn Mac>> {
        Some(Box::new(AlgorithmHmac(algorithm, Hmac::<F>::new(key))))
    }
    with_function!(algorithm.hash()?, F => named::<F>(algorithm, key), None)
}
