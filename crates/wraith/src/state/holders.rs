//! For whom the capability of a send by code is good: the identities that proved the words of its codes, and which of them have
//! begun to receive.
//!
//! Invariant: there are at most as many as the send has receivers, and never more than [`MAX_HOLDERS`]. One more takes the place
//! of the oldest that has not begun, or else of the oldest.

use serde::{Deserialize, Serialize};
use wraith_crypto::NodeId;

/// Holders of one send. Of more, those who came first must come with a new code.
pub const MAX_HOLDERS: usize = 256;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Holders {
    max: usize,
    /// The oldest first.
    list: Vec<Holder>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Holder {
    node: NodeId,
    has_begun: bool,
}

/// A holder as it is written down.
#[derive(Serialize, Deserialize)]
pub(super) struct HolderEntry {
    node: String,
    begun: bool,
}

impl Holders {
    /// Nobody yet, and room for so many.
    pub fn new(max: usize) -> Self {
        Self { max: max.clamp(1, MAX_HOLDERS), list: Vec::new() }
    }

    /// The same with those that were written down. What is no identity is left out.
    pub fn read(&mut self, entries: &[HolderEntry]) {
        let parsed = entries.iter().filter_map(|entry| {
            let node = entry.node.parse().ok()?;
            Some(Holder { node, has_begun: entry.begun })
        });
        self.list = parsed.collect();
        let beyond = self.list.len().saturating_sub(self.max);
        self.list.drain(..beyond);
    }

    pub fn entries(&self) -> Vec<HolderEntry> {
        let entry = |holder: &Holder| HolderEntry {
            node: holder.node.to_string(),
            begun: holder.has_begun,
        };
        self.list.iter().map(entry).collect()
    }

    pub fn nodes(&self) -> Vec<NodeId> {
        self.list.iter().map(|holder| holder.node).collect()
    }

    pub fn admits(&self, node: NodeId) -> bool {
        self.list.iter().any(|holder| holder.node == node)
    }

    /// From now on it is good for this one too.
    pub fn admit(&mut self, node: NodeId) {
        if self.admits(node) {
            return;
        }
        if self.list.len() >= self.max {
            let idle = self.list.iter().position(|holder| !holder.has_begun);
            self.list.remove(idle.unwrap_or(0));
        }
        self.list.push(Holder { node, has_begun: false });
    }

    /// Whether this one has begun to receive, and not everything yet.
    pub fn set_begun(&mut self, node: NodeId, has_begun: bool) {
        for holder in self.list.iter_mut().filter(|holder| holder.node == node) {
            holder.has_begun = has_begun;
        }
    }

    /// The send was stopped: it stays good for those who have begun, and for those whom the user knows.
    pub fn settle(&mut self, is_known: impl Fn(NodeId) -> bool) {
        self.list.retain(|holder| holder.has_begun || is_known(holder.node));
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
        let mut holders = Holders::new(2);
        holders.admit(node(1));
        holders.set_begun(node(1), true);
        holders.admit(node(2));
        holders.admit(node(2));
        assert_eq!(holders.nodes(), [node(1), node(2)]);
        holders.admit(node(3));
        assert_eq!(holders.nodes(), [node(1), node(3)]);
        holders.set_begun(node(3), true);
        holders.admit(node(4));
        assert_eq!(holders.nodes(), [node(3), node(4)], "all had begun");
        assert!(holders.admits(node(4)) && !holders.admits(node(1)));
    }

    #[test]
    fn a_send_that_was_stopped_stays_good_for_who_has_begun_or_is_known() {
        let mut holders = Holders::new(4);
        (1..=4).for_each(|n| holders.admit(node(n)));
        holders.set_begun(node(2), true);
        holders.set_begun(node(4), true);
        holders.set_begun(node(4), false);
        holders.settle(|known| known == node(3));
        assert_eq!(holders.nodes(), [node(2), node(3)]);
    }

    #[test]
    fn what_is_written_is_read_again_within_the_limit() {
        let mut holders = Holders::new(usize::MAX);
        for n in 0..=255 {
            holders.admit(node(n));
        }
        holders.set_begun(node(7), true);
        let mut again = Holders::new(MAX_HOLDERS);
        again.read(&holders.entries());
        assert_eq!(again, holders);
        let mut fewer = Holders::new(1);
        fewer.read(&holders.entries());
        assert_eq!(fewer.nodes(), [node(255)]);
        let nonsense = [HolderEntry { node: "nobody".into(), begun: true }];
        again.read(&nonsense);
        assert!(again.nodes().is_empty());
    }
}
