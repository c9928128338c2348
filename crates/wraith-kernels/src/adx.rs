//! Arithmetic modulo a prime of four limbs with `mulx`, `adcx` and `adox` (BMI2 and ADX).
//!
//! The module of each prime adds the reduction of that prime. Products are text for `asm!`.

/// Sets r8…r15 to [rsi] · [rdi]. Clobbers rax, rcx and rdx.
macro_rules! product {
    () => {
        concat!(
            "mov rdx, [rdi]\n",
            "mulx r9, r8, [rsi]\n",
            "mulx r10, rax, [rsi + 8]\n",
            "add r9, rax\n",
            "mulx r11, rax, [rsi + 16]\n",
            "adc r10, rax\n",
            "mulx r12, rax, [rsi + 24]\n",
            "adc r11, rax\n",
            "adc r12, 0\n",
            "mov rdx, [rdi + 8]\n",
            $crate::adx::product!("r9", "r10", "r11", "r12", "r13"),
            "mov rdx, [rdi + 16]\n",
            $crate::adx::product!("r10", "r11", "r12", "r13", "r14"),
            "mov rdx, [rdi + 24]\n",
            $crate::adx::product!("r11", "r12", "r13", "r14", "r15"),
        )
    };
    // Adds [rsi] · rdx to the limbs. The last limb is new.
    ($t0:literal, $t1:literal, $t2:literal, $t3:literal, $t4:literal) => {
        concat!(
            "xor ",
            $t4,
            "d, ",
            $t4,
            "d\n",
            $crate::adx::add_product!("[rsi]", $t0, $t1),
            $crate::adx::add_product!("[rsi + 8]", $t1, $t2),
            $crate::adx::add_product!("[rsi + 16]", $t2, $t3),
            $crate::adx::add_product!("[rsi + 24]", $t3, $t4),
            "adc ",
            $t4,
            ", 0\n",
        )
    };
}

/// Adds rdx · `$factor` to two limbs, in the two carry chains. Clobbers rax and rcx.
macro_rules! add_product {
    ($factor:literal, $low:literal, $high:literal) => {
        concat!("mulx rcx, rax, ", $factor, "\n adcx ", $low, ", rax\n adox ", $high, ", rcx\n")
    };
}

/// Sets r8…r15 to [rsi]². Clobbers rax, rcx and rdx.
macro_rules! square {
    () => {
        concat!(
            // The products of different limbs, each once, in r9 … r14.
            "mov rdx, [rsi]\n",
            "mulx r10, r9, [rsi + 8]\n",
            "mulx r11, rax, [rsi + 16]\n",
            "add r10, rax\n",
            "mulx r12, rax, [rsi + 24]\n",
            "adc r11, rax\n",
            "adc r12, 0\n",
            "mov rdx, [rsi + 8]\n",
            "xor r13d, r13d\n",
            $crate::adx::add_product!("[rsi + 16]", "r11", "r12"),
            $crate::adx::add_product!("[rsi + 24]", "r12", "r13"),
            "adc r13, 0\n",
            "mov rdx, [rsi + 16]\n",
            "mulx r14, rax, [rsi + 24]\n",
            "add r13, rax\n",
            "adc r14, 0\n",
            // Double them and add the squares.
            "xor r15d, r15d\n",
            "mov rdx, [rsi]\n",
            "mulx rax, r8, rdx\n",
            "adcx r9, r9\n",
            "adox r9, rax\n",
            $crate::adx::add_square!("[rsi + 8]", "r10", "r11"),
            $crate::adx::add_square!("[rsi + 16]", "r12", "r13"),
            $crate::adx::add_square!("[rsi + 24]", "r14", "r15"),
        )
    };
}

/// Doubles two limbs and adds the square of `$limb` to them. Clobbers rax, rcx and rdx.
macro_rules! add_square {
    ($limb:literal, $low:literal, $high:literal) => {
        concat!(
            concat!("mov rdx, ", $limb, "\n mulx rcx, rax, rdx\n"),
            concat!("adcx ", $low, ", ", $low, "\n adox ", $low, ", rax\n"),
            concat!("adcx ", $high, ", ", $high, "\n adox ", $high, ", rcx\n"),
        )
    };
}

/// Adds r12…r15 to r8…r11, and subtracts the prime unless the sum is below it. The lowest limb of the
/// prime is 2^64 − 1, the others are the arguments. Clobbers rsi.
macro_rules! add_upper_half {
    ($p1:literal, $p2:literal, $p3:literal) => {
        concat!(
            "add r8, r12\n adc r9, r13\n adc r10, r14\n adc r11, r15\n sbb rsi, rsi\n",
            "mov r12, r8\n mov r13, r9\n mov r14, r10\n mov r15, r11\n",
            concat!("sub r8, -1\n sbb r9, ", $p1, "\n sbb r10, ", $p2, "\n sbb r11, ", $p3),
            "\n sbb rsi, 0\n",
            "cmovc r8, r12\n cmovc r9, r13\n cmovc r10, r14\n cmovc r11, r15\n",
        )
    };
}

/// Runs the text of a product of `$a`, whose pointer is in rsi, and reduces the result. `$rdi` is
/// the operand rdi.
macro_rules! reduced {
    ($product:ident, $reduce:ident, $a:ident, $($rdi:tt)*) => {{
        let mut out = [0; 4];
        // SAFETY: the assembly reads 32 bytes at each pointer and writes only registers. The caller
        // guarantees the instructions.
        unsafe {
            std::arch::asm!(
                $crate::adx::$product!(),
                $reduce!(),
                inout("rsi") $a.as_ptr() => _,
                $($rdi)*,
                out("rax") _, out("rcx") _, out("rdx") _,
                out("r8") out[0], out("r9") out[1], out("r10") out[2], out("r11") out[3],
                out("r12") _, out("r13") _, out("r14") _, out("r15") _,
                options(pure, readonly, nostack),
            );
        }
        out
    }};
}

/// Defines `mul`, `sqr`, `add` and `sub` modulo the prime `$p`, for numbers below it. The results are
/// below it, too. The lowest limb of the prime is 2^64 − 1.
///
/// `$reduce!()` reduces r8…r15 into r8…r11; it may clobber rax, rcx, rdx, rsi and rdi. `$p2` is the
/// third limb of the prime, and `$masked` that limb or zero, depending on the mask in `{b0}`.
macro_rules! arithmetic {
    ($p:expr, $p2:literal, $masked:literal, $reduce:ident) => {
        /// Returns a · b / 2^256.
        ///
        /// # Safety
        /// The processor has BMI2 and ADX.
        #[inline(always)]
        unsafe fn mul(a: &Limbs, b: &Limbs) -> Limbs {
            $crate::adx::reduced!(product, $reduce, a, inout("rdi") b.as_ptr() => _)
        }

        /// Returns a² / 2^256.
        ///
        /// # Safety
        /// The processor has BMI2 and ADX.
        #[inline(always)]
        unsafe fn sqr(a: &Limbs) -> Limbs {
            $crate::adx::reduced!(square, $reduce, a, out("rdi") _)
        }

        /// Returns a + b.
        #[inline(always)]
        fn add(a: &Limbs, b: &Limbs) -> Limbs {
            let [mut r0, mut r1, mut r2, mut r3] = *a;
            let [b0, b1, b2, b3] = *b;
            // SAFETY: the assembly writes only registers.
            unsafe {
                std::arch::asm!(
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
                    concat!("sbb {r2}, ", $p2),
                    "sbb {r3}, {p3}",
                    "sbb {carry}, 0",
                    "cmovc {r0}, {b0}",
                    "cmovc {r1}, {b1}",
                    "cmovc {r2}, {b2}",
                    "cmovc {r3}, {b3}",
                    r0 = inout(reg) r0, r1 = inout(reg) r1, r2 = inout(reg) r2, r3 = inout(reg) r3,
                    b0 = inout(reg) b0 => _, b1 = inout(reg) b1 => _,
                    b2 = inout(reg) b2 => _, b3 = inout(reg) b3 => _,
                    p1 = in(reg) $p[1], p3 = in(reg) $p[3],
                    carry = out(reg) _,
                    options(pure, nomem, nostack),
                );
            }
            [r0, r1, r2, r3]
        }

        /// Returns a − b.
        #[inline(always)]
        fn sub(a: &Limbs, b: &Limbs) -> Limbs {
            let [mut r0, mut r1, mut r2, mut r3] = *a;
            let [b0, b1, b2, b3] = *b;
            // SAFETY: the assembly writes only registers.
            unsafe {
                std::arch::asm!(
                    "sub {r0}, {b0}",
                    "sbb {r1}, {b1}",
                    "sbb {r2}, {b2}",
                    "sbb {r3}, {b3}",
                    "sbb {b0}, {b0}",
                    "and {p1}, {b0}",
                    "and {p3}, {b0}",
                    "add {r0}, {b0}",
                    "adc {r1}, {p1}",
                    concat!("adc {r2}, ", $masked),
                    "adc {r3}, {p3}",
                    r0 = inout(reg) r0, r1 = inout(reg) r1, r2 = inout(reg) r2, r3 = inout(reg) r3,
                    b0 = inout(reg) b0 => _, b1 = in(reg) b1, b2 = in(reg) b2, b3 = in(reg) b3,
                    p1 = inout(reg) $p[1] => _, p3 = inout(reg) $p[3] => _,
                    options(pure, nomem, nostack),
                );
            }
            [r0, r1, r2, r3]
        }
    };
}

pub(crate) use {add_product, add_square, add_upper_half, arithmetic, product, reduced, square};
