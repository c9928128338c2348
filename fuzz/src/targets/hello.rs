//! Decrypted payloads of handshake datagrams. The payload of the first handshake message (H1) may
//! come from any host that has the NodeId (public key) of the responder.

use wraith_noise::{FinalHello, InitiatorHello, ResponderHello, negotiate};

pub(crate) fn run(input: &[u8]) {
    let Some((which, payload)) = input.split_first() else { return };
    match which % 3 {
        0 => {
            let Ok(hello) = InitiatorHello::decode(payload) else { return };
            assert_eq!(InitiatorHello::decode(&hello.encode()).as_ref(), Ok(&hello));
            for aes in [false, true] {
                let suite = negotiate(&hello, u8::MAX, aes);
                assert!(suite.is_none_or(|suite| hello.suites & suite.bit() != 0));
            }
        }
        1 => {
            let Ok(hello) = ResponderHello::decode(payload) else { return };
            assert_eq!(ResponderHello::decode(&hello.encode()), Ok(hello));
        }
        _ => {
            let Ok(hello) = FinalHello::decode(payload) else { return };
            assert_eq!(FinalHello::decode(&hello.encode()), Ok(hello));
        }
    }
}
