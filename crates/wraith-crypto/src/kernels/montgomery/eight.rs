//! The Euler test to base 2 on eight candidate primes at a time.
//!
//! Lane `l` of vector `i` is limb `i` of number `l`. A square is computed column by column: each
//! product of two limbs once, together with the multiples of `n` that clear the low half. Sums stay
//! in registers, and every column ends with its carry. On Zen 4 this takes one multiply-add per
//! cycle: 3·L² multiply-adds for eight squares of `L` limbs. Eight squares one after another would
//! take three times as long, because each waits for its own limbs.
//!
//! The base is two, and the radix `2^(52·L)` is a power of two, so no table and no conversion is
//! needed. `2^s` already is the Montgomery form of `2^(s - 52·L)`. Multiplying by a small power of
//! two is a shift, because the radix has at least 16 bits more than the numbers.

use std::hint::black_box;

use zeroize::Zeroizing;

use super::{LIMB_BITS, LIMB_MASK, Lanes, bits_at, ifma};

/// Number of candidates at a time.
pub(crate) const COUNT: usize = 8;
/// Exponent bits consumed by one shift. 2^7 times a number below `2n` still has a square below `n ·
/// 2^(52·L)`.
const WINDOW: usize = 3;

/// Eight numbers of `L` limbs.
type Numbers<const L: usize> = [Lanes; L];

/// Returns whether [`pass_euler_test`] accepts numbers of `limbs` limbs of 64 bits.
pub(crate) fn is_available(limbs: usize) -> bool {
    ifma::is_available() && matches!(limbs, 16 | 24 | 32)
}

/// Returns for each number whether 2 to the power of `(n - 1) / 2` is 1 or -1 modulo `n`. For every
/// prime it is.
///
/// `numbers` are eight odd numbers that fill their limbs; [`is_available`] must accept their number
/// of limbs. The time depends only on lengths.
pub(crate) fn pass_euler_test(numbers: &[&[u64]; COUNT]) -> [bool; COUNT] {
    assert!(is_available(numbers[0].len()), "the caller checked is_available");
    match numbers[0].len() {
        16 => may_be_prime_of::<20>(numbers),
        24 => may_be_prime_of::<30>(numbers),
        32 => may_be_prime_of::<40>(numbers),
        limbs => unreachable!("{limbs} limbs are not supported"),
    }
}

fn may_be_prime_of<const L: usize>(numbers: &[&[u64]; COUNT]) -> [bool; COUNT] {
    let bits = 64 * numbers[0].len();
    let mut n = Zeroizing::new([Lanes::default(); L]);
    for (lane, number) in numbers.iter().enumerate() {
        for (index, limbs) in n.iter_mut().enumerate() {
            limbs.0[lane] = bits_at(number, index * LIMB_BITS) & LIMB_MASK;
        }
    }
    // `-1 / n`, by Newton's method from three correct bits.
    let n0 = Lanes(n[0].0.map(|limb| {
        let inverse = (0..5).fold(limb, |inverse, _| {
            inverse.wrapping_mul(2_u64.wrapping_sub(limb.wrapping_mul(inverse)))
        });
        inverse.wrapping_neg() & LIMB_MASK
    }));
    let n0 = Zeroizing::new(n0);
    // The negated exponent serves as well, so the exponent is `-(n - 1) / 2`: the negative number
    // `-top - 1`, followed by positive windows. Windows that are all zero, with a probability of
    // 2^-1000, would need a carry.
    let top = 6 + (bits - 1 - 6) % WINDOW;
    let windows = (bits - 1 - top) / WINDOW;
    let opposites: Vec<Zeroizing<Vec<u64>>> =
        numbers.iter().map(|number| opposite(number)).collect();
    let mut power = Zeroizing::new([Lanes::default(); L]);
    for (lane, number) in numbers.iter().enumerate() {
        let first = LIMB_BITS * L - 1 - bits_at(number, bits - top) as usize;
        for (index, limbs) in power.iter_mut().enumerate() {
            limbs.0[lane] = black_box(u64::from(first / LIMB_BITS == index)) << (first % LIMB_BITS);
        }
    }
    let mut scratch = Zeroizing::new([Lanes::default(); L]);
    let mut squared = Zeroizing::new([Lanes::default(); L]);
    for window in (0..windows).rev() {
        for _ in 0..WINDOW {
            ifma::reduce_eight::<L, true>(&mut squared, &power, &n, &n0, &mut scratch);
            std::mem::swap(&mut power, &mut squared);
        }
        let mut shifts = Lanes::default();
        for (shift, opposite) in shifts.0.iter_mut().zip(&opposites) {
            *shift = bits_at(opposite, window * WINDOW) & ((1 << WINDOW) - 1);
        }
        shift(&mut power, &shifts);
    }
    ifma::reduce_eight::<L, false>(&mut squared, &power, &n, &n0, &mut scratch);
    is_one_or_last(&squared, &n)
}

/// Returns `-(number - 1) / 2` modulo a power of two.
fn opposite(number: &[u64]) -> Zeroizing<Vec<u64>> {
    let mut carry = true;
    let above = number[1..].iter().copied().chain([0]);
    let halves = number.iter().zip(above).map(|(limb, above)| {
        let half = limb >> 1 | above << 63;
        let (limb, is_carried) = (!half).overflowing_add(u64::from(carry));
        carry = is_carried;
        limb
    });
    Zeroizing::new(halves.collect())
}

/// Multiplies each number by two to the power of its shift.
fn shift<const L: usize>(numbers: &mut Numbers<L>, shifts: &Lanes) {
    let mut carries = Lanes::default();
    for limbs in numbers {
        for ((limb, carry), shift) in limbs.0.iter_mut().zip(&mut carries.0).zip(&shifts.0) {
            let shifted = *limb << shift | *carry;
            *carry = shifted >> LIMB_BITS;
            *limb = shifted & LIMB_MASK;
        }
    }
}

/// Returns for each number whether it is 1 or `n - 1`.
fn is_one_or_last<const L: usize>(numbers: &Numbers<L>, n: &Numbers<L>) -> [bool; COUNT] {
    std::array::from_fn(|lane| {
        let [mut of_one, mut of_last] = [0; 2];
        for (index, (number, n)) in numbers.iter().zip(n).enumerate() {
            let one = u64::from(index == 0);
            of_one |= number.0[lane] ^ one;
            of_last |= number.0[lane] ^ (n.0[lane] - one);
        }
        of_one == 0 || of_last == 0
    })
}
