//! Sealed boxes: a text for one identity, from an anonymous sender.

use wraith_crypto::NodeId;
use wraith_session::sealed_box::{self, SEALED_BOX_OVERHEAD, SealedBoxError};
use zeroize::Zeroizing;

use crate::border::entry;
use crate::identity::{self, wraith_identity_t};
use crate::random::generator;
use crate::status::wraith_status_t::{WRAITH_INVALID_INPUT, WRAITH_UNAUTHENTIC};
use crate::status::{Failure, wraith_status_t};

/// Overhead of a box over its text, in bytes.
pub const WRAITH_SEALED_BOX_OVERHEAD: usize = 65;
const _: () = assert!(WRAITH_SEALED_BOX_OVERHEAD == SEALED_BOX_OVERHEAD);

impl From<SealedBoxError> for Failure {
    fn from(error: SealedBoxError) -> Self {
        let status = match error {
            SealedBoxError::Length | SealedBoxError::Recipient => WRAITH_INVALID_INPUT,
            SealedBoxError::Malformed | SealedBoxError::Unauthentic => WRAITH_UNAUTHENTIC,
        };
        Self::new(status, error.to_string())
    }
}

/// Seals `text` for the identity `node_id` (32 bytes): `text_len + WRAITH_SEALED_BOX_OVERHEAD`
/// bytes that only its owner can open. The author is not authenticated. `context` states the
/// purpose; it is not sent, and opening needs the same `context`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_sealed_box_seal(
    node_id: *const u8,
    node_id_len: usize,
    context: *const u8,
    context_len: usize,
    text: *const u8,
    text_len: usize,
    out: *mut u8,
    out_cap: usize,
    out_len: *mut usize,
) -> wraith_status_t {
    entry!(|call| {
        let to = NodeId(*call.array(node_id, node_id_len)?);
        let (context, text) = (call.bytes(context, context_len)?, call.bytes(text, text_len)?);
        let output = call.output(out, out_cap, out_len)?;
        output.room(text.len().saturating_add(SEALED_BOX_OVERHEAD))?;
        output.write(&sealed_box::seal(&mut *generator()?, &to, context, text)?)
    })
}

/// Opens a box. Its text is `sealed_len - WRAITH_SEALED_BOX_OVERHEAD` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_sealed_box_open(
    identity: wraith_identity_t,
    context: *const u8,
    context_len: usize,
    sealed: *const u8,
    sealed_len: usize,
    out: *mut u8,
    out_cap: usize,
    out_len: *mut usize,
) -> wraith_status_t {
    entry!(|call| {
        let (context, sealed) =
            (call.bytes(context, context_len)?, call.bytes(sealed, sealed_len)?);
        let output = call.output(out, out_cap, out_len)?;
        output.room(sealed.len().saturating_sub(SEALED_BOX_OVERHEAD))?;
        let text = sealed_box::open(&identity::identity(identity)?, context, sealed)?;
        output.write(&Zeroizing::new(text))
    })
}
