//! Padding to Padmé buckets: a length reveals O(log log n) bits, for at most 12 % more bytes.
//! Source: Nikitin and others, "Reducing Metadata Leakage from Encrypted Files and Communication
//! with PURBs", 2019.
//!
//! A padded body is plaintext ‖ 0x80 ‖ zeros (ISO/IEC 7816-4).

const MARK: u8 = 0x80;

/// Returns the bucket length for `len` bytes: the smallest value of at least `len` with log₂ log₂
/// significant bits.
#[must_use]
pub const fn padme(len: usize) -> usize {
    if len < 2 {
        return len;
    }
    let exponent = len.ilog2();
    // `len` is at least 2, so the exponent is at least 1.
    let kept = exponent.ilog2() + 1;
    let mask = (1 << (exponent - kept)) - 1;
    (len + mask) & !mask
}

/// Returns the length of a padded body with `len` bytes of plaintext.
pub(super) const fn padded_len(len: usize) -> usize {
    padme(len + 1)
}

/// Writes the padding into `rest`, the part of the body after the plaintext.
pub(super) fn pad(rest: &mut [u8]) {
    rest.fill(0);
    rest[0] = MARK;
}

/// Returns the length of the plaintext in a padded body, or `None` if the padding is invalid.
pub(super) fn unpadded_len(body: &[u8]) -> Option<usize> {
    let len = body.iter().rposition(|&byte| byte != 0)?;
    (body[len] == MARK).then_some(len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_match_the_paper_and_never_add_more_than_12_percent() {
        assert_eq!([0, 1, 2, 8, 9, 17, 100, 1025].map(padme), [0, 1, 2, 8, 10, 18, 104, 1088]);
        for len in 1..100_000 {
            let bucket = padme(len);
            assert!(bucket >= len && bucket * 100 <= len * 112, "{len} in {bucket}");
            assert_eq!(padme(bucket), bucket);
        }
    }

    #[test]
    fn padding_is_removed_for_any_plaintext() {
        for text in [&b""[..], b"text", &[MARK], &[0, 0], &[MARK, 0]] {
            let mut body = text.to_vec();
            body.resize(padded_len(text.len()), 7);
            pad(&mut body[text.len()..]);
            assert_eq!(unpadded_len(&body), Some(text.len()));
        }
        assert_eq!(unpadded_len(&[]), None);
        assert_eq!(unpadded_len(&[0, 0]), None);
        assert_eq!(unpadded_len(b"text"), None);
    }
}
