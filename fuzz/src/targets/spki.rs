//! Public keys as SubjectPublicKeyInfo. Invariant: each key has one encoding, and an accepted key
//! is usable.

use wraith_suite::encoding::spki::SubjectPublicKeyInfo;
use wraith_suite::{encrypt, kem, sign};

pub(crate) fn run(input: &[u8]) {
    let Ok(info) = SubjectPublicKeyInfo::from_der(input) else {
        assert!(sign::Algorithm::Ed25519.verifying_key_spki(input).is_err());
        return;
    };
    assert_eq!(info.to_der(), input);
    for algorithm in sign::Algorithm::ALL {
        let Ok(key) = algorithm.verifying_key_spki(input) else { continue };
        assert_eq!(key.to_spki(), input);
        let again = algorithm.verifying_key(&key.to_raw()).expect("a key that was written");
        assert_eq!(again.to_spki(), key.to_spki());
        assert!(key.verify(b"message", &[0; 64]).is_err(), "a forged signature");
    }
    for algorithm in encrypt::Algorithm::ALL {
        let Ok(key) = algorithm.encryption_key_spki(input) else { continue };
        assert_eq!(key.to_spki(), input);
        assert!(key.encrypt(b"m").is_ok());
    }
    for algorithm in kem::Algorithm::ALL {
        let Ok(key) = algorithm.encapsulation_key_spki(input) else { continue };
        assert_eq!(key.to_spki().as_deref(), Some(input));
        assert!(key.encapsulate().is_ok());
    }
}
