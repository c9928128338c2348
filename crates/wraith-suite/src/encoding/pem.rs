//! PEM in the strict form of RFC 7468 §3: one block, lines of 64 characters, no text around it.
//! Lines end with LF or CRLF; the last line may have no line end.
//!
//! The characters of a private key are as secret as the key. None of them is used as an index or in
//! a branch.

use zeroize::Zeroizing;

use super::EncodingError;

const LINE_CHARS: usize = 64;

/// Encodes `der` as a block with `label`, which consists of capital letters and spaces.
#[must_use]
pub fn encode(label: &str, der: &[u8]) -> Zeroizing<String> {
    let chars = der.len().div_ceil(3) * 4;
    let room = 2 * label.len() + 32 + chars + chars.div_ceil(LINE_CHARS);
    let mut text = Zeroizing::new(String::with_capacity(room));
    for part in ["-----BEGIN ", label, "-----\n"] {
        text.push_str(part);
    }
    for line in der.chunks(LINE_CHARS / 4 * 3) {
        for bytes in line.chunks(3) {
            let value = |i: usize| u32::from(bytes.get(i).copied().unwrap_or(0));
            let group = value(0) << 16 | value(1) << 8 | value(2);
            for i in 0..4 {
                let sextet = (group >> (18 - 6 * i) & 63) as u8;
                text.push(if i <= bytes.len() { char::from(to_char(sextet)) } else { '=' });
            }
        }
        text.push('\n');
    }
    for part in ["-----END ", label, "-----\n"] {
        text.push_str(part);
    }
    debug_assert_eq!(text.len(), room, "it never had to move");
    text
}

/// Decodes `text`, one block with `label`.
///
/// # Errors
/// [`EncodingError::WrongLabel`] if the block has another label, [`EncodingError::NotPem`] if
/// `text` is not strict PEM.
pub fn decode(label: &str, text: &str) -> Result<Zeroizing<Vec<u8>>, EncodingError> {
    let (found, body) = strip(text).ok_or(EncodingError::NotPem)?;
    if found != label {
        return Err(EncodingError::WrongLabel);
    }
    let mut bytes = Zeroizing::new(Vec::with_capacity(body.len() / 4 * 3 + 3));
    let mut is_last = false;
    for line in body.split_terminator('\n') {
        let line = line.strip_suffix('\r').unwrap_or(line).as_bytes();
        let fits = line.len() <= LINE_CHARS && line.len() % 4 == 0 && !line.is_empty();
        if is_last || !fits {
            return Err(EncodingError::NotPem);
        }
        let padding = line.iter().rev().take_while(|&&c| c == b'=').count();
        is_last = padding > 0 || line.len() < LINE_CHARS;
        decode_line(line, padding, &mut bytes).ok_or(EncodingError::NotPem)?;
    }
    Ok(bytes)
}

/// Returns the label of the block `text`, and its lines.
fn strip(text: &str) -> Option<(&str, &str)> {
    let (first, rest) = text.strip_prefix("-----BEGIN ")?.split_once('\n')?;
    let label = first.strip_suffix('\r').unwrap_or(first).strip_suffix("-----")?;
    let rest = rest.strip_suffix("\r\n").or(rest.strip_suffix('\n')).unwrap_or(rest);
    let body = rest.strip_suffix("-----")?.strip_suffix(label)?.strip_suffix("-----END ")?;
    (body.is_empty() || body.ends_with('\n')).then_some((label, body))
}

/// Decodes `line`, of which the last `padding` characters are `=`, and appends the bytes. Returns
/// `None` if the line is not the canonical encoding of its bytes.
fn decode_line(line: &[u8], padding: usize, bytes: &mut Vec<u8>) -> Option<()> {
    if padding > 2 {
        return None;
    }
    let mut bad = 0;
    let groups = line.len() / 4;
    for (n, chars) in line.chunks_exact(4).enumerate() {
        let missing = if n + 1 == groups { padding } else { 0 };
        let mut group = 0u32;
        for &c in &chars[..4 - missing] {
            let sextet = from_char(c);
            bad |= sextet >> 8;
            group = group << 6 | u32::from(sextet as u8);
        }
        group <<= 6 * missing;
        bytes.extend_from_slice(&group.to_be_bytes()[1..4 - missing]);
        // The unused bits of the last character have to be zero.
        bad |= (group & ((1 << (8 * missing)) - 1)) as u16;
    }
    (bad == 0).then_some(())
}

/// Returns `yes` if `low <= c <= high`, else 0. Constant time.
fn within(c: u8, low: u8, high: u8, yes: u16) -> u16 {
    let c = u16::from(c);
    let outside = c.wrapping_sub(low.into()) | u16::from(high).wrapping_sub(c);
    yes & (outside >> 15).wrapping_sub(1)
}

/// Returns the character of a number below 64.
fn to_char(sextet: u8) -> u8 {
    let plus = |low, high, first: u8| within(sextet, low, high, u16::from(first.wrapping_sub(low)));
    let offset = plus(0, 25, b'A')
        | plus(26, 51, b'a')
        | plus(52, 61, b'0')
        | plus(62, 62, b'+')
        | plus(63, 63, b'/');
    sextet.wrapping_add(offset as u8)
}

/// Returns the number of a character, or 0x100 or more for an invalid character.
fn from_char(c: u8) -> u16 {
    let number = |low: u8, high, first: u8| {
        within(c, low, high, 0x100 | u16::from(c.wrapping_sub(low).wrapping_add(first)))
    };
    let found = number(b'A', b'Z', 0)
        | number(b'a', b'z', 26)
        | number(b'0', b'9', 52)
        | number(b'+', b'+', 62)
        | number(b'/', b'/', 63);
    found ^ 0x100
}

#[cfg(test)]
mod tests {
    use data_encoding::BASE64;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_length_comes_back_and_is_base64() {
        let bytes: Vec<u8> = (0..=255).cycle().take(1000).map(|b: u8| b.wrapping_mul(89)).collect();
        for len in 0..bytes.len() {
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
    fn every_character_has_its_number_or_none() {
        let alphabet: Vec<u8> = (0..64).map(to_char).collect();
        assert_eq!(alphabet, b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/");
        for c in 0..=255 {
            match alphabet.iter().position(|&a| a == c) {
                Some(number) => assert_eq!(usize::from(from_char(c)), number),
                None => assert!(from_char(c) >= 0x100, "{c}"),
            }
        }
    }

    #[test]
    fn non_strict_encodings_are_refused() {
        let good = "-----BEGIN X-----\nTQ==\n-----END X-----\n";
        assert_eq!(*decode("X", good).unwrap(), b"M");
        assert_eq!(decode("Y", good), Err(EncodingError::WrongLabel));
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
            assert_eq!(decode("X", bad), Err(EncodingError::NotPem), "{bad:?}");
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
