//! The creator's state of one code. All meeting places share it, so that together they allow one
//! wrong guess.
//!
//! ```text
//!            hello: a run begins, nothing is decided; or right proof with uses left
//!            ┌───┐
//!            ▼   │   right proof, the last use
//!  made ──▶ Open ┴──────────────▶ Over(Used)
//!            │ │   wrong proof
//!            │ └────────────────▶ Over(Burned)
//!            │      time is up
//!            └──────────────────▶ Over(Expired)
//! ```
//!
//! Joiners with the right words get the same response again in any state.
//!
//! Invariant: at most one wrong proof is ever compared, however many uses the code has. More uses
//! therefore do not allow more guesses. No transition leads back to Open.

use std::collections::VecDeque;
use std::time::Instant;

use wraith_crypto::NodeId;
use zeroize::Zeroizing;

use super::pake::{
    ANSWER_LEN, CreatorExchange, HELLO_LEN, PROOF_LEN, TICKET_LEN, TicketSide, WELCOME_LEN,
};
use super::text::Code;
use crate::place::Refusal;

/// Most concurrent exchanges. A joiner finishes within a round trip. Beyond this number the oldest
/// is dropped, so a flood of hellos has bounded memory. This excludes only joiners slower than the
/// flood. On a local network, at most some hundred hellos per second are answered, so a joiner
/// there has half a second.
const MAX_RUNS: usize = 512;

/// Joiners whose welcome is kept for a repeated request, which follows within seconds.
const MAX_SERVED: usize = 64;

/// Most identities remembered as users. If an older one returns, it spends another use.
const MAX_USERS: usize = 4096;

/// Result of a proof.
#[derive(Debug)]
pub enum ProofVerdict {
    /// The proof was right. `first` is false if the joiner repeats a request.
    Right {
        /// Message for the joiner.
        welcome: Box<[u8; WELCOME_LEN]>,
        /// The joiner's identity.
        joiner: NodeId,
        /// Whether this is the joiner's first request.
        first: bool,
    },
    /// The proof was wrong or too late. [`Refusal::Wrong`] occurs once per creator.
    Refused(Refusal),
}

/// State of one code.
#[derive(Debug)]
pub struct Creator {
    code: Code,
    ticket_side: TicketSide,
    expires: Instant,
    /// Number of identities that may still use it.
    uses: u32,
    /// Identities that have used it, oldest first. They may return without spending another use.
    users: VecDeque<NodeId>,
    /// Joiners that proved the words, oldest first.
    served: VecDeque<ServedJoiner>,
    state: CodeState,
}

#[derive(Debug)]
struct ServedJoiner {
    hello: [u8; HELLO_LEN],
    proof: [u8; PROOF_LEN],
    joiner: NodeId,
    welcome: Box<[u8; WELCOME_LEN]>,
    run: CreatorExchange,
}

#[derive(Debug)]
enum CodeState {
    /// Exchanges by the joiner's hello, oldest first.
    Open(VecDeque<([u8; HELLO_LEN], CreatorExchange)>),
    Closed(Refusal),
}

impl Creator {
    /// Creates the state of an unused code for one joiner.
    pub fn new(code: Code, ticket_side: TicketSide, expires: Instant) -> Self {
        let (served, state) = (VecDeque::new(), CodeState::Open(VecDeque::new()));
        let users = VecDeque::new();
        Self { code, ticket_side, expires, uses: 1, users, served, state }
    }

    /// Sets the number of identities that may use the code, at least one. A wrong guess ends it for
    /// all.
    pub fn with_uses(mut self, uses: u32) -> Self {
        self.uses = uses.max(1);
        self
    }

    /// Returns the code.
    pub const fn code(&self) -> &Code {
        &self.code
    }

    /// Returns the expiry time of the unused code.
    pub const fn expires(&self) -> Instant {
        self.expires
    }

    /// Returns the reason why new joiners are refused, or `None` while the code is open.
    pub fn refusal_at(&mut self, now: Instant) -> Option<Refusal> {
        if matches!(self.state, CodeState::Open(_)) && now >= self.expires {
            self.state = CodeState::Closed(Refusal::Expired);
        }
        match self.state {
            CodeState::Open(_) => None,
            CodeState::Closed(why) => Some(why),
        }
    }

    /// Ends an open code without a guess.
    pub fn close(&mut self, why: Refusal) {
        if matches!(self.state, CodeState::Open(_)) {
            self.state = CodeState::Closed(why);
        }
    }

    /// Returns the answer to a hello. A repeated hello gets the same answer.
    ///
    /// # Errors
    /// The reason of the refusal.
    pub fn answer_hello(
        &mut self,
        now: Instant,
        hello: &[u8; HELLO_LEN],
    ) -> Result<[u8; ANSWER_LEN], Refusal> {
        if let Some(served) = self.served.iter().find(|served| served.hello == *hello) {
            return Ok(served.run.answer());
        }
        self.refusal_at(now);
        match &mut self.state {
            CodeState::Open(runs) => {
                if let Some((_, run)) = runs.iter().find(|(theirs, _)| theirs == hello) {
                    return Ok(run.answer());
                }
                let run = CreatorExchange::new(&self.code, self.ticket_side, hello)
                    .map_err(|_| Refusal::Unfit)?;
                let answer = run.answer();
                if runs.len() == MAX_RUNS {
                    runs.pop_front();
                }
                runs.push_back((*hello, run));
                Ok(answer)
            }
            CodeState::Closed(why) => Err(*why),
        }
    }

    /// Verifies the proof of the joiner with `hello`. For a right proof, `payload` makes the
    /// payload: the ticket for this identity, or the creator's NodeId if the joiner has the ticket.
    /// If it returns `None`, the offer has no room for another identity, and the code is used.
    pub fn verify_proof(
        &mut self,
        now: Instant,
        hello: &[u8; HELLO_LEN],
        proof: &[u8; PROOF_LEN],
        payload: impl FnOnce(NodeId) -> Option<Zeroizing<Vec<u8>>>,
    ) -> ProofVerdict {
        let again = |served: &&ServedJoiner| {
            served.hello == *hello && wraith_crypto::equal(&served.proof, proof)
        };
        if let Some(served) = self.served.iter().find(again) {
            let (welcome, joiner) = (served.welcome.clone(), served.joiner);
            return ProofVerdict::Right { welcome, joiner, first: false };
        }
        self.refusal_at(now);
        let runs = match &mut self.state {
            CodeState::Open(runs) => runs,
            CodeState::Closed(why) => return ProofVerdict::Refused(*why),
        };
        let Some(at) = runs.iter().position(|(theirs, _)| theirs == hello) else {
            return ProofVerdict::Refused(Refusal::Unknown);
        };
        let (_, run) = runs.swap_remove_back(at).expect("the position was just found");
        let Ok(joiner) = run.verify_proof(proof) else {
            self.state = CodeState::Closed(Refusal::Burned);
            return ProofVerdict::Refused(Refusal::Wrong);
        };
        let Some(payload) = payload(joiner) else {
            self.state = CodeState::Closed(Refusal::Used);
            return ProofVerdict::Refused(Refusal::Used);
        };
        let welcome = Box::new(run.welcome(&payload));
        if self.served.len() == MAX_SERVED {
            self.served.pop_front();
        }
        let (hello, proof) = (*hello, *proof);
        let served = ServedJoiner { hello, proof, joiner, welcome: welcome.clone(), run };
        self.served.push_back(served);
        if !self.users.contains(&joiner) {
            if self.users.len() == MAX_USERS {
                self.users.pop_front();
            }
            self.users.push_back(joiner);
            // An unlimited code stays unlimited.
            self.uses -= u32::from(self.uses != u32::MAX);
        }
        if self.uses == 0 {
            self.state = CodeState::Closed(Refusal::Used);
        }
        ProofVerdict::Right { welcome, joiner, first: true }
    }

    /// Opens the ticket from the joiner that sent `hello` and proved the words.
    ///
    /// # Errors
    /// The reason of the refusal.
    pub fn open_ticket(
        &self,
        hello: &[u8; HELLO_LEN],
        ticket: &[u8; TICKET_LEN],
    ) -> Result<Zeroizing<Vec<u8>>, Refusal> {
        let served = self.served.iter().find(|served| served.hello == *hello);
        let served = served.ok_or(Refusal::Unknown)?;
        served.run.open_ticket(ticket).map_err(|_| Refusal::Unfit)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::pake::{Joiner, JoinerKeys};
    use super::*;

    const OWN: NodeId = NodeId([9; 32]);
    const LIFE: Duration = Duration::from_secs(60);

    fn code(random: u8) -> Code {
        Code::new(7, [random; 4])
    }

    fn creator(now: Instant) -> Creator {
        Creator::new(code(1), TicketSide::Creator, now + LIFE)
    }

    fn ticket(_: NodeId) -> Option<Zeroizing<Vec<u8>>> {
        Some(Zeroizing::new(b"ticket".to_vec()))
    }

    fn nothing(_: NodeId) -> Option<Zeroizing<Vec<u8>>> {
        panic!("no ticket is made for a wrong guess")
    }

    /// Runs a joiner with these words up to its proof.
    fn come(creator: &mut Creator, now: Instant, words: u8) -> ([u8; HELLO_LEN], JoinerKeys) {
        let joiner = Joiner::new(&code(words), TicketSide::Creator);
        let hello = joiner.hello();
        let answer = creator.answer_hello(now, &hello).unwrap();
        (hello, joiner.process_answer(&answer).unwrap())
    }

    #[test]
    fn a_joiner_with_the_right_words_may_repeat_its_proof() {
        let now = Instant::now();
        let mut creator = creator(now);
        let (hello, proven) = come(&mut creator, now, 1);
        for time in 0..3 {
            match creator.verify_proof(now + LIFE * time, &hello, &proven.proof(OWN), ticket) {
                ProofVerdict::Right { welcome, joiner, first } => {
                    assert_eq!((first, joiner), (time == 0, OWN));
                    assert_eq!(proven.open_welcome(&welcome).unwrap().as_slice(), b"ticket");
                }
                ProofVerdict::Refused(why) => panic!("{why:?}"),
            }
        }
        assert_eq!(creator.refusal_at(now), Some(Refusal::Used));
    }

    #[test]
    fn a_code_for_three_serves_three_and_a_wrong_guess_ends_it_for_the_rest() {
        let now = Instant::now();
        for wrong_after in 0..=3 {
            let (mut creator, mut users) = (creator(now).with_uses(3), 0);
            for _ in 0..wrong_after {
                assert_eq!(creator.refusal_at(now), None);
                let (hello, proven) = come(&mut creator, now, 1);
                users += 1;
                for first in [true, false] {
                    let proof = proven.proof(NodeId([users; 32]));
                    let judged = creator.verify_proof(now, &hello, &proof, ticket);
                    assert!(matches!(judged, ProofVerdict::Right { first: f, .. } if f == first));
                }
            }
            if wrong_after == 3 {
                assert_eq!(creator.refusal_at(now), Some(Refusal::Used));
                let late = Joiner::new(&code(1), TicketSide::Creator).hello();
                assert_eq!(creator.answer_hello(now, &late), Err(Refusal::Used));
                continue;
            }
            let (hello, wrong) = come(&mut creator, now, 2);
            let (right_hello, right) = come(&mut creator, now, 1);
            let judged = creator.verify_proof(now, &hello, &wrong.proof(OWN), nothing);
            assert!(matches!(judged, ProofVerdict::Refused(Refusal::Wrong)));
            let judged = creator.verify_proof(now, &right_hello, &right.proof(OWN), nothing);
            assert!(matches!(judged, ProofVerdict::Refused(Refusal::Burned)));
        }
    }

    #[test]
    fn an_offer_without_room_ends_the_code_as_used() {
        let now = Instant::now();
        let mut creator = creator(now).with_uses(3);
        let (hello, proven) = come(&mut creator, now, 1);
        let judged = creator.verify_proof(now, &hello, &proven.proof(OWN), |_| None);
        assert!(matches!(judged, ProofVerdict::Refused(Refusal::Used)), "{judged:?}");
        assert_eq!(creator.refusal_at(now), Some(Refusal::Used));
    }

    #[test]
    fn a_returning_identity_spends_no_second_use() {
        let now = Instant::now();
        let mut creator = creator(now).with_uses(2);
        let comes = |creator: &mut Creator, user| {
            let (hello, proven) = come(creator, now, 1);
            creator.verify_proof(now, &hello, &proven.proof(NodeId([user; 32])), ticket)
        };
        for user in [1, 1, 1, 2] {
            assert_eq!(creator.refusal_at(now), None);
            assert!(matches!(comes(&mut creator, user), ProofVerdict::Right { first: true, .. }));
        }
        assert_eq!(creator.refusal_at(now), Some(Refusal::Used));
    }

    #[test]
    fn one_wrong_guess_burns_the_code_for_all_joiners() {
        let now = Instant::now();
        let mut creator = creator(now);
        let (right_hello, right) = come(&mut creator, now, 1);
        let (hello, wrong) = come(&mut creator, now, 2);
        let judged = creator.verify_proof(now, &hello, &wrong.proof(OWN), nothing);
        assert!(matches!(judged, ProofVerdict::Refused(Refusal::Wrong)));
        for (hello, proof) in [(hello, wrong.proof(OWN)), (right_hello, right.proof(OWN))] {
            let judged = creator.verify_proof(now, &hello, &proof, nothing);
            assert!(matches!(judged, ProofVerdict::Refused(Refusal::Burned)), "{judged:?}");
        }
        let hello = Joiner::new(&code(1), TicketSide::Creator).hello();
        assert_eq!(creator.answer_hello(now, &hello), Err(Refusal::Burned));
    }

    #[test]
    fn of_two_joiners_with_the_right_words_one_is_served() {
        let now = Instant::now();
        let mut creator = creator(now);
        let (first_hello, first) = come(&mut creator, now, 1);
        let (second_hello, second) = come(&mut creator, now, 1);
        let judged = creator.verify_proof(now, &second_hello, &second.proof(OWN), ticket);
        assert!(matches!(judged, ProofVerdict::Right { first: true, .. }));
        let judged = creator.verify_proof(now, &first_hello, &first.proof(OWN), nothing);
        assert!(matches!(judged, ProofVerdict::Refused(Refusal::Used)));
    }

    #[test]
    fn an_expired_code_serves_nobody() {
        let now = Instant::now();
        let mut creator = creator(now);
        let (hello, proven) = come(&mut creator, now, 1);
        let judged = creator.verify_proof(now + LIFE, &hello, &proven.proof(OWN), nothing);
        assert!(matches!(judged, ProofVerdict::Refused(Refusal::Expired)));
        assert_eq!(creator.answer_hello(now, &hello), Err(Refusal::Expired), "and it stays so");
    }

    #[test]
    fn a_proof_without_an_exchange_is_no_guess() {
        let now = Instant::now();
        let mut creator = creator(now);
        let judged = creator.verify_proof(now, &[1; HELLO_LEN], &[0; PROOF_LEN], nothing);
        assert!(matches!(judged, ProofVerdict::Refused(Refusal::Unknown)));
        assert_eq!(creator.refusal_at(now), None);
    }

    #[test]
    fn a_flood_of_hellos_is_bounded_and_does_not_burn() {
        let now = Instant::now();
        let mut creator = creator(now);
        for _ in 0..2 * MAX_RUNS {
            let hello = Joiner::new(&code(2), TicketSide::Creator).hello();
            creator.answer_hello(now, &hello).unwrap();
        }
        match &creator.state {
            CodeState::Open(runs) => assert_eq!(runs.len(), MAX_RUNS),
            other => panic!("{other:?}"),
        }
        let (hello, proven) = come(&mut creator, now, 1);
        let judged = creator.verify_proof(now, &hello, &proven.proof(OWN), ticket);
        assert!(matches!(judged, ProofVerdict::Right { .. }));
    }

    #[test]
    fn the_same_hello_gets_the_same_answer() {
        let now = Instant::now();
        let mut creator = creator(now);
        let hello = Joiner::new(&code(1), TicketSide::Creator).hello();
        assert_eq!(creator.answer_hello(now, &hello), creator.answer_hello(now, &hello));
    }

    #[test]
    fn a_malformed_hello_is_unfit() {
        let now = Instant::now();
        let mut creator = creator(now);
        for bytes in [[0; HELLO_LEN], [1; HELLO_LEN], [0xff; HELLO_LEN]] {
            assert_eq!(creator.answer_hello(now, &bytes), Err(Refusal::Unfit));
        }
        assert_eq!(creator.refusal_at(now), None);
    }

    #[test]
    fn only_a_welcomed_joiner_may_send_a_ticket() {
        let now = Instant::now();
        let mut creator = Creator::new(code(1), TicketSide::Joiner, now + LIFE);
        let joiner = Joiner::new(&code(1), TicketSide::Joiner);
        let hello = joiner.hello();
        let proven = joiner.process_answer(&creator.answer_hello(now, &hello).unwrap()).unwrap();
        let ticket = proven.seal_ticket(b"ticket");
        assert_eq!(creator.open_ticket(&hello, &ticket).unwrap_err(), Refusal::Unknown);
        let judged =
            creator.verify_proof(now, &hello, &proven.proof(OWN), |_| Some(Zeroizing::default()));
        assert!(matches!(judged, ProofVerdict::Right { .. }));
        assert_eq!(creator.open_ticket(&hello, &ticket).unwrap().as_slice(), b"ticket");
        assert_eq!(creator.open_ticket(&hello, &[0; TICKET_LEN]).unwrap_err(), Refusal::Unfit);
        assert_eq!(creator.open_ticket(&[0; HELLO_LEN], &ticket).unwrap_err(), Refusal::Unknown);
    }
}
