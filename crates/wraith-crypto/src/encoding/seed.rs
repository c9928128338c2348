//! The private keys of ML-KEM (RFC 9935 §6) and ML-DSA (RFC 9881 §6) inside a PKCS #8: a CHOICE of the seed, `[0]` IMPLICIT, of the
//! expanded key, and of a SEQUENCE of both.
//!
//! Written is the seed. Read is what has one: of an expanded key by itself it is not known what seed it is of.

use zeroize::Zeroizing;

use super::EncodingError;
use super::der::{self, Reader, SEQUENCE, Writer};

const SEED: u8 = der::context(0);

/// A seed, and what it expands to if that stands beside it. Nothing has checked lengths, nor that they belong together.
pub(crate) struct Seed<'a> {
    pub(crate) seed: &'a [u8],
    pub(crate) expanded: Option<&'a [u8]>,
}

impl<'a> Seed<'a> {
    /// Reads all of `der`.
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

/// The DER of `seed` alone.
pub(crate) fn to_der(seed: &[u8]) -> Zeroizing<Vec<u8>> {
    let mut writer = Writer::new();
    writer.write(SEED, seed);
    writer.finish()
}
