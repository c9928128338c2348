//! The responder's side of the handshake: reads messages 1 and 3 (H1, H3), sends message 2 (H2)
//! (SPEC §3).

use rand_core::CryptoRng;
use snow::HandshakeState;
use wraith_crypto::ml_kem_768 as kem;
use wraith_crypto::{SecretIdentity, TAG_BYTES, Wiped, elligator, kdf};
use zeroize::{ZeroizeOnDrop, Zeroizing};

use crate::access_key::AccessKey;
use crate::flight::{self, EPHEMERAL_BYTES, draw_len};
use crate::h1::{H1_MACS_BYTES, h1_hash};
use crate::mac1::{MAC1_BYTES, Mac1Datagram, Mac1Key};
use crate::payload::{FinalHello, InitiatorHello, PAYLOAD_2_BYTES_MAX, ResponderHello};
use crate::{H1_BYTES, H2_BYTES_MIN, H3_BYTES, HandshakeError, SessionKeys, resolver};

/// Bytes of message 2 besides its payload: the ephemeral key, the sealed KEM ciphertext, a tag.
const MESSAGE_2_OVERHEAD: usize = EPHEMERAL_BYTES + (kem::CIPHERTEXT_BYTES + TAG_BYTES) + TAG_BYTES;
/// Least total length of the two datagrams of H2, so that every payload 2 fits. Less than the
/// shortest H1.
const H2_TOTAL_MIN: usize = MESSAGE_2_OVERHEAD + PAYLOAD_2_BYTES_MAX + 2 * MAC1_BYTES;
const _: () = assert!(H2_TOTAL_MIN <= 2 * *H1_BYTES.start());
const _: () = assert!(H2_TOTAL_MIN >= 2 * H2_BYTES_MIN);

/// First datagram of an H1 with a valid mac1, waiting for the second. So far it has cost only
/// hashes.
pub struct PendingH1 {
    datagram: Vec<u8>,
    access_key: AccessKey,
    second_mac1_key: Mac1Key,
    id: [u8; 16],
}

impl PendingH1 {
    /// Checks a datagram against `access_key` and keeps a copy.
    ///
    /// # Errors
    /// [`HandshakeError::Mac1`] if [`AccessKey::accepts`] fails, [`HandshakeError::Length`] if the
    /// length is not permitted.
    pub fn new(access_key: &AccessKey, datagram: &[u8]) -> Result<Self, HandshakeError> {
        let with_mac1 = Mac1Datagram::of(datagram).ok_or(HandshakeError::Length)?;
        if !H1_BYTES.contains(&datagram.len()) {
            return Err(HandshakeError::Length);
        }
        if !access_key.accepts(&with_mac1) {
            return Err(HandshakeError::Mac1);
        }
        let hash = h1_hash(datagram).ok_or(HandshakeError::Length)?;
        let id = *hash.first_chunk().expect("32 bytes hold 16");
        Ok(Self {
            datagram: datagram.to_vec(),
            access_key: access_key.clone(),
            second_mac1_key: access_key.second(&hash),
            id,
        })
    }

    /// Returns the ID of the attempt: [`h1_id`](crate::h1_id).
    #[must_use]
    pub const fn id(&self) -> [u8; 16] {
        self.id
    }

    /// Returns the access key of the initiator.
    #[must_use]
    pub const fn access_key(&self) -> &AccessKey {
        &self.access_key
    }

    /// Returns an ID of the ephemeral key. It does not depend on the spare bits, or on the
    /// representative that was chosen for the key. Of two H1s with the same ID, at least one is a
    /// forgery or a copy. Costs a square root.
    #[must_use]
    pub fn ephemeral_id(&self) -> [u8; 16] {
        let representative = self.datagram.first_chunk().expect("it has the length of an H1");
        *kdf::hash(&elligator::decode(representative)).first_chunk().expect("32 bytes hold 16")
    }

    /// Returns whether `datagram` is the second datagram of this H1.
    #[must_use]
    pub fn is_second_datagram(&self, datagram: &Mac1Datagram<'_>) -> bool {
        H1_BYTES.contains(&datagram.bytes().len()) && self.second_mac1_key.verifies(datagram)
    }
}

wraith_crypto::redacted_debug!(PendingH1);

/// An incoming handshake. The calls in order:
///
/// - [`read_h1`](Self::read_h1) creates it.
/// - [`write_h2`](Self::write_h2) is called once.
/// - [`read_h3`](Self::read_h3) gets every datagram that may be H3, until it accepts one.
pub struct Responder {
    noise: Wiped<HandshakeState>,
    representative: [u8; 32],
    h1_lens: [usize; 2],
    h2_mac1_keys: [Mac1Key; 2],
    progress: ResponderState,
}

enum ResponderState {
    ReadH1,
    WroteH2 { h3_mac1_key: Mac1Key },
    Done,
}

impl Responder {
    /// Reads H1. `second` has to [follow](PendingH1::is_second_datagram) the first datagram.
    /// `ephemeral` is the responder's own key, and must be fresh; 32 bytes are drawn from `rng`.
    /// The caller checks the initiator's clock and whether the same H1 was seen before.
    ///
    /// # Errors
    /// The reason why the datagrams are not an H1 for this responder, for a counter.
    pub fn read_h1(
        identity: &SecretIdentity,
        first: &PendingH1,
        second: &[u8],
        ephemeral: &elligator::EphemeralKey,
        rng: &mut impl CryptoRng,
    ) -> Result<(Self, InitiatorHello), HandshakeError> {
        let with_mac1 = Mac1Datagram::of(second).ok_or(HandshakeError::Length)?;
        if !first.is_second_datagram(&with_mac1) {
            return Err(HandshakeError::Mac1);
        }
        let h1 = [&first.datagram[..], second];
        let joined = flight::join(h1, H1_MACS_BYTES).ok_or(HandshakeError::Length)?;
        let mut kem_seed = Zeroizing::new([0; 32]);
        rng.fill_bytes(&mut *kem_seed);
        let mut noise = resolver::responder(
            &identity.noise_static(),
            ephemeral,
            &joined.representative,
            kem_seed,
        );
        let payload = flight::read(&mut noise, &joined.message)?;
        let hello = InitiatorHello::decode(&payload)?;
        let responder = Self {
            h2_mac1_keys: flight::h2_mac1_keys(&mut noise, &joined.hash),
            noise,
            representative: *ephemeral.representative(),
            h1_lens: h1.map(<[u8]>::len),
            progress: ResponderState::ReadH1,
        };
        Ok((responder, hello))
    }

    /// Returns the two datagrams of H2, to be retransmitted unchanged. Neither is longer than its
    /// counterpart in H1.
    ///
    /// # Errors
    /// [`HandshakeError::Malformed`] if the initiator's encapsulation key is invalid.
    ///
    /// # Panics
    /// If it was called before.
    pub fn write_h2(
        &mut self,
        hello: &ResponderHello,
        rng: &mut impl CryptoRng,
    ) -> Result<[Vec<u8>; 2], HandshakeError> {
        assert!(matches!(self.progress, ResponderState::ReadH1), "H2 is written once");
        let [first_max, second_max] = self.h1_lens;
        let total = draw_len(rng, H2_TOTAL_MIN..=first_max + second_max);
        let shortest = H2_BYTES_MIN.max(total.saturating_sub(second_max));
        let first = draw_len(rng, shortest..=first_max.min(total - H2_BYTES_MIN));
        let message_len = total - 2 * MAC1_BYTES;

        let mut payload = hello.encode();
        payload.resize(message_len - MESSAGE_2_OVERHEAD, 0);
        let mut message = vec![0; message_len];
        self.noise.write_message(&payload, &mut message).map_err(|_| HandshakeError::Malformed)?;
        let lens = [first, total - first];
        let mut h2 = flight::split(&message, &self.representative, lens, MAC1_BYTES);
        for (mac1, datagram) in self.h2_mac1_keys.iter().zip(&mut h2) {
            mac1.write(datagram);
        }
        let hash = flight::join([&h2[0], &h2[1]], MAC1_BYTES).expect("it was just split").hash;
        let h3_mac1_key = flight::h3_mac1_key(&mut self.noise, &hash);
        self.progress = ResponderState::WroteH2 { h3_mac1_key };
        Ok(h2)
    }

    /// Returns the length of the longest datagram of H1. The path is known to carry it.
    #[must_use]
    pub fn h1_bytes_max(&self) -> usize {
        self.h1_lens[0].max(self.h1_lens[1])
    }

    /// Returns whether `datagram` has the mac1 of an H3 that answers this responder's H2. Only the
    /// initiator of this handshake can make that mac1.
    #[must_use]
    pub fn is_h3(&self, datagram: &Mac1Datagram<'_>) -> bool {
        match &self.progress {
            ResponderState::WroteH2 { h3_mac1_key } => h3_mac1_key.verifies(datagram),
            ResponderState::ReadH1 | ResponderState::Done => false,
        }
    }

    /// Reads H3. On success the initiator has proven its identity: [`FinalHello::node_id`] is
    /// authenticated.
    ///
    /// A datagram that does not pass mac1 changes nothing; the genuine one may still come.
    /// After one that does, everything is rejected: it comes from the initiator, and the keys are
    /// returned only once.
    ///
    /// # Errors
    /// The reason why the datagram is not the H3 that answers this responder's H2, for a counter.
    pub fn read_h3(
        &mut self,
        datagram: &[u8],
    ) -> Result<(FinalHello, SessionKeys), HandshakeError> {
        if !matches!(self.progress, ResponderState::WroteH2 { .. }) {
            return Err(HandshakeError::Unexpected);
        }
        if !H3_BYTES.contains(&datagram.len()) {
            return Err(HandshakeError::Length);
        }
        let with_mac1 = Mac1Datagram::of(datagram).ok_or(HandshakeError::Length)?;
        if !self.is_h3(&with_mac1) {
            return Err(HandshakeError::Mac1);
        }
        self.progress = ResponderState::Done;
        let payload = flight::read(&mut self.noise, &datagram[..datagram.len() - MAC1_BYTES])?;
        let hello = FinalHello::decode(&payload)?;
        let claimed = hello.node_id.noise_public().map_err(|_| HandshakeError::Identity)?;
        if self.noise.get_remote_static() != Some(&claimed[..]) {
            return Err(HandshakeError::Identity);
        }
        let split = Zeroizing::new(self.noise.dangerously_get_raw_split());
        Ok((hello, SessionKeys::new(&split.1, &split.0)))
    }
}

impl ZeroizeOnDrop for Responder {}

wraith_crypto::redacted_debug!(Responder);
