//! A peer on the command line: the name of a contact, or a NodeId.

use std::str::FromStr;

use wraith::state::{ContactName, ContactNameError};
use wraith_crypto::NodeId;

/// A peer as typed. A name is shorter than a NodeId, so no text is both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerName {
    Contact(ContactName),
    Node(NodeId),
}

impl FromStr for PeerName {
    type Err = ContactNameError;

    fn from_str(text: &str) -> Result<Self, ContactNameError> {
        match text.parse() {
            Ok(node_id) => Ok(Self::Node(node_id)),
            Err(_) => text.parse().map(Self::Contact),
        }
    }
}
