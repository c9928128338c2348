//! One round of the Miller–Rabin test (FIPS 186-5, appendix B.3.1) for a secret modulus.

use std::hint::black_box;

use zeroize::Zeroizing;

use super::{Modulus, from_lanes, power_in_form};

/// Maximum number of trailing zeros of `n - 1`.
const ZEROS_MAX: u64 = 63;

/// Implements [`Modulus::is_strong_probable_prime`].
pub(super) fn is_strong_probable_prime<const V: usize, const UNIT: bool>(
    modulus: &Modulus,
    base: &[u64],
    odd: &[u64],
    zeros: u32,
) -> bool {
    // `odd` has at least one bit less than its limbs.
    let mut power = power_in_form::<V, UNIT>(modulus, base, odd, 64 * odd.len() - 1);
    // Returns a pair: the first is 0 if the power is 1, the second is 0 if the power is -1.
    let differences = |power: &_| {
        let number = modulus.finish::<V, UNIT>(power);
        let n = Zeroizing::new(from_lanes(&modulus.n, modulus.limbs));
        let rest = number[1..].iter().fold(0, |all, limb| all | limb);
        let of_one = rest | number[0] ^ 1;
        let of_last = number[1..].iter().zip(&n[1..]).fold(0, |all, (a, b)| all | (a ^ b));
        (of_one, of_last | number[0] ^ (n[0] - 1))
    };
    let is_zero = |number: u64| black_box(1 ^ ((number | number.wrapping_neg()) >> 63));
    let (of_one, of_last) = differences(&power);
    let mut is_prime = is_zero(of_one) | is_zero(of_last);
    for squarings in 1..=ZEROS_MAX {
        // Timing may reveal that a number is composite. A number that has passed continues, so that
        // timing does not reveal the number of zeros.
        if is_zero(squarings ^ u64::from(zeros)) & (is_prime ^ 1) == 1 {
            return false;
        }
        power = modulus.multiply::<V, UNIT>(&power, &power);
        is_prime |= is_zero(differences(&power).1);
    }
    is_prime == 1
}
