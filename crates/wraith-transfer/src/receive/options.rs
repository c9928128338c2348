//! What a receiver is told to do, and what it says in the end.

use std::path::PathBuf;
use std::sync::Arc;

use wraith_crypto::{NodeId, SecretIdentity};
use wraith_files::OnConflict;

use super::preview::{Conflicts, Proposal};
use super::shown::Shown;
use super::stream::StreamTarget;
use crate::cancel::Cancel;
use crate::error::{Role, TransferError};
use crate::events::Events;
use crate::message::Offer;
use crate::parallel::ParallelConnections;
use crate::progress::Progress;
use crate::receipt::Receipt;

/// The answer to an offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Fetch it.
    Accept,
    /// Fetch it, and do this about names that are taken, whatever [`ReceiveOptions::on_conflict`] says.
    AcceptWith(Conflicts),
    /// The same, and of what comes only what was shown.
    AcceptShown(Conflicts, Shown),
    /// Do not; the sender is told why (may be empty).
    Refuse(String),
    /// Not now: this was only a look. The sender goes on waiting.
    Later,
}

impl Decision {
    /// Whether it is fetched.
    pub fn is_yes(&self) -> bool {
        matches!(self, Self::Accept | Self::AcceptWith(_) | Self::AcceptShown(..))
    }
}

/// Asked once, with the offer, before anything is fetched; may take as long as a person needs.
pub type Decide<'a> = dyn FnMut(&Proposal<'_>) -> Decision + Send + 'a;

/// What to fetch, where to, and who wants to know.
pub struct ReceiveOptions<'a> {
    /// The directory that everything is created in; made, with its parents, when the offer is accepted.
    pub target: PathBuf,
    /// The capability secret of the ticket.
    pub secret: [u8; 16],
    /// The same on every connection of one run of the program, another in every run.
    pub instance: Option<u64>,
    /// Signs the receipt; must be the identity the connection was made with.
    pub identity: SecretIdentity,
    /// What to do where a different file is in the way.
    pub on_conflict: OnConflict,
    /// Where it goes if it is one stream of bytes.
    pub stream: StreamTarget,
    /// Ask the sender to send no more than this many bytes a second.
    pub rate: Option<u64>,
    /// Look at the names before the offer is decided, so that [`Proposal::preview`] has them.
    pub preview: bool,
    /// Take a few small files along with the offer, before they are asked for, if nothing is left here of an earlier connection: for
    /// who accepts whatever comes.
    pub push: bool,
    /// Accepts or refuses the offer.
    pub decide: Box<Decide<'a>>,
    /// Further connections, if the sender makes them too.
    pub parallel: ParallelConnections,
    /// Of files of which an old copy is in the way, fetch only what differs, if the sender can tell.
    pub delta: bool,
    /// Take over all permissions, not only those that the umask leaves.
    pub keep_modes: bool,
    /// Write everything through to the disk before the receipt is signed, and every content before its name, unless the sender
    /// does not want to wait for it.
    pub sync: bool,
    /// Live counters.
    pub progress: Arc<Progress>,
    /// Told what happens.
    pub events: Arc<dyn Events>,
    /// Stops it from another thread.
    pub cancel: Cancel,
}

impl<'a> ReceiveOptions<'a> {
    /// Options that accept everything, rename on conflict, and tell nobody anything.
    pub fn new(target: PathBuf, secret: [u8; 16], identity: SecretIdentity) -> Self {
        Self {
            target,
            secret,
            instance: None,
            identity,
            on_conflict: OnConflict::Rename,
            stream: StreamTarget::folder(),
            rate: None,
            parallel: ParallelConnections::default(),
            preview: false,
            push: false,
            decide: Box::new(|_| Decision::Accept),
            delta: true,
            keep_modes: false,
            sync: true,
            progress: Arc::default(),
            events: Arc::new(()),
            cancel: Cancel::default(),
        }
    }
}

impl std::fmt::Debug for ReceiveOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReceiveOptions").field("target", &self.target).finish_non_exhaustive()
    }
}

/// How a transfer ended at the receiver: every file that is not counted as failed is here, verified, under its name.
#[derive(Clone, Debug)]
pub struct ReceiveReport {
    /// What was offered.
    pub offer: Offer,
    /// What this side signed.
    pub receipt: Receipt,
    /// Who sent it.
    pub sender: NodeId,
    /// Files that were moved, whole or in part.
    pub files: u64,
    /// Bytes of file content that came over the connection.
    pub bytes_moved: u64,
    /// Bytes of all its datagrams, both ways.
    pub wire_bytes: u64,
    /// Connections that carried the data.
    pub connections: u64,
    /// Files that were here already.
    pub already_here: u64,
    /// Files left alone because a different one is in the way ([`OnConflict::Skip`]).
    pub skipped: u64,
    /// Files that did not arrive.
    pub failed: u64,
    /// False if the sender vanished before it could confirm that it has the receipt.
    pub confirmed: bool,
}

impl ReceiveReport {
    /// Files, folders and links that the sender could not offer, as it says.
    pub fn left_out(&self) -> u64 {
        self.offer.left_out.unwrap_or(0)
    }

    /// [`TransferError::Partial`] if anything is missing.
    pub fn outcome(&self) -> Result<(), TransferError> {
        TransferError::partial(Role::Receiver, self.failed, self.offer.files, self.left_out())
    }
}
