//! Arithmetic modulo the prime of P-256, p = 2^256 − 2^224 + 2^192 + 2^96 − 1 (SP 800-186
//! §3.2.1.3), in Montgomery form.
//!
//! Invariant: `Fe` holds x · 2^256 mod p, below p.
//!
//! p is −1 modulo 2^64, so the factor that clears a limb of a product is that limb itself. On Zen 4
//! a product takes about 35 cycles.
#![allow(unsafe_code)]

use zeroize::Zeroize;

use super::super::adx::{add_upper_half, arithmetic};
use super::super::inverse;
use super::super::limbs::{Limbs, zero_mask};

pub(super) const P: Limbs = [0xffff_ffff_ffff_ffff, 0xffff_ffff, 0, 0xffff_ffff_0000_0001];

/// An integer modulo p.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Zeroize)]
pub(super) struct Fe(pub(super) Limbs);

/// 2^512 mod p, the factor that converts a number to Montgomery form.
#[cfg(test)]
pub(super) const R2: Fe = Fe([3, 0xffff_fffb_ffff_ffff, 0xffff_ffff_ffff_fffe, 0x4_ffff_fffd]);
/// 2^768 mod p.
const R3: Fe = Fe([0xffff_fffd_0000_000a, 0xffff_ffed_ffff_fff7, 0x5_ffff_fffc, 0x18_0000_0001]);

/// Proof that the processor has the instructions of this module.
#[derive(Clone, Copy)]
pub(super) struct Cpu(());

impl Cpu {
    /// Returns `None` unless the kernel may be used.
    pub(super) fn new() -> Option<Self> {
        super::KERNEL.is_available().then_some(Self(()))
    }

    /// The proof for a self-test, which runs only if the processor has the instructions.
    pub(super) const fn for_self_test() -> Self {
        Self(())
    }
}

/// Reduces r8…r15 into r8…r11. Clobbers rax, rcx, rdx, rsi and rdi.
///
/// Each of four steps clears the lowest limb m by adding m · p. Above that limb, m · p is m « 96
/// and m · 0xffffffff00000001 « 192. Then the upper half is added, and p is subtracted unless the
/// sum is below p.
macro_rules! reduce {
    () => {
        concat!(
            "mov ecx, 32
             mov rdx, 0xffffffff00000001
            ",
            reduce!("r8", "r9", "r10", "r11"),
            reduce!("r9", "r10", "r11", "r8"),
            reduce!("r10", "r11", "r8", "r9"),
            reduce!("r11", "r8", "r9", "r10"),
            "mov ecx, 0xffffffff\n",
            add_upper_half!("rcx", "0", "rdx"),
        )
    };
    // The lowest limb becomes the highest one.
    ($t0:literal, $t1:literal, $t2:literal, $t3:literal) => {
        concat!(
            "shlx rax, ",
            $t0,
            ", rcx\n",
            "shrx rsi, ",
            $t0,
            ", rcx\n",
            "mulx ",
            $t0,
            ", rdi, ",
            $t0,
            "\n",
            "add ",
            $t1,
            ", rax\n",
            "adc ",
            $t2,
            ", rsi\n",
            "adc ",
            $t3,
            ", rdi\n",
            "adc ",
            $t0,
            ", 0\n",
        )
    };
}

arithmetic!(P, "0", "0", reduce);

impl Fe {
    pub(super) const ZERO: Self = Self([0; 4]);
    /// 2^256 mod p.
    pub(super) const ONE: Self = Self([1, 0xffff_ffff_0000_0000, u64::MAX, 0xffff_fffe]);

    /// Returns the number, out of Montgomery form.
    pub(super) fn to_limbs(self, cpu: Cpu) -> Limbs {
        self.mul(&Self([1, 0, 0, 0]), cpu).0
    }

    /// Returns all ones if the number is zero, else zero.
    #[inline(always)]
    pub(super) fn zero_mask(&self) -> u64 {
        zero_mask(&self.0)
    }

    /// Returns `self`, or `other` where `mask` is all ones.
    #[inline(always)]
    pub(super) fn select(&self, other: &Self, mask: u64) -> Self {
        Self(std::array::from_fn(|i| self.0[i] ^ (mask & (self.0[i] ^ other.0[i]))))
    }

    /// Returns `self · other / 2^256`.
    #[inline(always)]
    pub(super) fn mul(&self, other: &Self, _: Cpu) -> Self {
        // SAFETY: a `Cpu` proves BMI2 and ADX.
        Self(unsafe { mul(&self.0, &other.0) })
    }

    /// Returns `self² / 2^256`.
    #[inline(always)]
    pub(super) fn sqr(&self, _: Cpu) -> Self {
        // SAFETY: as above.
        Self(unsafe { sqr(&self.0) })
    }

    #[inline(always)]
    pub(super) fn add(&self, other: &Self) -> Self {
        Self(add(&self.0, &other.0))
    }

    #[inline(always)]
    pub(super) fn sub(&self, other: &Self) -> Self {
        Self(sub(&self.0, &other.0))
    }

    /// Negates the number where `mask` is all ones.
    #[inline(always)]
    pub(super) fn negate_if(&self, mask: u64) -> Self {
        self.select(&Self::ZERO.sub(self), mask)
    }

    /// Returns 1 / `self`, or zero for zero.
    #[inline(never)]
    pub(super) fn invert(&self, cpu: Cpu) -> Self {
        // p is −1 modulo 2^64. The plain inverse has a factor of 2^−256; multiplying by 2^768 /
        // 2^256 makes that 2^256.
        Self(inverse::invert(&self.0, &P, u64::MAX)).mul(&R3, cpu)
    }
}
