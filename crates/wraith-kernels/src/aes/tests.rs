//! Compares this crate's code with the `aes` crate, at every width that this processor has, for
//! every length up to about a hundred blocks.

use super::*;
use crate::modes::BLOCK;

/// Returns the key for each implementation available here, the `aes` crate first.
fn each(key: &[u8]) -> Vec<Aes> {
    #[allow(unused_mut, reason = "without kernels")]
    let mut all = vec![Aes::portable(key).unwrap()];
    #[cfg(all(target_arch = "x86_64", feature = "simd"))]
    for width in x86::Width::ALL {
        if width.is_available() {
            all.push(Aes(Inner::X86(Box::new(x86::Keys::new(key, width)))));
        }
    }
    all
}

/// Returns bytes that depend on `seed`.
fn bytes(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    (0..len)
        .map(|_| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 56) as u8
        })
        .collect()
}

/// Computes XTS from the tweak in `iv` on.
fn xts<const ENCRYPT: bool>(aes: &Aes, iv: &mut Block, text: &mut [Block]) {
    let mut tweaks = Tweaks { next: *iv, ieee: true };
    aes.xts::<ENCRYPT>(&mut tweaks, text);
    *iv = tweaks.next;
}

type Mode = (&'static str, fn(&Aes, &mut Block, &mut [Block]));

const MODES: [Mode; 13] = [
    ("ECB encryption", |aes, _, text| aes.ecb_encrypt(text)),
    ("ECB decryption", |aes, _, text| aes.ecb_decrypt(text)),
    ("CBC encryption", |aes, iv, text| aes.cbc_encrypt(iv, text)),
    ("CBC decryption", |aes, iv, text| aes.cbc_decrypt(iv, text)),
    ("CFB encryption", |aes, iv, text| aes.cfb_encrypt(iv, text)),
    ("CFB decryption", |aes, iv, text| aes.cfb_decrypt(iv, text)),
    ("OFB", |aes, iv, text| aes.ofb(iv, text)),
    ("CTR", |aes, iv, text| aes.ctr(iv, text)),
    ("XTS encryption", |aes, iv, text| xts::<true>(aes, iv, text)),
    ("XTS decryption", |aes, iv, text| xts::<false>(aes, iv, text)),
    ("CBC-MAC", |aes, iv, text| aes.cbc_mac(iv, text)),
    ("CCM sealing", |aes, iv, text| {
        let mut counter = [3; BLOCK];
        aes.ccm::<true>(iv, &mut counter, text);
        *iv = (u128::from_ne_bytes(*iv) ^ u128::from_ne_bytes(counter)).to_ne_bytes();
    }),
    ("CCM opening", |aes, iv, text| {
        let mut counter = [3; BLOCK];
        aes.ccm::<false>(iv, &mut counter, text);
        *iv = (u128::from_ne_bytes(*iv) ^ u128::from_ne_bytes(counter)).to_ne_bytes();
    }),
];

#[test]
fn every_width_computes_what_the_aes_crate_does() {
    for key_bytes in [16, 24, 32] {
        for blocks in (0..140).chain([191, 256, 319]) {
            let seed = (key_bytes * 1000 + blocks) as u64;
            let all = each(&bytes(key_bytes, seed));
            // Not aligned, with a different offset each time.
            let shift = blocks % 17;
            let text = bytes(shift + blocks * BLOCK, seed + 1);
            for (name, run) in MODES {
                let results = all.iter().map(|aes| {
                    let mut iv: Block = bytes(BLOCK, seed + 2).try_into().unwrap();
                    let mut text = text.clone();
                    run(aes, &mut iv, text[shift..].as_chunks_mut().0);
                    (iv, text)
                });
                let results: Vec<_> = results.collect();
                for other in &results[1..] {
                    assert!(*other == results[0], "{name}, {key_bytes} bytes, {blocks} blocks");
                }
            }
        }
    }
}

#[test]
fn a_counter_carries_into_its_upper_half_and_wraps_around() {
    for start in [u128::from(u64::MAX) - 20, u128::from(u64::MAX), u128::MAX - 33, u128::MAX] {
        for aes in each(&[5; 16]) {
            let (mut iv, mut text) = (start.to_be_bytes(), bytes(100 * BLOCK, 1));
            let mut expected = text.clone();
            aes.ctr(&mut iv, text.as_chunks_mut().0);
            assert_eq!(u128::from_be_bytes(iv), start.wrapping_add(100));
            for (i, block) in expected.as_chunks_mut::<BLOCK>().0.iter_mut().enumerate() {
                let mut key = start.wrapping_add(i as u128).to_be_bytes();
                aes.encrypt_block(&mut key);
                for (byte, key) in block.iter_mut().zip(key) {
                    *byte ^= key;
                }
            }
            assert!(text == expected);
        }
    }
}

#[test]
fn keys_of_other_lengths_are_none() {
    for bytes in 0..64 {
        assert_eq!(Aes::new(&vec![1; bytes]).is_some(), matches!(bytes, 16 | 24 | 32));
    }
}
