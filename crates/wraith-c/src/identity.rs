//! Identities: Ed25519 keys whose public half is the NodeId.

use wraith_crypto::identity::SIGNATURE_BYTES;
use wraith_crypto::{NodeId, SecretIdentity};

use crate::border::entry;
use crate::random;
use crate::status::wraith_status_t::WRAITH_UNAUTHENTIC;
use crate::status::{Failure, Outcome, wraith_status_t};
use crate::table::{Kind, Table};

/// Bytes of a NodeId.
pub const WRAITH_NODE_ID_BYTES: usize = 32;
/// Characters of a NodeId as text.
pub const WRAITH_NODE_ID_TEXT: usize = 52;
/// Bytes of a seed.
pub const WRAITH_SEED_BYTES: usize = 32;
/// Bytes of a signature.
pub const WRAITH_SIGNATURE_BYTES: usize = 64;
const _: () = assert!(WRAITH_SIGNATURE_BYTES == SIGNATURE_BYTES);

/// An identity with its secret key.
pub type wraith_identity_t = u64;

static IDENTITIES: Table<SecretIdentity> = Table::new(Kind::Identity);

/// Returns the identity behind a handle.
pub(crate) fn identity(handle: wraith_identity_t) -> Outcome<SecretIdentity> {
    IDENTITIES.get(handle).map(|identity| SecretIdentity::clone(&identity))
}

/// Generates an identity from system randomness.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_identity_generate(out: *mut wraith_identity_t) -> wraith_status_t {
    entry!(|call| {
        let out = call.out(out)?;
        out.write(IDENTITIES.insert(SecretIdentity::from_seed(*random::seed()?))?);
        Ok(())
    })
}

/// Creates the identity of a seed: 32 secret random bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_identity_from_seed(
    seed: *const u8,
    seed_len: usize,
    out: *mut wraith_identity_t,
) -> wraith_status_t {
    entry!(|call| {
        let (seed, out) = (call.array::<WRAITH_SEED_BYTES>(seed, seed_len)?, call.out(out)?);
        out.write(IDENTITIES.insert(SecretIdentity::from_seed(*seed))?);
        Ok(())
    })
}

/// Returns the seed of the identity: 32 bytes. Anyone with the seed can act as this identity.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_identity_seed(
    identity: wraith_identity_t,
    out: *mut u8,
    out_cap: usize,
    out_len: *mut usize,
) -> wraith_status_t {
    entry!(|call| {
        let output = call.output(out, out_cap, out_len)?;
        output.write(IDENTITIES.get(identity)?.seed())
    })
}

/// Returns the NodeId of the identity: 32 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_identity_node_id(
    identity: wraith_identity_t,
    out: *mut u8,
    out_cap: usize,
    out_len: *mut usize,
) -> wraith_status_t {
    entry!(|call| {
        let output = call.output(out, out_cap, out_len)?;
        output.write(IDENTITIES.get(identity)?.node_id().as_bytes())
    })
}

/// Signs `message` (Ed25519, RFC 8032): 64 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_identity_sign(
    identity: wraith_identity_t,
    message: *const u8,
    message_len: usize,
    out: *mut u8,
    out_cap: usize,
    out_len: *mut usize,
) -> wraith_status_t {
    entry!(|call| {
        let (message, output) =
            (call.bytes(message, message_len)?, call.output(out, out_cap, out_len)?);
        output.room(WRAITH_SIGNATURE_BYTES)?;
        output.write(&IDENTITIES.get(identity)?.sign(message))
    })
}

/// Frees the identity and wipes its secret.
#[unsafe(no_mangle)]
pub extern "C" fn wraith_identity_free(identity: wraith_identity_t) -> wraith_status_t {
    entry!(|_call| IDENTITIES.remove(identity).map(drop))
}

/// Verifies that `signature` (64 bytes) is the signature of `node_id` (32 bytes) over `message`.
/// `WRAITH_UNAUTHENTIC` if it is not.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_node_id_verify(
    node_id: *const u8,
    node_id_len: usize,
    message: *const u8,
    message_len: usize,
    signature: *const u8,
    signature_len: usize,
) -> wraith_status_t {
    entry!(|call| {
        let node_id = NodeId(*call.array(node_id, node_id_len)?);
        let message = call.bytes(message, message_len)?;
        let signature = call.array(signature, signature_len)?;
        node_id.verify(message, signature).map_err(|_| {
            Failure::new(WRAITH_UNAUTHENTIC, "the signature is not valid for this identity")
        })
    })
}

/// Returns a NodeId as text: 52 characters.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_node_id_to_text(
    node_id: *const u8,
    node_id_len: usize,
    out: *mut u8,
    out_cap: usize,
    out_len: *mut usize,
) -> wraith_status_t {
    entry!(|call| {
        let node_id = NodeId(*call.array(node_id, node_id_len)?);
        call.output(out, out_cap, out_len)?.write(node_id.to_string().as_bytes())
    })
}

/// Parses a NodeId from its text, in upper or lower case: 32 bytes. `WRAITH_INVALID_INPUT` if it is
/// no possible NodeId.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_node_id_from_text(
    text: *const u8,
    text_len: usize,
    out: *mut u8,
    out_cap: usize,
    out_len: *mut usize,
) -> wraith_status_t {
    entry!(|call| {
        let node_id: NodeId = call.text(text, text_len)?.parse().map_err(
            |error: wraith_crypto::identity::InvalidNodeId| Failure::input(error.to_string()),
        )?;
        call.output(out, out_cap, out_len)?.write(node_id.as_bytes())
    })
}
