//! The inbox of the I/O thread: a list of objects with work to do, and an eventfd.
//!
//! Requests are stored in the objects themselves (a stream's queue, a connection's state); the list
//! only names the objects to visit. Each object is in it at most once, so the number of live
//! handles bounds it. The eventfd is written only while the I/O thread sleeps: a busy transfer
//! makes no system call for it.
//!
//! The objects own the inbox, and a list owns its objects. So the I/O thread closes the inbox at its
//! end: an object that was added later would keep itself, the inbox and its descriptor for ever.
//!
//! No wake-up is lost. The I/O thread first declares that it sleeps, then checks the list once
//! more. A notifier first appends, then checks the declaration.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use rustix::event::{EventfdFlags, eventfd};

use crate::lock::lock;
use crate::wake_relay::WakeRelay;

/// The state of a sleeping I/O thread, with which another thread can run a round.
pub(crate) trait InlineRound: Send + Sync {
    /// Runs a round if the state is free and the round is worthwhile. Returns true if the I/O
    /// thread can sleep on; otherwise it must be woken.
    fn run_round(&self) -> bool;
}

/// Whether an object is in the inbox.
#[derive(Debug, Default)]
pub(crate) struct InboxMark(AtomicBool);

impl InboxMark {
    /// I/O thread: clears the mark before it reads the object; later changes mark it again.
    pub(crate) fn clear(&self) {
        self.0.store(false, Ordering::Release);
    }
}

/// Objects with work for the I/O thread.
pub(crate) struct Inbox<T> {
    ready: Mutex<ReadyList<T>>,
    asleep: AtomicBool,
    event: OwnedFd,
    inline: OnceLock<Weak<dyn InlineRound>>,
    /// Tasks that wait for another one to wake them.
    pub(crate) relay: WakeRelay,
}

impl<T> fmt::Debug for Inbox<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox").field("asleep", &self.asleep).finish_non_exhaustive()
    }
}

/// Whether an object was added to the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Listed {
    Now,
    /// It was in the list.
    Before,
    /// The list is closed.
    Never,
}

struct ReadyList<T> {
    objects: Vec<T>,
    is_closed: bool,
}

impl<T> Inbox<T> {
    /// Creates an empty inbox. Fails if the process is out of descriptors.
    pub(crate) fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        let ready = Mutex::new(ReadyList { objects: Vec::new(), is_closed: false });
        let asleep = AtomicBool::new(false);
        let (inline, relay) = (OnceLock::new(), WakeRelay::default());
        Ok(Self { ready, asleep, event, inline, relay })
    }

    /// Allows callers to run rounds of their own while the I/O thread sleeps.
    pub(crate) fn set_inline(&self, inline: Weak<dyn InlineRound>) {
        let _ = self.inline.set(inline);
    }

    /// Adds `object` unless `mark` shows that it is already listed, and wakes the I/O thread. Does
    /// nothing after [`Self::close`], and then returns false for an object that was not listed.
    pub(crate) fn push(&self, mark: &InboxMark, object: impl FnOnce() -> T) -> bool {
        let listed = self.list(mark, object);
        if listed == Listed::Now {
            self.wake();
        }
        listed != Listed::Never
    }

    /// Does the same, or runs a round on this thread if that is faster. The caller holds no lock.
    pub(crate) fn push_and_run(&self, mark: &InboxMark, object: impl FnOnce() -> T) {
        if self.list(mark, object) == Listed::Now
            && self.asleep.load(Ordering::SeqCst)
            && !self.run_round()
        {
            self.wake();
        }
    }

    fn run_round(&self) -> bool {
        self.inline().is_some_and(|inline| inline.run_round())
    }

    /// Lists `object` unless `mark` shows that it is listed already.
    fn list(&self, mark: &InboxMark, object: impl FnOnce() -> T) -> Listed {
        if mark.0.swap(true, Ordering::AcqRel) {
            return Listed::Before;
        }
        let mut ready = lock(&self.ready);
        if ready.is_closed {
            return Listed::Never;
        }
        ready.objects.push(object());
        Listed::Now
    }

    /// Returns the last objects. No other is added from now on.
    pub(crate) fn close(&self) -> Vec<T> {
        let mut ready = lock(&self.ready);
        ready.is_closed = true;
        std::mem::take(&mut ready.objects)
    }

    /// Makes the I/O thread run another round.
    pub(crate) fn wake(&self) {
        if self.asleep.swap(false, Ordering::SeqCst) {
            // The only possible error is a full counter, and then the descriptor is readable
            // anyway.
            let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
        }
    }

    /// Returns the state of the I/O thread, unless it has ended or not begun.
    pub(crate) fn inline(&self) -> Option<Arc<dyn InlineRound>> {
        self.inline.get().and_then(Weak::upgrade)
    }

    /// Swaps the list with `empty`, whose memory is reused for the next one.
    pub(crate) fn take(&self, empty: &mut Vec<T>) {
        debug_assert!(empty.is_empty(), "the list of the last round was not worked off");
        std::mem::swap(&mut lock(&self.ready).objects, empty);
    }

    /// Declares that the I/O thread goes to sleep. Returns false if there is work; the thread must
    /// then not sleep.
    pub(crate) fn fall_asleep(&self) -> bool {
        self.asleep.store(true, Ordering::SeqCst);
        let idle = lock(&self.ready).objects.is_empty();
        if !idle {
            self.asleep.store(false, Ordering::SeqCst);
        }
        idle
    }

    /// Ends the sleep; `signalled` states whether the eventfd was readable.
    pub(crate) fn wake_up(&self, signalled: bool) {
        self.asleep.store(false, Ordering::SeqCst);
        if signalled {
            // Resets the counter. If a notifier is between its swap and its write, the next sleep
            // ends at once.
            let _ = rustix::io::read(&self.event, &mut [0_u8; 8]);
        }
    }

    /// Readable when the I/O thread should wake up.
    pub(crate) fn event(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    fn readable(inbox: &Inbox<u32>) -> bool {
        let mut fds = [PollFd::new(&inbox.event, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() == 1
    }

    #[test]
    fn an_object_is_in_the_inbox_at_most_once() {
        let inbox = Inbox::new().unwrap();
        let mark = InboxMark::default();
        inbox.push(&mark, || 7);
        inbox.push(&mark, || unreachable!("already queued"));
        let mut list = Vec::new();
        inbox.take(&mut list);
        assert_eq!(list, [7]);
    }

    #[test]
    fn a_closed_inbox_keeps_no_object() {
        let inbox = Inbox::new().unwrap();
        inbox.push(&InboxMark::default(), || 7);
        assert_eq!(inbox.close(), [7]);
        inbox.push(&InboxMark::default(), || unreachable!("nobody takes it"));
        assert_eq!(inbox.close(), []);
    }

    #[test]
    fn the_eventfd_is_written_only_while_the_io_thread_sleeps() {
        let inbox = Inbox::new().unwrap();
        inbox.wake();
        assert!(!readable(&inbox));
        assert!(inbox.fall_asleep());
        inbox.wake();
        assert!(readable(&inbox));
        inbox.wake_up(true);
        assert!(!readable(&inbox));
    }

    #[test]
    fn the_io_thread_does_not_sleep_with_a_full_inbox() {
        let inbox = Inbox::new().unwrap();
        inbox.push(&InboxMark::default(), || 1);
        assert!(!inbox.fall_asleep());
    }
}
