//! Powers modulo an odd number. Invariant: products in Montgomery form are those of the portable twin;
//! powers, also by a comb, are those of AWS-LC.

use wraith_aws_lc::bignum;
use wraith_kernels::montgomery::{COMB_BITS_UNIT, Modulus};

use crate::input::Input;
use crate::levels::fastest;

/// One limb more than the longest modulus needs.
const LIMBS_MAX: usize = 131;

pub(crate) fn run(input: &[u8]) {
    let mut input = Input(input);
    // Most inputs have few limbs, so that most are fast.
    let limbs = match input.byte() {
        byte @ 0..128 => 1 + usize::from(byte) % 33,
        byte => 34 + usize::from(byte - 128) % (LIMBS_MAX - 33),
    };
    let (kind, operation) = (input.byte(), input.byte() % 4);
    let (mut n, last) = (input.words(limbs), limbs - 1);
    n[last] = (n[last] >> (kind / 4)).max(1);
    n[0] |= 1;
    // With 52 bits set, -1/n is 1 modulo 2^52, for which there is other code.
    if kind % 4 == 0 {
        n[0] |= (1 << 52) - 1;
    }
    if n == [1] {
        return;
    }
    let modulus = fastest(|| Modulus::new(&n));
    let is_short = 64 * limbs - n[last].leading_zeros() as usize <= 8318;
    let Some(modulus) = modulus else {
        assert!(!is_short || !fastest(wraith_kernels::montgomery::is_available), "{limbs} limbs");
        return;
    };
    assert!(is_short, "{limbs} limbs");
    let rest = |number: &[u64]| bignum::divide(number, &n).expect("the modulus is not zero").1;
    let base = rest(&input.words(limbs));
    match operation {
        0 => {
            // Factors are below twice the modulus.
            let other = plus(&rest(&input.words(limbs)), &n);
            for (a, b) in [(&base, &other), (&base, &base), (&other, &other)] {
                let [found, twin] = modulus.product_by_both(a, b);
                assert_eq!(found, twin, "the twin");
            }
        }
        1 => {
            let rows = 1 + usize::from(input.byte()) % 6;
            let bits = COMB_BITS_UNIT * rows;
            let exponent = exponent(&mut input, bits);
            let comb = modulus.comb(&base, bits);
            let found = modulus.comb_power(&comb, &exponent);
            assert_eq!(Some(found.to_vec()), bignum::power(&base, &exponent, &n), "a comb");
        }
        _ => {
            let bits = usize::from(input.byte()) + 1;
            let exponent = exponent(&mut input, bits);
            let found = modulus.power(&base, &exponent, bits);
            assert_eq!(Some(found.to_vec()), bignum::power(&base, &exponent, &n), "a power");
        }
    }
}

/// Returns a number of up to `bits` bits.
fn exponent(input: &mut Input<'_>, bits: usize) -> Vec<u64> {
    let mut exponent = input.words(bits.div_ceil(64));
    if !bits.is_multiple_of(64) {
        let last = exponent.len() - 1;
        exponent[last] &= (1 << (bits % 64)) - 1;
    }
    exponent
}

/// Returns the sum, one limb longer than the summands.
fn plus(a: &[u64], b: &[u64]) -> Vec<u64> {
    let mut carry = false;
    let mut sum = Vec::with_capacity(a.len() + 1);
    for (a, b) in a.iter().zip(b) {
        let limb;
        (limb, carry) = a.carrying_add(*b, carry);
        sum.push(limb);
    }
    sum.push(carry.into());
    sum
}
