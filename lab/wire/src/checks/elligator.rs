//! Whether 32 bytes at the place of a key are like random bytes to an observer that reads them as
//! one.
//!
//! A raw key is always a coordinate of the curve, and its top bit is zero. A representative of a
//! key of the prime-order subgroup always decodes to a point of that subgroup. Random bytes do so
//! once in eight times. Because an observer can make this test, the keys must not all be in the
//! prime-order subgroup ("dirty" keys).

use super::CheckFigure;
use crate::curve::{Bytes, decode, has_prime_order, is_on_curve};
use crate::distributions::{binomial, chi_squared_of_uniform};
use crate::finding::Figure;

/// Maximum deviation in standard deviations, by the exact binomial tail.
const SIGMAS_MAX: f64 = 4.0;

/// The figures.
pub fn figures(firsts: &[Bytes]) -> Vec<CheckFigure> {
    let total = firsts.len() as u64;
    let figure = |place: &str, count: usize, chance: f64| {
        let p = binomial(count as u64, total, chance);
        let share = count as f64 / total as f64;
        let place = format!("{place}: {share:.4} of {chance}");
        CheckFigure::new("read as a key", place, Figure::Within { p, sigmas: SIGMAS_MAX })
    };
    let on_curve = firsts.iter().filter(|bytes| is_on_curve(bytes)).count();
    let low = |bytes: &&Bytes| {
        let mut bytes = **bytes;
        bytes[31] &= 0x3f;
        is_on_curve(&bytes)
    };
    let low_on_curve = firsts.iter().filter(low).count();
    let prime = firsts.iter().filter(|bytes| has_prime_order(&decode(bytes)) == Some(true)).count();
    let mut top = [0; 4];
    for bytes in firsts {
        top[usize::from(bytes[31] >> 6)] += 1;
    }
    vec![
        figure("on the curve", on_curve, 0.5),
        figure("on the curve without the top two bits", low_on_curve, 0.5),
        figure("decoded, of prime order", prime, 0.125),
        CheckFigure::new(
            "top two bits of a key",
            "first 32 bytes",
            Figure::Chance(chi_squared_of_uniform(&top)),
        ),
    ]
}
