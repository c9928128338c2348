//! The sleep of the I/O thread, on all movers at once.
//!
//! The thread polls duplicates of the movers' descriptors, so it sleeps without access to the
//! movers and without the lock of its state. Meanwhile callers run rounds of their own.

use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Maximum number of movers of an endpoint, UDP included: a set of movers is stored as the bits of
/// a byte.
pub(super) const MOVERS_MAX: usize = 8;

/// A set of movers, one bit each.
pub(super) type MoverSet = u8;
pub(super) const ALL_MOVERS: MoverSet = MoverSet::MAX;

/// What makes a mover readable. The kernel reports an error or the end of a pipe until the mover has
/// been asked to receive, and has paused.
const READABLE: PollFlags = PollFlags::IN.union(PollFlags::ERR).union(PollFlags::HUP);

pub(super) fn bit(i: usize) -> MoverSet {
    1 << i
}

/// Duplicates of the movers' descriptors, in their order. They keep a socket open, so the movers
/// and the thread that sleeps drop them together.
#[derive(Debug)]
pub(super) struct Descriptors(pub(super) Vec<OwnedFd>);

/// What the thread waits for, one entry per mover. An empty one omits the mover.
pub(super) type Interests = [PollFlags; MOVERS_MAX];

impl Descriptors {
    /// Sleeps until a mover is ready, `event` is readable, or the timeout. Returns the readable
    /// movers, and whether `event` is readable.
    pub(super) fn sleep(
        &self,
        interests: &Interests,
        event: BorrowedFd<'_>,
        timeout: Option<&Timespec>,
    ) -> (MoverSet, bool) {
        let mut fds: [PollFd<'_>; 1 + MOVERS_MAX] =
            std::array::from_fn(|_| PollFd::from_borrowed_fd(event, PollFlags::IN));
        let waits = |i: usize| !interests[i].is_empty();
        for (i, descriptor) in self.0.iter().enumerate().filter(|(i, _)| waits(*i)) {
            fds[1 + i] = PollFd::new(descriptor, interests[i]);
        }
        // The only possible error is an interruption by a signal, which costs an extra round.
        let _ = poll(&mut fds[..=self.0.len()], timeout);
        let mut readable = 0;
        for (i, fd) in fds[1..=self.0.len()].iter().enumerate().filter(|(i, _)| waits(*i)) {
            let ready = fd.revents().intersects(READABLE);
            readable |= if ready { bit(i) } else { 0 };
        }
        (readable, !fds[0].revents().is_empty())
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd;

    use rustix::event::{EventfdFlags, eventfd};

    use super::*;

    const NOW: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

    #[test]
    fn a_mover_whose_pipe_has_ended_is_readable() {
        let (reader, writer) = std::io::pipe().unwrap();
        let event = eventfd(0, EventfdFlags::NONBLOCK).unwrap();
        let descriptors = Descriptors(vec![reader.into()]);
        let mut interests = [PollFlags::empty(); MOVERS_MAX];
        interests[0] = PollFlags::IN;
        assert_eq!(descriptors.sleep(&interests, event.as_fd(), Some(&NOW)), (0, false));
        drop(writer);
        assert_eq!(descriptors.sleep(&interests, event.as_fd(), None), (bit(0), false));
    }

    #[test]
    fn each_mover_is_waited_for_as_it_asks() {
        let sockets = [(); 3].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        let descriptors =
            Descriptors(sockets.iter().map(|s| s.as_fd().try_clone_to_owned().unwrap()).collect());
        let event = eventfd(0, EventfdFlags::NONBLOCK).unwrap();
        let mut interests = [PollFlags::empty(); MOVERS_MAX];
        interests[..2].fill(PollFlags::IN);
        let sleep = |interests| descriptors.sleep(&interests, event.as_fd(), Some(&NOW));
        assert_eq!(sleep(interests), (0, false));
        for socket in &sockets {
            sockets[0].send_to(b"datagram", socket.local_addr().unwrap()).unwrap();
        }
        assert_eq!(sleep(interests), (bit(0) | bit(1), false), "the third one backs off");
        // Room wakes the thread, and nothing can be received.
        interests[..3].fill(PollFlags::OUT);
        assert_eq!(sleep(interests), (0, false));
        rustix::io::write(&event, &1_u64.to_ne_bytes()).unwrap();
        assert_eq!(sleep([PollFlags::empty(); MOVERS_MAX]), (0, true));
    }
}
