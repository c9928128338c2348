//! The relays' datagram mover on the I/O thread. It owns a UDP socket; TLS traffic passes through
//! the shared state.
//!
//! Datagrams sent over UDP are not queued here. A batch is copied once, to insert the headers, and
//! handed to the kernel. Received datagrams are opened in place and moved together over their
//! headers. One descriptor covers both sources: an `epoll` of the socket and the shared state's
//! event.

use std::collections::VecDeque;
use std::io;
use std::net::{Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use wraith_transport::mover::{
    AddressTable, DatagramMover, MoverLimits, Readiness, Received, RecvSlots, SendBatch,
    SendResult, Udp,
};
use wraith_transport::{Ecn, PathAddr};

use super::connect::ASSOCIATION_HEADER_MAX;
use super::shared_state::{
    ClientState, DatagramKind, NAME_BYTES, RelayState, SharedState, name, parse_name,
};
use crate::header::{self, HEADER_BYTES, INNER_MAX, WireId};

/// Most datagrams in one send. With their headers they fill the kernel's limit.
const SEGMENTS_MAX: usize = 64;
/// Buffer for a batch with its headers, in bytes.
const OUT_BYTES: usize = 64 * (1 << 10) + SEGMENTS_MAX * (ASSOCIATION_HEADER_MAX + HEADER_BYTES);
/// Largest UDP datagram over IPv4, in bytes. The longest datagram of the client fits into it with
/// all headers.
const DATAGRAM_MAX: usize = 65_507;
const _: () = assert!(ASSOCIATION_HEADER_MAX + HEADER_BYTES + INNER_MAX <= DATAGRAM_MAX);
/// Most queued runs of further pairs from buffers that the kernel merged. More are dropped.
const SPILLED_MAX: usize = 256;

/// Mover of all relays of an endpoint; see the module documentation.
#[derive(Debug)]
pub struct RelayMover {
    shared: Arc<SharedState>,
    names: AddressTable,
    udp: Udp,
    epoll: OwnedFd,
    out: Vec<u8>,
    spilled: VecDeque<(PathAddr, Option<Ecn>, Vec<u8>, usize)>,
    /// Whether the socket is read before the shared state in the next round, so that neither starves.
    udp_first: bool,
    /// Whether the epoll also waits for send-buffer space.
    waits_for_room: bool,
}

/// Datagrams of one pair in a buffer, each `stride` bytes long except the last.
struct DatagramRun {
    path: PathAddr,
    start: usize,
    end: usize,
    stride: usize,
}

impl RelayMover {
    /// Creates the mover with a socket on any port.
    pub fn new(shared: Arc<SharedState>, names: AddressTable) -> io::Result<Self> {
        let udp = Udp::bind((Ipv6Addr::UNSPECIFIED, 0).into())?;
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &udp, EventData::new_u64(0), EventFlags::IN)?;
        epoll::add(&epoll, shared.event(), EventData::new_u64(1), EventFlags::IN)?;
        shared.lock().has_mover = true;
        let out = Vec::with_capacity(OUT_BYTES);
        let spilled = VecDeque::new();
        Ok(Self {
            shared,
            names,
            udp,
            epoll,
            out,
            spilled,
            udp_first: false,
            waits_for_room: false,
        })
    }

    fn wait_for_room(&mut self, wait: bool) {
        if self.waits_for_room != wait {
            let flags = if wait { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
            // On failure the I/O thread retries after its own pause.
            let _ = epoll::modify(&self.epoll, &self.udp, EventData::new_u64(0), flags);
            self.waits_for_room = wait;
        }
    }

    /// Sends the tasks' bindings over UDP.
    fn send_bindings(&mut self) {
        let bindings = self.shared.lock().take_bindings();
        for (to, datagram) in bindings {
            self.udp.send(to, None, &datagram, datagram.len());
        }
    }

    /// Fills `slots` with datagrams from TLS and with the rest of merged UDP buffers.
    fn receive_queued(&mut self, slots: &mut RecvSlots) -> usize {
        let mut filled = 0;
        let mut state = self.shared.lock();
        while filled < slots.len() {
            let (from, ecn, bytes, stride) = match self.spilled.pop_front() {
                Some(spilled) => spilled,
                None => {
                    let Some((relay, id, datagram)) = state.pop_received() else { break };
                    let known =
                        state.relay(relay).is_some_and(|relay| relay.pairs.contains_key(&id));
                    if !known {
                        continue;
                    }
                    let len = datagram.len();
                    (self.names.path(&name(relay, id)), None, datagram, len)
                }
            };
            slots.buffer(filled)[..bytes.len()].copy_from_slice(&bytes);
            slots.set(filled, Received { from, ecn, len: bytes.len(), stride });
            filled += 1;
        }
        let more = state.has_received() || !self.spilled.is_empty();
        drop(state);
        if more {
            self.shared.signal();
        }
        filled
    }

    /// Receives from UDP. Leaves only the relays' datagrams in `slots`, without headers.
    fn receive_udp(&mut self, slots: &mut RecvSlots) -> io::Result<usize> {
        let received = self.udp.receive(slots)?;
        let mut state = self.shared.lock();
        let mut filled = 0;
        for slot in 0..received {
            let Some(Received { from, ecn, len, stride }) = slots.received(slot) else { continue };
            let Some(address) = from.ip() else { continue };
            let Some(run) = open_buffer(
                &mut state,
                &self.names,
                address,
                &mut slots.buffer(slot)[..len],
                stride,
                |run, bytes| {
                    if self.spilled.len() < SPILLED_MAX {
                        self.spilled.push_back((
                            run.path,
                            ecn,
                            bytes[run.start..run.end].to_vec(),
                            run.stride,
                        ));
                    }
                },
            ) else {
                continue;
            };
            let len = run.end;
            if slot != filled {
                let bytes = slots.buffer(slot)[..len].to_vec();
                slots.buffer(filled)[..len].copy_from_slice(&bytes);
            }
            slots.set(filled, Received { from: run.path, ecn, len, stride: run.stride });
            filled += 1;
        }
        drop(state);
        if !self.spilled.is_empty() {
            self.shared.signal();
        }
        Ok(filled)
    }
}

impl DatagramRun {
    /// Reports whether `next` is of the same pair and adjacent.
    fn continues_with(&self, next: &Self) -> bool {
        self.path == next.path && self.end == next.start
    }
}

/// Opens the datagrams of one buffer from `address` and moves their payloads together. The first
/// pair's run starts at the front and is returned; runs of other pairs go to `spill`.
fn open_buffer(
    state: &mut ClientState,
    names: &AddressTable,
    address: SocketAddr,
    buffer: &mut [u8],
    stride: usize,
    mut spill: impl FnMut(&DatagramRun, &[u8]),
) -> Option<DatagramRun> {
    let mut first: Option<DatagramRun> = None;
    let mut other: Option<DatagramRun> = None;
    let mut last: Option<(u32, WireId, PathAddr)> = None;
    let mut to = 0;
    let mut from = 0;
    while from < buffer.len() {
        let end = (from + stride.max(1)).min(buffer.len());
        let datagram = &mut buffer[from..end];
        let Some((relay, header)) = state.relay_at(address, datagram) else {
            state.offer_answer(address, datagram);
            from = end;
            continue;
        };
        if let Some(path) = open_datagram(relay, names, datagram, header, &mut last) {
            let headers = header + HEADER_BYTES;
            let len = end - from - headers;
            buffer.copy_within(from + headers..end, to);
            let run = DatagramRun { path, start: to, end: to + len, stride: stride - headers };
            to += len;
            match (&mut first, &mut other) {
                (None, _) => first = Some(run),
                (Some(first), None) if first.continues_with(&run) => first.end = run.end,
                (_, Some(other)) if other.continues_with(&run) => other.end = run.end,
                (_, other) => {
                    if let Some(done) = other.replace(run) {
                        spill(&done, buffer);
                    }
                }
            }
        }
        from = end;
    }
    if let Some(done) = other {
        spill(&done, buffer);
    }
    first
}

/// Returns the path of a pair's datagram behind `header` bytes of a proxy. Returns `None` for a
/// binding, which goes to the task, and for a foreign datagram.
fn open_datagram(
    relay: &mut RelayState,
    names: &AddressTable,
    datagram: &[u8],
    header: usize,
    last: &mut Option<(u32, WireId, PathAddr)>,
) -> Option<PathAddr> {
    let id = match relay.classify(&datagram[header..])? {
        DatagramKind::Binding => {
            relay.push_binding(datagram);
            return None;
        }
        DatagramKind::Pair(id) => id,
    };
    if let Some((number, of, path)) = *last
        && (number, of) == (relay.number, id)
    {
        return Some(path);
    }
    let path = names.path(&name(relay.number, id));
    *last = Some((relay.number, id, path));
    Some(path)
}

impl DatagramMover for RelayMover {
    fn caps(&self) -> MoverLimits {
        MoverLimits { mtu_max: INNER_MAX as u16, segments_max: SEGMENTS_MAX }
    }

    fn readiness(&self) -> Readiness<'_> {
        Readiness { fd: self.epoll.as_fd(), room_is_writable: false }
    }

    fn send(&mut self, batch: SendBatch<'_>) -> SendResult {
        let SendBatch { to: path, ecn, datagrams, segment } = batch;
        let gone = || SendResult::Unreachable(Errno::NOTCONN.into());
        let Some(name) = self.names.name(path) else { return gone() };
        debug_assert_eq!(name.len(), NAME_BYTES);
        let Some((relay, id)) = parse_name(&name) else { return gone() };
        let mut state = self.shared.lock();
        let Some(relay) = state.relay(relay) else { return gone() };
        let (Some(pair), Some(session)) = (relay.pairs.get(&id), &relay.session) else {
            return gone();
        };
        let by_udp = session.route.as_ref().filter(|_| session.use_udp);
        let Some((to, header)) = by_udp.and_then(|route| Some((route.to(), route.header()?)))
        else {
            for datagram in datagrams.chunks(segment) {
                // A datagram that does not fit is dropped: a queue would only add delay.
                let _ = relay.outbox.push_datagram(id, datagram);
            }
            return SendResult::All;
        };
        self.out.clear();
        for datagram in datagrams.chunks(segment) {
            self.out.extend_from_slice(header);
            let start = self.out.len();
            self.out.extend_from_slice(&[0; HEADER_BYTES]);
            self.out.extend_from_slice(datagram);
            header::write(&session.up_mask, &pair.up_tag, id, &mut self.out[start..]);
        }
        let whole = header.len() + HEADER_BYTES + segment;
        relay.record_sent(Instant::now());
        drop(state);
        match self.udp.send(to, ecn, &self.out, whole) {
            SendResult::Blocked(done) => {
                self.wait_for_room(true);
                SendResult::Blocked(done / whole * segment)
            }
            // The relay's task restores the route.
            SendResult::All | SendResult::Unreachable(_) => {
                self.wait_for_room(false);
                SendResult::All
            }
        }
    }

    fn receive(&mut self, slots: &mut RecvSlots) -> io::Result<usize> {
        self.udp_first = !self.udp_first;
        let has_signal = self.shared.is_signalled();
        let filled = if self.udp_first || !has_signal { self.receive_udp(slots)? } else { 0 };
        if filled > 0 {
            // The shared state's signal stays set, so the shared state is read in the next round.
            return Ok(filled);
        }
        self.shared.take_signal();
        self.send_bindings();
        match self.receive_queued(slots) {
            0 if has_signal && !self.udp_first => self.receive_udp(slots),
            filled => Ok(filled),
        }
    }
}

impl Drop for RelayMover {
    fn drop(&mut self) {
        self.shared.lock().has_mover = false;
    }
}
