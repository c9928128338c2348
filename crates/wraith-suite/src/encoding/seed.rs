//! Private keys of ML-KEM (RFC 9935 §6) and ML-DSA (RFC 9881 §6) inside PKCS #8: a CHOICE of the
//! seed, `[0]` IMPLICIT, the expanded key, and a SEQUENCE of both.
//!
//! This crate writes the form with the seed only, and reads the two forms that contain a seed. An
//! expanded key without a seed is rejected, because the seed cannot be recovered from it.

use zeroize::Zeroizing;

use super::EncodingError;
use super::der::{self, Reader, SEQUENCE, Writer};

const SEED: u8 = der::context(0);

/// A seed, and the expanded key beside it, if any. Neither their lengths nor their match has been
/// checked.
pub(crate) struct Seed<'a> {
    pub(crate) seed: &'a [u8],
    pub(crate) expanded: Option<&'a [u8]>,
}

impl<'a> Seed<'a> {
    /// Parses all of `der`.
    pub(crate) fn from_der(der: &'a [u8]) -> Result<Self, EncodingError> {
        let mut reader = Reader::new(der);
        let found = if reader.peek() == Some(SEQUENCE) {
            let mut both = reader.sequence()?;
            let (seed, expanded) = (both.octet_string()?, Some(both.octet_string()?));
            both.finish()?;
            Self { seed, expanded }
        } else {
            Self { seed: reader.read(SEED)?, expanded: None }
        };
        reader.finish()?;
        Ok(found)
    }
}

/// Returns the DER encoding of `seed` without an expanded key.
pub(crate) fn to_der(seed: &[u8]) -> Zeroizing<Vec<u8>> {
    let mut writer = Writer::new();
    writer.write(SEED, seed);
    writer.finish()
}
