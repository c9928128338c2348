//! The recipient of a send. It is part of the record's name, so a send of the same paths to another
//! recipient has another secret.

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use data_encoding::BASE32_NOPAD;
use wraith_crypto::NodeId;

use crate::state::allowlist::Allowlist;
use crate::state::spent_codes::CodeTag;

/// The recipient of a send.
#[derive(Clone, Debug)]
pub enum Recipient {
    /// Any receiver that has the bearer ticket.
    Bearer,
    /// A contact.
    Contact(NodeId),
    /// Receivers that prove the words of a code made by the sender. Each run makes another code for
    /// the same send.
    Code {
        /// Maximum number of receivers; `None` means any number.
        max: Option<usize>,
    },
    /// The receiver that made the code with this tag. Another code belongs to another receiver.
    Invitation(CodeTag),
}

impl Recipient {
    /// Returns an empty allowlist for the secret; `None` if it is valid for any bearer.
    pub(super) fn allowlist(&self) -> Option<Allowlist> {
        match self {
            Self::Bearer | Self::Contact(_) => None,
            Self::Code { max } => Some(Allowlist::new(*max)),
            Self::Invitation(_) => Some(Allowlist::new(Some(1))),
        }
    }

    /// Returns the name of the record: a hash, so that any path fits and the folder does not reveal
    /// the paths.
    pub(super) fn record_name(&self, canonical_paths: &[PathBuf]) -> String {
        let mut material = Vec::new();
        let mut add = |bytes: &[u8]| {
            material.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
            material.extend_from_slice(bytes);
        };
        canonical_paths.iter().for_each(|path| add(path.as_os_str().as_bytes()));
        // No path contains a zero byte, so these values are unambiguous.
        match self {
            Self::Bearer => {}
            Self::Contact(node) => add(format!("\0{node}").as_bytes()),
            Self::Code { .. } => add(b"\0code"),
            Self::Invitation(tag) => add(&[b"\0code ", tag.as_slice()].concat()),
        }
        let hash = wraith_crypto::kdf::derive("wraith/1 pending send", &material);
        BASE32_NOPAD.encode(&hash[..20]).to_ascii_lowercase()
    }
}
