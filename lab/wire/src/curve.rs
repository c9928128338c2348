//! Curve25519 as an observer computes with it: Elligator2 (Bernstein, Hamburg, Krasnova, Lange
//! 2013) in both directions, and the properties of a byte string read as a key.
//!
//! The code is slow, obvious, and not constant-time: all values are public. It shares no code with
//! the tested implementation. curve25519-dalek computes orders of points, and keys for the
//! controls.

use curve25519_dalek::montgomery::MontgomeryPoint;

/// A Montgomery u coordinate or a representative, little-endian.
pub type Bytes = [u8; 32];

/// The coefficient of v² = u³ + Au² + u.
const A: u64 = 486_662;

/// Returns whether some point of the curve, and not of its twist, has this u; ignores the top bit,
/// as X25519 does.
pub fn is_on_curve(u: &Bytes) -> bool {
    MontgomeryPoint(*u).to_edwards(0).is_some()
}

/// Returns whether the points with this u are in the subgroup of prime order; `None` if there are
/// none.
pub fn has_prime_order(u: &Bytes) -> Option<bool> {
    MontgomeryPoint(*u).to_edwards(0).map(|point| point.is_torsion_free())
}

/// Returns the u of a representative; ignores the top two bits.
pub fn decode(representative: &Bytes) -> Bytes {
    let mut r = *representative;
    r[31] &= 0x3f;
    let r = Field::from_bytes(&r);
    let a = Field::from(A);
    // 1 + 2r² is never zero: -1/2 is not a square.
    let w = a.negate() * (Field::ONE + Field::from(2) * r * r).invert();
    let is_curve = (w * (w * w + a * w + Field::ONE)).is_square();
    if is_curve { w.to_bytes() } else { (w + a).negate().to_bytes() }
}

/// Returns a representative of u, at most (p-1)/2, if there is one: half of all points have one.
/// `other` selects one of the two.
pub fn encode(u: &Bytes, other: bool) -> Option<Bytes> {
    let u = Field::from_bytes(u);
    let above = u + Field::from(A);
    let (numerator, denominator) = if other { (above, u) } else { (u, above) };
    let square = numerator.negate() * (Field::from(2) * denominator).invert();
    let root = square.square_root()?;
    let (root, negated) = (root.to_bytes(), root.negate().to_bytes());
    Some(if root.iter().rev().lt(negated.iter().rev()) { root } else { negated })
}

/// A number modulo p = 2²⁵⁵ - 19: four limbs, the lowest first, below 2²⁵⁶.
#[derive(Clone, Copy, Debug)]
struct Field([u64; 4]);

/// p, and the exponents derived from it.
const P: [u64; 4] = [0xffff_ffff_ffff_ffed, u64::MAX, u64::MAX, u64::MAX >> 1];
const P_MINUS_2: [u64; 4] = [0xffff_ffff_ffff_ffeb, u64::MAX, u64::MAX, u64::MAX >> 1];
const HALF_OF_P_MINUS_1: [u64; 4] = [0xffff_ffff_ffff_fff6, u64::MAX, u64::MAX, u64::MAX >> 2];
const EIGHTH_OF_P_PLUS_3: [u64; 4] = [0xffff_ffff_ffff_fffe, u64::MAX, u64::MAX, u64::MAX >> 4];
const QUARTER_OF_P_MINUS_1: [u64; 4] = [0xffff_ffff_ffff_fffb, u64::MAX, u64::MAX, u64::MAX >> 3];

impl Field {
    const ONE: Self = Self([1, 0, 0, 0]);

    fn from_bytes(bytes: &Bytes) -> Self {
        let mut bytes = *bytes;
        bytes[31] &= 0x7f;
        let limb = |i: usize| {
            u64::from_le_bytes(bytes[8 * i..][..8].try_into().expect("eight bytes were cut"))
        };
        Self(std::array::from_fn(limb))
    }

    fn to_bytes(self) -> Bytes {
        let mut limbs = self.0;
        while limbs.iter().rev().ge(P.iter().rev()) {
            let mut borrow = false;
            for (limb, p) in limbs.iter_mut().zip(P) {
                let (less, a) = limb.overflowing_sub(p);
                let (less, b) = less.overflowing_sub(u64::from(borrow));
                (*limb, borrow) = (less, a || b);
            }
        }
        let mut bytes = [0; 32];
        for (bytes, limb) in bytes.chunks_mut(8).zip(limbs) {
            bytes.copy_from_slice(&limb.to_le_bytes());
        }
        bytes
    }

    /// p - x; requires x below p.
    fn negate(self) -> Self {
        Self::from_bytes(&self.to_bytes()).subtracted_from_p()
    }

    fn subtracted_from_p(self) -> Self {
        let mut borrow = 0_i128;
        let mut limbs = [0; 4];
        for (i, limb) in limbs.iter_mut().enumerate() {
            let difference = i128::from(P[i]) - i128::from(self.0[i]) + borrow;
            *limb = difference as u64;
            borrow = difference >> 64;
        }
        Self(limbs)
    }

    fn pow(self, exponent: [u64; 4]) -> Self {
        let mut result = Self::ONE;
        for bit in (0..256).rev() {
            result = result * result;
            if exponent[bit / 64] >> (bit % 64) & 1 == 1 {
                result = result * self;
            }
        }
        result
    }

    fn invert(self) -> Self {
        self.pow(P_MINUS_2)
    }

    /// Euler's criterion; zero counts as a square.
    fn is_square(self) -> bool {
        let power = self.pow(HALF_OF_P_MINUS_1).to_bytes();
        power == Self::ONE.to_bytes() || power == [0; 32]
    }

    /// p is 5 modulo 8: x^((p+3)/8), or that times a root of -1.
    fn square_root(self) -> Option<Self> {
        let root = self.pow(EIGHTH_OF_P_PLUS_3);
        let other = root * Self::from(2).pow(QUARTER_OF_P_MINUS_1);
        [root, other].into_iter().find(|root| (*root * *root).to_bytes() == self.to_bytes())
    }
}

impl From<u64> for Field {
    fn from(small: u64) -> Self {
        Self([small, 0, 0, 0])
    }
}

impl std::ops::Add for Field {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        folded(std::array::from_fn(|i| {
            if i < 4 { u128::from(self.0[i]) + u128::from(other.0[i]) } else { 0 }
        }))
    }
}

impl std::ops::Mul for Field {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        let mut wide = [0_u128; 8];
        for i in 0..4 {
            let mut carry = 0;
            for j in 0..4 {
                let sum = wide[i + j] + u128::from(self.0[i]) * u128::from(other.0[j]) + carry;
                wide[i + j] = sum & u128::from(u64::MAX);
                carry = sum >> 64;
            }
            wide[i + 4] = carry;
        }
        folded(wide)
    }
}

/// Reduces eight limbs below 2²⁵⁶: 2²⁵⁶ is 38 modulo p.
fn folded(mut wide: [u128; 8]) -> Field {
    while wide[4..].iter().any(|&limb| limb > 0) || wide[..4].iter().any(|&limb| limb >> 64 > 0) {
        let mut carry = 0;
        let high: [u128; 4] = std::array::from_fn(|i| std::mem::take(&mut wide[4 + i]));
        for i in 0..4 {
            let sum = wide[i] + 38 * high[i] + carry;
            wide[i] = sum & u128::from(u64::MAX);
            carry = sum >> 64;
        }
        wide[4] = carry;
    }
    Field(std::array::from_fn(|i| wide[i] as u64))
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha20Rng;
    use rand_core::{Rng, SeedableRng};

    use super::*;

    fn random(rng: &mut ChaCha20Rng) -> Bytes {
        let mut bytes = [0; 32];
        rng.fill_bytes(&mut bytes);
        bytes
    }

    #[test]
    fn the_field_computes() {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        for _ in 0..100 {
            let x = Field::from_bytes(&random(&mut rng));
            let y = Field::from_bytes(&random(&mut rng));
            assert_eq!((x * x.invert()).to_bytes(), Field::ONE.to_bytes());
            assert_eq!((x + x.negate()).to_bytes(), [0; 32]);
            assert_eq!((x * (x + y)).to_bytes(), (x * x + y * x).to_bytes());
            let root = (x * x).square_root().unwrap().to_bytes();
            assert!(root == x.to_bytes() || root == x.negate().to_bytes());
        }
        assert_eq!(Field(P).to_bytes(), [0; 32]);
        assert!(!Field::from(2).is_square());
    }

    /// draft-irtf-cfrg-hash-to-curve has no vectors for representatives. So the map is checked
    /// against its definition: its results are on the curve, and both directions agree.
    #[test]
    fn a_representative_decodes_to_its_point() {
        let mut rng = ChaCha20Rng::seed_from_u64(2);
        let mut representable = 0;
        for _ in 0..200 {
            let r = random(&mut rng);
            let u = decode(&r);
            assert!(is_on_curve(&u));
            let mut small = r;
            small[31] &= 0x3f;
            let back = [false, true].map(|other| encode(&u, other).unwrap());
            assert!(back.iter().all(|back| decode(back) == u));
            assert!(
                back.contains(&small) || small == Field::from_bytes(&small).negate().to_bytes()
            );
            let key = MontgomeryPoint::mul_base_clamped(random(&mut rng)).to_bytes();
            assert_eq!(has_prime_order(&key), Some(true));
            if let Some(r) = encode(&key, false) {
                representable += 1;
                assert_eq!(decode(&r), key);
            }
        }
        assert!((70..130).contains(&representable), "{representable} of 200");
    }
}
