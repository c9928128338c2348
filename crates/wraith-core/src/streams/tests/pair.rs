//! Two sides of the stream layer, without packet numbers, clocks or cryptography.

use std::collections::HashMap;
use std::time::Duration;

use crate::frame::{Frame, FrameWriter, Frames, SentFrame, SentFrames};
use crate::streams::{Read, Role, StreamConfig, StreamEvent, StreamId, Streams};
use crate::{BlockPool, StreamError, Time, Violation};

/// Short, so that windows grow by consumption and not by the assumption for long paths.
pub(super) const RTT: Duration = Duration::from_millis(8);

/// The xorshift64* generator.
#[derive(Clone, Debug)]
pub(super) struct Rng(u64);

impl Rng {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % n.max(1)
    }

    pub(super) fn percent(&mut self, p: u64) -> bool {
        self.below(100) < p
    }
}

/// Returns the byte of stream `id` at `offset`.
pub(super) fn byte(id: StreamId, role: Role, offset: u64) -> u8 {
    let salt = id.0 * 31 + matches!(role, Role::Responder) as u64 * 17;
    ((offset ^ (offset >> 8) ^ (offset >> 17)).wrapping_mul(167) ^ salt) as u8
}

pub(super) fn bytes(id: StreamId, role: Role, range: std::ops::Range<u64>) -> Vec<u8> {
    range.map(|offset| byte(id, role, offset)).collect()
}

/// A packet in flight, or waiting to be settled.
#[derive(Clone, Debug)]
struct Packet {
    payload: Vec<u8>,
    sent: SentFrames,
}

/// Impairments of the channel, in percent of packets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Channel {
    pub(super) loss: u64,
    pub(super) duplicate: u64,
    pub(super) reorder: u64,
    /// Packets declared lost although they arrive.
    pub(super) spurious: u64,
}

/// One side with the state that the checks need.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) role: Role,
    pub(super) streams: Streams,
    pub(super) events: Vec<StreamEvent>,
    packets: Vec<Packet>,
    /// The limits announced to this side: on all streams, and on each.
    max_data: u64,
    max_stream_data: HashMap<u64, u64>,
    initial_stream_data: u64,
    highest_sent: HashMap<u64, u64>,
}

impl Side {
    fn new(role: Role, own: &StreamConfig, peer: &StreamConfig) -> Self {
        let mut streams = Streams::new(role, own, BlockPool::default());
        streams.set_peer_limits(peer.connection_window, peer.stream_window, peer.streams_max);
        Self {
            role,
            streams,
            events: Vec::new(),
            packets: Vec::new(),
            max_data: peer.connection_window,
            max_stream_data: HashMap::new(),
            initial_stream_data: peer.stream_window,
            highest_sent: HashMap::new(),
        }
    }

    /// Packs pending frames into one packet of `size` bytes.
    fn pack(&mut self, size: usize) -> Option<Packet> {
        if !self.streams.has_pending() {
            return None;
        }
        let mut payload = vec![0xff; size];
        let mut sent = SentFrames::new();
        let mut out = FrameWriter::new(&mut payload);
        self.streams.write_frames(&mut out, &mut sent);
        let len = out.complete();
        assert!(len > 0 && !sent.is_empty(), "pending, but nothing was written");
        payload.truncate(len);
        self.check_limits(&payload);
        Some(Packet { payload, sent })
    }

    /// Checks that nothing exceeds the other side's limits.
    fn check_limits(&mut self, payload: &[u8]) {
        for frame in Frames::new(payload) {
            let Frame::Stream { id, offset, data, .. } = frame.unwrap() else { continue };
            let end = offset + data.len() as u64;
            let max = *self.max_stream_data.get(&id).unwrap_or(&self.initial_stream_data);
            assert!(end <= max, "stream {id} sent up to {end}, allowed {max}");
            let highest = self.highest_sent.entry(id).or_default();
            *highest = end.max(*highest);
        }
        let total: u64 = self.highest_sent.values().sum();
        assert!(total <= self.max_data, "sent {total}, allowed {}", self.max_data);
    }

    /// Handles one packet.
    pub(super) fn receive(&mut self, payload: &[u8]) -> Result<(), Violation> {
        let streams = &mut self.streams;
        for frame in Frames::new(payload) {
            match frame? {
                Frame::Stream { id, offset, fin, data } => {
                    streams.on_stream(id, offset, fin, data)?;
                }
                Frame::ResetStream { id, code, final_size } => {
                    streams.on_reset_stream(id, code, final_size)?;
                }
                Frame::StopSending { id, code } => streams.on_stop_sending(id, code)?,
                Frame::MaxData(maximum) => {
                    self.max_data = self.max_data.max(maximum);
                    streams.on_max_data(maximum)?;
                }
                Frame::MaxStreamData { id, maximum } => {
                    let max = self.max_stream_data.entry(id).or_insert(self.initial_stream_data);
                    *max = maximum.max(*max);
                    streams.on_max_stream_data(id, maximum)?;
                }
                Frame::MaxStreams(maximum) => streams.on_max_streams(maximum)?,
                Frame::DataBlocked(maximum) => streams.on_data_blocked(maximum),
                Frame::StreamDataBlocked { id, maximum } => {
                    streams.on_stream_data_blocked(id, maximum)?;
                }
                Frame::StreamsBlocked(maximum) => streams.on_streams_blocked(maximum)?,
                Frame::Padding => {}
                other => panic!("unexpected {other:?}"),
            }
        }
        while let Some(event) = self.streams.poll_event() {
            self.events.push(event);
        }
        Ok(())
    }

    /// Returns the events since the last call.
    pub(super) fn take_events(&mut self) -> Vec<StreamEvent> {
        while let Some(event) = self.streams.poll_event() {
            self.events.push(event);
        }
        std::mem::take(&mut self.events)
    }

    /// Writes `range` of the known content of `id`.
    pub(super) fn write(
        &mut self,
        id: StreamId,
        range: std::ops::Range<u64>,
    ) -> Result<(), StreamError> {
        self.streams.write(id, bytes(id, self.role, range).into())
    }

    /// Reads until blocked or finished, and checks the content from `*offset` on. Returns true if
    /// finished.
    pub(super) fn read(
        &mut self,
        now: Time,
        id: StreamId,
        offset: &mut u64,
    ) -> Result<bool, StreamError> {
        loop {
            match self.streams.read(now, RTT, id)? {
                Read::Slice(slice) => {
                    for &b in slice.iter() {
                        assert!(
                            b == byte(id, self.role.peer(), *offset),
                            "stream {id} at {offset}"
                        );
                        *offset += 1;
                    }
                }
                Read::Finished => return Ok(true),
                Read::Blocked => return Ok(false),
            }
        }
    }
}

/// Both sides and the channel between them.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) a: Side,
    pub(super) b: Side,
    pub(super) channel: Channel,
    pub(super) rng: Rng,
}

impl Pair {
    pub(super) fn new(a: &StreamConfig, b: &StreamConfig, channel: Channel, seed: u64) -> Self {
        Self {
            a: Side::new(Role::Initiator, a, b),
            b: Side::new(Role::Responder, b, a),
            channel,
            rng: Rng::new(seed),
        }
    }

    /// Returns a pair with a perfect channel and default limits.
    pub(super) fn calm() -> Self {
        let config = StreamConfig::default();
        Self::new(&config, &config, Channel::default(), 1)
    }

    /// Opens a stream of side A, once the peer allows it, and writes `len` bytes.
    pub(super) fn open_when_allowed(&mut self, len: u64) -> StreamId {
        loop {
            if let Some(id) = self.a.streams.open() {
                self.a.write(id, 0..len).unwrap();
                return id;
            }
            self.exchange(10);
        }
    }

    /// Delivers `len` bytes and the end on a new stream of side A.
    pub(super) fn deliver(&mut self, len: u64) -> StreamId {
        let id = self.a.streams.open().unwrap();
        self.a.write(id, 0..len).unwrap();
        self.a.streams.finish(id).unwrap();
        self.settle();
        id
    }

    /// Runs one flight each way: up to `packets` packets of a random size, transferred and settled.
    /// Returns how many were sent.
    pub(super) fn exchange(&mut self, packets: usize) -> usize {
        let there = flight(&mut self.a, &mut self.b, self.channel, &mut self.rng, packets);
        let back = flight(&mut self.b, &mut self.a, self.channel, &mut self.rng, packets);
        there + back
    }

    /// Exchanges flights until neither side has anything to send.
    pub(super) fn settle(&mut self) {
        for _ in 0..10_000 {
            if self.exchange(64) == 0 {
                return;
            }
        }
        panic!("the pair does not come to rest");
    }
}

fn flight(
    from: &mut Side,
    to: &mut Side,
    channel: Channel,
    rng: &mut Rng,
    packets: usize,
) -> usize {
    for _ in 0..packets {
        let size = if rng.percent(20) { 60 + rng.below(100) } else { 1200 + rng.below(300) };
        let Some(packet) = from.pack(size as usize) else { break };
        from.packets.push(packet);
    }
    let mut flying = std::mem::take(&mut from.packets);
    let count = flying.len();
    for i in 1..count {
        if rng.percent(channel.reorder) {
            let j = i - rng.below(i.min(30) as u64 + 1) as usize;
            flying.swap(i, j);
        }
    }
    let settle = |from: &mut Side, frames: &SentFrames, f: fn(&mut Streams, &SentFrame)| {
        frames.iter().for_each(|frame| f(&mut from.streams, frame));
    };
    for packet in flying {
        if rng.percent(channel.loss) {
            settle(from, &packet.sent, Streams::on_lost);
            continue;
        }
        to.receive(&packet.payload).unwrap();
        if rng.percent(channel.duplicate) {
            to.receive(&packet.payload).unwrap();
        }
        if rng.percent(channel.spurious) {
            settle(from, &packet.sent, Streams::on_lost);
            if rng.percent(50) {
                settle(from, &packet.sent, Streams::on_acked);
            }
        } else {
            settle(from, &packet.sent, Streams::on_acked);
        }
    }
    count
}
