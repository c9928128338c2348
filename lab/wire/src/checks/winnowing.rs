//! Whether 16 bytes occur twice, at any offsets.
//!
//! The test uses winnowing (Schleimer, Wilkerson, Aiken 2003): of any 9 successive windows of 8
//! bytes it keeps the one with the smallest hash. So 16 bytes that occur twice have a window kept
//! in both places. In noise, no two kept windows are equal: of 64 MiB 13 million are kept, and two
//! of them are equal with a probability of 5 in a million.

use std::collections::VecDeque;

use super::CheckFigure;
use crate::finding::Figure;

/// Bytes of a window.
const WINDOW: usize = 8;
/// Successive windows of which one is kept.
const CHOICE: usize = 9;
/// Maximum number of bytes to examine.
const BYTES_MAX: usize = 64 << 20;

/// The kept windows.
#[derive(Clone, Debug, Default)]
pub struct Winnowed {
    bytes: usize,
    kept: Vec<u64>,
}

impl Winnowed {
    /// Adds a datagram, until there are 64 MiB.
    pub fn add(&mut self, bytes: &[u8]) {
        if self.bytes >= BYTES_MAX {
            return;
        }
        self.bytes += bytes.len();
        // Candidates in ascending order of hash and place: the first is the smallest of the last
        // nine.
        let mut candidates: VecDeque<(usize, u64)> = VecDeque::with_capacity(CHOICE);
        let mut chosen = None;
        for (at, window) in bytes.windows(WINDOW).enumerate() {
            let hash = mixed(u64::from_be_bytes(window.try_into().expect("windows of eight")));
            while candidates.back().is_some_and(|(_, other)| *other >= hash) {
                candidates.pop_back();
            }
            candidates.push_back((at, hash));
            if candidates[0].0 + CHOICE <= at {
                candidates.pop_front();
            }
            if at + 1 >= CHOICE && chosen != Some(candidates[0].0) {
                chosen = Some(candidates[0].0);
                self.kept.push(candidates[0].1);
            }
        }
    }

    /// The figure.
    pub fn figures(mut self) -> Vec<CheckFigure> {
        self.kept.sort_unstable();
        let again = self.kept.windows(2).filter(|pair| pair[0] == pair[1]).count();
        let figure = Figure::AtMost { value: again as f64, limit: 0.0 };
        vec![CheckFigure::new("16 bytes again anywhere", "all bytes", figure)]
    }
}

/// A bijective hash: the finalizer of SplitMix64.
fn mixed(x: u64) -> u64 {
    let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;

    use super::*;
    use crate::driver::random;

    fn repeats(packets: &[Vec<u8>]) -> bool {
        let mut winnowed = Winnowed::default();
        packets.iter().for_each(|packet| winnowed.add(packet));
        let Figure::AtMost { value, .. } = winnowed.figures()[0].figure else { unreachable!() };
        value > 0.0
    }

    #[test]
    fn sixteen_bytes_are_found_again_wherever_they_stand() {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        for at in 0..100 {
            let mut packets =
                vec![random::<300>(&mut rng).to_vec(), random::<200>(&mut rng).to_vec()];
            assert!(!repeats(&packets));
            let copied = packets[0][at..at + 16].to_vec();
            packets[1][184 - at..200 - at].copy_from_slice(&copied);
            assert!(repeats(&packets), "from {at}");
        }
    }
}
