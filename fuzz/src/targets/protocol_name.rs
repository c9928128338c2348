//! Names of handshakes. Invariant: an accepted name is exactly the name of the parsed protocol.

use wraith_session::Protocol;

pub(crate) fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(protocol) = text.parse::<Protocol>() else { return };
    assert_eq!(protocol.to_string(), text);
    assert!(protocol.psk.is_none_or(|position| position <= protocol.pattern.messages()));
}
