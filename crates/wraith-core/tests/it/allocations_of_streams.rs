//! In a steady transfer, the stream layer allocates nothing: not when packets are built, received,
//! acknowledged or lost, nor when whole blocks are read.

use std::time::Duration;

use bytes::Bytes;
use wraith_core::frame::{Frame, FrameWriter, Frames, SentFrame, SentFrames};
use wraith_core::streams::{Read, Role, StreamConfig, Streams};
use wraith_core::{BlockPool, Time};

use crate::counting::allocations;

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
    let config = StreamConfig::default();
    let mut a = Streams::new(Role::Initiator, &config, BlockPool::default());
    let mut b = Streams::new(Role::Responder, &config, BlockPool::default());
    a.set_peer_limits(config.connection_window, config.stream_window, config.streams_max);
    b.set_peer_limits(config.connection_window, config.stream_window, config.streams_max);
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
