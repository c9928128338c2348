//! Arithmetic modulo n, the order of SM2's base point. Most of these numbers are secrets, so all
//! operations take the same time for all numbers.

use std::hint::black_box;

use zeroize::Zeroize;

use super::super::inverse;
use super::field::{Limbs, add, bytes, is_below, limbs, product, sub, zero_mask};

/// The order of the base point.
pub const N: Limbs =
    [0x53bb_f409_39d5_4123, 0x7203_df6b_21c6_052b, 0xffff_ffff_ffff_ffff, 0xffff_fffe_ffff_ffff];
/// −1 / n modulo 2^64.
const N_FACTOR: u64 = 0x327f_9e88_7235_0975;
/// 2^512 mod n.
const R2: Limbs =
    [0x9011_92af_7c11_4f20, 0x3464_504a_de6f_a2fa, 0x620f_c84c_3aff_e0d4, 0x1eb5_e412_a22b_3d3b];

/// A number below n, in the usual form. The owner of a secret scalar wipes it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Scalar(pub(super) Limbs);

impl Zeroize for Scalar {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}

impl Scalar {
    /// The number 1.
    pub const ONE: Self = Self([1, 0, 0, 0]);

    /// Returns the number of 32 big-endian bytes, or `None` unless it is below n.
    pub fn from_bytes(bytes: &[u8; 32]) -> Option<Self> {
        let limbs = limbs(bytes);
        is_below(&limbs, &N).then_some(Self(limbs))
    }

    /// Returns the number of 32 big-endian bytes, modulo n.
    pub fn reduced(bytes: &[u8; 32]) -> Self {
        Self(subtract_once(&limbs(bytes), false))
    }

    /// Returns the number of 64 big-endian bytes, modulo n. For uniform bytes it is uniform, except
    /// for one part in 2^256.
    pub fn reduced_wide(bytes: &[u8; 64]) -> Self {
        let half = |at: usize| limbs(bytes[at..at + 32].try_into().expect("32 bytes"));
        let high = Self(montgomery(&half(0), &R2));
        high.add(&Self(subtract_once(&half(32), false)))
    }

    /// Returns the 32 big-endian bytes.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 32] {
        bytes(&self.0)
    }

    /// Returns whether the number is zero.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        zero_mask(&self.0) != 0
    }

    /// Returns the sum modulo n.
    #[must_use]
    pub fn add(&self, other: &Self) -> Self {
        let (sum, carry) = add(&self.0, &other.0);
        Self(subtract_once(&sum, carry))
    }

    /// Returns the difference modulo n.
    #[must_use]
    pub fn sub(&self, other: &Self) -> Self {
        let (difference, borrow) = sub(&self.0, &other.0);
        let mask = black_box(u64::from(borrow).wrapping_neg());
        Self(add(&difference, &N.map(|limb| limb & mask)).0)
    }

    /// Returns the product modulo n.
    #[must_use]
    pub fn mul(&self, other: &Self) -> Self {
        Self(montgomery(&montgomery(&self.0, &R2), &other.0))
    }

    /// Returns 1 / `self`, or zero for zero.
    pub fn invert(&self) -> Self {
        Self(inverse::invert(&self.0, &N, N_FACTOR.wrapping_neg()))
    }
}

/// Returns a · b / 2^256 mod n. One factor is below n; the other may be any number.
fn montgomery(a: &Limbs, b: &Limbs) -> Limbs {
    let mut sum = product(a, b);
    let mut top = false;
    for i in 0..4 {
        let factor = sum[i].wrapping_mul(N_FACTOR);
        let mut carry = 0;
        for j in 0..4 {
            (sum[i + j], carry) = factor.carrying_mul_add(N[j], sum[i + j], carry);
        }
        (sum[i + 4], top) = sum[i + 4].carrying_add(carry, top);
    }
    subtract_once(&[sum[4], sum[5], sum[6], sum[7]], top)
}

/// Returns the number `limbs + carry · 2^256`, which is below 2 n, modulo n.
///
/// `black_box` hides from the compiler that the mask has only two values. Otherwise it made a branch
/// of r + k in a signature. Whether that sum reaches n reveals the highest bits of the nonce k if r
/// is near 0 or n, and a few hundred such nonces reveal the key.
#[inline(always)]
fn subtract_once(limbs: &Limbs, carry: bool) -> Limbs {
    let (difference, borrow) = sub(limbs, &N);
    let keep = black_box(u64::from(borrow & !carry).wrapping_neg());
    std::array::from_fn(|i| difference[i] ^ (keep & (difference[i] ^ limbs[i])))
}
