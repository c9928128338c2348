//! Requests for hole punching to the I/O thread, and their results.
//!
//! A request is queued under the endpoint's lock, with the queue for its events. The I/O thread
//! takes the request and from then on refers to it by its ID.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Mutex;

use wraith_core::punch::PeerStart;
use wraith_core::{AnswerMode, PunchError, PunchEvent, Role};

use crate::addr::Addr;
use crate::lock::{WakeBatch, Wakers, lock};

/// The role of one side in a punch with port guessing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortGuessing {
    /// This side is behind a NAT with another port for each destination (address-dependent
    /// mapping). It probes from many sockets of
    /// [`SocketPool::open`](crate::mover::SocketPool::open), at most
    /// [`PORT_GUESSES_MAX`](crate::PORT_GUESSES_MAX).
    Sockets(Vec<Addr>),
    /// The peer is behind such a NAT: this side probes
    /// [`PORT_GUESSES_MAX`](crate::PORT_GUESSES_MAX) ports of its address.
    Ports(Ipv4Addr),
}

/// A request to the I/O thread.
#[derive(Debug)]
pub(crate) enum PunchCommand {
    Punch { secret: [u8; 32], role: Role, peer: PeerStart, candidates: Vec<SocketAddr> },
    PortGuessing { secret: [u8; 32], role: Role, many: PortGuessing },
    Observe { secret: [u8; 32], of: SocketAddr, by: AnswerMode },
    Exchange { with: SocketAddr, request: Vec<u8> },
}

/// State shared by a handle and the I/O thread.
#[derive(Debug, Default)]
pub(crate) struct PunchShared(pub(crate) Mutex<PunchState>);

#[derive(Debug, Default)]
pub(crate) struct PunchState {
    pub(crate) events: VecDeque<PunchEvent>,
    pub(crate) refused: Option<PunchError>,
    /// No further events will follow.
    pub(crate) ended: bool,
    /// The handle was dropped.
    pub(crate) dropped: bool,
    /// Further candidates.
    pub(crate) added: Vec<SocketAddr>,
    pub(crate) wakers: Wakers,
}

impl PunchShared {
    /// I/O thread: changes the state, and adds all waiting tasks to `wakes`.
    pub(crate) fn update(&self, wakes: &mut WakeBatch, change: impl FnOnce(&mut PunchState)) {
        let mut state = lock(&self.0);
        change(&mut state);
        wakes.take_from(&mut state.wakers);
    }
}
