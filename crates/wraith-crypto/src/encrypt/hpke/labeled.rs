//! HKDF with the labels of RFC 9180 §4: what is derived for one use of one suite is not what is for another.
#![allow(unsafe_code)]

use aws_lc_sys as aws;
use zeroize::Zeroizing;

use super::{Kdf, Kem, Suite};
use crate::aws::{Digest, succeeded};

const VERSION: &[u8] = b"HPKE-v1";

/// What a label is for: a KEM, or a suite.
#[derive(Clone, Debug)]
pub(super) struct SuiteId(Vec<u8>);

impl SuiteId {
    pub(super) fn kem(kem: Kem) -> Self {
        Self([&b"KEM"[..], &kem.id().to_be_bytes()].concat())
    }

    pub(super) fn hpke(suite: &Suite) -> Self {
        let ids = [suite.kem.id(), suite.kdf.id(), suite.aead.id()];
        Self([&b"HPKE"[..], &ids.map(u16::to_be_bytes).concat()].concat())
    }
}

/// A key derivation for one of them.
#[derive(Clone, Debug)]
pub(super) struct Labeled {
    pub(super) kdf: Kdf,
    pub(super) suite: SuiteId,
}

impl Kdf {
    const fn digest(self) -> Digest {
        match self {
            Self::Sha256 => Digest::Sha256,
            Self::Sha384 => Digest::Sha384,
            Self::Sha512 => Digest::Sha512,
        }
    }

    /// Bytes of what is extracted, Nh.
    pub(super) const fn bytes(self) -> usize {
        self.digest().bytes()
    }
}

impl Labeled {
    /// LabeledExtract.
    pub(super) fn extract(&self, salt: &[u8], label: &str, secret: &[u8]) -> Zeroizing<Vec<u8>> {
        let labeled = [VERSION, &self.suite.0, label.as_bytes(), secret].concat();
        let labeled = Zeroizing::new(labeled);
        let mut key = Zeroizing::new(vec![0; self.kdf.bytes()]);
        let (out, mut len, digest) = (key.as_mut_ptr(), key.len(), self.kdf.digest().evp());
        let (data, data_len) = (labeled.as_ptr(), labeled.len());
        // SAFETY: the buffers have the lengths passed, and `key` that of the hash.
        let made = unsafe {
            aws::HKDF_extract(out, &mut len, digest, data, data_len, salt.as_ptr(), salt.len())
        };
        assert!(succeeded(made) && len == key.len(), "every secret can be extracted of");
        key
    }

    /// Fills `out` by LabeledExpand. Whether the KDF can make as many bytes.
    #[must_use]
    pub(super) fn expand(&self, key: &[u8], label: &str, info: &[u8], out: &mut [u8]) -> bool {
        let Ok(len) = u16::try_from(out.len()) else {
            return false;
        };
        if out.is_empty() {
            return true;
        }
        let len = len.to_be_bytes();
        let labeled = [&len, VERSION, &self.suite.0, label.as_bytes(), info].concat();
        let (data, data_len) = (labeled.as_ptr(), labeled.len());
        let (to, to_len) = (out.as_mut_ptr(), out.len());
        let digest = self.kdf.digest().evp();
        // SAFETY: the buffers have the lengths passed.
        succeeded(unsafe {
            aws::HKDF_expand(to, to_len, digest, key.as_ptr(), key.len(), data, data_len)
        })
    }

    /// `len` bytes by LabeledExpand, which are few.
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
