//! Signed-digit recoding (wNAF) of public scalars, for point multiplication where nothing is
//! secret. Not constant time.

/// Bits of a digit.
pub const BITS: usize = 5;

/// Returns the digits of `number`, the lowest first. Each is zero, or odd and between −16 and 16;
/// two odd digits are at least five places apart.
pub fn sparse<const N: usize>(number: &[u64; N]) -> [i8; 513] {
    const { assert!(N <= 8) };
    let bits = |at: usize| {
        let limb = |i: usize| number.get(i).copied().unwrap_or(0);
        limb(at / 64) >> (at % 64) | (limb(at / 64 + 1) << 1) << (63 - at % 64)
    };
    let mut digits = [0; 513];
    let (mut at, mut carry) = (0, 0u64);
    while at <= 64 * N {
        // Zeros, or ones through which a carry runs.
        let skipped = (bits(at) ^ carry.wrapping_neg()).trailing_zeros();
        if skipped > 0 {
            at += skipped as usize;
            continue;
        }
        let window = (bits(at) & ((1 << BITS) - 1)) + carry;
        carry = window >> (BITS - 1);
        digits[at] = window as i8 - ((carry << BITS) as i8);
        at += BITS;
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sparse_digits_make_up_the_number() {
        let random = crate::tests::bytes(16 * 100);
        let random = random.as_chunks().0.iter().map(|&bytes| u128::from_le_bytes(bytes));
        let ones = (0..128).map(|i| u128::MAX >> i);
        let powers = (0..128).map(|i| 1 << i);
        for number in random.chain(ones).chain(powers).chain([0]) {
            let digits = sparse(&[number as u64, (number >> 64) as u64]);
            // The highest digit may stand above the number, so the sum is modulo 2^128.
            let sum = digits.iter().rev().fold(0u128, |sum, &digit| {
                sum.wrapping_mul(2).wrapping_add(i128::from(digit) as u128)
            });
            assert_eq!(sum, number);
            assert!(digits.iter().all(|&digit| digit == 0 || digit % 2 != 0 && digit.abs() < 16));
            assert!(digits.windows(BITS).all(|some| some.iter().filter(|&&d| d != 0).count() < 2));
        }
    }
}
