//! Arithmetic modulo the order of the base point, L = 2^446 − c, least significant limb first.

use zeroize::{Zeroize, ZeroizeOnDrop};

const LIMBS: usize = 7;
/// Number of limbs of a product, and of a hash of 114 bytes.
const WIDE: usize = 15;

/// c = 2^446 − L (RFC 8032 §5.2).
const C: [u64; 4] =
    [0xdc87_3d6d_54a7_bb0d, 0xde93_3d8d_723a_70aa, 0x3bb1_24b6_5129_c96f, 0x8335_dc16];

/// The order L.
const L: [u64; LIMBS] = [
    0x2378_c292_ab58_44f3,
    0x216c_c272_8dc5_8f55,
    0xc44e_db49_aed6_3690,
    0xffff_ffff_7cca_23e9,
    u64::MAX,
    u64::MAX,
    (1 << 62) - 1,
];

/// A number below L.
#[derive(Clone, Debug, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub(crate) struct Scalar([u64; LIMBS]);

impl Scalar {
    /// Returns at most 114 little-endian bytes modulo L.
    pub(crate) fn reduced(bytes: &[u8]) -> Self {
        assert!(bytes.len() <= 114, "the folding supports at most 114 bytes");
        let mut wide = [0; WIDE];
        for (i, &byte) in bytes.iter().enumerate() {
            wide[i / 8] |= u64::from(byte) << (8 * (i % 8));
        }
        let scalar = Self::folded(&mut wide);
        wide.zeroize();
        scalar
    }

    /// Returns the number of little-endian `bytes` if it is below L. The time depends on the bytes.
    pub(crate) fn from_canonical(bytes: &[u8; 57]) -> Option<Self> {
        let scalar = Self::reduced(bytes);
        (scalar.to_bytes() == *bytes).then_some(scalar)
    }

    /// Returns the little-endian bytes.
    pub(crate) fn to_bytes(&self) -> [u8; 57] {
        let mut bytes = [0; 57];
        for (bytes, limb) in bytes.chunks_exact_mut(8).zip(self.0) {
            bytes.copy_from_slice(&limb.to_le_bytes());
        }
        bytes
    }

    /// Returns `self * factor + sum`.
    pub(crate) fn mul_add(&self, factor: &Self, sum: &Self) -> Self {
        let mut wide = [0; WIDE];
        wide[..LIMBS].copy_from_slice(&sum.0);
        add_product(&mut wide, &self.0, &factor.0);
        let scalar = Self::folded(&mut wide);
        wide.zeroize();
        scalar
    }

    /// Returns −`self`.
    #[cfg(test)]
    pub(crate) fn negated(&self) -> Self {
        let less_one = {
            let mut limbs = L;
            limbs[0] -= 1;
            Self(limbs)
        };
        self.mul_add(&less_one, &Self([0; LIMBS]))
    }

    /// Reduces `wide`, which is below 2^912, modulo L. The part above bit 446 is folded back, times
    /// c, until subtractions are enough.
    fn folded(wide: &mut [u64; WIDE]) -> Self {
        // The bounds after each fold: below 2^691, 2^470, 2^446 + 2^248, and 2^446 + c.
        for _ in 0..4 {
            let mut high = [0; 8];
            for (i, limb) in high.iter_mut().enumerate() {
                let above = wide.get(i + LIMBS).copied().unwrap_or(0);
                *limb = wide[i + LIMBS - 1] >> 62 | above << 2;
            }
            wide[LIMBS - 1] &= (1 << 62) - 1;
            wide[LIMBS..].fill(0);
            add_product(wide, &high, &C);
            high.zeroize();
        }
        let mut limbs: [u64; LIMBS] = *wide.first_chunk().expect("WIDE is larger than LIMBS");
        for _ in 0..2 {
            let (mut less, mut borrow) = ([0; LIMBS], false);
            for i in 0..LIMBS {
                let (difference, first) = limbs[i].overflowing_sub(L[i]);
                let (difference, second) = difference.overflowing_sub(borrow.into());
                less[i] = difference;
                borrow = first | second;
            }
            let keep = u64::from(borrow).wrapping_neg();
            for i in 0..LIMBS {
                limbs[i] = limbs[i] & keep | less[i] & !keep;
            }
        }
        Self(limbs)
    }

    /// Returns the digits in base 16, from −8 to 8, least significant first.
    pub(crate) fn digits(&self) -> [i8; 112] {
        let mut digits = [0; 112];
        let mut carry = 0;
        for (i, digit) in digits.iter_mut().enumerate() {
            let nibble = (self.0[i / 16] >> (4 * (i % 16)) & 15) as i8 + carry;
            carry = (nibble + 8) >> 4;
            *digit = nibble - (carry << 4);
        }
        debug_assert_eq!(carry, 0, "L is below 2^446");
        digits
    }

    /// Returns the sparse signed digits in base 2. Digits other than zero are odd, below 2^(`width`
    /// − 1) in absolute value, and at least `width` places apart. The time depends on the number.
    pub(crate) fn sparse_digits(&self, width: u32) -> [i8; 448] {
        let mut digits = [0; 448];
        let mut carry = 0;
        let mut at = 0;
        while at < digits.len() {
            let (limb, bit) = (at / 64, at % 64);
            let mut bits = self.0[limb] >> bit;
            if bit > 0 && limb + 1 < LIMBS {
                bits |= self.0[limb + 1] << (64 - bit);
            }
            let window = carry + (bits & ((1 << width) - 1));
            if window.is_multiple_of(2) {
                at += 1;
                continue;
            }
            carry = u64::from(window >= 1 << (width - 1));
            digits[at] = (window as i64 - ((carry as i64) << width)) as i8;
            at += width as usize;
        }
        digits
    }
}

/// Adds the product of `a` and `b` to `wide`. The sum fits.
fn add_product(wide: &mut [u64; WIDE], a: &[u64], b: &[u64]) {
    for (i, &a) in a.iter().enumerate() {
        let mut carry = 0u64;
        for (j, wide) in wide[i..].iter_mut().enumerate() {
            let factor = b.get(j).copied().unwrap_or(0);
            let sum = u128::from(a) * u128::from(factor) + u128::from(*wide) + u128::from(carry);
            *wide = sum as u64;
            carry = (sum >> 64) as u64;
        }
        debug_assert_eq!(carry, 0, "the sum fits");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn l_bytes() -> [u8; 57] {
        Scalar(L).to_bytes()
    }

    #[test]
    fn l_and_c_add_up() {
        let mut wide = [0; WIDE];
        wide[..LIMBS].copy_from_slice(&L);
        add_product(&mut wide, &C, &[1]);
        let mut expected = [0; WIDE];
        expected[6] = 1 << 62;
        assert_eq!(wide, expected);
    }

    #[test]
    fn scalars_of_l_or_more_are_not_canonical() {
        assert!(Scalar::from_canonical(&l_bytes()).is_none());
        let mut bytes = l_bytes();
        bytes[0] -= 1;
        assert_eq!(Scalar::from_canonical(&bytes).unwrap().to_bytes(), bytes);
        bytes[56] = 1;
        assert!(Scalar::from_canonical(&bytes).is_none());
        assert_eq!(Scalar::reduced(&l_bytes()), Scalar([0; LIMBS]));
        let most = Scalar::reduced(&[0xff; 114]);
        assert_eq!(Scalar::reduced(&most.to_bytes()), most);
    }

    proptest! {
        #[test]
        fn reducing_is_a_homomorphism(a in any::<[u8; 32]>(), b in any::<[u8; 24]>(), s in any::<[[u8; 19]; 3]>()) {
            let long = s.concat();
            let sum = Scalar::reduced(&long);
            // a * 2^192 + b, once as one number and once by modular arithmetic.
            let whole = Scalar::reduced(&[&b[..], &a[..]].concat());
            let mut shift = [0; 25];
            shift[24] = 1;
            let parts = Scalar::reduced(&a).mul_add(&Scalar::reduced(&shift), &Scalar::reduced(&b));
            prop_assert_eq!(&whole, &parts);
            let product = whole.mul_add(&sum, &sum);
            let again = sum.mul_add(&whole, &sum);
            prop_assert_eq!(&product, &again);
            let zero = product.mul_add(&Scalar::reduced(&[1]), &product.negated());
            prop_assert_eq!(zero, Scalar([0; LIMBS]));
        }

        #[test]
        fn digits_add_up(bytes in proptest::collection::vec(any::<u8>(), 114)) {
            let scalar = Scalar::reduced(&bytes);
            let value = |base: u8, digits: &[i8]| digits.iter().rev().fold(Scalar([0; LIMBS]), |sum, &digit| {
                let part = Scalar::reduced(&[digit.unsigned_abs()]);
                let part = if digit < 0 { part.negated() } else { part };
                sum.mul_add(&Scalar::reduced(&[base]), &part)
            });
            prop_assert_eq!(&value(16, &scalar.digits()), &scalar);
            for width in [5, 8] {
                let digits = scalar.sparse_digits(width);
                prop_assert_eq!(&value(2, &digits), &scalar);
                prop_assert!(digits.iter().all(|&d| d == 0 || d % 2 != 0 && d.unsigned_abs() < 1 << (width - 1)));
            }
        }
    }
}
