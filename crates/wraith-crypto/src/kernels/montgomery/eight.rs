//! Eight numbers at a time: which of them might be prime.
//!
//! Lane `l` of vector `i` is limb `i` of number `l`. A square is made column by column, each product of two limbs once, and the multiples of
//! `n` that clear the low half with it, so that sums stay in registers; every column ends with its carry. On Zen 4 one multiply-add a cycle:
//! 3·L² of them for eight squares of `L` limbs, where eight squares one after the other wait for each other's limbs three times as long.
//!
//! Powers are of two, and the radix `2^(52·L)` is one, so that there is no table, and no conversion: a number `2^s` already is the power
//! `s - 52·L` in Montgomery's form, and to multiply by a small one is to shift: the radix has at least 16 bits
//! more than the numbers.

use std::hint::black_box;

use zeroize::Zeroizing;

use super::{LIMB_BITS, LIMB_MASK, Lanes, bits_at, ifma};

/// Numbers at a time.
pub(crate) const COUNT: usize = 8;
/// Bits of an exponent that are shifted in at once: 2^7 times a number below `2n` still has a square below `n · 2^(52·L)`.
const WINDOW: usize = 3;

/// Eight numbers of `L` limbs.
type Numbers<const L: usize> = [Lanes; L];

/// Whether [`may_be_prime`] takes numbers of so many limbs of 64 bits.
pub(crate) fn is_available(limbs: usize) -> bool {
    ifma::is_available() && matches!(limbs, 16 | 24 | 32)
}

/// Whether 2 to the power of `(n - 1) / 2` is 1 or -1 modulo `n`, as it is modulo every prime, in time that depends on lengths only. `numbers`
/// are eight odd ones, and each fills its limbs, of which there are as many as [`is_available`] says.
pub(crate) fn may_be_prime(numbers: &[&[u64]; COUNT]) -> [bool; COUNT] {
    assert!(is_available(numbers[0].len()), "the processor has the instructions");
    match numbers[0].len() {
        16 => may_be_prime_of::<20>(numbers),
        24 => may_be_prime_of::<30>(numbers),
        32 => may_be_prime_of::<40>(numbers),
        limbs => unreachable!("{limbs} is no size"),
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
    // What n times is -1, by Newton's method from three bits on.
    let n0 = Lanes(n[0].0.map(|limb| {
        let inverse = (0..5).fold(limb, |inverse, _| {
            inverse.wrapping_mul(2_u64.wrapping_sub(limb.wrapping_mul(inverse)))
        });
        inverse.wrapping_neg() & LIMB_MASK
    }));
    let n0 = Zeroizing::new(n0);
    // As an exponent is as good as its opposite, it is `-(n - 1) / 2`: the negative number `-top - 1`, and windows that are positive. (Windows
    // that are zero throughout, once in 2^1000 times, would have to carry.)
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

/// The opposite of `(number - 1) / 2`, modulo a power of two.
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

/// Multiplies each number by the power of two that its shift says.
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

/// Whether each number is 1 or `n - 1`.
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
