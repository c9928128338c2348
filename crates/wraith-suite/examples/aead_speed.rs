//! Measures sealing and opening of one packet with AES-256-GCM.
//!
//! Each of this crate's implementations runs alternately with AWS-LC, which is called directly, for
//! one millisecond each. The output is the medians, and the median and quartiles of the ratio of
//! each pair of turns.
//!
//! `cargo run --release -p wraith-crypto --example aead_speed`
//!
//! To measure AWS-LC without AVX-512 on a processor that has it, set
//! `OPENSSL_ia32cap='~0x0:~0xC0030000'` in the environment.

use std::hint::black_box;
use std::time::Instant;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use wraith_suite::{AeadKey, Implementation, Suite};

/// Number of bytes sealed in one turn.
const BYTES: usize = 4_000_000;
const TURNS: usize = 201;
const KEY: [u8; 32] = [7; 32];
const AAD: [u8; 12] = [1; 12];

/// Returns the nanoseconds of each call of `action`.
fn nanos(len: usize, mut action: impl FnMut([u8; 12])) -> f64 {
    let calls = BYTES / len;
    let start = Instant::now();
    for i in 0..calls {
        let mut nonce = [0; 12];
        nonce[4..].copy_from_slice(&(i as u64).to_be_bytes());
        action(nonce);
    }
    start.elapsed().as_nanos() as f64 / calls as f64
}

/// Returns the lower quartile, the median and the upper quartile.
fn quartiles(mut samples: Vec<f64>) -> [f64; 3] {
    samples.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| samples[samples.len() * quarter / 4])
}

/// Measures in turns and prints one line.
fn row(what: &str, len: usize, mut ours: impl FnMut([u8; 12]), mut library: impl FnMut([u8; 12])) {
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        a.push(nanos(len, &mut ours));
        b.push(nanos(len, &mut library));
    }
    let ratios = a.iter().zip(&b).map(|(ours, library)| library / ours).collect();
    let [low, ratio, high] = quartiles(ratios);
    let ([_, a, _], [_, b, _]) = (quartiles(a), quartiles(b));
    println!("{what:<32} {len:>6} {a:>10.1} {b:>10.1} {ratio:>8.2} ({low:.2} to {high:.2})");
}

fn rows(implementation: Implementation, ours: &AeadKey, library: &LessSafeKey, len: usize) {
    let (mut text, mut copy, source) = (vec![3; len], vec![3; len], vec![4; len]);
    let seal = |nonce, text: &mut [u8]| {
        let nonce = Nonce::assume_unique_for_key(nonce);
        let tag = library.seal_in_place_separate_tag(nonce, Aad::from(&AAD), text);
        black_box(tag.expect("short").as_ref());
    };
    row(
        &format!("{implementation}: seal"),
        len,
        |nonce| {
            black_box(ours.seal(nonce, &AAD, &mut text));
        },
        |nonce| seal(nonce, &mut copy),
    );
    row(
        &format!("{implementation}: copy and seal"),
        len,
        |nonce| {
            black_box(ours.seal_from(nonce, &AAD, &mut text, 8, &source[8..]));
        },
        |nonce| {
            copy[8..].copy_from_slice(&source[8..]);
            seal(nonce, &mut copy);
        },
    );
    let (mut sealed, mut copy) = (vec![5; len + 16], vec![5; len + 16]);
    let nonce = [9; 12];
    let tag = ours.seal(nonce, &AAD, &mut sealed[..len]);
    sealed[len..].copy_from_slice(&tag);
    let sealed_source = sealed.clone();
    row(
        &format!("{implementation}: copy and open"),
        len,
        |_| {
            sealed.copy_from_slice(&sealed_source);
            black_box(ours.open(nonce, &AAD, &mut sealed)).expect("authentic");
        },
        |_| {
            copy.copy_from_slice(&sealed_source);
            let nonce = Nonce::assume_unique_for_key(nonce);
            library.open_in_place(nonce, Aad::from(&AAD), &mut copy).expect("authentic");
        },
    );
}

fn main() {
    let library = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &KEY).expect("32 bytes"));
    println!(
        "{:<32} {:>6} {:>10} {:>10} {:>8} (quartiles)",
        "", "bytes", "ours (ns)", "AWS-LC", "ratio"
    );
    for implementation in [Implementation::Vaes512, Implementation::Vaes256] {
        let ours = AeadKey::with_implementation(Suite::Aes256Gcm, &KEY, implementation);
        let Some(ours) = ours else {
            println!("{implementation}: this processor cannot");
            continue;
        };
        for len in [64, 256, 1424, 1452, 8944] {
            rows(implementation, &ours, &library, len);
        }
    }
}
