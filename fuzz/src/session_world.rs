//! The fixed peers of the targets of `wraith-session`. They are the same in each run, so their
//! messages can be committed as inputs.

use std::sync::OnceLock;

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use wraith_crypto::{SecretIdentity, Suite};
use wraith_session::ratchet::{PreKeyBundle, PreKeys, Ratchet};
use wraith_session::{Handshake, HashFunction, Pattern, Protocol, RekeyLimits, Session, StaticKey};

/// A random number generator with a fixed seed.
#[must_use]
pub fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

/// The initiator of conversations and handshakes.
#[must_use]
pub fn alice() -> SecretIdentity {
    SecretIdentity::from_seed([1; 32])
}

/// The responder.
#[must_use]
pub fn bob() -> SecretIdentity {
    SecretIdentity::from_seed([2; 32])
}

/// Two ends of a session; the first one changes its key after every third message.
#[must_use]
pub fn sessions() -> [Session; 2] {
    let new = |send, receive| Session::new(Suite::ChaCha20Poly1305, &[send; 32], &[receive; 32]);
    let mut rekey = RekeyLimits::default();
    rekey.messages = 3;
    let mut sides = [new(1, 2), new(2, 1)];
    sides[0].set_rekey(rekey);
    sides
}

/// Decodes a handshake from a byte: the pattern, and whether it uses ML-KEM and a pre-shared key.
#[must_use]
pub fn protocol(which: u8) -> Protocol {
    let pattern = Pattern::ALL[usize::from(which % 5)];
    let psk = (which & 0x40 != 0).then(|| pattern.messages());
    Protocol {
        pattern,
        hybrid: which & 0x20 != 0,
        psk,
        suite: Suite::ChaCha20Poly1305,
        hash: HashFunction::Blake2s,
    }
}

/// Both sides of a handshake between Alice and Bob, before its first message.
#[must_use]
pub fn handshakes(protocol: Protocol) -> [Handshake; 2] {
    let [one, two] = [alice(), bob()];
    let mut initiator = Handshake::initiator(protocol);
    if protocol.pattern != Pattern::NK {
        initiator = initiator.local(&StaticKey::of(&one));
    }
    if protocol.pattern.knows_responder() {
        initiator = initiator.peer(two.node_id());
    }
    let mut responder = Handshake::responder(protocol).local(&StaticKey::of(&two));
    if protocol.psk.is_some() {
        initiator = initiator.psk([7; 32].into());
        responder = responder.psk([7; 32].into());
    }
    [initiator.start(&mut rng(1)), responder.start(&mut rng(2))]
        .map(|side| side.expect("all that the pattern needs is there"))
}

/// Saved states of a conversation.
#[derive(Debug)]
pub struct Conversation {
    /// Bob's prekeys before the conversation: one pair is handed out to Alice, and one is not.
    pub prekeys: Vec<u8>,
    /// The bundle of Bob that Alice used.
    pub bundle: Vec<u8>,
    /// Alice, before any answer.
    pub unanswered: Vec<u8>,
    /// Alice's first messages; each of them can start the conversation.
    pub first: Vec<Vec<u8>>,
    /// Alice, after both have received a message.
    pub alice: Vec<u8>,
    /// Bob at the same time; one of Alice's messages is missing.
    pub bob: Vec<u8>,
    /// Alice, when her messages offer a key of ML-KEM.
    pub offering: Vec<u8>,
    /// Bob at the same time, before any message with the offer.
    pub unaware: Vec<u8>,
    /// Bob, when his next message answers the offer.
    pub answering: Vec<u8>,
}

impl Conversation {
    /// Returns sender and receiver: in the middle of the conversation, with an offer of ML-KEM, or
    /// with the answer to the offer.
    #[must_use]
    pub fn pair(&self, which: u8) -> [Ratchet; 2] {
        let (sender, receiver) = match which % 3 {
            0 => (&self.alice, &self.bob),
            1 => (&self.offering, &self.unaware),
            _ => (&self.answering, &self.offering),
        };
        [restore(sender), restore(receiver)]
    }
}

/// The conversation of Alice and Bob.
pub fn conversation() -> &'static Conversation {
    static CONVERSATION: OnceLock<Conversation> = OnceLock::new();
    CONVERSATION.get_or_init(|| {
        let mut rng = rng(3);
        let mut prekeys = PreKeys::generate(&mut rng, &bob(), 2);
        let bundle = prekeys.bundle().expect("no vault can fail").encode();
        let before = prekeys.save().to_vec();
        let decoded = PreKeyBundle::decode(&bundle).expect("it was encoded");
        let suite = Suite::ChaCha20Poly1305;
        let mut alices = Ratchet::initiate_with(&mut rng, &alice(), &decoded, suite)
            .expect("bob's bundle is good");
        let first: Vec<_> =
            [&b"first"[..], b"second"].map(|text| encrypt(&mut alices, 4, text)).into();
        let unanswered = alices.save().to_vec();
        let (mut bobs, _) =
            Ratchet::respond(&bob(), &mut prekeys, b"", &first[1]).expect("it is the first");
        exchange(&mut bobs, &mut alices);
        let (alice, bob) = (alices.save().to_vec(), bobs.save().to_vec());
        // In turns, until Alice's next chain offers a key of ML-KEM.
        while encrypt(&mut restore(&alices.save()), 6, b"").len() < 1000 {
            exchange(&mut alices, &mut bobs);
            exchange(&mut bobs, &mut alices);
        }
        let offer = encrypt(&mut alices, 7, b"offer");
        let (offering, unaware) = (alices.save().to_vec(), bobs.save().to_vec());
        decrypt(&mut bobs, &offer);
        let answering = bobs.save().to_vec();
        Conversation {
            prekeys: before,
            bundle,
            unanswered,
            first,
            alice,
            bob,
            offering,
            unaware,
            answering,
        }
    })
}

/// Sends a message from `one` to `two`.
fn exchange(one: &mut Ratchet, two: &mut Ratchet) {
    let message = encrypt(one, 5, b"turn");
    decrypt(two, &message);
}

/// Encrypts a message; the same seed gives the same bytes.
pub fn encrypt(ratchet: &mut Ratchet, seed: u64, text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    ratchet.encrypt(&mut rng(seed), b"", text, &mut out).expect("a conversation that goes on");
    out
}

fn decrypt(ratchet: &mut Ratchet, message: &[u8]) {
    ratchet.decrypt(b"", message, &mut Vec::new()).expect("it comes in order");
}

/// Restores a ratchet from one of these states.
#[must_use]
pub fn restore(state: &[u8]) -> Ratchet {
    Ratchet::restore(state).expect("it was saved")
}
