//! The permutation Keccak-f[1600] on eight states at once. Invariant: every kernel permutes any state
//! as the portable code permutes it alone, and AWS-LC has the same SHAKE256 of a short message.

use wraith_aws_lc::keccak::Keccak;
use wraith_kernels::keccak::{State, permute};
use wraith_kernels::keccak_lanes::{self, STATES, States};

use crate::input::Input;
use crate::levels::{portable, same};

pub(crate) fn run(input: &[u8]) {
    let mut input = Input(input);
    let used = 1 + input.below(STATES);
    let words = input.words(25 * STATES);
    let states: States = words.as_chunks().0.try_into().expect("25 rows");
    let found = same(|| {
        let mut states = states;
        keccak_lanes::permute(&mut states, used);
        states.map(|row| row[..used].to_vec())
    });
    for lane in 0..used {
        let mut alone: State = states.map(|row| row[lane]);
        permute(&mut alone);
        assert_eq!(alone.to_vec(), found.iter().map(|row| row[lane]).collect::<Vec<_>>());
    }
    shake(&mut input);
    let mut none = states;
    portable(|| keccak_lanes::permute(&mut none, 0));
    assert_eq!(none, states, "no state was permuted");
}

/// Hashes a message that fits into one block, in every lane.
fn shake(input: &mut Input<'_>) {
    const RATE: usize = 136;
    let len = input.below(RATE);
    let mut block = input.content(len);
    let (mut hash, mut expected) = (Keccak::shake_256(), [0; RATE]);
    hash.update(&block);
    hash.squeeze(&mut expected);
    block.resize(RATE, 0);
    block[len] ^= 0x1f;
    block[RATE - 1] ^= 0x80;
    let found = same(|| {
        let mut states: States = [[0; STATES]; 25];
        for (row, word) in states.iter_mut().zip(block.as_chunks().0) {
            row.fill(u64::from_le_bytes(*word));
        }
        keccak_lanes::permute(&mut states, STATES);
        states
    });
    for lane in 0..STATES {
        let digest = found[..RATE / 8].iter().flat_map(|row| row[lane].to_le_bytes());
        assert!(digest.eq(expected), "AWS-LC, lane {lane}");
    }
}
