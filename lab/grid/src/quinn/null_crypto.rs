//! Null encryption for quinn in simulated time: the messages and tags have the lengths of TLS 1.3
//! with AES-GCM, without any secrecy.
//!
//! The handshake has TLS's shape, because a simulation measures round trips: ClientHello;
//! ServerHello, and the server's certificate and Finished under handshake keys; the client's
//! Finished.

use std::any::Any;
use std::sync::Arc;

use bytes::BytesMut;
use quinn_proto::crypto::{
    AeadKey, ClientConfig, CryptoError, ExportKeyingMaterialError, HandshakeTokenKey, HeaderKey,
    HmacKey, KeyPair, Keys, PacketKey, ServerConfig, Session, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError};

/// Lengths of an AES-GCM tag and a header protection sample.
const TAG_BYTES: usize = 16;
/// Unlike any token of [`HmacKey::sign`], so that no packet looks like a stateless reset.
const TAG: [u8; TAG_BYTES] = [0x5a; TAG_BYTES];
/// Approximate lengths of the messages of a TLS 1.3 handshake with one ECDSA certificate.
const CLIENT_HELLO_BYTES: usize = 280;
const SERVER_HELLO_BYTES: usize = 90;
const SERVER_FLIGHT_BYTES: usize = 900;
const CLIENT_FINISHED_BYTES: usize = 36;
/// Prefix of each message: its length, and that of the transport parameters in it.
const PREFIX_BYTES: usize = 4;
/// Messages that each side receives.
const MESSAGES_EACH: u32 = 2;
const MAC_BYTES: usize = 32;

/// Null implementation of all cryptographic roles of quinn.
#[derive(Debug)]
pub(super) struct NullCrypto;

/// One side of the handshake.
struct NullSession {
    side: Side,
    own_parameters: Vec<u8>,
    peer_parameters: Option<TransportParameters>,
    received: Vec<u8>,
    messages_received: u32,
    messages_written: u32,
}

fn keys() -> Keys {
    Keys {
        header: KeyPair { local: Box::new(NullCrypto), remote: Box::new(NullCrypto) },
        packet: packet_keys(),
    }
}

fn packet_keys() -> KeyPair<Box<dyn PacketKey>> {
    KeyPair { local: Box::new(NullCrypto), remote: Box::new(NullCrypto) }
}

fn session(side: Side, parameters: &TransportParameters) -> NullSession {
    let mut own_parameters = Vec::new();
    parameters.write(&mut own_parameters);
    NullSession {
        side,
        own_parameters,
        peer_parameters: None,
        received: Vec::new(),
        messages_received: 0,
        messages_written: 0,
    }
}

impl NullSession {
    /// Appends a message of `len` bytes that carries `parameters`.
    fn message(&mut self, buf: &mut Vec<u8>, len: usize, parameters: bool) {
        let empty = Vec::new();
        let carried = if parameters { &self.own_parameters } else { &empty };
        assert!(PREFIX_BYTES + carried.len() <= len, "the parameters fit the message");
        let start = buf.len();
        buf.extend_from_slice(&(len as u16).to_be_bytes());
        buf.extend_from_slice(&(carried.len() as u16).to_be_bytes());
        buf.extend_from_slice(carried);
        buf.resize(start + len, 0);
        self.messages_written += 1;
    }
}

impl Session for NullSession {
    fn initial_keys(&self, _: &ConnectionId, _: Side) -> Keys {
        keys()
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        None
    }

    fn early_data_accepted(&self) -> Option<bool> {
        None
    }

    fn is_handshaking(&self) -> bool {
        self.messages_received < MESSAGES_EACH
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.received.extend_from_slice(buf);
        while let Some([a, b, c, d]) = self.received.first_chunk::<PREFIX_BYTES>().copied() {
            let len = usize::from(u16::from_be_bytes([a, b]));
            let parameters = usize::from(u16::from_be_bytes([c, d]));
            if self.received.len() < len {
                break;
            }
            if parameters > 0 {
                let mut bytes = &self.received[PREFIX_BYTES..PREFIX_BYTES + parameters];
                self.peer_parameters = Some(TransportParameters::read(self.side, &mut bytes)?);
            }
            self.received.drain(..len);
            self.messages_received += 1;
        }
        Ok(false)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        Ok(self.peer_parameters)
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        match (self.side, self.messages_written, self.messages_received) {
            (Side::Client, 0, _) => {
                self.message(buf, CLIENT_HELLO_BYTES, true);
                None
            }
            // ServerHello gives the handshake keys; no message has been sent with them yet.
            (Side::Client, 1, 1..) => {
                self.messages_written += 1;
                Some(keys())
            }
            (Side::Client, 2, MESSAGES_EACH..) => {
                self.message(buf, CLIENT_FINISHED_BYTES, false);
                Some(keys())
            }
            (Side::Server, 0, 1..) => {
                self.message(buf, SERVER_HELLO_BYTES, false);
                Some(keys())
            }
            (Side::Server, 1, 1..) => {
                self.message(buf, SERVER_FLIGHT_BYTES, true);
                Some(keys())
            }
            _ => None,
        }
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        Some(packet_keys())
    }

    fn is_valid_retry(&self, _: &ConnectionId, _: &[u8], _: &[u8]) -> bool {
        false
    }

    fn export_keying_material(
        &self,
        _: &mut [u8],
        _: &[u8],
        _: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}

impl ClientConfig for NullCrypto {
    fn start_session(
        self: Arc<Self>,
        _: u32,
        _: &str,
        parameters: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(Box::new(session(Side::Client, parameters)))
    }
}

impl ServerConfig for NullCrypto {
    fn initial_keys(&self, _: u32, _: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(keys())
    }

    fn retry_tag(&self, _: u32, _: &ConnectionId, _: &[u8]) -> [u8; 16] {
        TAG
    }

    fn start_session(
        self: Arc<Self>,
        _: u32,
        parameters: &TransportParameters,
    ) -> Box<dyn Session> {
        Box::new(session(Side::Server, parameters))
    }
}

impl PacketKey for NullCrypto {
    fn encrypt(&self, _: u64, buf: &mut [u8], _: usize) {
        if let Some(tag) = buf.last_chunk_mut() {
            *tag = TAG;
        }
    }

    fn decrypt(&self, _: u64, _: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        if payload.last_chunk() != Some(&TAG) {
            return Err(CryptoError);
        }
        payload.truncate(payload.len() - TAG_BYTES);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        TAG_BYTES
    }

    fn confidentiality_limit(&self) -> u64 {
        u64::MAX
    }

    fn integrity_limit(&self) -> u64 {
        u64::MAX
    }
}

impl HeaderKey for NullCrypto {
    fn decrypt(&self, _: usize, _: &mut [u8]) {}

    fn encrypt(&self, _: usize, _: &mut [u8]) {}

    fn sample_size(&self) -> usize {
        TAG_BYTES
    }
}

impl HmacKey for NullCrypto {
    /// Repeats the message, so that connection IDs get different tokens.
    fn sign(&self, data: &[u8], signature_out: &mut [u8]) {
        for (out, byte) in signature_out.iter_mut().zip(data.iter().cycle()) {
            *out = byte ^ 0xa5;
        }
    }

    fn signature_len(&self) -> usize {
        MAC_BYTES
    }

    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        let mut expected = vec![0; MAC_BYTES];
        self.sign(data, &mut expected);
        if expected == signature { Ok(()) } else { Err(CryptoError) }
    }
}

impl HandshakeTokenKey for NullCrypto {
    fn aead_from_hkdf(&self, _: &[u8]) -> Box<dyn AeadKey> {
        Box::new(Self)
    }
}

impl AeadKey for NullCrypto {
    fn seal(&self, data: &mut Vec<u8>, _: &[u8]) -> Result<(), CryptoError> {
        data.extend_from_slice(&TAG);
        Ok(())
    }

    fn open<'a>(&self, data: &'a mut [u8], _: &[u8]) -> Result<&'a mut [u8], CryptoError> {
        let end = data.len().checked_sub(TAG_BYTES).ok_or(CryptoError)?;
        Ok(&mut data[..end])
    }
}
