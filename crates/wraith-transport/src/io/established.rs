//! One established connection in the I/O thread: moves bytes between the stream queues and the core
//! (the protocol state machine), and state between the core and the handles.
//!
//! Flow control spans all queues. Bytes leave the core only while the receive queue has room
//! ([`pump_recv`]). They leave a send queue only while the core's buffer has room ([`pump_send`]).
//! If bytes must stay for lack of room, they are moved once the destination has room again.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use wraith_core::{
    CloseReason, Connection, ConnectionHandle, DoorId, Event, Read, StreamError, StreamId, Time,
    code,
};

use crate::addr::Addr;
use crate::error::{ReadError, WriteError};
use crate::lock::lock;
use crate::path::PathEvent;
use crate::shared::{ConnectionShared, ConnectionState, Phase, StreamShared};

/// Maximum time for which an abandoned connection delivers finished streams to a peer that does not
/// read them.
const LINGER_MAX: Duration = Duration::from_secs(60);
/// Part of an endpoint's close time that is reserved for the CLOSE exchange.
const CLOSE_RESERVE: Duration = Duration::from_secs(1);
/// Maximum age of the statistics that handles see, while streams make progress.
const STATS_INTERVAL: Duration = Duration::from_millis(10);

/// An established connection that has not ended.
pub(super) struct Established {
    handle: ConnectionHandle,
    shared: Arc<ConnectionShared>,
    /// Streams that are not over in both directions.
    streams: HashMap<StreamId, Arc<StreamShared>>,
    /// Set once the connection is abandoned: it closes when every finished stream is delivered, or
    /// at this time.
    linger_until: Option<Time>,
    stats_at: Time,
}

impl Established {
    pub(super) fn new(
        handle: ConnectionHandle,
        shared: Arc<ConnectionShared>,
        core: &mut Connection,
        remote: Option<Addr>,
    ) -> Self {
        shared.update(|state| {
            state.phase = Phase::Open(handle);
            state.peer = core.peer();
            state.remote = remote;
            state.exporter = core.exporter().cloned();
            state.suite = core.suite();
            refresh(state, core);
        });
        let streams = HashMap::new();
        Self { handle, shared, streams, linger_until: None, stats_at: Time::ZERO }
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
        let mut opened = false;
        while state.streams_to_open() > 0
            && let Some(id) = core.open_stream()
        {
            let stream = StreamShared::new(id, self.handle, Arc::clone(&self.shared.inbox));
            self.streams.insert(id, Arc::clone(&stream));
            state.opened.push_back(stream);
            opened = true;
        }
        refresh(&mut state, core);
        let waits_for_credit = state.streams_to_open() > 0;
        let over = state.abandoned || closing.is_some();
        let wakers = if opened { state.wakers.take() } else { Default::default() };
        drop(state);
        wakers.wake();
        if over {
            self.linger(core, now, closing);
        }
        waits_for_credit || over
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
        stream: &Arc<StreamShared>,
    ) {
        pump_send(core, stream);
        pump_recv(core, now, stream, self.streams.len());
        if is_over(stream) {
            self.remove(stream.id);
        }
        self.refresh_stats(core, now);
    }

    /// Handles an event, except [`Event::PathChanged`], [`Event::MigrationFailed`] and
    /// [`Event::Closed`].
    pub(super) fn on_event(&mut self, core: &mut Connection, now: Time, event: Event) {
        match event {
            Event::StreamOpened(id) => self.on_stream_opened(core, id),
            Event::Readable(id) => {
                let streams = self.streams.len();
                self.with_stream(id, |stream| pump_recv(core, now, stream, streams));
            }
            Event::Writable(id) => self.with_stream(id, |stream| pump_send(core, stream)),
            Event::Acked(id) => self.with_stream(id, |stream| {
                let waker = lock(&stream.send).set_acked();
                waker.into_iter().for_each(std::task::Waker::wake);
            }),
            Event::Stopped { id, code } => self.with_stream(id, |stream| {
                fail_send(stream, WriteError::Stopped(code));
                // The peer waits for the final size; an error means that the peer already has it.
                let _ = core.reset(id, code);
            }),
            Event::Reset { id, code } => {
                self.with_stream(id, |stream| fail_recv(stream, ReadError::Reset(code)));
            }
            Event::Datagram(datagram) => {
                self.shared.update(|state| state.push_datagram(datagram));
            }
            Event::ObservedAddress(address) => {
                self.shared.update(|state| {
                    state.observed = Some(address);
                    state.path_log.push(PathEvent::Observed(address));
                });
            }
            Event::PeerCandidates(candidates) => self.shared.update(|state| {
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
    pub(super) fn on_path_changed(&mut self, remote: Option<Addr>) {
        self.shared.update(|state| {
            if remote.is_some() {
                state.remote.clone_from(&remote);
            }
            state.path_log.push(PathEvent::Changed(remote));
        });
    }

    pub(super) fn on_move_failed(&mut self, to: Option<Addr>) {
        self.shared.update(|state| state.path_log.push(PathEvent::MigrationFailed(to)));
    }

    /// Takes the address to which the application wants to move the connection, if the application
    /// has set a new one.
    pub(super) fn take_move(&mut self) -> Option<Addr> {
        lock(&self.shared.state).migrate_to.take()
    }

    fn on_stream_opened(&mut self, core: &mut Connection, id: StreamId) {
        let stream = StreamShared::new(id, self.handle, Arc::clone(&self.shared.inbox));
        let wanted = self.shared.update(|state| {
            if !state.abandoned {
                state.accepted.push_back(Arc::clone(&stream));
            }
            !state.abandoned
        });
        if wanted {
            self.streams.insert(id, stream);
        } else {
            // Errors mean that the stream is already over.
            let _ = core.stop(id, 0);
            let _ = core.reset(id, 0);
        }
    }

    fn with_stream(&mut self, id: StreamId, action: impl FnOnce(&Arc<StreamShared>)) {
        let Some(stream) = self.streams.get(&id) else { return };
        action(stream);
        if is_over(stream) {
            self.remove(id);
        }
    }

    /// Removes a stream that is over. If it was not accepted yet, it never will be: otherwise a
    /// peer could let such streams pile up.
    fn remove(&mut self, id: StreamId) {
        self.streams.remove(&id);
        lock(&self.shared.state).accepted.retain(|stream| stream.id != id);
    }

    fn refresh_stats(&mut self, core: &Connection, now: Time) {
        if now - self.stats_at >= STATS_INTERVAL {
            self.stats_at = now;
            refresh(&mut lock(&self.shared.state), core);
        }
    }

    /// Ends the connection: received bytes can still be read, and all other operations fail. `core`
    /// is `None` if the core has already removed the connection.
    pub(super) fn on_closed(self, core: Option<&mut Connection>, now: Time, reason: CloseReason) {
        let mut core = core;
        for stream in self.streams.values() {
            if let Some(core) = core.as_deref_mut() {
                drain_recv(core, now, stream);
            }
            fail_send(stream, WriteError::ConnectionLost(reason.clone()));
            fail_recv(stream, ReadError::ConnectionLost(reason.clone()));
        }
        self.shared.update(|state| {
            if let Some(core) = core {
                state.stats = core.stats();
            }
            state.phase = Phase::Closed(reason);
        });
    }
}

/// Updates the part of the core's state that handles see.
fn refresh(state: &mut ConnectionState, core: &Connection) {
    state.stats = core.stats();
    state.datagram_max = core.max_datagram_len();
}

/// Returns whether the stream is over in both directions.
fn is_over(stream: &StreamShared) -> bool {
    lock(&stream.send).is_over() && lock(&stream.recv).is_over()
}

/// Moves bytes from the queue to the core, as far as the core has room.
fn pump_send(core: &mut Connection, stream: &StreamShared) {
    let id = stream.id;
    let mut queue = lock(&stream.send);
    let result = if let Some(code) = queue.take_reset() {
        core.reset(id, code)
    } else {
        let mut result = Ok(());
        while result.is_ok() && core.send_capacity(id) > 0 {
            let Some(buffer) = queue.pop() else { break };
            result = core.write(id, buffer);
        }
        if result.is_ok() && queue.take_finish() { core.finish(id) } else { result }
    };
    let waker = match result {
        Ok(()) => queue.waker_if_room(),
        Err(error) => queue.fail(error.into()),
    };
    drop(queue);
    waker.into_iter().for_each(std::task::Waker::wake);
}

/// Moves bytes from the core to the queue, as far as the queue has room. It is one of `streams`
/// queues.
fn pump_recv(core: &mut Connection, now: Time, stream: &StreamShared, streams: usize) {
    let mut queue = lock(&stream.recv);
    queue.set_fair_limit(streams);
    if let Some(code) = queue.take_stop() {
        // An error means that the stream is already over.
        let _ = core.stop(stream.id, code);
    }
    while queue.has_room() {
        match core.read(now, stream.id) {
            Ok(Read::Slice(chunk)) => queue.push(chunk),
            Ok(Read::Finished) => queue.set_finished(),
            Ok(Read::Blocked) => break,
            Err(error) => queue.fail(error.into()),
        }
    }
    let waker = queue.waker_if_ready();
    drop(queue);
    waker.into_iter().for_each(std::task::Waker::wake);
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

fn fail_send(stream: &StreamShared, error: WriteError) {
    let waker = lock(&stream.send).fail(error);
    waker.into_iter().for_each(std::task::Waker::wake);
}

fn fail_recv(stream: &StreamShared, error: ReadError) {
    let mut queue = lock(&stream.recv);
    queue.fail(error);
    let waker = queue.waker_if_ready();
    drop(queue);
    waker.into_iter().for_each(std::task::Waker::wake);
}
