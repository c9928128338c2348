//! Who may use this relay, and how often one may try.
//!
//! Invariant: whoever has shown too many wrong proofs from one address is refused before a proof is looked at.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use wraith_discovery::rates::{Limit, Rates, Source};

use super::options::Admission;
use crate::frame::{Proof, Refusal};
use crate::proof::Exporter;

/// Wrong proofs from one address: enough for a mistyped token and the one before it, too few to guess.
const WRONG_PROOFS: Limit = Limit { burst: 5, refill: Duration::from_secs(30), addresses: 4096 };

/// See the module.
#[derive(Debug)]
pub struct Gate {
    admission: Admission,
    wrong: Rates,
}

impl Gate {
    /// For those whom `admission` names.
    pub fn new(admission: Admission) -> Self {
        Self { admission, wrong: Rates::new(WRONG_PROOFS) }
    }

    /// Whether who came from `from` and shows `proof` on the session with `exporter` may use the relay.
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
        // A try is paid for before it is known how it ends, and given back by success only in that the bucket refills.
        if !self.wrong.allow(Source::of(from), now) {
            return Err(Refusal::TooOften);
        }
        let admitted = match &self.admission {
            Admission::Open => true,
            Admission::Tokens(tokens) => {
                // All are tried, whichever it is.
                tokens.iter().fold(false, |found, token| found | proof.shows_token(token, exporter))
            }
            Admission::Nodes(nodes) => {
                proof.shows_identity(exporter).is_some_and(|node_id| nodes.contains(&node_id))
            }
        };
        if admitted { Ok(()) } else { Err(refusal) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::Token;

    #[test]
    fn guessing_is_stopped_for_an_address_and_not_for_others() {
        let token = Token::new("right");
        let mut gate = Gate::new(Admission::Tokens(vec![token.clone()]));
        let (now, exporter) = (Instant::now(), [1; 32]);
        let [guesser, other]: [IpAddr; 2] = [[192, 0, 2, 1].into(), [192, 0, 2, 2].into()];
        let wrong = Proof::of_token(&Token::new("wrong"), &exporter);
        let right = Proof::of_token(&token, &exporter);
        for _ in 0..5 {
            assert_eq!(gate.admit(now, guesser, &wrong, &exporter), Err(Refusal::Token));
        }
        assert_eq!(gate.admit(now, guesser, &right, &exporter), Err(Refusal::TooOften));
        assert_eq!(gate.admit(now, other, &right, &exporter), Ok(()));
        let later = now + WRONG_PROOFS.refill;
        assert_eq!(gate.admit(later, guesser, &right, &exporter), Ok(()));
    }
}
