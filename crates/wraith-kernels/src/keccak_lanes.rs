//! The permutation Keccak-f\[1600\] (FIPS 202, §3) on eight states at once, one state in each vector
//! lane.
//!
//! AVX-512 permutes all eight states together, AVX2 twice four. Without AVX-512 and AVX2,
//! [`keccak`] permutes one state after another; it is also the reference in the
//! tests.
//!
//! On Zen 4 with AVX-512 an SLH-DSA-SHAKE-128f key, about 4500 permutations, takes 330 µs of
//! processor time: 73 ns per permutation, including the work around them.
#![allow(unsafe_code)]

use super::keccak;

/// Number of states that are permuted at once.
pub const STATES: usize = 8;

/// Eight states: word i of state j is `[i][j]`.
pub type States = [[u64; STATES]; 25];

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

/// Permutes the first `used` states. The other states are unspecified afterwards.
pub fn permute(states: &mut States, used: usize) {
    #[cfg(all(target_arch = "x86_64", feature = "simd"))]
    if used > 1 {
        if x86::LANES_512.is_available() {
            // SAFETY: the kernel is available, so the processor has the instructions.
            return unsafe { x86::permute_512(states) };
        }
        if x86::LANES_256.is_available() {
            // SAFETY: as above.
            return unsafe { x86::permute_256(states) };
        }
    }
    one_by_one(states, used);
}

fn one_by_one(states: &mut States, used: usize) {
    for lane in 0..used {
        let mut state = [0; 25];
        for (word, column) in state.iter_mut().zip(&*states) {
            *word = column[lane];
        }
        keccak::permute(&mut state);
        for (word, column) in state.iter().zip(states.iter_mut()) {
            column[lane] = *word;
        }
    }
}

#[cfg(all(target_arch = "x86_64", feature = "simd"))]
pub(crate) mod x86 {
    use core::arch::x86_64::*;

    use super::{STATES, States, one_by_one};
    use crate::detect::{Kernel, Purpose, needs};
    use crate::keccak::{RHO, ROUND};
    use crate::keccak_vectors::Lanes;
    use crate::self_test::Inputs;

    pub(crate) static LANES_512: Kernel =
        Kernel::new("Keccak in lanes", needs::AVX512, Purpose::Keys, || {
            // SAFETY: the processor has the instructions when a self-test runs.
            self_test(|states| unsafe { permute_512(states) })
        });
    pub(crate) static LANES_256: Kernel =
        Kernel::new("Keccak in lanes", needs::AVX2, Purpose::Keys, || {
            // SAFETY: as above.
            self_test(|states| unsafe { permute_256(states) })
        });

    fn self_test(permute: impl Fn(&mut States)) -> bool {
        let mut inputs = Inputs::new();
        let mut states: States = std::array::from_fn(|_| inputs.words());
        let mut expected = states;
        one_by_one(&mut expected, STATES);
        permute(&mut states);
        let mut zero = [[0; STATES]; 25];
        permute(&mut zero);
        // The first lane of the permutation of zero is published with Keccak.
        zero[0] == [0xf125_8f79_40e1_dde7; STATES] && states == expected
    }

    #[target_feature(enable = "avx512f")]
    pub(super) fn permute_512(states: &mut States) {
        permute::<__m512i>(states);
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn permute_256(states: &mut States) {
        permute::<__m256i>(states);
    }

    #[inline(always)]
    fn permute<V: Lanes>(states: &mut States) {
        let mut at = 0;
        while at < STATES {
            let mut state = [V::splat(0); 25];
            for (v, column) in state.iter_mut().zip(&*states) {
                *v = V::load(&column[at..]);
            }
            for constant in ROUND {
                state = round(&state, constant);
            }
            for (v, column) in state.into_iter().zip(states.iter_mut()) {
                v.store(&mut column[at..]);
            }
            at += V::LANES;
        }
    }

    /// Computes one round, in the same way as [`keccak`](crate::keccak).
    #[inline(always)]
    fn round<V: Lanes>(from: &[V; 25], constant: u64) -> [V; 25] {
        macro_rules! column {
            ($x:literal) => {
                V::parity(
                    V::parity(from[$x], from[$x + 5], from[$x + 10]),
                    from[$x + 15],
                    from[$x + 20],
                )
            };
        }
        let c = [column!(0), column!(1), column!(2), column!(3), column!(4)];
        let turned = [
            c[0].rotate_right::<63>(),
            c[1].rotate_right::<63>(),
            c[2].rotate_right::<63>(),
            c[3].rotate_right::<63>(),
            c[4].rotate_right::<63>(),
        ];
        let mut to = *from;
        macro_rules! planes { ($($y:literal)*) => {$(
            macro_rules! lane { ($x:literal) => {{
                const X: usize = ($x + 3 * $y) % 5;
                const AT: usize = X + 5 * $x;
                const RIGHT: i32 = (64 - RHO[AT].cast_signed()) % 64;
                V::parity(from[AT], c[(X + 4) % 5], turned[(X + 1) % 5]).rotate_right::<RIGHT>()
            }} }
            let b = [lane!(0), lane!(1), lane!(2), lane!(3), lane!(4)];
            to[5 * $y] = V::chi(b[0], b[1], b[2]);
            to[5 * $y + 1] = V::chi(b[1], b[2], b[3]);
            to[5 * $y + 2] = V::chi(b[2], b[3], b[4]);
            to[5 * $y + 3] = V::chi(b[3], b[4], b[0]);
            to[5 * $y + 4] = V::chi(b[4], b[0], b[1]);
        )*} }
        planes!(0 1 2 3 4);
        to[0] = to[0].xor(V::splat(constant));
        to
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::bytes;

    #[test]
    fn eight_states_are_permuted_as_each_alone() {
        crate::tests::fast();
        let words: Vec<u64> =
            bytes(1600 * 20).as_chunks::<8>().0.iter().map(|b| u64::from_le_bytes(*b)).collect();
        for (round, words) in words.chunks(200).enumerate() {
            let states: States = std::array::from_fn(|i| std::array::from_fn(|j| words[8 * i + j]));
            let used = round % STATES + 1;
            let (mut expected, mut chosen) = (states, states);
            one_by_one(&mut expected, STATES);
            permute(&mut chosen, used);
            let front = |states: &States| states.map(|row| row[..used].to_vec());
            assert_eq!(front(&chosen), front(&expected));
            #[cfg(all(target_arch = "x86_64", feature = "simd"))]
            {
                let mut other = states;
                if x86::LANES_256.is_ready() {
                    // SAFETY: the line above checked that the processor has the instructions.
                    unsafe { x86::permute_256(&mut other) };
                    assert_eq!(other, expected);
                }
            }
        }
    }
}
