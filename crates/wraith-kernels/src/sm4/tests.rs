//! Checks the vectors of the standard, and compares every kernel with the portable one.

use super::*;
use crate::tests::bytes;

const KEY: Block = 0x0123_4567_89ab_cdef_fedc_ba98_7654_3210_u128.to_be_bytes();

fn here() -> impl Iterator<Item = Implementation> {
    Implementation::ALL.iter().copied().filter(|kernel| kernel.is_available())
}

#[test]
fn a_block_is_that_of_gb_t_32907_a_1() {
    for kernel in here() {
        let sm4 = Sm4::with(&KEY, kernel);
        let mut blocks = [KEY];
        sm4.ecb_encrypt(&mut blocks);
        let cipher = 0x681e_df34_d206_965e_86b3_e94f_536e_4246_u128.to_be_bytes();
        assert_eq!(blocks, [cipher], "{kernel:?}");
        sm4.ecb_decrypt(&mut blocks);
        assert_eq!(blocks, [KEY], "{kernel:?}");
    }
}

#[test]
fn a_block_encrypted_a_million_times_is_that_of_gb_t_32907_a_2() {
    let sm4 = Sm4::new(&KEY);
    let mut block = KEY;
    for _ in 0..1_000_000 {
        block = sm4.encrypted(block);
    }
    let cipher = 0x5952_98c7_c6fd_271f_0402_f804_c33d_3f66_u128.to_be_bytes();
    assert_eq!(block, cipher);
}

#[test]
fn every_kernel_encrypts_and_decrypts_any_number_of_blocks_as_the_portable_one() {
    let random = bytes(16 + 201 * 16);
    let key = random.first_chunk().unwrap();
    let portable = Sm4::with(key, Implementation::Portable);
    for kernel in here() {
        let sm4 = Sm4::with(key, kernel);
        for blocks in 0..200 {
            // At several alignments.
            let text = &random[16 + blocks % 16..];
            let text = text.as_chunks::<16>().0[..blocks].to_vec();
            let (mut ours, mut theirs) = (text.clone(), text.clone());
            sm4.ecb_encrypt(&mut ours);
            portable.ecb_encrypt(&mut theirs);
            assert!(ours == theirs, "{kernel:?}: {blocks} blocks");
            sm4.ecb_decrypt(&mut ours);
            assert!(ours == text, "{kernel:?}: {blocks} blocks");
            sm4.ecb_decrypt(&mut ours);
            portable.ecb_decrypt(&mut theirs);
            portable.ecb_decrypt(&mut theirs);
            assert!(ours == theirs, "{kernel:?}: {blocks} blocks");
        }
    }
}

#[test]
fn masks_are_added_before_and_after() {
    let random = bytes(16 + 130 * 16);
    let key = random.first_chunk().unwrap();
    for kernel in here() {
        let sm4 = Sm4::with(key, kernel);
        for blocks in (0..20).chain(60..=65) {
            let all = random[16..].as_chunks::<16>().0;
            let (text, masks) = (&all[..blocks], &all[65..65 + blocks]);
            let (mut ours, mut theirs) = (text.to_vec(), text.to_vec());
            sm4.masked::<true>(&mut ours, masks);
            add(theirs.as_flattened_mut(), masks.as_flattened());
            sm4.ecb_encrypt(&mut theirs);
            add(theirs.as_flattened_mut(), masks.as_flattened());
            assert!(ours == theirs, "{kernel:?}: {blocks} blocks");
            sm4.masked::<false>(&mut ours, masks);
            assert!(ours == text, "{kernel:?}: {blocks} blocks");
        }
    }
}

#[test]
fn every_kernel_counts_as_block_after_block_is_encrypted() {
    let random = bytes(16 + 2100);
    let key = random.first_chunk().unwrap();
    let portable = Sm4::with(key, Implementation::Portable);
    let starts = [0, 250, 0xffff_ffd0, u128::MAX - 5, (7 << 64) - 20, (1 << 96) - 33];
    for kernel in here() {
        let sm4 = Sm4::with(key, kernel);
        for (i, start) in starts.into_iter().enumerate() {
            for first in [Counter::whole, Counter::last_word].map(|f| f(start.to_be_bytes())) {
                for len in (0..2100).step_by(7 + i) {
                    let mut ours = random[16..16 + len].to_vec();
                    let mut counter = first;
                    sm4.count(&mut counter, &mut ours);
                    let mut theirs = random[16..16 + len].to_vec();
                    let blocks: Vec<Block> =
                        (0..len.div_ceil(16)).map(|i| first.later(i as u128).block()).collect();
                    let mut stream = blocks.clone();
                    portable.ecb_encrypt(&mut stream);
                    add(&mut theirs, stream.as_flattened());
                    assert!(ours == theirs, "{kernel:?}: {len} bytes from {start:x}");
                    assert_eq!(counter, first.later(blocks.len() as u128));
                }
            }
        }
    }
}

#[test]
fn every_kernel_chains_as_block_after_block_is_encrypted() {
    let random = bytes(32 + 20 * 16);
    let key = random.first_chunk().unwrap();
    let iv: Block = random[16..32].try_into().unwrap();
    let portable = Sm4::with(key, Implementation::Portable);
    for kernel in here() {
        let sm4 = Sm4::with(key, kernel);
        for blocks in 0..20 {
            let text = random[32..].as_chunks::<16>().0[..blocks].to_vec();
            for chain in [Chain::Cbc, Chain::Cfb, Chain::Ofb] {
                let (mut ours, mut theirs) = (text.clone(), text.clone());
                let (mut our_iv, mut their_iv) = (iv, iv);
                sm4.chain(chain, &mut our_iv, &mut ours);
                portable.chain(chain, &mut their_iv, &mut theirs);
                assert_eq!((ours, our_iv), (theirs, their_iv), "{kernel:?}: {chain:?}");
            }
            let (mut ours, mut theirs) = (iv, text.clone());
            sm4.absorb(&mut ours, &text);
            let mut their_iv = iv;
            portable.chain(Chain::Cbc, &mut their_iv, &mut theirs);
            assert_eq!(ours, their_iv, "{kernel:?}");
        }
    }
}
