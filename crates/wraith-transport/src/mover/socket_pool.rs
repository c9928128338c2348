//! Additional UDP sockets of an endpoint. Each has its own port and so, behind a NAT, its own
//! mapping.
//!
//! [`Endpoint::punch_by_port_guessing`](crate::Endpoint::punch_by_port_guessing) uses them. All
//! these sockets share one `epoll`, which wakes the I/O thread. They use IPv4 only, because NATs
//! are rare with IPv6. Invariants:
//! - The process has at most [`SOCKETS_MAX`] such sockets.
//! - Each socket serves one address, and ignores datagrams from other addresses.
//! - A number is never reused for another socket.

use std::collections::HashMap;
use std::io;
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use super::{
    AddressTable, DatagramMover, KERNEL_BUFFER, MoverFactory, MoverLimits, Readiness, Received,
    RecvSlots, SendBatch, SendResult, Udp,
};
use crate::addr::Addr;
use crate::lock::lock;

/// Maximum number of sockets of all endpoints of the process: those of one punch, and some that
/// carry connections.
const SOCKETS_MAX: usize = 384;
/// Divisor of the process's descriptor limit: the sockets use at most this part of it.
const FD_LIMIT_DIVISOR: u64 = 3;
/// Kernel buffer of a socket that only probes.
const PROBE_SOCKET_BUFFER: usize = 16 << 10;
/// The kind of the [`Addr::Custom`] addresses of these sockets.
const KIND: u64 = u64::from_be_bytes(*b"\0sockets");
/// Bytes of a name: the number of the socket, and the address of the peer.
const NAME_BYTES: usize = 4 + 4 + 2;
const NO_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// A set of UDP sockets (see the module). List it in [`Config::movers`](crate::Config::movers) of
/// an endpoint. Clones share the set.
#[derive(Clone, Debug)]
pub struct SocketPool(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    epoll: OwnedFd,
    state: Mutex<SocketTable>,
    budget: &'static SocketBudget,
}

#[derive(Debug, Default)]
struct SocketTable {
    sockets: HashMap<u32, Socket>,
    last: u32,
}

/// The socket budget of the process.
static PROCESS: SocketBudget = SocketBudget::new();

/// A budget of sockets, shared by all its users.
#[derive(Debug)]
struct SocketBudget {
    taken: AtomicUsize,
}

/// A unit of the budget, returned on drop.
#[derive(Debug)]
struct SocketPermit(&'static SocketBudget);

#[derive(Debug)]
struct Socket {
    udp: Udp,
    _place: SocketPermit,
    /// The peer that it serves.
    remote: SocketAddrV4,
    /// Time of the last received datagram, or of its opening.
    heard: Instant,
    /// Whether the epoll also waits for its writability.
    waits_for_room: bool,
}

impl SocketPool {
    /// Creates an empty set.
    ///
    /// # Errors
    /// The process is out of descriptors.
    pub fn new() -> io::Result<Self> {
        Self::within(&PROCESS)
    }

    fn within(budget: &'static SocketBudget) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        Ok(Self(Arc::new(Shared { epoll, state: Mutex::default(), budget })))
    }

    /// Opens up to `count` sockets within the budget. Returns the address `to` as seen through each
    /// of them.
    pub fn open(&self, count: usize, to: SocketAddrV4) -> Vec<Addr> {
        let open = || Socket::open(self.0.budget, to);
        let opened: Vec<_> = std::iter::repeat_with(open).take(count).collect();
        let mut state = lock(&self.0.state);
        let mut addresses = Vec::new();
        for socket in opened.into_iter().flatten() {
            let number = state.last + 1;
            let data = EventData::new_u64(number.into());
            if epoll::add(&self.0.epoll, &socket.udp, data, EventFlags::IN).is_err() {
                break;
            }
            state.last = number;
            state.sockets.insert(number, socket);
            addresses.push(Addr::Custom { kind: KIND, bytes: name(number, to).into() });
        }
        addresses
    }

    /// Closes the sockets of `addresses`, except that of `but`, which carries a connection. That
    /// socket gets a full-size kernel buffer.
    pub fn close(&self, addresses: &[Addr], but: &Addr) {
        let kept = number_of(but);
        let mut state = lock(&self.0.state);
        for number in addresses.iter().filter_map(number_of).filter(|n| Some(*n) != kept) {
            state.sockets.remove(&number);
        }
        if let Some(socket) = kept.and_then(|number| state.sockets.get(&number)) {
            socket.udp.set_buffers(KERNEL_BUFFER);
        }
    }

    /// Closes the sockets that received nothing for this time. Returns the number of remaining
    /// sockets.
    pub fn close_silent(&self, silence: Duration) -> usize {
        let mut state = lock(&self.0.state);
        state.sockets.retain(|_, socket| socket.heard.elapsed() < silence);
        state.sockets.len()
    }

    /// Returns the address of the peer, if `address` belongs to one of these sockets.
    pub fn remote(address: &Addr) -> Option<SocketAddrV4> {
        let Addr::Custom { kind: KIND, bytes } = address else { return None };
        parse_name(bytes).map(|(_, remote)| remote)
    }
}

impl SocketBudget {
    const fn new() -> Self {
        Self { taken: AtomicUsize::new(0) }
    }

    /// Takes a unit. Returns `None` if the budget or the process's descriptor share is exhausted.
    fn take(&'static self) -> Option<SocketPermit> {
        let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX) / FD_LIMIT_DIVISOR;
        let most = usize::try_from(files).unwrap_or(usize::MAX).min(SOCKETS_MAX);
        let more = |taken| (taken < most).then_some(taken + 1);
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(SocketPermit(self))
    }
}

impl Drop for SocketPermit {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Socket {
    /// Opens a socket. Returns `None` if the budget is exhausted or no port is free.
    fn open(budget: &'static SocketBudget, remote: SocketAddrV4) -> Option<Self> {
        let place = budget.take()?;
        let udp = Udp::bind((Ipv4Addr::UNSPECIFIED, 0).into()).ok()?;
        udp.set_buffers(PROBE_SOCKET_BUFFER);
        Some(Self { udp, _place: place, remote, heard: Instant::now(), waits_for_room: false })
    }
}

impl MoverFactory for SocketPool {
    fn kind(&self) -> u64 {
        KIND
    }

    fn bind(&self, names: AddressTable) -> io::Result<Box<dyn DatagramMover>> {
        Ok(Box::new(SocketPoolMover { shared: Arc::clone(&self.0), names }))
    }
}

fn name(number: u32, remote: SocketAddrV4) -> [u8; NAME_BYTES] {
    let mut name = [0; NAME_BYTES];
    name[..4].copy_from_slice(&number.to_be_bytes());
    name[4..8].copy_from_slice(&remote.ip().octets());
    name[8..].copy_from_slice(&remote.port().to_be_bytes());
    name
}

/// Returns the number of the socket of an address.
fn number_of(address: &Addr) -> Option<u32> {
    let Addr::Custom { kind: KIND, bytes } = address else { return None };
    parse_name(bytes).map(|(number, _)| number)
}

/// The inverse of [`name`].
fn parse_name(name: &[u8]) -> Option<(u32, SocketAddrV4)> {
    let (number, rest) = name.split_first_chunk::<4>()?;
    let (ip, port) = rest.split_first_chunk::<4>()?;
    let port = u16::from_be_bytes(port.try_into().ok()?);
    Some((u32::from_be_bytes(*number), SocketAddrV4::new((*ip).into(), port)))
}

/// The I/O thread's side.
#[derive(Debug)]
struct SocketPoolMover {
    shared: Arc<Shared>,
    names: AddressTable,
}

impl DatagramMover for SocketPoolMover {
    fn caps(&self) -> MoverLimits {
        MoverLimits { mtu_max: u16::MAX, segments_max: usize::from(u16::MAX) }
    }

    fn readiness(&self) -> Readiness<'_> {
        Readiness { fd: self.shared.epoll.as_fd(), room_is_writable: false }
    }

    fn send(&mut self, batch: SendBatch<'_>) -> SendResult {
        let SendBatch { to, ecn, datagrams, segment } = batch;
        let gone = || SendResult::Unreachable(Errno::NOTCONN.into());
        let Some((number, remote)) = self.names.name(to).and_then(|name| parse_name(&name)) else {
            return gone();
        };
        let mut state = lock(&self.shared.state);
        let Some(socket) = state.sockets.get_mut(&number) else { return gone() };
        let sent = socket.udp.send(remote.into(), ecn, datagrams, segment);
        let wait = matches!(sent, SendResult::Blocked(_));
        if socket.waits_for_room != wait {
            let flags = if wait { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
            let data = EventData::new_u64(number.into());
            // If this fails, the I/O thread retries at its next wake-up.
            let _ = epoll::modify(&self.shared.epoll, &socket.udp, data, flags);
            socket.waits_for_room = wait;
        }
        sent
    }

    fn receive(&mut self, slots: &mut RecvSlots) -> io::Result<usize> {
        // Room for one event: the kernel reports the sockets in turn.
        let mut ready = [MaybeUninit::<Event>::uninit()];
        let (ready, _) = epoll::wait(&self.shared.epoll, &mut ready, Some(&NO_WAIT))?;
        let Some(event) = ready.first() else { return Ok(0) };
        let number = event.data.u64() as u32;
        let mut state = lock(&self.shared.state);
        let Some(socket) = state.sockets.get_mut(&number) else { return Ok(0) };
        let flags = event.flags;
        if flags.contains(EventFlags::OUT) {
            // The blocked batch is retried after this.
            let data = EventData::new_u64(number.into());
            let _ = epoll::modify(&self.shared.epoll, &socket.udp, data, EventFlags::IN);
            socket.waits_for_room = false;
        }
        // A failed socket does not stop the others; the receive call also clears its error.
        let Ok(received) = socket.udp.receive(slots) else { return Ok(0) };
        let from = self.names.path(&name(number, socket.remote));
        let mut heard = false;
        for slot in 0..received {
            let Some(at) = slots.received(slot) else { continue };
            let is_peer = at.from.ip() == Some(SocketAddr::V4(socket.remote));
            heard |= is_peer;
            slots.set(slot, Received { from, len: if is_peer { at.len } else { 0 }, ..at });
        }
        if heard {
            socket.heard = Instant::now();
        }
        Ok(received)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::net::UdpSocket;

    use wraith_core::PathAddr;

    use super::*;

    const SOCKETS: usize = 8;

    fn send(mover: &mut dyn DatagramMover, to: PathAddr) -> SendResult {
        mover.send(SendBatch { to, ecn: None, datagrams: b"from here", segment: 9 })
    }

    /// Sockets for one peer, with a separate budget.
    struct OpenedSockets {
        sockets: SocketPool,
        mover: Box<dyn DatagramMover>,
        peer: UdpSocket,
        addresses: Vec<Addr>,
        paths: Vec<PathAddr>,
    }

    impl OpenedSockets {
        fn new() -> Self {
            let sockets = SocketPool::within(budget()).unwrap();
            let names = AddressTable::new(1);
            let mover = sockets.bind(names.clone()).unwrap();
            let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
            peer.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            let addresses = sockets.open(SOCKETS, v4(&peer));
            let path = |address: &Addr| match address {
                Addr::Custom { bytes, .. } => names.path(bytes),
                Addr::Ip(_) => unreachable!("they go by a socket"),
            };
            let paths = addresses.iter().map(path).collect();
            Self { sockets, mover, peer, addresses, paths }
        }

        /// Returns the address at which the peer sees each of the sockets.
        fn outside(&mut self) -> Vec<SocketAddr> {
            let mut outside = Vec::new();
            for path in &self.paths {
                assert!(matches!(send(&mut *self.mover, *path), SendResult::All));
                outside.push(self.peer.recv_from(&mut [0; 64]).unwrap().1);
            }
            outside
        }

        /// Receives until every socket had a datagram. Returns their sender addresses.
        fn receive(&mut self) -> Vec<PathAddr> {
            let (mut slots, mut from, mut taken) = (RecvSlots::new(), Vec::new(), 0);
            let deadline = Instant::now() + Duration::from_secs(5);
            while taken < SOCKETS && Instant::now() < deadline {
                let filled = self.mover.receive(&mut slots).unwrap();
                taken += filled;
                for (path, _, datagrams) in slots.filled(filled) {
                    from.extend(datagrams.map(|_| path));
                }
            }
            assert_eq!(taken, SOCKETS);
            from
        }
    }

    fn budget() -> &'static SocketBudget {
        Box::leak(Box::new(SocketBudget::new()))
    }

    fn v4(socket: &UdpSocket) -> SocketAddrV4 {
        match socket.local_addr().unwrap() {
            SocketAddr::V4(at) => at,
            SocketAddr::V6(_) => unreachable!("IPv4 was asked for"),
        }
    }

    #[test]
    fn each_socket_has_its_own_port_and_accepts_only_the_peer() {
        let mut opened = OpenedSockets::new();
        assert_eq!(opened.addresses.len(), SOCKETS);
        let peer = Some(v4(&opened.peer));
        assert!(opened.addresses.iter().all(|address| SocketPool::remote(address) == peer));
        let ports: HashSet<_> = opened.outside().into_iter().collect();
        assert_eq!(ports.len(), SOCKETS);
    }

    #[test]
    fn a_socket_and_its_address_belong_together_in_both_directions() {
        let mut opened = OpenedSockets::new();
        for to in opened.outside() {
            opened.peer.send_to(b"back", to).unwrap();
        }
        let sorted = |mut paths: Vec<PathAddr>| {
            paths.sort_by_key(|path| path.to_string());
            paths
        };
        assert_eq!(sorted(opened.receive()), sorted(opened.paths.clone()));
    }

    #[test]
    fn datagrams_of_other_hosts_are_ignored() {
        let mut opened = OpenedSockets::new();
        let outside = opened.outside();
        let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
        let begun = Instant::now();
        for to in outside {
            stranger.send_to(b"stray", to).unwrap();
        }
        assert_eq!(opened.receive(), []);
        assert_eq!(opened.sockets.close_silent(begun.elapsed()), 0);
    }

    #[test]
    fn a_socket_with_received_datagrams_outlives_the_silent_ones() {
        let mut opened = OpenedSockets::new();
        let outside = opened.outside();
        let begun = Instant::now();
        std::thread::sleep(Duration::from_millis(200));
        opened.peer.send_to(b"back", outside[3]).unwrap();
        let (mut slots, deadline) = (RecvSlots::new(), begun + Duration::from_secs(5));
        while opened.mover.receive(&mut slots).unwrap() == 0 && Instant::now() < deadline {}
        assert_eq!(opened.sockets.close_silent(begun.elapsed()), 1);
        assert!(matches!(send(&mut *opened.mover, opened.paths[3]), SendResult::All));
    }

    #[test]
    fn all_sockets_but_the_one_in_use_are_closed_and_unreachable() {
        let mut opened = OpenedSockets::new();
        opened.sockets.close(&opened.addresses, &opened.addresses[0]);
        assert_eq!(opened.sockets.close_silent(Duration::from_secs(60)), 1);
        let gone = send(&mut *opened.mover, opened.paths[1]);
        assert!(matches!(gone, SendResult::Unreachable(_)));
        assert!(matches!(send(&mut *opened.mover, opened.paths[0]), SendResult::All));
    }

    #[test]
    fn pools_with_a_shared_budget_stay_within_it() {
        let budget = budget();
        let [one, other] = [(); 2].map(|()| SocketPool::within(budget).unwrap());
        let to = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 9);
        let opened = [&one, &other, &one].map(|sockets| sockets.open(300, to).len());
        assert!(opened.iter().sum::<usize>() <= SOCKETS_MAX && opened[0] > 0, "{opened:?}");
    }

    #[test]
    fn a_closed_socket_releases_its_permit() {
        let budget = budget();
        let sockets = SocketPool::within(budget).unwrap();
        let opened = sockets.open(SOCKETS, SocketAddrV4::new(Ipv4Addr::LOCALHOST, 9));
        assert_eq!(budget.taken.load(Ordering::Relaxed), SOCKETS);
        sockets.close(&opened[1..], &opened[0]);
        assert_eq!(budget.taken.load(Ordering::Relaxed), 1);
        drop(sockets);
        assert_eq!(budget.taken.load(Ordering::Relaxed), 0);
    }
}
