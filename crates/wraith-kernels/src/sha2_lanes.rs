//! The compression functions of SHA-256 and SHA-512 (FIPS 180-4) on many states at once, each with
//! its own block.
//!
//! Each vector lane holds one state: sixteen or eight states with AVX-512, half as many with AVX2.
//! Without AVX-512 and AVX2, AWS-LC and [`sha512`](super::sha512) process one state after another;
//! they are also the references in the tests.
//!
//! [`chains`] applies SHA-256 repeatedly to its own output, the operation in which SLH-DSA (FIPS
//! 205) spends almost all of its time. [`chains`] keeps the values in registers. On Zen 4 with
//! AVX-512 an SLH-DSA-SHA2-128f key, 4560 hashes, takes 107 µs of processor time: 23 ns per hash,
//! including the work around it.
#![allow(unsafe_code)]

/// Number of chains that [`chains`] runs at once.
pub const CHAINS: usize = 16;

/// Sixteen chains, one in each lane. Words are big-endian in bytes.
pub struct Chains {
    /// The first words of the block. Only the upper half of the sixth is set: the value begins in
    /// its lower half.
    pub prefix: [[u32; CHAINS]; 6],
    /// The value, of which the first `WORDS` words of [`chains`] count. The digest replaces it.
    pub value: [[u32; CHAINS]; 8],
    /// The step of each chain's first hash.
    pub begin: [u8; CHAINS],
    /// The step before which each chain ends.
    pub end: [u8; CHAINS],
}

impl Chains {
    /// No chain.
    pub const EMPTY: Self = Self {
        prefix: [[0; CHAINS]; 6],
        value: [[0; CHAINS]; 8],
        begin: [0; CHAINS],
        end: [0; CHAINS],
    };
}

/// Returns the processor features in use, or `None` without a kernel.
#[must_use]
pub fn features() -> Option<&'static str> {
    #[cfg(all(target_arch = "x86_64", feature = "simd"))]
    for kernel in [&x86::LANES_512, &x86::LANES_256] {
        if kernel.is_available() {
            return Some(kernel.features());
        }
    }
    None
}

/// Hashes every value `end - begin` times.
///
/// In step j the block is prefix ‖ value ‖ padding, with j added to the last byte of the prefix. It
/// is the second block of a message; the first block led to `state`. `WORDS` is the length of the
/// value: 4, 6 or 8. Only in a chain of one step may that length differ from the digest's.
///
/// Returns `false`, with nothing changed, without a kernel or where one hash after another is
/// faster.
#[must_use]
#[allow(unused_variables, reason = "without a kernel")]
pub fn chains<const WORDS: usize>(state: &[u32; 8], chains: &mut Chains, used: usize) -> bool {
    #[cfg(all(target_arch = "x86_64", feature = "simd"))]
    {
        // A vector takes as long for one chain as for sixteen.
        if used > 5 && x86::LANES_512.is_available() {
            // SAFETY: the kernel is available, so the processor has the instructions.
            unsafe { x86::chains_512::<WORDS>(state, chains) };
            return true;
        }
        if used > 3 && x86::LANES_256.is_available() {
            // SAFETY: as above.
            unsafe { x86::chains_256::<WORDS>(state, chains) };
            return true;
        }
    }
    false
}

/// Returns the length of the message in bits: one earlier block, the 22 bytes of the prefix, and
/// the value.
const fn bits(words: usize) -> u32 {
    (64 + 22 + 4 * words as u32) * 8
}

/// Hashes one chain after another with `compress`: what [`chains`] computes, with a library or the
/// portable twin.
pub fn one_by_one<const WORDS: usize>(
    state: &[u32; 8],
    chains: &mut Chains,
    used: usize,
    compress: fn(&mut [u32; 8], &[u8]),
) {
    for lane in 0..used {
        let mut block = [0u8; 64];
        for (out, word) in block.as_chunks_mut::<4>().0.iter_mut().zip(&chains.prefix) {
            *out = word[lane].to_be_bytes();
        }
        block[22 + 4 * WORDS] = 0x80;
        block[60..].copy_from_slice(&bits(WORDS).to_be_bytes());
        let last = block[21];
        for step in chains.begin[lane]..chains.end[lane] {
            block[21] = last.wrapping_add(step);
            let value = &mut block[22..22 + 4 * WORDS];
            for (out, word) in value.as_chunks_mut::<4>().0.iter_mut().zip(&chains.value) {
                *out = word[lane].to_be_bytes();
            }
            let mut digest = *state;
            compress(&mut digest, &block);
            for (value, word) in chains.value.iter_mut().zip(digest) {
                value[lane] = word;
            }
        }
    }
}

macro_rules! many {
    ($(#[$meta:meta])* $name:ident, $word:ty, $block:literal, $lanes:literal, $avx512:ident, $avx2:ident) => {
        $(#[$meta])*
        ///
        /// `one` compresses blocks for states that do not fill a vector, and without a kernel.
        pub fn $name(
            states: &mut [[$word; 8]],
            blocks: &[[u8; $block]],
            one: fn(&mut [$word; 8], &[u8]),
        ) {
            assert_eq!(states.len(), blocks.len(), "a block for each state");
            let groups = states.chunks_mut($lanes).zip(blocks.chunks($lanes));
            for (states, blocks) in groups {
                #[cfg(all(target_arch = "x86_64", feature = "simd"))]
                if states.len() > $lanes / 4 {
                    if x86::LANES_512.is_available() {
                        // SAFETY: the kernel is available, so the processor has the instructions.
                        unsafe { x86::$avx512(states, blocks) };
                        continue;
                    }
                    if x86::LANES_256.is_available() {
                        // SAFETY: as above.
                        unsafe { x86::$avx2(states, blocks) };
                        continue;
                    }
                }
                for (state, block) in states.iter_mut().zip(blocks) {
                    one(state, block);
                }
            }
        }
    };
}

many!(
    /// Compresses one block of SHA-256 into each state.
    compress_many_256, u32, 64, 16, many_32_512, many_32_256
);
many!(
    /// Compresses one block of SHA-512 into each state.
    compress_many_512, u64, 128, 8, many_64_512, many_64_256
);

#[cfg(all(target_arch = "x86_64", feature = "simd"))]
pub(crate) mod x86 {
    use core::arch::x86_64::*;

    use super::{CHAINS, Chains, bits, one_by_one};
    use crate::detect::{Kernel, Purpose, needs};
    use crate::lanes::Lanes;
    use crate::self_test::Inputs;
    use crate::sha2::{self, K_256 as ROUND_32, K_512 as ROUND_64};

    pub(crate) static LANES_512: Kernel =
        Kernel::new("SHA-2 in lanes", needs::AVX512, Purpose::Keys, || {
            // SAFETY: the processor has the instructions when a self-test runs.
            unsafe { self_test(|s, c| chains_512::<4>(s, c), |s, b| many_64_512(s, b)) }
        });
    pub(crate) static LANES_256: Kernel =
        Kernel::new("SHA-2 in lanes", needs::AVX2, Purpose::Keys, || {
            // SAFETY: as above.
            unsafe { self_test(|s, c| chains_256::<4>(s, c), |s, b| many_64_256(s, b)) }
        });

    fn self_test(
        chains: impl Fn(&[u32; 8], &mut Chains),
        many: impl Fn(&mut [[u64; 8]], &[[u8; 128]]),
    ) -> bool {
        let mut inputs = Inputs::new();
        let mut word = || inputs.word() as u32;
        let state = std::array::from_fn(|_| word());
        let mut all = Chains::EMPTY;
        all.prefix.as_flattened_mut().iter_mut().for_each(|prefix| *prefix = word());
        all.prefix[5].iter_mut().for_each(|prefix| *prefix &= 0xfff0_0000);
        all.value.as_flattened_mut().iter_mut().for_each(|value| *value = word());
        (all.begin, all.end) = (std::array::from_fn(|i| i as u8 % 3), [4; CHAINS]);
        let mut expected = Chains { ..all };
        one_by_one::<4>(&state, &mut expected, CHAINS, sha2::compress_256);
        chains(&state, &mut all);

        let blocks: [[u8; 128]; 8] = std::array::from_fn(|_| inputs.bytes());
        let mut states: [[u64; 8]; 8] = std::array::from_fn(|_| inputs.words());
        let mut twins = states;
        for (state, block) in twins.iter_mut().zip(&blocks) {
            sha2::compress_512(state, block);
        }
        many(&mut states, &blocks);
        all.value[..4] == expected.value[..4] && states == twins
    }

    /// The differences between SHA-256 and SHA-512.
    trait Function<V>: Sized + 'static {
        const CONSTANTS: &'static [Self];
        fn sum_0(a: V) -> V;
        fn sum_1(e: V) -> V;
        fn sigma_0(w: V) -> V;
        fn sigma_1(w: V) -> V;
    }

    macro_rules! function {
        ($word:ty, $constants:expr, $a0:literal $a1:literal $a2:literal, $e0:literal $e1:literal $e2:literal,
         $s0:literal $s1:literal $s2:literal, $t0:literal $t1:literal $t2:literal) => {
            impl<V: Lanes<$word>> Function<V> for $word {
                const CONSTANTS: &'static [Self] = &$constants;

                #[inline(always)]
                fn sum_0(a: V) -> V {
                    V::parity(
                        a.rotate_right::<$a0>(),
                        a.rotate_right::<$a1>(),
                        a.rotate_right::<$a2>(),
                    )
                }
                #[inline(always)]
                fn sum_1(e: V) -> V {
                    V::parity(
                        e.rotate_right::<$e0>(),
                        e.rotate_right::<$e1>(),
                        e.rotate_right::<$e2>(),
                    )
                }
                #[inline(always)]
                fn sigma_0(w: V) -> V {
                    V::parity(
                        w.rotate_right::<$s0>(),
                        w.rotate_right::<$s1>(),
                        w.shift_right::<$s2>(),
                    )
                }
                #[inline(always)]
                fn sigma_1(w: V) -> V {
                    V::parity(
                        w.rotate_right::<$t0>(),
                        w.rotate_right::<$t1>(),
                        w.shift_right::<$t2>(),
                    )
                }
            }
        };
    }
    function!(u32, ROUND_32, 2 13 22, 6 11 25, 7 18 3, 17 19 10);
    function!(u64, ROUND_64, 28 34 39, 14 18 41, 1 8 7, 19 61 6);

    /// Returns the state after a block (FIPS 180-4, §6.2.2 and §6.4.2).
    #[inline(always)]
    fn rounds<W: Function<V> + Copy, V: Lanes<W>>(state: &[V; 8], mut w: [V; 16]) -> [V; 8] {
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
        let (constants, rest) = W::CONSTANTS.as_chunks::<16>();
        debug_assert!(rest.is_empty());
        for (turn, constants) in constants.iter().enumerate() {
            let more = turn + 1 < W::CONSTANTS.len() / 16;
            macro_rules! round {
                ($i:literal) => {{
                    let t = h.add(V::splat(constants[$i])).add(w[$i]);
                    let t = t.add(V::choice(e, f, g)).add(W::sum_1(e));
                    let top = t.add(W::sum_0(a)).add(V::majority(a, b, c));
                    (h, g, f, e, d, c, b, a) = (g, f, e, d.add(t), c, b, a, top);
                    if more {
                        let (early, late) =
                            (W::sigma_0(w[($i + 1) % 16]), W::sigma_1(w[($i + 14) % 16]));
                        w[$i] = w[$i].add(early).add(w[($i + 9) % 16].add(late));
                    }
                }};
            }
            macro_rules! all { ($($i:literal)*) => { $(round!($i);)* } }
            all!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
        }
        let after = [a, b, c, d, e, f, g, h];
        std::array::from_fn(|i| after[i].add(state[i]))
    }

    macro_rules! many {
        ($name:ident, $word:ty, $block:literal, $bytes:literal, $max:literal) => {
            #[inline(always)]
            fn $name<V: Lanes<$word>>(states: &mut [[$word; 8]], blocks: &[[u8; $block]]) {
                let groups = states.chunks_mut(V::LANES).zip(blocks.chunks(V::LANES));
                for (states, blocks) in groups {
                    let mut words = [[0; $max]; 16];
                    for (lane, block) in blocks.iter().enumerate() {
                        for (word, bytes) in words.iter_mut().zip(block.as_chunks::<$bytes>().0) {
                            word[lane] = <$word>::from_be_bytes(*bytes);
                        }
                    }
                    let mut columns = [[0; $max]; 8];
                    for (lane, state) in states.iter().enumerate() {
                        for (column, word) in columns.iter_mut().zip(state) {
                            column[lane] = *word;
                        }
                    }
                    let w = words.map(|word| V::load(&word));
                    let after = rounds(&columns.map(|column| V::load(&column)), w);
                    for (column, v) in columns.iter_mut().zip(after) {
                        v.store(column);
                    }
                    for (lane, state) in states.iter_mut().enumerate() {
                        for (word, column) in state.iter_mut().zip(&columns) {
                            *word = column[lane];
                        }
                    }
                }
            }
        };
    }
    many!(many_32, u32, 64, 4, 16);
    many!(many_64, u64, 128, 8, 8);

    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) fn many_32_512(states: &mut [[u32; 8]], blocks: &[[u8; 64]]) {
        many_32::<__m512i>(states, blocks);
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn many_32_256(states: &mut [[u32; 8]], blocks: &[[u8; 64]]) {
        many_32::<__m256i>(states, blocks);
    }

    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) fn many_64_512(states: &mut [[u64; 8]], blocks: &[[u8; 128]]) {
        many_64::<__m512i>(states, blocks);
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn many_64_256(states: &mut [[u64; 8]], blocks: &[[u8; 128]]) {
        many_64::<__m256i>(states, blocks);
    }

    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) fn chains_512<const WORDS: usize>(state: &[u32; 8], all: &mut Chains) {
        chains::<__m512i, WORDS>(state, all);
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn chains_256<const WORDS: usize>(state: &[u32; 8], all: &mut Chains) {
        chains::<__m256i, WORDS>(state, all);
    }

    #[inline(always)]
    fn chains<V: Lanes<u32>, const WORDS: usize>(state: &[u32; 8], all: &mut Chains) {
        let start = state.map(V::splat);
        let mut at = 0;
        while at < CHAINS {
            let range = at..at + V::LANES;
            let (begin, end) = (&all.begin[range.clone()], &all.end[range.clone()]);
            let first = begin.iter().copied().min().unwrap_or(0);
            let last = end.iter().copied().max().unwrap_or(0);
            let prefix: [V; 6] = std::array::from_fn(|i| V::load(&all.prefix[i][range.clone()]));
            let mut value: [V; 8] = std::array::from_fn(|i| V::load(&all.value[i][range.clone()]));
            for step in first..last {
                let mut w = [V::splat(0); 16];
                w[..6].copy_from_slice(&prefix);
                w[5] = w[5].add(V::splat(u32::from(step) << 16)).or(value[0].shift_right::<16>());
                for i in 1..WORDS {
                    w[5 + i] = value[i - 1].shift_left::<16>().or(value[i].shift_right::<16>());
                }
                w[5 + WORDS] = value[WORDS - 1].shift_left::<16>().or(V::splat(0x8000));
                w[15] = V::splat(bits(WORDS));
                let digest = rounds(&start, w);
                let mut running = [0; CHAINS];
                for (mask, (begin, end)) in running.iter_mut().zip(begin.iter().zip(end)) {
                    *mask = u32::from(*begin <= step && step < *end).wrapping_neg();
                }
                let running = V::load(&running);
                for (value, digest) in value.iter_mut().zip(digest) {
                    *value = V::choice(running, digest, *value);
                }
            }
            for (i, value) in value.into_iter().enumerate() {
                value.store(&mut all.value[i][range.clone()]);
            }
            at += V::LANES;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sha2::{compress_256, compress_512};
    use crate::tests::bytes;

    /// Returns `len` different words.
    fn words_32(len: usize) -> Vec<u32> {
        bytes(4 * len).as_chunks::<4>().0.iter().map(|b| u32::from_be_bytes(*b)).collect()
    }

    fn random_chains(seed: usize) -> Chains {
        let words = words_32(16 * 14 * (seed + 1));
        let words = &words[16 * 14 * seed..];
        let mut all = Chains::EMPTY;
        for (i, row) in all.prefix.iter_mut().chain(&mut all.value).enumerate() {
            row.copy_from_slice(&words[16 * i..][..16]);
        }
        for (i, word) in all.prefix[5].iter_mut().enumerate() {
            *word &= 0xfff0_0000;
            all.begin[i] = (seed + i) as u8 % 16;
            all.end[i] = (seed * 3 + i * 5) as u8 % 17;
        }
        all
    }

    fn compare<const WORDS: usize>(seed: usize) {
        let state: [u32; 8] = words_32(8).try_into().unwrap();
        let run = |chains: fn(&[u32; 8], &mut Chains)| {
            let mut all = random_chains(seed);
            chains(&state, &mut all);
            all.value
        };
        crate::tests::fast();
        let expected = run(|state, all| one_by_one::<WORDS>(state, all, CHAINS, compress_256));
        let ours = run(|state, all| {
            if !chains::<WORDS>(state, all, CHAINS) {
                one_by_one::<WORDS>(state, all, CHAINS, compress_256);
            }
        });
        assert_eq!(ours, expected);
        #[cfg(all(target_arch = "x86_64", feature = "simd"))]
        if x86::LANES_256.is_ready() {
            // SAFETY: the line above checked that the processor has the instructions.
            let halves = run(|state, all| unsafe { x86::chains_256::<WORDS>(state, all) });
            assert_eq!(halves, expected);
        }
    }

    #[test]
    fn chains_of_different_lengths_end_where_each_alone_does() {
        for seed in 0..40 {
            compare::<4>(seed);
            compare::<6>(seed);
            compare::<8>(seed);
        }
    }

    #[test]
    fn parallel_states_match_single_ones() {
        crate::tests::fast();
        for count in 0..40 {
            let blocks: Vec<[u8; 128]> = bytes(128 * count).as_chunks().0.to_vec();
            let short: Vec<[u8; 64]> = blocks.iter().map(|b| *b.first_chunk().unwrap()).collect();
            let words = words_32(8 * count);
            let small: Vec<[u32; 8]> = words.as_chunks().0.to_vec();
            let large: Vec<[u64; 8]> =
                small.iter().map(|s| s.map(|w| u64::from(w) << 20)).collect();
            let (mut alone_32, mut alone_64) = (small.clone(), large.clone());
            for (i, (a, b)) in alone_32.iter_mut().zip(&mut alone_64).enumerate() {
                compress_256(a, &short[i]);
                compress_512(b, &blocks[i]);
            }
            let (mut many_32, mut many_64) = (small.clone(), large.clone());
            compress_many_256(&mut many_32, &short, compress_256);
            compress_many_512(&mut many_64, &blocks, compress_512);
            assert_eq!((&many_32, &many_64), (&alone_32, &alone_64), "{count}");
            #[cfg(all(target_arch = "x86_64", feature = "simd"))]
            if x86::LANES_256.is_ready() {
                let (mut many_32, mut many_64) = (small, large);
                // SAFETY: the lines above checked that the processor has the instructions.
                unsafe {
                    x86::many_32_256(&mut many_32, &short);
                    x86::many_64_256(&mut many_64, &blocks);
                }
                assert_eq!((many_32, many_64), (alone_32, alone_64), "{count}");
            }
        }
    }
}
