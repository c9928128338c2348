//! The compression function of SHA-512. Invariant: the kernel, its portable twin and AWS-LC compute the
//! same.

use wraith_aws_lc::hash::compress_sha_512;
use wraith_kernels::sha512::{compress, portable};

use crate::guarded::Buffer;
use crate::input::Input;
use crate::levels::same;

pub(crate) fn run(input: &[u8]) {
    let mut input = Input(input);
    let (place, blocks) = (input.place(), input.below(16));
    let state: [u64; 8] = input.words(8).try_into().expect("eight words");
    let data = input.content(128 * blocks);
    let found = same(|| {
        let (mut state, blocks) = (state, Buffer::new(place, &data));
        if !compress(&mut state, &blocks) {
            portable(&mut state, &blocks);
        }
        state
    });
    let mut expected = state;
    compress_sha_512(&mut expected, &data);
    assert_eq!(found, expected, "AWS-LC");
}
