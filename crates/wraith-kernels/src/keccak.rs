//! The permutation Keccak-f\[1600\] (FIPS 202, §3).
//!
//! Each turn computes two rounds, from one array to another and back, so that no lane is copied.

/// The lanes: lane (x, y) is at index x + 5y.
pub type State = [u64; 25];

/// The round constants, from the shift register of §3.2.5.
pub(super) const ROUND: [u64; 24] = {
    let mut constants = [0; 24];
    let (mut register, mut i) = (1u8, 0);
    while i < 24 {
        let mut j = 0;
        while j < 7 {
            if register & 1 == 1 {
                constants[i] |= 1 << ((1 << j) - 1);
            }
            register = (register << 1) ^ ((register >> 7) * 0x71);
            j += 1;
        }
        i += 1;
    }
    constants
};

/// The rotation of each lane (§3.2.2), at index x + 5y.
pub(super) const RHO: [u32; 25] = {
    let mut rotations = [0; 25];
    let (mut x, mut y, mut t) = (1, 0, 0);
    while t < 24 {
        rotations[x + 5 * y] = (t + 1) * (t + 2) / 2 % 64;
        (x, y) = (y, (2 * x + 3 * y) % 5);
        t += 1;
    }
    rotations
};

/// Permutes `state`.
pub fn permute(state: &mut State) {
    let mut other = [0; 25];
    for [even, odd] in ROUND.as_chunks::<2>().0 {
        round(state, &mut other, *even);
        round(&other, state, *odd);
    }
}

#[inline(always)]
fn round(from: &State, to: &mut State, constant: u64) {
    let column = |x: usize| from[x] ^ from[x + 5] ^ from[x + 10] ^ from[x + 15] ^ from[x + 20];
    let c = [column(0), column(1), column(2), column(3), column(4)];
    let theta = |x: usize| c[(x + 4) % 5] ^ c[(x + 1) % 5].rotate_left(1);
    let d = [theta(0), theta(1), theta(2), theta(3), theta(4)];
    macro_rules! planes { ($($y:literal)*) => {$(
        // The lane that moves to (x, y), from its old place.
        macro_rules! lane { ($x:literal) => {{
            const X: usize = ($x + 3 * $y) % 5;
            const AT: usize = X + 5 * $x;
            (from[AT] ^ d[X]).rotate_left(RHO[AT])
        }} }
        let b = [lane!(0), lane!(1), lane!(2), lane!(3), lane!(4)];
        to[5 * $y] = b[0] ^ (!b[1] & b[2]);
        to[5 * $y + 1] = b[1] ^ (!b[2] & b[3]);
        to[5 * $y + 2] = b[2] ^ (!b[3] & b[4]);
        to[5 * $y + 3] = b[3] ^ (!b[4] & b[0]);
        to[5 * $y + 4] = b[4] ^ (!b[0] & b[1]);
    )*} }
    planes!(0 1 2 3 4);
    to[0] ^= constant;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::bytes;

    /// Computes the steps one after the other, as FIPS 202, §3.2 writes them.
    fn as_the_standard_writes_it(a: &mut State) {
        for constant in ROUND {
            let before = *a;
            let parity = |x: usize| (0..5).fold(0, |c, y| c ^ before[x % 5 + 5 * y]);
            for (i, lane) in a.iter_mut().enumerate() {
                *lane ^= parity(i % 5 + 4) ^ parity(i % 5 + 1).rotate_left(1);
            }
            let before = *a;
            for x in 0..5 {
                for y in 0..5 {
                    let i = x + 5 * y;
                    a[y + 5 * ((2 * x + 3 * y) % 5)] = before[i].rotate_left(RHO[i]);
                }
            }
            let before = *a;
            for (i, lane) in a.iter_mut().enumerate() {
                let row = i - i % 5;
                *lane ^= !before[row + (i + 1) % 5] & before[row + (i + 2) % 5];
            }
            a[0] ^= constant;
        }
    }

    #[test]
    fn it_is_as_the_standard_writes_it() {
        let seed = bytes(200 * 50);
        for state in seed.as_chunks::<200>().0 {
            let words = state.as_chunks::<8>().0;
            let mut expected: State = std::array::from_fn(|i| u64::from_le_bytes(words[i]));
            let mut permuted = expected;
            as_the_standard_writes_it(&mut expected);
            permute(&mut permuted);
            assert_eq!(permuted, expected);
        }
    }

    #[test]
    fn zero_is_permuted_to_the_published_state() {
        // The first lane after the first permutation of zero, from the Keccak team's
        // "KeccakF-1600-IntermediateValues".
        let mut state = [0; 25];
        permute(&mut state);
        assert_eq!(state[0], 0xf125_8f79_40e1_dde7);
    }
}
