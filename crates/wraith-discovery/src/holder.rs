//! The side that made a code, wherever guests come from: one state for all meeting places, so that one guess is one guess.
//!
//! ```text
//!            hello: a run begins, nothing is decided; right proof, and uses are left
//!            ┌───┐
//!            ▼   │   right proof, the last use
//!  made ──▶ Open ┴──────────────▶ Over(Used)
//!            │ │   wrong proof
//!            │ └────────────────▶ Over(Burned)
//!            │      time is up
//!            └──────────────────▶ Over(Expired)
//! ```
//!
//! Guests with the right words are answered with the same words again, whatever the state. Invariant: at most one wrong
//! proof is ever compared, however often the code may be used, so more uses give nobody more guesses. No path leads back to
//! Open.

use std::collections::VecDeque;
use std::time::Instant;

use zeroize::Zeroizing;

use crate::Code;
use crate::pake::{ANSWER_LEN, GIFT_LEN, Giver, HELLO_LEN, PROOF_LEN, Run, WELCOME_LEN};

/// Exchanges that may be under way at once. A guest finishes within a round trip; beyond this number the oldest is
/// dropped, so a flood of hellos costs memory for this many and keeps out guests slower than it: at most some hundred a
/// second are answered on a local network, so a guest has half a second there.
const MAX_RUNS: usize = 512;

/// Guests whose welcome is kept for when they ask again, which they do within seconds.
const MAX_SERVED: usize = 64;

/// Why a guest is not served. Told to the guest in one byte, which proves nothing and is treated so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Refusal {
    /// Somebody else was served.
    Used = 1,
    /// Somebody guessed wrong before.
    Burned = 2,
    /// The time is up.
    Expired = 3,
    /// This guess was wrong, and with it the code is burned.
    Wrong = 4,
    /// The message is no hello of a guest of this code: the other direction, or nonsense.
    Unfit = 5,
    /// The proof belongs to no run; the guest may begin again with a new code only.
    Unknown = 6,
}

impl Refusal {
    /// The refusal that a byte names.
    pub const fn from_wire(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Used,
            2 => Self::Burned,
            3 => Self::Expired,
            4 => Self::Wrong,
            5 => Self::Unfit,
            6 => Self::Unknown,
            _ => return None,
        })
    }
}

/// What became of a proof.
#[derive(Debug)]
pub enum Judged {
    /// It was right; this is the welcome. `first` unless the guest has had it before and asks again.
    Right {
        /// For the guest.
        welcome: Box<[u8; WELCOME_LEN]>,
        /// False when the guest asks again.
        first: bool,
    },
    /// It was not, or came too late. [`Refusal::Wrong`] comes once in a holder's life.
    Refused(Refusal),
}

/// One code and what has become of it.
#[derive(Debug)]
pub struct Holder {
    code: Code,
    giver: Giver,
    expires: Instant,
    /// Right proofs that are still welcome.
    uses: u32,
    /// Guests that proved the words, oldest first.
    served: VecDeque<Served>,
    state: State,
}

#[derive(Debug)]
struct Served {
    hello: [u8; HELLO_LEN],
    proof: [u8; PROOF_LEN],
    welcome: Box<[u8; WELCOME_LEN]>,
    run: Run,
}

#[derive(Debug)]
enum State {
    /// Runs by the guest's hello, oldest first.
    Open(VecDeque<([u8; HELLO_LEN], Run)>),
    Over(Refusal),
}

impl Holder {
    /// A code that nobody has tried yet, good for one guest.
    pub fn new(code: Code, giver: Giver, expires: Instant) -> Self {
        let (served, state) = (VecDeque::new(), State::Open(VecDeque::new()));
        Self { code, giver, expires, uses: 1, served, state }
    }

    /// The same, good for so many guests, at least one. A wrong guess ends it for all.
    pub fn with_uses(mut self, uses: u32) -> Self {
        self.uses = uses.max(1);
        self
    }

    /// The code.
    pub const fn code(&self) -> &Code {
        &self.code
    }

    /// When the code ends if nobody uses it.
    pub const fn expires(&self) -> Instant {
        self.expires
    }

    /// Why nobody new is served any more; None while the code is open.
    pub fn over(&mut self, now: Instant) -> Option<Refusal> {
        if matches!(self.state, State::Open(_)) && now >= self.expires {
            self.state = State::Over(Refusal::Expired);
        }
        match self.state {
            State::Open(_) => None,
            State::Over(why) => Some(why),
        }
    }

    /// Ends an open code without a guess.
    pub fn end(&mut self, why: Refusal) {
        if matches!(self.state, State::Open(_)) {
            self.state = State::Over(why);
        }
    }

    /// The answer to a hello. The same hello gets the same answer again.
    ///
    /// # Errors
    /// Why there is none.
    pub fn hello(
        &mut self,
        now: Instant,
        hello: &[u8; HELLO_LEN],
    ) -> Result<[u8; ANSWER_LEN], Refusal> {
        if let Some(served) = self.served.iter().find(|served| served.hello == *hello) {
            return Ok(served.run.answer());
        }
        self.over(now);
        match &mut self.state {
            State::Open(runs) => {
                if let Some((_, run)) = runs.iter().find(|(theirs, _)| theirs == hello) {
                    return Ok(run.answer());
                }
                let run = Run::new(&self.code, self.giver, hello).map_err(|_| Refusal::Unfit)?;
                let answer = run.answer();
                if runs.len() == MAX_RUNS {
                    runs.pop_front();
                }
                runs.push_back((*hello, run));
                Ok(answer)
            }
            State::Over(why) => Err(*why),
        }
    }

    /// Judges the proof of the guest that said `hello`; `ticket` is called for what a right one gets (nothing, if the
    /// guest gives).
    pub fn judge(
        &mut self,
        now: Instant,
        hello: &[u8; HELLO_LEN],
        proof: &[u8; PROOF_LEN],
        ticket: impl FnOnce() -> Zeroizing<Vec<u8>>,
    ) -> Judged {
        let again =
            |served: &&Served| served.hello == *hello && wraith_crypto::equal(&served.proof, proof);
        if let Some(served) = self.served.iter().find(again) {
            return Judged::Right { welcome: served.welcome.clone(), first: false };
        }
        self.over(now);
        let runs = match &mut self.state {
            State::Open(runs) => runs,
            State::Over(why) => return Judged::Refused(*why),
        };
        let Some(at) = runs.iter().position(|(theirs, _)| theirs == hello) else {
            return Judged::Refused(Refusal::Unknown);
        };
        let (_, run) = runs.swap_remove_back(at).expect("the position was just found");
        if !run.is_right(proof) {
            self.state = State::Over(Refusal::Burned);
            return Judged::Refused(Refusal::Wrong);
        }
        let welcome = Box::new(run.welcome(&ticket()));
        if self.served.len() == MAX_SERVED {
            self.served.pop_front();
        }
        let served = Served { hello: *hello, proof: *proof, welcome: welcome.clone(), run };
        self.served.push_back(served);
        // An endless code stays so.
        self.uses -= u32::from(self.uses != u32::MAX);
        if self.uses == 0 {
            self.state = State::Over(Refusal::Used);
        }
        Judged::Right { welcome, first: true }
    }

    /// What the guest gave that said `hello` and proved the words.
    ///
    /// # Errors
    /// Why it is not taken.
    pub fn gift(
        &self,
        hello: &[u8; HELLO_LEN],
        gift: &[u8; GIFT_LEN],
    ) -> Result<Zeroizing<Vec<u8>>, Refusal> {
        let served = self.served.iter().find(|served| served.hello == *hello);
        let served = served.ok_or(Refusal::Unknown)?;
        served.run.open_gift(gift).map_err(|_| Refusal::Unfit)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::pake::{Guest, Proven};

    const LIFE: Duration = Duration::from_secs(60);

    fn code(random: u8) -> Code {
        Code::new(7, [random; 4])
    }

    fn holder(now: Instant) -> Holder {
        Holder::new(code(1), Giver::Holder, now + LIFE)
    }

    fn ticket() -> Zeroizing<Vec<u8>> {
        Zeroizing::new(b"ticket".to_vec())
    }

    fn nothing() -> Zeroizing<Vec<u8>> {
        panic!("no ticket is made for a wrong guess")
    }

    /// A guest with these words up to its proof.
    fn come(holder: &mut Holder, now: Instant, words: u8) -> ([u8; HELLO_LEN], Proven) {
        let guest = Guest::new(&code(words), Giver::Holder);
        let hello = guest.hello();
        let answer = holder.hello(now, &hello).unwrap();
        (hello, guest.take(&answer).unwrap())
    }

    #[test]
    fn the_right_words_are_welcome_and_may_ask_again() {
        let now = Instant::now();
        let mut holder = holder(now);
        let (hello, proven) = come(&mut holder, now, 1);
        for time in 0..3 {
            match holder.judge(now + LIFE * time, &hello, &proven.proof(), ticket) {
                Judged::Right { welcome, first } => {
                    assert_eq!(first, time == 0);
                    assert_eq!(proven.open(&welcome).unwrap().as_slice(), b"ticket");
                }
                Judged::Refused(why) => panic!("{why:?}"),
            }
        }
        assert_eq!(holder.over(now), Some(Refusal::Used));
    }

    #[test]
    fn a_code_for_three_serves_three_and_a_wrong_guess_ends_it_for_the_rest() {
        let now = Instant::now();
        for wrong_after in 0..=3 {
            let mut holder = holder(now).with_uses(3);
            for _ in 0..wrong_after {
                assert_eq!(holder.over(now), None);
                let (hello, proven) = come(&mut holder, now, 1);
                for first in [true, false] {
                    let judged = holder.judge(now, &hello, &proven.proof(), ticket);
                    assert!(matches!(judged, Judged::Right { first: f, .. } if f == first));
                }
            }
            if wrong_after == 3 {
                assert_eq!(holder.over(now), Some(Refusal::Used));
                let late = Guest::new(&code(1), Giver::Holder).hello();
                assert_eq!(holder.hello(now, &late), Err(Refusal::Used));
                continue;
            }
            let (hello, wrong) = come(&mut holder, now, 2);
            let (right_hello, right) = come(&mut holder, now, 1);
            let judged = holder.judge(now, &hello, &wrong.proof(), nothing);
            assert!(matches!(judged, Judged::Refused(Refusal::Wrong)));
            let judged = holder.judge(now, &right_hello, &right.proof(), nothing);
            assert!(matches!(judged, Judged::Refused(Refusal::Burned)));
        }
    }

    #[test]
    fn one_wrong_guess_burns_the_code_for_everybody() {
        let now = Instant::now();
        let mut holder = holder(now);
        let (right_hello, right) = come(&mut holder, now, 1);
        let (hello, wrong) = come(&mut holder, now, 2);
        let judged = holder.judge(now, &hello, &wrong.proof(), nothing);
        assert!(matches!(judged, Judged::Refused(Refusal::Wrong)));
        for (hello, proof) in [(hello, wrong.proof()), (right_hello, right.proof())] {
            let judged = holder.judge(now, &hello, &proof, nothing);
            assert!(matches!(judged, Judged::Refused(Refusal::Burned)), "{judged:?}");
        }
        let hello = Guest::new(&code(1), Giver::Holder).hello();
        assert_eq!(holder.hello(now, &hello), Err(Refusal::Burned));
    }

    #[test]
    fn of_two_guests_with_the_right_words_one_is_served() {
        let now = Instant::now();
        let mut holder = holder(now);
        let (first_hello, first) = come(&mut holder, now, 1);
        let (second_hello, second) = come(&mut holder, now, 1);
        let judged = holder.judge(now, &second_hello, &second.proof(), ticket);
        assert!(matches!(judged, Judged::Right { first: true, .. }));
        let judged = holder.judge(now, &first_hello, &first.proof(), nothing);
        assert!(matches!(judged, Judged::Refused(Refusal::Used)));
    }

    #[test]
    fn an_expired_code_serves_nobody() {
        let now = Instant::now();
        let mut holder = holder(now);
        let (hello, proven) = come(&mut holder, now, 1);
        let judged = holder.judge(now + LIFE, &hello, &proven.proof(), nothing);
        assert!(matches!(judged, Judged::Refused(Refusal::Expired)));
        assert_eq!(holder.hello(now, &hello), Err(Refusal::Expired), "and it stays so");
    }

    #[test]
    fn a_proof_without_a_run_is_no_guess() {
        let now = Instant::now();
        let mut holder = holder(now);
        let judged = holder.judge(now, &[1; HELLO_LEN], &[0; PROOF_LEN], nothing);
        assert!(matches!(judged, Judged::Refused(Refusal::Unknown)));
        assert_eq!(holder.over(now), None);
    }

    #[test]
    fn a_flood_of_hellos_is_bounded_and_does_not_burn() {
        let now = Instant::now();
        let mut holder = holder(now);
        for _ in 0..2 * MAX_RUNS {
            let hello = Guest::new(&code(2), Giver::Holder).hello();
            holder.hello(now, &hello).unwrap();
        }
        match &holder.state {
            State::Open(runs) => assert_eq!(runs.len(), MAX_RUNS),
            other => panic!("{other:?}"),
        }
        let (hello, proven) = come(&mut holder, now, 1);
        let judged = holder.judge(now, &hello, &proven.proof(), ticket);
        assert!(matches!(judged, Judged::Right { .. }));
    }

    #[test]
    fn the_same_hello_gets_the_same_answer() {
        let now = Instant::now();
        let mut holder = holder(now);
        let hello = Guest::new(&code(1), Giver::Holder).hello();
        assert_eq!(holder.hello(now, &hello), holder.hello(now, &hello));
    }

    #[test]
    fn what_is_no_hello_is_unfit() {
        let now = Instant::now();
        let mut holder = holder(now);
        for bytes in [[0; HELLO_LEN], [1; HELLO_LEN], [0xff; HELLO_LEN]] {
            assert_eq!(holder.hello(now, &bytes), Err(Refusal::Unfit));
        }
        assert_eq!(holder.over(now), None);
    }

    #[test]
    fn a_gift_is_taken_from_the_guest_that_was_welcomed_only() {
        let now = Instant::now();
        let mut holder = Holder::new(code(1), Giver::Guest, now + LIFE);
        let guest = Guest::new(&code(1), Giver::Guest);
        let hello = guest.hello();
        let proven = guest.take(&holder.hello(now, &hello).unwrap()).unwrap();
        let gift = proven.gift(b"ticket");
        assert_eq!(holder.gift(&hello, &gift).unwrap_err(), Refusal::Unknown);
        let judged = holder.judge(now, &hello, &proven.proof(), Zeroizing::default);
        assert!(matches!(judged, Judged::Right { .. }));
        assert_eq!(holder.gift(&hello, &gift).unwrap().as_slice(), b"ticket");
        assert_eq!(holder.gift(&hello, &[0; GIFT_LEN]).unwrap_err(), Refusal::Unfit);
        assert_eq!(holder.gift(&[0; HELLO_LEN], &gift).unwrap_err(), Refusal::Unknown);
    }

    #[test]
    fn refusals_survive_the_wire() {
        for byte in 0..=u8::MAX {
            if let Some(refusal) = Refusal::from_wire(byte) {
                assert_eq!(refusal as u8, byte);
            }
        }
        assert_eq!(Refusal::from_wire(Refusal::Wrong as u8), Some(Refusal::Wrong));
    }
}
