//! Representatives of ephemeral keys.
//!
//! Keys that have a representative are compared only with each other. A key without one is
//! discarded, and the number of discarded keys is visible by design.

use std::convert::Infallible;

use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, TryCryptoRng, TryRng};
use wraith_crypto::elligator::{self, EphemeralKey};

use super::{Target, random};
use crate::measure::{Class, Plan, Times, timed};

pub(super) const TARGETS: &[Target] = &[
    Target {
        name: "elligator-encode",
        classes: ["one key", "random keys"],
        plan: Plan { measurements: 400_000, batch: 1 },
        measure: encode,
    },
    Target {
        name: "elligator-tweak",
        classes: ["first root", "second root"],
        plan: Plan { measurements: 400_000, batch: 1 },
        measure: tweak,
    },
    Target {
        name: "elligator-generate",
        classes: ["one draw", "random draws"],
        plan: Plan { measurements: 150_000, batch: 1 },
        measure: generate,
    },
    Target {
        name: "elligator-decode",
        classes: ["zeros", "random"],
        plan: Plan { measurements: 400_000, batch: 1 },
        measure: decode,
    },
];

fn encode(plan: Plan, rng: &mut ChaCha20Rng) -> Option<Times> {
    let one = (elligator::decode(&random(rng)), 0);
    let input = |class, rng: &mut ChaCha20Rng| {
        let other = (elligator::decode(&random(rng)), random::<1>(rng)[0]);
        if class == Class::A { one } else { other }
    };
    Some(timed(plan, rng, input, |(u, tweak)| elligator::encode(u, *tweak)))
}

fn tweak(plan: Plan, rng: &mut ChaCha20Rng) -> Option<Times> {
    let input = |class, rng: &mut ChaCha20Rng| {
        let tweak = if class == Class::A { 0 } else { 0b1100_0001 };
        (elligator::decode(&random(rng)), tweak)
    };
    Some(timed(plan, rng, input, |(u, tweak)| elligator::encode(u, *tweak)))
}

fn decode(plan: Plan, rng: &mut ChaCha20Rng) -> Option<Times> {
    let input = |class, rng: &mut ChaCha20Rng| {
        let other = random(rng);
        if class == Class::A { [0; 32] } else { other }
    };
    Some(timed(plan, rng, input, elligator::decode))
}

/// The whole generation, with the point of low order. The inputs are only draws that make a key at
/// once. The public key reveals which of the eight points was added, and the point is a table
/// index, so it is the same in all draws.
fn generate(plan: Plan, rng: &mut ChaCha20Rng) -> Option<Times> {
    let [point] = random(rng);
    let one = accepted(rng, point);
    let input = |class, rng: &mut ChaCha20Rng| {
        let other = accepted(rng, point);
        if class == Class::A { one } else { other }
    };
    Some(timed(plan, rng, input, |draw| EphemeralKey::generate(&mut Replayed(draw))))
}

/// Bytes drawn for one attempt at a key: the secret and the tweak.
pub(crate) const DRAW_BYTES: usize = 33;

/// Bits of the tweak that select the point of low order.
const POINT_BITS: u8 = 0b1110;

/// A draw that makes a key, with this point of low order.
pub(crate) fn accepted(rng: &mut ChaCha20Rng, point: u8) -> [u8; DRAW_BYTES] {
    let mut recorder = Recorder { rng, point: point & POINT_BITS, drawn: Vec::new() };
    let _ = EphemeralKey::generate(&mut recorder);
    *recorder.drawn.last_chunk().expect("an attempt draws as much")
}

/// Records the drawn bytes. The tweak is the only value drawn as a single byte; it selects `point`.
struct Recorder<'a> {
    rng: &'a mut ChaCha20Rng,
    point: u8,
    drawn: Vec<u8>,
}

/// Returns the recorded bytes again.
pub(crate) struct Replayed<'a>(pub(crate) &'a [u8]);

/// A generator that only supplies bytes.
macro_rules! generator {
    ($of:ident, $fill:expr) => {
        impl TryRng for $of<'_> {
            type Error = Infallible;

            fn try_next_u32(&mut self) -> Result<u32, Infallible> {
                let mut bytes = [0; 4];
                self.try_fill_bytes(&mut bytes)?;
                Ok(u32::from_le_bytes(bytes))
            }

            fn try_next_u64(&mut self) -> Result<u64, Infallible> {
                let mut bytes = [0; 8];
                self.try_fill_bytes(&mut bytes)?;
                Ok(u64::from_le_bytes(bytes))
            }

            fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
                $fill(self, bytes);
                Ok(())
            }
        }

        impl TryCryptoRng for $of<'_> {}
    };
}

generator!(Recorder, |recorder: &mut Recorder<'_>, bytes: &mut [u8]| {
    recorder.rng.fill_bytes(bytes);
    if let [tweak] = bytes {
        *tweak = *tweak & !POINT_BITS | recorder.point;
    }
    recorder.drawn.extend_from_slice(bytes);
});

generator!(Replayed, |replayed: &mut Replayed<'_>, bytes: &mut [u8]| {
    let (now, later) = replayed.0.split_at(bytes.len());
    bytes.copy_from_slice(now);
    replayed.0 = later;
});

#[cfg(test)]
mod tests {
    use rand_core::SeedableRng;

    use super::*;

    #[test]
    fn an_accepted_draw_makes_a_key_at_once() {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        for point in 0..20 {
            let draw = accepted(&mut rng, point);
            assert_eq!(draw[32] & POINT_BITS, point & POINT_BITS);
            let mut replayed = Replayed(&draw);
            let key = EphemeralKey::generate(&mut replayed);
            assert_eq!(replayed.0, []);
            assert_eq!(key.secret()[..], draw[..32]);
        }
    }
}
