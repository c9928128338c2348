//! The modes with independent blocks. Eight vectors are in flight at a time, so that the rounds of
//! one fill the latency of the others.
//!
//! Each mode passes an input for each block through the rounds: the block, the previous block, or a
//! counter. It then xors an output mask onto the result: zero, the previous block, or the text. The
//! mask is folded into the key of the last round.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::Block;
use super::vector::Vector;
use crate::modes::times_x;

/// Number of vectors in a group.
const GROUP: usize = 8;

/// The input and the output mask of a mode.
pub(super) trait Mode {
    /// Whether the rounds are those of decryption.
    const DECRYPT: bool;
    /// The state carried from vector to vector.
    type State<V: Vector>: Copy;

    /// Returns the initial state, from the IV, counter or tweak.
    unsafe fn initial_state<V: Vector>(iv: &Block) -> Self::State<V>;
    /// Returns the input of the rounds for the vector at `at`, number `i` of its group.
    unsafe fn input<V: Vector>(state: &mut Self::State<V>, at: *const u8, i: usize) -> V;
    /// Returns the mask to xor onto the result of the rounds for the same vector. Called in the
    /// same order, after the rounds of the whole group.
    unsafe fn output<V: Vector>(state: &mut Self::State<V>, at: *const u8, i: usize) -> V;
    /// Writes the IV, counter or tweak of the next call.
    unsafe fn end<V: Vector>(state: Self::State<V>, iv: &mut Block);
}

/// Processes a text with AES-NI.
#[target_feature(enable = "aes,ssse3,pclmulqdq")]
pub(super) unsafe fn with_128<M: Mode>(keys: &[__m128i], iv: &mut Block, text: &mut [Block]) {
    // SAFETY: this function enables the instructions.
    unsafe { all::<__m128i, M>(keys, iv, text) };
}

/// Processes a text with VAES.
#[target_feature(enable = "avx2,aes,vaes,pclmulqdq,vpclmulqdq")]
pub(super) unsafe fn with_256<M: Mode>(keys: &[__m128i], iv: &mut Block, text: &mut [Block]) {
    // SAFETY: this function enables the instructions.
    unsafe { all::<__m256i, M>(keys, iv, text) };
}

/// Processes a text with VAES and AVX-512.
#[target_feature(enable = "avx512f,avx512bw,avx2,aes,vaes,pclmulqdq,vpclmulqdq")]
pub(super) unsafe fn with_512<M: Mode>(keys: &[__m128i], iv: &mut Block, text: &mut [Block]) {
    // SAFETY: this function enables the instructions.
    unsafe { all::<__m512i, M>(keys, iv, text) };
}

/// Processes a whole text: groups, then half a group, then single vectors, then single blocks.
#[inline(always)]
unsafe fn all<V: Vector, M: Mode>(keys: &[__m128i], iv: &mut Block, text: &mut [Block]) {
    let rest = text.len() % V::BLOCKS;
    let (vectors, blocks) = text.split_at_mut(text.len() - rest);
    // SAFETY: the slices hold whole vectors and whole blocks; the caller enabled the instructions.
    unsafe {
        if !vectors.is_empty() {
            run::<V, M>(keys, iv, vectors);
        }
        if !blocks.is_empty() {
            let mut state = M::initial_state::<__m128i>(iv);
            for block in blocks {
                group::<__m128i, M, 1>(keys, &mut state, block.as_mut_ptr());
            }
            M::end(state, iv);
        }
    }
}

/// Processes a text of whole vectors.
#[inline(always)]
unsafe fn run<V: Vector, M: Mode>(keys: &[__m128i], iv: &mut Block, text: &mut [Block]) {
    // SAFETY: as in `all`.
    unsafe {
        let mut state = M::initial_state::<V>(iv);
        let mut groups = text.chunks_exact_mut(GROUP * V::BLOCKS);
        for blocks in &mut groups {
            group::<V, M, GROUP>(keys, &mut state, blocks.as_mut_ptr().cast());
        }
        let mut halves = groups.into_remainder().chunks_exact_mut(GROUP / 2 * V::BLOCKS);
        for blocks in &mut halves {
            group::<V, M, { GROUP / 2 }>(keys, &mut state, blocks.as_mut_ptr().cast());
        }
        for blocks in halves.into_remainder().chunks_exact_mut(V::BLOCKS) {
            group::<V, M, 1>(keys, &mut state, blocks.as_mut_ptr().cast());
        }
        M::end(state, iv);
    }
}

/// Processes `N` vectors in place.
#[inline(always)]
unsafe fn group<V: Vector, M: Mode, const N: usize>(
    keys: &[__m128i],
    state: &mut M::State<V>,
    at: *mut u8,
) {
    let bytes = 16 * V::BLOCKS;
    let [first, middle @ .., last] = keys else { return };
    // SAFETY: `N` vectors can be read and written at `at`; the caller enabled the instructions.
    unsafe {
        let mut vectors = [V::zero(); N];
        let key = V::broadcast(*first);
        for (i, vector) in vectors.iter_mut().enumerate() {
            *vector = M::input::<V>(state, at.add(i * bytes), i).xor(key);
        }
        for key in middle {
            let key = V::broadcast(*key);
            for vector in &mut vectors {
                *vector = if M::DECRYPT { vector.decrypt(key) } else { vector.encrypt(key) };
            }
        }
        let key = V::broadcast(*last);
        for (i, vector) in vectors.iter().enumerate() {
            let at = at.add(i * bytes);
            let key = key.xor(M::output::<V>(state, at, i));
            let vector =
                if M::DECRYPT { vector.decrypt_last(key) } else { vector.encrypt_last(key) };
            vector.store(at);
        }
    }
}

/// ECB: each block passes through the rounds on its own.
pub(super) struct Ecb<const DECRYPT: bool>;
pub(super) type EcbEncrypt = Ecb<false>;
pub(super) type EcbDecrypt = Ecb<true>;

impl<const DECRYPT: bool> Mode for Ecb<DECRYPT> {
    const DECRYPT: bool = DECRYPT;
    type State<V: Vector> = ();

    #[inline(always)]
    unsafe fn initial_state<V: Vector>(_: &Block) {}
    #[inline(always)]
    unsafe fn input<V: Vector>(_: &mut (), at: *const u8, _: usize) -> V {
        // SAFETY: `at` points to a whole vector.
        unsafe { V::load(at) }
    }
    #[inline(always)]
    unsafe fn output<V: Vector>(_: &mut (), _: *const u8, _: usize) -> V {
        // SAFETY: the caller enabled the instructions.
        unsafe { V::zero() }
    }
    #[inline(always)]
    unsafe fn end<V: Vector>(_: (), _: &mut Block) {}
}

/// CBC decryption: the input is the block, the mask is the previous block. CFB decryption: the
/// other way round. The state is the ciphertext of the previous vector.
pub(super) struct Feedback<const CBC: bool>;
pub(super) type CbcDecrypt = Feedback<true>;
pub(super) type CfbDecrypt = Feedback<false>;

impl<const CBC: bool> Mode for Feedback<CBC> {
    const DECRYPT: bool = CBC;
    type State<V: Vector> = V;

    #[inline(always)]
    unsafe fn initial_state<V: Vector>(iv: &Block) -> V {
        // SAFETY: the caller enabled the instructions.
        unsafe { V::broadcast(super::load(iv)) }
    }
    #[inline(always)]
    unsafe fn input<V: Vector>(before: &mut V, at: *const u8, _: usize) -> V {
        // SAFETY: `at` points to a whole vector, which is not overwritten yet.
        unsafe { if CBC { V::load(at) } else { previous(before, at) } }
    }
    #[inline(always)]
    unsafe fn output<V: Vector>(before: &mut V, at: *const u8, _: usize) -> V {
        // SAFETY: as above.
        unsafe { if CBC { previous(before, at) } else { V::load(at) } }
    }
    #[inline(always)]
    unsafe fn end<V: Vector>(before: V, iv: &mut Block) {
        // SAFETY: the caller enabled the instructions.
        unsafe { super::store(iv, before.last()) };
    }
}

/// Returns the block before each block of the vector at `at`, which becomes `before`.
#[inline(always)]
unsafe fn previous<V: Vector>(before: &mut V, at: *const u8) -> V {
    // SAFETY: `at` points to a whole vector; the caller enabled the instructions.
    unsafe {
        let text = V::load(at);
        text.behind(std::mem::replace(before, text))
    }
}

/// Counter mode: the input is the counters, the mask is the text. The state is the next counters as
/// numbers, of which the first byte of a block is the most significant.
pub(super) struct Ctr;

impl Mode for Ctr {
    const DECRYPT: bool = false;
    type State<V: Vector> = V;

    #[inline(always)]
    unsafe fn initial_state<V: Vector>(iv: &Block) -> V {
        let first = u128::from_be_bytes(*iv);
        let counters = [0, 1, 2, 3].map(|i| first.wrapping_add(i));
        // SAFETY: a vector has at most four blocks.
        unsafe { V::load(counters.as_ptr().cast()) }
    }
    #[inline(always)]
    unsafe fn input<V: Vector>(counters: &mut V, _: *const u8, _: usize) -> V {
        // SAFETY: the caller enabled the instructions.
        unsafe { std::mem::replace(counters, counters.counted_on()).reversed() }
    }
    #[inline(always)]
    unsafe fn output<V: Vector>(_: &mut V, at: *const u8, _: usize) -> V {
        // SAFETY: `at` points to a whole vector.
        unsafe { V::load(at) }
    }
    #[inline(always)]
    unsafe fn end<V: Vector>(counters: V, iv: &mut Block) {
        // SAFETY: the caller enabled the instructions.
        unsafe { super::store(iv, counters.first().reversed()) };
    }
}

/// XTS: the tweak is xored before and after the rounds. The state is the next tweaks and the tweaks
/// of the current group.
pub(super) struct Xts<const DECRYPT: bool>;
pub(super) type XtsEncrypt = Xts<false>;
pub(super) type XtsDecrypt = Xts<true>;

impl<const DECRYPT: bool> Mode for Xts<DECRYPT> {
    const DECRYPT: bool = DECRYPT;
    type State<V: Vector> = (V, [V; GROUP]);

    #[inline(always)]
    unsafe fn initial_state<V: Vector>(iv: &Block) -> (V, [V; GROUP]) {
        let mut tweaks = [u128::from_le_bytes(*iv); 4];
        for i in 1..4 {
            tweaks[i] = times_x(tweaks[i - 1]);
        }
        // SAFETY: a vector has at most four blocks.
        unsafe { (V::load(tweaks.as_ptr().cast()), [V::zero(); GROUP]) }
    }
    #[inline(always)]
    unsafe fn input<V: Vector>(state: &mut (V, [V; GROUP]), at: *const u8, i: usize) -> V {
        let (next, tweaks) = state;
        // SAFETY: `at` points to a whole vector.
        unsafe {
            tweaks[i] = *next;
            *next = next.tweaked_on();
            V::load(at).xor(tweaks[i])
        }
    }
    #[inline(always)]
    unsafe fn output<V: Vector>(state: &mut (V, [V; GROUP]), _: *const u8, i: usize) -> V {
        state.1[i]
    }
    #[inline(always)]
    unsafe fn end<V: Vector>(state: (V, [V; GROUP]), iv: &mut Block) {
        // SAFETY: the caller enabled the instructions.
        unsafe { super::store(iv, state.0.first()) };
    }
}
