//! What sealing and opening one packet costs, by size: ours beside AWS-LC called directly, in turn.
//!
//! `cargo run --release -p wraith-crypto --example aead_speed`

use std::hint::black_box;
use std::time::Instant;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use wraith_crypto::{AeadKey, Suite};

/// Bytes sealed in one measurement.
const BYTES: usize = 100_000_000;
const ROUNDS: usize = 9;
const KEY: [u8; 32] = [7; 32];
const AAD: [u8; 12] = [1; 12];

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

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

fn main() {
    let library = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &KEY).expect("32 bytes"));
    let ours = AeadKey::new(Suite::Aes256Gcm, &KEY);
    println!(
        "{:>6} {:>26} {:>26} {:>26}",
        "bytes", "seal: ours, aws-lc (ns)", "seal_from, copy + seal", "open: ours, aws-lc"
    );
    for len in [64, 256, 1424, 8944, 64_972] {
        let (mut text, source) = (vec![3; len], vec![4; len]);
        let mut columns: [Vec<f64>; 6] = Default::default();
        for _ in 0..ROUNDS {
            columns[0].push(nanos(len, |nonce| {
                black_box(ours.seal(nonce, &AAD, &mut text));
            }));
            columns[1].push(nanos(len, |nonce| {
                let nonce = Nonce::assume_unique_for_key(nonce);
                let tag = library.seal_in_place_separate_tag(nonce, Aad::from(&AAD), &mut text);
                black_box(tag.expect("short").as_ref());
            }));
            columns[2].push(nanos(len, |nonce| {
                black_box(ours.seal_from(nonce, &AAD, &mut text, 8, &source[8..]));
            }));
            columns[3].push(nanos(len, |nonce| {
                text[8..].copy_from_slice(&source[8..]);
                let nonce = Nonce::assume_unique_for_key(nonce);
                let tag = library.seal_in_place_separate_tag(nonce, Aad::from(&AAD), &mut text);
                black_box(tag.expect("short").as_ref());
            }));
            let mut sealed = text.clone();
            sealed.extend(ours.seal([0; 12], &AAD, &mut sealed.clone()));
            // Failing to verify costs the same, and leaves text to go on with.
            columns[4].push(nanos(len, |nonce| {
                black_box(ours.open(nonce, &AAD, &mut sealed)).ok();
            }));
            columns[5].push(nanos(len, |nonce| {
                let nonce = Nonce::assume_unique_for_key(nonce);
                black_box(library.open_in_place(nonce, Aad::from(&AAD), &mut sealed)).ok();
            }));
        }
        let [a, b, c, d, e, f] = columns.map(median);
        println!("{len:>6} {a:>15.1} {b:>10.1} {c:>15.1} {d:>10.1} {e:>15.1} {f:>10.1}");
    }
}
