//! Sealed boxes. Invariant: a box opens only for the identity and the context for which it was
//! sealed.

use wraith_session::sealed_box::{SEALED_BOX_OVERHEAD, open, seal};

use crate::input::Input;
use crate::session_world::{alice, bob, rng};

pub(crate) fn run(input: &[u8]) {
    let mut input = Input(input);
    let to = bob();
    let seal = |context, text| seal(&mut rng(1), &to.node_id(), context, text).expect("short");
    let (genuine, other) = (seal(b"context", b"text"), seal(b"another", b"text"));
    let sealed = match input.byte() {
        0 => input.0.to_vec(),
        _ => input.tampered(&genuine, &other),
    };
    let opened = open(&to, b"context", &sealed);
    assert_eq!(opened.is_ok(), sealed == genuine, "only the genuine box opens");
    if let Ok(text) = opened {
        assert_eq!((text.len() + SEALED_BOX_OVERHEAD, &text[..]), (sealed.len(), &b"text"[..]));
        assert!(open(&to, b"another", &sealed).is_err());
        assert!(open(&alice(), b"context", &sealed).is_err());
    }
}
