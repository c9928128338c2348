//! Allowlist of a send by code: the identities that proved the words of its codes, and their
//! progress.
//!
//! Invariant: the list has at most as many entries as the send has receivers, and at most
//! [`ALLOWED_MAX`]. If the list is full, a new entry replaces the oldest identity that has not
//! accepted the offer yet. If all have accepted, it replaces the oldest identity.

use serde::{Deserialize, Serialize};
use wraith_crypto::NodeId;

/// Maximum number of identities on one list. Beyond it, the oldest need a new code.
pub const ALLOWED_MAX: usize = 256;

/// An allowlist (see the module docs).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Allowlist {
    max: usize,
    /// The oldest first.
    list: Vec<Allowed>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Allowed {
    node: NodeId,
    stage: Stage,
}

/// Progress of one identity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Stage {
    /// It may fetch.
    #[default]
    Admitted,
    /// It has accepted the offer.
    Begun,
    /// It has everything.
    Done,
}

/// Serialized form of an entry.
#[derive(Serialize, Deserialize)]
pub(super) struct AllowedEntry {
    node: String,
    stage: Stage,
}

impl Allowlist {
    /// Creates an empty list for up to `max` identities.
    pub fn new(max: usize) -> Self {
        Self { max: max.clamp(1, ALLOWED_MAX), list: Vec::new() }
    }

    /// Replaces the list by serialized entries; skips entries without a valid NodeId.
    pub fn read(&mut self, entries: &[AllowedEntry]) {
        let parsed = entries.iter().filter_map(|entry| {
            let node = entry.node.parse().ok()?;
            Some(Allowed { node, stage: entry.stage })
        });
        self.list = parsed.collect();
        self.make_room(0);
    }

    pub fn entries(&self) -> Vec<AllowedEntry> {
        let entry = |allowed: &Allowed| AllowedEntry {
            node: allowed.node.to_string(),
            stage: allowed.stage,
        };
        self.list.iter().map(entry).collect()
    }

    /// Returns the identities that do not have everything yet.
    pub fn nodes(&self) -> Vec<NodeId> {
        let waiting = self.list.iter().filter(|allowed| allowed.stage != Stage::Done);
        waiting.map(|allowed| allowed.node).collect()
    }

    pub fn admits(&self, node: NodeId) -> bool {
        self.list.iter().any(|allowed| allowed.node == node)
    }

    /// Adds an identity.
    pub fn admit(&mut self, node: NodeId) {
        if self.admits(node) {
            return;
        }
        self.make_room(1);
        self.list.push(Allowed { node, stage: Stage::Admitted });
    }

    fn make_room(&mut self, room: usize) {
        while self.list.len() + room > self.max {
            let idle = self.list.iter().position(|allowed| allowed.stage != Stage::Begun);
            self.list.remove(idle.unwrap_or(0));
        }
    }

    /// Sets the progress of an identity.
    pub fn set(&mut self, node: NodeId, stage: Stage) {
        for allowed in self.list.iter_mut().filter(|allowed| allowed.node == node) {
            allowed.stage = stage;
        }
    }

    /// Reduces the list when the send is stopped. It keeps the identities that have begun, and the
    /// user's contacts that have not finished.
    pub fn retain_resumable(&mut self, is_known: impl Fn(NodeId) -> bool) {
        self.list.retain(|allowed| match allowed.stage {
            Stage::Admitted => is_known(allowed.node),
            Stage::Begun => true,
            Stage::Done => false,
        });
    }
}

#[cfg(test)]
mod tests {
    use wraith_crypto::SecretIdentity;

    use super::*;

    fn node(n: u8) -> NodeId {
        SecretIdentity::from_seed([n; 32]).node_id()
    }

    #[test]
    fn a_full_allowlist_evicts_the_oldest_identity_that_has_not_accepted() {
        let mut allowlist = Allowlist::new(2);
        allowlist.admit(node(1));
        allowlist.set(node(1), Stage::Begun);
        allowlist.admit(node(2));
        allowlist.admit(node(2));
        assert_eq!(allowlist.nodes(), [node(1), node(2)]);
        allowlist.admit(node(3));
        assert_eq!(allowlist.nodes(), [node(1), node(3)]);
        allowlist.set(node(3), Stage::Begun);
        allowlist.admit(node(4));
        assert_eq!(allowlist.nodes(), [node(3), node(4)], "all had begun");
        assert!(allowlist.admits(node(4)) && !allowlist.admits(node(1)));
    }

    #[test]
    fn a_stopped_send_keeps_receivers_that_accepted_and_contacts() {
        let mut allowlist = Allowlist::new(4);
        (1..=4).for_each(|n| allowlist.admit(node(n)));
        allowlist.set(node(2), Stage::Begun);
        allowlist.set(node(4), Stage::Begun);
        allowlist.set(node(4), Stage::Done);
        allowlist.retain_resumable(|known| known == node(3) || known == node(4));
        assert_eq!(allowlist.nodes(), [node(2), node(3)]);
    }

    #[test]
    fn an_allowlist_round_trips_within_the_limit() {
        let mut allowlist = Allowlist::new(usize::MAX);
        for n in 0..=255 {
            allowlist.admit(node(n));
        }
        allowlist.set(node(7), Stage::Begun);
        let mut again = Allowlist::new(ALLOWED_MAX);
        again.read(&allowlist.entries());
        assert_eq!(again, allowlist);
        let mut fewer = Allowlist::new(1);
        fewer.read(&allowlist.entries());
        assert_eq!(fewer.nodes(), [node(7)], "who has begun stays longest");
        let nonsense = [AllowedEntry { node: "nobody".into(), stage: Stage::Begun }];
        again.read(&nonsense);
        assert!(again.nodes().is_empty());
    }
}
