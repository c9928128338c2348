//! For whom the capability of a send by code is good: the identities that proved the words of its codes, and which of them have
//! begun to receive.
//!
//! Invariant: there are at most as many as the send has receivers, and never more than [`ALLOWED_MAX`]. One more takes the place
//! of the oldest that has not begun, or else of the oldest.

use serde::{Deserialize, Serialize};
use wraith_crypto::NodeId;

/// Identities on the list of one send. Of more, those who came first must come with a new code.
pub const ALLOWED_MAX: usize = 256;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Allowlist {
    max: usize,
    /// The oldest first.
    list: Vec<Allowed>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Allowed {
    node: NodeId,
    has_begun: bool,
}

/// One of them as it is written down.
#[derive(Serialize, Deserialize)]
pub(super) struct AllowedEntry {
    node: String,
    begun: bool,
}

impl Allowlist {
    /// Nobody yet, and room for so many.
    pub fn new(max: usize) -> Self {
        Self { max: max.clamp(1, ALLOWED_MAX), list: Vec::new() }
    }

    /// The same with those that were written down. What is no identity is left out.
    pub fn read(&mut self, entries: &[AllowedEntry]) {
        let parsed = entries.iter().filter_map(|entry| {
            let node = entry.node.parse().ok()?;
            Some(Allowed { node, has_begun: entry.begun })
        });
        self.list = parsed.collect();
        self.make_room(0);
    }

    pub fn entries(&self) -> Vec<AllowedEntry> {
        let entry = |allowed: &Allowed| AllowedEntry {
            node: allowed.node.to_string(),
            begun: allowed.has_begun,
        };
        self.list.iter().map(entry).collect()
    }

    pub fn nodes(&self) -> Vec<NodeId> {
        self.list.iter().map(|allowed| allowed.node).collect()
    }

    pub fn admits(&self, node: NodeId) -> bool {
        self.list.iter().any(|allowed| allowed.node == node)
    }

    /// From now on it is good for this one too.
    pub fn admit(&mut self, node: NodeId) {
        if self.admits(node) {
            return;
        }
        self.make_room(1);
        self.list.push(Allowed { node, has_begun: false });
    }

    fn make_room(&mut self, room: usize) {
        while self.list.len() + room > self.max {
            let idle = self.list.iter().position(|allowed| !allowed.has_begun);
            self.list.remove(idle.unwrap_or(0));
        }
    }

    /// Whether this one has begun to receive, and not everything yet.
    pub fn set_begun(&mut self, node: NodeId, has_begun: bool) {
        for allowed in self.list.iter_mut().filter(|allowed| allowed.node == node) {
            allowed.has_begun = has_begun;
        }
    }

    /// The send was stopped: it stays good for those who have begun, and for those whom the user knows.
    pub fn settle(&mut self, is_known: impl Fn(NodeId) -> bool) {
        self.list.retain(|allowed| allowed.has_begun || is_known(allowed.node));
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
    fn one_more_than_there_is_room_for_takes_the_place_of_one_that_has_not_begun() {
        let mut allowlist = Allowlist::new(2);
        allowlist.admit(node(1));
        allowlist.set_begun(node(1), true);
        allowlist.admit(node(2));
        allowlist.admit(node(2));
        assert_eq!(allowlist.nodes(), [node(1), node(2)]);
        allowlist.admit(node(3));
        assert_eq!(allowlist.nodes(), [node(1), node(3)]);
        allowlist.set_begun(node(3), true);
        allowlist.admit(node(4));
        assert_eq!(allowlist.nodes(), [node(3), node(4)], "all had begun");
        assert!(allowlist.admits(node(4)) && !allowlist.admits(node(1)));
    }

    #[test]
    fn a_send_that_was_stopped_stays_good_for_who_has_begun_or_is_known() {
        let mut allowlist = Allowlist::new(4);
        (1..=4).for_each(|n| allowlist.admit(node(n)));
        allowlist.set_begun(node(2), true);
        allowlist.set_begun(node(4), true);
        allowlist.set_begun(node(4), false);
        allowlist.settle(|known| known == node(3));
        assert_eq!(allowlist.nodes(), [node(2), node(3)]);
    }

    #[test]
    fn what_is_written_is_read_again_within_the_limit() {
        let mut allowlist = Allowlist::new(usize::MAX);
        for n in 0..=255 {
            allowlist.admit(node(n));
        }
        allowlist.set_begun(node(7), true);
        let mut again = Allowlist::new(ALLOWED_MAX);
        again.read(&allowlist.entries());
        assert_eq!(again, allowlist);
        let mut fewer = Allowlist::new(1);
        fewer.read(&allowlist.entries());
        assert_eq!(fewer.nodes(), [node(7)], "who has begun stays longest");
        let nonsense = [AllowedEntry { node: "nobody".into(), begun: true }];
        again.read(&nonsense);
        assert!(again.nodes().is_empty());
    }
}
