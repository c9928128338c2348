//! Options for accepting an offer.

use std::collections::HashMap;

use wraith::{Conflicts, RelPath};

use crate::error::WraithError;

/// Policy for a received file whose path is already taken by a different file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, uniffi::Enum)]
pub enum OnConflict {
    /// Keep both files: the new one gets a number in its name.
    #[default]
    Rename,
    /// Replace the existing file once the new one is complete.
    Overwrite,
    /// Keep the existing file and skip the new one.
    Skip,
}

impl From<OnConflict> for wraith::OnConflict {
    fn from(policy: OnConflict) -> Self {
        match policy {
            OnConflict::Rename => Self::Rename,
            OnConflict::Overwrite => Self::Overwrite,
            OnConflict::Skip => Self::Skip,
        }
    }
}

/// Conflict policy for one path.
#[derive(Clone, Debug, uniffi::Record)]
pub struct ConflictRule {
    /// Path in the offer, as in [`crate::PreviewEntry::path`].
    pub path: Vec<u8>,
    /// Policy for this path.
    pub policy: OnConflict,
}

/// Options for accepting an offer.
#[derive(Clone, Debug, Default, uniffi::Record)]
pub struct AcceptOptions {
    /// Policy for paths that are already taken. Default: keep both files.
    #[uniffi(default = None)]
    pub on_conflict: Option<OnConflict>,
    /// Policies for single paths. They override `on_conflict`.
    #[uniffi(default = [])]
    pub rules: Vec<ConflictRule>,
    /// Also accepts a larger offer if the sender reconnects with one.
    #[uniffi(default = false)]
    pub any_offer: bool,
}

impl TryFrom<AcceptOptions> for wraith::AcceptOptions {
    type Error = WraithError;

    fn try_from(options: AcceptOptions) -> Result<Self, WraithError> {
        let mut of = HashMap::new();
        for rule in options.rules {
            let path = RelPath::parse(&rule.path).map_err(WraithError::invalid)?;
            of.insert(path, rule.policy.into());
        }
        let otherwise = options.on_conflict.unwrap_or_default().into();
        let accept = Self::from(Conflicts { otherwise, of });
        Ok(if options.any_offer { accept.any_offer() } else { accept })
    }
}
