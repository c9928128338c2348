//! Private keys as PKCS #8. Invariant: an accepted key is written and read back as the same key.

use wraith_suite::encoding::pkcs8::PrivateKeyInfo;
use wraith_suite::encoding::spki::SubjectPublicKeyInfo;
use wraith_suite::{encrypt, kem, sign};

pub(crate) fn run(input: &[u8]) {
    let Ok(info) = PrivateKeyInfo::from_der(input) else {
        // No algorithm may find a key where the envelope is invalid.
        assert!(sign::Algorithm::Ed25519.signing_key_pkcs8(input).is_err());
        return;
    };
    let der = info.to_der();
    assert_eq!(PrivateKeyInfo::from_der(&der), Ok(info));
    for algorithm in sign::Algorithm::ALL {
        let Ok(key) = algorithm.signing_key_pkcs8(input) else { continue };
        let (der, public) = (key.to_pkcs8(), key.verifying_key());
        let again = algorithm.signing_key_pkcs8(&der).expect("a key that was written");
        assert_eq!(again.to_pkcs8(), der);
        assert_eq!(again.verifying_key().to_spki(), public.to_spki());
        assert!(SubjectPublicKeyInfo::from_der(&public.to_spki()).is_ok());
    }
    for algorithm in encrypt::Algorithm::ALL {
        let Ok(key) = algorithm.decryption_key_pkcs8(input) else { continue };
        let der = key.to_pkcs8();
        let again = algorithm.decryption_key_pkcs8(&der).expect("a key that was written");
        assert_eq!(again.to_pkcs8(), der);
        assert_eq!(again.encryption_key().to_spki(), key.encryption_key().to_spki());
    }
    for algorithm in kem::Algorithm::ALL {
        let Ok(key) = algorithm.decapsulation_key_pkcs8(input) else { continue };
        let der = key.to_pkcs8().expect("a key that was read has a format");
        let again = algorithm.decapsulation_key_pkcs8(&der).expect("a key that was written");
        assert_eq!(again.to_raw(), key.to_raw());
        assert_eq!(again.encapsulation_key().to_raw(), key.encapsulation_key().to_raw());
    }
}
