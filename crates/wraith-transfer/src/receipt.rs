//! The receipt: the receiver's signature over the result of a transfer (SPEC §10.7).
//!
//! The receipt covers the transfer, the sender's identity, the manifest (names, sizes, modes,
//! times), and the result of every entry. The result of a file that the receiver has is the file's
//! root, the hash of its content. The result of an entry that the receiver lacks is the reason. The
//! sender checks the receipt against its own records before it reports success. Either side can
//! keep it as proof.

use thiserror::Error;
use wraith_crypto::{NodeId, SecretIdentity};

use crate::message::ReceiptBody;

/// Length of an encoded receipt in bytes: the signed fields and the signature. One byte more if the
/// receipt includes the durability.
pub const RECEIPT_BYTES: usize = SIGNED_BYTES - CONTEXT.len() + 64;

const CONTEXT: &[u8] = b"wraith/1 receipt";
const SIGNED_BYTES: usize = CONTEXT.len() + 16 + 32 + 32 + 32 + 5 * 8;

/// Whether the data covered by a receipt survives a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Durability {
    /// Contents, names and metadata are on stable storage, as far as the receiver's system reports.
    OnDisk = 1,
    /// One of the two sides did not want to wait: the kernel writes the data at its own pace.
    NotAwaited = 2,
    /// The destination cannot be synced: a pipe, a file system in memory, or one that refuses.
    CannotSync = 3,
}

impl Durability {
    /// Returns the variant for `number`. Numbers of later versions promise nothing.
    fn from_number(number: u8) -> Self {
        match number {
            1 => Self::OnDisk,
            2 => Self::NotAwaited,
            _ => Self::CannotSync,
        }
    }
}

/// Signed statement of the receiver about the entries that it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// Transfer ID (SPEC §10.3).
    pub transfer_id: [u8; 16],
    /// Identity of the sender.
    pub sender: NodeId,
    /// BLAKE3 of the manifest stream's entries.
    pub manifest: [u8; 32],
    /// Order-independent hash of (entry, root) for every verified file, and (entry, reason) for
    /// every entry that the receiver lacks ([`crate::ContentDigest`]).
    pub contents: [u8; 32],
    /// Number of files that the receiver has: from this connection, from an earlier one, or from
    /// before the transfer.
    pub verified: u64,
    /// Number of entries that the receiver lacks because it kept other objects with their names.
    pub kept: u64,
    /// Number of entries that the receiver lacks for another reason.
    pub failed: u64,
    /// Total bytes of the verified files.
    pub bytes: u64,
    /// Time of signing, by the receiver's clock.
    pub unix_seconds: u64,
    /// Durability as a number ([`Self::durability`]); `None` from versions that do not report it.
    pub durability_number: Option<u8>,
    /// Ed25519 signature by the receiver's identity over "wraith/1 receipt" and the fields above.
    pub signature: [u8; 64],
}

/// The signature is not the peer's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the receipt is not signed by the receiver")]
pub struct Forged;

impl Receipt {
    /// Returns an unsigned receipt of this time, without entries.
    pub(crate) fn unsigned(transfer_id: [u8; 16], sender: NodeId, unix_seconds: u64) -> Self {
        let zeros = Self::from_bytes(&[0; RECEIPT_BYTES]).expect("a receipt has this length");
        Self { transfer_id, sender, unix_seconds, ..zeros }
    }

    /// Fills in the signature.
    pub(crate) fn signed(mut self, identity: &SecretIdentity) -> Self {
        self.signature = identity.sign(&self.signed_bytes());
        self
    }

    /// Returns whether the covered data survives a power cut. `None`: the receiver's version does
    /// not report it and does not sync.
    pub fn durability(&self) -> Option<Durability> {
        self.durability_number.map(Durability::from_number)
    }

    /// Checks the signature against the receiver's NodeId.
    pub fn verify(&self, receiver: &NodeId) -> Result<(), Forged> {
        receiver.verify(&self.signed_bytes(), &self.signature).map_err(|_| Forged)
    }

    fn signed_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(SIGNED_BYTES + 1);
        out.extend_from_slice(CONTEXT);
        out.extend_from_slice(&self.transfer_id);
        out.extend_from_slice(&self.sender.0);
        out.extend_from_slice(&self.manifest);
        out.extend_from_slice(&self.contents);
        for n in [self.verified, self.kept, self.failed, self.bytes, self.unix_seconds] {
            out.extend_from_slice(&n.to_be_bytes());
        }
        out.extend(self.durability_number);
        out
    }

    /// Encodes the fields in their order, then the signature: [`RECEIPT_BYTES`] bytes, or one more.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = self.signed_bytes().split_off(CONTEXT.len());
        out.extend_from_slice(&self.signature);
        out
    }

    /// Decodes [`Self::to_bytes`] without checking the signature. `None` if the length is wrong.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (head, rest) = bytes.split_first_chunk::<112>()?;
        let (numbers, rest) = rest.split_at_checked(40)?;
        let (durability, signature) = rest.split_at_checked(rest.len().checked_sub(64)?)?;
        let durability_number = match durability {
            [] => None,
            [number] => Some(*number),
            _ => return None,
        };
        let number = |at: usize| {
            let bytes = numbers[at * 8..].first_chunk().expect("there are five numbers");
            u64::from_be_bytes(*bytes)
        };
        Some(Self {
            transfer_id: *head.first_chunk()?,
            sender: NodeId(*head[16..].first_chunk()?),
            manifest: *head[48..].first_chunk()?,
            contents: *head[80..].first_chunk()?,
            verified: number(0),
            kept: number(1),
            failed: number(2),
            bytes: number(3),
            unix_seconds: number(4),
            durability_number,
            signature: signature.try_into().ok()?,
        })
    }

    pub(crate) fn to_body(&self) -> ReceiptBody {
        let Self { transfer_id, manifest, contents, verified, kept, failed, bytes, .. } = *self;
        let Self { unix_seconds, durability_number, signature, .. } = *self;
        ReceiptBody {
            transfer_id,
            manifest,
            contents,
            verified,
            kept,
            failed,
            bytes,
            unix_seconds,
            signature,
            durability: durability_number,
            sender: self.sender.0,
        }
    }

    pub(crate) fn from_body(body: &ReceiptBody) -> Self {
        Self {
            transfer_id: body.transfer_id,
            sender: NodeId(body.sender),
            manifest: body.manifest,
            contents: body.contents,
            verified: body.verified,
            kept: body.kept,
            failed: body.failed,
            bytes: body.bytes,
            unix_seconds: body.unix_seconds,
            durability_number: body.durability,
            signature: body.signature,
        }
    }
}

/// Returns the value that replaces the manifest hash in the receipt of a byte stream, which has no
/// entries (SPEC §10.10).
pub(crate) fn no_manifest_hash() -> [u8; 32] {
    *blake3::hash(b"").as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receipt_is_read_as_it_was_written_and_any_other_length_is_none() {
        let identity = SecretIdentity::from_seed([1; 32]);
        let numbers = Receipt::unsigned([1; 16], NodeId([9; 32]), 8);
        let (manifest, contents) = ([2; 32], [3; 32]);
        let numbers = Receipt { verified: 4, kept: 5, failed: 6, bytes: 7, ..numbers };
        let receipt = Receipt { manifest, contents, ..numbers };
        for (durability_number, more) in [(None, 0), (Some(Durability::OnDisk as u8), 1)] {
            let receipt = Receipt { durability_number, ..receipt.clone() }.signed(&identity);
            let bytes = receipt.to_bytes();
            assert_eq!(bytes.len(), RECEIPT_BYTES + more);
            let read = Receipt::from_bytes(&bytes).unwrap();
            assert_eq!(read, receipt);
            assert_eq!(read.verify(&identity.node_id()), Ok(()));
            assert_eq!(Receipt::from_bytes(&bytes[1 + more..]), None);
            assert_eq!(Receipt::from_bytes(&[&bytes[..], &[0; 2]].concat()), None);
        }
        assert_eq!(Receipt::from_bytes(&[]), None);
    }

    #[test]
    fn the_durability_in_a_receipt_is_signed() {
        let identity = SecretIdentity::from_seed([1; 32]);
        let bytes = [0; RECEIPT_BYTES];
        let receipt = Receipt::from_bytes(&bytes).unwrap();
        let said = Receipt { durability_number: Some(2), ..receipt }.signed(&identity);
        assert_eq!(said.verify(&identity.node_id()), Ok(()));
        assert_eq!(said.durability(), Some(Durability::NotAwaited));
        for durability_number in [None, Some(1), Some(3), Some(0)] {
            let forged = Receipt { durability_number, ..said.clone() };
            assert_eq!(forged.verify(&identity.node_id()), Err(Forged));
            assert!(
                forged.durability() != Some(Durability::OnDisk) || durability_number == Some(1)
            );
        }
    }
}
