//! Inverses modulo odd numbers. Invariant: the kernel, the portable code and AWS-LC compute the same.

use wraith_aws_lc::bignum;
use wraith_kernels::inverse::invert;

use crate::input::Input;
use crate::levels::same;

/// Number of limbs.
const N: usize = 4;

pub(crate) fn run(input: &[u8]) {
    let mut input = Input(input);
    let kind = input.byte();
    let (mut modulus, number) = (input.words(N), input.words(N));
    modulus[0] |= 1;
    // At an edge: few bits, or all but the lowest ones.
    match kind % 8 {
        0 => modulus[1..].fill(0),
        1 => modulus[1..].fill(u64::MAX),
        2 => modulus[N - 1] = 1,
        _ => {}
    }
    if modulus[0] == 1 && modulus[1..].iter().all(|limb| *limb == 0) {
        return;
    }
    // Each round doubles the correct bits: three at first.
    let inverse = (0..5).fold(modulus[0], |inverse, _| {
        inverse.wrapping_mul(2_u64.wrapping_sub(modulus[0].wrapping_mul(inverse)))
    });
    let mut number = match kind / 8 % 4 {
        0 => {
            let mut last = modulus.clone();
            last[0] -= 1;
            last
        }
        _ => bignum::divide(&number, &modulus).expect("the modulus is not zero").1,
    };
    if (kind / 32).is_multiple_of(4) {
        number[1..].fill(0);
        number = bignum::divide(&number, &modulus).expect("the modulus is not zero").1;
    }
    let [number, modulus]: [[u64; N]; 2] =
        [number, modulus].map(|limbs| limbs.try_into().expect("N limbs"));
    let found = same(|| invert(&number, &modulus, inverse));
    if number == [0; N] {
        assert_eq!(found, [0; N], "of zero");
    } else if let Some(expected) = bignum::inverse(&number, &modulus) {
        assert_eq!(found.to_vec(), expected, "AWS-LC");
    }
}
