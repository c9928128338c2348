//! Computes the lengths of handshake messages in advance, so that a buffer that is too small is
//! reported before anything changes.
//!
//! The count follows Noise (revision 34, §5.3 and §9.2): a public key is 32 bytes, and each part
//! encrypted under an established key has a tag. The hybrid extension adds ML-KEM's key (1184
//! bytes) to the first message, after its first key agreement if there is one, and the ciphertext
//! (1088 bytes) after `ee`.

use wraith_crypto::TAG_BYTES;
use wraith_session::{Pattern, Protocol};

const KEY_BYTES: usize = 32;
const KEM_KEY_BYTES: usize = 1184;
const KEM_CIPHERTEXT_BYTES: usize = 1088;

/// Returns the tokens of each message of a pattern (revision 34, §7.5).
const fn messages(pattern: Pattern) -> &'static [&'static [&'static str]] {
    match pattern {
        Pattern::XX => &[&["e"], &["e", "ee", "s", "es"], &["s", "se"]],
        Pattern::XK => &[&["e", "es"], &["e", "ee"], &["s", "se"]],
        Pattern::IK => &[&["e", "es", "s", "ss"], &["e", "ee", "se"]],
        Pattern::NK => &[&["e", "es"], &["e", "ee"]],
        Pattern::IX => &[&["e", "s"], &["e", "ee", "se", "s", "es"]],
    }
}

/// Returns the bytes of message `number` (from 0) without its payload.
pub fn overhead(protocol: Protocol, number: usize) -> usize {
    let mut has_key = protocol.psk == Some(0);
    let mut len = 0;
    for (at, tokens) in messages(protocol.pattern).iter().enumerate().take(number + 1) {
        len = 0;
        let tag = |has_key| if has_key { TAG_BYTES } else { 0 };
        let first_agreement = tokens.iter().position(|token| token.len() == 2);
        let kem_key_behind = first_agreement.unwrap_or(0);
        for (index, token) in tokens.iter().enumerate() {
            match *token {
                "e" => {
                    len += KEY_BYTES;
                    has_key |= protocol.psk.is_some();
                }
                "s" => len += KEY_BYTES + tag(has_key),
                _ => has_key = true,
            }
            if protocol.hybrid && at == 0 && index == kem_key_behind {
                len += KEM_KEY_BYTES + tag(has_key);
            }
            if protocol.hybrid && *token == "ee" {
                len += KEM_CIPHERTEXT_BYTES + TAG_BYTES;
            }
        }
        has_key |= protocol.psk == Some(at as u8 + 1);
        len += tag(has_key);
    }
    len
}

/// Returns whether message `number` contains a static key.
pub fn has_static_key(protocol: Protocol, number: usize) -> bool {
    messages(protocol.pattern).get(number).is_some_and(|tokens| tokens.contains(&"s"))
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha20Rng;
    use rand_chacha::rand_core::SeedableRng;
    use wraith_crypto::Suite;
    use wraith_session::{Handshake, HashFunction, ReadOutcome, StaticKey};
    use zeroize::Zeroizing;

    use super::*;

    fn run(protocol: Protocol) {
        let mut rng = ChaCha20Rng::from_seed([7; 32]);
        let keys = [StaticKey::generate(&mut rng), StaticKey::generate(&mut rng)];
        let mut sides = [Handshake::initiator(protocol), Handshake::responder(protocol)];
        if protocol.pattern != Pattern::NK {
            sides[0] = sides[0].clone().local(&keys[0]);
        }
        if protocol.pattern.knows_responder() {
            sides[0] = sides[0].clone().remote(*keys[1].public());
        }
        sides[1] = sides[1].clone().local(&keys[1]);
        if protocol.psk.is_some() {
            sides = sides.map(|side| side.psk(Zeroizing::new([1; 32])));
        }
        let mut sides = sides.map(|side| side.start(&mut rng).unwrap());
        for number in 0..usize::from(protocol.pattern.messages()) {
            let payload = vec![0; 10 * number];
            let message = sides[number % 2].write(&payload).unwrap();
            assert_eq!(
                message.len() - payload.len(),
                overhead(protocol, number),
                "{protocol} {number}"
            );
            let read = sides[1 - number % 2].read(&message).unwrap();
            assert_eq!(read, ReadOutcome::Payload(payload));
        }
    }

    #[test]
    fn the_length_of_each_message_is_known_in_advance() {
        for pattern in Pattern::ALL {
            for psk in (0..=pattern.messages()).map(Some).chain([None]) {
                for hybrid in [false, true] {
                    let (suite, hash) = (Suite::ChaCha20Poly1305, HashFunction::Blake2s);
                    run(Protocol { pattern, hybrid, psk, suite, hash });
                }
            }
        }
    }
}
