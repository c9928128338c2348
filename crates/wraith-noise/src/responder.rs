//! The side that answers H1 (SPEC §3).
//!
//! Reading H3 consumes Noise state: its first part may verify and its second not, if somebody who saw the handshake
//! and knows our NodeId sends the beginning of the true H3 with another end. snow cannot step back from there, so the
//! state is a function of inputs we keep, and a failed attempt is followed by building it again.

use std::fmt;

use rand_core::CryptoRng;
use snow::HandshakeState;
use wraith_crypto::{NodeId, SecretIdentity, TAG_BYTES, Wiped, kdf};
use zeroize::{ZeroizeOnDrop, Zeroizing};

use crate::cookie::H1_MACS_BYTES;
use crate::initiator::{read_with_ephemeral, write_with_ephemeral};
use crate::mac1::{DatagramKeys, EPHEMERAL_BYTES, MAC1_BYTES, Mac1Key, h1_hash};
use crate::payload::{FinalHello, H2_BYTES_MIN, InitiatorHello, ResponderHello};
use crate::{H1_BYTES, H2_BYTES, H3_BYTES, Rejected, SessionKeys, resolver};

/// A handshake somebody started with us: [`read_h1`](Self::read_h1), [`write_h2`](Self::write_h2) once, then
/// [`read_h3`](Self::read_h3) is offered every datagram that may be H3, until it takes one.
pub struct Responder {
    inputs: Inputs,
    /// Ready to read H3, or to write H2 before that. `None` after an attempt that failed.
    noise: Option<Wiped<HandshakeState>>,
    progress: Progress,
}

/// All that determines the Noise state.
struct Inputs {
    node_id: NodeId,
    static_secret: Zeroizing<[u8; 32]>,
    ephemeral: Zeroizing<[u8; 32]>,
    h1: Vec<u8>,
    h1_keys: DatagramKeys,
    h2_payload: Zeroizing<Vec<u8>>,
}

enum Progress {
    ReadH1,
    WroteH2 { h3_keys: DatagramKeys },
    Done,
}

impl Responder {
    /// Reads H1. Checks mac1 before anything that costs; two scalar multiplications follow. Draws 32 bytes from `rng`
    /// if mac1 matches, and nothing else. Whether the clock in the hello is right, and whether the same H1 was seen
    /// before, is for the caller to judge.
    ///
    /// # Errors
    /// Says why it is not an H1 for us, for a counter.
    pub fn read_h1(
        identity: &SecretIdentity,
        mac1: &Mac1Key,
        datagram: &[u8],
        rng: &mut impl CryptoRng,
    ) -> Result<(Self, InitiatorHello), Rejected> {
        if !H1_BYTES.contains(&datagram.len()) {
            return Err(Rejected::Length);
        }
        if !mac1.verifies(datagram) {
            return Err(Rejected::Mac1);
        }
        let mut ephemeral = Zeroizing::new([0; 32]);
        rng.fill_bytes(&mut *ephemeral);
        let inputs = Inputs {
            node_id: identity.node_id(),
            static_secret: identity.noise_static(),
            ephemeral,
            h1: datagram.to_vec(),
            h1_keys: mac1.keys().clone(),
            h2_payload: Zeroizing::default(),
        };
        let (noise, payload) = inputs.after_h1()?;
        let hello = InitiatorHello::decode(&payload)?;
        Ok((Self { inputs, noise: Some(noise), progress: Progress::ReadH1 }, hello))
    }

    /// Writes H2, `len` bytes long (moved between the start of [`H2_BYTES`] and the length of H1), to be repeated as it is.
    ///
    /// # Panics
    /// If it was called before.
    #[must_use]
    pub fn write_h2(&mut self, hello: &ResponderHello, len: usize) -> Vec<u8> {
        assert!(matches!(self.progress, Progress::ReadH1), "H2 is written once");
        let len = len.clamp(H2_BYTES_MIN, self.inputs.h1.len().min(*H2_BYTES.end()));
        let mut payload = hello.encode();
        payload.resize(len - EPHEMERAL_BYTES - TAG_BYTES - MAC1_BYTES, 0);
        self.inputs.h2_payload = payload;

        let h1_hash = h1_hash(&self.inputs.h1);
        let keys = DatagramKeys::second(self.inputs.node_id, &h1_hash);
        let noise = self.noise.as_mut().expect("only reading H3 takes the state");
        let mut h2 = write_with_ephemeral(noise, &self.inputs.h2_payload, &keys, MAC1_BYTES);
        keys.write_mac1(&mut h2);
        let h3_keys = DatagramKeys::third(self.inputs.node_id, &h1_hash, &kdf::hash(&h2));
        self.progress = Progress::WroteH2 { h3_keys };
        h2
    }

    /// Reads H3. On success the initiator is who it says it is, and [`FinalHello::node_id`] is authenticated. A datagram that
    /// is rejected changes nothing; the right one may still come. After the right one, everything is rejected: the keys
    /// are given out once.
    ///
    /// # Errors
    /// Says why it is not the H3 that answers our H2, for a counter.
    pub fn read_h3(&mut self, datagram: &[u8]) -> Result<(FinalHello, SessionKeys), Rejected> {
        let Progress::WroteH2 { h3_keys } = &self.progress else {
            return Err(Rejected::Unexpected);
        };
        if !H3_BYTES.contains(&datagram.len()) {
            return Err(Rejected::Length);
        }
        if !h3_keys.verifies(datagram) {
            return Err(Rejected::Mac1);
        }
        let mut noise = match self.noise.take() {
            Some(noise) => noise,
            None => self.inputs.after_h2()?,
        };
        let message = &datagram[..datagram.len() - MAC1_BYTES];
        let mut payload = Zeroizing::new(vec![0; message.len()]);
        let length =
            noise.read_message(message, &mut payload).map_err(|_| Rejected::Unauthentic)?;
        let hello = FinalHello::decode(&payload[..length])?;
        let claimed = hello.node_id.noise_public().map_err(|_| Rejected::Identity)?;
        if noise.get_remote_static() != Some(&claimed[..]) {
            return Err(Rejected::Identity);
        }
        self.progress = Progress::Done;
        let split = Zeroizing::new(noise.dangerously_get_raw_split());
        Ok((hello, SessionKeys::new(&split.1, &split.0)))
    }
}

impl Inputs {
    fn after_h1(&self) -> Result<(Wiped<HandshakeState>, Zeroizing<Vec<u8>>), Rejected> {
        let mut noise = resolver::responder(&self.static_secret, &self.ephemeral);
        let message = &self.h1[..self.h1.len() - H1_MACS_BYTES];
        let payload = read_with_ephemeral(&mut noise, message, &self.h1_keys)?;
        Ok((noise, payload))
    }

    fn after_h2(&self) -> Result<Wiped<HandshakeState>, Rejected> {
        let (mut noise, _) = self.after_h1()?;
        // It is the Noise state that counts here; the datagram around the message was sent long ago.
        let _ = write_with_ephemeral(&mut noise, &self.h2_payload, &self.h1_keys, MAC1_BYTES);
        Ok(noise)
    }
}

impl ZeroizeOnDrop for Responder {}

impl fmt::Debug for Responder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Responder").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use proptest::prelude::*;
    use rand_chacha::ChaCha20Rng;
    use rand_chacha::rand_core::SeedableRng;
    use wraith_crypto::Suite;

    use super::*;
    use crate::{Initiator, Parameters};

    /// A handshake up to H3, and what somebody who saw it and knows the responder's NodeId can compute.
    struct Witnessed {
        initiator: Option<Initiator>,
        responder: Responder,
        responder_id: NodeId,
        h1: Vec<u8>,
        h2: Vec<u8>,
        hello: FinalHello,
    }

    impl Witnessed {
        fn new() -> Self {
            let mut rng = ChaCha20Rng::from_seed([1; 32]);
            let (a, b) = (SecretIdentity::from_seed([2; 32]), SecretIdentity::from_seed([3; 32]));
            let hello = InitiatorHello { suites: Suite::ALL, aes_hardware: true, unix_seconds: 6 };
            let (initiator, h1) = Initiator::start(&a, b.node_id(), &hello, 900, &mut rng).unwrap();
            let mac1 = Mac1Key::for_responder(b.node_id());
            let (mut responder, _) = Responder::read_h1(&b, &mac1, &h1, &mut rng).unwrap();
            let answer = ResponderHello {
                suite: Suite::Aes256Gcm,
                observed: SocketAddr::from(([127, 0, 0, 1], 9)),
                parameters: Parameters::default(),
            };
            let h2 = responder.write_h2(&answer, 300);
            let hello = FinalHello { node_id: a.node_id(), parameters: Parameters::default() };
            Self { initiator: Some(initiator), responder, responder_id: b.node_id(), h1, h2, hello }
        }

        fn h3(&mut self) -> (Vec<u8>, SessionKeys) {
            let mut initiator = self.initiator.take().unwrap();
            initiator.read_h2(&self.h2).unwrap();
            initiator.write_h3(&self.hello, 300)
        }
    }

    #[test]
    fn an_h2_changed_by_somebody_who_knows_the_key_of_mac1_does_not_stop_the_handshake() {
        let mut it = Witnessed::new();
        let keys = DatagramKeys::second(it.responder_id, &h1_hash(&it.h1));
        let initiator = it.initiator.as_mut().unwrap();
        for byte in 0..it.h2.len() - MAC1_BYTES {
            let mut changed = it.h2.clone();
            changed[byte] ^= 0x10;
            keys.write_mac1(&mut changed);
            assert_eq!(initiator.read_h2(&changed), Err(Rejected::Unauthentic), "byte {byte}");
        }
        let (h3, keys) = it.h3();
        let (hello, responder_keys) = it.responder.read_h3(&h3).unwrap();
        assert_eq!(hello, it.hello);
        assert_eq!(responder_keys.recv, keys.send);
    }

    #[test]
    fn an_h3_changed_by_somebody_who_knows_the_key_of_mac1_does_not_stop_the_handshake() {
        let mut it = Witnessed::new();
        let h3_keys = DatagramKeys::third(it.responder_id, &h1_hash(&it.h1), &kdf::hash(&it.h2));
        let (h3, keys) = it.h3();
        // Bytes 0 to 47 fail at the static key, the others after it was accepted, where snow cannot step back.
        for byte in 0..h3.len() - MAC1_BYTES {
            let mut changed = h3.clone();
            changed[byte] ^= 0x10;
            h3_keys.write_mac1(&mut changed);
            let rejected = it.responder.read_h3(&changed).unwrap_err();
            assert_eq!(rejected, Rejected::Unauthentic, "byte {byte}");
        }
        let (hello, responder_keys) = it.responder.read_h3(&h3).unwrap();
        assert_eq!(hello, it.hello);
        assert_eq!(responder_keys.recv, keys.send);
        assert_eq!(responder_keys.send, keys.recv);
    }

    #[test]
    fn an_h1_changed_by_somebody_who_knows_the_key_of_mac1_is_rejected() {
        let it = Witnessed::new();
        let identity = SecretIdentity::from_seed([3; 32]);
        let mac1 = Mac1Key::for_responder(it.responder_id);
        let mut rng = ChaCha20Rng::from_seed([1; 32]);
        for byte in 0..it.h1.len() - H1_MACS_BYTES {
            let mut changed = it.h1.clone();
            changed[byte] ^= 0x80;
            mac1.keys().write_mac1(&mut changed);
            let rejected = Responder::read_h1(&identity, &mac1, &changed, &mut rng).unwrap_err();
            assert_eq!(rejected, Rejected::Unauthentic, "byte {byte}");
        }
    }

    proptest! {
        #[test]
        fn garbage_behind_a_valid_mac1_never_panics(
            mut h1 in prop::collection::vec(any::<u8>(), 900..=1200),
            mut h3 in prop::collection::vec(any::<u8>(), 300..=1200),
        ) {
            let mut it = Witnessed::new();
            let mac1 = Mac1Key::for_responder(it.responder_id);
            mac1.keys().write_mac1(&mut h1);
            let identity = SecretIdentity::from_seed([3; 32]);
            let mut rng = ChaCha20Rng::from_seed([1; 32]);
            let rejected = Responder::read_h1(&identity, &mac1, &h1, &mut rng).unwrap_err();
            prop_assert_eq!(rejected, Rejected::Unauthentic);

            let h3_keys =
                DatagramKeys::third(it.responder_id, &h1_hash(&it.h1), &kdf::hash(&it.h2));
            h3_keys.write_mac1(&mut h3);
            prop_assert_eq!(it.responder.read_h3(&h3).unwrap_err(), Rejected::Unauthentic);
        }
    }

    #[test]
    fn handshakes_may_move_between_threads() {
        fn assert_send<T: Send>() {}
        assert_send::<Initiator>();
        assert_send::<Responder>();
    }

    #[test]
    fn nobody_can_take_the_name_of_another() {
        let other = SecretIdentity::from_seed([77; 32]).node_id();
        for node_id in [other, NodeId([0; 32]), NodeId([0xff; 32])] {
            let mut it = Witnessed::new();
            it.hello.node_id = node_id;
            let (h3, _) = it.h3();
            assert_eq!(it.responder.read_h3(&h3).unwrap_err(), Rejected::Identity);
        }
    }

    #[test]
    fn the_keys_are_given_out_once() {
        let mut it = Witnessed::new();
        let (h3, _) = it.h3();
        assert!(it.responder.read_h3(&h3).is_ok());
        assert_eq!(it.responder.read_h3(&h3).unwrap_err(), Rejected::Unexpected);
    }
}
