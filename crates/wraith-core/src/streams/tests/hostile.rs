//! A peer that breaks the rules ends the connection with the right code; a peer that bends them
//! gains nothing.

use std::time::Duration;

use super::pair::{Pair, RTT, Rng};
use crate::frame::{FrameWriter, SentFrame, SentFrames};
use crate::streams::{RANGES_MAX, Read, Role, StreamConfig, StreamEvent, StreamId, Streams};
use crate::{BLOCK_BYTES, BlockPool, StreamError, Time, Violation, code};

fn responder() -> Streams {
    let mut streams = Streams::new(Role::Responder, &StreamConfig::default(), BlockPool::default());
    streams.set_peer_limits(1 << 20, 1 << 20, 10);
    streams
}

fn code_of(result: Result<(), Violation>) -> u64 {
    result.expect_err("a violation").code
}

const WINDOW: u64 = 1 << 20;

#[test]
fn bytes_beyond_a_stream_window_are_a_violation() {
    assert!(responder().on_stream(0, WINDOW - 1, false, b"x").is_ok());
    for offset in [WINDOW, WINDOW + 1, 1 << 40, (1 << 62) - 1, u64::MAX - 1] {
        assert_eq!(code_of(responder().on_stream(0, offset, false, b"x")), code::FLOW_CONTROL);
    }
    assert_eq!(code_of(responder().on_stream(0, u64::MAX, false, b"x")), code::PROTOCOL_VIOLATION);
    assert_eq!(code_of(responder().on_reset_stream(0, 0, WINDOW + 1)), code::FLOW_CONTROL);
}

#[test]
fn bytes_beyond_the_connection_window_are_a_violation() {
    let mut streams = responder();
    streams.on_stream(0, WINDOW - 1, false, b"x").unwrap();
    streams.on_stream(2, WINDOW / 2 - 1, false, b"x").unwrap();
    streams.on_stream(0, 5, false, b"x").unwrap();
    // The window was used up behind gaps, so it has doubled once.
    streams.on_stream(4, WINDOW - 1, false, b"x").unwrap();
    streams.on_stream(6, WINDOW / 2 - 1, false, b"x").unwrap();
    assert_eq!(code_of(streams.on_stream(8, 0, false, b"x")), code::FLOW_CONTROL);
    assert_eq!(code_of(streams.on_reset_stream(8, 0, 1)), code::FLOW_CONTROL);
}

#[test]
fn the_end_of_a_stream_cannot_change() {
    let finished = || {
        let mut streams = responder();
        streams.on_stream(0, 0, true, b"0123456789").unwrap();
        streams
    };
    finished().on_stream(0, 0, true, b"0123456789").unwrap();
    finished().on_stream(0, 3, false, b"345").unwrap();
    finished().on_reset_stream(0, 1, 10).unwrap();
    assert_eq!(code_of(finished().on_stream(0, 10, false, b"x")), code::FINAL_SIZE);
    assert_eq!(code_of(finished().on_stream(0, 10, true, b"x")), code::FINAL_SIZE);
    assert_eq!(code_of(finished().on_stream(0, 9, true, b"")), code::FINAL_SIZE);
    assert_eq!(code_of(finished().on_reset_stream(0, 1, 9)), code::FINAL_SIZE);
    assert_eq!(code_of(finished().on_reset_stream(0, 1, 11)), code::FINAL_SIZE);

    let mut streams = responder();
    streams.on_stream(0, 50, false, b"x").unwrap();
    assert_eq!(code_of(streams.on_stream(0, 0, true, b"x")), code::FINAL_SIZE);
    assert_eq!(code_of(streams.on_reset_stream(0, 1, 50)), code::FINAL_SIZE);
    streams.on_reset_stream(0, 1, 51).unwrap();
    assert_eq!(code_of(streams.on_reset_stream(0, 1, 52)), code::FINAL_SIZE);
    streams.on_stream(0, 3, false, b"late, and ignored").unwrap();
    assert_eq!(streams.read(Time::ZERO, RTT, StreamId(0)).unwrap_err(), StreamError::Reset(1));
}

#[test]
fn a_reset_after_everything_arrived_takes_nothing_away() {
    let mut streams = responder();
    streams.on_stream(0, 0, true, b"whole").unwrap();
    streams.on_reset_stream(0, 9, 5).unwrap();
    assert!(
        matches!(streams.read(Time::ZERO, RTT, StreamId(0)), Ok(Read::Slice(c)) if &c[..] == b"whole")
    );
    assert!(matches!(streams.read(Time::ZERO, RTT, StreamId(0)), Ok(Read::Finished)));
}

#[test]
fn streams_beyond_the_limit_or_never_opened_are_a_violation() {
    let far = [2 * 128, 2 * 128 + 2, 1 << 40, (1 << 62) - 2];
    for id in far {
        assert_eq!(code_of(responder().on_stream(id, 0, false, b"x")), code::STREAM_LIMIT);
        assert_eq!(code_of(responder().on_reset_stream(id, 0, 0)), code::STREAM_LIMIT);
        assert_eq!(code_of(responder().on_stop_sending(id, 0)), code::STREAM_LIMIT);
        assert_eq!(code_of(responder().on_max_stream_data(id, 0)), code::STREAM_LIMIT);
    }
    for id in [1, 3, (1 << 62) - 1] {
        assert_eq!(code_of(responder().on_stream(id, 0, false, b"x")), code::PROTOCOL_VIOLATION);
        assert_eq!(code_of(responder().on_stop_sending(id, 0)), code::PROTOCOL_VIOLATION);
    }
    assert_eq!(code_of(responder().on_max_streams(1 << 61)), code::PROTOCOL_VIOLATION);
}

#[test]
fn the_highest_allowed_stream_opens_all_below_it() {
    let mut streams = responder();
    streams.on_stream(2 * 127, 0, false, b"x").unwrap();
    assert_eq!(streams.live(), 128);
    for i in 0..128 {
        assert_eq!(streams.poll_event(), Some(StreamEvent::Opened(StreamId(2 * i))));
    }
}

#[test]
fn a_million_tiny_gaps_are_cut_off() {
    let upwards = |i: u64| [(0, i * 2 + 1), (2, i + 1)];
    let downwards = |i: u64| [(0, WINDOW - 2 - i * 2), (2, WINDOW / 2 - 2 - i * 2)];
    let frames: [&dyn Fn(u64) -> [(u64, u64); 2]; 2] = [&upwards, &downwards];
    for frames in frames {
        let mut streams = responder();
        let mut refused = 0;
        for (id, offset) in (0..1 << 17).flat_map(frames) {
            streams.on_stream(id, offset, false, b"x").unwrap();
            refused += u64::from(streams.take_refused());
            assert!(streams.own.ranges <= RANGES_MAX);
        }
        assert!(refused > 1 << 16, "{refused}");
        // A sender that fills gaps is never refused and delivers everything.
        for id in [0, 2] {
            for offset in 0..WINDOW / 2 {
                streams.on_stream(id, offset, false, b"y").unwrap();
                assert!(!streams.take_refused());
            }
        }
    }
}

#[test]
fn gaps_are_forgotten_with_their_stream() {
    let mut streams = responder();
    for round in 0..20u64 {
        let id = StreamId(round * 2);
        for i in 0..RANGES_MAX as u64 {
            streams.on_stream(id.0, i * 2 + 1, false, b"x").unwrap();
            assert!(!streams.take_refused());
        }
        if round % 2 == 0 {
            streams.on_reset_stream(id.0, 0, 40_000).unwrap();
        } else {
            streams.stop(id, 0).unwrap();
        }
    }
}

#[test]
fn bytes_for_a_forgotten_stream_are_ignored() {
    let mut pair = Pair::calm();
    let id = pair.deliver(10);
    pair.b.streams.finish(id).unwrap();
    assert!(pair.b.read(Time::ZERO, id, &mut 0).unwrap());
    pair.settle();
    assert_eq!(pair.b.streams.live(), 0);
    pair.b.streams.on_stream(id.0, 0, false, b"0123456789").unwrap();
    pair.b.streams.on_reset_stream(id.0, 0, 10).unwrap();
    pair.b.streams.on_stop_sending(id.0, 0).unwrap();
    pair.b.streams.on_max_stream_data(id.0, 1 << 40).unwrap();
    assert!(!pair.b.streams.has_pending());
    assert_eq!(pair.b.streams.write(id, bytes::Bytes::new()), Err(StreamError::Closed));
}

#[test]
fn one_byte_here_and_there_holds_no_more_blocks_than_the_windows_allow() {
    let pool = BlockPool::new(1024);
    let config = StreamConfig::default();
    let mut streams = Streams::new(Role::Responder, &config, pool.clone());
    streams.set_peer_limits(1 << 20, 1 << 20, 10);
    for id in (0..256).step_by(2) {
        for at in 0..4u64 {
            let _ = streams.on_stream(id, at * BLOCK_BYTES as u64 + 1, false, b"x");
        }
    }
    drop(streams);
    let blocks = config.connection_window / BLOCK_BYTES as u64 + config.streams_max;
    assert!(pool.idle() as u64 <= blocks, "{} blocks", pool.idle());
}

#[test]
fn random_frames_never_panic() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let mut streams = responder();
        let mut in_flight: Vec<SentFrame> = Vec::new();
        for step in 0..400 {
            let id = rng.below(12);
            let near = rng.percent(90);
            let offset = rng.below(if near { 3000 } else { 2 << 20 });
            let data = vec![1; rng.below(2000) as usize];
            let done = match rng.below(17) {
                0..=3 => streams.on_stream(id, offset, rng.percent(5), &data),
                4 => streams.on_reset_stream(id, 1, offset),
                5 => streams.on_stop_sending(id, 2),
                6 => streams.on_max_data(offset * 100),
                7 => streams.on_max_stream_data(id, offset * 10),
                8 => streams.on_max_streams(rng.below(40)),
                14 => {
                    streams.on_data_blocked(offset);
                    Ok(())
                }
                15 => streams.on_stream_data_blocked(id, offset),
                16 => {
                    streams.announce_blocked();
                    streams.on_streams_blocked(rng.below(40))
                }
                9 => {
                    let now = Time::ZERO + Duration::from_millis(step);
                    let _ = streams.read(now, RTT, StreamId(id));
                    Ok(())
                }
                10 => {
                    let _ = match rng.below(5) {
                        0 => streams.finish(StreamId(id)),
                        1 => streams.reset(StreamId(id), 3),
                        2 => streams.stop(StreamId(id), 4),
                        _ => streams.write(StreamId(id), data.into()),
                    };
                    streams.open();
                    Ok(())
                }
                11 => {
                    let mut buf = vec![0; 20 + rng.below(1400) as usize];
                    let mut sent = SentFrames::new();
                    let pending = streams.has_pending();
                    let mut out = FrameWriter::new(&mut buf);
                    streams.write_frames(&mut out, &mut sent);
                    assert!(pending || sent.is_empty());
                    in_flight.extend(sent);
                    Ok(())
                }
                _ if !in_flight.is_empty() => {
                    let i = rng.below(in_flight.len() as u64) as usize;
                    let frame = in_flight.swap_remove(i);
                    match rng.percent(50) {
                        true => streams.on_acked(&frame),
                        false => streams.on_lost(&frame),
                    }
                    Ok(())
                }
                _ => Ok(()),
            };
            if done.is_err() {
                break;
            }
            while streams.poll_event().is_some() {}
        }
    }
}
