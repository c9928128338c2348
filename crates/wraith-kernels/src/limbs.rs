//! Arithmetic on numbers of four limbs. Every operation takes the same time for all numbers.

use std::hint::black_box;

/// A number, least significant limb first.
pub(crate) type Limbs = [u64; 4];

#[inline(always)]
pub(crate) fn add(a: &Limbs, b: &Limbs) -> (Limbs, bool) {
    chained(a, b, u64::carrying_add)
}

#[inline(always)]
pub(crate) fn sub(a: &Limbs, b: &Limbs) -> (Limbs, bool) {
    chained(a, b, u64::borrowing_sub)
}

/// Applies `step` to the limbs in turn, each with the carry of the one below.
#[inline(always)]
fn chained(a: &Limbs, b: &Limbs, step: impl Fn(u64, u64, bool) -> (u64, bool)) -> (Limbs, bool) {
    let (l0, carry) = step(a[0], b[0], false);
    let (l1, carry) = step(a[1], b[1], carry);
    let (l2, carry) = step(a[2], b[2], carry);
    let (l3, carry) = step(a[3], b[3], carry);
    ([l0, l1, l2, l3], carry)
}

/// Returns the number `limbs + carry · 2^256`, minus `modulus` unless `modulus` is larger.
#[inline(always)]
pub(crate) fn subtract_once(limbs: &Limbs, carry: bool, modulus: &Limbs) -> Limbs {
    let (difference, borrow) = sub(limbs, modulus);
    // The number is below the modulus if the subtraction borrows and there is no carry.
    let keep = u64::from(borrow & !carry).wrapping_neg();
    std::array::from_fn(|i| difference[i] ^ (keep & (difference[i] ^ limbs[i])))
}

/// Returns whether `a` is below `b`. `black_box` keeps the compiler from a branch for each limb.
pub(crate) fn is_below(a: &Limbs, b: &Limbs) -> bool {
    black_box(sub(a, b).1)
}

/// Returns all ones if the number is zero, else zero.
#[inline(always)]
pub(crate) fn zero_mask(limbs: &Limbs) -> u64 {
    let any = limbs[0] | limbs[1] | limbs[2] | limbs[3];
    black_box(((any | any.wrapping_neg()) >> 63).wrapping_sub(1))
}

/// Returns the number of 32 big-endian bytes.
pub(crate) fn limbs(bytes: &[u8; 32]) -> Limbs {
    std::array::from_fn(|i| {
        let at = 24 - 8 * i;
        u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
    })
}

/// Returns the 32 big-endian bytes of a number.
pub(crate) fn bytes(limbs: &Limbs) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (chunk, limb) in bytes.chunks_exact_mut(8).rev().zip(limbs) {
        chunk.copy_from_slice(&limb.to_be_bytes());
    }
    bytes
}
