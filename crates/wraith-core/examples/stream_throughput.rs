//! Throughput of the stream layer without cryptography or sockets: write → frames → on_stream →
//! read → acknowledge, in one thread. Each byte is copied twice (into a packet, into a block), so
//! memcpy is the limit.
//!
//! `cargo run --release -p wraith-core --example stream_throughput [payload bytes] [streams]`

use std::time::{Duration, Instant};

use bytes::Bytes;
use wraith_core::frame::{Frame, FrameWriter, Frames, SentFrames};
use wraith_core::streams::{Read, Role, StreamConfig, StreamId, Streams};
use wraith_core::{BlockPool, Time};

const TOTAL: u64 = 8 << 30;
const RTT: Duration = Duration::from_micros(200);
/// Packets in flight before they are acknowledged, as many as one GSO batch.
const BATCH: usize = 44;
const WRITE_BYTES: usize = 256 * 1024;

fn main() {
    let mut args = std::env::args().skip(1).map(|arg| arg.parse().expect("a number"));
    let payload: usize = args.next().unwrap_or(1424);
    let count: usize = args.next().unwrap_or(1);
    let config = StreamConfig::default();
    let mut sender = Streams::new(Role::Initiator, &config, BlockPool::default());
    let mut receiver = Streams::new(Role::Responder, &config, BlockPool::default());
    for side in [&mut sender, &mut receiver] {
        side.set_peer_limits(config.connection_window, config.stream_window, config.streams_max);
    }
    let ids: Vec<StreamId> = (0..count).map(|_| sender.open().expect("allowed")).collect();
    let content = Bytes::from((0..WRITE_BYTES).map(|i| i as u8).collect::<Vec<_>>());

    let mut packets = vec![0; payload * BATCH];
    let mut flights: Vec<SentFrames> = Vec::with_capacity(BATCH);
    let (mut read, mut sent_packets) = (0, 0u64);
    let start = Instant::now();
    while read < TOTAL {
        let now = Time::from_nanos(start.elapsed().as_nanos() as u64);
        for &id in &ids {
            while sender.send_capacity(id) > (22 << 20) {
                sender.write(id, content.clone()).expect("open");
            }
        }
        for packet in packets.chunks_mut(payload) {
            if !sender.has_pending() {
                break;
            }
            let mut frames = SentFrames::new();
            let mut out = FrameWriter::new(packet);
            sender.write_frames(&mut out, &mut frames);
            let len = out.complete();
            deliver(&packet[..len], &mut receiver);
            flights.push(frames);
            sent_packets += 1;
        }
        for &id in &ids {
            while let Read::Slice(chunk) = receiver.read(now, RTT, id).unwrap_or(Read::Blocked) {
                read += chunk.len() as u64;
                std::hint::black_box(&chunk[..]);
            }
        }
        while receiver.poll_event().is_some() {}
        flights.drain(..).flatten().for_each(|frame| sender.on_acked(&frame));
        while sender.poll_event().is_some() {}
        if receiver.has_pending() {
            let mut frames = SentFrames::new();
            let mut out = FrameWriter::new(&mut packets[..payload]);
            receiver.write_frames(&mut out, &mut frames);
            let len = out.complete();
            deliver(&packets[..len], &mut sender);
            frames.iter().for_each(|frame| receiver.on_acked(frame));
        }
    }
    let elapsed = start.elapsed();
    let rate = read as f64 / elapsed.as_secs_f64() / 1e9;
    let each = elapsed.as_nanos() as u64 / sent_packets;
    println!("{payload} B payload, {count} streams: {rate:.2} GB/s, {each} ns per packet");
}

fn deliver(payload: &[u8], to: &mut Streams) {
    for frame in Frames::new(payload) {
        let done = match frame.expect("well-formed") {
            Frame::Stream { id, offset, fin, data } => to.on_stream(id, offset, fin, data),
            Frame::MaxData(maximum) => to.on_max_data(maximum),
            Frame::MaxStreamData { id, maximum } => to.on_max_stream_data(id, maximum),
            _ => Ok(()),
        };
        done.expect("allowed");
    }
}
