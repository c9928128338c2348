//! Control messages. Invariant: an accepted message can be encoded and decoded again.

use wraith_transfer::message::Message;

pub(crate) fn run(input: &[u8]) {
    let Ok(message) = Message::from_bytes(input) else { return };
    let again = message.to_bytes();
    if !matches!(message, Message::Unknown(_)) {
        // Omitted fields take their defaults and numbers take their shortest form, so only the
        // values are equal, not the bytes.
        assert_eq!(Message::from_bytes(&again[4..]).as_ref(), Ok(&message));
    }
    assert!(!message.name().is_empty());
}
