//! For whom a send is: a part of what names its record, so that the same paths to somebody else have another secret.

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use data_encoding::BASE32_NOPAD;
use wraith_crypto::NodeId;

use crate::state::allowlist::Allowlist;
use crate::state::spent_codes::CodeTag;

/// For whom a send is.
#[derive(Clone, Debug)]
pub enum Recipient {
    /// Whoever has the ticket that people carry.
    Bearer,
    /// A contact.
    Contact(NodeId),
    /// So many who prove the words of a code that the sender makes. It is another code each time, and the same send.
    Code {
        /// How many at once.
        max: usize,
    },
    /// The receiver that made the code with this tag. Another code is another receiver's.
    Invitation(CodeTag),
}

impl Recipient {
    /// Those for whom the secret is good; None: for whoever has it.
    pub(super) fn allowlist(&self) -> Option<Allowlist> {
        match self {
            Self::Bearer | Self::Contact(_) => None,
            Self::Code { max } => Some(Allowlist::new(*max)),
            Self::Invitation(_) => Some(Allowlist::new(1)),
        }
    }

    /// The name of the record: a hash, so that the folder tells nobody what was sent, and any path fits.
    pub(super) fn record_name(&self, canonical_paths: &[PathBuf]) -> String {
        let mut material = Vec::new();
        let mut add = |bytes: &[u8]| {
            material.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
            material.extend_from_slice(bytes);
        };
        canonical_paths.iter().for_each(|path| add(path.as_os_str().as_bytes()));
        // No path has a zero byte.
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
