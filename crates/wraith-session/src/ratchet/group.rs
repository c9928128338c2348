//! Small groups: a message is encrypted for each member with a pairwise ratchet.
//!
//! Each pair has the forward secrecy and healing of a two-party conversation. There is no group key
//! that a leaving member could take along. The price is one message for each member. For more than
//! [`GROUP_MAX`] members use MLS (RFC 9420), which this crate does not provide.
//!
//! Limitation: nothing proves that a sender sent the same text to all members, or that all members
//! have the same member list. An application that needs this puts a hash of both into the text.

use rand_core::CryptoRng;
use thiserror::Error;
use wraith_crypto::NodeId;

use super::double_ratchet::Ratchet;
use super::error::{DecryptError, EncryptError};

/// Maximum number of members beside the local side.
pub const GROUP_MAX: usize = 32;

/// Why a group refused a member or a message.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum GroupError {
    /// The group has [`GROUP_MAX`] members.
    #[error("a group has at most {GROUP_MAX} members")]
    Full,
    /// The peer of this ratchet is already a member.
    #[error("the peer is already a member")]
    AlreadyMember,
    /// The ratchet has another local identity than the members' ratchets.
    #[error("the ratchet belongs to another local identity")]
    OtherIdentity,
    /// The sender is not a member.
    #[error("not a member")]
    NotMember,
    /// The message could not be decrypted.
    #[error(transparent)]
    Message(#[from] DecryptError),
}

/// Conversations with up to [`GROUP_MAX`] peers that receive the same messages.
#[derive(Debug, Default)]
pub struct Group {
    /// Sorted by peer.
    members: Vec<Ratchet>,
}

impl Group {
    /// Creates a group without members.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the peer of `ratchet`.
    ///
    /// # Errors
    /// [`GroupError::Full`], [`GroupError::AlreadyMember`] or [`GroupError::OtherIdentity`]. Each
    /// returns the ratchet.
    pub fn add(&mut self, ratchet: Ratchet) -> Result<(), (GroupError, Box<Ratchet>)> {
        if self.members.first().is_some_and(|member| member.local_id() != ratchet.local_id()) {
            return Err((GroupError::OtherIdentity, Box::new(ratchet)));
        }
        match self.find(&ratchet.peer()) {
            Ok(_) => Err((GroupError::AlreadyMember, Box::new(ratchet))),
            Err(_) if self.members.len() >= GROUP_MAX => Err((GroupError::Full, Box::new(ratchet))),
            Err(at) => {
                self.members.insert(at, ratchet);
                Ok(())
            }
        }
    }

    /// Removes `peer` from the group and returns its ratchet.
    pub fn remove(&mut self, peer: &NodeId) -> Option<Ratchet> {
        self.find(peer).ok().map(|at| self.members.remove(at))
    }

    /// Iterates over the members, sorted by NodeId.
    pub fn members(&self) -> impl ExactSizeIterator<Item = NodeId> + '_ {
        self.members.iter().map(Ratchet::peer)
    }

    /// Returns the ratchet of `peer`, for saving it or setting its time.
    pub fn ratchet(&mut self, peer: &NodeId) -> Option<&mut Ratchet> {
        self.find(peer).ok().map(|at| &mut self.members[at])
    }

    /// Encrypts `plaintext` for each member.
    ///
    /// # Errors
    /// [`EncryptError`]. Some members' ratchets may have advanced without a sent message, which is
    /// harmless.
    pub fn seal_for_all(
        &mut self,
        rng: &mut impl CryptoRng,
        aad: &[u8],
        plaintext: &[u8],
    ) -> Result<Vec<(NodeId, Vec<u8>)>, EncryptError> {
        let seal = |member: &mut Ratchet| {
            let mut message = Vec::new();
            member.encrypt(rng, aad, plaintext, &mut message)?;
            Ok((member.peer(), message))
        };
        self.members.iter_mut().map(seal).collect()
    }

    /// Decrypts `message` of `sender` and appends its plaintext to `out`.
    ///
    /// # Errors
    /// [`GroupError::NotMember`], or [`GroupError::Message`]; the state is unchanged.
    pub fn open(
        &mut self,
        sender: &NodeId,
        aad: &[u8],
        message: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), GroupError> {
        let member = self.ratchet(sender).ok_or(GroupError::NotMember)?;
        Ok(member.decrypt(aad, message, out)?)
    }

    fn find(&self, peer: &NodeId) -> Result<usize, usize> {
        self.members.binary_search_by_key(peer, Ratchet::peer)
    }
}
