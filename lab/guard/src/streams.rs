//! Streams and frames: packetization, frame parsing, and reassembly of streams.

use std::hint::black_box;
use std::time::Duration;

use bytes::Bytes;
use wraith_core::frame::{Frame, FrameWriter, Frames, SentFrames};
use wraith_core::streams::{Read, Role, StreamConfig, StreamId, Streams};
use wraith_core::{BlockPool, Time};
use wraith_noise::PACKET_OVERHEAD;

use crate::{BATCH, DATAGRAM_BYTES, MOST};

const PAYLOAD_BYTES: usize = DATAGRAM_BYTES - PACKET_OVERHEAD;
const WRITE_BYTES: usize = 256 * 1024;
const WINDOW_BYTES: u64 = 64 << 20;
const RTT: Duration = Duration::from_millis(1);
/// Uncounted batches, after which the buffers have grown.
const WARM_UP: u64 = 4;

fn streams(role: Role) -> Streams {
    let config = StreamConfig {
        connection_window: WINDOW_BYTES,
        connection_window_max: WINDOW_BYTES,
        stream_window: WINDOW_BYTES,
        stream_window_max: WINDOW_BYTES,
        send_buffer_max: WINDOW_BYTES,
        ..StreamConfig::default()
    };
    let mut streams = Streams::new(role, &config, BlockPool::default());
    streams.set_peer_limits(WINDOW_BYTES, WINDOW_BYTES, 8);
    streams
}

/// A sender with one stream, on which all data of any run is queued.
fn sender() -> (Streams, StreamId) {
    let mut sender = streams(Role::Initiator);
    let id = sender.open().expect("allowed");
    let content = Bytes::from((0..WRITE_BYTES).map(|i| (i % 251) as u8).collect::<Vec<_>>());
    let bytes = (WARM_UP + MOST) as usize * BATCH as usize * PAYLOAD_BYTES;
    (0..=bytes / WRITE_BYTES).for_each(|_| sender.write(id, content.clone()).expect("open"));
    (sender, id)
}

/// Writes the next packet and returns its length.
fn write(sender: &mut Streams, packet: &mut [u8], sent: &mut SentFrames) -> usize {
    let mut out = FrameWriter::new(packet);
    sender.write_frames(&mut out, sent);
    out.complete()
}

/// Builds packets, and acknowledges each a batch later.
pub(crate) fn build(times: u64) {
    let (mut sender, _) = sender();
    let mut packet = vec![0; PAYLOAD_BYTES];
    let mut flying: Vec<SentFrames> = Vec::with_capacity(BATCH as usize);
    let mut written = 0;
    for _ in 0..WARM_UP + times {
        for _ in 0..BATCH {
            let mut sent = SentFrames::new();
            written += write(&mut sender, black_box(&mut packet), &mut sent);
            flying.push(sent);
        }
        flying.drain(..).flatten().for_each(|frame| sender.on_acked(&frame));
        while sender.poll_event().is_some() {}
    }
    assert_eq!(written as u64, (WARM_UP + times) * BATCH * PAYLOAD_BYTES as u64);
}

/// Receives packets, two of each eight out of order, and reads a batch at a time.
pub(crate) fn reassemble(times: u64) {
    let (mut sender, id) = sender();
    let packets: Vec<Vec<u8>> = (0..(WARM_UP + MOST) * BATCH)
        .map(|_| {
            let mut packet = vec![0; PAYLOAD_BYTES];
            let len = write(&mut sender, &mut packet, &mut SentFrames::new());
            packet.truncate(len);
            packet
        })
        .collect();
    let mut receiver = streams(Role::Responder);
    let (mut read, mut sum) = (0, 0);
    for batch in packets.chunks(BATCH as usize).take((WARM_UP + times) as usize) {
        for group in batch.chunks(8) {
            [0, 2, 1, 3, 4, 5, 7, 6].iter().for_each(|&i| deliver(&group[i], &mut receiver));
        }
        while let Read::Slice(chunk) = receiver.read(Time::ZERO, RTT, id).expect("open") {
            sum += usize::from(chunk[0]);
            read += chunk.len();
        }
        while receiver.poll_event().is_some() {}
    }
    let frames = (WARM_UP + times) * BATCH;
    assert!(read as u64 > frames * (PAYLOAD_BYTES as u64 - 20), "{read} bytes");
    black_box(sum);
}

fn deliver(payload: &[u8], to: &mut Streams) {
    for frame in Frames::new(payload) {
        if let Frame::Stream { id, offset, fin, data } = frame.expect("well-formed") {
            to.on_stream(id, offset, fin, data).expect("allowed");
        }
    }
}

/// Reads a packet with an ACK of four ranges, a window, a small piece of one stream and a large one
/// of another.
pub(crate) fn read_frames(times: u64) {
    let mut packet = vec![0; PAYLOAD_BYTES];
    let mut out = FrameWriter::new(&mut packet);
    let ranges = [1000..=1100, 900..=990, 880..=885, 1..=700];
    assert!(out.ack(250, ranges.into_iter(), None));
    assert!(out.max_stream_data(4, 1 << 20));
    assert_eq!(out.stream(8, 5000, 200, false, |to| to.fill(1)), Some(200));
    let room = out.remaining();
    assert!(out.stream(4, 1 << 30, room, false, |to| to.fill(2)).is_some());
    let len = out.len();
    let (mut acked, mut data_bytes) = (0, 0);
    for _ in 0..times * BATCH {
        for frame in Frames::new(black_box(&packet[..len])) {
            match frame.expect("well-formed") {
                Frame::Ack(ack) => acked += ack.ranges().map(|r| r.end() - r.start()).sum::<u64>(),
                Frame::Stream { data, .. } => data_bytes += black_box(data).len() as u64,
                _ => {}
            }
        }
    }
    assert_eq!(acked, times * BATCH * (100 + 90 + 5 + 699));
    assert!(data_bytes >= times * BATCH * 1300);
}
