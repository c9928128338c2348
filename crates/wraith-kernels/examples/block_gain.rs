//! Measures the kernel for single blocks of AES-256 beside the crate `aes`: least times of nine loops.

use std::hint::black_box;
use std::time::Instant;

use aes::Aes256Enc;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use wraith_kernels::aes_gcm::RoundKeys;

const CALLS: u32 = 200_000;

fn nanoseconds(mut call: impl FnMut()) -> f64 {
    let loops = (0..9).map(|_| {
        let started = Instant::now();
        (0..CALLS).for_each(|_| call());
        started.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS)
    });
    loops.fold(f64::INFINITY, f64::min)
}

fn main() {
    let (key, block) = ([7; 32], [9; 16]);
    let Some(own) = RoundKeys::<15>::new(&key) else {
        return println!("no kernel: this processor has no AES instructions, or they are hidden");
    };
    let library = Aes256Enc::new(&key.into());
    let own = nanoseconds(|| {
        black_box(black_box(&own).encrypt(black_box(&block)));
    });
    let library = nanoseconds(|| {
        let mut block = Array::from(*black_box(&block));
        black_box(&library).encrypt_block(&mut block);
        black_box(block);
    });
    println!("kernel {own:.2} ns, crate aes {library:.2} ns: {:.2} times as fast", library / own);
}
