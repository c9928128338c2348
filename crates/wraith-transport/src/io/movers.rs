//! The movers of one endpoint: UDP first, then what the application brought, each with what it could not take yet.
//!
//! A batch that a mover did not take stays with it, buffer and all, and the core is not asked for more for its addresses
//! until it is gone. So nothing is lost and nothing is overtaken, and the others go on. What the core sends to other
//! addresses than a connection's own in the meantime (answers to strangers, challenges) waits behind it, up to
//! [`WAITING_MAX`] batches; more is lost, as the network would.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use wraith_core::{PathAddr, Time, Transmit};

use crate::addr::Addr;
use crate::mover::{Bind, DatagramMover, Names, RecvSlots, SEND_MAX, Sent, Udp, mover_of};

/// Movers of one endpoint, UDP included: a set of them is the bits of a byte.
const MOVERS_MAX: usize = 8;
/// Batches that wait behind one that a mover did not take.
const WAITING_MAX: usize = 8;

/// Some of the movers, a bit each.
pub(super) type Set = u8;
pub(super) const ALL: Set = Set::MAX;

/// The movers of an endpoint, owned by its I/O thread.
#[derive(Debug)]
pub(crate) struct Movers {
    local: SocketAddr,
    slots: Vec<Slot>,
    /// Which have something held.
    blocked: Set,
}

#[derive(Debug)]
struct Slot {
    mover: Mover,
    kind: Option<(u64, Names)>,
    /// Memory of the batch that was not taken whole; exchanged with the one the core seals into.
    buffer: Box<[u8]>,
    held: Option<(Transmit, usize)>,
    waiting: VecDeque<(Transmit, Box<[u8]>)>,
    /// It failed to receive; it is left alone until then.
    pause: Option<Time>,
}

/// UDP is not behind the trait: it moves nearly everything.
#[derive(Debug)]
enum Mover {
    Udp(Box<Udp>),
    Other(Box<dyn DatagramMover>),
}

impl Movers {
    /// Lets go of every socket. Nothing can be moved after that.
    pub(crate) fn close(&mut self) {
        self.slots.clear();
    }

    /// A UDP socket on `address`, and the `others`.
    pub(crate) fn bind(address: SocketAddr, others: &[Arc<dyn Bind>]) -> io::Result<Self> {
        if others.len() >= MOVERS_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "too many movers"));
        }
        let udp = Udp::bind(address)?;
        let local = udp.local_addr();
        let mut slots = vec![Slot::new(Mover::Udp(Box::new(udp)), None)];
        for bind in others {
            let names = Names::new(slots.len());
            let mover = Mover::Other(bind.bind(names.clone())?);
            slots.push(Slot::new(mover, Some((bind.kind(), names))));
        }
        Ok(Self { local, slots, blocked: 0 })
    }

    /// Where the UDP socket is bound.
    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// What the core calls `address`; `None` if no mover serves it.
    pub(super) fn path(&self, address: &Addr) -> Option<PathAddr> {
        match address {
            Addr::Ip(address) => Some(PathAddr::Ip(*address)),
            Addr::Custom { kind, bytes } => {
                let mut kinds = self.slots.iter().filter_map(|slot| slot.kind.as_ref());
                kinds.find(|(of, _)| of == kind).map(|(_, names)| names.path(bytes))
            }
        }
    }

    /// What applications call `path`; `None` if its mover forgot it.
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

    /// True while the mover of `to` has something that it must take first.
    pub(super) fn is_blocked(&self, to: PathAddr) -> bool {
        self.blocked != 0 && self.blocked & bit(self.index(to)) != 0
    }

    /// True while any is.
    pub(super) fn any_blocked(&self) -> bool {
        self.blocked != 0
    }

    /// Sends the batch in `out`. What is not taken is held; `out` may be another buffer then.
    pub(super) fn send(&mut self, transmit: Transmit, out: &mut Box<[u8]>) -> io::Result<()> {
        let i = self.index(transmit.to);
        let Some(slot) = self.slots.get_mut(i) else { return Ok(()) };
        if slot.held.is_some() {
            if slot.waiting.len() < WAITING_MAX {
                slot.waiting.push_back((transmit, out[..transmit.len].into()));
            }
            return Ok(());
        }
        match slot.mover.send(&transmit, &out[..transmit.len]) {
            Sent::All => Ok(()),
            Sent::Blocked(done) => {
                if slot.buffer.is_empty() {
                    slot.buffer = vec![0; SEND_MAX].into_boxed_slice();
                }
                std::mem::swap(out, &mut slot.buffer);
                slot.held = Some((transmit, done));
                self.blocked |= bit(i);
                Ok(())
            }
            Sent::Unreachable(error) => Err(error),
        }
    }

    /// Offers what is held again; `unreachable` hears of addresses that cannot be reached.
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

    /// Receives one batch from each of `readable` and hands it to `take`. Those of which more may be waiting.
    pub(super) fn receive(
        &mut self,
        readable: Set,
        slots: &mut RecvSlots,
        pause_until: impl Fn() -> Time,
        mut take: impl FnMut(&mut RecvSlots, usize),
    ) -> Set {
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

    /// When the first of those that are left alone is tried again.
    pub(super) fn pause(&self) -> Option<Time> {
        self.slots.iter().filter_map(|slot| slot.pause).min()
    }

    /// Those that are not left alone at `now`.
    pub(super) fn unpaused(&mut self, now: Time) -> Set {
        let mut set = 0;
        for (i, slot) in self.slots.iter_mut().enumerate() {
            if slot.pause.is_some_and(|until| until <= now) {
                slot.pause = None;
            }
            set |= if slot.pause.is_none() { bit(i) } else { 0 };
        }
        set
    }

    /// Sleeps until a mover is ready, `event` is readable, or the time is over. Which movers are readable, and whether
    /// `event` is.
    pub(super) fn sleep(&self, event: BorrowedFd<'_>, timeout: Option<&Timespec>) -> (Set, bool) {
        let mut fds: [PollFd<'_>; 1 + MOVERS_MAX] =
            std::array::from_fn(|_| PollFd::from_borrowed_fd(event, PollFlags::IN));
        for (slot, fd) in self.slots.iter().zip(&mut fds[1..]) {
            // A failed socket reports errors whether asked or not: left alone it is left out, or this would spin.
            if slot.pause.is_none() {
                *fd = slot.poll_fd();
            }
        }
        // The only error that can occur is an interruption by a signal: then it is just a round too many.
        let _ = poll(&mut fds[..=self.slots.len()], timeout);
        let mut readable = 0;
        for (i, (slot, fd)) in self.slots.iter().zip(&fds[1..]).enumerate() {
            let ready = fd.revents().intersects(PollFlags::IN | PollFlags::ERR);
            readable |= if ready && slot.pause.is_none() { bit(i) } else { 0 };
        }
        (readable, !fds[0].revents().is_empty())
    }
}

fn bit(i: usize) -> Set {
    1 << i
}

impl Slot {
    fn new(mover: Mover, kind: Option<(u64, Names)>) -> Self {
        let buffer = Box::default();
        Self { mover, kind, buffer, held: None, waiting: VecDeque::new(), pause: None }
    }

    /// Offers what is held again. True if nothing is held any more.
    fn retry(&mut self, unreachable: &mut impl FnMut(PathAddr, &io::Error)) -> bool {
        while let Some((transmit, done)) = self.held {
            match self.mover.send(&transmit, &self.buffer[done..transmit.len]) {
                Sent::Blocked(more) => {
                    self.held = Some((transmit, done + more));
                    return false;
                }
                Sent::All => {}
                Sent::Unreachable(error) => unreachable(transmit.to, &error),
            }
            self.held = self.waiting.pop_front().map(|(transmit, bytes)| {
                self.buffer[..bytes.len()].copy_from_slice(&bytes);
                (transmit, 0)
            });
        }
        true
    }

    fn poll_fd(&self) -> PollFd<'_> {
        let (fd, room_is_writable) = match &self.mover {
            Mover::Udp(udp) => (udp.as_fd(), true),
            Mover::Other(mover) => {
                let readiness = mover.readiness();
                (readiness.fd, readiness.room_is_writable)
            }
        };
        let mut interest = PollFlags::IN;
        interest.set(PollFlags::OUT, room_is_writable && self.held.is_some());
        PollFd::from_borrowed_fd(fd, interest)
    }
}

impl Mover {
    fn send(&mut self, transmit: &Transmit, datagrams: &[u8]) -> Sent {
        let Transmit { to, ecn, segment, .. } = *transmit;
        match (self, to) {
            (Self::Udp(udp), PathAddr::Ip(to)) => udp.send(to, ecn, datagrams, segment),
            (Self::Udp(_), PathAddr::Via(_)) => Sent::Unreachable(Errno::AFNOSUPPORT.into()),
            (Self::Other(mover), _) => {
                let caps = mover.caps();
                if segment > usize::from(caps.mtu_max) {
                    return Sent::All;
                }
                let batch = segment * caps.segments_max.max(1);
                let mut done = 0;
                for datagrams in datagrams.chunks(batch) {
                    match mover.send(to, ecn, datagrams, segment) {
                        Sent::All => done += datagrams.len(),
                        Sent::Blocked(more) => return Sent::Blocked(done + more),
                        Sent::Unreachable(error) => return Sent::Unreachable(error),
                    }
                }
                Sent::All
            }
        }
    }

    fn receive(&mut self, slots: &mut RecvSlots) -> io::Result<usize> {
        match self {
            Self::Udp(udp) => udp.receive(slots),
            Self::Other(mover) => mover.receive(slots),
        }
    }
}
