//! Further UDP sockets of an endpoint, each with a port of its own and so, behind a NAT, with a mapping of its own.
//!
//! For [`Endpoint::punch_many`](crate::Endpoint::punch_many). All are behind one `epoll`, which wakes the I/O thread. Only IPv4: it is
//! IPv4 that NATs are for. Invariants: there are at most [`SOCKETS_MAX`] in the process; each is for one address, and what comes from
//! elsewhere is nothing; a number never stands for another socket.

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
use wraith_core::{Ecn, PathAddr};

use super::{
    Bind, Caps, DatagramMover, KERNEL_BUFFER, Names, Readiness, Received, RecvSlots, Sent, Udp,
};
use crate::addr::Addr;
use crate::lock::lock;

/// Sockets at once, of all endpoints of the process: those of one punch, and some that carry connections.
const SOCKETS_MAX: usize = 384;
/// Of the files that the process may have, this part and no more.
const FILES_PART: u64 = 3;
/// Kernel buffer of a socket that only asks.
const ASKING_BUFFER: usize = 16 << 10;
/// The kind of [`Addr::Custom`] that goes by one of these sockets.
const KIND: u64 = u64::from_be_bytes(*b"\0sockets");
/// A name: the number of the socket, and where the peer is.
const NAME_BYTES: usize = 4 + 4 + 2;
const NO_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// See the module. An endpoint whose [`Config::movers`](crate::Config::movers) has it moves datagrams by them. Clones are the same.
#[derive(Clone, Debug)]
pub struct Sockets(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    epoll: OwnedFd,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    sockets: HashMap<u32, Socket>,
    last: u32,
}

/// Sockets that there are.
static OPEN: AtomicUsize = AtomicUsize::new(0);

#[derive(Debug)]
struct Socket {
    udp: Udp,
    /// Whom it is for.
    remote: SocketAddrV4,
    /// When something came last, or it was opened.
    heard: Instant,
    /// Whether the epoll waits for room in it too.
    waits_for_room: bool,
}

impl Sockets {
    /// None yet.
    ///
    /// # Errors
    /// The process is out of descriptors.
    pub fn new() -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        Ok(Self(Arc::new(Shared { epoll, state: Mutex::default() })))
    }

    /// Opens up to `count` sockets, as far as the process may have more: the address `to`, by each of them.
    pub fn open(&self, count: usize, to: SocketAddrV4) -> Vec<Addr> {
        let opened: Vec<_> = std::iter::repeat_with(|| Socket::open(to)).take(count).collect();
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

    /// Closes those of `addresses`, but for one that carries a connection: that gets the room it needs.
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

    /// Closes those on which nothing came for so long, and returns how many are left.
    pub fn close_silent(&self, silence: Duration) -> usize {
        let mut state = lock(&self.0.state);
        state.sockets.retain(|_, socket| socket.heard.elapsed() < silence);
        state.sockets.len()
    }

    /// Where the peer is, of an address that goes by one of these sockets.
    pub fn remote(address: &Addr) -> Option<SocketAddrV4> {
        let Addr::Custom { kind: KIND, bytes } = address else { return None };
        parse_name(bytes).map(|(_, remote)| remote)
    }
}

impl Socket {
    /// None if the process has enough of them, or may not have more.
    fn open(remote: SocketAddrV4) -> Option<Self> {
        let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX) / FILES_PART;
        let most = usize::try_from(files).unwrap_or(usize::MAX).min(SOCKETS_MAX);
        let more = |open| (open < most).then_some(open + 1);
        OPEN.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        let Ok(udp) = Udp::bind((Ipv4Addr::UNSPECIFIED, 0).into()) else {
            OPEN.fetch_sub(1, Ordering::Relaxed);
            return None;
        };
        udp.set_buffers(ASKING_BUFFER);
        Some(Self { udp, remote, heard: Instant::now(), waits_for_room: false })
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        OPEN.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Bind for Sockets {
    fn kind(&self) -> u64 {
        KIND
    }

    fn bind(&self, names: Names) -> io::Result<Box<dyn DatagramMover>> {
        Ok(Box::new(SocketsMover { shared: Arc::clone(&self.0), names }))
    }
}

fn name(number: u32, remote: SocketAddrV4) -> [u8; NAME_BYTES] {
    let mut name = [0; NAME_BYTES];
    name[..4].copy_from_slice(&number.to_be_bytes());
    name[4..8].copy_from_slice(&remote.ip().octets());
    name[8..].copy_from_slice(&remote.port().to_be_bytes());
    name
}

/// The number of the socket by which an address goes.
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

/// The I/O thread's end.
#[derive(Debug)]
struct SocketsMover {
    shared: Arc<Shared>,
    names: Names,
}

impl DatagramMover for SocketsMover {
    fn caps(&self) -> Caps {
        Caps { mtu_max: u16::MAX, segments_max: usize::from(u16::MAX) }
    }

    fn readiness(&self) -> Readiness<'_> {
        Readiness { fd: self.shared.epoll.as_fd(), room_is_writable: false }
    }

    fn send(&mut self, to: PathAddr, ecn: Option<Ecn>, datagrams: &[u8], segment: usize) -> Sent {
        let gone = || Sent::Unreachable(Errno::NOTCONN.into());
        let Some((number, remote)) = self.names.name(to).and_then(|name| parse_name(&name)) else {
            return gone();
        };
        let mut state = lock(&self.shared.state);
        let Some(socket) = state.sockets.get_mut(&number) else { return gone() };
        let sent = socket.udp.send(remote.into(), ecn, datagrams, segment);
        let wait = matches!(sent, Sent::Blocked(_));
        if socket.waits_for_room != wait {
            let flags = if wait { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
            let data = EventData::new_u64(number.into());
            // If it fails, the I/O thread tries again when something else wakes it.
            let _ = epoll::modify(&self.shared.epoll, &socket.udp, data, flags);
            socket.waits_for_room = wait;
        }
        sent
    }

    fn receive(&mut self, slots: &mut RecvSlots) -> io::Result<usize> {
        // Room for one event: the kernel tells of the sockets in turn.
        let mut ready = [MaybeUninit::<Event>::uninit()];
        let (ready, _) = epoll::wait(&self.shared.epoll, &mut ready, Some(&NO_WAIT))?;
        let Some(event) = ready.first() else { return Ok(0) };
        let number = event.data.u64() as u32;
        let mut state = lock(&self.shared.state);
        let Some(socket) = state.sockets.get_mut(&number) else { return Ok(0) };
        let flags = event.flags;
        if flags.contains(EventFlags::OUT) {
            // What was blocked is offered again after this.
            let data = EventData::new_u64(number.into());
            let _ = epoll::modify(&self.shared.epoll, &socket.udp, data, EventFlags::IN);
            socket.waits_for_room = false;
        }
        // One that fails stops none of the others; what it reported is taken with that.
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
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn what_comes_to_each_socket_comes_from_its_own_address_and_goes_back_from_there() {
        let sockets = Sockets::new().unwrap();
        let names = Names::new(1);
        let mut mover = sockets.bind(names.clone()).unwrap();
        let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
        peer.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let SocketAddr::V4(at) = peer.local_addr().unwrap() else { panic!("IPv4 was asked for") };
        let opened = sockets.open(8, at);
        assert_eq!(opened.len(), 8);
        assert!(opened.iter().all(|addr| Sockets::remote(addr) == Some(at)));
        let paths: Vec<_> = opened
            .iter()
            .map(|addr| match addr {
                Addr::Custom { bytes, .. } => names.path(bytes),
                Addr::Ip(_) => unreachable!("they go by a socket"),
            })
            .collect();
        let mut buffer = [0; 64];
        let mut outside = Vec::new();
        for path in &paths {
            assert!(matches!(mover.send(*path, None, b"from here", 9), Sent::All));
            outside.push(peer.recv_from(&mut buffer).unwrap().1);
        }
        let ports: std::collections::HashSet<_> = outside.iter().collect();
        assert_eq!(ports.len(), 8, "each has a port of its own");
        for to in &outside {
            peer.send_to(b"back", to).unwrap();
        }
        let mut slots = RecvSlots::new();
        let (mut from, deadline) = (Vec::new(), Instant::now() + Duration::from_secs(5));
        while from.len() < 8 && Instant::now() < deadline {
            let filled = mover.receive(&mut slots).unwrap();
            from.extend(slots.filled(filled).map(|(from, ..)| from));
        }
        from.sort_by_key(|path| path.to_string());
        let mut expected = paths.clone();
        expected.sort_by_key(|path| path.to_string());
        assert_eq!(from, expected);
        // What comes from elsewhere is nothing, and does not keep a socket open.
        let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
        let begun = Instant::now();
        for to in &outside {
            stranger.send_to(b"stray", to).unwrap();
        }
        let (mut taken, mut datagrams) = (0, 0);
        while taken < 8 && Instant::now() < deadline {
            let filled = mover.receive(&mut slots).unwrap();
            taken += filled;
            datagrams +=
                slots.filled(filled).map(|(.., datagrams)| datagrams.count()).sum::<usize>();
        }
        assert_eq!((taken, datagrams), (8, 0));
        sockets.close(&opened[1..], &opened[0]);
        assert_eq!(sockets.close_silent(Duration::from_secs(60)), 1);
        assert!(matches!(mover.send(paths[1], None, b"gone", 4), Sent::Unreachable(_)));
        assert_eq!(sockets.close_silent(begun.elapsed()), 0, "a stranger keeps nothing open");
        // All endpoints of the process together have no more than the most.
        let others = Sockets::new().unwrap();
        let all = [&sockets, &others, &sockets].map(|sockets| sockets.open(300, at).len());
        assert!(all.iter().sum::<usize>() <= SOCKETS_MAX && all[0] > 0, "{all:?}");
        drop((mover, sockets, others));
        assert_eq!(OPEN.load(Ordering::Relaxed), 0);
    }
}
