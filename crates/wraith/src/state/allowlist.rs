//! Allowlist of a send by code: the identities that proved the words of its codes, and their
//! progress.
//!
//! All codes of a send share the list, so it is their common count. Invariants:
//!
//! - A run admits at most as many identities as the send has receivers. An identity that accepts
//!   again counts as admitted, even if an earlier run admitted it.
//! - An identity that counts keeps its place. A new identity replaces one of an earlier run: the
//!   oldest that has not accepted, or else the oldest.
//! - The list has at most [`ALLOWED_MAX`] entries. A send to more receivers, or to any number, then
//!   replaces the oldest that is not receiving.

use serde::{Deserialize, Serialize};
use wraith_crypto::NodeId;

/// Maximum number of identities on one list. Beyond it, the oldest need a new code.
pub const ALLOWED_MAX: usize = 256;

/// An allowlist (see the module docs).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Allowlist {
    /// Number of receivers; `None` means any number.
    places: Option<usize>,
    /// Places taken in this run.
    taken: usize,
    /// The oldest first.
    list: Vec<Allowed>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Allowed {
    node: NodeId,
    stage: Stage,
    /// It counts: this run has admitted it, or it has accepted in this run.
    is_current: bool,
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
    /// Creates an empty list for this number of identities; `None` means any number.
    pub fn new(places: Option<usize>) -> Self {
        Self { places: places.map(|places| places.max(1)), taken: 0, list: Vec::new() }
    }

    /// Most entries of the list.
    fn capacity(&self) -> usize {
        self.places.map_or(ALLOWED_MAX, |places| places.min(ALLOWED_MAX))
    }

    /// Replaces the list by serialized entries; skips entries without a valid NodeId.
    pub fn read(&mut self, entries: &[AllowedEntry]) {
        let parsed = entries.iter().filter_map(|entry| {
            let node = entry.node.parse().ok()?;
            Some(Allowed { node, stage: entry.stage, is_current: false })
        });
        (self.list, self.taken) = (parsed.collect(), 0);
        while self.list.len() > self.capacity() {
            self.evict();
        }
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

    /// Returns whether this identity got everything in this run, and may not take another place.
    pub fn is_done(&self, node: NodeId) -> bool {
        let is_it = |allowed: &Allowed| allowed.node == node && allowed.is_current;
        let mut found = self.list.iter().filter(|allowed| is_it(allowed));
        self.places.is_some() && found.any(|allowed| allowed.stage == Stage::Done)
    }

    /// Returns whether this run can admit no further identity.
    pub fn is_full(&self) -> bool {
        self.places.is_some_and(|places| self.taken >= places)
    }

    /// Adds an identity. Returns false if there is no place left.
    pub fn admit(&mut self, node: NodeId) -> bool {
        let known = self.list.iter().position(|allowed| allowed.node == node);
        match known {
            Some(at) if self.list[at].is_current => return !self.is_done(node),
            _ if self.is_full() => return false,
            Some(at) => self.list[at].is_current = true,
            None => {
                if self.list.len() == self.capacity() {
                    self.evict();
                }
                self.list.push(Allowed { node, stage: Stage::Admitted, is_current: true });
            }
        }
        self.taken += 1;
        true
    }

    /// Removes the entry that is the first to be replaced.
    fn evict(&mut self) {
        let is_receiving = |allowed: &Allowed| allowed.stage == Stage::Begun;
        let order = |allowed: &Allowed| match allowed.is_current {
            false => (false, is_receiving(allowed), false),
            true => (true, is_receiving(allowed), allowed.stage == Stage::Admitted),
        };
        let first = (0..self.list.len()).min_by_key(|at| order(&self.list[*at]));
        first.map(|at| self.list.remove(at));
    }

    /// Sets the progress of an identity in this run. One that has everything stays so.
    pub fn set(&mut self, node: NodeId, stage: Stage) {
        if self.is_done(node) {
            return;
        }
        if let Some(allowed) = self.list.iter_mut().find(|allowed| allowed.node == node) {
            allowed.stage = stage;
            self.taken += usize::from(!allowed.is_current);
            allowed.is_current = true;
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

    /// A list for two, as a later run reads it: one identity has accepted, one has not.
    fn of_an_earlier_run() -> Allowlist {
        let mut earlier = Allowlist::new(Some(2));
        assert!(earlier.admit(node(1)) && earlier.admit(node(2)));
        earlier.set(node(1), Stage::Begun);
        let mut later = Allowlist::new(Some(2));
        later.read(&earlier.entries());
        later
    }

    #[test]
    fn identities_of_an_earlier_run_make_room_first_those_that_have_not_accepted() {
        let mut allowlist = of_an_earlier_run();
        assert!(allowlist.admit(node(3)) && !allowlist.is_full());
        assert_eq!(allowlist.nodes(), [node(1), node(3)]);
        assert!(allowlist.admit(node(4)) && allowlist.is_full());
        assert_eq!(allowlist.nodes(), [node(3), node(4)]);
        assert!(!allowlist.admit(node(5)), "both were admitted in this run");
        assert!(allowlist.admit(node(3)), "it has its place");
    }

    #[test]
    fn an_identity_that_has_begun_in_this_run_is_never_replaced() {
        let mut allowlist = of_an_earlier_run();
        allowlist.set(node(1), Stage::Begun);
        assert!(allowlist.admit(node(3)));
        assert!(!allowlist.admit(node(4)));
        allowlist.set(node(1), Stage::Done);
        assert!(!allowlist.admit(node(4)) && !allowlist.admit(node(1)), "two were served");
        assert_eq!(allowlist.nodes(), [node(3)]);
        allowlist.set(node(1), Stage::Begun);
        assert!(allowlist.is_done(node(1)) && !allowlist.is_done(node(3)));
    }

    #[test]
    fn a_list_for_any_number_admits_more_than_it_holds_and_each_any_number_of_times() {
        let mut allowlist = Allowlist::new(None);
        let seed = |n: usize| std::array::from_fn(|at| (n >> (8 * (at % 2))) as u8);
        let nodes: Vec<_> =
            (0..=ALLOWED_MAX).map(|n| SecretIdentity::from_seed(seed(n)).node_id()).collect();
        assert!(allowlist.admit(nodes[0]));
        allowlist.set(nodes[0], Stage::Begun);
        assert!(nodes.iter().all(|node| allowlist.admit(*node)) && !allowlist.is_full());
        assert!(allowlist.admits(nodes[0]) && !allowlist.admits(nodes[1]), "it is receiving");
        allowlist.set(nodes[0], Stage::Done);
        assert!(allowlist.admit(nodes[0]) && !allowlist.is_done(nodes[0]));
    }

    #[test]
    fn a_stopped_send_keeps_receivers_that_accepted_and_contacts() {
        let mut allowlist = Allowlist::new(Some(4));
        assert!((1..=4).all(|n| allowlist.admit(node(n))));
        allowlist.set(node(2), Stage::Begun);
        allowlist.set(node(4), Stage::Begun);
        allowlist.set(node(4), Stage::Done);
        allowlist.retain_resumable(|known| known == node(3) || known == node(4));
        assert_eq!(allowlist.nodes(), [node(2), node(3)]);
    }

    #[test]
    fn an_allowlist_round_trips_within_the_limit() {
        let mut allowlist = Allowlist::new(Some(usize::MAX));
        assert!((0..=255).all(|n| allowlist.admit(node(n))));
        allowlist.set(node(7), Stage::Begun);
        let mut again = Allowlist::new(Some(ALLOWED_MAX));
        again.read(&allowlist.entries());
        assert_eq!(again.nodes(), allowlist.nodes());
        let mut fewer = Allowlist::new(Some(1));
        fewer.read(&allowlist.entries());
        assert_eq!(fewer.nodes(), [node(7)], "the one that has begun stays longest");
        let nonsense = [AllowedEntry { node: "nobody".into(), stage: Stage::Begun }];
        again.read(&nonsense);
        assert!(again.nodes().is_empty());
    }
}
