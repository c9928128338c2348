//! The permutation Keccak-f[1600] on eight states at once. Invariant: every kernel permutes any state
//! as the portable code permutes it alone.

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
    let mut none = states;
    portable(|| keccak_lanes::permute(&mut none, 0));
    assert_eq!(none, states, "no state was permuted");
}
