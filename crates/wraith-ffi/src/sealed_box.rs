//! Sealed boxes: a message for one identity from an anonymous sender, to which the recipient cannot
//! reply.

use wraith::session::{sealed_box, system_rng};

use crate::content::node_id;
use crate::error::WraithError;
use crate::identity::Identity;

/// Seals `text` for `recipient` (a NodeId). `context` states the purpose: it is not sent, and must
/// be equal when the box is opened. The box does not authenticate its sender, and has no ML-KEM
/// protection.
///
/// # Errors
/// [`WraithError::InvalidInput`] if the text is too long, or the NodeId is invalid.
#[uniffi::export]
pub fn seal_box(
    recipient: String,
    context: Vec<u8>,
    text: Vec<u8>,
) -> Result<Vec<u8>, WraithError> {
    let recipient = node_id(&recipient)?;
    Ok(sealed_box::seal(&mut system_rng()?, &recipient, &context, &text)?)
}

/// Opens a box that was made for `identity` and `context`.
///
/// # Errors
/// [`WraithError::Unauthentic`] if the bytes are no box, were made for another identity or context,
/// or were changed.
#[uniffi::export]
pub fn open_box(
    identity: &Identity,
    context: Vec<u8>,
    sealed: Vec<u8>,
) -> Result<Vec<u8>, WraithError> {
    Ok(sealed_box::open(&identity.0, &context, &sealed)?)
}
