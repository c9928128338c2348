//! Small groups: one message is encrypted for each member with the ratchet of the two.
//!
//! Each pair has forward secrecy and heals as two do, and there is no key of the group that a member who leaves would take
//! along. The price is one message for each member. For more than [`GROUP_MAX`] members that is too much: MLS (RFC 9420) is made
//! for them, and is not here.
//!
//! What members say to one another need not be the same: nothing here shows that a sender gave all of them one text, or that
//! all have one list of members. Who needs that puts a hash of both in the text.

use rand_core::CryptoRng;
use thiserror::Error;
use wraith_crypto::NodeId;

use super::double_ratchet::Ratchet;
use super::error::{DecryptError, EncryptError};

/// How many others a group has at most.
pub const GROUP_MAX: usize = 32;

/// Why a group did not take a member, or a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum GroupError {
    /// There are [`GROUP_MAX`] members.
    #[error("a group has at most {GROUP_MAX} members")]
    Full,
    /// The peer of this ratchet is a member.
    #[error("a member already")]
    AlreadyMember,
    /// The ratchet belongs to another side than those that are there.
    #[error("a ratchet of another identity")]
    OtherIdentity,
    /// The sender is no member.
    #[error("not a member")]
    NotMember,
    /// The message did not open.
    #[error(transparent)]
    Message(#[from] DecryptError),
}

/// Conversations with up to [`GROUP_MAX`] peers, in which the same is said to all.
#[derive(Debug, Default)]
pub struct Group {
    /// In the order of their peers.
    members: Vec<Ratchet>,
}

impl Group {
    /// A group without members.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the peer of `ratchet`.
    ///
    /// # Errors
    /// [`GroupError::Full`], [`GroupError::AlreadyMember`] or [`GroupError::OtherIdentity`], with the ratchet.
    pub fn add(&mut self, ratchet: Ratchet) -> Result<(), (GroupError, Box<Ratchet>)> {
        if self.members.first().is_some_and(|member| member.me() != ratchet.me()) {
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

    /// Takes `peer` out of the group.
    pub fn remove(&mut self, peer: &NodeId) -> Option<Ratchet> {
        self.find(peer).ok().map(|at| self.members.remove(at))
    }

    /// The members, in the order of their NodeIds.
    pub fn members(&self) -> impl ExactSizeIterator<Item = NodeId> + '_ {
        self.members.iter().map(Ratchet::peer)
    }

    /// The conversation with `peer`, for saving it or setting its time.
    pub fn ratchet(&mut self, peer: &NodeId) -> Option<&mut Ratchet> {
        self.find(peer).ok().map(|at| &mut self.members[at])
    }

    /// The message of `plaintext` for each member.
    ///
    /// # Errors
    /// [`EncryptError`]. With some members a message may then be missing, which does no harm.
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

    /// Appends the plaintext of `message`, which `sender` sent, to `out`.
    ///
    /// # Errors
    /// [`GroupError::NotMember`], or [`GroupError::Message`]; nothing has changed then.
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
