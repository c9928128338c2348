//! The vectors of other projects' tests, one module for each kind of algorithm. The folders of
//! `tests/vectors` have the vectors of one source each; `README.md` there describes the format.

mod agreements;
mod ciphers;
mod encryption;
mod generators;
mod hashes;
mod hpke;
mod kdfs;
mod kems;
mod macs;
mod pairs;
mod signatures;

use data_encoding::HEXLOWER;

/// Failures that one report names.
const REPORTED_MAX: usize = 20;

/// Defines a test for each file of vectors, from the function that checks one and their number.
macro_rules! published {
    ($($name:ident: $check:ident($file:literal, $count:literal);)*) => {
        $(
            #[test]
            fn $name() {
                let text = include_str!(concat!("../../vectors/", $file));
                $crate::published::each(text, $count, $check);
            }
        )*
    };
}
use published;

/// Checks each vector of `text`. There are `expected`.
fn each(
    text: &'static str,
    expected: usize,
    mut check: impl FnMut(&[&'static str]) -> Result<(), String>,
) {
    let mut above: Vec<&'static str> = Vec::new();
    let (mut count, mut wrong) = (0, Vec::new());
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
        let fields = line.split('|').enumerate();
        let fields = fields.map(|(i, field)| if field == "^" { above[i] } else { field });
        let fields: Vec<_> = fields.collect();
        if let Err(error) = check(&fields) {
            wrong.push(format!("line {}: {error}", at + 1));
        }
        (above, count) = (fields, count + 1);
    }
    let shown = wrong.iter().take(REPORTED_MAX).map(|line| format!("\n{line}")).collect::<String>();
    assert!(wrong.is_empty(), "{} of {count} vectors are wrong:{shown}", wrong.len());
    assert_eq!(count, expected, "every vector was read");
}

/// Returns the bytes of a field.
fn hex(field: &str) -> Vec<u8> {
    HEXLOWER.decode(field.as_bytes()).unwrap_or_else(|_| panic!("not hexadecimal: {field}"))
}

/// Checks that two results are equal.
fn same(what: &str, found: &[u8], expected: &[u8]) -> Result<(), String> {
    match found == expected {
        true => Ok(()),
        false => Err(format!("{what}: {}", HEXLOWER.encode(found))),
    }
}

/// Checks a condition.
fn ensure(what: &str, is_so: bool) -> Result<(), String> {
    if is_so { Ok(()) } else { Err(what.to_owned()) }
}

/// Turns an error of the library into a message.
fn message(error: impl std::fmt::Debug) -> String {
    format!("{error:?}")
}
