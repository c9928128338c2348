//! The header of every UDP datagram between a client and its relay (SPEC §13.5): an ID and a tag.
//! Both are masked with a sample of the payload. Without the keys, the header is as random as the
//! payload.
//!
//! Both keys belong to one session and direction, so no other client of the relay can recognise its
//! datagrams. The relay finds the session by the source address. A binding message, which comes from
//! an unknown address, carries an ID that is used once, without a mask.
//!
//! Invariant: [`TagKey::matches`] takes constant time, and nothing else in this module depends on a
//! secret.

use wraith_crypto::mask::SAMPLE_BYTES;
use wraith_crypto::{MaskKey, equal, kdf};

/// Length of the header in bytes.
pub const HEADER_BYTES: usize = 16;
/// Length of the ID and of the tag in bytes.
const HALF: usize = HEADER_BYTES / 2;
/// Shortest payload of a datagram, in bytes: its first bytes are the sample. All wraith packets are
/// longer.
pub const INNER_MIN: usize = SAMPLE_BYTES;
/// Longest datagram that a relay carries, in bytes: the protocol's maximum.
pub const INNER_MAX: usize = 65_000;

/// ID in the header: one end of a pair, or a client's binding. Chosen at random by the relay.
pub type WireId = u64;

/// Key of the tags of one end in one direction.
#[derive(Clone, Debug)]
pub struct TagKey(MaskKey);

/// Direction of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From a client to its relay.
    Up,
    /// From a relay to a client.
    Down,
}

impl TagKey {
    /// Derives the key of end `id` of the client whose session has `secret`.
    pub fn new(secret: &[u8; 32], id: WireId, direction: Direction) -> Self {
        let id = id.to_be_bytes();
        Self(MaskKey::new(match direction {
            Direction::Up => kdf::derive_parts("wraith/1 relay tag up", &[secret, &id]),
            Direction::Down => kdf::derive_parts("wraith/1 relay tag down", &[secret, &id]),
        }))
    }

    /// Reports whether `datagram`, including its header, carries this key's tag.
    #[inline]
    pub fn matches(&self, datagram: &[u8]) -> bool {
        let Some((header, sample)) = split(datagram) else { return false };
        equal(&header[HALF..], &self.0.mask(sample)[..HALF])
    }
}

/// Derives the mask key of IDs on the way to the relay. `secret` is that of the client's session.
pub fn up_mask(secret: &[u8; 32]) -> MaskKey {
    MaskKey::new(kdf::derive("wraith/1 relay id mask up", secret))
}

/// Derives the mask key of IDs from the relay to the client whose session has `secret`.
pub fn down_mask(secret: &[u8; 32]) -> MaskKey {
    MaskKey::new(kdf::derive("wraith/1 relay id mask down", secret))
}

/// Reads the ID in the header of `datagram` under `mask`. Returns `None` if it is too short for a
/// header and a sample.
#[inline]
pub fn read_id(mask: &MaskKey, datagram: &[u8]) -> Option<WireId> {
    let (header, sample) = split(datagram)?;
    Some(first_half(header) ^ first_half(&mask.mask(sample)))
}

/// Reads an ID without a mask. Returns `None` if `datagram` is too short for a header and a sample.
#[inline]
pub fn read_plain_id(datagram: &[u8]) -> Option<WireId> {
    split(datagram).map(|(header, _)| first_half(header))
}

/// Same as [`write`] for an ID without a mask, which must be random and used once.
pub fn write_plain(tag: &TagKey, id: WireId, datagram: &mut [u8]) {
    let Some((header, inner)) = datagram.split_first_chunk_mut::<HEADER_BYTES>() else { return };
    let Some(sample) = inner.first_chunk() else { return };
    header[..HALF].copy_from_slice(&id.to_be_bytes());
    header[HALF..].copy_from_slice(&tag.0.mask(sample)[..HALF]);
}

/// Writes the header for `id` into the first 16 bytes of `datagram`. A datagram that is too short
/// for a header and a sample is left unchanged.
#[inline]
pub fn write(mask: &MaskKey, tag: &TagKey, id: WireId, datagram: &mut [u8]) {
    let Some((header, inner)) = datagram.split_first_chunk_mut::<HEADER_BYTES>() else { return };
    let Some(sample) = inner.first_chunk() else { return };
    let (of_id, of_tag) = MaskKey::mask_pair(mask, &tag.0, sample);
    header[..HALF].copy_from_slice(&(id ^ first_half(&of_id)).to_be_bytes());
    header[HALF..].copy_from_slice(&of_tag[..HALF]);
}

fn split(datagram: &[u8]) -> Option<(&[u8; HEADER_BYTES], &[u8; SAMPLE_BYTES])> {
    let (header, inner) = datagram.split_first_chunk()?;
    Some((header, inner.first_chunk()?))
}

fn first_half(block: &[u8; 16]) -> u64 {
    (u128::from_be_bytes(*block) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> (MaskKey, TagKey) {
        (MaskKey::new([1; 32]), TagKey::new(&[2; 32], 7, Direction::Up))
    }

    #[test]
    fn a_header_carries_its_id_and_tag() {
        let (mask, tag) = keys();
        let mut datagram: Vec<u8> = (0..100).collect();
        write(&mask, &tag, 7, &mut datagram);
        assert_eq!(read_id(&mask, &datagram), Some(7));
        assert!(tag.matches(&datagram));
        assert_eq!(datagram[16..], (16..100).collect::<Vec<u8>>());
    }

    #[test]
    fn another_key_direction_id_sample_or_tag_does_not_match() {
        let (mask, tag) = keys();
        let mut datagram = vec![9; 40];
        write(&mask, &tag, 7, &mut datagram);
        assert!(!TagKey::new(&[3; 32], 7, Direction::Up).matches(&datagram));
        assert!(!TagKey::new(&[2; 32], 7, Direction::Down).matches(&datagram));
        assert!(!TagKey::new(&[2; 32], 8, Direction::Up).matches(&datagram));
        for i in 8..32 {
            let mut changed = datagram.clone();
            changed[i] ^= 1;
            assert!(!tag.matches(&changed), "byte {i}");
        }
    }

    #[test]
    fn datagrams_shorter_than_header_and_sample_are_rejected() {
        let (mask, tag) = keys();
        for len in 0..HEADER_BYTES + INNER_MIN {
            let mut datagram = vec![1; len];
            assert_eq!(read_id(&mask, &datagram), None);
            assert!(!tag.matches(&datagram));
            write(&mask, &tag, 7, &mut datagram);
            assert_eq!(datagram, vec![1; len]);
        }
    }

    #[test]
    fn headers_of_two_datagrams_of_one_end_differ() {
        let (mask, tag) = keys();
        let headers = [[5; 64], [6; 64]].map(|mut datagram: [u8; 64]| {
            write(&mask, &tag, 7, &mut datagram);
            u128::from_be_bytes(*datagram.first_chunk().unwrap())
        });
        assert!((32..96).contains(&(headers[0] ^ headers[1]).count_ones()));
    }
}
