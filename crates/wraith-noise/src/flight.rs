//! Handshake messages 1 and 2 (H1, H2) on the wire, and the mac1 keys of messages 2 and 3 (H2, H3).
//!
//! Each of the two messages is longer than a datagram may be, so it is sent as two datagrams, split
//! at a random position (SPEC §3). Its ephemeral key is sent as an Elligator2 representative, which
//! looks like random bytes. After message 1 (H1), the mac1 keys are derived from Noise's chaining
//! key, which only the two sides have.

use rand_core::Rng;
use snow::HandshakeState;
use wraith_crypto::{elligator, kdf};
use zeroize::Zeroizing;

use crate::HandshakeError;
use crate::mac1::{MAC1_BYTES, Mac1Key};

/// Length of an ephemeral key in bytes, on the wire and in a Noise message.
pub(crate) const EPHEMERAL_BYTES: usize = 32;

/// Splits a Noise message that begins with an ephemeral key into two datagrams of these lengths,
/// and replaces the key with `representative`. Leaves room for `macs` bytes at the end of the first
/// datagram, and for mac1 at the end of the second.
pub(crate) fn split(
    message: &[u8],
    representative: &[u8; 32],
    [first, second]: [usize; 2],
    macs: usize,
) -> [Vec<u8>; 2] {
    let (front, back) = message.split_at(first - macs);
    debug_assert_eq!(back.len(), second - MAC1_BYTES, "the lengths are those of this message");
    let mut datagrams = [vec![0; first], vec![0; second]];
    datagrams[0][..front.len()].copy_from_slice(front);
    datagrams[0][..EPHEMERAL_BYTES].copy_from_slice(representative);
    datagrams[1][..back.len()].copy_from_slice(back);
    datagrams
}

/// A Noise message reassembled from two datagrams.
pub(crate) struct ReassembledMessage {
    /// The message in Noise's format.
    pub(crate) message: Vec<u8>,
    /// The ephemeral key in its wire format.
    pub(crate) representative: [u8; 32],
    /// BLAKE3 of the message in its wire format.
    pub(crate) hash: [u8; 32],
}

/// Reverses [`split`]. Returns `None` if either datagram is too short.
pub(crate) fn join([first, second]: [&[u8]; 2], macs: usize) -> Option<ReassembledMessage> {
    let front = &first[..first.len().checked_sub(macs)?];
    let back = &second[..second.len().checked_sub(MAC1_BYTES)?];
    let representative = *front.first_chunk()?;
    let mut message = [front, back].concat();
    let hash = kdf::hash(&message);
    message[..EPHEMERAL_BYTES].copy_from_slice(&elligator::decode(&representative));
    Some(ReassembledMessage { message, representative, hash })
}

/// Reads a whole message. Returns its payload, padding included.
pub(crate) fn read(
    noise: &mut HandshakeState,
    message: &[u8],
) -> Result<Zeroizing<Vec<u8>>, HandshakeError> {
    let mut payload = Zeroizing::new(vec![0; message.len()]);
    let len = noise.read_message(message, &mut payload).map_err(|_| HandshakeError::Unauthentic)?;
    payload.truncate(len);
    Ok(payload)
}

/// Derives the mac1 key for the datagrams after a message. The inputs are Noise's chaining key at
/// that point and `hash`, the BLAKE3 hash of the message in its wire format. Only the two sides
/// have that chaining key, so a datagram that passes such a mac1 comes from the other side.
pub(crate) fn mac1(noise: &mut HandshakeState, context: &'static str, hash: &[u8; 32]) -> Mac1Key {
    let split = Zeroizing::new(noise.dangerously_get_raw_split());
    Mac1Key::new(kdf::derive_parts(context, &[&split.0, &split.1, hash]))
}

/// Derives the mac1 keys of the two datagrams of H2.
pub(crate) fn h2_mac1_keys(noise: &mut HandshakeState, h1: &[u8; 32]) -> [Mac1Key; 2] {
    ["wraith/2 gate 2", "wraith/2 gate 2, second datagram"].map(|context| mac1(noise, context, h1))
}

/// Derives the mac1 key of H3.
pub(crate) fn h3_mac1_key(noise: &mut HandshakeState, h2: &[u8; 32]) -> Mac1Key {
    mac1(noise, "wraith/2 gate 3", h2)
}

/// Draws a length uniformly from `range`.
#[must_use]
pub fn draw_len(rng: &mut impl Rng, range: std::ops::RangeInclusive<usize>) -> usize {
    let span = (range.end() - range.start() + 1) as u32;
    range.start() + (rng.next_u32() % span) as usize
}
