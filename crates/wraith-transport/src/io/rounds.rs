//! The rounds of the I/O thread, its own and those of callers.
//!
//! Invariants: no task is woken while the state is locked, because a waker can run any code. The
//! thread sleeps without the lock.

use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use rustix::event::Timespec;
use rustix::thread::{CpuSet, sched_setaffinity, set_current_timer_slack};
use tracing::debug;
use wraith_core::{PathAddr, Time};

use super::happy_eyeballs::HappyEyeballs;
use super::sleep::{ALL_MOVERS, MoverSet};
use super::state::IoThread;
use crate::lock::WakeBatch;
use crate::shared::IoInbox;
use crate::wake::InlineRound;
use crate::wake_relay::RELAY_TIME;

/// Batches sent in one round before receiving again: about 2 MiB, so that ACKs are processed soon.
const BATCHES_PER_ROUND: usize = 32;
/// Maximum number of live streams and connections with which callers run rounds of their own.
const INLINE_STREAMS_MAX: usize = 4;
const INLINE_CONNECTIONS_MAX: usize = 4;
/// Batches of a caller's own round: a small message is one, and a large one leaves from the thread.
const INLINE_BATCHES_MAX: usize = 2;
/// Back-off of a mover after a receive error that may persist.
const RECV_BACKOFF: Duration = Duration::from_millis(10);
/// Minimum sleep while a mover is full, such as the kernel's send buffer. The core's pacing timer
/// is due all that time, but nothing can be sent.
const BLOCKED_SLEEP_MIN: Duration = Duration::from_millis(1);

impl IoThread {
    /// Makes the state available for rounds of callers.
    pub(crate) fn share(self) -> Arc<Mutex<Self>> {
        let inbox = Arc::clone(&self.shared.inbox);
        let state = Arc::new(Mutex::new(self));
        let inline: Weak<dyn InlineRound> = Arc::downgrade(&(Arc::clone(&state) as Arc<_>));
        inbox.set_inline(inline);
        state
    }

    /// Runs until the endpoint is closed, or released and idle.
    pub(crate) fn run(state: &Mutex<Self>, cpu: Option<usize>) {
        // Pacing needs timers that are exact to less than one batch (50 µs by default). A failure
        // costs only speed.
        let _ = set_current_timer_slack(NonZeroU64::new(1));
        if let Some(cpu) = cpu.filter(|cpu| *cpu < CpuSet::MAX_CPU) {
            let mut set = CpuSet::new();
            set.set(cpu);
            let _ = sched_setaffinity(None, &set);
        }
        // None after a panic of a caller's round: the state is incomplete, and this thread ends.
        let _ = Self::run_rounds(state);
    }

    fn run_rounds(state: &Mutex<Self>) -> Option<()> {
        let mut io = state.lock().ok()?;
        let inbox = Arc::clone(&io.shared.inbox);
        let descriptors = io.movers.descriptors();
        let mut wakes = WakeBatch::default();
        let mut readable = ALL_MOVERS;
        let mut skipped = false;
        loop {
            let more = io.handle_input(readable);
            io = Self::wake_tasks(state, io, &inbox, &mut wakes)?;
            let busy = io.send_output(BATCHES_PER_ROUND) || more;
            let now = io.clock.now();
            if io.is_done(now) {
                debug!(local = %io.movers.local_addr(), "endpoint closed");
                return Some(());
            }
            io = Self::wake_tasks(state, io, &inbox, &mut wakes)?;
            // Idle time is used to prepare the keys of future handshakes.
            let busy = busy || io.core.prepare();
            io.sleep_until = io.next_wake();
            if busy || !inbox.fall_asleep() {
                // With few streams, a request that came meanwhile rarely comes with a datagram: one
                // round without receiving saves a system call. The next one receives, or asks in
                // its sleep.
                skipped = !busy && !skipped && io.is_quiet();
                let now = io.clock.now();
                readable = if skipped { 0 } else { io.movers.unpaused(now) };
                continue;
            }
            skipped = false;
            let (timeout, interests) = (io.sleep_time().map(to_timespec), io.movers.interests());
            drop(io);
            let signalled;
            (readable, signalled) = descriptors.sleep(&interests, inbox.event(), timeout.as_ref());
            io = state.lock().ok()?;
            inbox.wake_up(signalled);
            // A mover whose back-off has ended is tried again, even if it has not reported that it
            // is ready.
            let now = io.clock.now();
            if io.movers.pause().is_some_and(|until| until <= now) {
                readable = io.movers.unpaused(now);
            }
        }
    }

    /// The first half of a round: receives, handles the requests of the handles, and hands them
    /// events. Returns true if more datagrams may be waiting.
    fn handle_input(&mut self, readable: MoverSet) -> bool {
        let more = self.receive(readable);
        let now = self.clock.now();
        if self.core.poll_timeout().is_some_and(|due| due <= now) {
            self.core.handle_timeout(now);
        }
        self.handle_inbox(now);
        self.handle_events(now);
        self.poll_waiting(now);
        more
    }

    /// The second half of a round: sends at most so many batches. Returns true if the next round
    /// should follow without sleep.
    fn send_output(&mut self, batches_max: usize) -> bool {
        let busy = self.transmit(batches_max);
        let now = self.clock.now();
        self.handle_events(now) || busy
    }

    /// Wakes the tasks of this batch, and those that no other task has woken in time. The state is
    /// unlocked meanwhile. `batch` is empty, and its memory serves the next one.
    fn wake_tasks<'a>(
        state: &'a Mutex<Self>,
        mut io: MutexGuard<'a, Self>,
        inbox: &IoInbox,
        batch: &mut WakeBatch,
    ) -> Option<MutexGuard<'a, Self>> {
        let relay = &inbox.relay;
        let is_late = relay.is_pending() && io.clock.now() >= io.relay_until;
        if io.wakes.is_empty() && !is_late {
            return Some(io);
        }
        std::mem::swap(&mut io.wakes, batch);
        drop(io);
        let started = relay.start(batch);
        if is_late && !started {
            relay.pass_on();
        }
        let mut io = state.lock().ok()?;
        if started {
            io.relay_until = io.clock.now() + RELAY_TIME;
        }
        Some(io)
    }

    /// Returns whether so few streams are in use that a caller's own round is cheaper than waking
    /// the thread, which would send for many callers at once.
    fn is_quiet(&self) -> bool {
        let mut live = 0;
        self.established.len() <= INLINE_CONNECTIONS_MAX
            && self.established.values().all(|established| {
                live += established.live_streams();
                live <= INLINE_STREAMS_MAX
            })
    }

    /// Receives one batch from each of `readable`. Returns true if more may be waiting.
    fn receive(&mut self, readable: MoverSet) -> bool {
        let Self { movers, core, clock, received, .. } = self;
        let more = movers.receive(
            readable,
            received,
            || clock.now() + RECV_BACKOFF,
            |slots, filled| {
                for (from, ecn, datagrams) in slots.filled(filled) {
                    let now = clock.now();
                    for datagram in datagrams {
                        core.handle_datagram(now, from, ecn, datagram);
                    }
                }
            },
        );
        more != 0
    }

    /// Sends all due packets. Returns true if there may be more packets, or events.
    fn transmit(&mut self, batches_max: usize) -> bool {
        let Self { movers, connecting, core, clock, .. } = self;
        movers.retry(|to, error| unreachable(connecting, core, clock.now(), to, error));
        for _ in 0..batches_max {
            let now = self.clock.now();
            let open = |to| !self.movers.is_blocked(to);
            let Some(transmit) = self.core.poll_transmit_to(now, &mut self.out, open) else {
                return false;
            };
            if let Err(error) = self.movers.send(transmit, &mut self.out) {
                unreachable(&mut self.connecting, &mut self.core, now, transmit.to, &error);
            }
        }
        true
    }

    fn is_done(&mut self, now: Time) -> bool {
        self.end_doors(now);
        let is_released = self.doors.values().all(|door| door.released);
        if self.close_deadline.is_none() && !is_released {
            return false;
        }
        if self.close_deadline.is_some_and(|deadline| now >= deadline) {
            return true;
        }
        // Polling the timeout makes the core drop connections that are over.
        let _ = self.core.poll_timeout();
        self.prune_closing();
        self.established.is_empty() && self.connecting.is_empty() && self.closing.is_empty()
    }

    /// Returns the time of the next round if nothing else happens.
    fn next_wake(&mut self) -> Option<Time> {
        let connecting = self.connecting.iter().filter_map(HappyEyeballs::next_start).min();
        let lingering =
            self.needs_poll.iter().filter_map(|h| self.established.get(h)?.linger_until()).min();
        let core = self.core.poll_timeout();
        let relay = self.shared.inbox.relay.is_pending().then_some(self.relay_until);
        let doors = self.doors.values().filter_map(|door| door.close_deadline).min();
        [core, connecting, lingering, relay, self.movers.pause(), doors].into_iter().flatten().min()
    }

    /// Returns the maximum length of the sleep.
    fn sleep_time(&self) -> Option<Duration> {
        let least = if self.movers.any_blocked() { BLOCKED_SLEEP_MIN } else { Duration::ZERO };
        self.sleep_until.map(|until| (until - self.clock.now()).max(least))
    }
}

/// A caller's round, while the thread sleeps: the message leaves from the caller's thread, which
/// saves a change of threads.
impl InlineRound for Mutex<IoThread> {
    fn run_round(&self) -> bool {
        let Ok(mut io) = self.try_lock() else { return false };
        if !io.is_quiet() || io.movers.any_blocked() {
            return false;
        }
        io.handle_input(0);
        let busy = io.send_output(INLINE_BATCHES_MAX);
        let earlier = match (io.next_wake(), io.sleep_until) {
            (Some(next), Some(until)) => next < until,
            (Some(_), None) => true,
            (None, _) => false,
        };
        let sleeps_on =
            !(busy || earlier || io.movers.any_blocked() || io.close_deadline.is_some());
        if !io.wakes.is_empty() {
            let mut wakes = std::mem::take(&mut io.wakes);
            drop(io);
            wakes.wake();
        }
        sleeps_on
    }
}

/// Handles an unreachable destination. Only connection attempts fail; an established connection may
/// recover.
fn unreachable(
    connecting: &mut [HappyEyeballs],
    core: &mut wraith_core::Endpoint,
    now: Time,
    to: PathAddr,
    error: &std::io::Error,
) {
    debug!(%to, %error, "unreachable");
    for attempts in connecting {
        attempts.unreachable(core, now, to, error);
    }
}

fn to_timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: duration.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::mpsc;
    use std::task::{Context, Wake, Waker};
    use std::thread;

    use wraith_core::{Door, DoorId, EndpointConfig};
    use wraith_crypto::identity::SecretIdentity;

    use super::*;
    use crate::io::Movers;
    use crate::lock::lock;
    use crate::shared::{DoorShared, EndpointShared};

    /// A waker that reports whether the state is unlocked.
    struct LockProbe {
        state: Weak<Mutex<IoThread>>,
        reports: mpsc::Sender<bool>,
    }

    impl Wake for LockProbe {
        fn wake(self: Arc<Self>) {
            let is_free = self.state.upgrade().is_some_and(|state| state.try_lock().is_ok());
            self.reports.send(is_free).unwrap();
        }
    }

    #[test]
    fn a_waker_runs_while_the_state_is_unlocked() {
        let movers = Movers::bind((Ipv4Addr::LOCALHOST, 0).into(), &[]).unwrap();
        let config = EndpointConfig::new(SecretIdentity::from_seed([1; 32]));
        let core = wraith_core::Endpoint::new(config, [1; 32]);
        let endpoint = EndpointShared::new(Arc::new(IoInbox::new().unwrap()));
        let door = |number, rules| DoorShared::new(DoorId(number), Arc::clone(&endpoint), rules);
        let (first, second) = (door(0, None), door(1, Some(Door::default())));
        let state = IoThread::new(movers, core, Arc::clone(&endpoint), Arc::clone(&first)).share();
        let (reports, reported) = mpsc::channel();
        let waker = Waker::from(Arc::new(LockProbe { state: Arc::downgrade(&state), reports }));
        {
            let mut state = lock(&second.state);
            state.closing = true;
            state.wakers.register(&Context::from_waker(&waker));
        }
        second.notify_io();
        let thread = thread::spawn(move || IoThread::run(&state, None));
        assert!(reported.recv().unwrap(), "the door ends, and its waker meets the lock");
        lock(&first.state).closing = true;
        first.notify_io();
        thread.join().unwrap();
    }
}
