//! The initiator's side of the handshake: sends messages 1 and 3 (H1, H3), reads message 2 (H2)
//! (SPEC §3).

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use rand_core::CryptoRng;
use snow::HandshakeState;
use wraith_crypto::ml_kem_768 as kem;
use wraith_crypto::{InvalidNodeId, NodeId, SecretIdentity, TAG_BYTES, Wiped, elligator};
use zeroize::{ZeroizeOnDrop, Zeroizing};

use crate::access_key::AccessKey;
use crate::cookie::CookieKey;
use crate::flight::{self, EPHEMERAL_BYTES, draw_len};
use crate::h1::{H1_MACS_BYTES, MAC2_BYTES, h1_hash};
use crate::mac1::{MAC1_BYTES, Mac1Datagram, Mac1Key};
use crate::payload::{FinalHello, InitiatorHello, ResponderHello};
use crate::{
    H1_BYTES_ORDINARY, H1_BYTES_SHORT, H2_BYTES_MIN, H3_BYTES, HandshakeError, SessionKeys,
    resolver,
};

/// Number of forms of H1, the newest ones, that a cookie datagram may still answer.
const COOKIE_KEYS_MAX: usize = 4;
/// Bytes of H3 besides its payload: the sealed static key, a tag, mac1.
const H3_OVERHEAD: usize = (32 + TAG_BYTES) + TAG_BYTES + MAC1_BYTES;
/// Bytes of message 1 besides its payload: the ephemeral key, the sealed encapsulation key, a tag.
const MESSAGE_1_OVERHEAD: usize =
    EPHEMERAL_BYTES + (kem::ENCAPSULATION_KEY_BYTES + TAG_BYTES) + TAG_BYTES;

/// An outgoing handshake. The calls in order:
///
/// - [`start`](Self::start) returns the two datagrams of H1, which are retransmitted unchanged.
/// - [`read_h2`](Self::read_h2) gets every datagram that may belong to H2, until it has accepted
///   both.
/// - [`read_cookie`](Self::read_cookie) is offered the datagrams that `read_h2` rejects.
/// - [`write_h3`](Self::write_h3) ends the handshake.
pub struct Initiator {
    noise: Wiped<HandshakeState>,
    responder: NodeId,
    access_key: AccessKey,
    /// The suites offered in H1.
    suites: u8,
    /// H1 as last sent.
    h1: [Vec<u8>; 2],
    /// Keys of the cookies that answer each form of H1 sent so far, newest first.
    cookie_keys: VecDeque<CookieKey>,
    h2_mac1_keys: [Mac1Key; 2],
    /// The datagrams of H2 received so far.
    h2: [Option<Vec<u8>>; 2],
    /// The mac1 key of H3. `None` until H2 has been read.
    h3_mac1_key: Option<Mac1Key>,
}

impl Initiator {
    /// Starts a handshake with `responder` under one of its access keys. Returns the datagrams of
    /// H1, with lengths in [`H1_BYTES_ORDINARY`].
    ///
    /// # Errors
    /// [`InvalidNodeId::Point`] if `responder` is not a valid NodeId.
    pub fn start(
        identity: &SecretIdentity,
        responder: NodeId,
        access_key: &AccessKey,
        ephemeral: &elligator::EphemeralKey,
        hello: &InitiatorHello,
        rng: &mut impl CryptoRng,
    ) -> Result<(Self, [Vec<u8>; 2]), InvalidNodeId> {
        let lens = H1_BYTES_ORDINARY;
        Self::start_within(lens, identity, responder, access_key, ephemeral, hello, rng)
    }

    /// Like [`Self::start`], with lengths in [`H1_BYTES_SHORT`], for a path that drops ordinary
    /// datagrams. No datagram of this handshake is longer.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_short(
        identity: &SecretIdentity,
        responder: NodeId,
        access_key: &AccessKey,
        ephemeral: &elligator::EphemeralKey,
        hello: &InitiatorHello,
        rng: &mut impl CryptoRng,
    ) -> Result<(Self, [Vec<u8>; 2]), InvalidNodeId> {
        let lens = H1_BYTES_SHORT;
        Self::start_within(lens, identity, responder, access_key, ephemeral, hello, rng)
    }

    fn start_within(
        lens: RangeInclusive<usize>,
        identity: &SecretIdentity,
        responder: NodeId,
        access_key: &AccessKey,
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

        let lens = [draw_len(rng, lens.clone()), draw_len(rng, lens)];
        let message_len = lens[0] + lens[1] - H1_MACS_BYTES - MAC1_BYTES;
        let mut payload = hello.encode();
        payload.resize(message_len - MESSAGE_1_OVERHEAD, 0);
        let mut message = vec![0; message_len];
        noise
            .write_message(&payload, &mut message)
            .expect("it is our turn, every key is there and the buffer has the message's length");
        let mut h1 = flight::split(&message, ephemeral.representative(), lens, H1_MACS_BYTES);
        rng.fill_bytes(&mut h1[0][lens[0] - H1_MACS_BYTES..][..MAC2_BYTES]);
        access_key.write_mac1(&mut h1[0]);
        let first = h1_hash(&h1[0]).expect("it is longer than its MACs");
        access_key.second(&first).write(&mut h1[1]);

        let hash = flight::join([&h1[0], &h1[1]], H1_MACS_BYTES).expect("it was just split").hash;
        let initiator = Self {
            h2_mac1_keys: flight::h2_mac1_keys(&mut noise, &hash),
            noise,
            responder,
            suites: hello.suites,
            cookie_keys: VecDeque::from([CookieKey::new(access_key, &h1[0])]),
            access_key: access_key.clone(),
            h1: h1.clone(),
            h2: [None, None],
            h3_mac1_key: None,
        };
        Ok((initiator, h1))
    }

    /// Reads a datagram of H2. Returns the responder's hello once both datagrams have arrived.
    ///
    /// A datagram that passes no mac1 changes nothing, and neither does an H2 that fails to
    /// authenticate: the genuine one may still come. An authentic but
    /// [malformed](HandshakeError::Malformed) H2 ends the attempt. Only the responder can make one,
    /// and it could as well stay silent.
    ///
    /// # Errors
    /// The reason why the datagram is not an H2 that answers this initiator's H1, for a counter.
    pub fn read_h2(&mut self, datagram: &[u8]) -> Result<Option<ResponderHello>, HandshakeError> {
        if self.h3_mac1_key.is_some() {
            return Err(HandshakeError::Unexpected);
        }
        let fits = |h1: &Vec<u8>| (H2_BYTES_MIN..=h1.len()).contains(&datagram.len());
        if !self.h1.iter().any(fits) {
            return Err(HandshakeError::Length);
        }
        let with_mac1 = Mac1Datagram::of(datagram).ok_or(HandshakeError::Length)?;
        let part = self.h2_mac1_keys.iter().position(|key| key.verifies(&with_mac1));
        let part = part.filter(|part| fits(&self.h1[*part])).ok_or(HandshakeError::Mac1)?;
        // A copy of H1 may have been answered with another H2: the newest datagram replaces the
        // older.
        self.h2[part] = Some(datagram.to_vec());
        let [Some(first), Some(second)] = &self.h2 else { return Ok(None) };
        let joined = flight::join([first, second], MAC1_BYTES).ok_or(HandshakeError::Malformed)?;
        // A failed read leaves snow's state as it was: snow restores its symmetric state. All keys
        // of message 2 come from `ee` and `ekem1`, which the next attempt computes again.
        let payload = flight::read(&mut self.noise, &joined.message)?;
        let hello = ResponderHello::decode(&payload)?;
        if self.suites & hello.suite.bit() == 0 {
            return Err(HandshakeError::Malformed);
        }
        self.h3_mac1_key = Some(flight::h3_mac1_key(&mut self.noise, &joined.hash));
        Ok(Some(hello))
    }

    /// Reads a cookie from a responder under load. Returns H1 with the mac2 made from it, which the
    /// caller sends at once and retransmits from then on.
    ///
    /// Returns `None` if `datagram` is not a cookie for any of the last few forms of H1, or if the
    /// cookie is already in use. A host that saw H1 and has the access key can forge a cookie, so a
    /// later one may be the genuine one. The caller limits the number of accepted cookies.
    pub fn read_cookie(&mut self, datagram: &[u8]) -> Option<[Vec<u8>; 2]> {
        let cookie = self.cookie_keys.iter().find_map(|key| key.open(datagram))?;
        let first = &mut self.h1[0];
        if cookie.verifies(first) {
            return None;
        }
        cookie.write_mac2(first);
        self.access_key.write_mac1(first);
        self.cookie_keys.truncate(COOKIE_KEYS_MAX - 1);
        self.cookie_keys.push_front(CookieKey::new(&self.access_key, first));
        Some(self.h1.clone())
    }

    /// Returns the length of the longest datagram of H1. Once H2 has arrived, the path is known to
    /// carry it.
    #[must_use]
    pub fn h1_bytes_max(&self) -> usize {
        self.h1[0].len().max(self.h1[1].len())
    }

    /// Ends the handshake. Returns H3, to be retransmitted unchanged, and the session keys. H3 has
    /// a length in [`H3_BYTES`] and is no longer than H1: the path may drop longer datagrams.
    /// `hello.node_id` is the initiator's own NodeId.
    ///
    /// # Panics
    /// If [`read_h2`](Self::read_h2) has not returned the responder's hello yet.
    #[must_use]
    pub fn write_h3(
        &mut self,
        hello: &FinalHello,
        rng: &mut impl CryptoRng,
    ) -> (Vec<u8>, SessionKeys) {
        let mac1 = self.h3_mac1_key.take().expect("H3 is written after H2 was read");
        let len = draw_len(rng, *H3_BYTES.start()..=self.h1_bytes_max());
        let mut payload = hello.encode();
        payload.resize(len - H3_OVERHEAD, 0);
        let mut h3 = vec![0; len];
        self.noise
            .write_message(&payload, &mut h3[..len - MAC1_BYTES])
            .expect("it is our turn, every key is there and the buffer has the message's length");
        mac1.write(&mut h3);
        let split = Zeroizing::new(self.noise.dangerously_get_raw_split());
        (h3, SessionKeys::new(&split.0, &split.1))
    }
}

impl ZeroizeOnDrop for Initiator {}

wraith_crypto::redacted_debug!(Initiator, responder);
