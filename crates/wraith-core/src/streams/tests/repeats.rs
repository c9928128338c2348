//! A retransmission is sent a second time if nothing else can be sent: it fills the peer's window,
//! or it carries the end of the stream.

use std::ops::Range;

use crate::BlockPool;
use crate::frame::{FrameWriter, SentFrame, SentFrames};
use crate::streams::{Role, StreamConfig, StreamId, Streams};

const WINDOW: u64 = 100_000;
const PACKET: usize = 1200;

/// Returns a sender whose peer allows [`WINDOW`] bytes and never more.
fn sender() -> (Streams, StreamId) {
    let mut streams = Streams::new(Role::Initiator, &StreamConfig::default(), BlockPool::default());
    streams.set_peer_limits(WINDOW, WINDOW, 1);
    let id = streams.open().unwrap();
    (streams, id)
}

/// Returns the frames of the next packet, and the range of bytes that they carry.
fn next(streams: &mut Streams) -> Option<(SentFrames, Range<u64>)> {
    if !streams.has_pending() {
        return None;
    }
    let (mut space, mut sent) = ([0; PACKET], SentFrames::new());
    streams.write_frames(&mut FrameWriter::new(&mut space), &mut sent);
    let bytes = sent.iter().find_map(|frame| match *frame {
        SentFrame::Stream { offset, len, .. } => Some(offset..offset + u64::from(len)),
        _ => None,
    });
    Some((sent, bytes.expect("only one stream has something to say")))
}

/// Returns all pending packets.
fn flight(streams: &mut Streams) -> Vec<(SentFrames, Range<u64>)> {
    std::iter::from_fn(|| next(streams)).take(1000).collect()
}

fn lose(streams: &mut Streams, (frames, _): &(SentFrames, Range<u64>)) {
    frames.iter().for_each(|frame| streams.on_lost(frame));
}

fn ack(streams: &mut Streams, (frames, _): &(SentFrames, Range<u64>)) {
    frames.iter().for_each(|frame| streams.on_acked(frame));
}

#[test]
fn a_retransmission_that_the_window_waits_for_is_sent_twice() {
    let (mut streams, id) = sender();
    streams.write(id, vec![7; 2 * WINDOW as usize].into()).unwrap();
    let first = flight(&mut streams);
    assert_eq!(first.iter().map(|(_, range)| range.end).max(), Some(WINDOW));
    lose(&mut streams, &first[3]);
    lose(&mut streams, &first[5]);
    let again: Vec<_> = flight(&mut streams).into_iter().map(|(_, range)| range).collect();
    let lost = [first[3].1.clone(), first[5].1.clone()];
    assert_eq!(again, [lost.clone(), lost].concat(), "and then there is nothing more to send");
}

#[test]
fn sendable_bytes_go_before_repeats() {
    let (mut streams, id) = sender();
    streams.write(id, vec![7; WINDOW as usize / 2].into()).unwrap();
    let first = flight(&mut streams);
    lose(&mut streams, &first[3]);
    assert_eq!(flight(&mut streams).len(), 1, "the application may have more to say");
    streams.write(id, vec![7; 1000].into()).unwrap();
    assert_eq!(flight(&mut streams).len(), 1);
}

#[test]
fn the_end_of_a_stream_is_repeated_until_it_is_acknowledged() {
    let (mut streams, id) = sender();
    streams.write(id, vec![7; 50_000].into()).unwrap();
    streams.finish(id).unwrap();
    let first = flight(&mut streams);
    let (last, others) = first.split_last().unwrap();
    others.iter().skip(1).for_each(|packet| ack(&mut streams, packet));
    lose(&mut streams, last);
    let once = next(&mut streams).unwrap();
    assert_eq!(once.1, last.1);
    let twice = next(&mut streams).unwrap();
    assert_eq!(twice.1, last.1);
    assert!(!streams.has_pending());
    // Both copies are lost too: the end is retransmitted again.
    lose(&mut streams, &once);
    lose(&mut streams, &twice);
    assert_eq!(flight(&mut streams).len(), 2);
    ack(&mut streams, &twice);
    ack(&mut streams, &first[0]);
    assert!(!streams.has_pending() && streams.live() == 1, "the other half is still open");
}

#[test]
fn acknowledged_bytes_are_not_repeated() {
    let (mut streams, id) = sender();
    streams.write(id, vec![7; 2 * WINDOW as usize].into()).unwrap();
    let first = flight(&mut streams);
    lose(&mut streams, &first[3]);
    next(&mut streams).unwrap();
    // The first copy was only late.
    ack(&mut streams, &first[3]);
    assert!(!streams.has_pending());
}

#[test]
fn nothing_is_repeated_where_much_was_lost() {
    let (mut streams, id) = sender();
    streams.write(id, vec![7; 2 * WINDOW as usize].into()).unwrap();
    let first = flight(&mut streams);
    let lost = first.len() / 4;
    first[..lost].iter().for_each(|packet| lose(&mut streams, packet));
    assert!(flight(&mut streams).len() <= lost + 1, "the path was too full");
}
