//! The side that sends H1 (SPEC §3).

use std::collections::VecDeque;
use std::fmt;

use rand_core::CryptoRng;
use snow::HandshakeState;
use wraith_crypto::kem::ml_kem_768 as kem;
use wraith_crypto::{InvalidNodeId, NodeId, SecretIdentity, TAG_BYTES, Wiped, elligator};
use zeroize::{ZeroizeOnDrop, Zeroizing};

use crate::cookie::CookieKey;
use crate::door::DoorKey;
use crate::flight::{self, EPHEMERAL_BYTES, draw_len};
use crate::gate::{GATE_BYTES, GateKey, Gated};
use crate::h1::{H1_MACS_BYTES, MAC2_BYTES, h1_hash};
use crate::payload::{FinalHello, InitiatorHello, ResponderHello};
use crate::{H1_BYTES, H2_BYTES_MIN, H3_BYTES, Rejected, SessionKeys, resolver};

/// Forms of H1, the newest ones, to which an answer with a cookie may still come.
const COOKIE_KEYS_MAX: usize = 4;
/// What H3 spends beside its payload: the sealed static key, a tag, the gate.
const H3_OVERHEAD: usize = (32 + TAG_BYTES) + TAG_BYTES + GATE_BYTES;
/// What message 1 spends beside its payload: the ephemeral key, the sealed encapsulation key, a tag.
const MESSAGE_1_OVERHEAD: usize =
    EPHEMERAL_BYTES + (kem::ENCAPSULATION_KEY_BYTES + TAG_BYTES) + TAG_BYTES;

/// A handshake we started. [`start`](Self::start) makes the two datagrams of H1, to be repeated as they are;
/// [`read_h2`](Self::read_h2) is offered every datagram that may be of the answer, until it has taken both, and
/// [`read_cookie`](Self::read_cookie) what it does not take; [`write_h3`](Self::write_h3) then ends it.
pub struct Initiator {
    noise: Wiped<HandshakeState>,
    responder: NodeId,
    door: DoorKey,
    /// The suites offered in H1.
    suites: u8,
    /// As it was sent last.
    h1: [Vec<u8>; 2],
    /// Of cookies that answer H1 as it was sent, newest first.
    cookie_keys: VecDeque<CookieKey>,
    h2_gates: [GateKey; 2],
    /// The datagrams of H2 that are here.
    h2: [Option<Vec<u8>>; 2],
    /// The gate of H3, once H2 was read.
    h3_gate: Option<GateKey>,
}

impl Initiator {
    /// Begins a handshake with `responder` at a door of it and returns the datagrams of H1, of lengths in [`H1_BYTES`].
    ///
    /// # Errors
    /// [`InvalidNodeId::Point`] if nobody can be `responder`.
    pub fn start(
        identity: &SecretIdentity,
        responder: NodeId,
        door: &DoorKey,
        ephemeral: &elligator::EphemeralKey,
        hello: &InitiatorHello,
        rng: &mut impl CryptoRng,
    ) -> Result<(Self, [Vec<u8>; 2]), InvalidNodeId> {
        let mut kem_seed = Zeroizing::new([0; 64]);
        rng.fill_bytes(&mut *kem_seed);
        let mut noise = resolver::initiator(
            &identity.noise_static(),
            &responder.noise_public()?,
            ephemeral,
            kem_seed,
        );

        let lens = [draw_len(rng, H1_BYTES), draw_len(rng, H1_BYTES)];
        let message_len = lens[0] + lens[1] - H1_MACS_BYTES - GATE_BYTES;
        let mut payload = hello.encode();
        payload.resize(message_len - MESSAGE_1_OVERHEAD, 0);
        let mut message = vec![0; message_len];
        noise
            .write_message(&payload, &mut message)
            .expect("it is our turn, every key is there and the buffer has the message's length");
        let mut h1 = flight::split(&message, ephemeral.representative(), lens, H1_MACS_BYTES);
        rng.fill_bytes(&mut h1[0][lens[0] - H1_MACS_BYTES..][..MAC2_BYTES]);
        door.write_gate(&mut h1[0]);
        let first = h1_hash(&h1[0]).expect("it is longer than its MACs");
        door.second(&first).write(&mut h1[1]);

        let hash = flight::join([&h1[0], &h1[1]], H1_MACS_BYTES).expect("it was just split").hash;
        let initiator = Self {
            h2_gates: flight::h2_gates(&mut noise, &hash),
            noise,
            responder,
            suites: hello.suites,
            cookie_keys: VecDeque::from([CookieKey::new(door, &h1[0])]),
            door: door.clone(),
            h1: h1.clone(),
            h2: [None, None],
            h3_gate: None,
        };
        Ok((initiator, h1))
    }

    /// Reads a datagram of H2; what it says once both have come. What passes no gate changes nothing, and nor does an H2 that does not
    /// authenticate: the right one may still come. One that does and is [malformed](Rejected::Malformed) ends the attempt. The
    /// responder alone can make it, and could as well say nothing.
    ///
    /// # Errors
    /// Says why it is none of the H2 that answers our H1, for a counter.
    pub fn read_h2(&mut self, datagram: &[u8]) -> Result<Option<ResponderHello>, Rejected> {
        if self.h3_gate.is_some() {
            return Err(Rejected::Unexpected);
        }
        let fits = |h1: &Vec<u8>| (H2_BYTES_MIN..=h1.len()).contains(&datagram.len());
        if !self.h1.iter().any(fits) {
            return Err(Rejected::Length);
        }
        let gated = Gated::of(datagram).ok_or(Rejected::Length)?;
        let part = self.h2_gates.iter().position(|key| key.verifies(&gated));
        let part = part.filter(|part| fits(&self.h1[*part])).ok_or(Rejected::Gate)?;
        // The same H1 may have been answered twice, with another H2: what came last is tried.
        self.h2[part] = Some(datagram.to_vec());
        let [Some(first), Some(second)] = &self.h2 else { return Ok(None) };
        let joined = flight::join([first, second], GATE_BYTES).ok_or(Rejected::Malformed)?;
        // A failed read leaves snow where it was: it restores its symmetric state, and the keys of message 2 all come
        // from the `ee` and `ekem1` that a new attempt computes again.
        let payload = flight::read(&mut self.noise, &joined.message)?;
        let hello = ResponderHello::decode(&payload)?;
        if self.suites & hello.suite.bit() == 0 {
            return Err(Rejected::Malformed);
        }
        self.h3_gate = Some(flight::h3_gate(&mut self.noise, &joined.hash));
        Ok(Some(hello))
    }

    /// Reads a cookie, which a responder under load answers H1 with, and returns H1 with the mac2 that it makes: to be sent at
    /// once, and repeated from then on. `None` if `datagram` is no answer of that kind to any of the last few forms of H1, or
    /// brings nothing new. Who saw H1 and has the door key can forge one, so a later one may be the true one: how many are
    /// taken is for the caller to bound.
    pub fn read_cookie(&mut self, datagram: &[u8]) -> Option<[Vec<u8>; 2]> {
        let cookie = self.cookie_keys.iter().find_map(|key| key.open(datagram))?;
        let first = &mut self.h1[0];
        if cookie.verifies(first) {
            return None;
        }
        cookie.write_mac2(first);
        self.door.write_gate(first);
        self.cookie_keys.truncate(COOKIE_KEYS_MAX - 1);
        self.cookie_keys.push_front(CookieKey::new(&self.door, first));
        Some(self.h1.clone())
    }

    /// Ends the handshake: H3, of a length in [`H3_BYTES`], to be repeated as it is, and the keys. `hello.node_id` is our own.
    ///
    /// # Panics
    /// If [`read_h2`](Self::read_h2) has not returned what H2 says.
    #[must_use]
    pub fn write_h3(
        &mut self,
        hello: &FinalHello,
        rng: &mut impl CryptoRng,
    ) -> (Vec<u8>, SessionKeys) {
        let gate = self.h3_gate.take().expect("H3 is written after H2 was read");
        let len = draw_len(rng, H3_BYTES);
        let mut payload = hello.encode();
        payload.resize(len - H3_OVERHEAD, 0);
        let mut h3 = vec![0; len];
        self.noise
            .write_message(&payload, &mut h3[..len - GATE_BYTES])
            .expect("it is our turn, every key is there and the buffer has the message's length");
        gate.write(&mut h3);
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
