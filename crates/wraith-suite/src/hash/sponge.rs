//! The sponge of SHA-3 and SHAKE (FIPS 202, §4). Absorbing XORs input into the first RATE bytes of
//! the state; squeezing reads output from them.

use zeroize::optimization_barrier;

use wraith_kernels::keccak::{State, permute};

/// A sponge. Wiped when dropped.
///
/// Invariant: `at`, the position of the next byte in the state, is < RATE while absorbing and ≤
/// RATE while squeezing.
#[derive(Clone)]
pub(super) struct Sponge<const RATE: usize> {
    state: State,
    at: usize,
}

impl<const RATE: usize> Sponge<RATE> {
    pub(super) const fn new() -> Self {
        assert!(RATE.is_multiple_of(8) && RATE < 200, "the rate is whole lanes, and not all");
        Self { state: [0; 25], at: 0 }
    }

    fn add(&mut self, byte: u8, at: usize) {
        self.state[at / 8] ^= u64::from(byte) << (8 * (at % 8));
    }

    pub(super) fn absorb(&mut self, mut data: &[u8]) {
        // Bytes up to a lane boundary, then whole lanes, then the remaining bytes.
        while !self.at.is_multiple_of(8) {
            let Some((byte, rest)) = data.split_first() else { return };
            self.add(*byte, self.at);
            data = rest;
            self.advance(1);
        }
        let (lanes, tail) = data.as_chunks::<8>();
        let mut lanes = lanes;
        while !lanes.is_empty() {
            let (now, later) = lanes.split_at(lanes.len().min((RATE - self.at) / 8));
            for (lane, bytes) in self.state[self.at / 8..].iter_mut().zip(now) {
                *lane ^= u64::from_le_bytes(*bytes);
            }
            self.advance(8 * now.len());
            lanes = later;
        }
        for (i, byte) in tail.iter().enumerate() {
            self.add(*byte, self.at + i);
        }
        self.at += tail.len();
    }

    fn advance(&mut self, bytes: usize) {
        self.at += bytes;
        if self.at == RATE {
            permute(&mut self.state);
            self.at = 0;
        }
    }

    /// Ends absorbing. `suffix` holds the domain bits after the message, and the first padding bit.
    pub(super) fn pad(&mut self, suffix: u8) {
        self.add(suffix, self.at);
        self.add(0x80, RATE - 1);
        permute(&mut self.state);
        self.at = 0;
    }

    /// Writes the next output bytes. Requires [`Self::pad`] first.
    pub(super) fn squeeze(&mut self, out: &mut [u8]) {
        let mut out = out;
        while !out.is_empty() {
            if self.at == RATE {
                permute(&mut self.state);
                self.at = 0;
            }
            let now = out.len().min(RATE - self.at);
            let (head, rest) = out.split_at_mut(now);
            for (i, byte) in head.iter_mut().enumerate() {
                let at = self.at + i;
                *byte = self.state[at / 8].to_le_bytes()[at % 8];
            }
            self.at += now;
            out = rest;
        }
    }
}

impl<const RATE: usize> Drop for Sponge<RATE> {
    fn drop(&mut self) {
        self.state = [0; 25];
        optimization_barrier(self);
    }
}
