//! Identities: Ed25519 keys whose public half is the NodeId.

use wraith_crypto::identity::{InvalidNodeId, SIGNATURE_BYTES};
use wraith_crypto::{NodeId, SecretIdentity};
use wraith_session::{NoRandomness, system_rng};

use crate::border::export;
use crate::status::Failure;
use crate::status::wraith_status_t::{WRAITH_NO_RANDOMNESS, WRAITH_UNAUTHENTIC};
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

pub(crate) static wraith_identity_t: Table<SecretIdentity> = Table::new(Kind::Identity);

impl From<NoRandomness> for Failure {
    fn from(error: NoRandomness) -> Self {
        Self::new(WRAITH_NO_RANDOMNESS, error.to_string())
    }
}

export!(
    /// Generates an identity from system randomness.
    pub fn wraith_identity_generate() -> Outcome<wraith_identity_t> {
        system_rng()?;
        wraith_identity_t.insert(SecretIdentity::generate())
    }

    /// Creates the identity of a seed: 32 secret random bytes.
    pub fn wraith_identity_from_seed(seed: Array<WRAITH_SEED_BYTES>) -> Outcome<wraith_identity_t> {
        wraith_identity_t.insert(SecretIdentity::from_seed(*seed))
    }

    /// Returns the seed of the identity: 32 bytes. Anyone with the seed can act as this identity.
    pub fn wraith_identity_seed(identity: Object<wraith_identity_t>, out: Buffer) -> Outcome {
        out.write(identity.seed())
    }

    /// Returns the NodeId of the identity: 32 bytes.
    pub fn wraith_identity_node_id(identity: Object<wraith_identity_t>, out: Buffer) -> Outcome {
        out.write(identity.node_id().as_bytes())
    }

    /// Signs `message` (Ed25519, RFC 8032): 64 bytes.
    pub fn wraith_identity_sign(
        identity: Object<wraith_identity_t>,
        message: Bytes,
        out: Buffer,
    ) -> Outcome {
        out.room(WRAITH_SIGNATURE_BYTES)?;
        out.write(&identity.sign(message))
    }

    /// Frees the identity and wipes its secret.
    pub fn wraith_identity_free(identity: wraith_identity_t) -> Outcome {
        wraith_identity_t.free(identity)
    }

    /// Verifies that `signature` (64 bytes) is the signature of `node_id` (32 bytes) over
    /// `message`. `WRAITH_UNAUTHENTIC` if it is not.
    pub fn wraith_node_id_verify(
        node_id: Array<WRAITH_NODE_ID_BYTES>,
        message: Bytes,
        signature: Array<WRAITH_SIGNATURE_BYTES>,
    ) -> Outcome {
        NodeId(*node_id).verify(message, signature).map_err(|_| {
            Failure::new(WRAITH_UNAUTHENTIC, "the signature is not valid for this identity")
        })
    }

    /// Returns a NodeId as text: 52 characters.
    pub fn wraith_node_id_to_text(node_id: Array<WRAITH_NODE_ID_BYTES>, out: Buffer) -> Outcome {
        out.write(NodeId(*node_id).to_string().as_bytes())
    }

    /// Parses a NodeId from its text, in upper or lower case: 32 bytes. `WRAITH_INVALID_INPUT` if
    /// it is no possible NodeId.
    pub fn wraith_node_id_from_text(text: Text, out: Buffer) -> Outcome {
        let node_id: Result<NodeId, InvalidNodeId> = text.parse();
        out.write(node_id.map_err(|error| Failure::input(error.to_string()))?.as_bytes())
    }
);
