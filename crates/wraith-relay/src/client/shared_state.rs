//! State shared by the mover on the I/O thread and the relay tasks:
//!
//! - the pairs with their keys,
//! - datagrams received over TLS,
//! - binding messages to send over the mover's UDP socket.
//!
//! Invariant: every queue is bounded in bytes, and a pair exists exactly as long as its relay keeps
//! it.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, eventfd};
use tokio::sync::Notify;
use wraith_crypto::MaskKey;

use super::connect::ASSOCIATION_HEADER_MAX;
use super::route::Route;
use crate::binding::BINDING_MAX;
use crate::frame::Welcome;
use crate::header::{self, Direction, TagKey, WireId, down_mask, up_mask};
use crate::outbox::Outbox;

/// Most bytes of datagrams from TLS that wait for the I/O thread. The thread normally takes them in
/// well under a millisecond. If the thread is late, this limit holds one millisecond of traffic of
/// the fastest line.
const RECEIVED_BYTES: usize = 2 << 20;
/// Most bindings in transit between a task and the mover. Normally there is one.
const BINDINGS_MAX: usize = 16;
/// Silence on UDP while sending after which the task verifies the path.
const SILENCE_TIMEOUT: Duration = Duration::from_millis(1000);
/// Length of the name by which the mover knows a pair.
pub const NAME_BYTES: usize = 4 + 8;

/// Returns the name of a pair: the local number of its relay, and the ID of this client's end.
pub fn name(relay: u32, id: WireId) -> [u8; NAME_BYTES] {
    let mut name = [0; NAME_BYTES];
    name[..4].copy_from_slice(&relay.to_be_bytes());
    name[4..].copy_from_slice(&id.to_be_bytes());
    name
}

/// Parses a name made by [`name`].
pub fn parse_name(name: &[u8]) -> Option<(u32, WireId)> {
    let (relay, id) = name.split_first_chunk::<4>()?;
    Some((u32::from_be_bytes(*relay), u64::from_be_bytes(id.try_into().ok()?)))
}

/// Shared state with a wake-up signal for the mover; see the module documentation.
#[derive(Debug)]
pub struct SharedState {
    state: Mutex<ClientState>,
    event: OwnedFd,
    signalled: AtomicBool,
}

/// Content of the [`SharedState`].
#[derive(Debug, Default)]
pub struct ClientState {
    pub relays: Vec<RelayState>,
    next_relay: u32,
    /// Whether a mover with a socket exists.
    pub has_mover: bool,
    received: VecDeque<(u32, WireId, Vec<u8>)>,
    received_bytes: usize,
    to_send: Vec<(SocketAddr, Vec<u8>)>,
}

/// A relay from the mover's view.
#[derive(Debug)]
pub struct RelayState {
    pub number: u32,
    pub outbox: Arc<Outbox>,
    /// Wakes the task for `bindings` or `stalled`.
    pub task: Arc<Notify>,
    /// Received bindings, including the proxy's header.
    pub bindings: Vec<Vec<u8>>,
    pub stalled: bool,
    pub session: Option<SessionParams>,
    pub pairs: HashMap<WireId, PairEnd>,
    /// Start of the present silence on UDP: the time of the first datagram sent after the last
    /// answer.
    pub silent_since: Option<Instant>,
}

/// Session parameters of a relay's WELCOME for the mover.
#[derive(Debug)]
pub struct SessionParams {
    secret: [u8; 32],
    pub up_mask: MaskKey,
    pub down_mask: MaskKey,
    pub binding: WireId,
    /// UDP route to the relay.
    pub route: Option<Route>,
    /// Whether datagrams use that route.
    pub use_udp: bool,
}

/// This client's end of a pair.
#[derive(Debug)]
pub struct PairEnd {
    pub up_tag: TagKey,
    pub down_tag: TagKey,
}

/// Kind of a UDP datagram from a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatagramKind {
    /// Possibly a binding of this session.
    Binding,
    /// A datagram of this pair.
    Pair(WireId),
}

impl SharedState {
    pub fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Self { state: Mutex::default(), event, signalled: AtomicBool::new(false) })
    }

    pub fn lock(&self) -> MutexGuard<'_, ClientState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn event(&self) -> &OwnedFd {
        &self.event
    }

    /// Wakes the mover.
    pub fn signal(&self) {
        if !self.signalled.swap(true, Ordering::SeqCst) {
            // The only possible error is a full counter; the descriptor is then readable anyway.
            let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
        }
    }

    /// Clears the signal before the mover reads the queues. Later entries signal again.
    pub fn take_signal(&self) {
        // The order matters: a signal in between causes a spurious wake-up instead of a lost one.
        let _ = rustix::io::read(&self.event, &mut [0; 8]);
        self.signalled.store(false, Ordering::SeqCst);
    }

    /// Reports whether a signal is pending.
    pub fn is_signalled(&self) -> bool {
        self.signalled.load(Ordering::SeqCst)
    }

    /// Adds a relay and returns its number.
    pub fn add_relay(&self, outbox: Arc<Outbox>, task: Arc<Notify>) -> u32 {
        let mut state = self.lock();
        state.next_relay += 1;
        let number = state.next_relay;
        state.relays.push(RelayState {
            number,
            outbox,
            task,
            bindings: Vec::new(),
            stalled: false,
            session: None,
            pairs: HashMap::new(),
            silent_since: None,
        });
        number
    }

    /// Removes a relay and its pairs.
    pub fn remove_relay(&self, number: u32) {
        self.lock().relays.retain(|relay| relay.number != number);
    }

    /// Applies `change` to a relay.
    pub fn with_relay<T>(
        &self,
        number: u32,
        change: impl FnOnce(&mut RelayState) -> T,
    ) -> Option<T> {
        self.lock().relay(number).map(change)
    }

    /// Queues a datagram received over TLS. It is dropped if the queue is full.
    pub fn push_received(&self, relay: u32, id: WireId, datagram: &[u8]) {
        let mut state = self.lock();
        if !state.has_mover || state.received_bytes + datagram.len() > RECEIVED_BYTES {
            return;
        }
        state.received_bytes += datagram.len();
        state.received.push_back((relay, id, datagram.to_vec()));
        drop(state);
        self.signal();
    }

    /// Queues a binding for the mover to send.
    pub fn push_binding(&self, to: SocketAddr, datagram: Vec<u8>) {
        let mut state = self.lock();
        if state.to_send.len() < BINDINGS_MAX {
            state.to_send.push((to, datagram));
        }
        drop(state);
        self.signal();
    }
}

impl ClientState {
    pub fn relay(&mut self, number: u32) -> Option<&mut RelayState> {
        self.relays.iter_mut().find(|relay| relay.number == number)
    }

    /// Returns the relay that may have sent `datagram` from `from`, and the length of the proxy's
    /// header in front of it.
    #[inline]
    pub fn relay_at(
        &mut self,
        from: SocketAddr,
        datagram: &[u8],
    ) -> Option<(&mut RelayState, usize)> {
        self.relays.iter_mut().find_map(|relay| {
            let route = relay.session.as_ref()?.route.as_ref()?;
            let header = route.header_len_of(from, datagram)?;
            Some((relay, header))
        })
    }

    /// Hands a datagram from a proxy to the relays that have not answered through it yet. Their
    /// tasks check whether it is an answer.
    pub fn offer_answer(&mut self, from: SocketAddr, datagram: &[u8]) {
        if datagram.len() > ASSOCIATION_HEADER_MAX + BINDING_MAX {
            return;
        }
        for relay in &mut self.relays {
            let route = relay.session.as_ref().and_then(|session| session.route);
            if route.is_some_and(|route| route.to() == from && route.header().is_none()) {
                relay.push_binding(datagram);
            }
        }
    }

    /// Returns the next datagram received over TLS.
    pub fn pop_received(&mut self) -> Option<(u32, WireId, Vec<u8>)> {
        let next = self.received.pop_front()?;
        self.received_bytes -= next.2.len();
        Some(next)
    }

    pub fn has_received(&self) -> bool {
        !self.received.is_empty()
    }

    pub fn take_bindings(&mut self) -> Vec<(SocketAddr, Vec<u8>)> {
        std::mem::take(&mut self.to_send)
    }
}

impl RelayState {
    /// Starts the session of `welcome`. Pairs of another session are removed.
    pub fn start_session(&mut self, welcome: &Welcome, route: Option<Route>) {
        if !welcome.resumed {
            self.pairs.clear();
        }
        self.silent_since = None;
        self.session = Some(SessionParams {
            secret: welcome.secret,
            up_mask: up_mask(&welcome.secret),
            down_mask: down_mask(&welcome.secret),
            binding: welcome.binding,
            route,
            use_udp: false,
        });
    }

    /// Sets the UDP route to the relay.
    pub fn set_route(&mut self, route: Option<Route>) {
        if let Some(session) = &mut self.session {
            session.route = route;
        }
    }

    /// Adds a pair whose end on this side is `id`.
    pub fn add_pair(&mut self, id: WireId) {
        let Some(session) = &self.session else { return };
        self.pairs.insert(
            id,
            PairEnd {
                up_tag: TagKey::new(&session.secret, id, Direction::Up),
                down_tag: TagKey::new(&session.secret, id, Direction::Down),
            },
        );
    }

    /// Classifies a datagram without its proxy header. Only a binding or a known pair's datagram is
    /// a sign of life.
    pub fn classify(&mut self, datagram: &[u8]) -> Option<DatagramKind> {
        let session = self.session.as_ref()?;
        let id = header::read_id(&session.down_mask, datagram)?;
        let kind = if id == session.binding {
            DatagramKind::Binding
        } else {
            self.pairs.get(&id).filter(|pair| pair.down_tag.matches(datagram))?;
            DatagramKind::Pair(id)
        };
        self.silent_since = None;
        Some(kind)
    }

    /// Queues a binding for the task, which can open it.
    pub fn push_binding(&mut self, datagram: &[u8]) {
        if self.bindings.len() < BINDINGS_MAX {
            self.bindings.push(datagram.to_vec());
            self.task.notify_one();
        }
    }

    /// Records that a datagram is sent over UDP. After a long silence the task verifies the path.
    pub fn record_sent(&mut self, now: Instant) {
        let since = *self.silent_since.get_or_insert(now);
        if now.saturating_duration_since(since) >= SILENCE_TIMEOUT {
            self.silent_since = Some(now);
            self.stalled = true;
            self.task.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
    use crate::header::HEADER_BYTES;

    /// Returns a relay with a session and the pair 7, and without an answer after the last sent
    /// datagram.
    fn relay(state: &mut ClientState) -> &mut RelayState {
        let welcome = Welcome { resumed: false, ..crate::fuzz::welcome(6, 0) };
        let relay = &mut state.relays[0];
        relay.start_session(&welcome, None);
        relay.add_pair(7);
        relay.record_sent(Instant::now());
        relay
    }

    fn down(secret: &[u8; 32], id: WireId) -> Vec<u8> {
        let mut datagram = vec![9; HEADER_BYTES + 100];
        let tag = TagKey::new(secret, id, Direction::Down);
        header::write(&down_mask(secret), &tag, id, &mut datagram);
        datagram
    }

    #[test]
    fn only_datagrams_of_the_session_end_the_silence() {
        let shared = SharedState::new().unwrap();
        let outbox = Outbox::new(1 << 16, Arc::new(Budget::new(1 << 20)));
        shared.add_relay(Arc::new(outbox), Arc::default());
        let mut state = shared.lock();
        let mut forged = down(&[2; 32], 7);
        forged[HEADER_BYTES / 2] ^= 1;
        let short = down(&[2; 32], 7)[..HEADER_BYTES].to_vec();
        for lie in [forged, short, down(&[1; 32], 7), down(&[2; 32], 8), vec![0; 200], Vec::new()] {
            let relay = relay(&mut state);
            assert_eq!(relay.classify(&lie), None);
            assert!(relay.silent_since.is_some(), "it goes on waiting");
        }
        for (id, kind) in [(7, DatagramKind::Pair(7)), (4, DatagramKind::Binding)] {
            let relay = relay(&mut state);
            assert_eq!(relay.classify(&down(&[2; 32], id)), Some(kind));
            assert_eq!(relay.silent_since, None);
        }
    }
}
