//! The key exchange that the words of a code authenticate: SPAKE2 with confirmation by both sides.
//! Its keys seal the ticket and the NodeId (the public key) of the side that will use the ticket
//! (SPEC §11.2).
//!
//! ```text
//!  joiner (typed the code)                        creator (made it)
//!  hello   = form ‖ X                    ───────────▶
//!                                  ◀───────────  answer = Y
//!  proof   = confirm joiner
//!            ‖ sealed NodeId        ───────────▶  right or wrong: the only guess
//!                                  ◀───────────  welcome = confirm creator ‖ sealed ticket,
//!                                                 or the creator's NodeId if the joiner has the ticket
//!  ticket    = sealed ticket         ───────────▶  only if the joiner has the ticket
//! ```
//!
//! The side with the ticket sends it only after a peer with the right words has sent the NodeId
//! that the ticket is for.
//!
//! Invariants:
//!
//! - X and Y reveal nothing about the words, so only `proof` is a guess.
//! - The creator reports the result before it reveals anything that depends on the words.
//! - A joiner makes one `proof`: [`Joiner::process_answer`] consumes it.
//! - Every key depends on the words, the nameplate, the side with the ticket, X and Y.

use std::fmt;

use spake2::{Ed25519Group, Identity, Password, Spake2};
use thiserror::Error;
use wraith_crypto::identity::NodeId;
use wraith_crypto::{AeadKey, Suite, TAG_BYTES, kdf};
use zeroize::{Zeroize, Zeroizing};

use super::text::Code;

/// Length of a group element in bytes.
const ELEMENT_LEN: usize = 32;
/// SPAKE2 messages start with the sender's side: 'A' is the joiner, 'B' the creator.
const JOINER_SIDE: u8 = b'A';
const CREATOR_SIDE: u8 = b'B';
const CONFIRM_LEN: usize = 32;
/// Longest sealed plaintext: a ticket with all possible addresses (SPEC §2), behind its length.
const PLAIN_LEN: usize = 2 + crate::ticket::MAX_LEN;
const SEALED_LEN: usize = PLAIN_LEN + TAG_BYTES;
const NODE_ID_LEN: usize = 32;

/// `form(1) ‖ X(32)`.
pub const HELLO_LEN: usize = 1 + ELEMENT_LEN;
/// `Y(32)`.
pub const ANSWER_LEN: usize = ELEMENT_LEN;
/// `confirm joiner(32) ‖ sealed NodeId(48)`.
pub const PROOF_LEN: usize = CONFIRM_LEN + NODE_ID_LEN + TAG_BYTES;
/// `confirm creator(32) ‖ sealed(376)`; the length is constant, so it reveals nothing.
pub const WELCOME_LEN: usize = CONFIRM_LEN + SEALED_LEN;
/// `sealed(376)`.
pub const TICKET_LEN: usize = SEALED_LEN;

/// The side with the ticket. Part of every confirmation, so a code for one direction fails in the
/// other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TicketSide {
    /// The creator of the code sends files.
    Creator = 1,
    /// The joiner sends files.
    Joiner = 2,
}

/// Returns the form of a code: the side with the ticket and the number of words. The hello carries
/// it, so a code of the other direction or without its third word costs no guess. It is also part
/// of every confirmation.
const fn form(code: &Code, ticket_side: TicketSide) -> u8 {
    ticket_side as u8 + if code.is_for_several() { 2 } else { 0 }
}

/// The peer does not have the words, or a message was modified. The two cases are
/// indistinguishable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the peer does not have the words")]
pub struct WrongWords;

/// The joiner before its guess.
#[derive(Debug)]
pub struct Joiner {
    state: Spake2<Ed25519Group>,
    x: [u8; ELEMENT_LEN],
    nameplate: u32,
    form: u8,
}

impl Joiner {
    /// Starts an exchange.
    pub fn new(code: &Code, ticket_side: TicketSide) -> Self {
        let form = form(code, ticket_side);
        let (joiner, creator) = identities(code.nameplate(), form);
        let (state, message) = Spake2::start_a(&password(code), &joiner, &creator);
        Self { state, x: element(&message), nameplate: code.nameplate(), form }
    }

    /// Returns the first message. It reveals nothing and may be sent to any host, any number of
    /// times.
    pub fn hello(&self) -> [u8; HELLO_LEN] {
        let mut hello = [self.form; HELLO_LEN];
        hello[1..].copy_from_slice(&self.x);
        hello
    }

    /// Processes a creator's answer and makes this joiner's only guess.
    ///
    /// # Errors
    /// [`WrongWords`] if the answer cannot be a creator's. The guess is spent nevertheless.
    pub fn process_answer(self, answer: &[u8; ANSWER_LEN]) -> Result<JoinerKeys, WrongWords> {
        let key = finish(self.state, CREATOR_SIDE, answer)?;
        Ok(JoinerKeys(Keys::new(key, self.nameplate, self.form, &self.x, answer)))
    }
}

/// The joiner after its guess.
#[derive(Debug)]
pub struct JoinerKeys(Keys);

impl JoinerKeys {
    /// Returns the message with the guess and the joiner's identity, which only a peer with the
    /// words can read. It is deterministic per identity.
    pub fn proof(&self, own: NodeId) -> [u8; PROOF_LEN] {
        let mut proof = [0; PROOF_LEN];
        let (confirm, sealed) = proof.split_at_mut(CONFIRM_LEN);
        confirm.copy_from_slice(&self.0.confirm_joiner);
        let (node_id, tag) = sealed.split_at_mut(NODE_ID_LEN);
        node_id.copy_from_slice(own.as_bytes());
        let key = AeadKey::library(Suite::ChaCha20Poly1305, &self.0.joiner_identity);
        tag.copy_from_slice(&key.seal(Default::default(), &[], node_id));
        proof
    }

    /// Verifies that the creator has the words. Returns its payload: the ticket, or its NodeId if
    /// the joiner has the ticket.
    ///
    /// # Errors
    /// [`WrongWords`]
    pub fn open_welcome(
        &self,
        welcome: &[u8; WELCOME_LEN],
    ) -> Result<Zeroizing<Vec<u8>>, WrongWords> {
        let (confirm, sealed) = welcome.split_at(CONFIRM_LEN);
        if !wraith_crypto::equal(confirm, &self.0.confirm_creator) {
            return Err(WrongWords);
        }
        open(&self.0.from_creator, sealed)
    }

    /// Returns the last message if the joiner has the ticket. Only for a creator whose welcome was
    /// verified.
    pub fn seal_ticket(&self, ticket: &[u8]) -> [u8; TICKET_LEN] {
        seal(&self.0.from_joiner, ticket)
    }
}

/// One exchange on the creator's side.
#[derive(Debug)]
pub struct CreatorExchange {
    y: [u8; ELEMENT_LEN],
    keys: Keys,
}

impl CreatorExchange {
    /// Answers a joiner.
    ///
    /// # Errors
    /// [`WrongWords`] if the hello cannot belong to this code.
    pub fn new(
        code: &Code,
        ticket_side: TicketSide,
        hello: &[u8; HELLO_LEN],
    ) -> Result<Self, WrongWords> {
        let form = form(code, ticket_side);
        let (their_form, x) = hello.split_first_chunk::<1>().expect("a hello is longer");
        if *their_form != [form] {
            return Err(WrongWords);
        }
        let x = x.try_into().expect("the rest of a hello is one element");
        let (joiner, creator) = identities(code.nameplate(), form);
        let (state, message) = Spake2::start_b(&password(code), &joiner, &creator);
        let y = element(&message);
        let key = finish(state, JOINER_SIDE, &x)?;
        Ok(Self { y, keys: Keys::new(key, code.nameplate(), form, &x, &y) })
    }

    /// Returns the second message. It reveals nothing about the words.
    pub const fn answer(&self) -> [u8; ANSWER_LEN] {
        self.y
    }

    /// Returns the joiner's identity if the guess is right.
    ///
    /// # Errors
    /// [`WrongWords`]
    pub fn verify_proof(&self, proof: &[u8; PROOF_LEN]) -> Result<NodeId, WrongWords> {
        let (confirm, sealed) = proof.split_at(CONFIRM_LEN);
        if !wraith_crypto::equal(confirm, &self.keys.confirm_joiner) {
            return Err(WrongWords);
        }
        let mut text = sealed.to_vec();
        let key = AeadKey::library(Suite::ChaCha20Poly1305, &self.keys.joiner_identity);
        key.open(Default::default(), &[], &mut text).map_err(|_| WrongWords)?;
        text.first_chunk().map(|node_id| NodeId(*node_id)).ok_or(WrongWords)
    }

    /// Returns the welcome for a joiner with the right guess. `ticket` is the ticket, or the
    /// creator's NodeId if the joiner has the ticket.
    pub fn welcome(&self, ticket: &[u8]) -> [u8; WELCOME_LEN] {
        let mut welcome = [0; WELCOME_LEN];
        let (confirm, sealed) = welcome.split_at_mut(CONFIRM_LEN);
        confirm.copy_from_slice(&self.keys.confirm_creator);
        sealed.copy_from_slice(&seal(&self.keys.from_creator, ticket));
        welcome
    }

    /// Opens the joiner's ticket.
    ///
    /// # Errors
    /// [`WrongWords`]
    pub fn open_ticket(&self, ticket: &[u8; TICKET_LEN]) -> Result<Zeroizing<Vec<u8>>, WrongWords> {
        open(&self.keys.from_joiner, ticket)
    }
}

/// All keys derived from the shared secret. Each key seals one message.
struct Keys {
    confirm_joiner: [u8; CONFIRM_LEN],
    confirm_creator: [u8; CONFIRM_LEN],
    joiner_identity: [u8; 32],
    from_creator: [u8; 32],
    from_joiner: [u8; 32],
}

impl Keys {
    fn new(
        shared: Zeroizing<Vec<u8>>,
        nameplate: u32,
        form: u8,
        x: &[u8; ELEMENT_LEN],
        y: &[u8; ELEMENT_LEN],
    ) -> Self {
        let nameplate = nameplate.to_be_bytes();
        let derive = |context| kdf::derive_parts(context, &[&shared, &[form], &nameplate, x, y]);
        Self {
            confirm_joiner: derive("wraith/1 code confirm joiner"),
            confirm_creator: derive("wraith/1 code confirm creator"),
            joiner_identity: derive("wraith/1 code identity of joiner"),
            from_creator: derive("wraith/1 code sealed by creator"),
            from_joiner: derive("wraith/1 code sealed by joiner"),
        }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.confirm_joiner.zeroize();
        self.confirm_creator.zeroize();
        self.joiner_identity.zeroize();
        self.from_creator.zeroize();
        self.from_joiner.zeroize();
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keys(secret)")
    }
}

fn password(code: &Code) -> Password {
    Password::new(code.secret().as_bytes())
}

fn identities(nameplate: u32, form: u8) -> (Identity, Identity) {
    let name = |side: &str| Identity::new(format!("wraith/1 {side} {nameplate} {form}").as_bytes());
    (name("joiner"), name("creator"))
}

/// Returns the element of a SPAKE2 message.
fn element(message: &[u8]) -> [u8; ELEMENT_LEN] {
    message[1..].try_into().expect("a SPAKE2 message is its side and one element")
}

/// Computes the shared key. Elements outside the prime-order subgroup are rejected: they would
/// reveal the lowest bits of this side's scalar, and no honest peer sends such an element. A NodeId
/// is a point of the same kind, so its validation is used.
fn finish(
    state: Spake2<Ed25519Group>,
    their_side: u8,
    element: &[u8; ELEMENT_LEN],
) -> Result<Zeroizing<Vec<u8>>, WrongWords> {
    NodeId(*element).noise_public().map_err(|_| WrongWords)?;
    let mut message = [their_side; 1 + ELEMENT_LEN];
    message[1..].copy_from_slice(element);
    state.finish(&message).map(Zeroizing::new).map_err(|_| WrongWords)
}

/// Seals `length(2) ‖ bytes ‖ zeros`. The key is used once, so the nonce is zero.
fn seal(key: &[u8; 32], bytes: &[u8]) -> [u8; SEALED_LEN] {
    let mut sealed = [0; SEALED_LEN];
    let (plain, tag) = sealed.split_at_mut(PLAIN_LEN);
    plain[..2].copy_from_slice(&(bytes.len() as u16).to_be_bytes());
    plain[2..2 + bytes.len()].copy_from_slice(bytes);
    let key = AeadKey::library(Suite::ChaCha20Poly1305, key);
    tag.copy_from_slice(&key.seal(Default::default(), &[], plain));
    sealed
}

fn open(key: &[u8; 32], sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, WrongWords> {
    let mut text = Zeroizing::new(sealed.to_vec());
    let key = AeadKey::library(Suite::ChaCha20Poly1305, key);
    key.open(Default::default(), &[], &mut text).map_err(|_| WrongWords)?;
    let (len, bytes) = text.split_first_chunk().ok_or(WrongWords)?;
    let len = usize::from(u16::from_be_bytes(*len));
    Ok(Zeroizing::new(bytes[..PLAIN_LEN - 2].get(..len).ok_or(WrongWords)?.to_vec()))
}

#[cfg(test)]
mod tests {
    use curve25519_dalek::constants::EIGHT_TORSION;
    use curve25519_dalek::edwards::CompressedEdwardsY;
    use proptest::prelude::*;

    use super::*;

    const OWN: NodeId = NodeId([9; 32]);

    fn code(random: [u8; 4]) -> Code {
        Code::new(7, random)
    }

    /// Runs the exchange up to the guess.
    fn guess(
        creators: &Code,
        joiners: &Code,
        ticket_side: TicketSide,
    ) -> (CreatorExchange, JoinerKeys) {
        let joiner = Joiner::new(joiners, ticket_side);
        let run = CreatorExchange::new(creators, ticket_side, &joiner.hello()).unwrap();
        let proven = joiner.process_answer(&run.answer()).unwrap();
        (run, proven)
    }

    #[test]
    fn the_same_words_bring_the_ticket_over_in_either_direction() {
        let code = code([1; 4]);
        let (run, proven) = guess(&code, &code, TicketSide::Creator);
        assert_eq!(run.verify_proof(&proven.proof(OWN)), Ok(OWN));
        assert_eq!(proven.open_welcome(&run.welcome(b"ticket")).unwrap().as_slice(), b"ticket");

        let (run, proven) = guess(&code, &code, TicketSide::Joiner);
        assert_eq!(run.verify_proof(&proven.proof(OWN)), Ok(OWN));
        assert_eq!(proven.open_welcome(&run.welcome(b"")).unwrap().as_slice(), b"");
        assert_eq!(run.open_ticket(&proven.seal_ticket(b"ticket")).unwrap().as_slice(), b"ticket");
    }

    #[test]
    fn only_a_peer_with_the_words_learns_the_other_identity() {
        let code = code([1; 4]);
        let (run, proven) = guess(&code, &code, TicketSide::Joiner);
        let proof = proven.proof(OWN);
        assert_eq!(run.verify_proof(&proof), Ok(OWN));
        assert!(!proof.windows(4).any(|bytes| bytes == [9; 4]), "it is sealed");
        // The same joiner's proof is identical; another identity's differs.
        assert_eq!(proven.proof(OWN), proof);
        assert_eq!(run.verify_proof(&proven.proof(NodeId([8; 32]))), Ok(NodeId([8; 32])));
        // A man in the middle that substitutes another exchange's identity is detected.
        let (_, other) = guess(&code, &code, TicketSide::Joiner);
        let mut mixed = proof;
        mixed[CONFIRM_LEN..].copy_from_slice(&other.proof(OWN)[CONFIRM_LEN..]);
        assert_eq!(run.verify_proof(&mixed), Err(WrongWords));
        let welcome = run.welcome(NodeId([7; 32]).as_bytes());
        assert_eq!(proven.open_welcome(&welcome).unwrap().as_slice(), [7; 32]);
    }

    #[test]
    fn the_longest_ticket_fits() {
        let code = code([1; 4]);
        let (run, proven) = guess(&code, &code, TicketSide::Creator);
        let ticket = [9; crate::ticket::MAX_LEN];
        assert_eq!(proven.open_welcome(&run.welcome(&ticket)).unwrap().as_slice(), ticket);
    }

    #[test]
    fn other_words_or_another_nameplate_are_wrong_on_both_sides() {
        let right = code([1; 4]);
        for wrong in [code([1, 1, 1, 2]), code([1, 2, 1, 1]), Code::new(8, [1; 4])] {
            let (run, proven) = guess(&right, &wrong, TicketSide::Creator);
            assert_eq!(run.verify_proof(&proven.proof(OWN)), Err(WrongWords));
            assert_eq!(proven.open_welcome(&run.welcome(b"ticket")), Err(WrongWords));
        }
    }

    #[test]
    fn a_code_made_for_one_direction_is_wrong_in_the_other() {
        let code = code([1; 4]);
        let hello = Joiner::new(&code, TicketSide::Joiner).hello();
        assert_eq!(
            CreatorExchange::new(&code, TicketSide::Creator, &hello).unwrap_err(),
            WrongWords
        );
        // A man in the middle gains nothing by changing the form byte.
        let joiner = Joiner::new(&code, TicketSide::Joiner);
        let mut hello = joiner.hello();
        hello[0] = TicketSide::Creator as u8;
        let run = CreatorExchange::new(&code, TicketSide::Creator, &hello).unwrap();
        let proof = joiner.process_answer(&run.answer()).unwrap().proof(OWN);
        assert_eq!(run.verify_proof(&proof), Err(WrongWords));
    }

    #[test]
    fn a_missing_third_word_is_detected_before_the_guess() {
        let several = Code::for_several(7, [1; 6]);
        for (creators, joiners) in [(&several, &code([1; 4])), (&code([1; 4]), &several)] {
            let hello = Joiner::new(joiners, TicketSide::Creator).hello();
            let run = CreatorExchange::new(creators, TicketSide::Creator, &hello);
            assert_eq!(run.unwrap_err(), WrongWords);
        }
        let (run, proven) = guess(&several, &several, TicketSide::Creator);
        assert_eq!(run.verify_proof(&proven.proof(OWN)), Ok(OWN));
        let (run, proven) =
            guess(&several, &Code::for_several(7, [1, 1, 1, 1, 1, 2]), TicketSide::Creator);
        assert_eq!(run.verify_proof(&proven.proof(OWN)), Err(WrongWords), "the third word counts");
    }

    #[test]
    fn two_exchanges_of_one_code_have_independent_messages() {
        let code = code([1; 4]);
        let (a, first) = guess(&code, &code, TicketSide::Creator);
        let (b, second) = guess(&code, &code, TicketSide::Creator);
        assert_ne!(a.answer(), b.answer());
        assert_eq!(a.verify_proof(&second.proof(OWN)), Err(WrongWords));
        assert_eq!(first.open_welcome(&b.welcome(b"ticket")), Err(WrongWords));
    }

    #[test]
    fn a_reflected_proof_is_not_a_welcome() {
        let code = code([1; 4]);
        let (_, proven) = guess(&code, &code, TicketSide::Creator);
        let mut welcome = [0; WELCOME_LEN];
        welcome[..CONFIRM_LEN].copy_from_slice(&proven.proof(OWN)[..CONFIRM_LEN]);
        assert_eq!(proven.open_welcome(&welcome), Err(WrongWords));
    }

    #[test]
    fn any_changed_byte_of_any_message_is_wrong() {
        let code = code([1; 4]);
        let (run, proven) = guess(&code, &code, TicketSide::Creator);
        for at in 0..PROOF_LEN {
            let mut proof = proven.proof(OWN);
            proof[at] ^= 1;
            assert_eq!(run.verify_proof(&proof), Err(WrongWords));
        }
        for at in 0..WELCOME_LEN {
            let mut welcome = run.welcome(b"ticket");
            welcome[at] ^= 1;
            assert_eq!(proven.open_welcome(&welcome), Err(WrongWords));
        }
        for at in 0..ELEMENT_LEN {
            let joiner = Joiner::new(&code, TicketSide::Creator);
            let mut hello = joiner.hello();
            hello[1 + at] ^= 1;
            let Ok(run) = CreatorExchange::new(&code, TicketSide::Creator, &hello) else {
                continue;
            };
            let proven = joiner.process_answer(&run.answer()).unwrap();
            assert_eq!(run.verify_proof(&proven.proof(OWN)), Err(WrongWords));
        }
    }

    #[test]
    fn invalid_group_elements_are_refused() {
        let code = code([1; 4]);
        let joiner = Joiner::new(&code, TicketSide::Creator).hello();
        let honest = CompressedEdwardsY(joiner[1..].try_into().unwrap()).decompress().unwrap();
        for torsion in EIGHT_TORSION {
            for point in [torsion, honest + torsion] {
                if point == honest {
                    continue;
                }
                let bytes = point.compress().0;
                let mut hello = joiner;
                hello[1..].copy_from_slice(&bytes);
                assert_eq!(
                    CreatorExchange::new(&code, TicketSide::Creator, &hello).unwrap_err(),
                    WrongWords
                );
                let joiner = Joiner::new(&code, TicketSide::Creator);
                assert_eq!(joiner.process_answer(&bytes).unwrap_err(), WrongWords);
            }
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic_or_pass(
            hello: [u8; 32],
            answer: [u8; 32],
            proof in prop::array::uniform32(any::<u8>()),
        ) {
            let code = code([1; 4]);
            let mut message = [TicketSide::Creator as u8; HELLO_LEN];
            message[1..].copy_from_slice(&hello);
            if let Ok(run) = CreatorExchange::new(&code, TicketSide::Creator, &message) {
                prop_assert_eq!(run.verify_proof(&[proof[0]; PROOF_LEN]), Err(WrongWords));
                prop_assert_eq!(run.open_ticket(&[proof[0]; TICKET_LEN]), Err(WrongWords));
            }
            if let Ok(proven) = Joiner::new(&code, TicketSide::Creator).process_answer(&answer) {
                prop_assert_eq!(proven.open_welcome(&[proof[0]; WELCOME_LEN]), Err(WrongWords));
            }
        }
    }

    #[test]
    fn debug_output_shows_no_secret() {
        let code = code([1; 4]);
        let (run, proven) = guess(&code, &code, TicketSide::Creator);
        let text = format!("{run:?} {proven:?} {:?}", Joiner::new(&code, TicketSide::Creator));
        assert!(!text.contains(code.secret().as_str()));
        assert!(text.contains("Keys(secret)"));
    }
}
