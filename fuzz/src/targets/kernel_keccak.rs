//! The permutation Keccak-f[1600], of one state and of eight. Invariant: every kernel and the portable
//! code permute any state alike, and AWS-LC has the same digests of SHA-3 of a message in pieces.

use wraith_aws_lc::reference;
use wraith_kernels::keccak::{State, permute};
use wraith_kernels::keccak_lanes::{self, STATES, States};
use wraith_suite::hash::Algorithm;

use crate::input::Input;
use crate::levels::{portable, same};

const SHA_3: [Algorithm; 4] =
    [Algorithm::Sha3_224, Algorithm::Sha3_256, Algorithm::Sha3_384, Algorithm::Sha3_512];

pub(crate) fn run(input: &[u8]) {
    let mut input = Input(input);
    match input.byte() % 2 {
        0 => states(&mut input),
        _ => digests(&mut input),
    }
}

fn states(input: &mut Input<'_>) {
    let used = 1 + input.below(STATES);
    let words = input.words(25 * STATES);
    let states: States = words.as_chunks().0.try_into().expect("25 rows");
    let found = same(|| {
        let mut states = states;
        keccak_lanes::permute(&mut states, used);
        states.map(|row| row[..used].to_vec())
    });
    for lane in 0..used {
        let state: State = states.map(|row| row[lane]);
        let alone = same(|| {
            let mut state = state;
            permute(&mut state);
            state
        });
        assert_eq!(alone.to_vec(), found.iter().map(|row| row[lane]).collect::<Vec<_>>());
    }
    let mut none = states;
    portable(|| keccak_lanes::permute(&mut none, 0));
    assert_eq!(none, states, "no state was permuted");
}

fn digests(input: &mut Input<'_>) {
    let algorithm = SHA_3[usize::from(input.byte()) % SHA_3.len()];
    let len = input.below(1600);
    let pieces = [(); 4].map(|()| input.below(len + 1));
    let message = input.content(len);
    let digest = same(|| {
        let (mut hasher, mut rest) = (algorithm.hasher(), &message[..]);
        for len in pieces {
            let (piece, later) = rest.split_at(len.min(rest.len()));
            hasher.update(piece);
            rest = later;
        }
        hasher.update(rest);
        let mut digest = vec![0; algorithm.digest_bytes()];
        hasher.finish_into(&mut digest);
        digest
    });
    assert_eq!(Some(digest), reference::sha3(algorithm.digest_bytes(), &message), "{algorithm}");
}
