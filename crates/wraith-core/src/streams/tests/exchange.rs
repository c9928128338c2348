//! Honest peers on bad channels: every byte arrives once and in order, limits hold, and memory is
//! freed.

use std::collections::HashMap;
use std::time::Duration;

use super::pair::{Channel, Pair, RTT, Rng, Side};
use crate::streams::{StreamConfig, StreamEvent, StreamId};
use crate::{StreamError, Time};

const BAD: Channel = Channel { loss: 10, duplicate: 10, reorder: 30, spurious: 5 };

fn at(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}

fn tight() -> StreamConfig {
    StreamConfig {
        connection_window: 30_000,
        stream_window: 20_000,
        streams_max: 4,
        connection_window_max: 200_000,
        stream_window_max: 100_000,
        send_buffer_max: 50_000,
    }
}

/// An application that sends `total` bytes on each of `streams` streams and reads all received
/// bytes. It echoes nothing.
struct App {
    streams: u64,
    total: u64,
    written: HashMap<StreamId, u64>,
    read: HashMap<StreamId, u64>,
    finished: usize,
    acked: usize,
}

impl App {
    fn new(streams: u64, total: u64) -> Self {
        let (written, read) = (HashMap::new(), HashMap::new());
        Self { streams, total, written, read, finished: 0, acked: 0 }
    }

    fn step(&mut self, side: &mut Side, rng: &mut Rng, now: Time) {
        if self.streams > 0
            && rng.percent(30)
            && let Some(id) = side.streams.open()
        {
            self.streams -= 1;
            self.written.insert(id, 0);
            self.read.insert(id, 0);
        }
        for event in side.take_events() {
            match event {
                StreamEvent::Opened(id) => {
                    assert!(self.written.insert(id, 0).is_none(), "opened twice");
                    self.read.insert(id, 0);
                }
                StreamEvent::Acked(_) => self.acked += 1,
                StreamEvent::Readable(_) | StreamEvent::Writable(_) | StreamEvent::LimitRaised => {}
                other => panic!("unexpected {other:?}"),
            }
        }
        for (&id, written) in &mut self.written {
            let room = side.streams.send_capacity(id) as u64;
            let n = rng.below(9000).min(self.total - *written).min(room);
            if n > 0 {
                side.write(id, *written..*written + n).unwrap();
                *written += n;
                if *written == self.total {
                    side.streams.finish(id).unwrap();
                }
            }
        }
        let mut done = Vec::new();
        for (&id, offset) in &mut self.read {
            if rng.percent(60) && side.read(now, id, offset).unwrap() {
                assert_eq!(*offset, self.total);
                done.push(id);
            }
        }
        for id in done {
            self.read.remove(&id);
            self.finished += 1;
        }
    }
}

fn run(config: &StreamConfig, channel: Channel, seed: u64, streams: u64, total: u64) {
    let mut pair = Pair::new(config, config, channel, seed);
    let mut apps = [App::new(streams, total), App::new(streams, total)];
    let mut rng = Rng::new(seed ^ 0xabcd);
    let all = streams as usize * 2;
    for round in 0..100_000 {
        let now = at(round * 20);
        apps[0].step(&mut pair.a, &mut rng, now);
        apps[1].step(&mut pair.b, &mut rng, now);
        pair.exchange(1 + rng.below(40) as usize);
        if apps.iter().all(|app| app.finished == all && app.acked == all) {
            pair.settle();
            assert_eq!((pair.a.streams.live(), pair.b.streams.live()), (0, 0), "forgotten");
            assert!(!pair.a.streams.has_pending() && !pair.b.streams.has_pending());
            return;
        }
    }
    panic!("seed {seed}: not finished");
}

#[test]
fn every_byte_arrives_over_a_bad_channel_with_tight_limits() {
    for seed in 0..30 {
        run(&tight(), BAD, seed, 12, 40_000);
    }
}

#[test]
fn every_byte_arrives_over_a_bad_channel_with_wide_limits() {
    for seed in 0..4 {
        run(&StreamConfig::default(), BAD, seed, 3, 900_000);
    }
}

#[test]
fn every_byte_arrives_when_half_of_the_packets_do_not() {
    let channel = Channel { loss: 50, ..BAD };
    for seed in 0..5 {
        run(&tight(), channel, seed, 5, 20_000);
    }
}

#[test]
fn one_stream_after_the_other_never_uses_up_the_limit_or_memory() {
    let config = StreamConfig { streams_max: 2, ..StreamConfig::default() };
    let mut pair = Pair::new(&config, &config, BAD, 7);
    let control = pair.a.streams.open().unwrap();
    pair.a.write(control, 0..10).unwrap();
    for _ in 0..500 {
        let id = loop {
            if let Some(id) = pair.a.streams.open() {
                break id;
            }
            assert!(pair.exchange(10) > 0, "no credit for another stream");
        };
        pair.a.write(id, 0..100).unwrap();
        pair.a.streams.finish(id).unwrap();
        pair.b.streams.read(at(0), RTT, id).unwrap_err();
        pair.settle();
        pair.b.streams.finish(id).unwrap();
        assert!(pair.b.read(at(0), id, &mut 0).unwrap());
        pair.settle();
        assert!(pair.a.read(at(0), id, &mut 0).unwrap());
        assert!(pair.a.streams.live() <= 2 && pair.b.streams.live() <= 2);
        pair.a.take_events();
        pair.b.take_events();
    }
    assert_eq!(pair.b.streams.read(at(0), RTT, StreamId(2)).unwrap_err(), StreamError::Closed);
}

/// Transfers `total` bytes on one stream and reads everything after each flight. Returns the number
/// of flights.
fn bulk(config: &StreamConfig, channel: Channel, ms_per_flight: u64, total: u64) -> u64 {
    let mut pair = Pair::new(config, config, channel, 3);
    let id = pair.a.streams.open().unwrap();
    let (mut written, mut read) = (0, 0);
    for flight in 1..100_000 {
        while written < total && pair.a.streams.send_capacity(id) > 0 {
            pair.a.write(id, written..(written + 100_000).min(total)).unwrap();
            written = (written + 100_000).min(total);
        }
        pair.exchange(100_000);
        pair.b.read(at(flight * ms_per_flight), id, &mut read).unwrap();
        if read == total {
            return flight;
        }
    }
    panic!("stuck at {read}");
}

#[test]
fn windows_grow_to_the_path_when_the_reader_keeps_up() {
    let config = StreamConfig {
        connection_window: 15_000,
        stream_window: 10_000,
        connection_window_max: 1 << 20,
        stream_window_max: 1 << 20,
        ..StreamConfig::default()
    };
    let total = 4 << 20;
    // Two flights make a round trip of 8 ms: windows double until they are 1 MiB.
    assert!(bulk(&config, Channel::default(), 4, total) < 40);
    // The same data with a reader that reads every 80 ms: windows do not grow.
    assert!(bulk(&config, Channel::default(), 80, total) > 300);
}

#[test]
fn a_lost_window_update_is_repaired() {
    let channel = Channel { loss: 60, ..Channel::default() };
    let config = StreamConfig {
        connection_window: 3000,
        stream_window: 2000,
        connection_window_max: 3000,
        stream_window_max: 2000,
        ..StreamConfig::default()
    };
    bulk(&config, channel, 1000, 100_000);
}

#[test]
fn a_finished_stream_says_when_everything_arrived() {
    let mut pair = Pair::calm();
    let id = pair.a.streams.open().unwrap();
    pair.a.write(id, 0..5000).unwrap();
    pair.settle();
    assert_eq!(pair.a.take_events(), vec![]);
    pair.a.streams.finish(id).unwrap();
    assert_eq!(pair.a.write(id, 0..1), Err(StreamError::Closed));
    pair.settle();
    assert_eq!(pair.a.take_events(), vec![StreamEvent::Acked(id)]);
    assert_eq!(pair.b.take_events(), vec![StreamEvent::Opened(id), StreamEvent::Readable(id)]);
}

#[test]
fn readable_comes_once_until_a_read_was_blocked() {
    let mut pair = Pair::calm();
    let id = pair.a.streams.open().unwrap();
    for range in [0..10, 10..20] {
        pair.a.write(id, range).unwrap();
        pair.settle();
    }
    assert_eq!(pair.b.take_events(), vec![StreamEvent::Opened(id), StreamEvent::Readable(id)]);
    let mut offset = 0;
    assert!(!pair.b.read(at(0), id, &mut offset).unwrap());
    pair.a.streams.finish(id).unwrap();
    pair.settle();
    assert_eq!(pair.b.take_events(), vec![StreamEvent::Readable(id)]);
    assert!(pair.b.read(at(0), id, &mut offset).unwrap());
    assert_eq!(offset, 20);
}

#[test]
fn a_writer_without_room_is_told_when_there_is_some() {
    let config = StreamConfig { send_buffer_max: 10_000, ..StreamConfig::default() };
    let mut pair = Pair::new(&config, &config, Channel::default(), 1);
    let id = pair.a.streams.open().unwrap();
    pair.a.write(id, 0..12_000).unwrap();
    assert_eq!(pair.a.streams.send_capacity(id), 0);
    pair.exchange(100);
    assert_eq!(pair.a.take_events(), vec![StreamEvent::Writable(id)]);
    assert_eq!(pair.a.streams.send_capacity(id), 10_000);
}

#[test]
fn tiny_writes_fill_the_buffer_too() {
    let mut pair = Pair::calm();
    let id = pair.a.streams.open().unwrap();
    let mut writes = 0;
    while pair.a.streams.send_capacity(id) > 0 {
        pair.a.write(id, writes..writes + 1).unwrap();
        writes += 1;
    }
    assert!(writes < 24 << 20 >> 6);
}

#[test]
fn a_reset_drops_what_was_not_read_and_returns_the_credit() {
    let mut pair = Pair::new(&tight(), &tight(), BAD, 11);
    for _ in 0..50 {
        let id = pair.open_when_allowed(50_000);
        pair.exchange(8);
        pair.a.streams.reset(id, 77).unwrap();
        assert_eq!(pair.a.write(id, 0..1), Err(StreamError::Closed));
        pair.settle();
        let events = pair.b.take_events();
        assert!(events.contains(&StreamEvent::Reset { id, code: 77 }), "{events:?}");
        assert_eq!(pair.b.streams.read(at(0), RTT, id).unwrap_err(), StreamError::Reset(77));
        pair.b.streams.reset(id, 0).unwrap();
        pair.settle();
        assert_eq!((pair.a.streams.live(), pair.b.streams.live()), (0, 0));
    }
}

#[test]
fn a_stop_ends_the_sender_and_returns_the_credit() {
    let mut pair = Pair::new(&tight(), &tight(), BAD, 12);
    for _ in 0..50 {
        let id = pair.open_when_allowed(50_000);
        while !pair.b.take_events().contains(&StreamEvent::Opened(id)) {
            pair.exchange(8);
        }
        pair.b.streams.stop(id, 5).unwrap();
        assert_eq!(pair.b.streams.read(at(0), RTT, id).unwrap_err(), StreamError::Closed);
        pair.settle();
        assert!(pair.a.take_events().contains(&StreamEvent::Stopped { id, code: 5 }));
        let error = pair.a.write(id, 0..1).unwrap_err();
        assert_eq!(error, StreamError::Stopped(5));
        pair.b.streams.finish(id).unwrap();
        pair.settle();
        assert!(pair.a.read(at(0), id, &mut 0).unwrap());
        assert_eq!((pair.a.streams.live(), pair.b.streams.live()), (0, 0));
    }
}

#[test]
fn a_stop_after_everything_arrived_is_not_sent() {
    let mut pair = Pair::calm();
    let id = pair.deliver(100);
    pair.b.streams.stop(id, 5).unwrap();
    assert!(!pair.b.streams.has_pending());
    assert_eq!(pair.a.take_events(), vec![StreamEvent::Acked(id)]);
}

#[test]
fn streams_take_turns() {
    let mut pair = Pair::calm();
    let ids: Vec<_> = (0..3).map(|_| pair.a.streams.open().unwrap()).collect();
    for &id in &ids {
        pair.a.write(id, 0..100_000).unwrap();
    }
    pair.exchange(60);
    let mut total = 0;
    for &id in &ids {
        let mut offset = 0;
        pair.b.read(at(0), id, &mut offset).unwrap();
        assert!(offset > 10_000, "stream {id} got {offset}");
        total += offset;
    }
    assert!(total > 30_000);
}

#[test]
fn data_written_before_the_limits_are_known_waits_for_them() {
    use crate::frame::{FrameWriter, SentFrames};
    use crate::streams::{Role, Streams};
    let config = StreamConfig::default();
    let mut streams = Streams::new(Role::Responder, &config, crate::BlockPool::default());
    streams.on_stream(0, 0, true, b"early").unwrap();
    streams.write(StreamId(0), bytes::Bytes::from_static(b"answer")).unwrap();
    assert!(streams.open().is_none() && !streams.has_pending());
    streams.set_peer_limits(100, 100, 1);
    assert!(streams.open().is_some() && streams.has_pending());
    let (mut buf, mut sent) = ([0; 100], SentFrames::new());
    streams.write_frames(&mut FrameWriter::new(&mut buf), &mut sent);
    assert_eq!(sent.len(), 1);
}
