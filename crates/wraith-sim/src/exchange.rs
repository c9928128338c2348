//! The simulated application: the plan of an exchange, and one side of it.
//!
//! An [`Exchange`] is a list of streams, each with a request and a response of given lengths. It
//! covers bulk transfer, request and response, and many streams. An [`Application`] plays one side
//! of it and is strictly event-driven:
//! - It reads only after the event `Readable`, until the core has nothing more.
//! - It writes only after opening a stream or after the event `Writable`, until the core accepts no
//!   more.
//!
//! So a missing event of the core makes the exchange hang, and the scenario's time limit detects
//! the hang. The application compares every byte, and checks every end of a stream against the
//! plan.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use wraith_core::streams::Read;
use wraith_core::{CloseReason, Connection, Event, Role, StreamError, StreamId, Time};

use crate::party::Party;
use crate::pattern::Pattern;

/// Code of a reset within a request.
const RESET_CODE: u64 = 0x101;
/// Code of a stop within a response.
const STOP_CODE: u64 = 0x102;
/// Bytes that a slow reader waits for before it reads again.
const READ_QUANTUM: u64 = 16 * 1024;
/// Bytes of one unreliable datagram: fits the smallest MTU.
const DATAGRAM_BYTES: usize = 600;
/// Pattern number of the datagrams' content; each stream has two numbers, counted from 0.
const DATAGRAM_PATTERN: u64 = u64::MAX;

/// Plan of the data exchanged over one connection. The initiator opens the streams, in order.
#[derive(Clone, Debug, Default)]
pub struct Exchange {
    /// The streams.
    pub streams: Vec<StreamPlan>,
    /// Streams in progress at once; 0 means all of them.
    pub at_once: usize,
    /// Whether the responder answers before the end of the request.
    pub eager: bool,
    /// Maximum read rate of each side, in bytes per second.
    pub read_rate: Option<u64>,
    /// Unreliable datagrams that the initiator sends at the start.
    pub datagrams: u64,
}

/// One stream of an exchange.
#[derive(Clone, Copy, Debug, Default)]
pub struct StreamPlan {
    /// Bytes from the initiator.
    pub request: u64,
    /// Bytes from the responder.
    pub response: u64,
    /// How the stream is cut off, if it is.
    pub cut: Option<StreamCut>,
}

/// How a stream is cut off: by the initiator, or by a responder that ignores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamCut {
    /// The initiator resets the request after this many bytes.
    Reset(u64),
    /// The initiator stops the response after it has read at least this many bytes.
    Stop(u64),
    /// The responder never reads the request. The exchange is complete without this stream.
    Unread,
}

impl Exchange {
    /// One stream with `bytes` from the initiator.
    pub fn upload(bytes: u64) -> Self {
        Self::streams(1, bytes, 0)
    }
    /// One stream with `bytes` from the responder.
    pub fn download(bytes: u64) -> Self {
        Self::streams(1, 1, bytes)
    }
    /// `count` streams at once, each with `request` and `response` bytes.
    pub fn streams(count: usize, request: u64, response: u64) -> Self {
        let plan = StreamPlan { request, response, cut: None };
        Self { streams: vec![plan; count], ..Self::default() }
    }
    /// Limits the streams in progress; 1 for request after request.
    #[must_use]
    pub fn at_once(mut self, streams: usize) -> Self {
        self.at_once = streams;
        self
    }
    /// Makes the responder answer before the end of the request.
    #[must_use]
    pub fn eager(mut self) -> Self {
        self.eager = true;
        self
    }
    /// Limits the read rate of both sides, in bytes per second.
    #[must_use]
    pub fn read_rate(mut self, bytes_per_second: u64) -> Self {
        self.read_rate = Some(bytes_per_second);
        self
    }
    /// Returns the bytes of all requests and responses.
    pub fn total_bytes(&self) -> u64 {
        self.streams.iter().map(|s| s.request + s.response).sum()
    }
}

/// One side of an exchange.
#[derive(Debug)]
pub struct Application {
    role: Role,
    seed: u64,
    plan: Arc<Exchange>,
    streams: BTreeMap<StreamId, Stream>,
    readable: BTreeSet<StreamId>,
    writable: BTreeSet<StreamId>,
    completed: usize,
    started: Option<Time>,
    bytes_read: u64,
    wake: Option<Time>,
    datagrams_received: u64,
    path_changes: u64,
    moves_failed: u64,
    observed: Vec<SocketAddr>,
    closed: Option<CloseReason>,
}

/// This party's side of one stream.
#[derive(Debug)]
struct Stream {
    outgoing: Pattern,
    write_len: u64,
    written: u64,
    reset_at_end: bool,
    sending: SendState,
    incoming: Pattern,
    read_len: u64,
    read: u64,
    stop_after: Option<u64>,
    may_be_reset: bool,
    receiving: bool,
    counted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SendState {
    /// Until the request is read.
    Waiting,
    Writing,
    /// Until `Acked`.
    Finished,
    Done,
}

impl Party for Application {
    type Plan = Arc<Exchange>;

    fn new(role: Role, seed: u64, plan: Arc<Exchange>) -> Self {
        Self {
            role,
            seed,
            plan,
            streams: BTreeMap::new(),
            readable: BTreeSet::new(),
            writable: BTreeSet::new(),
            completed: 0,
            started: None,
            bytes_read: 0,
            wake: None,
            datagrams_received: 0,
            path_changes: 0,
            moves_failed: 0,
            observed: Vec::new(),
            closed: None,
        }
    }

    fn on_event(&mut self, now: Time, connection: &mut Connection, event: Event) {
        assert!(self.closed.is_none(), "{event:?} after Closed");
        match event {
            Event::Connected => {
                assert!(self.started.replace(now).is_none(), "connected twice");
                self.send_datagrams(connection);
            }
            Event::StreamOpened(id) => self.on_opened(id),
            Event::StreamLimitRaised => {}
            Event::Readable(id) => drop(self.readable.insert(id)),
            Event::Writable(id) => drop(self.writable.insert(id)),
            Event::Acked(id) => {
                let stream = self.streams.get_mut(&id).expect("acked a stream never opened");
                if stream.sending != SendState::Done {
                    assert_eq!(stream.sending, SendState::Finished, "stream {id} acked too early");
                }
                stream.sending = SendState::Done;
                self.count(id);
            }
            Event::Stopped { id, code } => self.on_stopped(connection, id, code),
            Event::Reset { id, code } => self.on_reset(id, code),
            Event::Datagram(bytes) => {
                let pattern = Pattern::new(self.seed, DATAGRAM_PATTERN);
                assert!(pattern.is_at(0, &bytes) && bytes.len() == DATAGRAM_BYTES);
                self.datagrams_received += 1;
                assert!(self.datagrams_received <= self.plan.datagrams, "a datagram too many");
            }
            Event::PathChanged { .. } => self.path_changes += 1,
            Event::PeerCandidates(_) => {}
            Event::MigrationFailed { .. } => self.moves_failed += 1,
            Event::ObservedAddress(address) => self.observed.push(address),
            Event::Closed(reason) => self.closed = Some(reason),
        }
    }

    fn drive(&mut self, now: Time, connection: &mut Connection) {
        if self.closed.is_some() || self.started.is_none() {
            return;
        }
        // A stream that completes allows another one; the end of a request begins a response.
        loop {
            let completed = self.completed;
            while self.wants_stream() {
                let Some(id) = connection.open_stream() else { break };
                let expected = StreamId::new(self.role, self.streams.len() as u64);
                assert_eq!(id, expected, "streams are numbered in order");
                self.add(id);
            }
            for id in std::mem::take(&mut self.writable) {
                self.write(connection, id);
            }
            self.wake = None;
            for id in std::mem::take(&mut self.readable) {
                self.read(now, connection, id);
            }
            if self.completed == completed && self.writable.is_empty() {
                break;
            }
        }
    }

    fn wants_driving(&self, now: Time) -> bool {
        self.wants_stream()
            || !self.writable.is_empty()
            || (!self.readable.is_empty() && self.wake.is_none_or(|wake| wake <= now))
    }

    fn wake(&self) -> Option<Time> {
        self.wake.filter(|_| self.closed.is_none())
    }
}

impl Application {
    /// Returns the role of this side.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Returns whether every stream of the plan has ended as planned, as seen from this side.
    pub fn is_done(&self) -> bool {
        self.started.is_some() && self.completed == self.plan.streams.len()
    }

    /// Returns whether the handshake is complete.
    pub fn is_connected(&self) -> bool {
        self.started.is_some()
    }

    /// Returns the reason of the connection's end, if it has ended.
    pub fn closed(&self) -> Option<&CloseReason> {
        self.closed.as_ref()
    }

    /// Returns the number of bytes read so far.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    /// Returns the number of unreliable datagrams that arrived.
    pub fn datagrams_received(&self) -> u64 {
        self.datagrams_received
    }

    /// Returns the number of migrations to which the other address did not answer.
    pub fn moves_failed(&self) -> u64 {
        self.moves_failed
    }

    /// Returns the number of times that the peer's address changed.
    pub fn path_changes(&self) -> u64 {
        self.path_changes
    }

    /// Returns the addresses at which the peer reported to see this side, in order.
    pub fn observed(&self) -> &[SocketAddr] {
        &self.observed
    }

    /// Describes the unfinished parts, for messages of failed tests.
    pub fn unfinished(&self) -> Vec<String> {
        let unopened = self.plan.streams.len() - self.streams.len();
        let unopened = (unopened > 0).then(|| format!("{unopened} streams not opened"));
        let open = self.streams.iter().filter(|(_, stream)| !stream.counted).map(|(id, stream)| {
            let Stream { sending, written, write_len, receiving, read, read_len, .. } = stream;
            let reading = if *receiving { "reading" } else { "read" };
            format!("{id}: {sending:?} {written}/{write_len}, {reading} {read}/{read_len}")
        });
        unopened.into_iter().chain(open).collect()
    }

    fn wants_stream(&self) -> bool {
        let limit = if self.plan.at_once == 0 { usize::MAX } else { self.plan.at_once };
        self.role == Role::Initiator
            && self.started.is_some()
            && self.closed.is_none()
            && self.streams.len() < self.plan.streams.len()
            && self.streams.len() - self.completed < limit
    }

    fn add(&mut self, id: StreamId) {
        let index = usize::try_from(id.sequence()).expect("a plan has few streams");
        let plan = self.plan.streams.get(index).expect("a stream beyond the plan");
        let request = Pattern::new(self.seed, 2 * id.0);
        let response = Pattern::new(self.seed, 2 * id.0 + 1);
        let initiator = self.role == Role::Initiator;
        let (outgoing, incoming) =
            if initiator { (request, response) } else { (response, request) };
        let (write_len, read_len) =
            if initiator { (plan.request, plan.response) } else { (plan.response, plan.request) };
        let (write_len, reset_at_end) = match plan.cut {
            Some(StreamCut::Reset(after)) if initiator => (write_len.min(after), true),
            _ => (write_len, false),
        };
        let stop_after = match plan.cut {
            Some(StreamCut::Stop(after)) if initiator => Some(after),
            _ => None,
        };
        let unread = plan.cut == Some(StreamCut::Unread);
        self.completed += usize::from(unread);
        let begins = initiator || (self.plan.eager && !unread);
        self.streams.insert(
            id,
            Stream {
                outgoing,
                write_len,
                written: 0,
                reset_at_end,
                sending: if begins { SendState::Writing } else { SendState::Waiting },
                incoming,
                read_len,
                read: 0,
                stop_after,
                may_be_reset: !initiator && matches!(plan.cut, Some(StreamCut::Reset(_))),
                receiving: initiator || !unread,
                counted: unread,
            },
        );
        if begins {
            self.writable.insert(id);
        }
        if stop_after == Some(0) {
            self.readable.insert(id);
        }
    }

    fn on_opened(&mut self, id: StreamId) {
        assert_eq!(id.opener(), self.role.peer(), "we opened {id} ourselves");
        let expected = self.streams.len() as u64;
        assert_eq!(id.sequence(), expected, "streams appear in order");
        self.add(id);
        self.readable.insert(id);
    }

    fn on_stopped(&mut self, connection: &mut Connection, id: StreamId, code: u64) {
        assert_eq!(
            (self.role, code),
            (Role::Responder, STOP_CODE),
            "{id} was stopped without a request"
        );
        // The core may already have reset the stream by itself.
        let _ = connection.reset(id, code);
        let stream = self.streams.get_mut(&id).expect("stopped a stream never opened");
        stream.sending = SendState::Done;
        self.count(id);
    }

    fn on_reset(&mut self, id: StreamId, code: u64) {
        let stream = self.streams.get_mut(&id).expect("reset of a stream never opened");
        if stream.may_be_reset {
            assert_eq!(code, RESET_CODE);
            self.end_of_request(id);
        } else {
            // The answer to this side's stop.
            assert!(
                stream.stop_after.is_some() && code == STOP_CODE,
                "{id} was reset without a request"
            );
        }
    }

    fn write(&mut self, connection: &mut Connection, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id) else { panic!("{id} was never opened") };
        while stream.sending == SendState::Writing {
            let left = stream.write_len - stream.written;
            if left == 0 {
                let ended = if stream.reset_at_end {
                    stream.sending = SendState::Done;
                    connection.reset(id, RESET_CODE)
                } else {
                    stream.sending = SendState::Finished;
                    connection.finish(id)
                };
                stream.on_write(id, ended);
                break;
            }
            let room = connection.send_capacity(id);
            if room == 0 {
                break;
            }
            let len = usize::try_from(left).unwrap_or(usize::MAX).min(room);
            let piece = stream.outgoing.piece(stream.written, len);
            stream.written += piece.len() as u64;
            let written = connection.write(id, piece);
            stream.on_write(id, written);
        }
        self.count(id);
    }

    fn read(&mut self, now: Time, connection: &mut Connection, id: StreamId) {
        loop {
            let stream = self.streams.get_mut(&id).expect("readable before it was opened");
            if !stream.receiving {
                return;
            }
            if stream.stop_after.is_some_and(|after| stream.read >= after) {
                stream.receiving = false;
                connection.stop(id, STOP_CODE).expect("a stream that is read can be stopped");
                self.count(id);
                return;
            }
            if let Some(wake) = self.next_read_at(now) {
                self.wake = Some(wake);
                self.readable.insert(id);
                return;
            }
            let stream = self.streams.get_mut(&id).expect("found above");
            match connection.read(now, id) {
                Ok(Read::Slice(slice)) => {
                    assert!(!slice.is_empty(), "an empty slice");
                    assert!(stream.incoming.is_at(stream.read, &slice), "{id}: wrong bytes");
                    stream.read += slice.len() as u64;
                    assert!(stream.read <= stream.read_len, "{id}: too many bytes");
                    self.bytes_read += slice.len() as u64;
                }
                Ok(Read::Finished) => {
                    assert!(!stream.may_be_reset, "{id}: finished instead of reset");
                    assert_eq!(stream.read, stream.read_len, "{id}: ended early");
                    return self.end_of_request(id);
                }
                Ok(Read::Blocked) => return,
                Err(StreamError::Reset(RESET_CODE)) if stream.may_be_reset => {
                    return self.end_of_request(id);
                }
                Err(error) => panic!("reading {id}: {error}"),
            }
        }
    }

    /// Ends the reading of `id`; a response that waited for this begins.
    fn end_of_request(&mut self, id: StreamId) {
        let stream = self.streams.get_mut(&id).expect("a stream in progress");
        stream.receiving = false;
        if stream.sending == SendState::Waiting {
            stream.sending = SendState::Writing;
            self.writable.insert(id);
        }
        self.count(id);
    }

    /// Returns the time of a slow reader's next read, if it is still in the future.
    fn next_read_at(&self, now: Time) -> Option<Time> {
        let rate = self.plan.read_rate?;
        let started = self.started?;
        let due = Duration::from_nanos(
            u64::try_from(u128::from(self.bytes_read) * 1_000_000_000 / u128::from(rate))
                .unwrap_or(u64::MAX),
        );
        let quantum = Duration::from_nanos(READ_QUANTUM * 1_000_000_000 / rate.max(1));
        (started + due > now).then_some(started + due + quantum)
    }

    fn count(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if !stream.counted && !stream.receiving && stream.sending == SendState::Done {
            stream.counted = true;
            self.completed += 1;
        }
    }

    fn send_datagrams(&mut self, connection: &mut Connection) {
        if self.role == Role::Initiator {
            for _ in 0..self.plan.datagrams {
                let bytes = Pattern::new(self.seed, DATAGRAM_PATTERN).piece(0, DATAGRAM_BYTES);
                assert!(connection.send_datagram(bytes), "a datagram that fits is taken");
            }
        }
    }
}

impl Stream {
    /// Accepts a stop of the peer that arrived before its event was taken; any other error is a
    /// failure.
    fn on_write(&mut self, id: StreamId, result: Result<(), StreamError>) {
        match result {
            Ok(()) => {}
            Err(StreamError::Stopped(STOP_CODE)) => self.sending = SendState::Done,
            Err(error) => panic!("writing {id}: {error}"),
        }
    }
}
