//! Sealed boxes: a text for one identity, from an anonymous sender.

use wraith_crypto::NodeId;
use wraith_session::sealed_box::{self, SEALED_BOX_OVERHEAD};
use wraith_session::system_rng;
use zeroize::Zeroizing;

use crate::border::export;
use crate::identity::{WRAITH_NODE_ID_BYTES, wraith_identity_t};

/// Overhead of a box over its text, in bytes.
pub const WRAITH_SEALED_BOX_OVERHEAD: usize = 65;
const _: () = assert!(WRAITH_SEALED_BOX_OVERHEAD == SEALED_BOX_OVERHEAD);

export!(
    /// Seals `text` for the identity `node_id` (32 bytes): `text_len + WRAITH_SEALED_BOX_OVERHEAD`
    /// bytes that only its owner can open. The author is not authenticated. `context` states the
    /// purpose; it is not sent, and opening needs the same `context`.
    pub fn wraith_sealed_box_seal(
        node_id: Array<WRAITH_NODE_ID_BYTES>,
        context: Bytes,
        text: Bytes,
        out: Buffer,
    ) -> Outcome {
        out.room(text.len().saturating_add(SEALED_BOX_OVERHEAD))?;
        out.write(&sealed_box::seal(&mut system_rng()?, &NodeId(*node_id), context, text)?)
    }

    /// Opens a box. Its text is `sealed_len - WRAITH_SEALED_BOX_OVERHEAD` bytes.
    pub fn wraith_sealed_box_open(
        identity: Object<wraith_identity_t>,
        context: Bytes,
        sealed: Bytes,
        out: Buffer,
    ) -> Outcome {
        out.room(sealed.len().saturating_sub(SEALED_BOX_OVERHEAD))?;
        let text = sealed_box::open(&identity, context, sealed)?;
        out.write(&Zeroizing::new(text))
    }
);
