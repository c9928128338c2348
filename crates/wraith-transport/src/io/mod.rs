//! The I/O thread: owns the socket and the protocol core of one endpoint.
//!
//! Each round has five steps:
//! 1. Receive a batch.
//! 2. Drain the inbox: the requests of the handles.
//! 3. Hand events to the handles.
//! 4. Wake the tasks that wait for them, each once.
//! 5. Send until nothing is due.
//!
//! Then the thread sleeps in `ppoll` until a datagram, a wake-up or the core's next timeout. If a
//! round leaves work undone (more datagrams waiting, more to send than one round's share), the next
//! round follows without sleep.
//!
//! While the thread sleeps and few streams are in use, a caller that has ended a message runs a
//! round itself ([`InlineRound`]). The thread's state is locked for that, and for nothing else: the
//! thread holds the lock whenever it is awake.
//!
//! Invariant: after every change of the core's state, the core's outputs are drained before the
//! thread sleeps.

mod doors;
mod established;
mod happy_eyeballs;
mod movers;
mod punching;

use std::collections::HashMap;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use rustix::event::Timespec;
use rustix::thread::{CpuSet, sched_setaffinity, set_current_timer_slack};
use tracing::debug;
use wraith_core::{CloseReason, ConnectionHandle, DoorId, Event, PathAddr, Time, code};

use self::doors::OpenDoor;
use self::established::Established;
use self::happy_eyeballs::{Destination, HappyEyeballs, Outcome};
pub(crate) use self::movers::Movers;
use self::movers::{ALL_MOVERS, MoverSet};
use self::punching::Punching;
use crate::clock::Clock;
use crate::error::ConnectError;
use crate::lock::{WakeBatch, lock};
use crate::mover::{RecvSlots, SEND_MAX};
use crate::shared::{
    CLOCK_DIFFERENCES_MAX, ConnectionShared, DoorShared, EndpointShared, InboxItem, Phase,
};
use crate::wake::InlineRound;
use crate::wake_relay::RELAY_TIME;

/// Maximum time of [`Endpoint::close`](crate::Endpoint::close): enough to deliver a last message
/// over a bad link, and bearable after Ctrl-C.
pub(crate) const CLOSE_WAIT_MAX: Duration = Duration::from_secs(3);
/// Incoming connections that wait for [`accept`](crate::Endpoint::accept); further ones are closed.
const ACCEPT_MAX: usize = 128;
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

/// State of the thread.
pub(crate) struct IoThread {
    movers: Movers,
    core: wraith_core::Endpoint,
    shared: Arc<EndpointShared>,
    doors: HashMap<DoorId, OpenDoor>,
    clock: Clock,
    established: HashMap<ConnectionHandle, Established>,
    connecting: Vec<HappyEyeballs>,
    punching: Punching,
    /// Connections to visit in every round: they linger.
    needs_poll: Vec<ConnectionHandle>,
    /// Tasks to wake at the end of the current batch.
    wakes: WakeBatch,
    /// Working copy of the inbox.
    ready: Vec<InboxItem>,
    received: RecvSlots,
    /// Time at which the tasks are woken that no other task has woken.
    relay_until: Time,
    /// End of the current sleep if nothing else happens.
    sleep_until: Option<Time>,
    /// Buffer into which the core seals and from which a mover sends.
    out: Box<[u8]>,
    /// Set while the endpoint closes: everything ends by this time.
    close_deadline: Option<Time>,
    /// Connections closed by this side, which may have to retransmit CLOSE, and their doors. Those
    /// closed by the peer need no answer.
    closing: Vec<(ConnectionHandle, DoorId)>,
}

impl IoThread {
    pub(crate) fn new(
        movers: Movers,
        core: wraith_core::Endpoint,
        shared: Arc<EndpointShared>,
        first: Arc<DoorShared>,
    ) -> Self {
        Self {
            movers,
            core,
            shared,
            doors: HashMap::from([(first.id, OpenDoor::new(first))]),
            clock: Clock::new(),
            established: HashMap::new(),
            connecting: Vec::new(),
            punching: Punching::default(),
            needs_poll: Vec::new(),
            wakes: WakeBatch::default(),
            ready: Vec::new(),
            received: RecvSlots::new(),
            relay_until: Time::ZERO,
            sleep_until: None,
            out: vec![0; SEND_MAX].into_boxed_slice(),
            close_deadline: None,
            closing: Vec::new(),
        }
    }

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
        // After a panic of a caller's round, the state is incomplete: this thread ends.
        let Ok(mut io) = state.lock() else { return };
        let inbox = Arc::clone(&io.shared.inbox);
        let mut readable = ALL_MOVERS;
        loop {
            let busy = io.round(readable, BATCHES_PER_ROUND);
            let now = io.clock.now();
            if io.is_done(now) {
                debug!(local = %io.movers.local_addr(), "endpoint closed");
                break;
            }
            // Idle time is used to prepare the keys of future handshakes.
            let busy = busy || io.core.prepare();
            io.sleep_until = io.next_wake();
            if busy || !inbox.fall_asleep() {
                let now = io.clock.now();
                readable = io.movers.unpaused(now);
                continue;
            }
            let timeout = io.sleep_time().map(to_timespec);
            let signalled;
            (readable, signalled) = match io.movers.only_socket() {
                // While this thread sleeps, callers may run rounds of their own.
                Some(socket) => {
                    drop(io);
                    let woken = movers::sleep_on(&socket, inbox.event(), timeout.as_ref());
                    io = match state.lock() {
                        Ok(io) => io,
                        Err(_) => return,
                    };
                    woken
                }
                None => io.movers.sleep(inbox.event(), timeout.as_ref()),
            };
            inbox.wake_up(signalled);
            // A mover whose back-off has ended is tried again, even if it has not reported that it
            // is ready.
            let now = io.clock.now();
            if io.movers.pause().is_some_and(|until| until <= now) {
                readable = io.movers.unpaused(now);
            }
        }
    }

    /// Runs one round, which sends at most so many batches. Returns true if the next round should
    /// follow without sleep.
    fn round(&mut self, readable: MoverSet, batches_max: usize) -> bool {
        let more = self.receive(readable);
        let now = self.clock.now();
        if self.core.poll_timeout().is_some_and(|due| due <= now) {
            self.core.handle_timeout(now);
        }
        self.handle_inbox(now);
        self.handle_events(now);
        self.poll_waiting(now);
        self.wake_tasks(now);
        let mut busy = self.transmit(batches_max);
        busy |= self.handle_events(now);
        self.wake_tasks(now);
        more || busy
    }

    /// Wakes the tasks of this batch, and those that no other task has woken in time.
    fn wake_tasks(&mut self, now: Time) {
        let relay = &self.shared.inbox.relay;
        if relay.start(&mut self.wakes) {
            self.relay_until = now + RELAY_TIME;
        } else if now >= self.relay_until {
            relay.pass_on();
        }
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

    fn handle_inbox(&mut self, now: Time) {
        let mut ready = std::mem::take(&mut self.ready);
        self.shared.inbox.take(&mut ready);
        for object in ready.drain(..) {
            match object {
                InboxItem::Stream(stream) => {
                    stream.clear_notification();
                    let Some(established) = self.established.get_mut(&stream.connection) else {
                        continue;
                    };
                    let Some(core) = self.core.connection(stream.connection) else { continue };
                    // Once closed, the Closed event fails the queues with the right reason.
                    if !core.is_closed() {
                        established.on_stream_ready(core, now, &stream, &mut self.wakes);
                    }
                }
                InboxItem::Connection(shared) => {
                    shared.clear_notification();
                    self.on_connection_ready(now, &shared);
                }
                InboxItem::Door(shared) => self.on_door_ready(now, &shared),
                InboxItem::Endpoint => self.on_endpoint_ready(now),
            }
        }
        self.ready = ready;
    }

    fn on_connection_ready(&mut self, now: Time, shared: &Arc<ConnectionShared>) {
        let closing = self.closing_of(shared.door);
        let mut state = lock(&shared.state);
        let abandoned = state.abandoned;
        match &mut state.phase {
            Phase::New(addresses, access_key) => {
                let is_gone = !self.doors.contains_key(&shared.door);
                let (addresses, access_key) = (std::mem::take(addresses), access_key.clone());
                let to = Destination { peer: state.peer, access_key };
                let given_up = abandoned || is_gone || closing.is_some();
                state.phase = if given_up { Phase::Failed(None) } else { Phase::Connecting };
                drop(state);
                if given_up {
                    shared.update(|_| ());
                } else {
                    let addresses =
                        addresses.iter().filter_map(|addr| self.movers.path(addr)).collect();
                    self.connecting.push(HappyEyeballs::new(
                        Arc::clone(shared),
                        to,
                        addresses,
                        now,
                    ));
                }
            }
            Phase::Connecting if abandoned => {
                drop(state);
                if let Some(i) =
                    self.connecting.iter().position(|attempts| attempts.belongs_to(shared))
                {
                    self.connecting.swap_remove(i).abort(&mut self.core, now, None);
                }
            }
            Phase::Open(handle) => {
                let handle = *handle;
                drop(state);
                self.start_move(now, handle);
                self.visit(now, handle);
            }
            Phase::Connecting | Phase::Failed(_) | Phase::Closed(_) => {}
        }
    }

    /// Starts the move that the connection's application has requested, if any.
    fn start_move(&mut self, now: Time, handle: ConnectionHandle) {
        let (Some(established), Some(core)) =
            (self.established.get_mut(&handle), self.core.connection(handle))
        else {
            return;
        };
        let Some(to) = established.take_move() else { return };
        match self.movers.path(&to) {
            Some(path) if core.migrate_to(now, path) => {}
            Some(path) if core.remote() == path => established.on_path_changed(Some(to)),
            _ => established.on_move_failed(Some(to)),
        }
    }

    /// Executes a connection's requests, and schedules it for every round if it needs that.
    fn visit(&mut self, now: Time, handle: ConnectionHandle) {
        let Some(door) = self.established.get(&handle).map(Established::door) else { return };
        let closing = self.closing_of(door);
        let (Some(established), Some(core)) =
            (self.established.get_mut(&handle), self.core.connection(handle))
        else {
            return;
        };
        if established.on_ready(core, now, closing, &mut self.wakes)
            && !self.needs_poll.contains(&handle)
        {
            self.needs_poll.push(handle);
        }
    }

    fn on_endpoint_ready(&mut self, now: Time) {
        self.shared.clear_notification();
        for request in std::mem::take(&mut lock(&self.shared.state).requests) {
            self.punching.start(&mut self.core, &self.movers, now, request);
        }
        self.punching.apply_requests(&mut self.core, now);
    }

    /// Handles the core's events. Returns true if there were any.
    fn handle_events(&mut self, now: Time) -> bool {
        let mut any = false;
        while let Some((handle, event)) = self.core.poll_event() {
            any = true;
            self.on_event(now, handle, event);
        }
        while let Some(difference) = self.core.poll_clock_difference() {
            let Some(door) = self.doors.get(&difference.door) else { continue };
            door.shared.update(|state| {
                if state.clock_differences.len() < CLOCK_DIFFERENCES_MAX {
                    state.clock_differences.push_back(difference);
                }
            });
        }
        any |= self.punching.handle_events(&mut self.core);
        any
    }

    fn on_event(&mut self, now: Time, handle: ConnectionHandle, event: Event) {
        if let Event::Closed(reason) = event {
            self.on_closed(now, handle, reason);
        } else if let Some(established) = self.established.get_mut(&handle) {
            if let Event::PathChanged { remote } = event {
                debug!(%remote, "the path changed");
                established.on_path_changed(self.movers.addr(remote));
            } else if let Event::MigrationFailed { remote } = event {
                established.on_move_failed(self.movers.addr(remote));
            } else if let Some(core) = self.core.connection(handle) {
                established.on_event(core, now, event, &mut self.wakes);
            }
        } else if event == Event::Connected {
            match self.connecting.iter().position(|attempts| attempts.has_attempt(handle)) {
                Some(i) => {
                    let attempts = self.connecting.swap_remove(i);
                    let shared = attempts.finish_with_winner(&mut self.core, now, handle);
                    self.start(now, handle, shared);
                }
                None => self.on_incoming(now, handle),
            }
        }
    }

    fn on_incoming(&mut self, now: Time, handle: ConnectionHandle) {
        let door = self.core.door(handle).and_then(|id| self.doors.get(&id));
        let door = door.filter(|door| !door.released && door.close_deadline.is_none());
        let door = door.filter(|door| !lock(&door.shared.state).accepts_no_more);
        let door = door.map(|door| Arc::clone(&door.shared));
        let Some(core) = self.core.connection(handle) else { return };
        if core.is_closed() {
            // A losing attempt of this endpoint: it connected in the same round as the winner.
            return;
        }
        // Only this thread adds to the queue, so the free place cannot be taken meanwhile.
        let has_room = |door: &Arc<DoorShared>| {
            let queue = &mut lock(&door.state).accepted;
            if queue.len() >= ACCEPT_MAX {
                queue.retain(|shared| !shared.is_over());
            }
            queue.len() < ACCEPT_MAX
        };
        let Some(door) = door.filter(has_room).filter(|_| self.close_deadline.is_none()) else {
            core.close(now, code::NO_ERROR, "busy");
            return;
        };
        let shared = ConnectionShared::new(door.id, Phase::Connecting, core.peer(), &self.shared);
        self.start(now, handle, Arc::clone(&shared));
        door.update(|state| state.accepted.push_back(shared));
    }

    /// Registers a connection that is established.
    fn start(&mut self, now: Time, handle: ConnectionHandle, shared: Arc<ConnectionShared>) {
        let Some(core) = self.core.connection(handle) else { return };
        let remote = self.movers.addr(core.remote());
        debug!(local = %self.movers.local_addr(), remote = %core.remote(), "connection established");
        let established = Established::new(handle, shared, core, remote);
        self.established.insert(handle, established);
        self.visit(now, handle);
    }

    fn on_closed(&mut self, now: Time, handle: ConnectionHandle, reason: CloseReason) {
        if let Some(established) = self.established.remove(&handle) {
            if !matches!(reason, CloseReason::Peer { .. } | CloseReason::IdleTimeout) {
                self.prune_closing();
                self.closing.push((handle, established.door()));
            }
            let mut core = self.core.connection(handle);
            if let Some(core) = &mut core {
                debug!(remote = %core.remote(), %reason, "connection closed");
            }
            established.on_closed(core, now, reason);
        } else if let Some(i) =
            self.connecting.iter().position(|attempts| attempts.has_attempt(handle))
        {
            self.connecting[i].on_attempt_failed(handle, ConnectError::Closed(reason));
            self.advance_attempts(now, i);
        }
    }

    /// Starts the due connection attempts at `i`; removes `i` if all have failed. Returns true if
    /// it was removed.
    fn advance_attempts(&mut self, now: Time, i: usize) -> bool {
        let over = self.connecting[i].advance(&mut self.core, now) == Outcome::AllFailed;
        if over {
            self.connecting.swap_remove(i).abort(&mut self.core, now, None);
        }
        over
    }

    /// Polls everything that waits for a change that no event reports.
    fn poll_waiting(&mut self, now: Time) {
        let mut i = 0;
        while i < self.connecting.len() {
            i += usize::from(!self.advance_attempts(now, i));
        }
        let mut needs_poll = std::mem::take(&mut self.needs_poll);
        needs_poll.retain(|handle| {
            let door = self.established.get(handle).map(Established::door);
            let closing = door.and_then(|door| self.closing_of(door));
            match (self.established.get_mut(handle), self.core.connection(*handle)) {
                (Some(established), Some(core)) => {
                    established.on_ready(core, now, closing, &mut self.wakes)
                }
                _ => false,
            }
        });
        self.needs_poll = needs_poll;
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

    fn prune_closing(&mut self) {
        let core = &mut self.core;
        self.closing.retain(|(handle, _)| core.connection(*handle).is_some());
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
        if !io.is_quiet() {
            return false;
        }
        let busy = io.round(0, INLINE_BATCHES_MAX);
        let earlier = match (io.next_wake(), io.sleep_until) {
            (Some(next), Some(until)) => next < until,
            (Some(_), None) => true,
            (None, _) => false,
        };
        !(busy || earlier || io.movers.any_blocked() || io.close_deadline.is_some())
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

impl Drop for IoThread {
    /// Releases all waiting tasks, however the thread ends.
    fn drop(&mut self) {
        let now = self.clock.now();
        for attempts in self.connecting.drain(..) {
            attempts.abort(&mut self.core, now, Some(ConnectError::EndpointClosed));
        }
        for (_, established) in self.established.drain() {
            established.on_closed(None, now, CloseReason::Local);
        }
        self.punching.end_all();
        // Sockets close first: a task that is woken may bind the same port again.
        self.movers.close();
        self.wakes.wake();
        self.shared.inbox.relay.pass_on();
        self.shared.spare_streams.close();
        // Nothing is added to the inbox from here on.
        let unread = self.shared.inbox.close();
        let stop = |door: &DoorShared| {
            door.update(|state| {
                state.stopped = true;
                state.accepted.clear();
            });
        };
        self.doors.values().for_each(|door| stop(&door.shared));
        let requests = {
            let mut state = lock(&self.shared.state);
            state.stopped = true;
            std::mem::take(&mut state.requests)
        };
        for (_, shared) in requests {
            shared.update(|state| state.ended = true);
        }
        for object in unread {
            match object {
                InboxItem::Connection(shared) => shared.update(|state| {
                    if matches!(state.phase, Phase::New(..)) {
                        state.phase = Phase::Failed(Some(ConnectError::EndpointClosed));
                    }
                }),
                // Its request to open was not read.
                InboxItem::Door(shared) => stop(&shared),
                InboxItem::Stream(_) | InboxItem::Endpoint => {}
            }
        }
    }
}
