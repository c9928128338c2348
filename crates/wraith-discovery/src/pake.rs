//! The exchange that two words carry: SPAKE2 with confirmation by both sides, and the ticket sealed under its key
//! (SPEC §11.2).
//!
//! ```text
//!  guest (typed the code)                        holder (made it)
//!  hello   = giver ‖ X             ───────────▶
//!                                  ◀───────────  answer = Y
//!  proof   = confirm guest         ───────────▶  right or wrong: the one guess
//!                                  ◀───────────  welcome = confirm holder ‖ sealed ticket, or nothing
//!  gift    = sealed ticket         ───────────▶  only if the guest gives
//! ```
//!
//! Invariants: X and Y say nothing about the words, so only `proof` is a guess, and the holder says whether it was right
//! before it shows anything that depends on the words. A guest makes one `proof` in its life: [`Guest::take`] consumes it.
//! Every key depends on the words, the number, who gives, X and Y.

use std::fmt;

use spake2::{Ed25519Group, Identity, Password, Spake2};
use thiserror::Error;
use wraith_crypto::identity::NodeId;
use wraith_crypto::{AeadKey, Suite, TAG_BYTES, kdf};
use zeroize::{Zeroize, Zeroizing};

use crate::Code;

/// A group element.
const ELEMENT_LEN: usize = 32;
/// SPAKE2 messages carry the sender's side in front of the element: 'A' is the guest, 'B' the holder.
const GUEST_SIDE: u8 = b'A';
const HOLDER_SIDE: u8 = b'B';
const CONFIRM_LEN: usize = 32;
/// The longest thing that is sealed: a ticket with every address it can have (SPEC §2), behind its length.
const PLAIN_LEN: usize = 2 + crate::ticket::MAX_LEN;
const SEALED_LEN: usize = PLAIN_LEN + TAG_BYTES;

/// `giver(1) ‖ X(32)`.
pub const HELLO_LEN: usize = 1 + ELEMENT_LEN;
/// `Y(32)`.
pub const ANSWER_LEN: usize = ELEMENT_LEN;
/// `confirm guest(32)`.
pub const PROOF_LEN: usize = CONFIRM_LEN;
/// `confirm holder(32) ‖ sealed(376)`; always as long, so its length tells nothing.
pub const WELCOME_LEN: usize = CONFIRM_LEN + SEALED_LEN;
/// `sealed(376)`.
pub const GIFT_LEN: usize = SEALED_LEN;

/// Whose ticket travels. Part of everything that is confirmed, so a code made for one direction is wrong in the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Giver {
    /// Who made the code sends files.
    Holder = 1,
    /// Who typed the code sends files.
    Guest = 2,
}

/// The other side does not know the words, or somebody changed a message. Which of the two cannot be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the other side does not know the words")]
pub struct WrongWords;

/// The side that typed the code, before it has guessed.
#[derive(Debug)]
pub struct Guest {
    state: Spake2<Ed25519Group>,
    x: [u8; ELEMENT_LEN],
    number: u32,
    giver: Giver,
}

impl Guest {
    /// Begins an exchange.
    pub fn new(code: &Code, giver: Giver) -> Self {
        let (guest, holder) = identities(code.number(), giver);
        let (state, message) = Spake2::start_a(&password(code), &guest, &holder);
        Self { state, x: element(&message), number: code.number(), giver }
    }

    /// The first message. It may be sent to anybody, as often as needed.
    pub fn hello(&self) -> [u8; HELLO_LEN] {
        let mut hello = [self.giver as u8; HELLO_LEN];
        hello[1..].copy_from_slice(&self.x);
        hello
    }

    /// Takes a holder's answer and makes the one guess of this guest.
    ///
    /// # Errors
    /// [`WrongWords`] if the answer cannot be a holder's. The guess is spent all the same.
    pub fn take(self, answer: &[u8; ANSWER_LEN]) -> Result<Proven, WrongWords> {
        let key = finish(self.state, HOLDER_SIDE, answer)?;
        Ok(Proven(Keys::new(key, self.number, self.giver, &self.x, answer)))
    }
}

/// The guest after its guess.
#[derive(Debug)]
pub struct Proven(Keys);

impl Proven {
    /// The message that carries the guess.
    pub const fn proof(&self) -> [u8; PROOF_LEN] {
        self.0.confirm_guest
    }

    /// Checks that the holder knows the words too; what it gave, which is nothing when the guest gives.
    ///
    /// # Errors
    /// [`WrongWords`]
    pub fn open(&self, welcome: &[u8; WELCOME_LEN]) -> Result<Zeroizing<Vec<u8>>, WrongWords> {
        let (confirm, sealed) = welcome.split_at(CONFIRM_LEN);
        if !wraith_crypto::equal(confirm, &self.0.confirm_holder) {
            return Err(WrongWords);
        }
        open(&self.0.from_holder, sealed)
    }

    /// The last message when the guest gives. Only for a holder whose welcome was opened.
    pub fn gift(&self, ticket: &[u8]) -> [u8; GIFT_LEN] {
        seal(&self.0.from_guest, ticket)
    }
}

/// One exchange at the side that made the code.
#[derive(Debug)]
pub struct Run {
    y: [u8; ELEMENT_LEN],
    keys: Keys,
}

impl Run {
    /// Answers a guest.
    ///
    /// # Errors
    /// [`WrongWords`] if the hello cannot be a guest's of this code.
    pub fn new(code: &Code, giver: Giver, hello: &[u8; HELLO_LEN]) -> Result<Self, WrongWords> {
        let (their_giver, x) = hello.split_first_chunk::<1>().expect("a hello is longer");
        if *their_giver != [giver as u8] {
            return Err(WrongWords);
        }
        let x = x.try_into().expect("the rest of a hello is one element");
        let (guest, holder) = identities(code.number(), giver);
        let (state, message) = Spake2::start_b(&password(code), &guest, &holder);
        let y = element(&message);
        let key = finish(state, GUEST_SIDE, &x)?;
        Ok(Self { y, keys: Keys::new(key, code.number(), giver, &x, &y) })
    }

    /// The second message. It says nothing about the words.
    pub const fn answer(&self) -> [u8; ANSWER_LEN] {
        self.y
    }

    /// Whether the guess is right.
    pub fn is_right(&self, proof: &[u8; PROOF_LEN]) -> bool {
        wraith_crypto::equal(proof, &self.keys.confirm_guest)
    }

    /// The message for a guest that guessed right; `ticket` is empty when the guest gives.
    pub fn welcome(&self, ticket: &[u8]) -> [u8; WELCOME_LEN] {
        let mut welcome = [0; WELCOME_LEN];
        let (confirm, sealed) = welcome.split_at_mut(CONFIRM_LEN);
        confirm.copy_from_slice(&self.keys.confirm_holder);
        sealed.copy_from_slice(&seal(&self.keys.from_holder, ticket));
        welcome
    }

    /// What a guest gave.
    ///
    /// # Errors
    /// [`WrongWords`]
    pub fn open_gift(&self, gift: &[u8; GIFT_LEN]) -> Result<Zeroizing<Vec<u8>>, WrongWords> {
        open(&self.keys.from_guest, gift)
    }
}

/// Everything that both sides derive from the shared key. Each key seals one message.
struct Keys {
    confirm_guest: [u8; CONFIRM_LEN],
    confirm_holder: [u8; CONFIRM_LEN],
    from_holder: [u8; 32],
    from_guest: [u8; 32],
}

impl Keys {
    fn new(
        shared: Zeroizing<Vec<u8>>,
        number: u32,
        giver: Giver,
        x: &[u8; ELEMENT_LEN],
        y: &[u8; ELEMENT_LEN],
    ) -> Self {
        let number = number.to_be_bytes();
        let derive =
            |context| kdf::derive_parts(context, &[&shared, &[giver as u8], &number, x, y]);
        Self {
            confirm_guest: derive("wraith/1 code confirm guest"),
            confirm_holder: derive("wraith/1 code confirm holder"),
            from_holder: derive("wraith/1 code sealed by holder"),
            from_guest: derive("wraith/1 code sealed by guest"),
        }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.confirm_guest.zeroize();
        self.confirm_holder.zeroize();
        self.from_holder.zeroize();
        self.from_guest.zeroize();
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

fn identities(number: u32, giver: Giver) -> (Identity, Identity) {
    let name =
        |side: &str| Identity::new(format!("wraith/1 {side} {number} {}", giver as u8).as_bytes());
    (name("guest"), name("holder"))
}

/// The element of a message that SPAKE2 made.
fn element(message: &[u8]) -> [u8; ELEMENT_LEN] {
    message[1..].try_into().expect("a SPAKE2 message is its side and one element")
}

/// The shared key. Elements outside the prime-order subgroup, of which nobody honest sends one, are refused: with them a
/// stranger would learn the lowest bits of our scalar. A NodeId is the same kind of point, so its check is the check.
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

/// `length(2) ‖ bytes ‖ zeros`, sealed. The key is used once, so the nonce is zero.
fn seal(key: &[u8; 32], bytes: &[u8]) -> [u8; SEALED_LEN] {
    let mut sealed = [0; SEALED_LEN];
    let (plain, tag) = sealed.split_at_mut(PLAIN_LEN);
    plain[..2].copy_from_slice(&(bytes.len() as u16).to_be_bytes());
    plain[2..2 + bytes.len()].copy_from_slice(bytes);
    let key = AeadKey::new(Suite::ChaCha20Poly1305, key);
    tag.copy_from_slice(&key.seal(Default::default(), &[], plain));
    sealed
}

fn open(key: &[u8; 32], sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, WrongWords> {
    let mut text = Zeroizing::new(sealed.to_vec());
    let key = AeadKey::new(Suite::ChaCha20Poly1305, key);
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

    fn code(random: [u8; 4]) -> Code {
        Code::new(7, random)
    }

    /// Runs the exchange up to the guess.
    fn guess(holders: &Code, guests: &Code, giver: Giver) -> (Run, Proven) {
        let guest = Guest::new(guests, giver);
        let run = Run::new(holders, giver, &guest.hello()).unwrap();
        let proven = guest.take(&run.answer()).unwrap();
        (run, proven)
    }

    #[test]
    fn the_same_words_bring_the_ticket_over_in_either_direction() {
        let code = code([1; 4]);
        let (run, proven) = guess(&code, &code, Giver::Holder);
        assert!(run.is_right(&proven.proof()));
        assert_eq!(proven.open(&run.welcome(b"ticket")).unwrap().as_slice(), b"ticket");

        let (run, proven) = guess(&code, &code, Giver::Guest);
        assert!(run.is_right(&proven.proof()));
        assert_eq!(proven.open(&run.welcome(b"")).unwrap().as_slice(), b"");
        assert_eq!(run.open_gift(&proven.gift(b"ticket")).unwrap().as_slice(), b"ticket");
    }

    #[test]
    fn the_longest_ticket_fits() {
        let code = code([1; 4]);
        let (run, proven) = guess(&code, &code, Giver::Holder);
        let ticket = [9; crate::ticket::MAX_LEN];
        assert_eq!(proven.open(&run.welcome(&ticket)).unwrap().as_slice(), ticket);
    }

    #[test]
    fn other_words_or_another_number_are_wrong_on_both_sides() {
        let right = code([1; 4]);
        for wrong in [code([1, 1, 1, 2]), code([1, 2, 1, 1]), Code::new(8, [1; 4])] {
            let (run, proven) = guess(&right, &wrong, Giver::Holder);
            assert!(!run.is_right(&proven.proof()));
            assert_eq!(proven.open(&run.welcome(b"ticket")), Err(WrongWords));
        }
    }

    #[test]
    fn a_code_made_for_one_direction_is_wrong_in_the_other() {
        let code = code([1; 4]);
        let hello = Guest::new(&code, Giver::Guest).hello();
        assert_eq!(Run::new(&code, Giver::Holder, &hello).unwrap_err(), WrongWords);
        // Somebody who changes the byte that says so on the way gains nothing.
        let guest = Guest::new(&code, Giver::Guest);
        let mut hello = guest.hello();
        hello[0] = Giver::Holder as u8;
        let run = Run::new(&code, Giver::Holder, &hello).unwrap();
        assert!(!run.is_right(&guest.take(&run.answer()).unwrap().proof()));
    }

    #[test]
    fn two_runs_of_one_code_share_nothing() {
        let code = code([1; 4]);
        let (a, first) = guess(&code, &code, Giver::Holder);
        let (b, second) = guess(&code, &code, Giver::Holder);
        assert_ne!(a.answer(), b.answer());
        assert!(!a.is_right(&second.proof()));
        assert_eq!(first.open(&b.welcome(b"ticket")), Err(WrongWords));
    }

    #[test]
    fn the_proof_reflected_is_no_welcome() {
        let code = code([1; 4]);
        let (_, proven) = guess(&code, &code, Giver::Holder);
        let mut welcome = [0; WELCOME_LEN];
        welcome[..CONFIRM_LEN].copy_from_slice(&proven.proof());
        assert_eq!(proven.open(&welcome), Err(WrongWords));
    }

    #[test]
    fn any_changed_byte_of_any_message_is_wrong() {
        let code = code([1; 4]);
        let (run, proven) = guess(&code, &code, Giver::Holder);
        for at in 0..PROOF_LEN {
            let mut proof = proven.proof();
            proof[at] ^= 1;
            assert!(!run.is_right(&proof));
        }
        for at in 0..WELCOME_LEN {
            let mut welcome = run.welcome(b"ticket");
            welcome[at] ^= 1;
            assert_eq!(proven.open(&welcome), Err(WrongWords));
        }
        for at in 0..ELEMENT_LEN {
            let guest = Guest::new(&code, Giver::Holder);
            let mut hello = guest.hello();
            hello[1 + at] ^= 1;
            let Ok(run) = Run::new(&code, Giver::Holder, &hello) else { continue };
            let proven = guest.take(&run.answer()).unwrap();
            assert!(!run.is_right(&proven.proof()));
        }
    }

    #[test]
    fn elements_that_are_none_are_refused() {
        let code = code([1; 4]);
        let guest = Guest::new(&code, Giver::Holder).hello();
        let honest = CompressedEdwardsY(guest[1..].try_into().unwrap()).decompress().unwrap();
        for torsion in EIGHT_TORSION {
            for point in [torsion, honest + torsion] {
                if point == honest {
                    continue;
                }
                let bytes = point.compress().0;
                let mut hello = guest;
                hello[1..].copy_from_slice(&bytes);
                assert_eq!(Run::new(&code, Giver::Holder, &hello).unwrap_err(), WrongWords);
                let guest = Guest::new(&code, Giver::Holder);
                assert_eq!(guest.take(&bytes).unwrap_err(), WrongWords);
            }
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic_or_pass(hello: [u8; 32], answer: [u8; 32], proof: [u8; 32]) {
            let code = code([1; 4]);
            let mut message = [Giver::Holder as u8; HELLO_LEN];
            message[1..].copy_from_slice(&hello);
            if let Ok(run) = Run::new(&code, Giver::Holder, &message) {
                prop_assert!(!run.is_right(&proof));
                prop_assert_eq!(run.open_gift(&[proof[0]; GIFT_LEN]), Err(WrongWords));
            }
            if let Ok(proven) = Guest::new(&code, Giver::Holder).take(&answer) {
                prop_assert_eq!(proven.open(&[proof[0]; WELCOME_LEN]), Err(WrongWords));
            }
        }
    }

    #[test]
    fn debug_output_shows_no_secret() {
        let code = code([1; 4]);
        let (run, proven) = guess(&code, &code, Giver::Holder);
        let text = format!("{run:?} {proven:?} {:?}", Guest::new(&code, Giver::Holder));
        assert!(!text.contains(code.secret().as_str()));
        assert!(text.contains("Keys(secret)"));
    }
}
