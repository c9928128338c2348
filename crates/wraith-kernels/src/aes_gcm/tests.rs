//! Compares both widths, with keys of every size.

use super::{GcmKey, Ghash, Width};
use crate::tests::{bytes, unchecked};

fn check<const KEYS: usize>() {
    let key = bytes(4 * KEYS - 28);
    let widths = [Width::Bits256, Width::Bits512];
    let [Some(narrow), Some(wide)] = widths.map(|width| GcmKey::<KEYS>::new(&key, width)) else {
        return unchecked("this processor has not both widths");
    };
    for len in (0..1300).chain([4096, 8191, 8192]) {
        let (plain, aad, nonce) = (bytes(len), bytes(len * 7 % 601), [len as u8; 12]);
        let (mut text, mut expected) = (plain.clone(), plain.clone());
        let tag = narrow.seal(&nonce, &aad, &mut text);
        assert_eq!(tag, wide.seal(&nonce, &aad, &mut expected), "{len}");
        assert!(text == expected, "{len}");
        assert_eq!(tag, narrow.open(&nonce, &aad, &mut text), "{len}");
        assert!(text == plain, "{len}");

        let mac = |key: &GcmKey<KEYS>| {
            let mut mac = Ghash::new(&nonce);
            for piece in plain.chunks(1 + len * 5 % 700) {
                mac.update(key, piece);
            }
            mac.finish(key)
        };
        assert_eq!(mac(&narrow), mac(&wide), "{len}");
        assert_eq!(mac(&narrow), narrow.seal(&nonce, &plain, &mut []), "{len}");
    }
}

#[test]
fn both_widths_compute_the_same_with_keys_of_every_size() {
    check::<11>();
    check::<13>();
    check::<15>();
}
