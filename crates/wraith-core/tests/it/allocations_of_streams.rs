//! In a steady transfer, the stream layer allocates nothing: not when packets are built, received,
//! acknowledged or lost, nor when whole blocks are read.

use std::time::Duration;

use bytes::Bytes;
use wraith_core::frame::{Frame, FrameWriter, Frames, SentFrame, SentFrames};
use wraith_core::streams::{Read, Role, StreamConfig, StreamId, Streams};
use wraith_core::{BlockPool, Time};

use crate::counting::{allocations, bytes_held};

const PAYLOAD_BYTES: usize = 1424;
const PACKETS: usize = 300;

/// Delivers packets of `from` to `to`; if `lossy`, every 50th is lost.
fn flight(
    from: &mut Streams,
    to: &mut Streams,
    flying: &mut Vec<(SentFrame, bool)>,
    buf: &mut [u8],
    lossy: bool,
) {
    for i in 0..PACKETS {
        if !from.has_pending() {
            break;
        }
        let mut sent = SentFrames::new();
        let mut out = FrameWriter::new(buf);
        from.write_frames(&mut out, &mut sent);
        let len = out.complete();
        let lost = lossy && i % 50 == 49;
        flying.extend(sent.into_iter().map(|frame| (frame, lost)));
        for frame in Frames::new(&buf[..len]).filter(|_| !lost) {
            match frame.unwrap() {
                Frame::Stream { id, offset, fin, data } => to.on_stream(id, offset, fin, data),
                Frame::MaxData(maximum) => to.on_max_data(maximum),
                Frame::MaxStreamData { id, maximum } => to.on_max_stream_data(id, maximum),
                Frame::MaxStreams(maximum) => to.on_max_streams(maximum),
                _ => Ok(()),
            }
            .unwrap();
        }
    }
    for (frame, lost) in flying.drain(..) {
        if lost { from.on_lost(&frame) } else { from.on_acked(&frame) }
    }
    while from.poll_event().is_some() {}
    while to.poll_event().is_some() {}
}

#[test]
fn a_steady_transfer_with_losses_allocates_nothing() {
    let (mut a, mut b) = connected_pair(&StreamConfig::default());
    let id = a.open().unwrap();
    let content = Bytes::from(vec![7; 256 * 1024]);
    let mut flying = Vec::with_capacity(2 * PACKETS);
    let mut buf = vec![0; PAYLOAD_BYTES];
    let mut warm = 0;
    let mut read = 0;
    for round in 0..400u64 {
        if round == 100 {
            warm = allocations();
            read = 0;
        }
        while a.send_capacity(id) > 0 {
            a.write(id, content.clone()).unwrap();
        }
        flight(&mut a, &mut b, &mut flying, &mut buf, true);
        // Retransmits the losses, so that the received bytes have no gap.
        flight(&mut a, &mut b, &mut flying, &mut buf, false);
        let now = Time::ZERO + Duration::from_millis(round);
        while let Read::Slice(slice) = b.read(now, Duration::from_millis(1), id).unwrap() {
            read += slice.len();
        }
        flight(&mut b, &mut a, &mut flying, &mut buf, false);
    }
    let allocations = allocations() - warm;
    let packets = read / PAYLOAD_BYTES;
    assert!(packets > 100_000, "{packets}");
    // A last slice below 32 KiB is copied out of its block: at most once for each of the 300 reads.
    assert!(allocations <= 300, "{allocations} allocations for {packets} packets");
}

fn connected_pair(config: &StreamConfig) -> (Streams, Streams) {
    let mut a = Streams::new(Role::Initiator, config, BlockPool::default());
    let mut b = Streams::new(Role::Responder, config, BlockPool::default());
    a.set_peer_limits(config.connection_window, config.stream_window, config.streams_max);
    b.set_peer_limits(config.connection_window, config.stream_window, config.streams_max);
    (a, b)
}

/// Reads a stream to its end. Returns the number of bytes.
fn read_to_end(streams: &mut Streams, id: StreamId) -> usize {
    let mut read = 0;
    while let Read::Slice(slice) = streams.read(Time::ZERO, Duration::from_millis(1), id).unwrap() {
        read += slice.len();
    }
    read
}

#[test]
fn a_small_request_allocates_nothing_but_the_message() {
    let (mut a, mut b) = connected_pair(&StreamConfig::default());
    let mut flying = Vec::with_capacity(64);
    let mut buf = vec![0; PAYLOAD_BYTES];
    for (bytes, per_message) in [(64, 1), (1024, 0)] {
        let content = Bytes::from(vec![7; bytes]);
        let mut warm = 0;
        for round in 0..1000 {
            if round == 300 {
                warm = allocations();
            }
            let id = a.open().unwrap();
            a.write(id, content.clone()).unwrap();
            a.finish(id).unwrap();
            flight(&mut a, &mut b, &mut flying, &mut buf, false);
            assert_eq!(read_to_end(&mut b, id), bytes);
            b.write(id, content.clone()).unwrap();
            b.finish(id).unwrap();
            flight(&mut b, &mut a, &mut flying, &mut buf, false);
            assert_eq!(read_to_end(&mut a, id), bytes);
            flight(&mut a, &mut b, &mut flying, &mut buf, false);
        }
        // A message that fills an eighth of a small block is handed over with it.
        let allocations = allocations() - warm;
        assert_eq!(allocations, 2 * 700 * per_message, "{bytes} bytes");
    }
}

#[test]
fn a_thousand_half_sent_small_streams_hold_little_memory() {
    const STREAMS: u64 = 1000;
    const HELD_MAX: i64 = 4 << 20;
    let config = StreamConfig { streams_max: STREAMS, ..StreamConfig::default() };
    // Unread bytes, and bytes behind a gap.
    for offset in [0, 1, 1000] {
        let before = bytes_held();
        let (_, mut b) = connected_pair(&config);
        for sequence in 0..STREAMS {
            b.on_stream(StreamId::new(Role::Initiator, sequence).0, offset, false, b"x").unwrap();
        }
        let held = bytes_held() - before;
        assert!(held <= HELD_MAX, "{held} bytes for a byte at {offset}");
    }
}
