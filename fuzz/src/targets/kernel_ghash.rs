//! GHASH on its own. Invariant: every kernel and the portable code compute what NIST SP 800-38D
//! writes, bit by bit. No library here has GHASH without a cipher; `kernel_aes_gcm` compares it with
//! AWS-LC as a part of GCM.

use wraith_kernels::ghash::Ghash;

use crate::guarded::Buffer;
use crate::input::Input;
use crate::levels::same;

pub(crate) fn run(input: &[u8]) {
    let mut input = Input(input);
    let (place, len) = (input.place(), input.below(1600));
    let split = 16 * input.below(len / 16 + 1);
    let (key, first): ([u8; 16], [u8; 16]) = (input.content_array(), input.content_array());
    let first = u128::from_be_bytes(first);
    let text = input.content(len);
    let found = same(|| {
        let key = Ghash::new(&key);
        let text = Buffer::new(place, &text);
        let (before, behind) = text.split_at(split);
        [key.absorb(first, &text), key.absorb(key.absorb(first, before), behind)]
    });
    let expected = text.chunks(16).fold(first, |hash, block| {
        let mut padded = [0; 16];
        padded[..block.len()].copy_from_slice(block);
        product(hash ^ u128::from_be_bytes(padded), u128::from_be_bytes(key))
    });
    assert_eq!(found, [expected; 2]);
}

/// Multiplies bit by bit (SP 800-38D §6.3).
pub(super) fn product(a: u128, b: u128) -> u128 {
    let (mut sum, mut v) = (0, b);
    for bit in (0..128).rev() {
        sum ^= v & (a >> bit & 1).wrapping_neg();
        v = (v >> 1) ^ ((v & 1) * (0xe1 << 120));
    }
    sum
}

/// Returns the inverse: the power 2^128 - 2.
pub(super) fn inverse(a: u128) -> u128 {
    let (mut power, mut inverse) = (a, 1 << 127);
    for _ in 1..128 {
        power = product(power, power);
        inverse = product(inverse, power);
    }
    inverse
}
