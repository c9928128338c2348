//! mac1: a MAC of 16 bytes at the end of every handshake datagram, as in WireGuard (SPEC §3.1).
//!
//! Invariant: a datagram is hashed once, however many keys are tried on it; each key costs one
//! short hash.

use std::cell::OnceCell;

use wraith_crypto::{equal, kdf};
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Length of mac1 in bytes.
pub const MAC1_BYTES: usize = 16;

/// A possible handshake datagram, to be tried with one key after another. The first check hashes
/// everything before mac1; later checks reuse that hash.
#[derive(Debug)]
pub struct Mac1Datagram<'a> {
    bytes: &'a [u8],
    /// BLAKE3 of everything before mac1.
    digest: OnceCell<[u8; 32]>,
}

impl<'a> Mac1Datagram<'a> {
    /// Wraps a datagram. Returns `None` if it is shorter than a mac1.
    #[must_use]
    pub fn of(bytes: &'a [u8]) -> Option<Self> {
        (bytes.len() >= MAC1_BYTES).then(|| Self { bytes, digest: OnceCell::new() })
    }

    /// Returns the whole datagram.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the fingerprint of the datagram.
    #[must_use]
    pub fn fingerprint(&self) -> DatagramFingerprint {
        DatagramFingerprint { digest: *self.digest(), mac1: self.mac1() }
    }

    fn mac1(&self) -> [u8; MAC1_BYTES] {
        *self.bytes.last_chunk().expect("there is room for a mac1")
    }

    fn digest(&self) -> &[u8; 32] {
        self.digest.get_or_init(|| kdf::hash(&self.bytes[..self.bytes.len() - MAC1_BYTES]))
    }
}

/// Fingerprint of a datagram. Equal only for copies of the same datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramFingerprint {
    digest: [u8; 32],
    mac1: [u8; MAC1_BYTES],
}

/// Key of a mac1. Wiped when dropped.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub(crate) struct Mac1Key([u8; 32]);

impl Mac1Key {
    pub(crate) const fn new(key: [u8; 32]) -> Self {
        Self(key)
    }

    /// Computes the mac1 of a datagram from BLAKE3 of everything before it.
    fn value(&self, digest: &[u8; 32]) -> [u8; MAC1_BYTES] {
        *kdf::keyed(&self.0, digest).first_chunk().expect("32 bytes hold 16")
    }

    /// Writes mac1 into the last 16 bytes, computed over everything before it.
    pub(crate) fn write(&self, datagram: &mut [u8]) {
        let (rest, mac1) = datagram.split_last_chunk_mut().expect("there is room for a mac1");
        *mac1 = self.value(&kdf::hash(rest));
    }

    /// Returns whether the mac1 of `datagram` was made with this key. Constant time.
    pub(crate) fn verifies(&self, datagram: &Mac1Datagram<'_>) -> bool {
        equal(&self.value(datagram.digest()), &datagram.mac1())
    }
}

wraith_crypto::redacted_debug!(Mac1Key);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mac1_verifies_under_its_own_key_and_no_other_in_any_order() {
        let [ours, other] = [1, 2].map(|byte| Mac1Key::new([byte; 32]));
        let mut datagram = vec![0x5a; 300];
        ours.write(&mut datagram);
        let with_mac1 = Mac1Datagram::of(&datagram).unwrap();
        assert!(!other.verifies(&with_mac1));
        assert!(ours.verifies(&with_mac1));
        assert!(!other.verifies(&with_mac1));
        assert_eq!(with_mac1.mac1(), datagram[284..]);
    }

    #[test]
    fn a_datagram_that_is_nothing_but_a_mac1_has_one_and_a_shorter_one_has_none() {
        let key = Mac1Key::new([1; 32]);
        let mut datagram = [0; MAC1_BYTES];
        key.write(&mut datagram);
        assert!(key.verifies(&Mac1Datagram::of(&datagram).unwrap()));
        assert!(Mac1Datagram::of(&datagram[1..]).is_none());
    }
}
