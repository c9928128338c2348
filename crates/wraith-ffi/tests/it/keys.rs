//! Identities, secrets and hashes.

use wraith_ffi::{Blake3Hasher, Identity, SecretKey, SecretText, WraithError, hash, verify};

#[test]
fn a_signature_verifies_only_for_its_signer_and_message() {
    let identity = Identity::from_seed(vec![7; 32]).unwrap();
    let signature = identity.sign(b"yes".to_vec());
    let check = |message: &[u8], signature: &[u8]| {
        verify(identity.node_id(), message.to_vec(), signature.to_vec())
    };
    assert_eq!(check(b"yes", &signature), Ok(true));
    assert_eq!(check(b"no", &signature), Ok(false));
    assert_eq!(check(b"yes", &signature[1..]), Ok(false));
    let other = Identity::generate().unwrap().node_id();
    assert_eq!(verify(other, b"yes".to_vec(), signature), Ok(false));
}

#[test]
fn a_seed_or_key_of_wrong_length_and_a_mistyped_node_id_are_refused() {
    assert!(matches!(Identity::from_seed(vec![1; 31]), Err(WraithError::InvalidInput(_))));
    assert!(matches!(SecretKey::from_bytes(vec![1; 31]), Err(WraithError::InvalidInput(_))));
    let checked = verify("abc".into(), Vec::new(), Vec::new());
    assert!(matches!(checked, Err(WraithError::InvalidInput(_))));
}

#[test]
fn debug_forms_hide_secrets() {
    let identity = Identity::from_seed(vec![7; 32]).unwrap();
    assert!(!format!("{identity:?}").contains("7, 7"));
    let key = SecretKey::from_bytes(vec![77; 32]).unwrap();
    let text = SecretText::of("swordfish".into());
    assert_eq!(format!("{key:?} {text:?}"), "SecretKey { .. } SecretText { .. }");
    assert_eq!(key.bytes(), vec![77; 32]);
}

#[test]
fn hashing_in_pieces_gives_the_hash_of_the_whole() {
    let hasher = Blake3Hasher::new();
    hasher.update(b"wra".to_vec());
    hasher.update(b"ith".to_vec());
    assert_eq!(hasher.digest(), hash(b"wraith".to_vec()));
}
