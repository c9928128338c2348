//! Credit that vanished without a retransmission is announced again when the blocked side sends
//! blocked frames.

use super::pair::{Pair, Side};
use crate::Time;
use crate::frame::{FrameWriter, SentFrame, SentFrames};
use crate::streams::StreamConfig;

const WINDOW: u64 = 10_000;

fn pair(connection_window: u64) -> Pair {
    let config = StreamConfig {
        connection_window,
        stream_window: WINDOW,
        streams_max: 2,
        connection_window_max: connection_window,
        stream_window_max: WINDOW,
        send_buffer_max: 1 << 20,
    };
    Pair::new(&config, &config, Default::default(), 1)
}

/// Drops all pending packets of `from`, without reporting their loss. Returns the number of credit
/// frames in them.
fn vanish(from: &mut Side) -> usize {
    let packets = std::iter::from_fn(|| written(from));
    packets.flatten().filter(is_credit).count()
}

fn written(from: &mut Side) -> Option<SentFrames> {
    let mut sent = SentFrames::new();
    from.streams.write_frames(&mut FrameWriter::new(&mut [0; 1200]), &mut sent);
    (!sent.is_empty()).then_some(sent)
}

fn is_credit(frame: &SentFrame) -> bool {
    matches!(frame, SentFrame::MaxData | SentFrame::MaxStreamData(_) | SentFrame::MaxStreams)
}

#[test]
fn lost_window_updates_are_repeated_for_a_blocked_peer() {
    // The limit of the stream, then the limit of the connection.
    for connection_window in [1 << 20, WINDOW] {
        let mut pair = pair(connection_window);
        let id = pair.a.streams.open().unwrap();
        pair.a.write(id, 0..50_000).unwrap();
        let mut read = 0;
        for _ in 0..10 {
            pair.settle();
            let _ = pair.b.read(Time::ZERO, id, &mut read).unwrap();
            if read == 50_000 {
                break;
            }
            assert!(vanish(&mut pair.b) > 0);
            pair.settle();
            assert!(pair.a.streams.is_blocked());
            pair.a.streams.announce_blocked();
        }
        assert_eq!(read, 50_000);
        assert!(!pair.a.streams.is_blocked());
        pair.a.streams.announce_blocked();
        assert!(!pair.a.streams.has_pending(), "who is not blocked has nothing to say");
    }
}

#[test]
fn a_lost_stream_limit_is_repeated_for_a_blocked_peer() {
    let mut pair = pair(1 << 20);
    let ids = [pair.a.streams.open().unwrap(), pair.a.streams.open().unwrap()];
    for id in ids {
        pair.a.streams.finish(id).unwrap();
    }
    pair.settle();
    assert_eq!(pair.a.streams.open(), None);
    for id in ids {
        assert!(pair.b.read(Time::ZERO, id, &mut 0).unwrap());
        pair.b.streams.finish(id).unwrap();
        while let Some(sent) = written(&mut pair.b) {
            sent.iter().for_each(|frame| pair.b.streams.on_acked(frame));
        }
    }
    pair.settle();
    assert_eq!(pair.a.streams.open(), None, "both limits vanished with the rest");
    pair.a.streams.announce_blocked();
    pair.settle();
    assert!(pair.a.streams.open().is_some() && pair.a.streams.open().is_some());
    assert_eq!(pair.a.streams.open(), None);
}

#[test]
fn a_peer_that_reads_nothing_grants_no_credit() {
    let mut pair = pair(1 << 20);
    let id = pair.a.streams.open().unwrap();
    pair.a.write(id, 0..50_000).unwrap();
    pair.settle();
    pair.a.streams.announce_blocked();
    pair.settle();
    assert!(pair.a.streams.is_blocked());
    assert_eq!(vanish(&mut pair.b), 0);
}
