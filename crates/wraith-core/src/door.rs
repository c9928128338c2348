//! Doors: the ways into one endpoint, each with its own access keys and accept rules.
//!
//! All doors share the socket, the limits of half-open handshakes and the replay memory. A
//! connection remembers its door, so the caller knows which of its services the peer was invited to
//! before the peer sends a byte.

use std::collections::HashSet;

use wraith_crypto::identity::NodeId;
use wraith_noise::AccessKey;

use crate::handshake_log::SharedHandshakeLog;

/// The number of a door of an endpoint, chosen by the caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DoorId(pub u64);

impl DoorId {
    /// The door of [`EndpointConfig::door`](crate::EndpointConfig::door).
    pub const FIRST: Self = Self(0);
}

/// The accept rules of one door.
#[derive(Clone, Debug)]
pub struct Door {
    /// Access keys that admit a handshake (SPEC §3.1). A datagram without a key of any door gets no
    /// answer. If two doors have the same key, the one with fewer keys gets its handshakes.
    pub access_keys: Vec<AccessKey>,
    /// Allowlist of peer identities; `None` admits every peer with an access key. The peer proves
    /// its identity in H3 (SPEC §3). The H3 of any other peer gets no answer, so it looks lost.
    pub admitted: Option<HashSet<NodeId>>,
    /// Whether no earlier process accepted handshakes under these access keys, nor under those
    /// set later. The replay memory of this endpoint then covers every H1 that exists. Until that
    /// memory drops an entry, the initiator's clock may show any time (SPEC §3.4).
    pub access_keys_are_new: bool,
    /// A record of the H1s that earlier processes received (SPEC §3.4). It covers all access keys
    /// but the public one. While it is complete, the initiator's clock may show any time.
    pub handshake_log: SharedHandshakeLog,
    /// Maximum number of established connections that came through this door. Beyond it, H1s get no
    /// answer.
    pub connections_max: usize,
}

impl Default for Door {
    /// A door without access keys: it admits no peer.
    fn default() -> Self {
        Self {
            access_keys: Vec::new(),
            admitted: None,
            access_keys_are_new: false,
            handshake_log: SharedHandshakeLog::default(),
            connections_max: 1024,
        }
    }
}

impl Door {
    /// Returns whether this peer may come in, once it has proven its identity.
    pub(crate) fn admits(&self, peer: NodeId) -> bool {
        self.admitted.as_ref().is_none_or(|admitted| admitted.contains(&peer))
    }
}

/// A refused handshake: an authentic H1 with a time too far from this machine's clock.
///
/// The H1 may be a replay of one that an earlier process received. So the difference is a hint for
/// people, and no proof that the initiator's clock shows it now.
#[derive(Clone, Debug)]
pub struct ClockDifference {
    /// The door of the access key.
    pub door: DoorId,
    /// The access key of the initiator.
    pub access_key: AccessKey,
    /// The time in H1 minus the time of this machine, in seconds.
    pub seconds: i64,
}
