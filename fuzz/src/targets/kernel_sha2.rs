//! The compression functions of SHA-2: SHA-512 by the kernel, and both in lanes. Invariant: every
//! kernel, the portable twins and AWS-LC compute the same.

use wraith_aws_lc::hash::{compress_sha_256, compress_sha_512};
use wraith_kernels::sha2::{compress_256, compress_512};
use wraith_kernels::sha2_lanes::{
    CHAINS, Chains, chains, compress_many_256, compress_many_512, one_by_one,
};
use wraith_kernels::sha512;

use crate::guarded::Buffer;
use crate::input::Input;
use crate::levels::same;

pub(crate) fn run(input: &[u8]) {
    let mut input = Input(input);
    match input.byte() % 6 {
        0 => one_state(&mut input),
        1 => many_states_of_256(&mut input),
        2 => many_states_of_512(&mut input),
        3 => hash_chains::<4>(&mut input),
        4 => hash_chains::<6>(&mut input),
        _ => hash_chains::<8>(&mut input),
    }
}

fn one_state(input: &mut Input<'_>) {
    let (place, blocks) = (input.place(), input.below(16));
    let state: [u64; 8] = input.words(8).try_into().expect("eight words");
    let data = input.content(128 * blocks);
    let found = same(|| {
        let (mut state, blocks) = (state, Buffer::new(place, &data));
        if !sha512::compress(&mut state, &blocks) {
            compress_512(&mut state, &blocks);
        }
        state
    });
    let mut expected = state;
    compress_sha_512(&mut expected, &data);
    assert_eq!(found, expected, "SHA-512 of AWS-LC");
}

fn words_of_32(input: &mut Input<'_>, len: usize) -> Vec<u32> {
    let bytes = input.content(4 * len);
    bytes.as_chunks().0.iter().map(|word| u32::from_be_bytes(*word)).collect()
}

fn many_states_of_256(input: &mut Input<'_>) {
    let states = input.below(40);
    let words = words_of_32(input, 8 * states);
    let (states, data) = (words.as_chunks::<8>().0, input.content(64 * states));
    let blocks = data.as_chunks::<64>().0;
    let found = same(|| {
        let mut states = states.to_vec();
        compress_many_256(&mut states, blocks, compress_256);
        states
    });
    let mut expected = states.to_vec();
    for (state, block) in expected.iter_mut().zip(blocks) {
        compress_sha_256(state, block);
    }
    assert_eq!(found, expected, "SHA-256 of AWS-LC");
}

fn many_states_of_512(input: &mut Input<'_>) {
    let states = input.below(40);
    let words = input.words(8 * states);
    let (states, data) = (words.as_chunks::<8>().0, input.content(128 * states));
    let blocks = data.as_chunks::<128>().0;
    let found = same(|| {
        let mut states = states.to_vec();
        compress_many_512(&mut states, blocks, compress_512);
        states
    });
    let mut expected = states.to_vec();
    for (state, block) in expected.iter_mut().zip(blocks) {
        compress_sha_512(state, block);
    }
    assert_eq!(found, expected, "SHA-512 of AWS-LC");
}

fn hash_chains<const WORDS: usize>(input: &mut Input<'_>) {
    let used = 1 + input.below(CHAINS);
    let state: [u32; 8] = words_of_32(input, 8).try_into().expect("eight words");
    let words = words_of_32(input, CHAINS * 14);
    let make = || {
        let mut all = Chains::EMPTY;
        for (row, words) in all.prefix.iter_mut().chain(&mut all.value).zip(words.chunks(CHAINS)) {
            row.copy_from_slice(words);
        }
        // The value begins in the lower half of this word. Steps are added to the upper half, where
        // no carry may arise.
        all.prefix[5].iter_mut().for_each(|word| *word &= 0xfff0_0000);
        all
    };
    let (begin, end) = (input.content(CHAINS), input.content(CHAINS));
    let limits = |all: &mut Chains| {
        for lane in 0..used {
            (all.begin[lane], all.end[lane]) = (begin[lane] % 16, end[lane] % 17);
        }
    };
    let front = |all: &Chains| all.value.map(|row| row[..used].to_vec());
    let found = same(|| {
        let mut all = make();
        limits(&mut all);
        if !chains::<WORDS>(&state, &mut all, used) {
            one_by_one::<WORDS>(&state, &mut all, used, compress_256);
        }
        front(&all)
    });
    let mut expected = make();
    limits(&mut expected);
    one_by_one::<WORDS>(&state, &mut expected, used, compress_sha_256);
    assert_eq!(found, front(&expected), "chains of AWS-LC");
}
