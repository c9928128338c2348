//! The QUIC variable-length integer (RFC 9000 §16): one, two, four or eight bytes. The top two bits
//! of the first byte encode the length; the rest is big-endian.
//!
//! Reading accepts every length for a value and never panics. Writing uses the shortest length. A
//! value above [`MAX`] has no encoding and is written as [`MAX`].

/// The largest value that can be written.
pub const MAX: u64 = (1 << 62) - 1;

/// Returns the encoded length of `value`: 1, 2, 4 or 8 bytes.
#[inline]
pub const fn len(value: u64) -> usize {
    match value {
        0..=0x3f => 1,
        0x40..=0x3fff => 2,
        0x4000..=0x3fff_ffff => 4,
        _ => 8,
    }
}

/// Writes `value` at the start of `buf` and returns its encoded length. Panics if `buf` is shorter
/// than [`len`]`(value)`.
pub fn write(buf: &mut [u8], value: u64) -> usize {
    match len(value) {
        1 => {
            buf[0] = value as u8;
            1
        }
        2 => {
            buf[..2].copy_from_slice(&(value as u16 | 0x4000).to_be_bytes());
            2
        }
        4 => {
            buf[..4].copy_from_slice(&(value as u32 | 0x8000_0000).to_be_bytes());
            4
        }
        _ => {
            buf[..8].copy_from_slice(&(value.min(MAX) | 0xc000_0000_0000_0000).to_be_bytes());
            8
        }
    }
}

/// Reads the integer at the start of `bytes`. Returns it and the remaining bytes, or `None` if it
/// is truncated.
#[inline]
pub fn read(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let first = *bytes.first()?;
    let low = u64::from(first & 0x3f);
    match first >> 6 {
        0 => Some((low, &bytes[1..])),
        1 => {
            let (head, rest) = bytes.split_first_chunk::<2>()?;
            Some((u64::from(u16::from_be_bytes(*head) & 0x3fff), rest))
        }
        2 => {
            let (head, rest) = bytes.split_first_chunk::<4>()?;
            Some((u64::from(u32::from_be_bytes(*head) & 0x3fff_ffff), rest))
        }
        _ => {
            let (head, rest) = bytes.split_first_chunk::<8>()?;
            Some((u64::from_be_bytes(*head) & MAX, rest))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_examples_of_rfc_9000_appendix_a_1_are_read() {
        let vectors: [(&[u8], u64); 5] = [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
            (&[0x40, 0x25], 37),
        ];
        for (bytes, value) in vectors {
            assert_eq!(read(bytes), Some((value, &[][..])));
        }
    }

    #[test]
    fn a_value_without_an_encoding_is_written_as_the_maximum() {
        let mut buf = [0; 8];
        assert_eq!(write(&mut buf, u64::MAX), 8);
        assert_eq!(read(&buf), Some((MAX, &[][..])));
    }

    proptest! {
        #[test]
        fn values_survive_in_the_shortest_form(shift in 0u32..62, noise in 0..=MAX) {
            let value = noise >> shift;
            let mut buf = [0; 9];
            let n = write(&mut buf, value);
            prop_assert_eq!(n, len(value));
            prop_assert_eq!(read(&buf[..n]), Some((value, &[][..])));
            prop_assert_eq!(read(&buf[..n - 1]), None);
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..10)) {
            if let Some((value, rest)) = read(&bytes) {
                prop_assert!(value <= MAX && rest.len() < bytes.len());
            }
        }
    }
}
