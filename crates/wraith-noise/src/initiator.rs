//! The side that sends H1 (SPEC §3).

use std::fmt;

use rand_core::CryptoRng;
use snow::HandshakeState;
use wraith_crypto::{InvalidNodeId, NodeId, SecretIdentity, TAG_BYTES, Wiped, kdf};
use zeroize::{ZeroizeOnDrop, Zeroizing};

use crate::mac1::{DatagramKeys, EPHEMERAL_BYTES, MAC1_BYTES};
use crate::payload::{FinalHello, InitiatorHello, ResponderHello};
use crate::{H1_BYTES, H2_BYTES, H3_BYTES, Rejected, SessionKeys, resolver};

/// What H3 spends beside its payload: the sealed static key, a tag, mac1.
const H3_OVERHEAD: usize = (32 + TAG_BYTES) + TAG_BYTES + MAC1_BYTES;

/// A handshake we started. [`start`](Self::start) makes H1, to be repeated as it is; [`read_h2`](Self::read_h2) is
/// offered every datagram that may be the answer, until it takes one; [`write_h3`](Self::write_h3) then ends it.
pub struct Initiator {
    noise: Wiped<HandshakeState>,
    responder: NodeId,
    /// The suites offered in H1.
    suites: u8,
    h1_len: usize,
    h1_hash: [u8; 32],
    h2_keys: DatagramKeys,
    /// BLAKE3(H2), once it was read.
    h2_hash: Option<[u8; 32]>,
}

impl Initiator {
    /// Begins a handshake with `responder` and returns H1, `len` bytes long (moved into [`H1_BYTES`]). Draws 32 bytes from
    /// `rng` and nothing else.
    ///
    /// # Errors
    /// [`InvalidNodeId::Point`] if nobody can be `responder`.
    pub fn start(
        identity: &SecretIdentity,
        responder: NodeId,
        hello: &InitiatorHello,
        len: usize,
        rng: &mut impl CryptoRng,
    ) -> Result<(Self, Vec<u8>), InvalidNodeId> {
        let mut ephemeral = Zeroizing::new([0; 32]);
        rng.fill_bytes(&mut *ephemeral);
        let mut noise =
            resolver::initiator(&identity.noise_static(), &responder.noise_public()?, &ephemeral);

        let len = len.clamp(*H1_BYTES.start(), *H1_BYTES.end());
        let mut payload = hello.encode();
        payload.resize(len - EPHEMERAL_BYTES - TAG_BYTES - MAC1_BYTES, 0);
        let h1 = write_with_ephemeral(&mut noise, &payload, &DatagramKeys::first(responder));
        let h1_hash = kdf::hash(&h1);
        let initiator = Self {
            noise,
            responder,
            suites: hello.suites,
            h1_len: h1.len(),
            h1_hash,
            h2_keys: DatagramKeys::second(responder, &h1_hash),
            h2_hash: None,
        };
        Ok((initiator, h1))
    }

    /// Reads H2. A datagram that is rejected changes nothing; the right one may still come.
    ///
    /// # Errors
    /// Says why it is not the H2 that answers our H1, for a counter.
    pub fn read_h2(&mut self, datagram: &[u8]) -> Result<ResponderHello, Rejected> {
        if self.h2_hash.is_some() {
            return Err(Rejected::Unexpected);
        }
        if !(*H2_BYTES.start()..=self.h1_len).contains(&datagram.len()) {
            return Err(Rejected::Length);
        }
        if !self.h2_keys.verifies(datagram) {
            return Err(Rejected::Mac1);
        }
        // A failed read leaves snow where it was: it restores its symmetric state, and the keys of message 2 all come
        // from the `ee` that a new attempt computes again.
        let payload = read_with_ephemeral(&mut self.noise, datagram, &self.h2_keys)?;
        let hello = ResponderHello::decode(&payload)?;
        if self.suites & hello.suite.bit() == 0 {
            return Err(Rejected::Malformed);
        }
        self.h2_hash = Some(kdf::hash(datagram));
        Ok(hello)
    }

    /// Ends the handshake: H3, `len` bytes long (moved into [`H3_BYTES`]), to be repeated as it is, and the keys.
    /// `hello.node_id` is our own.
    ///
    /// # Panics
    /// If [`read_h2`](Self::read_h2) has not succeeded.
    #[must_use]
    pub fn write_h3(mut self, hello: &FinalHello, len: usize) -> (Vec<u8>, SessionKeys) {
        let h2_hash = self.h2_hash.expect("H3 is written after H2 was read");
        let len = len.clamp(*H3_BYTES.start(), *H3_BYTES.end());
        let mut payload = hello.encode();
        payload.resize(len - H3_OVERHEAD, 0);
        let mut h3 = vec![0; len];
        self.noise
            .write_message(&payload, &mut h3[..len - MAC1_BYTES])
            .expect("it is our turn, every key is there and the buffer has the message's length");
        DatagramKeys::third(self.responder, &self.h1_hash, &h2_hash).write_mac1(&mut h3);
        let split = Zeroizing::new(self.noise.dangerously_get_raw_split());
        (h3, SessionKeys::new(&split.0, &split.1))
    }
}

impl ZeroizeOnDrop for Initiator {}

impl fmt::Debug for Initiator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Initiator").field("responder", &self.responder).finish_non_exhaustive()
    }
}

/// Writes a message that begins with an ephemeral key (H1, H2), masks the key and adds mac1.
pub(crate) fn write_with_ephemeral(
    noise: &mut HandshakeState,
    payload: &[u8],
    keys: &DatagramKeys,
) -> Vec<u8> {
    let mut datagram = vec![0; EPHEMERAL_BYTES + payload.len() + TAG_BYTES + MAC1_BYTES];
    let message = datagram.len() - MAC1_BYTES;
    noise
        .write_message(payload, &mut datagram[..message])
        .expect("it is our turn, every key is there and the buffer has the message's length");
    keys.toggle_mask(&mut datagram[..message]);
    keys.write_mac1(&mut datagram);
    datagram
}

/// Reads a message that begins with a masked ephemeral key (H1, H2) and whose mac1 has been checked.
pub(crate) fn read_with_ephemeral(
    noise: &mut HandshakeState,
    datagram: &[u8],
    keys: &DatagramKeys,
) -> Result<Zeroizing<Vec<u8>>, Rejected> {
    let mut message = datagram[..datagram.len() - MAC1_BYTES].to_vec();
    keys.toggle_mask(&mut message);
    let mut payload = Zeroizing::new(vec![0; message.len() - EPHEMERAL_BYTES - TAG_BYTES]);
    noise.read_message(&message, &mut payload).map_err(|_| Rejected::Unauthentic)?;
    Ok(payload)
}
