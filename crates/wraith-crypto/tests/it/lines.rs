//! Vectors in files of ours: one a line, fields apart by spaces, bytes in hexadecimal, `-` for none.

use data_encoding::HEXLOWER_PERMISSIVE;

/// The fields of each line.
pub(crate) fn lines(text: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    text.lines().map(|line| line.split(' ').collect())
}

/// The bytes of a field.
pub(crate) fn bytes(field: &str) -> Vec<u8> {
    match field {
        "-" => Vec::new(),
        hex => HEXLOWER_PERMISSIVE.decode(hex.as_bytes()).unwrap(),
    }
}
