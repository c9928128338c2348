//! Multiplication modulo p with `mulx`, `adcx` and `adox`: about 30 cycles on Zen 4.
#![allow(unsafe_code)]

use std::arch::asm;

use super::field::{Adx, Arithmetic, Fe};

/// Reduces r8…r15 into r8…r11 with rax, rcx and rdx: four times, the lowest limb m makes itself vanish by m · p, whose upper limbs are
/// m · (1, 0, 0, 1) − (m « 32, m » 32, m « 32, m » 32). Then the upper half is added, and p subtracted if the sum is not below it.
macro_rules! reduce {
    () => {
        concat!(
            reduce!("r8", "r9", "r10", "r11"),
            reduce!("r9", "r10", "r11", "r8"),
            reduce!("r10", "r11", "r8", "r9"),
            reduce!("r11", "r8", "r9", "r10"),
            "add r8, r12
             adc r9, r13
             adc r10, r14
             adc r11, r15
             sbb rsi, rsi
             mov rax, 0xffffffff00000000
             mov rcx, 0xfffffffeffffffff
             mov r12, r8
             mov r13, r9
             mov r14, r10
             mov r15, r11
             sub r8, -1
             sbb r9, rax
             sbb r10, -1
             sbb r11, rcx
             sbb rsi, 0
             cmovc r8, r12
             cmovc r9, r13
             cmovc r10, r14
             cmovc r11, r15
            "
        )
    };
    ($m:literal, $a:literal, $b:literal, $c:literal) => {
        concat!(
            "mov rax, ",
            $m,
            "\n mov rcx, ",
            $m,
            "\n shl rax, 32\n shr rcx, 32\n",
            "add ",
            $a,
            ", ",
            $m,
            "\n adc ",
            $b,
            ", 0\n adc ",
            $c,
            ", 0\n adc ",
            $m,
            ", 0\n",
            "sub ",
            $a,
            ", rax\n sbb ",
            $b,
            ", rcx\n sbb ",
            $c,
            ", rax\n sbb ",
            $m,
            ", rcx\n",
        )
    };
}

/// Adds [rsi] · rdx to the limbs, of which the last one is new.
macro_rules! row {
    ($t0:literal, $t1:literal, $t2:literal, $t3:literal, $t4:literal) => {
        concat!(
            "xor ",
            $t4,
            "d, ",
            $t4,
            "d\n",
            "mulx rcx, rax, [rsi]\n adcx ",
            $t0,
            ", rax\n adox ",
            $t1,
            ", rcx\n",
            "mulx rcx, rax, [rsi + 8]\n adcx ",
            $t1,
            ", rax\n adox ",
            $t2,
            ", rcx\n",
            "mulx rcx, rax, [rsi + 16]\n adcx ",
            $t2,
            ", rax\n adox ",
            $t3,
            ", rcx\n",
            "mulx rcx, rax, [rsi + 24]\n adcx ",
            $t3,
            ", rax\n adox ",
            $t4,
            ", rcx\n",
            "adc ",
            $t4,
            ", 0\n",
        )
    };
}

impl Arithmetic for Adx {
    #[inline(always)]
    fn mul(a: &Fe, b: &Fe) -> Fe {
        let mut out = [0; 4];
        // SAFETY: reads the 32 bytes at each pointer and writes registers only; who chose `Adx` has seen BMI2 and ADX.
        unsafe {
            asm!(
                "mov rdx, [rdi]",
                "mulx r9, r8, [rsi]",
                "mulx r10, rax, [rsi + 8]",
                "add r9, rax",
                "mulx r11, rax, [rsi + 16]",
                "adc r10, rax",
                "mulx r12, rax, [rsi + 24]",
                "adc r11, rax",
                "adc r12, 0",
                "mov rdx, [rdi + 8]",
                row!("r9", "r10", "r11", "r12", "r13"),
                "mov rdx, [rdi + 16]",
                row!("r10", "r11", "r12", "r13", "r14"),
                "mov rdx, [rdi + 24]",
                row!("r11", "r12", "r13", "r14", "r15"),
                reduce!(),
                inout("rsi") a.0.as_ptr() => _,
                in("rdi") b.0.as_ptr(),
                out("rax") _, out("rcx") _, out("rdx") _,
                out("r8") out[0], out("r9") out[1], out("r10") out[2], out("r11") out[3],
                out("r12") _, out("r13") _, out("r14") _, out("r15") _,
                options(pure, readonly, nostack),
            );
        }
        Fe(out)
    }

    #[inline(always)]
    fn sqr(a: &Fe) -> Fe {
        let mut out = [0; 4];
        // SAFETY: reads the 32 bytes at the pointer and writes registers only; who chose `Adx` has seen BMI2 and ADX.
        unsafe {
            asm!(
                // The products of different limbs, once: in r9 … r14.
                "mov rdx, [rsi]",
                "mulx r10, r9, [rsi + 8]",
                "mulx r11, rax, [rsi + 16]",
                "add r10, rax",
                "mulx r12, rax, [rsi + 24]",
                "adc r11, rax",
                "adc r12, 0",
                "mov rdx, [rsi + 8]",
                "xor r13d, r13d",
                "mulx rcx, rax, [rsi + 16]",
                "adcx r11, rax",
                "adox r12, rcx",
                "mulx rcx, rax, [rsi + 24]",
                "adcx r12, rax",
                "adox r13, rcx",
                "adc r13, 0",
                "mov rdx, [rsi + 16]",
                "mulx r14, rax, [rsi + 24]",
                "add r13, rax",
                "adc r14, 0",
                // Twice that, and the squares.
                "xor r15d, r15d",
                "mov rdx, [rsi]",
                "mulx rax, r8, rdx",
                "adcx r9, r9",
                "adox r9, rax",
                "mov rdx, [rsi + 8]",
                "mulx rcx, rax, rdx",
                "adcx r10, r10",
                "adox r10, rax",
                "adcx r11, r11",
                "adox r11, rcx",
                "mov rdx, [rsi + 16]",
                "mulx rcx, rax, rdx",
                "adcx r12, r12",
                "adox r12, rax",
                "adcx r13, r13",
                "adox r13, rcx",
                "mov rdx, [rsi + 24]",
                "mulx rcx, rax, rdx",
                "adcx r14, r14",
                "adox r14, rax",
                "adcx r15, r15",
                "adox r15, rcx",
                reduce!(),
                inout("rsi") a.0.as_ptr() => _,
                out("rax") _, out("rcx") _, out("rdx") _,
                out("r8") out[0], out("r9") out[1], out("r10") out[2], out("r11") out[3],
                out("r12") _, out("r13") _, out("r14") _, out("r15") _,
                options(pure, readonly, nostack),
            );
        }
        Fe(out)
    }
}
