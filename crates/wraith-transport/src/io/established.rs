//! One established connection in the I/O thread: moves bytes between the stream queues and the core
//! (the protocol state machine), and state between the core and the handles.
//!
//! Flow control spans all queues. Bytes leave the core only while the receive queue has room
//! ([`pump_recv`]). They leave a send queue only while the core's buffer has room ([`pump_send`]).
//! If bytes must stay for lack of room, they are moved once the destination has room again.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::time::Duration;

use wraith_core::{
    CloseReason, Connection, ConnectionHandle, DoorId, Event, Read, StreamError, StreamId, Time,
    code,
};

use crate::addr::Addr;
use crate::error::{ReadError, WriteError};
use crate::lock::{WakeBatch, lock};
use crate::path_log::PathEvent;
use crate::queue::RecvQueue;
use crate::shared::{
    ConnectionShared, ConnectionState, Phase, StreamCredit, StreamRef, StreamShared,
};

/// Maximum time for which an abandoned connection delivers finished streams to a peer that does not
/// read them.
const LINGER_MAX: Duration = Duration::from_secs(60);
/// Part of an endpoint's close time that is reserved for the CLOSE exchange.
const CLOSE_RESERVE: Duration = Duration::from_secs(1);
/// Maximum number of unaccepted streams of which a few bytes are queued early: those of a burst of
/// requests. The core keeps those of further streams, under flow control.
const EARLY_STREAMS_MAX: usize = 128;
/// Maximum age of the statistics that handles see, while streams make progress.
const STATS_INTERVAL: Duration = Duration::from_millis(10);

/// An established connection that has not ended.
pub(super) struct Established {
    handle: ConnectionHandle,
    shared: Arc<ConnectionShared>,
    /// Streams that are not over in both directions.
    streams: HashMap<StreamId, StreamRef, BuildHasherDefault<StreamIdHasher>>,
    /// Set once the connection is abandoned: it closes when every finished stream is delivered, or
    /// at this time.
    linger_until: Option<Time>,
    stats_at: Time,
    /// Empty; its memory is swapped with that of [`ConnectionState::new_streams`].
    new_streams: Vec<StreamRef>,
}

impl Established {
    pub(super) fn new(
        handle: ConnectionHandle,
        shared: Arc<ConnectionShared>,
        core: &mut Connection,
        remote: Option<Addr>,
        wakes: &mut WakeBatch,
    ) -> Self {
        shared.update(wakes, |state| {
            state.phase = Phase::Open(handle);
            state.peer = core.peer();
            state.remote = remote;
            state.credit =
                StreamCredit { role: core.role(), opened: 0, limit: core.stream_limit() };
            state.exporter = core.exporter().cloned();
            state.suite = core.suite();
            refresh(state, core);
        });
        let (streams, new_streams) = (HashMap::default(), Vec::new());
        Self { handle, shared, streams, linger_until: None, stats_at: Time::ZERO, new_streams }
    }

    /// Returns the number of streams that are not over in both directions.
    pub(super) fn live_streams(&self) -> usize {
        self.streams.len()
    }

    /// Returns the door to which the connection belongs.
    pub(super) fn door(&self) -> DoorId {
        self.shared.door
    }

    /// Returns the time at which the connection closes even with undelivered streams.
    pub(super) fn linger_until(&self) -> Option<Time> {
        self.linger_until
    }

    /// Executes the requests of the handles. Returns true if the connection must be polled in every
    /// round, because it waits for a change that no event reports. `closing` is the time by which
    /// the endpoint ends.
    pub(super) fn on_ready(
        &mut self,
        core: &mut Connection,
        now: Time,
        closing: Option<Time>,
        wakes: &mut WakeBatch,
    ) -> bool {
        let mut state = lock(&self.shared.state);
        if let Some((code, reason)) = state.close.take() {
            drop(state);
            core.close(now, code, &reason);
            return false;
        }
        if std::mem::take(&mut state.path_given_up) {
            drop(state);
            core.report_path_dead(now);
            return false;
        }
        if let Some(bytes_per_second) = state.rate_limit.take() {
            core.set_rate_limit(now, bytes_per_second);
        }
        while let Some(datagram) = state.datagrams_out.pop_front() {
            // False means that the datagram exceeds the path MTU: it is lost, as datagrams may be.
            let _ = core.send_datagram(datagram);
        }
        if let Some(candidates) = state.candidates.take() {
            core.set_candidates(candidates);
        }
        let stream_wanted = std::mem::take(&mut state.stream_wanted);
        refresh(&mut state, core);
        let over = state.abandoned || closing.is_some();
        drop(state);
        self.open_new_streams(core);
        if stream_wanted {
            // At the limit, the core asks the peer for more. `StreamLimitRaised` reports it.
            self.raise_limit(core, wakes);
            if core.streams_opened() == core.stream_limit() {
                let _ = core.open_stream();
            }
        }
        if over {
            self.linger(core, now, closing);
        }
        over
    }

    /// Opens the streams that callers have taken, in the same order.
    fn open_new_streams(&mut self, core: &mut Connection) {
        let mut new_streams = {
            let mut state = lock(&self.shared.state);
            if state.new_streams.is_empty() {
                return;
            }
            std::mem::replace(&mut state.new_streams, std::mem::take(&mut self.new_streams))
        };
        for stream in new_streams.drain(..) {
            let id = core.open_stream();
            debug_assert_eq!(id, Some(stream.id), "callers and core count alike");
            self.streams.insert(stream.id, stream);
        }
        self.new_streams = new_streams;
    }

    /// Passes the peer's stream limit on to the callers.
    fn raise_limit(&self, core: &Connection, wakes: &mut WakeBatch) {
        let mut state = lock(&self.shared.state);
        if core.stream_limit() > state.credit.limit {
            state.credit.limit = core.stream_limit();
            wakes.take_from(&mut state.open_wakers);
        }
    }

    /// Closes the abandoned connection as soon as its finished streams are delivered.
    fn linger(&mut self, core: &mut Connection, now: Time, closing: Option<Time>) {
        let limit = closing.map_or(now + LINGER_MAX, |end| end - CLOSE_RESERVE);
        let until = self.linger_until.map_or(limit, |until| until.min(limit));
        self.linger_until = Some(until);
        let delivering = self.streams.values().any(|stream| lock(&stream.send).is_delivering());
        if !delivering || now >= until {
            core.close(now, code::NO_ERROR, "");
        }
    }

    /// Moves bytes between the stream's queues and the core.
    pub(super) fn on_stream_ready(
        &mut self,
        core: &mut Connection,
        now: Time,
        stream: &StreamRef,
        wakes: &mut WakeBatch,
    ) {
        if !self.streams.contains_key(&stream.id) {
            self.open_new_streams(core);
        }
        let sent = pump_send(core, stream, wakes);
        let mut recv = lock(&stream.recv);
        if recv.take_pump_due() {
            pump_recv(core, now, stream.id, &mut recv, self.streams.len(), wakes);
        }
        let over = sent && recv.is_over();
        drop(recv);
        if over {
            self.remove(stream.id);
        }
        self.refresh_stats(core, now);
    }

    /// Handles an event, except [`Event::PathChanged`], [`Event::MigrationFailed`] and
    /// [`Event::Closed`].
    pub(super) fn on_event(
        &mut self,
        core: &mut Connection,
        now: Time,
        event: Event,
        wakes: &mut WakeBatch,
    ) {
        match event {
            Event::StreamOpened(id) => self.on_stream_opened(core, id, wakes),
            Event::StreamLimitRaised => self.raise_limit(core, wakes),
            Event::Readable(id) => {
                let streams = self.streams.len();
                self.with_stream(core, id, |core, stream| {
                    let mut recv = lock(&stream.recv);
                    pump_recv(core, now, id, &mut recv, streams, wakes);
                    let over = recv.is_over();
                    drop(recv);
                    over && lock(&stream.send).is_over()
                });
            }
            Event::Writable(id) => self.with_stream(core, id, |core, stream| {
                pump_send(core, stream, wakes) && lock(&stream.recv).is_over()
            }),
            Event::Acked(id) => self.with_stream(core, id, |_, stream| {
                wakes.push(lock(&stream.send).set_acked());
                lock(&stream.recv).is_over()
            }),
            Event::Stopped { id, code } => self.with_stream(core, id, |core, stream| {
                wakes.push(lock(&stream.send).fail(WriteError::Stopped(code)));
                // The peer waits for the final size; an error means that the peer already has it.
                let _ = core.reset(id, code);
                lock(&stream.recv).is_over()
            }),
            Event::Reset { id, code } => self.with_stream(core, id, |_, stream| {
                fail_recv(stream, ReadError::Reset(code), wakes);
                lock(&stream.send).is_over()
            }),
            Event::Datagram(datagram) => {
                let mut state = lock(&self.shared.state);
                state.push_datagram(datagram);
                wakes.take_from(&mut state.datagram_wakers);
            }
            Event::ObservedAddress(address) => {
                self.shared.update(wakes, |state| {
                    state.observed = Some(address);
                    state.path_log.push(PathEvent::Observed(address));
                });
            }
            Event::PeerCandidates(candidates) => self.shared.update(wakes, |state| {
                state.peer_candidates.clone_from(&candidates);
                state.path_log.push(PathEvent::Candidates(candidates));
            }),
            // Other calls handle these.
            Event::Connected
            | Event::PathChanged { .. }
            | Event::MigrationFailed { .. }
            | Event::Closed(_) => {}
        }
        self.refresh_stats(core, now);
    }

    /// Records that packets now go to `remote`; `None` if its mover has already evicted the
    /// address.
    pub(super) fn on_path_changed(&self, remote: Option<Addr>, wakes: &mut WakeBatch) {
        self.shared.update(wakes, |state| {
            if remote.is_some() {
                state.remote.clone_from(&remote);
            }
            state.path_log.push(PathEvent::Changed(remote));
        });
    }

    pub(super) fn on_move_failed(&self, to: Option<Addr>, wakes: &mut WakeBatch) {
        self.shared.update(wakes, |state| state.path_log.push(PathEvent::MigrationFailed(to)));
    }

    /// Takes the address to which the application wants to move the connection, if the application
    /// has set a new one.
    pub(super) fn take_move(&mut self) -> Option<Addr> {
        lock(&self.shared.state).migrate_to.take()
    }

    fn on_stream_opened(&mut self, core: &mut Connection, id: StreamId, wakes: &mut WakeBatch) {
        let mut state = lock(&self.shared.state);
        if state.abandoned {
            drop(state);
            // Errors mean that the stream is already over.
            let _ = core.stop(id, 0);
            let _ = core.reset(id, 0);
            return;
        }
        let stream = self.shared.new_stream(id, self.handle);
        if state.accepted.len() < EARLY_STREAMS_MAX {
            lock(&stream.recv).allow_early();
        }
        state.accepted.push_back(stream.clone());
        wakes.take_from(&mut state.accept_wakers);
        drop(state);
        self.streams.insert(id, stream);
    }

    /// Calls `action`, which returns whether the stream is over in both directions.
    fn with_stream(
        &mut self,
        core: &mut Connection,
        id: StreamId,
        action: impl FnOnce(&mut Connection, &StreamRef) -> bool,
    ) {
        if let Some(stream) = self.streams.get(&id)
            && action(core, stream)
        {
            self.remove(id);
        }
    }

    /// Removes a stream that is over. If it was reset before it was accepted, it never will be
    /// accepted: otherwise a peer could let such streams pile up.
    fn remove(&mut self, id: StreamId) {
        let Some(stream) = self.streams.remove(&id) else { return };
        if lock(&stream.recv).is_dead_unaccepted() {
            lock(&self.shared.state).accepted.retain(|stream| stream.id != id);
        }
    }

    fn refresh_stats(&mut self, core: &Connection, now: Time) {
        if now - self.stats_at >= STATS_INTERVAL {
            self.stats_at = now;
            refresh(&mut lock(&self.shared.state), core);
        }
    }

    /// Ends the connection: received bytes can still be read, and all other operations fail. `core`
    /// is `None` if the core has already removed the connection.
    pub(super) fn on_closed(
        self,
        core: Option<&mut Connection>,
        now: Time,
        reason: CloseReason,
        wakes: &mut WakeBatch,
    ) {
        let mut core = core;
        // From here on, no caller takes another stream.
        let new_streams = {
            let mut state = lock(&self.shared.state);
            if let Some(core) = &core {
                state.stats = core.stats();
            }
            state.phase = Phase::Closed(reason.clone());
            std::mem::take(&mut state.new_streams)
        };
        for stream in self.streams.values().chain(&new_streams) {
            if let Some(core) = core.as_deref_mut() {
                drain_recv(core, now, stream);
            }
            wakes.push(lock(&stream.send).fail(WriteError::ConnectionLost(reason.clone())));
            fail_recv(stream, ReadError::ConnectionLost(reason.clone()), wakes);
        }
        self.shared.update(wakes, |_| ());
    }
}

/// Spreads stream ids by Fibonacci hashing. Ids follow each other, and the stream limit bounds those
/// that a peer can choose from: it cannot make many of them collide.
#[derive(Default)]
struct StreamIdHasher(u64);

impl Hasher for StreamIdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, id: u64) {
        self.0 = (self.0 ^ id).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    }
}

/// Updates the part of the core's state that handles see.
fn refresh(state: &mut ConnectionState, core: &Connection) {
    state.stats = core.stats();
    state.datagram_max = core.max_datagram_len();
}

/// Moves bytes from the queue to the core, as far as the core has room. Returns whether this
/// direction is over.
fn pump_send(core: &mut Connection, stream: &StreamShared, wakes: &mut WakeBatch) -> bool {
    let id = stream.id;
    let mut queue = lock(&stream.send);
    let result = if let Some(code) = queue.take_reset() {
        core.reset(id, code)
    } else {
        let mut result = Ok(());
        while result.is_ok() && queue.has_bytes() && core.send_capacity(id) > 0 {
            let Some(buffer) = queue.pop() else { break };
            result = core.write(id, buffer);
        }
        if result.is_ok() && queue.take_finish() { core.finish(id) } else { result }
    };
    wakes.push(match result {
        Ok(()) => queue.waker_if_room(),
        Err(error) => queue.fail(error.into()),
    });
    queue.is_over()
}

/// Moves bytes from the core to the queue, as far as the queue has room. It is one of `streams`
/// queues.
fn pump_recv(
    core: &mut Connection,
    now: Time,
    id: StreamId,
    queue: &mut RecvQueue,
    streams: usize,
    wakes: &mut WakeBatch,
) {
    queue.set_fair_limit(streams);
    if let Some(code) = queue.take_stop() {
        // An error means that the stream is already over.
        let _ = core.stop(id, code);
    }
    while queue.has_room() {
        match core.read(now, id) {
            Ok(Read::Slice(chunk)) => queue.push(chunk),
            Ok(Read::Finished) => queue.set_finished(),
            Ok(Read::Blocked) => break,
            Err(error) => queue.fail(error.into()),
        }
    }
    wakes.push(queue.waker_if_ready());
}

/// Moves all remaining bytes from the core to the queue; the connection's window bounds them.
fn drain_recv(core: &mut Connection, now: Time, stream: &StreamShared) {
    let mut queue = lock(&stream.recv);
    while !queue.is_over() {
        match core.read(now, stream.id) {
            Ok(Read::Slice(chunk)) => queue.push(chunk),
            Ok(Read::Finished) => queue.set_finished(),
            Err(StreamError::Reset(code)) => queue.fail(ReadError::Reset(code)),
            Ok(Read::Blocked) | Err(_) => break,
        }
    }
}

fn fail_recv(stream: &StreamShared, error: ReadError, wakes: &mut WakeBatch) {
    let mut queue = lock(&stream.recv);
    queue.fail(error);
    wakes.push(queue.waker_if_ready());
}
