//! The movers of one endpoint. A mover carries datagrams: the first is the UDP socket, further ones
//! come from the application, such as a relay client. Each has a queue of the batches that it could
//! not send yet.
//!
//! A batch that a mover did not send is held for that mover, with its buffer. Until the batch is
//! sent, the core is not asked for more datagrams to this mover's addresses. So the batch is
//! neither lost nor reordered, and other movers are not held up. Exception: meanwhile the core may
//! send to addresses outside of connections (answers to unknown senders, path challenges). Up to
//! [`WAITING_MAX`] such batches wait behind the held one; further ones are dropped, as a network
//! would.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use rustix::event::PollFlags;
use rustix::io::Errno;
use wraith_core::{PathAddr, Time, Transmit};

use super::sleep::{Descriptors, Interests, MOVERS_MAX, MoverSet, bit};
use crate::addr::Addr;
use crate::mover::{
    AddressTable, DatagramMover, MoverFactory, RecvSlots, SEND_MAX, SendBatch, SendResult, Udp,
    mover_of,
};

/// Maximum number of batches that wait behind a held one.
const WAITING_MAX: usize = 8;

/// The movers of an endpoint, owned by its I/O thread.
#[derive(Debug)]
pub(crate) struct Movers {
    local: SocketAddr,
    slots: Vec<MoverSlot>,
    descriptors: Arc<Descriptors>,
    /// Movers with a held batch.
    blocked: MoverSet,
}

#[derive(Debug)]
struct MoverSlot {
    mover: Mover,
    kind: Option<(u64, AddressTable)>,
    /// Memory of the batch that was not taken entirely; swapped with the core's output buffer.
    buffer: Box<[u8]>,
    unsent: Option<(Transmit, usize)>,
    waiting: VecDeque<(Transmit, Box<[u8]>)>,
    /// End of the back-off after a receive error.
    pause: Option<Time>,
}

/// UDP is not a trait object, because it moves nearly all datagrams.
#[derive(Debug)]
enum Mover {
    Udp(Box<Udp>),
    Custom(Box<dyn DatagramMover>),
}

impl Movers {
    /// Closes every socket. Nothing can be sent or received afterwards.
    pub(crate) fn close(&mut self) {
        self.slots.clear();
        self.descriptors = Arc::new(Descriptors(Vec::new()));
    }

    /// Binds a UDP socket to `address`, and the `others`.
    pub(crate) fn bind(address: SocketAddr, others: &[Arc<dyn MoverFactory>]) -> io::Result<Self> {
        if others.len() >= MOVERS_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "too many movers"));
        }
        let udp = Udp::bind(address)?;
        let local = udp.local_addr();
        let mut slots = vec![MoverSlot::new(Mover::Udp(Box::new(udp)), None)];
        for bind in others {
            let names = AddressTable::new(slots.len());
            let mover = Mover::Custom(bind.bind(names.clone())?);
            slots.push(MoverSlot::new(mover, Some((bind.kind(), names))));
        }
        let descriptors = slots.iter().map(|slot| slot.readiness().0.try_clone_to_owned());
        let descriptors = Arc::new(Descriptors(descriptors.collect::<io::Result<_>>()?));
        Ok(Self { local, slots, descriptors, blocked: 0 })
    }

    /// Returns the local address of the UDP socket.
    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Returns the core's name of `address`; `None` if no mover serves it.
    pub(super) fn path(&self, address: &Addr) -> Option<PathAddr> {
        match address {
            Addr::Ip(address) => Some(PathAddr::Ip(*address)),
            Addr::Custom { kind, bytes } => {
                let mut kinds = self.slots.iter().filter_map(|slot| slot.kind.as_ref());
                kinds.find(|(of, _)| of == kind).map(|(_, names)| names.path(bytes))
            }
        }
    }

    /// Returns the application's name of `path`; `None` if its mover has evicted it.
    pub(super) fn addr(&self, path: PathAddr) -> Option<Addr> {
        match path {
            PathAddr::Ip(address) => Some(Addr::Ip(address)),
            PathAddr::Via(_) => {
                let (kind, names) = self.slots.get(self.index(path))?.kind.as_ref()?;
                names.name(path).map(|name| Addr::Custom { kind: *kind, bytes: (*name).into() })
            }
        }
    }

    fn index(&self, to: PathAddr) -> usize {
        match to {
            PathAddr::Ip(_) => 0,
            PathAddr::Via(number) => mover_of(number),
        }
    }

    /// Returns whether a held batch must be sent before others to the mover of `to`.
    pub(super) fn is_blocked(&self, to: PathAddr) -> bool {
        self.blocked != 0 && self.blocked & bit(self.index(to)) != 0
    }

    /// Returns whether any mover holds a batch.
    pub(super) fn any_blocked(&self) -> bool {
        self.blocked != 0
    }

    /// Sends the batch in `out`. Holds the part that the mover does not send; `out` may then be a
    /// different buffer.
    pub(super) fn send(&mut self, transmit: Transmit, out: &mut Box<[u8]>) -> io::Result<()> {
        let i = self.index(transmit.to);
        let Some(slot) = self.slots.get_mut(i) else { return Ok(()) };
        if slot.unsent.is_some() {
            if slot.waiting.len() < WAITING_MAX {
                slot.waiting.push_back((transmit, out[..transmit.len].into()));
            }
            return Ok(());
        }
        match slot.mover.send(&transmit, &out[..transmit.len]) {
            SendResult::All => Ok(()),
            SendResult::Blocked(done) => {
                if slot.buffer.is_empty() {
                    slot.buffer = vec![0; SEND_MAX].into_boxed_slice();
                }
                std::mem::swap(out, &mut slot.buffer);
                slot.unsent = Some((transmit, done));
                self.blocked |= bit(i);
                Ok(())
            }
            SendResult::Unreachable(error) => Err(error),
        }
    }

    /// Retries the held batches. Calls `unreachable` for addresses that cannot be reached.
    pub(super) fn retry(&mut self, mut unreachable: impl FnMut(PathAddr, &io::Error)) {
        if self.blocked == 0 {
            return;
        }
        for (i, slot) in self.slots.iter_mut().enumerate() {
            if slot.retry(&mut unreachable) {
                self.blocked &= !bit(i);
            }
        }
    }

    /// Receives one batch from each of `readable` and hands it to `take`. Returns the movers that
    /// may have more.
    pub(super) fn receive(
        &mut self,
        readable: MoverSet,
        slots: &mut RecvSlots,
        pause_until: impl Fn() -> Time,
        mut take: impl FnMut(&mut RecvSlots, usize),
    ) -> MoverSet {
        let mut more = 0;
        for (i, slot) in self.slots.iter_mut().enumerate() {
            if readable & bit(i) == 0 {
                continue;
            }
            match slot.mover.receive(slots) {
                Ok(filled) => {
                    take(slots, filled);
                    more |= if filled == slots.len() { bit(i) } else { 0 };
                }
                Err(_) => slot.pause = Some(pause_until()),
            }
        }
        more
    }

    /// Returns the end of the earliest back-off.
    pub(super) fn pause(&self) -> Option<Time> {
        self.slots.iter().filter_map(|slot| slot.pause).min()
    }

    /// Returns the movers without a back-off at `now`.
    pub(super) fn unpaused(&mut self, now: Time) -> MoverSet {
        let mut set = 0;
        for (i, slot) in self.slots.iter_mut().enumerate() {
            if slot.pause.is_some_and(|until| until <= now) {
                slot.pause = None;
            }
            set |= if slot.pause.is_none() { bit(i) } else { 0 };
        }
        set
    }

    /// Returns the descriptors on which the thread sleeps.
    pub(super) fn descriptors(&self) -> Arc<Descriptors> {
        Arc::clone(&self.descriptors)
    }

    /// Returns what the thread waits for during its next sleep.
    pub(super) fn interests(&self) -> Interests {
        let mut interests = [PollFlags::empty(); MOVERS_MAX];
        for (slot, interest) in self.slots.iter().zip(&mut interests) {
            // A failed socket always reports errors. During its back-off the socket is omitted;
            // otherwise the thread would spin.
            if slot.pause.is_none() {
                *interest = slot.interest();
            }
        }
        interests
    }
}

impl MoverSlot {
    fn new(mover: Mover, kind: Option<(u64, AddressTable)>) -> Self {
        let buffer = Box::default();
        Self { mover, kind, buffer, unsent: None, waiting: VecDeque::new(), pause: None }
    }

    /// Retries the held batches. Returns true if nothing is held any more.
    fn retry(&mut self, unreachable: &mut impl FnMut(PathAddr, &io::Error)) -> bool {
        while let Some((transmit, done)) = self.unsent {
            match self.mover.send(&transmit, &self.buffer[done..transmit.len]) {
                SendResult::Blocked(more) => {
                    self.unsent = Some((transmit, done + more));
                    return false;
                }
                SendResult::All => {}
                SendResult::Unreachable(error) => unreachable(transmit.to, &error),
            }
            self.unsent = self.waiting.pop_front().map(|(transmit, bytes)| {
                self.buffer[..bytes.len()].copy_from_slice(&bytes);
                (transmit, 0)
            });
        }
        true
    }

    /// Returns the mover's descriptor, and whether room after a blocked send makes it writable.
    fn readiness(&self) -> (BorrowedFd<'_>, bool) {
        match &self.mover {
            Mover::Udp(udp) => (udp.as_fd(), true),
            Mover::Custom(mover) => {
                let readiness = mover.readiness();
                (readiness.fd, readiness.room_is_writable)
            }
        }
    }

    fn interest(&self) -> PollFlags {
        let waits_for_room = self.unsent.is_some() && self.readiness().1;
        if waits_for_room { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN }
    }
}

impl Mover {
    fn send(&mut self, transmit: &Transmit, datagrams: &[u8]) -> SendResult {
        let Transmit { to, ecn, segment, .. } = *transmit;
        match (self, to) {
            (Self::Udp(udp), PathAddr::Ip(to)) => udp.send(to, ecn, datagrams, segment),
            (Self::Udp(_), PathAddr::Via(_)) => SendResult::Unreachable(Errno::AFNOSUPPORT.into()),
            (Self::Custom(mover), _) => {
                let caps = mover.caps();
                if segment > usize::from(caps.mtu_max) {
                    return SendResult::All;
                }
                let batch = segment * caps.segments_max.max(1);
                let mut done = 0;
                for datagrams in datagrams.chunks(batch) {
                    match mover.send(SendBatch { to, ecn, datagrams, segment }) {
                        SendResult::All => done += datagrams.len(),
                        SendResult::Blocked(more) => return SendResult::Blocked(done + more),
                        SendResult::Unreachable(error) => return SendResult::Unreachable(error),
                    }
                }
                SendResult::All
            }
        }
    }

    fn receive(&mut self, slots: &mut RecvSlots) -> io::Result<usize> {
        match self {
            Self::Udp(udp) => udp.receive(slots),
            Self::Custom(mover) => mover.receive(slots),
        }
    }
}
