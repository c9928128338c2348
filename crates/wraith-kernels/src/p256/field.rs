//! Arithmetic modulo the prime of P-256, p = 2^256 − 2^224 + 2^192 + 2^96 − 1 (SP 800-186
//! §3.2.1.3), in Montgomery form.
//!
//! Invariant: `Fe` holds x · 2^256 mod p, below p.
//!
//! p is −1 modulo 2^64, so the factor that clears a limb of a product is that limb itself. On Zen 4
//! a product takes about 35 cycles.
#![allow(unsafe_code)]

use std::arch::asm;

use zeroize::Zeroize;

use super::super::adx::{product, square};
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
            "add r8, r12
             adc r9, r13
             adc r10, r14
             adc r11, r15
             sbb rsi, rsi
             mov ecx, 0xffffffff
             mov r12, r8
             mov r13, r9
             mov r14, r10
             mov r15, r11
             sub r8, -1
             sbb r9, rcx
             sbb r10, 0
             sbb r11, rdx
             sbb rsi, 0
             cmovc r8, r12
             cmovc r9, r13
             cmovc r10, r14
             cmovc r11, r15
            "
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
        let mut out = [0; 4];
        // SAFETY: the assembly reads 32 bytes at each pointer and writes only registers; a `Cpu`
        // proves BMI2 and ADX.
        unsafe {
            asm!(
                product!(),
                reduce!(),
                inout("rsi") self.0.as_ptr() => _,
                inout("rdi") other.0.as_ptr() => _,
                out("rax") _, out("rcx") _, out("rdx") _,
                out("r8") out[0], out("r9") out[1], out("r10") out[2], out("r11") out[3],
                out("r12") _, out("r13") _, out("r14") _, out("r15") _,
                options(pure, readonly, nostack),
            );
        }
        Self(out)
    }

    /// Returns `self² / 2^256`.
    #[inline(always)]
    pub(super) fn sqr(&self, _: Cpu) -> Self {
        let mut out = [0; 4];
        // SAFETY: the assembly reads 32 bytes at the pointer and writes only registers; a `Cpu`
        // proves BMI2 and ADX.
        unsafe {
            asm!(
                square!(),
                reduce!(),
                inout("rsi") self.0.as_ptr() => _,
                out("rdi") _,
                out("rax") _, out("rcx") _, out("rdx") _,
                out("r8") out[0], out("r9") out[1], out("r10") out[2], out("r11") out[3],
                out("r12") _, out("r13") _, out("r14") _, out("r15") _,
                options(pure, readonly, nostack),
            );
        }
        Self(out)
    }

    #[inline(always)]
    pub(super) fn add(&self, other: &Self) -> Self {
        let [mut r0, mut r1, mut r2, mut r3] = self.0;
        let [b0, b1, b2, b3] = other.0;
        // SAFETY: the assembly writes only registers.
        unsafe {
            asm!(
                "add {r0}, {b0}",
                "adc {r1}, {b1}",
                "adc {r2}, {b2}",
                "adc {r3}, {b3}",
                "sbb {carry}, {carry}",
                "mov {b0}, {r0}",
                "mov {b1}, {r1}",
                "mov {b2}, {r2}",
                "mov {b3}, {r3}",
                "sub {r0}, -1",
                "sbb {r1}, {p1}",
                "sbb {r2}, 0",
                "sbb {r3}, {p3}",
                "sbb {carry}, 0",
                "cmovc {r0}, {b0}",
                "cmovc {r1}, {b1}",
                "cmovc {r2}, {b2}",
                "cmovc {r3}, {b3}",
                r0 = inout(reg) r0, r1 = inout(reg) r1, r2 = inout(reg) r2, r3 = inout(reg) r3,
                b0 = inout(reg) b0 => _, b1 = inout(reg) b1 => _,
                b2 = inout(reg) b2 => _, b3 = inout(reg) b3 => _,
                p1 = in(reg) P[1], p3 = in(reg) P[3],
                carry = out(reg) _,
                options(pure, nomem, nostack),
            );
        }
        Self([r0, r1, r2, r3])
    }

    #[inline(always)]
    pub(super) fn sub(&self, other: &Self) -> Self {
        let [mut r0, mut r1, mut r2, mut r3] = self.0;
        let [b0, b1, b2, b3] = other.0;
        // SAFETY: the assembly writes only registers.
        unsafe {
            asm!(
                "sub {r0}, {b0}",
                "sbb {r1}, {b1}",
                "sbb {r2}, {b2}",
                "sbb {r3}, {b3}",
                "sbb {b0}, {b0}",
                "and {p1}, {b0}",
                "and {p3}, {b0}",
                "add {r0}, {b0}",
                "adc {r1}, {p1}",
                "adc {r2}, 0",
                "adc {r3}, {p3}",
                r0 = inout(reg) r0, r1 = inout(reg) r1, r2 = inout(reg) r2, r3 = inout(reg) r3,
                b0 = inout(reg) b0 => _, b1 = in(reg) b1, b2 = in(reg) b2, b3 = in(reg) b3,
                p1 = inout(reg) P[1] => _, p3 = inout(reg) P[3] => _,
                options(pure, nomem, nostack),
            );
        }
        Self([r0, r1, r2, r3])
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
