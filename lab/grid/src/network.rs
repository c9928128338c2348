//! Flows over one link, and simulated time.
//!
//! Every flow has a sender and a receiver; all of them share one path in each direction, so two
//! flows share its bottleneck. [`Network::step`] advances to the time of the next event and drains
//! the hosts concerned. Nothing depends on the clock or on threads.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use wraith_core::Time;
use wraith_sim::link::{Datagram, Hops, Path};

use crate::host::{Host, Progress};

/// Maximum number of datagrams in one burst of a host; one that sends more is in an endless loop.
const BURST_MAX: usize = 1 << 20;

/// Flows, the link they share, and the time.
#[derive(Debug)]
pub struct Network {
    now: Time,
    nodes: Vec<Node>,
    /// Paths from senders to receivers, and back.
    paths: [Path; 2],
    outgoing: Vec<Datagram>,
    ended: bool,
}

/// A host. Senders have even numbers; the receiver of each has the next number.
#[derive(Debug)]
struct Node {
    host: Box<dyn Host>,
    starts: Option<Time>,
    wake: Option<Time>,
}

/// Counters of one flow so far.
#[derive(Clone, Debug)]
pub struct FlowProgress {
    /// Counters of its sender.
    pub sender: Progress,
    /// Counters of its receiver.
    pub receiver: Progress,
}

/// Returns the address of the sender of flow number `flow`.
pub fn sender_address(flow: usize) -> SocketAddr {
    address(2 * flow)
}

/// Returns the address of the receiver of flow number `flow`.
pub fn receiver_address(flow: usize) -> SocketAddr {
    address(2 * flow + 1)
}

fn address(node: usize) -> SocketAddr {
    let octet = u8::try_from(node).expect("a link has few flows");
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, octet)), 1000)
}

fn node_at(address: SocketAddr) -> usize {
    match address.ip() {
        IpAddr::V4(ip) => usize::from(ip.octets()[3]),
        IpAddr::V6(_) => unreachable!("all addresses of a network are IPv4"),
    }
}

impl Network {
    /// Creates a link with the boxes `up` from senders to receivers, and `down` back.
    pub fn new(seed: u64, up: Hops, down: Hops) -> Self {
        let paths =
            [Path::new(seed.wrapping_mul(2), up), Path::new(seed.wrapping_mul(2) + 1, down)];
        Self { now: Time::ZERO, nodes: Vec::new(), paths, outgoing: Vec::new(), ended: false }
    }

    /// Adds a flow, whose hosts use the addresses of its number: flows count from 0.
    pub fn add_flow(&mut self, starts: Time, sender: Box<dyn Host>, receiver: Box<dyn Host>) {
        self.nodes.push(Node { host: sender, starts: Some(starts), wake: None });
        self.nodes.push(Node { host: receiver, starts: None, wake: None });
    }

    /// Simulated time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Datagrams that entered the path to the receivers and were dropped.
    pub fn dropped(&self) -> u64 {
        let (entered, left) = self.paths[0].counts();
        entered.saturating_sub(left + self.paths[0].in_transit())
    }

    /// Returns the counters of each flow.
    pub fn progress(&mut self) -> Vec<FlowProgress> {
        let pairs = self.nodes.chunks_mut(2);
        let progress = pairs.map(|pair| FlowProgress {
            sender: pair[0].host.progress(),
            receiver: pair[1].host.progress(),
        });
        progress.collect()
    }

    /// Runs until the receiver of any flow has everything, until a host gives up, or until
    /// `deadline`. Returns `false` at the deadline, to which the time is then set.
    pub fn run_until(&mut self, deadline: Time) -> bool {
        while !self.ended {
            let Some(next) = self.next_moment().filter(|next| *next <= deadline) else {
                self.now = self.now.max(deadline);
                return false;
            };
            self.step(next);
        }
        true
    }

    fn next_moment(&self) -> Option<Time> {
        let paths = self.paths.iter().filter_map(Path::next);
        let nodes = self.nodes.iter().flat_map(|node| [node.starts, node.wake]).flatten();
        paths.chain(nodes).min()
    }

    fn step(&mut self, next: Time) {
        self.now = self.now.max(next);
        for direction in 0..2 {
            while let Some(datagram) = self.paths[direction].pop(self.now) {
                let node = node_at(datagram.to);
                self.nodes[node].host.receive(self.now, datagram);
                self.drain(node);
            }
        }
        for node in 0..self.nodes.len() {
            let Node { host, starts, wake } = &mut self.nodes[node];
            let begins = starts.take_if(|at| *at <= self.now).is_some();
            let due = wake.is_some_and(|at| at <= self.now);
            if begins {
                host.start(self.now);
            }
            if due {
                host.wake(self.now);
            }
            if begins || due {
                self.drain(node);
            }
        }
    }

    fn drain(&mut self, index: usize) {
        let node = &mut self.nodes[index];
        node.host.transmit(self.now, &mut self.outgoing);
        assert!(self.outgoing.len() < BURST_MAX, "datagrams without end from {:?}", node.host);
        node.wake = node.host.next();
        self.ended |= node.host.ended();
        for datagram in self.outgoing.drain(..) {
            self.paths[index % 2].push(self.now, datagram);
        }
    }
}
