//! PEM in the strict form of RFC 7468 §3: one block, lines of 64 characters, no text around it.
//! Lines end with LF or CRLF; the last line may have no line end. A block has at least one line.
//!
//! The characters of a private key are as secret as the key. None of them is used as an index or in
//! a branch.

use pem_rfc7468::{Decoder, LineEnding};
use zeroize::Zeroizing;

/// Reason why a text was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PemError {
    /// The text is not strict PEM (RFC 7468).
    #[error("the text is not strict PEM")]
    NotPem,
    /// The label of the PEM block names another type.
    #[error("the PEM block holds something else")]
    WrongLabel,
}

/// Encodes `der` as a block with `label`, which consists of capital letters and spaces.
#[must_use]
pub fn encode(label: &str, der: &[u8]) -> Zeroizing<String> {
    let text = pem_rfc7468::encode_string(label, LineEnding::LF, der);
    Zeroizing::new(text.expect("the label is valid"))
}

/// Decodes `text`, one block with `label`.
///
/// # Errors
/// [`PemError::WrongLabel`] if the block has another label, [`PemError::NotPem`] if `text` is not
/// strict PEM.
pub fn decode(label: &str, text: &str) -> Result<Zeroizing<Vec<u8>>, PemError> {
    let found = pem_rfc7468::decode_label(text.as_bytes()).map_err(|_| PemError::NotPem)?;
    if found != label {
        return Err(PemError::WrongLabel);
    }
    let mut decoder = Decoder::new(text.as_bytes()).map_err(|_| PemError::NotPem)?;
    let mut bytes = Zeroizing::new(vec![0; decoder.remaining_len()]);
    decoder.decode(&mut bytes).map_err(|_| PemError::NotPem)?;
    // The decoder also accepts text before the block and CR as a line end.
    let is_strict = encode(label, &bytes).lines().eq(text.lines());
    is_strict.then_some(bytes).ok_or(PemError::NotPem)
}

#[cfg(test)]
mod tests {
    use data_encoding::BASE64;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_length_comes_back_and_is_base64() {
        let bytes: Vec<u8> = (0..=255).cycle().take(1000).map(|b: u8| b.wrapping_mul(89)).collect();
        for len in 1..bytes.len() {
            let text = encode("X Y", &bytes[len / 3..len]);
            assert_eq!(*decode("X Y", &text).unwrap(), bytes[len / 3..len], "{len}");
            let crlf = text.replace('\n', "\r\n");
            assert_eq!(*decode("X Y", &crlf).unwrap(), bytes[len / 3..len], "{len}");
            assert_eq!(*decode("X Y", text.trim_end()).unwrap(), bytes[len / 3..len], "{len}");
            let lines: Vec<_> = text.lines().collect();
            let body = lines[1..lines.len() - 1].concat();
            assert_eq!(body, BASE64.encode(&bytes[len / 3..len]));
        }
    }

    #[test]
    fn non_strict_encodings_are_refused() {
        let good = "-----BEGIN X-----\nTQ==\n-----END X-----\n";
        assert_eq!(*decode("X", good).unwrap(), b"M");
        assert_eq!(decode("Y", good), Err(PemError::WrongLabel));
        let long = format!("-----BEGIN X-----\n{}\n-----END X-----\n", "TUFO".repeat(17));
        let short = format!("-----BEGIN X-----\n{}\n-----END X-----\n", "TUFO\n".repeat(2));
        for bad in [
            "",
            "TQ==",
            "-----BEGIN X-----\nTQ==\n-----END Y-----\n",
            "-----BEGIN X-----\nTQ==-----END X-----\n",
            "-----BEGIN X-----TQ==\n-----END X-----\n",
            "-----BEGIN X-----\nTQ==\n-----END X-----\n\n",
            "-----BEGIN X-----\nTQ==\n-----END X-----\r",
            " -----BEGIN X-----\nTQ==\n-----END X-----\n",
            "text\n-----BEGIN X-----\nTQ==\n-----END X-----\n",
            "-----BEGIN X-----\rTQ==\n-----END X-----\n",
            "-----BEGIN X-----\nTQ==\r-----END X-----\n",
            "-----BEGIN X-----\n-----END X-----\n",
            "-----BEGIN X-----\n\n-----END X-----\n",
            "-----BEGIN X-----\nA: b\n\nTQ==\n-----END X-----\n",
            "-----BEGIN X-----\n\nTQ==\n-----END X-----\n",
            "-----BEGIN X-----\nTQ== \n-----END X-----\n",
            "-----BEGIN X-----\nTQ=\n-----END X-----\n",
            "-----BEGIN X-----\nT===\n-----END X-----\n",
            "-----BEGIN X-----\n====\n-----END X-----\n",
            "-----BEGIN X-----\nTR==\n-----END X-----\n",
            "-----BEGIN X-----\nTQ==TUFO\n-----END X-----\n",
            "-----BEGIN X-----\nT-_O\n-----END X-----\n",
            &long,
            &short,
        ] {
            assert_eq!(decode("X", bad), Err(PemError::NotPem), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn non_canonical_pem_is_rejected(body in "[A-Za-z0-9+/=\n]{0,80}") {
            let text = format!("-----BEGIN X-----\n{body}\n-----END X-----\n");
            if let Ok(bytes) = decode("X", &text) {
                prop_assert_eq!(&*encode("X", &bytes), &text);
            }
        }
    }
}
