//! Codes as people type them. Invariant: an accepted code survives formatting and parsing, and its
//! nameplate (its number) is in range.

use wraith_discovery::Code;

pub(crate) fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let _ = Code::looks_like(text);
    match text.parse::<Code>() {
        Ok(code) => {
            assert_eq!(code.to_string().parse().as_ref(), Ok(&code));
            assert!((1..=wraith_discovery::MAX_NAMEPLATE).contains(&code.nameplate()));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
