//! Products of big integers. Invariant: the kernel, the portable code and AWS-LC compute the same, and
//! the kernel refuses longer factors.

use wraith_aws_lc::reference;
use wraith_kernels::product::{LIMBS_MAX, by_columns, multiply};

use crate::guarded::Buffer;
use crate::input::Input;
use crate::levels::fastest;

pub(crate) fn run(input: &[u8]) {
    let mut input = Input(input);
    let lens = [(); 2].map(|()| usize::from(input.byte()) % (LIMBS_MAX + 2));
    let places = [(); 3].map(|()| input.place());
    let [a, b] = lens.map(|len| input.words(len));
    let mut twin = vec![0; a.len() + b.len()];
    by_columns(&mut twin, &a, &b);
    let bytes = |limbs: &[u64]| -> Vec<u8> {
        let bytes = limbs.iter().rev().flat_map(|limb| limb.to_be_bytes());
        bytes.skip_while(|byte| *byte == 0).collect()
    };
    assert_eq!(bytes(&twin), reference::product(&bytes(&a), &bytes(&b)), "AWS-LC");

    let before = vec![7; twin.len()];
    let mut out = Buffer::of_words(places[0], &before);
    let [mut first, mut second] =
        [(places[1], &a), (places[2], &b)].map(|(place, words)| Buffer::of_words(place, words));
    let (first, second) = (first.words(), second.words());
    let is_done = fastest(|| multiply(out.words(), first, second));
    let expected = if is_done { &twin } else { &before };
    assert_eq!(out.words(), expected, "the kernel");
    assert!(!is_done || a.len().max(b.len()) <= LIMBS_MAX, "the factors are short enough");
}
