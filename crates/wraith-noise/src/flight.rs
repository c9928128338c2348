//! Messages 1 and 2 on the wire: each is longer than a datagram may be, so it travels as two, cut at random (SPEC §3), its
//! ephemeral key as an Elligator2 representative. And what only the two sides know while they shake hands, which keys the
//! gates behind H1.

use rand_core::Rng;
use snow::HandshakeState;
use wraith_crypto::{elligator, kdf};
use zeroize::Zeroizing;

use crate::Rejected;
use crate::gate::{GATE_BYTES, GateKey};

/// Length of an ephemeral key, on the wire and in a Noise message.
pub(crate) const EPHEMERAL_BYTES: usize = 32;

/// Copies a Noise message that begins with an ephemeral key into two datagrams of these lengths, its key replaced by
/// `representative`. Behind the first part `macs` bytes stay free, behind the second the gate.
pub(crate) fn split(
    message: &[u8],
    representative: &[u8; 32],
    [first, second]: [usize; 2],
    macs: usize,
) -> [Vec<u8>; 2] {
    let (front, back) = message.split_at(first - macs);
    debug_assert_eq!(back.len(), second - GATE_BYTES, "the lengths are those of this message");
    let mut datagrams = [vec![0; first], vec![0; second]];
    datagrams[0][..front.len()].copy_from_slice(front);
    datagrams[0][..EPHEMERAL_BYTES].copy_from_slice(representative);
    datagrams[1][..back.len()].copy_from_slice(back);
    datagrams
}

/// A Noise message that came as two datagrams.
pub(crate) struct Joined {
    /// As Noise reads it.
    pub(crate) message: Vec<u8>,
    /// The ephemeral key as it was on the wire.
    pub(crate) representative: [u8; 32],
    /// BLAKE3 of the message as it was on the wire.
    pub(crate) hash: [u8; 32],
}

/// Joins what [`split`] has split. `None` if the first is too short.
pub(crate) fn join([first, second]: [&[u8]; 2], macs: usize) -> Option<Joined> {
    let front = &first[..first.len().checked_sub(macs)?];
    let back = &second[..second.len().checked_sub(GATE_BYTES)?];
    let representative = *front.first_chunk()?;
    let mut message = [front, back].concat();
    let hash = kdf::hash(&message);
    message[..EPHEMERAL_BYTES].copy_from_slice(&elligator::decode(&representative));
    Some(Joined { message, representative, hash })
}

/// Reads a whole message; the payload, padding and all.
pub(crate) fn read(
    noise: &mut HandshakeState,
    message: &[u8],
) -> Result<Zeroizing<Vec<u8>>, Rejected> {
    let mut payload = Zeroizing::new(vec![0; message.len()]);
    let len = noise.read_message(message, &mut payload).map_err(|_| Rejected::Unauthentic)?;
    payload.truncate(len);
    Ok(payload)
}

/// The keys of the gates of what is said after a message, from Noise's chaining key behind it and from that message as it was
/// on the wire. Nobody but the two sides has the former, so what passes such a gate is the other side's.
pub(crate) fn gate(noise: &mut HandshakeState, context: &'static str, hash: &[u8; 32]) -> GateKey {
    let split = Zeroizing::new(noise.dangerously_get_raw_split());
    GateKey::new(kdf::derive_parts(context, &[&split.0, &split.1, hash]))
}

/// The gates of the two datagrams of H2.
pub(crate) fn h2_gates(noise: &mut HandshakeState, h1: &[u8; 32]) -> [GateKey; 2] {
    ["wraith/2 gate 2", "wraith/2 gate 2, second datagram"].map(|context| gate(noise, context, h1))
}

/// The gate of H3.
pub(crate) fn h3_gate(noise: &mut HandshakeState, h2: &[u8; 32]) -> GateKey {
    gate(noise, "wraith/2 gate 3", h2)
}

/// A length drawn uniformly from `range`.
#[must_use]
pub fn draw_len(rng: &mut impl Rng, range: std::ops::RangeInclusive<usize>) -> usize {
    let span = (range.end() - range.start() + 1) as u32;
    range.start() + (rng.next_u32() % span) as usize
}
