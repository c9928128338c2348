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
            "mulx rcx, rax, [rsi + 16]\n",
            "adcx r11, rax\n",
            "adox r12, rcx\n",
            "mulx rcx, rax, [rsi + 24]\n",
            "adcx r12, rax\n",
            "adox r13, rcx\n",
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
            "mov rdx, [rsi + 8]\n",
            "mulx rcx, rax, rdx\n",
            "adcx r10, r10\n",
            "adox r10, rax\n",
            "adcx r11, r11\n",
            "adox r11, rcx\n",
            "mov rdx, [rsi + 16]\n",
            "mulx rcx, rax, rdx\n",
            "adcx r12, r12\n",
            "adox r12, rax\n",
            "adcx r13, r13\n",
            "adox r13, rcx\n",
            "mov rdx, [rsi + 24]\n",
            "mulx rcx, rax, rdx\n",
            "adcx r14, r14\n",
            "adox r14, rax\n",
            "adcx r15, r15\n",
            "adox r15, rcx\n",
        )
    };
}

pub(crate) use {product, square};
