//! SM3. Invariant: the kernel, the portable code and the `sm3` crate compute the same digest of a
//! message in any pieces, and the same state from any state.

use sm3::Digest;
use wraith_kernels::sm3::compress;
use wraith_suite::hash::Sm3;

use crate::guarded::Buffer;
use crate::input::Input;
use crate::levels::same;

pub(crate) fn run(input: &[u8]) {
    let mut input = Input(input);
    let (place, len) = (input.place(), input.below(1600));
    let pieces = [(); 4].map(|()| input.below(len + 1));
    let state: [u8; 32] = input.content_array();
    let message = input.content(len);

    // The crate has no states, so that from another state there is only the twin.
    let words: [[u8; 4]; 8] = state.as_chunks().0.try_into().expect("eight words");
    same(|| {
        let mut state = words.map(u32::from_be_bytes);
        let blocks = Buffer::new(place, &message[..len / 64 * 64]);
        compress(&mut state, &blocks);
        state
    });
    let digest = same(|| {
        let (mut hash, mut rest) = (Sm3::new(), &message[..]);
        for len in pieces {
            let (piece, later) = rest.split_at(len.min(rest.len()));
            hash.update(&Buffer::new(place, piece));
            rest = later;
        }
        hash.update(rest);
        hash.finish()
    });
    assert_eq!(digest[..], sm3::Sm3::digest(&message)[..], "the crate sm3");
}
