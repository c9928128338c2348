//! Kademlia's iterative lookup: finds the nodes closest to a target, without I/O or a clock.
//!
//! Use: call [`Lookup::next`] until it returns `None`. Then report the outcome of one query with
//! [`Lookup::on_answer`], [`Lookup::on_failure`] or [`Lookup::on_timeout`]. Repeat until
//! [`Lookup::is_done`].
//!
//! A node may get two queries, one of each kind: as a bootstrap node, and as a candidate that
//! another node named. So an outcome belongs to an address and a kind.
//!
//! Invariant, whatever the answers:
//!
//! - at most [`MAX_QUERIES`] nodes are asked,
//! - at most [`MAX_CANDIDATES`] nodes are remembered,
//! - at most [`MAX_OF_ONE_IP`] of the remembered nodes have the same IP address.
//!
//! So a node that keeps naming closer nodes cannot extend the lookup. A third party whose address a
//! node names receives only a few datagrams.

use std::net::SocketAddrV4;

use crate::id::{Id, distance};

/// Number of closest nodes that store a record and are searched for it.
pub const CLOSEST: usize = 16;
/// Most nodes asked in a lookup: twice the need in a network of millions of nodes.
pub const MAX_QUERIES: usize = 80;
const MAX_CANDIDATES: usize = 96;
/// Most candidates per IP address. Many nodes behind one address are rare, and typical of a Sybil
/// attack.
const MAX_OF_ONE_IP: usize = 2;
/// Most queries in flight.
const PARALLEL: usize = 6;

/// Query to send to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueryKind {
    /// Requests nodes only: an introducer may be a bootstrap router that stores nothing.
    FindNode,
    /// Requests the record as well.
    Get,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum CandidateState {
    New,
    Queried,
    /// Timed out; a late answer is still accepted.
    Late,
    Answered(Option<Vec<u8>>),
    Failed,
}

#[derive(Debug)]
struct Candidate {
    id: Id,
    address: SocketAddrV4,
    state: CandidateState,
}

/// State of one lookup; the module documentation describes its use.
#[derive(Debug)]
pub struct Lookup {
    target: Id,
    /// Sorted by distance, closest first.
    candidates: Vec<Candidate>,
    /// Nodes with unknown IDs: bootstrap nodes and remembered ones.
    bootstrap_nodes: Vec<(SocketAddrV4, CandidateState)>,
    queried: usize,
    /// Whether nodes named in answers are asked as well.
    follows_nodes: bool,
}

impl Lookup {
    /// Creates a lookup of the nodes closest to `target`, without candidates.
    pub const fn new(target: Id) -> Self {
        Self {
            target,
            candidates: Vec::new(),
            bootstrap_nodes: Vec::new(),
            queried: 0,
            follows_nodes: true,
        }
    }

    /// Creates a lookup that asks only its seeds.
    pub fn of_seeds_only(target: Id) -> Self {
        let mut lookup = Self::new(target);
        lookup.follows_nodes = false;
        lookup
    }

    /// Adds a seed with a known ID.
    pub fn add_seed(&mut self, id: Id, address: SocketAddrV4) {
        self.insert(id, address);
    }

    /// Adds a seed with an unknown ID.
    pub fn add_bootstrap_node(&mut self, address: SocketAddrV4) {
        let is_known = self.bootstrap_nodes.iter().any(|(known, _)| *known == address)
            || self.candidates.iter().any(|candidate| candidate.address == address);
        if !is_known && self.bootstrap_nodes.len() < MAX_QUERIES {
            self.bootstrap_nodes.push((address, CandidateState::New));
        }
    }

    /// Returns the next node and query, or `None` if answers must arrive first or no node is left.
    pub fn next(&mut self) -> Option<(SocketAddrV4, QueryKind)> {
        let candidates =
            self.candidates.iter().filter(|it| it.state == CandidateState::Queried).count();
        let bootstrap_nodes =
            self.bootstrap_nodes.iter().filter(|it| it.1 == CandidateState::Queried).count();
        if candidates + bootstrap_nodes >= PARALLEL || self.queried >= MAX_QUERIES {
            return None;
        }
        let closest =
            self.closest_mut().find(|it| it.state == CandidateState::New).map(|candidate| {
                candidate.state = CandidateState::Queried;
                (candidate.address, QueryKind::Get)
            });
        let queried = match closest {
            Some(queried) => queried,
            None => {
                let mut new =
                    self.bootstrap_nodes.iter_mut().filter(|it| it.1 == CandidateState::New);
                let (address, state) = new.next()?;
                *state = CandidateState::Queried;
                (*address, QueryKind::FindNode)
            }
        };
        self.queried += 1;
        Some(queried)
    }

    /// Records the answer of `from` to a query of this kind: the node's ID, its put token, and the
    /// nodes that it names.
    pub fn on_answer(
        &mut self,
        from: SocketAddrV4,
        kind: QueryKind,
        id: Id,
        token: Option<&[u8]>,
        nodes: &[(Id, SocketAddrV4)],
    ) {
        match kind {
            QueryKind::FindNode => {
                self.set_state(from, kind, CandidateState::Answered(None));
                // It may store records as well, and was not asked for them yet.
                self.insert(id, from);
            }
            QueryKind::Get => {
                if let Some(at) = self.candidates.iter().position(|it| it.address == from) {
                    // The real ID may differ from the announced one; the candidate is sorted in
                    // again.
                    let mut candidate = self.candidates.remove(at);
                    candidate.state = CandidateState::Answered(token.map(<[u8]>::to_vec));
                    candidate.id = id;
                    self.insert_sorted(candidate);
                }
            }
        }
        for (id, address) in nodes {
            if self.follows_nodes && may_be_node(*address, from) {
                self.insert(*id, *address);
            }
        }
    }

    /// Records that the node at `from` refused a query of this kind, or is unreachable.
    pub fn on_failure(&mut self, from: SocketAddrV4, kind: QueryKind) {
        self.set_state(from, kind, CandidateState::Failed);
    }

    /// Records that a query of this kind to the node at `from` timed out.
    pub fn on_timeout(&mut self, from: SocketAddrV4, kind: QueryKind) {
        self.set_state(from, kind, CandidateState::Late);
    }

    /// Reports whether no remaining answer could bring closer nodes.
    pub fn is_done(&mut self) -> bool {
        let asked_all = self.queried >= MAX_QUERIES;
        let is_waiting = self.bootstrap_nodes.iter().any(|(_, state)| match state {
            CandidateState::Queried => true,
            CandidateState::New => !asked_all,
            _ => false,
        });
        let has_answer = self.has_answer();
        let mut open = self.closest_mut().filter(|candidate| match candidate.state {
            CandidateState::Queried => true,
            CandidateState::New => !asked_all,
            _ => false,
        });
        // A silent bootstrap node does not delay a client that has nodes of its own.
        open.next().is_none() && (!is_waiting || has_answer)
    }

    /// Reports whether any node has answered.
    pub fn has_answer(&self) -> bool {
        self.candidates.iter().any(|it| matches!(it.state, CandidateState::Answered(_)))
    }

    /// Returns the closest nodes that answered with a token, and their tokens.
    pub fn closest(&self) -> impl Iterator<Item = (SocketAddrV4, &[u8])> {
        let with_token = self.candidates.iter().filter_map(|it| match &it.state {
            CandidateState::Answered(Some(token)) => Some((it.address, &token[..])),
            _ => None,
        });
        with_token.take(CLOSEST)
    }

    /// Returns the closest nodes that are neither late nor failed.
    fn closest_mut(&mut self) -> impl Iterator<Item = &mut Candidate> {
        let alive = |it: &&mut Candidate| {
            !matches!(it.state, CandidateState::Late | CandidateState::Failed)
        };
        self.candidates.iter_mut().filter(alive).take(CLOSEST)
    }

    fn insert(&mut self, id: Id, address: SocketAddrV4) {
        let of_same_ip = self.candidates.iter().filter(|it| it.address.ip() == address.ip());
        let is_crowd = of_same_ip.count() >= MAX_OF_ONE_IP && !address.ip().is_loopback();
        if is_crowd || self.candidates.iter().any(|it| it.address == address || it.id == id) {
            return;
        }
        self.insert_sorted(Candidate { id, address, state: CandidateState::New });
        if self.candidates.len() > MAX_CANDIDATES {
            let farthest = self.candidates.iter().rposition(|it| it.state == CandidateState::New);
            // At most MAX_QUERIES candidates are in another state.
            self.candidates.remove(farthest.expect("more candidates than were asked"));
        }
    }

    fn insert_sorted(&mut self, candidate: Candidate) {
        let own = distance(&candidate.id, &self.target);
        let at = self.candidates.partition_point(|it| distance(&it.id, &self.target) < own);
        self.candidates.insert(at, candidate);
    }

    /// Ends a query that waits for an answer, also a late one.
    fn set_state(&mut self, address: SocketAddrV4, kind: QueryKind, to: CandidateState) {
        let state = match kind {
            QueryKind::FindNode => {
                self.bootstrap_nodes.iter_mut().find(|it| it.0 == address).map(|it| &mut it.1)
            }
            QueryKind::Get => {
                self.candidates.iter_mut().find(|it| it.address == address).map(|it| &mut it.state)
            }
        };
        if let Some(state) = state
            && matches!(state, CandidateState::Queried | CandidateState::Late)
        {
            *state = to;
        }
    }
}

/// Reports whether a node may be at `address`, named by a node at `by`. A node on the internet
/// cannot direct queries into the local network of this machine.
fn may_be_node(address: SocketAddrV4, by: SocketAddrV4) -> bool {
    let [ip, by] = [*address.ip(), *by.ip()];
    let [a, b, ..] = ip.octets();
    let is_local = |ip: std::net::Ipv4Addr| {
        let [a, b, ..] = ip.octets();
        ip.is_private() || ip.is_link_local() || (a == 100 && (64..128).contains(&b))
    };
    let is_nowhere = a == 0 || a >= 224 || (a, b) == (192, 0) && ip.octets()[2] == 2;
    let fits = match () {
        () if ip.is_loopback() => by.is_loopback(),
        () if is_local(ip) => is_local(by) || by.is_loopback(),
        () => true,
    };
    address.port() != 0 && !is_nowhere && fits
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn address(n: u16) -> SocketAddrV4 {
        let [a, b] = n.to_be_bytes();
        SocketAddrV4::new(Ipv4Addr::new(20, 1, a, b), 6881)
    }

    /// Returns a node ID at this distance from the target, which is zero.
    fn id(distance: u16) -> Id {
        let mut id = [0; 20];
        id[..2].copy_from_slice(&distance.to_be_bytes());
        id[19] = 1;
        id
    }

    fn lookup(seeds: impl Iterator<Item = u16>) -> Lookup {
        let mut lookup = Lookup::new([0; 20]);
        seeds.for_each(|n| lookup.add_seed(id(n), address(n)));
        lookup
    }

    #[test]
    fn the_closest_nodes_are_found_if_each_knows_its_neighbours() {
        let mut lookup = lookup([60_000].into_iter());
        let mut queried = 0;
        while !lookup.is_done() {
            let Some((to, QueryKind::Get)) = lookup.next() else { panic!("nobody to ask") };
            queried += 1;
            let n = u16::from_be_bytes([to.ip().octets()[2], to.ip().octets()[3]]);
            // Nodes at half the distance, and the next ones.
            let known: Vec<_> = (0..8).map(|i| n / 2 + i).map(|n| (id(n), address(n))).collect();
            lookup.on_answer(to, QueryKind::Get, id(n), Some(b"t"), &known);
        }
        let closest: Vec<_> = lookup.closest().map(|(address, _)| address).collect();
        assert_eq!(closest[..8], (0..8).map(address).collect::<Vec<_>>());
        assert!(queried < 60, "{queried}");
    }

    #[test]
    fn a_node_that_always_names_closer_ones_is_bounded() {
        let mut lookup = lookup([50_000].into_iter());
        let (mut queried, mut n) = (0, 50_000);
        while !lookup.is_done() {
            let (to, _) = lookup.next().unwrap();
            queried += 1;
            let nodes: Vec<_> = (0..20)
                .map(|_| {
                    n -= 1;
                    (id(n), address(n))
                })
                .collect();
            lookup.on_answer(to, QueryKind::Get, id(n), Some(b"t"), &nodes);
        }
        assert_eq!(queried, MAX_QUERIES);
        assert!(lookup.candidates.len() <= MAX_CANDIDATES);
    }

    #[test]
    fn silent_nodes_are_passed_over_and_may_still_answer() {
        let mut lookup = lookup(0..20);
        for _ in 0..PARALLEL {
            let (to, _) = lookup.next().unwrap();
            lookup.on_timeout(to, QueryKind::Get);
        }
        let (to, _) = lookup.next().unwrap();
        assert_eq!(to, address(PARALLEL as u16));
        lookup.on_answer(address(0), QueryKind::Get, id(0), Some(b"late"), &[]);
        assert_eq!(lookup.closest().next(), Some((address(0), &b"late"[..])));
    }

    #[test]
    fn outstanding_queries_are_limited() {
        let mut lookup = lookup(0..20);
        assert_eq!(std::iter::from_fn(|| lookup.next()).count(), PARALLEL);
        lookup.on_failure(address(0), QueryKind::Get);
        assert_eq!(std::iter::from_fn(|| lookup.next()).count(), 1);
    }

    #[test]
    fn nodes_per_ip_address_are_limited() {
        let mut lookup = lookup([9].into_iter());
        let (to, _) = lookup.next().unwrap();
        let crowd = |n: u16| (id(n), SocketAddrV4::new(Ipv4Addr::new(20, 2, 3, 4), 1000 + n));
        lookup.on_answer(to, QueryKind::Get, id(9), None, &(0..8).map(crowd).collect::<Vec<_>>());
        assert_eq!(std::iter::from_fn(|| lookup.next()).count(), MAX_OF_ONE_IP);
    }

    #[test]
    fn bootstrap_nodes_are_asked_last_and_for_nodes_only() {
        let mut lookup = lookup([9].into_iter());
        lookup.add_bootstrap_node(address(500));
        assert_eq!(lookup.next(), Some((address(9), QueryKind::Get)));
        assert_eq!(lookup.next(), Some((address(500), QueryKind::FindNode)));
        lookup.on_failure(address(9), QueryKind::Get);
        assert!(!lookup.is_done(), "it may know somebody");
        lookup.on_answer(address(500), QueryKind::FindNode, id(4), None, &[(id(3), address(3))]);
        assert_eq!(lookup.next(), Some((address(3), QueryKind::Get)));
        assert_eq!(lookup.next(), Some((address(500), QueryKind::Get)), "it may store, too");
    }

    #[test]
    fn a_late_bootstrap_node_that_another_node_names_keeps_its_own_answer() {
        for late_answer in [false, true] {
            let mut lookup = lookup([9].into_iter());
            lookup.add_bootstrap_node(address(500));
            assert_eq!(lookup.next(), Some((address(9), QueryKind::Get)));
            assert_eq!(lookup.next(), Some((address(500), QueryKind::FindNode)));
            lookup.on_timeout(address(500), QueryKind::FindNode);
            lookup.on_answer(address(9), QueryKind::Get, id(9), None, &[(id(4), address(500))]);
            assert_eq!(lookup.next(), Some((address(500), QueryKind::Get)));
            if late_answer {
                let nodes = [(id(3), address(3))];
                lookup.on_answer(address(500), QueryKind::FindNode, id(4), None, &nodes);
                assert_eq!(lookup.next(), Some((address(3), QueryKind::Get)));
                lookup.on_failure(address(3), QueryKind::Get);
            }
            assert!(!lookup.is_done(), "the node has the query for the record");
            lookup.on_answer(address(500), QueryKind::Get, id(4), Some(b"t"), &[]);
            assert_eq!(lookup.closest().next(), Some((address(500), &b"t"[..])));
            assert!(lookup.is_done());
        }
    }

    #[test]
    fn a_timeout_of_the_bootstrap_query_leaves_the_other_query_open() {
        let mut lookup = lookup([9].into_iter());
        lookup.add_bootstrap_node(address(500));
        while lookup.next().is_some() {}
        lookup.on_answer(address(9), QueryKind::Get, id(9), None, &[(id(4), address(500))]);
        assert_eq!(lookup.next(), Some((address(500), QueryKind::Get)));
        lookup.on_timeout(address(500), QueryKind::FindNode);
        assert!(!lookup.is_done(), "the query for the record is not late");
    }

    #[test]
    fn remote_nodes_cannot_name_local_or_invalid_addresses() {
        let at = |text: &str| text.parse::<SocketAddrV4>().unwrap();
        let public = at("20.0.0.1:6881");
        for bad in [
            "127.0.0.1:53",
            "10.0.0.1:9",
            "192.168.1.1:80",
            "169.254.0.1:9",
            "100.64.0.1:9",
            "0.0.0.0:9",
            "224.0.0.1:9",
            "255.255.255.255:9",
            "20.0.0.2:0",
        ] {
            assert!(!may_be_node(at(bad), public), "{bad}");
        }
        assert!(may_be_node(at("20.0.0.2:6881"), public));
        assert!(may_be_node(at("127.0.0.1:9"), at("127.0.0.1:8")));
        assert!(may_be_node(at("10.0.0.2:9"), at("10.0.0.1:8")));
    }
}
