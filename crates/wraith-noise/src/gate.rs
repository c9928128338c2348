//! The gate at the end of every handshake datagram: a keyed hash of what stands before it (SPEC §3.1).
//!
//! Invariant: a datagram is hashed once, however many keys it is shown to; each key costs one short hash.

use std::cell::OnceCell;
use std::fmt;

use wraith_crypto::{equal, kdf};
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Length of the gate at the end of every handshake datagram.
pub const GATE_BYTES: usize = 16;

/// A datagram that may be one of a handshake, to be shown to one key after the other. What its gate is over is hashed for the first.
#[derive(Debug)]
pub struct Gated<'a> {
    bytes: &'a [u8],
    /// BLAKE3 of everything before the gate.
    digest: OnceCell<[u8; 32]>,
}

impl<'a> Gated<'a> {
    /// `None` if there is no room for a gate.
    #[must_use]
    pub fn of(bytes: &'a [u8]) -> Option<Self> {
        (bytes.len() >= GATE_BYTES).then(|| Self { bytes, digest: OnceCell::new() })
    }

    /// The whole datagram.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// What names it.
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

/// Equal for copies of one datagram, and for nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramName {
    digest: [u8; 32],
    gate: [u8; GATE_BYTES],
}

/// The key of a gate. Wiped when dropped.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub(crate) struct GateKey([u8; 32]);

impl GateKey {
    pub(crate) const fn new(key: [u8; 32]) -> Self {
        Self(key)
    }

    /// The gate of a datagram, given BLAKE3 of everything before it.
    fn value(&self, digest: &[u8; 32]) -> [u8; GATE_BYTES] {
        *kdf::keyed(&self.0, digest).first_chunk().expect("32 bytes hold 16")
    }

    /// Writes the gate over everything before it into the last 16 bytes.
    pub(crate) fn write(&self, datagram: &mut [u8]) {
        let (rest, gate) = datagram.split_last_chunk_mut().expect("there is room for a gate");
        *gate = self.value(&kdf::hash(rest));
    }

    /// Whether the gate of `datagram` was made with this key. Takes constant time.
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
