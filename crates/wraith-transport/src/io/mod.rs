//! The I/O thread: owns the socket and the protocol core of one endpoint, and nothing it owns is ever locked.
//!
//! Each round: receive a batch, work off the inbox, hand events to the handles, send until nothing is due; then sleep
//! in `ppoll` until a datagram, a wake-up or the core's next timeout. A round that left work undone (more datagrams
//! waiting, more to send than one round's share) is followed by the next without sleeping.
//!
//! Invariant: after a mutation of the core its outputs are drained before the thread sleeps.

mod live;
mod race;

use std::collections::HashMap;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::thread::{CpuSet, sched_setaffinity, set_current_timer_slack};
use wraith_core::{CloseReason, ConnectionHandle, Event, Time, Transmit, code};

use self::live::Live;
use self::race::{Outcome, Race};
use crate::clock::Clock;
use crate::connection::{ConnectionShared, Phase};
use crate::endpoint::{CLOSE_WAIT_MAX, EndpointShared};
use crate::error::ConnectError;
use crate::inbox::Ready;
use crate::lock::lock;
use crate::socket::{RECV_BATCH, RecvBuffers, SEND_MAX, Sent, Socket};

/// Incoming connections that wait for [`accept`](crate::Endpoint::accept); further ones are closed.
const ACCEPT_MAX: usize = 128;
/// Batches sent in one round before looking at what arrived: about 2 MiB, so that ACKs are never far behind.
const BATCHES_PER_ROUND: usize = 32;
/// How long the socket is left alone after it failed to receive for a reason that may persist.
const RECV_PAUSE: Duration = Duration::from_millis(10);
/// Shortest sleep while the kernel's send buffer is full: the core's pacing is due all the while, but cannot be heeded.
const BLOCKED_SLEEP_MIN: Duration = Duration::from_millis(1);

/// State of the thread.
pub(crate) struct IoThread {
    socket: Socket,
    core: wraith_core::Endpoint,
    shared: Arc<EndpointShared>,
    clock: Clock,
    live: HashMap<ConnectionHandle, Live>,
    races: Vec<Race>,
    /// Connections to look at in every round: they wait for stream credit, or linger.
    attention: Vec<ConnectionHandle>,
    /// Working copy of the inbox.
    ready: Vec<Ready>,
    received: RecvBuffers,
    /// What the core seals into, and the kernel reads from.
    out: Box<[u8]>,
    /// A batch in `out` that the kernel did not take whole, from this offset on.
    blocked: Option<(Transmit, usize)>,
    /// The socket failed to receive; it is left alone until then.
    recv_pause: Option<Time>,
    /// The endpoint closes; everything ends by then.
    closing: Option<Time>,
    released: bool,
    /// Connections this side ended, whose CLOSE may have to be repeated. Those the peer ended owe it nothing.
    farewells: Vec<ConnectionHandle>,
}

impl IoThread {
    pub(crate) fn new(
        socket: Socket,
        core: wraith_core::Endpoint,
        shared: Arc<EndpointShared>,
    ) -> Self {
        Self {
            socket,
            core,
            shared,
            clock: Clock::new(),
            live: HashMap::new(),
            races: Vec::new(),
            attention: Vec::new(),
            ready: Vec::new(),
            received: RecvBuffers::new(),
            out: vec![0; SEND_MAX].into_boxed_slice(),
            blocked: None,
            recv_pause: None,
            closing: None,
            released: false,
            farewells: Vec::new(),
        }
    }

    /// Runs until the endpoint is closed, or released and idle.
    pub(crate) fn run(mut self, cpu: Option<usize>) {
        // Pacing needs timers that are exact to less than one batch (50 µs by default). Failing costs speed only.
        let _ = set_current_timer_slack(NonZeroU64::new(1));
        if let Some(cpu) = cpu.filter(|cpu| *cpu < CpuSet::MAX_CPU) {
            let mut set = CpuSet::new();
            set.set(cpu);
            let _ = sched_setaffinity(None, &set);
        }
        let mut readable = true;
        loop {
            let mut undone = readable && self.receive();
            let now = self.clock.now();
            if self.core.poll_timeout().is_some_and(|due| due <= now) {
                self.core.handle_timeout(now);
            }
            self.work_off_inbox(now);
            self.handle_events(now);
            self.attend(now);
            undone |= self.transmit();
            undone |= self.handle_events(now);
            if self.is_done(now) {
                break;
            }
            readable = if undone { self.recv_pause.is_none() } else { self.sleep() };
        }
    }

    /// Receives one batch. True if more may be waiting.
    fn receive(&mut self) -> bool {
        let filled = match self.socket.receive(&mut self.received) {
            Ok(filled) => filled,
            Err(_) => {
                self.recv_pause = Some(self.clock.now() + RECV_PAUSE);
                return false;
            }
        };
        for (from, ecn, datagrams) in self.received.filled(filled) {
            let now = self.clock.now();
            for datagram in datagrams {
                self.core.handle_datagram(now, from, ecn, datagram);
            }
        }
        filled == RECV_BATCH
    }

    fn work_off_inbox(&mut self, now: Time) {
        let mut ready = std::mem::take(&mut self.ready);
        self.shared.inbox.take(&mut ready);
        for object in ready.drain(..) {
            match object {
                Ready::Stream(stream) => {
                    stream.unmark();
                    let Some(live) = self.live.get_mut(&stream.connection) else { continue };
                    let Some(core) = self.core.connection(stream.connection) else { continue };
                    // Once closed, the event that says so fails the queues with the right reason.
                    if !core.is_closed() {
                        live.on_stream_ready(core, now, &stream);
                    }
                }
                Ready::Connection(shared) => {
                    shared.unmark();
                    self.on_connection_ready(now, &shared);
                }
                Ready::Endpoint => self.on_endpoint_ready(now),
            }
        }
        self.ready = ready;
    }

    fn on_connection_ready(&mut self, now: Time, shared: &Arc<ConnectionShared>) {
        let mut state = lock(&shared.state);
        let abandoned = state.abandoned;
        match &mut state.phase {
            Phase::New(addresses) => {
                let addresses = std::mem::take(addresses);
                let (peer, given_up) = (state.peer, abandoned || self.closing.is_some());
                state.phase = if given_up { Phase::Failed(None) } else { Phase::Racing };
                drop(state);
                if given_up {
                    shared.update(|_| ());
                } else {
                    self.races.push(Race::new(Arc::clone(shared), peer, addresses, now));
                }
            }
            Phase::Racing if abandoned => {
                drop(state);
                if let Some(i) = self.races.iter().position(|race| race.is_for(shared)) {
                    self.races.swap_remove(i).give_up(&mut self.core, now, None);
                }
            }
            Phase::Open(handle) => {
                let handle = *handle;
                drop(state);
                self.visit(now, handle);
            }
            Phase::Racing | Phase::Failed(_) | Phase::Closed(_) => {}
        }
    }

    /// Has a connection's state looked at, and again in every round if it asks for it.
    fn visit(&mut self, now: Time, handle: ConnectionHandle) {
        let (Some(live), Some(core)) = (self.live.get_mut(&handle), self.core.connection(handle))
        else {
            return;
        };
        if live.on_ready(core, now, self.closing) && !self.attention.contains(&handle) {
            self.attention.push(handle);
        }
    }

    fn on_endpoint_ready(&mut self, now: Time) {
        self.shared.unmark();
        let (closing, released, unclaimed) = {
            let mut state = lock(&self.shared.state);
            if let Some(admitted) = state.admitted.take() {
                self.core.set_admitted(admitted);
            }
            let gone = state.closing || state.released;
            let unclaimed =
                if gone { std::mem::take(&mut state.accepted) } else { Default::default() };
            (state.closing, state.released, unclaimed)
        };
        for shared in unclaimed {
            lock(&shared.state).abandoned = true;
            self.on_connection_ready(now, &shared);
        }
        self.released |= released;
        if closing && self.closing.is_none() {
            self.closing = Some(now + CLOSE_WAIT_MAX);
            for race in self.races.drain(..) {
                race.give_up(&mut self.core, now, Some(ConnectError::EndpointClosed));
            }
            let handles: Vec<_> = self.live.keys().copied().collect();
            handles.into_iter().for_each(|handle| self.visit(now, handle));
        }
    }

    /// Passes the core's events on. True if there were any.
    fn handle_events(&mut self, now: Time) -> bool {
        let mut any = false;
        while let Some((handle, event)) = self.core.poll_event() {
            any = true;
            self.on_event(now, handle, event);
        }
        any
    }

    fn on_event(&mut self, now: Time, handle: ConnectionHandle, event: Event) {
        if let Event::Closed(reason) = event {
            self.on_closed(now, handle, reason);
        } else if let Some(live) = self.live.get_mut(&handle) {
            if let Some(core) = self.core.connection(handle) {
                live.on_event(core, now, event);
            }
        } else if event == Event::Connected {
            match self.races.iter().position(|race| race.holds(handle)) {
                Some(i) => {
                    let race = self.races.swap_remove(i);
                    let shared = race.win(&mut self.core, now, handle);
                    self.begin(now, handle, shared);
                }
                None => self.on_incoming(now, handle),
            }
        }
    }

    fn on_incoming(&mut self, now: Time, handle: ConnectionHandle) {
        let Some(core) = self.core.connection(handle) else { return };
        if core.is_closed() {
            // The loser of one of our own races, that got through in the same round as the winner.
            return;
        }
        // Only this thread adds to the queue, so the room found here stays.
        let room = {
            let queue = &mut lock(&self.shared.state).accepted;
            if queue.len() >= ACCEPT_MAX {
                queue.retain(|shared| !shared.is_over());
            }
            queue.len() < ACCEPT_MAX
        };
        if !room || self.released || self.closing.is_some() {
            core.close(now, code::NO_ERROR, "busy");
            return;
        }
        let inbox = Arc::clone(&self.shared.inbox);
        let shared = ConnectionShared::new(Phase::Racing, core.peer(), inbox);
        self.begin(now, handle, Arc::clone(&shared));
        self.shared.update(|state| state.accepted.push_back(shared));
    }

    /// A connection can be used from now on.
    fn begin(&mut self, now: Time, handle: ConnectionHandle, shared: Arc<ConnectionShared>) {
        let Some(core) = self.core.connection(handle) else { return };
        let live = Live::new(handle, shared, core);
        self.live.insert(handle, live);
        self.visit(now, handle);
    }

    fn on_closed(&mut self, now: Time, handle: ConnectionHandle, reason: CloseReason) {
        if let Some(live) = self.live.remove(&handle) {
            if !matches!(reason, CloseReason::Peer { .. } | CloseReason::IdleTimeout) {
                self.prune_farewells();
                self.farewells.push(handle);
            }
            live.on_closed(self.core.connection(handle), now, reason);
        } else if let Some(i) = self.races.iter().position(|race| race.holds(handle)) {
            self.races[i].lost(handle, ConnectError::Closed(reason));
            self.advance_race(now, i);
        }
    }

    /// Starts what is due in the race at `i`; removes it when nobody is left in it. True if it was removed.
    fn advance_race(&mut self, now: Time, i: usize) -> bool {
        let over = self.races[i].advance(&mut self.core, now) == Outcome::AllFailed;
        if over {
            self.races.swap_remove(i).give_up(&mut self.core, now, None);
        }
        over
    }

    /// What must be looked at in every round.
    fn attend(&mut self, now: Time) {
        let mut i = 0;
        while i < self.races.len() {
            i += usize::from(!self.advance_race(now, i));
        }
        let mut attention = std::mem::take(&mut self.attention);
        attention.retain(|handle| {
            match (self.live.get_mut(handle), self.core.connection(*handle)) {
                (Some(live), Some(core)) => live.on_ready(core, now, self.closing),
                _ => false,
            }
        });
        self.attention = attention;
    }

    /// Sends what is due. True if there may be more, or events.
    fn transmit(&mut self) -> bool {
        if let Some((transmit, from)) = self.blocked.take()
            && !self.send(transmit, from)
        {
            return false;
        }
        for _ in 0..BATCHES_PER_ROUND {
            let now = self.clock.now();
            let Some(transmit) = self.core.poll_transmit(now, &mut self.out) else { return false };
            if !self.send(transmit, 0) {
                return false;
            }
        }
        true
    }

    /// Sends a batch that lies in `out`. False if the kernel's buffer is full.
    fn send(&mut self, transmit: Transmit, from: usize) -> bool {
        let Transmit { to, ecn, len, segment } = transmit;
        let Some(destination) = to.ip() else { return true };
        match self.socket.send(destination, ecn, &self.out[from..len], segment) {
            Sent::All => true,
            Sent::Blocked(done) => {
                self.blocked = Some((transmit, from + done));
                false
            }
            Sent::Unreachable(error) => {
                // Only attempts to connect end by this: an established connection may find its way back.
                let now = self.clock.now();
                for race in &mut self.races {
                    race.unreachable(&mut self.core, now, to, &error);
                }
                true
            }
        }
    }

    fn is_done(&mut self, now: Time) -> bool {
        if self.closing.is_none() && !self.released {
            return false;
        }
        if self.closing.is_some_and(|deadline| now >= deadline) {
            return true;
        }
        // Asking for the timeout is what makes the core forget connections that are over.
        let _ = self.core.poll_timeout();
        self.prune_farewells();
        self.live.is_empty() && self.races.is_empty() && self.farewells.is_empty()
    }

    fn prune_farewells(&mut self) {
        let core = &mut self.core;
        self.farewells.retain(|handle| core.connection(*handle).is_some());
    }

    /// When to go round again if nothing else happens.
    fn next_wake(&mut self) -> Option<Time> {
        let races = self.races.iter().filter_map(Race::next_start).min();
        let lingering =
            self.attention.iter().filter_map(|h| self.live.get(h)?.linger_until()).min();
        let core = self.core.poll_timeout();
        [core, races, lingering, self.recv_pause, self.closing].into_iter().flatten().min()
    }

    /// Sleeps until something is to be done. True if the socket is readable.
    fn sleep(&mut self) -> bool {
        let wake = self.next_wake();
        if !self.shared.inbox.fall_asleep() {
            return self.recv_pause.is_none();
        }
        let now = self.clock.now();
        let timeout = wake.map(|wake| match self.blocked {
            Some(_) => to_timespec((wake - now).max(BLOCKED_SLEEP_MIN)),
            None => to_timespec(wake - now),
        });
        let mut interest = PollFlags::IN;
        interest.set(PollFlags::OUT, self.blocked.is_some());
        let mut fds = [
            PollFd::from_borrowed_fd(self.shared.inbox.event(), PollFlags::IN),
            PollFd::new(&self.socket, interest),
        ];
        // A failed socket reports errors whether asked or not: leave it out, or this would spin.
        let watched = if self.recv_pause.is_some() { &mut fds[..1] } else { &mut fds[..] };
        // The only error that can occur is an interruption by a signal: then it is just a round too many.
        let _ = poll(watched, timeout.as_ref());
        let signalled = !fds[0].revents().is_empty();
        let readable = fds[1].revents().intersects(PollFlags::IN | PollFlags::ERR);
        self.shared.inbox.wake_up(signalled);
        match self.recv_pause {
            Some(until) if until <= self.clock.now() => {
                self.recv_pause = None;
                true
            }
            Some(_) => false,
            None => readable,
        }
    }
}

fn to_timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: duration.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}

impl Drop for IoThread {
    /// However the thread ends, nobody may wait for it for ever.
    fn drop(&mut self) {
        let now = self.clock.now();
        for race in self.races.drain(..) {
            race.give_up(&mut self.core, now, Some(ConnectError::EndpointClosed));
        }
        for (_, live) in self.live.drain() {
            live.on_closed(None, now, CloseReason::Local);
        }
        self.shared.update(|state| {
            state.stopped = true;
            state.accepted.clear();
        });
        // Nobody adds a new connection from here on: `connect` looks at `stopped` under the same lock.
        let mut late = Vec::new();
        self.shared.inbox.take(&mut late);
        for object in late {
            if let Ready::Connection(shared) = object {
                shared.update(|state| {
                    if matches!(state.phase, Phase::New(_)) {
                        state.phase = Phase::Failed(Some(ConnectError::EndpointClosed));
                    }
                });
            }
        }
    }
}
