//! HKDF with the labels of RFC 9180 §4. The labels separate the derived values of different uses
//! and suites.

use zeroize::Zeroizing;

use super::{Kdf, Suite};
use crate::{hash, kdf};

const VERSION: &[u8] = b"HPKE-v1";

/// `suite_id` in a label: identifies a KEM, or a suite.
#[derive(Clone, Debug)]
pub(super) struct SuiteId(Vec<u8>);

impl SuiteId {
    /// Returns that of a KEM by its registered ID.
    pub(super) fn kem(id: u16) -> Self {
        Self([&b"KEM"[..], &id.to_be_bytes()].concat())
    }

    pub(super) fn hpke(suite: &Suite) -> Self {
        let ids = [suite.kem.id(), suite.kdf.id(), suite.aead.id()];
        Self([&b"HPKE"[..], &ids.map(u16::to_be_bytes).concat()].concat())
    }
}

/// Key derivation for one `suite_id`.
#[derive(Clone, Debug)]
pub(super) struct LabeledKdf {
    pub(super) kdf: Kdf,
    pub(super) suite: SuiteId,
}

impl Kdf {
    const fn hash(self) -> hash::Algorithm {
        match self {
            Self::Sha256 => hash::Algorithm::Sha256,
            Self::Sha384 => hash::Algorithm::Sha384,
            Self::Sha512 => hash::Algorithm::Sha512,
        }
    }

    /// Returns Nh, the length of an extracted key in bytes.
    pub(super) const fn bytes(self) -> usize {
        self.hash().digest_bytes()
    }
}

impl LabeledKdf {
    /// LabeledExtract.
    pub(super) fn extract(&self, salt: &[u8], label: &str, secret: &[u8]) -> Zeroizing<Vec<u8>> {
        let labeled = [VERSION, &self.suite.0, label.as_bytes(), secret].concat();
        let labeled = Zeroizing::new(labeled);
        let mut key = Zeroizing::new(vec![0; self.kdf.bytes()]);
        kdf::hkdf_extract(self.kdf.hash(), salt, &labeled, &mut key)
            .expect("the hash has blocks, and the key its length");
        key
    }

    /// Fills `out` by LabeledExpand. Returns whether the KDF supports this length.
    #[must_use]
    pub(super) fn expand(&self, key: &[u8], label: &str, info: &[u8], out: &mut [u8]) -> bool {
        let Ok(len) = u16::try_from(out.len()) else {
            return false;
        };
        let len = len.to_be_bytes();
        let labeled = [&len, VERSION, &self.suite.0, label.as_bytes(), info].concat();
        kdf::hkdf_expand(self.kdf.hash(), key, &labeled, out).is_ok()
    }

    /// Returns `len` bytes by LabeledExpand. `len` has to be small.
    pub(super) fn expanded(
        &self,
        key: &[u8],
        label: &str,
        info: &[u8],
        len: usize,
    ) -> Zeroizing<Vec<u8>> {
        let mut bytes = Zeroizing::new(vec![0; len]);
        assert!(self.expand(key, label, info, &mut bytes), "keys and nonces are short");
        bytes
    }
}
