//! Admission of clients, with a rate limit that stops guessing.
//!
//! Invariant: after too many wrong proofs from one address in a short time, further proofs are
//! refused unchecked. A right proof, or none, is no guess and costs nothing.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use wraith_discovery::rates::{RateLimit, RateLimiter, Source};

use super::options::Admission;
use crate::frame::{Proof, Refusal};
use crate::proof::Exporter;

/// Limit of wrong proofs per address: enough for a mistyped token and an outdated one, too few to guess.
const WRONG_PROOFS: RateLimit =
    RateLimit { burst: 5, refill: Duration::from_secs(30), addresses: 4096 };

/// Admission policy and its rate limiter.
#[derive(Debug)]
pub struct AdmissionControl {
    admission: Admission,
    wrong: RateLimiter,
}

impl AdmissionControl {
    /// Creates the admission control of this policy.
    pub fn new(admission: Admission) -> Self {
        Self { admission, wrong: RateLimiter::new(WRONG_PROOFS) }
    }

    /// Checks `proof` of a client at `from` on the session with `exporter`.
    pub fn admit(
        &mut self,
        now: Instant,
        from: IpAddr,
        proof: &Proof,
        exporter: &Exporter,
    ) -> Result<(), Refusal> {
        let refusal = match self.admission {
            Admission::Open => return Ok(()),
            Admission::Tokens(_) => Refusal::Token,
            Admission::Nodes(_) => Refusal::Identity,
        };
        if matches!(proof, Proof::None) {
            return Err(refusal);
        }
        let source = Source::of(from);
        if !self.wrong.allow(source, now) {
            return Err(Refusal::TooOften);
        }
        let admitted = match &self.admission {
            Admission::Open => true,
            Admission::Tokens(tokens) => {
                // All tokens are checked, so the time does not depend on the matching one.
                tokens
                    .iter()
                    .fold(false, |found, token| found | proof.matches_token(token, exporter))
            }
            Admission::Nodes(nodes) => {
                proof.verify_identity(exporter).is_some_and(|node_id| nodes.contains(&node_id))
            }
        };
        if !admitted {
            return Err(refusal);
        }
        // Machines that share an address and the token may all come back at once.
        self.wrong.refund(source);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::Token;

    #[test]
    fn token_guesses_are_rate_limited_per_address() {
        let token = Token::new("right");
        let mut admission_control = AdmissionControl::new(Admission::Tokens(vec![token.clone()]));
        let (now, exporter) = (Instant::now(), [1; 32]);
        let [guesser, other]: [IpAddr; 2] = [[192, 0, 2, 1].into(), [192, 0, 2, 2].into()];
        let wrong = Proof::of_token(&Token::new("wrong"), &exporter);
        let right = Proof::of_token(&token, &exporter);
        for _ in 0..5 {
            assert_eq!(
                admission_control.admit(now, guesser, &wrong, &exporter),
                Err(Refusal::Token)
            );
        }
        assert_eq!(
            admission_control.admit(now, guesser, &right, &exporter),
            Err(Refusal::TooOften)
        );
        assert_eq!(admission_control.admit(now, other, &right, &exporter), Ok(()));
        let later = now + WRONG_PROOFS.refill;
        assert_eq!(admission_control.admit(later, guesser, &right, &exporter), Ok(()));
    }

    #[test]
    fn right_proofs_and_missing_ones_do_not_count_as_guesses() {
        let token = Token::new("right");
        let mut admission_control = AdmissionControl::new(Admission::Tokens(vec![token.clone()]));
        let (now, exporter, household) = (Instant::now(), [1; 32], [192, 0, 2, 1].into());
        let right = Proof::of_token(&token, &exporter);
        let mut admit = |proof| admission_control.admit(now, household, &proof, &exporter);
        for _ in 0..100 {
            assert_eq!(admit(right), Ok(()));
            assert_eq!(admit(Proof::None), Err(Refusal::Token));
        }
        let wrong = Proof::of_token(&Token::new("wrong"), &exporter);
        for _ in 0..5 {
            assert_eq!(admit(wrong), Err(Refusal::Token));
            // A holder of the token gets no more guesses.
            assert!(matches!(admit(right), Ok(()) | Err(Refusal::TooOften)));
        }
        assert_eq!(admit(wrong), Err(Refusal::TooOften));
    }
}
