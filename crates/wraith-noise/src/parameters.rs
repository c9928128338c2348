//! Transport parameters: the limits that each side announces during the handshake (SPEC §3.3). The
//! responder sends them in payload 2, the initiator in payload 3.

use crate::HandshakeError;

/// Largest value of a varint (RFC 9000 §16).
const VARINT_MAX: u64 = (1 << 62) - 1;

/// Limits announced by one side. A parameter that is not sent has its default value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Idle timeout of the connection, in milliseconds.
    pub max_idle_timeout_ms: u64,
    /// Initial limit on the bytes the peer may send on all streams together.
    pub initial_max_data: u64,
    /// Initial limit on the bytes the peer may send on each stream.
    pub initial_max_stream_data: u64,
    /// Initial limit on the streams the peer may open.
    pub initial_max_streams: u64,
    /// Maximum accepted length of a DATAGRAM frame, in bytes; 0 means none is accepted.
    pub max_datagram_frame_size: u64,
    /// Maximum accepted length of a UDP payload, in bytes.
    pub max_udp_payload: u64,
    /// Maximum time by which the announcing side delays an acknowledgement on purpose, in
    /// microseconds.
    pub max_ack_delay_us: u64,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            max_idle_timeout_ms: 30_000,
            initial_max_data: 0,
            initial_max_stream_data: 0,
            initial_max_streams: 0,
            max_datagram_frame_size: 0,
            max_udp_payload: 1252,
            max_ack_delay_us: 25_000,
        }
    }
}

impl Parameters {
    /// Number of parameters. Their IDs are 1 to this number.
    const COUNT: usize = 7;
    /// Maximum length of [`Parameters::encode`]'s output: per parameter an ID, a length and the
    /// longest varint.
    pub(crate) const BYTES_MAX: usize = Self::COUNT * (1 + 1 + 8);

    fn values(&self) -> [u64; Self::COUNT] {
        [
            self.max_idle_timeout_ms,
            self.initial_max_data,
            self.initial_max_stream_data,
            self.initial_max_streams,
            self.max_datagram_frame_size,
            self.max_udp_payload,
            self.max_ack_delay_us,
        ]
    }

    fn value_mut(&mut self, id: u64) -> Option<&mut u64> {
        Some(match id {
            1 => &mut self.max_idle_timeout_ms,
            2 => &mut self.initial_max_data,
            3 => &mut self.initial_max_stream_data,
            4 => &mut self.initial_max_streams,
            5 => &mut self.max_datagram_frame_size,
            6 => &mut self.max_udp_payload,
            7 => &mut self.max_ack_delay_us,
            _ => return None,
        })
    }

    /// Appends every parameter that differs from its default, in order of ID. Larger values are
    /// sent as 2^62 − 1.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let defaults = Self::default().values();
        for (id, (value, default)) in (1..).zip(self.values().into_iter().zip(defaults)) {
            if value != default {
                let value = value.min(VARINT_MAX);
                let length = varint_len(value);
                out.extend([id, length as u8]);
                put_varint(out, value, length);
            }
        }
    }

    /// Reads parameters up to the padding (ID 0) or the end of the input.
    pub(crate) fn decode(mut input: &[u8]) -> Result<Self, HandshakeError> {
        let mut parameters = Self::default();
        let mut previous = 0;
        while !input.is_empty() {
            let id = take_varint(&mut input)?;
            if id == 0 {
                break;
            }
            if id <= previous {
                return Err(HandshakeError::Malformed);
            }
            previous = id;
            let length = usize::try_from(take_varint(&mut input)?).unwrap_or(usize::MAX);
            let (mut value, rest) =
                input.split_at_checked(length).ok_or(HandshakeError::Malformed)?;
            input = rest;
            if let Some(field) = parameters.value_mut(id) {
                *field = take_varint(&mut value)?;
                if !value.is_empty() {
                    return Err(HandshakeError::Malformed);
                }
            }
        }
        Ok(parameters)
    }
}

/// Returns the shortest length of a varint: 1, 2, 4 or 8 bytes.
const fn varint_len(value: u64) -> usize {
    match value {
        0..0x40 => 1,
        0x40..0x4000 => 2,
        0x4000..0x4000_0000 => 4,
        _ => 8,
    }
}

/// Appends a varint of `length` bytes, as given by [`varint_len`].
fn put_varint(out: &mut Vec<u8>, value: u64, length: usize) {
    let mut bytes = value.to_be_bytes();
    bytes[8 - length] |= (length.trailing_zeros() as u8) << 6;
    out.extend(&bytes[8 - length..]);
}

fn take_varint(input: &mut &[u8]) -> Result<u64, HandshakeError> {
    let first = *input.first().ok_or(HandshakeError::Malformed)?;
    let (bytes, rest) =
        input.split_at_checked(1 << (first >> 6)).ok_or(HandshakeError::Malformed)?;
    *input = rest;
    let value = bytes.iter().fold(0, |value, &byte| value << 8 | u64::from(byte));
    // The top two bits of the first byte encode the length.
    Ok(value & (u64::MAX >> (64 - 8 * bytes.len() + 2)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encoded(parameters: &Parameters) -> Vec<u8> {
        let mut out = Vec::new();
        parameters.encode(&mut out);
        out
    }

    #[test]
    fn varints_are_those_of_rfc_9000_appendix_a_1() {
        let examples: [(&[u8], u64); 5] = [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
            (&[0xff; 8], VARINT_MAX),
        ];
        for (bytes, value) in examples {
            let mut input = bytes;
            assert_eq!(take_varint(&mut input), Ok(value));
            let mut out = Vec::new();
            put_varint(&mut out, value, varint_len(value));
            assert_eq!(out, bytes);
        }
        // A longer encoding than necessary is accepted.
        assert_eq!(take_varint(&mut &[0x40, 0x25][..]), Ok(37));
    }

    #[test]
    fn nothing_at_all_means_the_defaults() {
        assert_eq!(Parameters::decode(&[]), Ok(Parameters::default()));
        assert_eq!(Parameters::decode(&[0; 50]), Ok(Parameters::default()));
        assert_eq!(encoded(&Parameters::default()), []);
    }

    #[test]
    fn unknown_parameters_are_skipped_and_repeated_ones_are_an_error() {
        let known =
            Parameters { initial_max_data: 9, max_ack_delay_us: 5, ..Parameters::default() };
        assert_eq!(Parameters::decode(&[2, 1, 9, 7, 1, 5, 8, 0, 40, 2, 0xff, 0xff, 0]), Ok(known));
        for repeated in [&[2, 1, 9, 2, 1, 9][..], &[40, 0, 40, 0], &[3, 1, 1, 2, 1, 1]] {
            assert_eq!(Parameters::decode(repeated), Err(HandshakeError::Malformed));
        }
    }

    #[test]
    fn a_value_must_be_exactly_one_varint() {
        for wrong in [&[1, 0][..], &[1, 2, 1, 1], &[1, 1, 0x40], &[1, 2, 1], &[1], &[0x40]] {
            assert_eq!(Parameters::decode(wrong), Err(HandshakeError::Malformed));
        }
    }

    fn any_parameters() -> impl Strategy<Value = Parameters> {
        let value = || prop_oneof![0..100u64, 0..=VARINT_MAX, Just(1252), Just(25_000)];
        prop::array::uniform7(value()).prop_map(|values| {
            let mut parameters = Parameters::default();
            for (id, value) in (1..).zip(values) {
                *parameters.value_mut(id).unwrap() = value;
            }
            parameters
        })
    }

    proptest! {
        #[test]
        fn what_is_encoded_decodes(parameters in any_parameters(), padding in 0..40usize) {
            let mut bytes = encoded(&parameters);
            prop_assert!(bytes.len() <= Parameters::BYTES_MAX);
            bytes.resize(bytes.len() + padding, 0);
            prop_assert_eq!(Parameters::decode(&bytes), Ok(parameters));
        }

        #[test]
        fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Parameters::decode(&bytes);
        }
    }
}
