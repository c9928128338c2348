//! Handshake messages built by hand from the definition of Noise XKhfs, with arbitrary keys. They
//! simulate a malicious peer: an initiator with the responder's access key, or a responder. The peer
//! tries to make the keys independent of every secret, or to crash its victim.

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use wraith_crypto::elligator::{decode, encode};
use wraith_crypto::hash::Sha256;
use wraith_crypto::ml_kem_768::{
    self as kem, CIPHERTEXT_BYTES, DecapsulationKey, ENCAPSULATION_KEY_BYTES,
};
use wraith_crypto::{AeadKey, TAG_BYTES, agree, kdf};
use wraith_noise::*;

use crate::parties::{access_key, alice, bob};
use crate::secrets::hkdf;

fn ephemeral(seed: u8) -> EphemeralKey {
    EphemeralKey::generate(&mut ChaCha20Rng::from_seed([seed; 32]))
}

fn sha256(parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Sha256::new();
    parts.iter().for_each(|part| hash.update(part));
    hash.finish()
}

/// Noise's `SymmetricState`.
struct Symmetric {
    chaining_key: [u8; 32],
    hash: [u8; 32],
    key: [u8; 32],
    counter: u8,
}

impl Symmetric {
    /// The state before message 1 to Bob with this representative.
    fn new(representative: &[u8; 32]) -> Self {
        let chaining_key = sha256(&[b"Noise_XKhfs_25519+MLKEM768_ChaChaPoly_SHA256"]);
        let hash = sha256(&[&chaining_key, b"wraith/2", representative]);
        let mut state = Self { chaining_key, hash, key: [0; 32], counter: 0 };
        state.mix_hash(&bob().node_id().noise_public().unwrap());
        state
    }

    fn mix_hash(&mut self, data: &[u8]) {
        self.hash = sha256(&[&self.hash, data]);
    }

    fn mix_key(&mut self, shared: &[u8; 32]) {
        [self.chaining_key, self.key] = hkdf(&self.chaining_key, shared);
        self.counter = 0;
    }

    fn cipher(&mut self) -> (AeadKey, [u8; 12]) {
        let mut nonce = [0; 12];
        nonce[4] = self.counter;
        self.counter += 1;
        (AeadKey::new(Suite::ChaCha20Poly1305, &self.key), nonce)
    }

    fn seal(&mut self, text: &[u8]) -> Vec<u8> {
        let (key, nonce) = self.cipher();
        let mut sealed = text.to_vec();
        let tag = key.seal(nonce, &self.hash, &mut sealed);
        sealed.extend(tag);
        self.mix_hash(&sealed);
        sealed
    }

    fn open(&mut self, sealed: &[u8]) -> Vec<u8> {
        let (key, nonce) = self.cipher();
        let mut text = sealed.to_vec();
        key.open(nonce, &self.hash, &mut text).expect("it is authentic");
        text.truncate(sealed.len() - TAG_BYTES);
        self.mix_hash(sealed);
        text
    }

    /// Returns the mac1 key of a datagram after `message`.
    fn mac1_key(&self, context: &'static str, message: &[u8]) -> [u8; 32] {
        let [first, second] = hkdf(&self.chaining_key, &[]);
        kdf::derive_parts(context, &[&first, &second, &kdf::hash(message)])
    }
}

fn with_mac1(mut datagram: Vec<u8>, key: [u8; 32]) -> Vec<u8> {
    let mac1 = kdf::keyed(&key, &kdf::hash(&datagram));
    datagram.extend(&mac1[..MAC1_BYTES]);
    datagram
}

/// The contents of Alice's message 1.
struct First {
    representative: [u8; 32],
    /// Alice's claim for the result of X25519 with Bob's key.
    es: [u8; 32],
    e1: [u8; ENCAPSULATION_KEY_BYTES],
    payload: Vec<u8>,
}

impl First {
    /// Returns correct contents.
    fn proper() -> Self {
        let ephemeral = ephemeral(1);
        let responder = bob().node_id().noise_public().unwrap();
        let hello = InitiatorHello {
            suites: Policy::Default.packet_suites(),
            aes_hardware: true,
            unix_seconds: 7,
        };
        let mut payload = hello.encode().to_vec();
        payload.resize(300, 0);
        Self {
            representative: *ephemeral.representative(),
            es: *agree::x25519(ephemeral.secret(), &responder).unwrap(),
            e1: DecapsulationKey::from_seed(&[1; 64]).encapsulation_key(),
            payload,
        }
    }

    /// Returns the two datagrams, with the mac1 values of a ticket holder.
    fn h1(&self) -> [Vec<u8>; 2] {
        let mut noise = Symmetric::new(&self.representative);
        noise.mix_hash(&decode(&self.representative));
        noise.mix_key(&self.es);
        let message =
            [&self.representative[..], &noise.seal(&self.e1), &noise.seal(&self.payload)].concat();
        let access_key = kdf::derive_parts(
            "wraith/2 door of a ticket",
            &[&[0xd; 16], bob().node_id().as_bytes()],
        );
        let (front, back) = message.split_at(message.len() / 2);
        let parts: [&[u8]; 2] = [&access_key, &kdf::hash(front)];
        let key = kdf::derive_parts("wraith/2 gate 1, second datagram", &parts);
        let first = [front, &[0; MAC2_BYTES]].concat();
        [
            with_mac1(first, kdf::derive("wraith/2 gate 1", &access_key)),
            with_mac1(back.to_vec(), key),
        ]
    }

    /// Returns Bob's result for this message.
    fn read(&self) -> Result<(Responder, InitiatorHello), HandshakeError> {
        let h1 = self.h1();
        let first = PendingH1::new(&access_key(), &h1[0]).expect("mac1 is right");
        let mut rng = ChaCha20Rng::from_seed([2; 32]);
        Responder::read_h1(&bob(), &first, &h1[1], &ephemeral(2), &mut rng)
    }
}

/// The contents of Bob's message 2.
struct Second {
    representative: [u8; 32],
    /// Bob's claim for the result of X25519 on both ephemeral keys.
    ee: [u8; 32],
    ciphertext: [u8; CIPHERTEXT_BYTES],
    shared: [u8; 32],
    payload: Vec<u8>,
    noise: Symmetric,
    message_1: Vec<u8>,
}

impl Second {
    /// Returns a correct answer to `h1`.
    fn proper(h1: &[Vec<u8>; 2]) -> Self {
        let [front, back] = [(&h1[0], MAC2_BYTES + MAC1_BYTES), (&h1[1], MAC1_BYTES)]
            .map(|(datagram, macs)| &datagram[..datagram.len() - macs]);
        let message_1 = [front, back].concat();
        let theirs = *message_1.first_chunk().unwrap();
        let mut noise = Symmetric::new(&theirs);
        let theirs = decode(&theirs);
        noise.mix_hash(&theirs);
        noise.mix_key(&agree::x25519(&bob().noise_static(), &theirs).unwrap());
        let (e1, payload) = message_1[32..].split_at(ENCAPSULATION_KEY_BYTES + TAG_BYTES);
        let e1 = noise.open(e1).try_into().unwrap();
        noise.open(payload);

        let (ephemeral, parameters) = (ephemeral(3), Parameters::default());
        let (ciphertext, shared) = kem::encapsulate(&e1, &[3; 32]).unwrap();
        let observed = "192.0.2.1:4711".parse().unwrap();
        let hello = ResponderHello { suite: Suite::Aes256Gcm, observed, parameters };
        let mut payload = hello.encode().to_vec();
        payload.resize(200, 0);
        Self {
            representative: *ephemeral.representative(),
            ee: *agree::x25519(ephemeral.secret(), &theirs).unwrap(),
            ciphertext,
            shared: *shared,
            payload,
            noise,
            message_1,
        }
    }

    /// Returns the two datagrams, with mac1 values.
    fn h2(mut self) -> [Vec<u8>; 2] {
        let mac1_keys = ["wraith/2 gate 2", "wraith/2 gate 2, second datagram"]
            .map(|context| self.noise.mac1_key(context, &self.message_1));
        self.noise.mix_hash(&decode(&self.representative));
        self.noise.mix_key(&self.ee);
        let ciphertext = self.noise.seal(&self.ciphertext);
        self.noise.mix_key(&self.shared);
        let payload = self.noise.seal(&self.payload);
        let message = [&self.representative[..], &ciphertext, &payload].concat();
        let (front, back) = message.split_at(message.len() / 2);
        [with_mac1(front.to_vec(), mac1_keys[0]), with_mac1(back.to_vec(), mac1_keys[1])]
    }
}

/// Returns Alice, after she has sent the returned H1.
fn dial() -> (Initiator, [Vec<u8>; 2]) {
    let hello = InitiatorHello {
        suites: Policy::Default.packet_suites(),
        aes_hardware: true,
        unix_seconds: 7,
    };
    let mut rng = ChaCha20Rng::from_seed([4; 32]);
    Initiator::start(&alice(), bob().node_id(), &access_key(), &ephemeral(4), &hello, &mut rng)
        .unwrap()
}

/// Passes both datagrams of an H2 to `initiator`; at least the first has to pass mac1.
fn read_h2(initiator: &mut Initiator, h2: &[Vec<u8>; 2]) -> Result<ResponderHello, HandshakeError> {
    let _ = initiator.read_h2(&h2[0]);
    Ok(initiator.read_h2(&h2[1])?.expect("both are here"))
}

/// Returns representatives of the low-order u-coordinates on the curve, as far as they have any.
/// X25519 of one of these with any secret gives zeros; RFC 7748 §6.1 describes the check for that
/// result.
fn low_order() -> Vec<[u8; 32]> {
    let mut one = [0; 32];
    one[0] = 1;
    let eight = [
        "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
        "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
    ];
    let hex = |text: &str| -> [u8; 32] {
        std::array::from_fn(|i| u8::from_str_radix(&text[2 * i..][..2], 16).unwrap())
    };
    let keys = [vec![[0; 32], one], eight.map(hex).to_vec()].concat();
    let of = |u: &[u8; 32]| [0, 1, 0x40, 0x80, 0xc1].map(|tweak| encode(u, tweak).map(|r| (r, *u)));
    let found: Vec<_> = keys.iter().flat_map(of).flatten().collect();
    assert!(found.iter().all(|(representative, u)| decode(representative) == *u));
    assert!(found.len() >= 5, "{}: zero at least has representatives", found.len());
    found.into_iter().map(|(representative, _)| representative).collect()
}

#[test]
fn what_is_made_by_hand_as_it_should_be_is_read() {
    let (mut responder, hello) = First::proper().read().unwrap();
    assert_eq!(hello.unix_seconds, 7);
    let hello = ResponderHello {
        suite: Suite::Aes256Gcm,
        observed: "192.0.2.1:4711".parse().unwrap(),
        parameters: Parameters::default(),
    };
    assert!(responder.write_h2(&hello, &mut ChaCha20Rng::from_seed([5; 32])).is_ok());
    let (mut initiator, h1) = dial();
    assert_eq!(read_h2(&mut initiator, &Second::proper(&h1).h2()), Ok(hello));
}

#[test]
fn an_ephemeral_key_of_low_order_is_rejected_by_whoever_it_is_sent_to() {
    for representative in low_order() {
        let first = First { representative, es: [0; 32], ..First::proper() };
        assert_eq!(first.read().unwrap_err(), HandshakeError::Unauthentic);

        let (mut initiator, h1) = dial();
        let second = Second { representative, ee: [0; 32], ..Second::proper(&h1) };
        assert_eq!(read_h2(&mut initiator, &second.h2()), Err(HandshakeError::Unauthentic));
        assert!(read_h2(&mut initiator, &Second::proper(&h1).h2()).is_ok(), "the right one");
    }
}

#[test]
fn an_encapsulation_key_with_a_coefficient_above_the_modulus_is_not_answered() {
    // Coefficients of 12 bits: first one, then all are 4095, where the modulus is 3329.
    let good = First::proper().e1;
    let (mut one, mut all) = (good, good);
    (one[0], one[1]) = (0xff, one[1] | 0x0f);
    all[..ENCAPSULATION_KEY_BYTES - 32].fill(0xff);
    for e1 in [one, all] {
        let (mut responder, _) = First { e1, ..First::proper() }.read().unwrap();
        let hello = ResponderHello {
            suite: Suite::Aes256Gcm,
            observed: "192.0.2.1:4711".parse().unwrap(),
            parameters: Parameters::default(),
        };
        let answer = responder.write_h2(&hello, &mut ChaCha20Rng::from_seed([5; 32]));
        assert_eq!(answer.unwrap_err(), HandshakeError::Malformed);
    }
}

#[test]
fn a_ciphertext_that_was_made_for_another_key_is_rejected_and_the_right_one_still_taken() {
    let (mut initiator, h1) = dial();
    let other = DecapsulationKey::from_seed(&[9; 64]).encapsulation_key();
    let (for_another, shared) = kem::encapsulate(&other, &[3; 32]).unwrap();
    let mut changed = Second::proper(&h1);
    changed.ciphertext[500] ^= 1;
    let for_another = Second { ciphertext: for_another, shared: *shared, ..Second::proper(&h1) };
    let nonsense = Second { ciphertext: [0x5a; CIPHERTEXT_BYTES], ..Second::proper(&h1) };
    for second in [changed, for_another, nonsense] {
        assert_eq!(read_h2(&mut initiator, &second.h2()), Err(HandshakeError::Unauthentic));
    }
    assert!(read_h2(&mut initiator, &Second::proper(&h1).h2()).is_ok());
}

#[test]
fn a_responder_that_seals_nonsense_ends_the_attempt_and_nobody_else_can() {
    let (mut initiator, h1) = dial();
    let nonsense = Second { payload: vec![0xff; 200], ..Second::proper(&h1) };
    assert_eq!(read_h2(&mut initiator, &nonsense.h2()), Err(HandshakeError::Malformed));
    assert!(read_h2(&mut initiator, &Second::proper(&h1).h2()).is_err(), "message 2 was read");
}
