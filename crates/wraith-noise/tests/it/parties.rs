//! The identities of the two sides, and the access key of Bob's ticket.

use wraith_noise::{AccessKey, SecretIdentity};

pub(crate) fn alice() -> SecretIdentity {
    SecretIdentity::from_seed([0xa; 32])
}

pub(crate) fn bob() -> SecretIdentity {
    SecretIdentity::from_seed([0xb; 32])
}

pub(crate) fn access_key() -> AccessKey {
    AccessKey::of_ticket(&[0xd; 16], bob().node_id())
}
