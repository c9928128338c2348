//! Products of two numbers of four limbs with `mulx`, `adcx` and `adox` (BMI2 and ADX), as text for
//! `asm!`.
//!
//! The module of each prime adds the reduction of that prime.

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
            product!("r9", "r10", "r11", "r12", "r13"),
            "mov rdx, [rdi + 16]\n",
            product!("r10", "r11", "r12", "r13", "r14"),
            "mov rdx, [rdi + 24]\n",
            product!("r11", "r12", "r13", "r14", "r15"),
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

pub(crate) use {add_product, add_square, product, square};
