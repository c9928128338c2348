//! Payloads of the three handshake messages (SPEC §3.3): fixed fields, parameters, zero padding.
//!
//! The padding is authenticated with the rest, and its content is ignored.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use wraith_crypto::{NodeId, Suite};
use zeroize::Zeroizing;

use crate::{H1_BYTES, HandshakeError, Parameters};

pub(crate) const VERSION: u8 = 2;
const FLAG_AES_HARDWARE: u8 = 1;
/// Encoded address: family ‖ ip ‖ port.
const ADDRESS_BYTES: usize = 1 + 16 + 2;

/// Maximum length of payload 2 without padding.
pub(crate) const PAYLOAD_2_BYTES_MAX: usize = 1 + ADDRESS_BYTES + Parameters::BYTES_MAX;

/// Payload 1, sent by the initiator in H1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitiatorHello {
    /// Suites that the initiator accepts: [`Suite::bit`]s.
    pub suites: u8,
    /// Whether the initiator's processor has AES instructions.
    pub aes_hardware: bool,
    /// The initiator's clock, in seconds since 1970.
    pub unix_seconds: u64,
}

impl InitiatorHello {
    /// Encodes the payload, without padding.
    #[must_use]
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        let mut out = room();
        let flags = if self.aes_hardware { FLAG_AES_HARDWARE } else { 0 };
        out.extend([VERSION, self.suites, flags]);
        out.extend(self.unix_seconds.to_be_bytes());
        out
    }

    /// Decodes a decrypted payload, padding included.
    ///
    /// # Errors
    /// [`HandshakeError::Version`] for another protocol version; [`HandshakeError::Malformed`] for
    /// an invalid payload.
    pub fn decode(mut input: &[u8]) -> Result<Self, HandshakeError> {
        let [version, suites, flags] = take(&mut input)?;
        if version != VERSION {
            return Err(HandshakeError::Version);
        }
        Ok(Self {
            suites,
            aes_hardware: flags & FLAG_AES_HARDWARE != 0,
            unix_seconds: u64::from_be_bytes(take(&mut input)?),
        })
    }
}

/// Selects the suite for a connection, as the responder (SPEC §3.3). Returns the first suite in the
/// order of preference that both sides accept and this build has ([`Suite::is_built`]), or `None` if
/// there is no such suite.
///
/// - Both processors have AES instructions: AES-256-GCM, ChaCha20-Poly1305, SM4-GCM.
/// - Otherwise: ChaCha20-Poly1305, AES-256-GCM, SM4-GCM.
///
/// `ours` holds the [`Suite::bit`]s that the responder accepts.
#[must_use]
pub fn negotiate(hello: &InitiatorHello, ours: u8, our_aes_hardware: bool) -> Option<Suite> {
    let order = match hello.aes_hardware && our_aes_hardware {
        true => [Suite::Aes256Gcm, Suite::ChaCha20Poly1305, Suite::Sm4Gcm],
        false => [Suite::ChaCha20Poly1305, Suite::Aes256Gcm, Suite::Sm4Gcm],
    };
    order.into_iter().find(|suite| suite.is_built() && hello.suites & ours & suite.bit() != 0)
}

/// Payload 2, sent by the responder in H2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponderHello {
    /// The selected suite, used by both sides for all packets.
    pub suite: Suite,
    /// The source address of H1, as observed by the responder.
    pub observed: SocketAddr,
    /// The responder's limits.
    pub parameters: Parameters,
}

impl ResponderHello {
    /// Encodes the payload, without padding.
    #[must_use]
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        let mut out = room();
        out.push(self.suite.to_wire());
        put_address(&mut out, self.observed);
        self.parameters.encode(&mut out);
        out
    }

    /// Decodes a decrypted payload, padding included.
    ///
    /// # Errors
    /// [`HandshakeError::Malformed`] for an invalid payload.
    pub fn decode(mut input: &[u8]) -> Result<Self, HandshakeError> {
        let [suite] = take(&mut input)?;
        Ok(Self {
            suite: Suite::from_wire(suite).ok_or(HandshakeError::Malformed)?,
            observed: take_address(&mut input)?,
            parameters: Parameters::decode(input)?,
        })
    }
}

/// Payload 3, sent by the initiator in H3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinalHello {
    /// The initiator's identity. In a hello returned by [`crate::Responder::read_h3`] it is
    /// authenticated.
    pub node_id: NodeId,
    /// The initiator's limits.
    pub parameters: Parameters,
}

impl FinalHello {
    /// Encodes the payload, without padding.
    #[must_use]
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        let mut out = room();
        out.extend(self.node_id.as_bytes());
        self.parameters.encode(&mut out);
        out
    }

    /// Decodes a decrypted payload, padding included. Does not check `node_id`.
    ///
    /// # Errors
    /// [`HandshakeError::Malformed`] for an invalid payload.
    pub fn decode(mut input: &[u8]) -> Result<Self, HandshakeError> {
        Ok(Self { node_id: NodeId(take(&mut input)?), parameters: Parameters::decode(input)? })
    }
}

/// Returns a buffer with capacity for any padded payload: a buffer that grows leaves copies of
/// secrets in freed memory.
fn room() -> Zeroizing<Vec<u8>> {
    Zeroizing::new(Vec::with_capacity(2 * *H1_BYTES.end()))
}

fn take<const N: usize>(input: &mut &[u8]) -> Result<[u8; N], HandshakeError> {
    let (bytes, rest) = input.split_first_chunk().ok_or(HandshakeError::Malformed)?;
    *input = rest;
    Ok(*bytes)
}

fn put_address(out: &mut Vec<u8>, address: SocketAddr) {
    let (family, ip) = match address.ip() {
        IpAddr::V4(ip) => {
            let mut bytes = [0; 16];
            bytes[..4].copy_from_slice(&ip.octets());
            (4, bytes)
        }
        IpAddr::V6(ip) => (6, ip.octets()),
    };
    out.push(family);
    out.extend(ip);
    out.extend(address.port().to_be_bytes());
}

fn take_address(input: &mut &[u8]) -> Result<SocketAddr, HandshakeError> {
    let [family] = take(input)?;
    let ip: [u8; 16] = take(input)?;
    let port = u16::from_be_bytes(take(input)?);
    let ip = match family {
        4 => IpAddr::V4(Ipv4Addr::new(ip[0], ip[1], ip[2], ip[3])),
        6 => IpAddr::V6(Ipv6Addr::from(ip)),
        _ => return Err(HandshakeError::Malformed),
    };
    Ok(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hello(suites: u8, aes_hardware: bool) -> InitiatorHello {
        InitiatorHello { suites, aes_hardware, unix_seconds: 3 }
    }

    #[test]
    fn payload_1_is_laid_out_as_specified() {
        let mut expected = vec![2, 3, 1];
        expected.extend([0, 0, 0, 0, 0, 0, 0, 3]);
        assert_eq!(*hello(3, true).encode(), expected);
    }

    #[test]
    fn another_version_is_told_from_a_malformed_payload() {
        let mut bytes = hello(3, true).encode();
        bytes[0] = 1;
        assert_eq!(InitiatorHello::decode(&bytes), Err(HandshakeError::Version));
        assert_eq!(InitiatorHello::decode(&[2, 3, 1]), Err(HandshakeError::Malformed));
    }

    #[test]
    fn aes_comes_first_where_both_sides_have_it_in_hardware_and_nothing_is_taken_that_one_does_not_want()
     {
        let (aes, chacha) = (Some(Suite::Aes256Gcm), Some(Suite::ChaCha20Poly1305));
        assert_eq!(negotiate(&hello(3, true), 3, true), aes);
        assert_eq!(negotiate(&hello(3, true), 3, false), chacha);
        assert_eq!(negotiate(&hello(3, false), 3, true), chacha);
        assert_eq!(negotiate(&hello(3, true), 2, true), chacha);
        assert_eq!(negotiate(&hello(2, true), 3, true), chacha);
        assert_eq!(negotiate(&hello(1, true), 3, true), aes);
        assert_eq!(negotiate(&hello(1, true), 2, true), None);
        assert_eq!(negotiate(&hello(1, false), 3, true), aes);
        assert_eq!(negotiate(&hello(7, true), 7, true), aes);
        assert_eq!(negotiate(&hello(7, false), 7, true), chacha);
        assert_eq!(negotiate(&hello(4, true), 3, true), None);
        assert_eq!(negotiate(&hello(0xf8, true), 0xff, true), None);
    }

    #[test]
    fn a_build_without_sm4_has_no_suite_in_common_with_a_peer_that_wants_only_sm4() {
        let sm4 = Suite::Sm4Gcm.is_built().then_some(Suite::Sm4Gcm);
        for ours in [4, 7] {
            assert_eq!(negotiate(&hello(4, true), ours, true), sm4);
        }
        assert_eq!(negotiate(&hello(7, false), 4, true), sm4);
        let answer = ResponderHello {
            suite: Suite::Sm4Gcm,
            observed: "[::1]:1".parse().unwrap(),
            parameters: Parameters::default(),
        };
        let decoded = ResponderHello::decode(&answer.encode()).map(|hello| hello.suite);
        assert_eq!(decoded, sm4.ok_or(HandshakeError::Malformed));
    }

    #[test]
    fn the_longest_payload_2_is_as_long_as_said() {
        let huge = u64::MAX;
        let longest = ResponderHello {
            suite: Suite::Aes256Gcm,
            observed: "[::1]:1".parse().unwrap(),
            parameters: Parameters {
                max_idle_timeout_ms: huge,
                initial_max_data: huge,
                initial_max_stream_data: huge,
                initial_max_streams: huge,
                max_datagram_frame_size: huge,
                max_udp_payload: huge,
                max_ack_delay_us: huge,
            },
        };
        assert_eq!(longest.encode().len(), PAYLOAD_2_BYTES_MAX);
    }

    proptest! {
        #[test]
        fn payloads_decode_to_what_was_encoded(
            suites: u8, aes_hardware: bool, node_id: [u8; 32], unix_seconds: u64,
            ip: std::net::IpAddr, port: u16, max_udp_payload in 0..1u64 << 62, padding in 0..100usize,
        ) {
            let padded = |bytes: Zeroizing<Vec<u8>>| [&bytes[..], &vec![0; padding]].concat();
            let parameters = Parameters { max_udp_payload, ..Parameters::default() };

            let one = InitiatorHello { suites, aes_hardware, unix_seconds };
            prop_assert_eq!(InitiatorHello::decode(&padded(one.encode())), Ok(one));

            let suite = Suite::ChaCha20Poly1305;
            let observed = SocketAddr::new(ip, port);
            let two = ResponderHello { suite, observed, parameters };
            prop_assert_eq!(ResponderHello::decode(&padded(two.encode())), Ok(two));

            let three = FinalHello { node_id: NodeId(node_id), parameters };
            prop_assert_eq!(FinalHello::decode(&padded(three.encode())), Ok(three));
        }

        #[test]
        fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = InitiatorHello::decode(&bytes);
            let _ = ResponderHello::decode(&bytes);
            let _ = FinalHello::decode(&bytes);
        }
    }
}
