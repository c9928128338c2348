//! The format of this crate's vector files: one vector per line, fields separated by spaces, bytes
//! in hexadecimal, `-` for an empty field.

use data_encoding::HEXLOWER_PERMISSIVE;

/// Returns the fields of each line.
pub(crate) fn lines(text: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    text.lines().map(|line| line.split(' ').collect())
}

/// Returns the bytes of a field.
pub(crate) fn bytes(field: &str) -> Vec<u8> {
    match field {
        "-" => Vec::new(),
        hex => HEXLOWER_PERMISSIVE.decode(hex.as_bytes()).unwrap(),
    }
}
