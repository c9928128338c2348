//! Control messages: what is understood can be said again.

use wraith_transfer::message::Message;

pub(crate) fn run(input: &[u8]) {
    let Ok(message) = Message::from_bytes(input) else { return };
    let again = message.to_bytes();
    if !matches!(message, Message::Unknown(_)) {
        // Fields left out have their defaults, and numbers their shortest form, so only the meaning is the same.
        assert_eq!(Message::from_bytes(&again[4..]).as_ref(), Ok(&message));
    }
    assert!(!message.name().is_empty());
}
