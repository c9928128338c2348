//! Both sides of a code's exchange, from the words to the keys.
//!
//! The timed code draws the scalars from the system. They are random in both classes, so they are
//! noise and no target. A long code goes through Argon2id, whose memory accesses depend on the
//! password by design in all but its first half pass, so it is not a target.

use std::hint::black_box;

use rand_chacha::ChaCha20Rng;
use wraith_discovery::Code;
use wraith_discovery::TicketSide::Creator;
use wraith_discovery::pake::{CreatorExchange, Joiner};

use super::{Target, random};
use crate::measure::{Class, Plan, Times, timed};

const PLAN: Plan = Plan { measurements: 60_000, batch: 1 };
const NAMEPLATE: u32 = 7;

pub(super) const TARGETS: &[Target] = &[
    Target {
        name: "code-joiner",
        classes: ["short words", "random words"],
        plan: PLAN,
        measure: joiner,
    },
    Target {
        name: "code-creator",
        classes: ["short words", "random words"],
        plan: PLAN,
        measure: creator,
    },
];

/// A code whose words are read on each copy, so before the clock starts. The real program has just
/// shown or read the words. In the test, new words would cost a cache miss, and the one code of
/// class A would not.
struct CachedCode(Code);

impl Clone for CachedCode {
    fn clone(&self) -> Self {
        black_box(self.0.to_string());
        Self(self.0.clone())
    }
}

fn drawn(rng: &mut ChaCha20Rng) -> Code {
    Code::new(NAMEPLATE, random(rng))
}

/// Class A has two of the shortest words, because their length is a secret, too.
fn words(rng: &mut ChaCha20Rng) -> impl Fn(Class, &mut ChaCha20Rng) -> CachedCode + use<> {
    let length = |code: &Code| code.to_string().len();
    let short = (0..2000).map(|_| drawn(rng)).min_by_key(length).expect("some were drawn");
    move |class, rng| {
        let other = drawn(rng);
        CachedCode(if class == Class::A { short.clone() } else { other })
    }
}

fn joiner(plan: Plan, rng: &mut ChaCha20Rng) -> Option<Times> {
    let words = words(rng);
    let code = drawn(rng);
    let hello = Joiner::new(&code, Creator).hello();
    let answer = CreatorExchange::new(&code, Creator, &hello).expect("a joiner's hello").answer();
    Some(timed(plan, rng, words, |code| Joiner::new(&code.0, Creator).process_answer(&answer)))
}

fn creator(plan: Plan, rng: &mut ChaCha20Rng) -> Option<Times> {
    let words = words(rng);
    let hello = Joiner::new(&drawn(rng), Creator).hello();
    Some(timed(plan, rng, words, |code| CreatorExchange::new(&code.0, Creator, &hello)))
}
