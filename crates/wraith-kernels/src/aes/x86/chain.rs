//! The modes in which each block depends on the previous one: CBC encryption, CBC-MAC, CFB
//! encryption and OFB, and CCM.
//!
//! Their time is the latency of the rounds of one block after another, so nothing else lies on that
//! critical path. The first round key and the data added to the next block are folded into the last
//! round key. The result of the last round is then the next block after its round 0.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::{Block, KEYS_MAX, load, store};

type RoundKeys = [__m128i; KEYS_MAX];

/// Computes the rounds between the first key and the last.
#[target_feature(enable = "aes")]
#[inline]
fn middle<const ROUNDS: usize>(keys: &RoundKeys, mut state: __m128i) -> __m128i {
    for key in &keys[1..ROUNDS] {
        state = _mm_aesenc_si128(state, *key);
    }
    state
}

/// Returns the last round key xored with the first.
#[target_feature(enable = "aes")]
#[inline]
fn turn<const ROUNDS: usize>(keys: &RoundKeys) -> __m128i {
    _mm_xor_si128(keys[ROUNDS], keys[0])
}

#[target_feature(enable = "aes")]
pub(super) fn block<const ROUNDS: usize>(keys: &RoundKeys, block: &mut Block) {
    let state = middle::<ROUNDS>(keys, _mm_xor_si128(load(block), keys[0]));
    store(block, _mm_aesenclast_si128(state, keys[ROUNDS]));
}

#[target_feature(enable = "aes")]
pub(super) fn cbc<const ROUNDS: usize>(keys: &RoundKeys, iv: &mut Block, text: &mut [Block]) {
    let turn = turn::<ROUNDS>(keys);
    let Some(first) = text.first() else { return };
    let mut state = _mm_xor_si128(_mm_xor_si128(load(iv), keys[0]), load(first));
    for i in 0..text.len() {
        // Added for the next block: its text, or zero after the last block.
        let next = text.get(i + 1).map_or(_mm_setzero_si128(), |next| load(next));
        state = _mm_aesenclast_si128(middle::<ROUNDS>(keys, state), _mm_xor_si128(turn, next));
        store(&mut text[i], _mm_xor_si128(state, _mm_xor_si128(next, keys[0])));
    }
    store(iv, _mm_xor_si128(state, keys[0]));
}

#[target_feature(enable = "aes")]
pub(super) fn mac<const ROUNDS: usize>(keys: &RoundKeys, mac: &mut Block, data: &[Block]) {
    let turn = turn::<ROUNDS>(keys);
    let Some((first, data)) = data.split_first() else { return };
    let mut state = _mm_xor_si128(_mm_xor_si128(load(mac), keys[0]), load(first));
    for next in data {
        let key = _mm_xor_si128(turn, load(next));
        state = _mm_aesenclast_si128(middle::<ROUNDS>(keys, state), key);
    }
    store(mac, _mm_aesenclast_si128(middle::<ROUNDS>(keys, state), keys[ROUNDS]));
}

#[target_feature(enable = "aes")]
pub(super) fn cfb<const ROUNDS: usize>(keys: &RoundKeys, iv: &mut Block, text: &mut [Block]) {
    let turn = turn::<ROUNDS>(keys);
    let mut state = _mm_xor_si128(load(iv), keys[0]);
    for block in text {
        let key = _mm_xor_si128(turn, load(block));
        state = _mm_aesenclast_si128(middle::<ROUNDS>(keys, state), key);
        store(block, _mm_xor_si128(state, keys[0]));
    }
    store(iv, _mm_xor_si128(state, keys[0]));
}

#[target_feature(enable = "aes")]
pub(super) fn ofb<const ROUNDS: usize>(keys: &RoundKeys, iv: &mut Block, text: &mut [Block]) {
    let turn = turn::<ROUNDS>(keys);
    let mut state = _mm_xor_si128(load(iv), keys[0]);
    for block in text {
        state = _mm_aesenclast_si128(middle::<ROUNDS>(keys, state), turn);
        store(block, _mm_xor_si128(_mm_xor_si128(state, keys[0]), load(block)));
    }
    store(iv, _mm_xor_si128(state, keys[0]));
}

/// Runs CBC-MAC over the plaintext and counter mode, one block of each side by side. The rounds of
/// the counter fill the latency of the MAC's rounds.
///
/// When opening, the MAC is one block behind, because it needs the plaintext.
#[target_feature(enable = "aes,ssse3")]
pub(super) fn ccm<const SEAL: bool, const ROUNDS: usize>(
    keys: &RoundKeys,
    mac: &mut Block,
    counter: &mut Block,
    text: &mut [Block],
) {
    let turn = turn::<ROUNDS>(keys);
    let reverse = _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    let mut count = _mm_shuffle_epi8(load(counter), reverse);
    let mut stream = |block: &Block| {
        let input = _mm_xor_si128(_mm_shuffle_epi8(count, reverse), keys[0]);
        count = _mm_add_epi64(count, _mm_set_epi64x(0, 1));
        let state = middle::<ROUNDS>(keys, input);
        _mm_aesenclast_si128(state, _mm_xor_si128(keys[ROUNDS], load(block)))
    };
    let Some((first, _)) = text.split_first() else { return };
    let before = load(first);
    let after = stream(first);
    let plain = if SEAL { before } else { after };
    let mut state = _mm_xor_si128(_mm_xor_si128(load(mac), keys[0]), plain);
    store(&mut text[0], after);
    for block in &mut text[1..] {
        let before = load(block);
        let after = stream(block);
        let plain = if SEAL { before } else { after };
        store(block, after);
        let key = _mm_xor_si128(turn, plain);
        state = _mm_aesenclast_si128(middle::<ROUNDS>(keys, state), key);
    }
    store(mac, _mm_aesenclast_si128(middle::<ROUNDS>(keys, state), keys[ROUNDS]));
    store(counter, _mm_shuffle_epi8(count, reverse));
}
