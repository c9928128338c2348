//! How an offer is accepted.

use std::collections::HashMap;

use wraith::{Conflicts, RelPath};

use crate::error::WraithError;

/// What to do about a name that something else has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, uniffi::Enum)]
pub enum OnConflict {
    /// Keep both: the new one gets a number.
    #[default]
    Rename,
    /// Replace the old one, once the new one is whole.
    Overwrite,
    /// Keep the old one.
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

/// What to do about one name.
#[derive(Clone, Debug, uniffi::Record)]
pub struct ConflictRule {
    /// The path in the offer, as [`crate::PreviewEntry::path`] has it.
    pub path: Vec<u8>,
    /// What to do about it.
    pub policy: OnConflict,
}

/// How to accept an offer.
#[derive(Clone, Debug, Default, uniffi::Record)]
pub struct AcceptOptions {
    /// What to do about names that something else has; by default both are kept.
    #[uniffi(default = None)]
    pub on_conflict: Option<OnConflict>,
    /// What to do about single names, in place of that.
    #[uniffi(default = [])]
    pub rules: Vec<ConflictRule>,
    /// Takes also what the sender offers when it comes back with more than was shown.
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
