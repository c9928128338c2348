//! Bencode for DHT messages: a reader without copies, and a writer.
//!
//! Invariant: the reader neither allocates nor recurses, however deep the nesting.

/// Most nested lists and dictionaries. DHT messages have three levels.
const MAX_DEPTH: usize = 8;
/// Most digits in a length. No datagram is longer than 65,535 bytes.
const MAX_LENGTH_DIGITS: usize = 5;

/// Splits off a string. Returns it and the remaining bytes.
pub fn string(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = bytes.iter().take(MAX_LENGTH_DIGITS + 1).position(|byte| *byte == b':')?;
    let digits = &bytes[..colon];
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let len = digits.iter().fold(0, |len, digit| len * 10 + usize::from(digit - b'0'));
    bytes[colon + 1..].split_at_checked(len)
}

/// Reads a string that fills `bytes`.
pub fn whole_string(bytes: &[u8]) -> Option<&[u8]> {
    string(bytes).and_then(|(text, rest)| rest.is_empty().then_some(text))
}

/// Reads an integer that fills `bytes`.
pub fn whole_integer(bytes: &[u8]) -> Option<i64> {
    let digits = bytes.strip_prefix(b"i")?.strip_suffix(b"e")?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Splits off a value of any type. Returns it and the remaining bytes.
pub fn value(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut rest = bytes;
    let mut depth = 0;
    loop {
        match rest.first()? {
            b'i' => {
                let end = rest.iter().position(|byte| *byte == b'e')?;
                rest = &rest[end + 1..];
            }
            b'l' | b'd' => {
                depth += 1;
                rest = &rest[1..];
                if depth > MAX_DEPTH {
                    return None;
                }
                continue;
            }
            b'e' if depth > 0 => {
                depth -= 1;
                rest = &rest[1..];
            }
            _ => rest = string(rest)?.1,
        }
        if depth == 0 {
            return Some(bytes.split_at(bytes.len() - rest.len()));
        }
    }
}

/// Returns the value of `key` in a dictionary. Any key order is accepted, because some nodes do not
/// sort.
pub fn entry<'a>(dict: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let mut rest = dict.strip_prefix(b"d")?;
    while rest.first()? != &b'e' {
        let (name, behind) = string(rest)?;
        let (found, behind) = value(behind)?;
        if name == key {
            return Some(found);
        }
        rest = behind;
    }
    None
}

/// Writes the entries of a dictionary. The caller keeps the keys in order.
#[derive(Debug)]
pub struct Writer(Vec<u8>);

impl Writer {
    /// Starts a dictionary.
    pub fn dict() -> Self {
        Self(vec![b'd'])
    }

    /// Appends `key` and a string.
    pub fn string(mut self, key: &str, value: &[u8]) -> Self {
        self.push_string(key.as_bytes());
        self.push_string(value);
        self
    }

    /// Appends `key` and an integer.
    pub fn integer(mut self, key: &str, value: i64) -> Self {
        self.push_string(key.as_bytes());
        self.0.extend_from_slice(format!("i{value}e").as_bytes());
        self
    }

    /// Appends `key` and an encoded value.
    pub fn nested(mut self, key: &str, value: &[u8]) -> Self {
        self.push_string(key.as_bytes());
        self.0.extend_from_slice(value);
        self
    }

    /// Ends the dictionary and returns its bytes.
    pub fn end(mut self) -> Vec<u8> {
        self.0.push(b'e');
        self.0
    }

    fn push_string(&mut self, value: &[u8]) {
        self.0.extend_from_slice(format!("{}:", value.len()).as_bytes());
        self.0.extend_from_slice(value);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn encoding_and_decoding_preserves_a_message() {
        let inner = Writer::dict().integer("n", -5).end();
        let dict = Writer::dict().nested("a", &inner).string("b", b"x:y").integer("c", 7).end();
        assert_eq!(dict, b"d1:ad1:ni-5ee1:b3:x:y1:ci7ee");
        assert_eq!(entry(&dict, b"a").and_then(|a| entry(a, b"n")), Some(&b"i-5e"[..]));
        assert_eq!(entry(&dict, b"b").and_then(whole_string), Some(&b"x:y"[..]));
        assert_eq!(entry(&dict, b"c").and_then(whole_integer), Some(7));
        assert_eq!(entry(&dict, b"d"), None);
    }

    #[test]
    fn deeply_nested_or_truncated_text_is_rejected() {
        assert_eq!(value(&[b'l'; 2000]), None);
        assert_eq!(
            value(&[[b'l'; MAX_DEPTH], [b'e'; MAX_DEPTH]].concat()).map(|v| v.0.len()),
            Some(16)
        );
        for cut in ["", "i5", "5:abc", "d1:a", "l", ":", "99999999:a", "123456:", "-1:a", "e"] {
            assert_eq!(value(cut.as_bytes()), None, "{cut}");
        }
        assert_eq!(entry(b"d1:ai1e", b"b"), None, "no end");
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(prop::sample::select(b"dle:i0159ax-".to_vec()), 0..200)) {
            if let Some((value, rest)) = value(&bytes) {
                prop_assert_eq!(value.len() + rest.len(), bytes.len());
            }
            let _ = (entry(&bytes, b"a"), whole_integer(&bytes), whole_string(&bytes));
        }
    }
}
