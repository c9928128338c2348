//! The gate: a MAC of 16 bytes at the end of every handshake datagram (SPEC §3.1), like WireGuard's
//! mac1.
//!
//! Invariant: a datagram is hashed once, however many keys are tried on it; each key costs one
//! short hash.

use std::cell::OnceCell;
use std::fmt;

use wraith_crypto::{equal, kdf};
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Length of the gate in bytes.
pub const GATE_BYTES: usize = 16;

/// A possible handshake datagram, to be tried with one key after another. The first check hashes
/// everything before the gate; later checks reuse that hash.
#[derive(Debug)]
pub struct Gated<'a> {
    bytes: &'a [u8],
    /// BLAKE3 of everything before the gate.
    digest: OnceCell<[u8; 32]>,
}

impl<'a> Gated<'a> {
    /// Wraps a datagram. Returns `None` if it is shorter than a gate.
    #[must_use]
    pub fn of(bytes: &'a [u8]) -> Option<Self> {
        (bytes.len() >= GATE_BYTES).then(|| Self { bytes, digest: OnceCell::new() })
    }

    /// Returns the whole datagram.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the fingerprint of the datagram.
    #[must_use]
    pub fn name(&self) -> DatagramName {
        DatagramName { digest: *self.digest(), gate: self.gate() }
    }

    fn gate(&self) -> [u8; GATE_BYTES] {
        *self.bytes.last_chunk().expect("there is room for a gate")
    }

    fn digest(&self) -> &[u8; 32] {
        self.digest.get_or_init(|| kdf::hash(&self.bytes[..self.bytes.len() - GATE_BYTES]))
    }
}

/// Fingerprint of a datagram. Equal only for copies of the same datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramName {
    digest: [u8; 32],
    gate: [u8; GATE_BYTES],
}

/// Key of a gate. Wiped when dropped.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub(crate) struct GateKey([u8; 32]);

impl GateKey {
    pub(crate) const fn new(key: [u8; 32]) -> Self {
        Self(key)
    }

    /// Computes the gate of a datagram from BLAKE3 of everything before it.
    fn value(&self, digest: &[u8; 32]) -> [u8; GATE_BYTES] {
        *kdf::keyed(&self.0, digest).first_chunk().expect("32 bytes hold 16")
    }

    /// Writes the gate into the last 16 bytes, computed over everything before it.
    pub(crate) fn write(&self, datagram: &mut [u8]) {
        let (rest, gate) = datagram.split_last_chunk_mut().expect("there is room for a gate");
        *gate = self.value(&kdf::hash(rest));
    }

    /// Returns whether the gate of `datagram` was made with this key. Constant time.
    pub(crate) fn verifies(&self, datagram: &Gated<'_>) -> bool {
        equal(&self.value(datagram.digest()), &datagram.gate())
    }
}

impl fmt::Debug for GateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GateKey").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_verifies_under_its_own_key_and_no_other_in_any_order() {
        let [ours, other] = [1, 2].map(|byte| GateKey::new([byte; 32]));
        let mut datagram = vec![0x5a; 300];
        ours.write(&mut datagram);
        let gated = Gated::of(&datagram).unwrap();
        assert!(!other.verifies(&gated));
        assert!(ours.verifies(&gated));
        assert!(!other.verifies(&gated));
        assert_eq!(gated.gate(), datagram[284..]);
    }

    #[test]
    fn a_datagram_that_is_nothing_but_a_gate_has_one_and_a_shorter_one_has_none() {
        let key = GateKey::new([1; 32]);
        let mut datagram = [0; GATE_BYTES];
        key.write(&mut datagram);
        assert!(key.verifies(&Gated::of(&datagram).unwrap()));
        assert!(Gated::of(&datagram[1..]).is_none());
    }
}
