//! The side that sends H1 (SPEC §3).

use std::collections::VecDeque;
use std::fmt;

use rand_core::CryptoRng;
use snow::HandshakeState;
use wraith_crypto::{InvalidNodeId, NodeId, SecretIdentity, TAG_BYTES, Wiped, kdf};
use zeroize::{ZeroizeOnDrop, Zeroizing};

use crate::cookie::{CookieKey, H1_MACS_BYTES, MAC2_BYTES};
use crate::mac1::{DatagramKeys, EPHEMERAL_BYTES, MAC1_BYTES, h1_hash};
use crate::payload::{FinalHello, InitiatorHello, ResponderHello};
use crate::{H1_BYTES, H2_BYTES, H3_BYTES, Rejected, SessionKeys, resolver};

/// Forms of H1, the newest ones, to which an answer with a cookie may still come.
const COOKIE_KEYS_MAX: usize = 4;
/// What H3 spends beside its payload: the sealed static key, a tag, mac1.
const H3_OVERHEAD: usize = (32 + TAG_BYTES) + TAG_BYTES + MAC1_BYTES;

/// A handshake we started. [`start`](Self::start) makes H1, to be repeated as it is; [`read_h2`](Self::read_h2) is
/// offered every datagram that may be the answer, until it takes one, and [`read_cookie`](Self::read_cookie) what it does not take;
/// [`write_h3`](Self::write_h3) then ends it.
pub struct Initiator {
    noise: Wiped<HandshakeState>,
    responder: NodeId,
    /// The suites offered in H1.
    suites: u8,
    /// As it was sent last.
    h1: Vec<u8>,
    /// [`h1_hash`] of it, whatever its MACs are.
    h1_hash: [u8; 32],
    /// Of cookies that answer H1 as it was sent, newest first.
    cookie_keys: VecDeque<CookieKey>,
    h2_keys: DatagramKeys,
    /// BLAKE3(H2), once it was read.
    h2_hash: Option<[u8; 32]>,
}

impl Initiator {
    /// Begins a handshake with `responder` and returns H1, `len` bytes long (moved into [`H1_BYTES`]). Draws 48 bytes from
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
        payload.resize(len - EPHEMERAL_BYTES - TAG_BYTES - H1_MACS_BYTES, 0);
        let keys = DatagramKeys::first(responder);
        let mut h1 = write_with_ephemeral(&mut noise, &payload, &keys, H1_MACS_BYTES);
        rng.fill_bytes(&mut h1[len - H1_MACS_BYTES..][..MAC2_BYTES]);
        keys.write_mac1(&mut h1);
        let h1_hash = h1_hash(&h1);
        let initiator = Self {
            noise,
            responder,
            suites: hello.suites,
            cookie_keys: VecDeque::from([CookieKey::new(responder, &h1)]),
            h1: h1.clone(),
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
        if !(*H2_BYTES.start()..=self.h1.len()).contains(&datagram.len()) {
            return Err(Rejected::Length);
        }
        if !self.h2_keys.verifies(datagram) {
            return Err(Rejected::Mac1);
        }
        // A failed read leaves snow where it was: it restores its symmetric state, and the keys of message 2 all come
        // from the `ee` that a new attempt computes again.
        let message = &datagram[..datagram.len() - MAC1_BYTES];
        let payload = read_with_ephemeral(&mut self.noise, message, &self.h2_keys)?;
        let hello = ResponderHello::decode(&payload)?;
        if self.suites & hello.suite.bit() == 0 {
            return Err(Rejected::Malformed);
        }
        self.h2_hash = Some(kdf::hash(datagram));
        Ok(hello)
    }

    /// Reads a cookie, which a responder under load answers H1 with, and returns H1 with the mac2 that it makes: to be sent at
    /// once, and repeated from then on. `None` if `datagram` is no answer of that kind to any of the last few forms of H1, or
    /// brings nothing new. Who saw H1 and knows the NodeId can forge one, so a later one may be the true one: how many are
    /// taken is for the caller to bound.
    pub fn read_cookie(&mut self, datagram: &[u8]) -> Option<Vec<u8>> {
        let cookie = self.cookie_keys.iter().find_map(|key| key.open(datagram))?;
        if cookie.verifies(&self.h1) {
            return None;
        }
        cookie.write_mac2(&mut self.h1);
        DatagramKeys::first(self.responder).write_mac1(&mut self.h1);
        self.cookie_keys.truncate(COOKIE_KEYS_MAX - 1);
        self.cookie_keys.push_front(CookieKey::new(self.responder, &self.h1));
        Some(self.h1.clone())
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

/// Writes a message that begins with an ephemeral key (H1, H2), masks the key and leaves room for `macs` bytes behind it.
pub(crate) fn write_with_ephemeral(
    noise: &mut HandshakeState,
    payload: &[u8],
    keys: &DatagramKeys,
    macs: usize,
) -> Vec<u8> {
    let message = EPHEMERAL_BYTES + payload.len() + TAG_BYTES;
    let mut datagram = vec![0; message + macs];
    noise
        .write_message(payload, &mut datagram[..message])
        .expect("it is our turn, every key is there and the buffer has the message's length");
    keys.toggle_mask(&mut datagram[..message]);
    datagram
}

/// Reads a message that begins with a masked ephemeral key (H1 or H2 without MACs, which have been checked).
pub(crate) fn read_with_ephemeral(
    noise: &mut HandshakeState,
    message: &[u8],
    keys: &DatagramKeys,
) -> Result<Zeroizing<Vec<u8>>, Rejected> {
    let mut message = message.to_vec();
    keys.toggle_mask(&mut message);
    let mut payload = Zeroizing::new(vec![0; message.len() - EPHEMERAL_BYTES - TAG_BYTES]);
    noise.read_message(&message, &mut payload).map_err(|_| Rejected::Unauthentic)?;
    Ok(payload)
}
