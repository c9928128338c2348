//! Round trips of all frames, and tests of malformed input.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;

use proptest::prelude::*;

use super::*;
use crate::varint;

/// A frame that owns its content.
#[derive(Clone, Debug)]
enum Owned {
    Padding(usize),
    Ping,
    Ack { delay_us: u64, ranges: Vec<RangeInclusive<u64>>, ecn: Option<EcnCounts> },
    ResetStream(u64, u64, u64),
    StopSending(u64, u64),
    Stream { id: u64, offset: u64, fin: bool, data: Vec<u8> },
    MaxData(u64),
    MaxStreamData(u64, u64),
    MaxStreams(u64),
    DataBlocked(u64),
    StreamDataBlocked(u64, u64),
    StreamsBlocked(u64),
    Datagram(Vec<u8>),
    PathChallenge([u8; 8]),
    PathResponse([u8; 8]),
    Candidates(u64, Vec<SocketAddr>),
    ObservedAddress(SocketAddr),
    AckFrequency(u64, u64, u64),
    ImmediateAck,
    Ratchet(u64, u8, Vec<u8>),
    Close(u64, String),
}

impl Owned {
    fn write(&self, out: &mut FrameWriter<'_>) -> bool {
        match self {
            Self::Padding(n) => out.padding(*n),
            Self::Ping => out.ping(),
            Self::Ack { delay_us, ranges, ecn } => out.ack(*delay_us, ranges.iter().cloned(), *ecn),
            Self::ResetStream(id, code, size) => out.reset_stream(*id, *code, *size),
            Self::StopSending(id, code) => out.stop_sending(*id, *code),
            Self::Stream { id, offset, fin, data } => {
                let copied = out.stream(*id, *offset, data.len(), *fin, |b| {
                    b.copy_from_slice(&data[..b.len()])
                });
                copied == Some(data.len())
            }
            Self::MaxData(n) => out.max_data(*n),
            Self::MaxStreamData(id, n) => out.max_stream_data(*id, *n),
            Self::MaxStreams(n) => out.max_streams(*n),
            Self::DataBlocked(n) => out.data_blocked(*n),
            Self::StreamDataBlocked(id, n) => out.stream_data_blocked(*id, *n),
            Self::StreamsBlocked(n) => out.streams_blocked(*n),
            Self::Datagram(data) => out.datagram(data),
            Self::PathChallenge(bytes) => out.path_challenge(*bytes),
            Self::PathResponse(bytes) => out.path_response(*bytes),
            Self::Candidates(sequence, addresses) => out.candidates(*sequence, addresses),
            Self::ObservedAddress(address) => out.observed_address(*address),
            Self::AckFrequency(a, b, c) => out.ack_frequency(*a, *b, *c),
            Self::ImmediateAck => out.immediate_ack(),
            Self::Ratchet(number, part, bytes) => out.ratchet(*number, *part, bytes),
            Self::Close(code, reason) => out.close(*code, reason),
        }
    }

    fn is(&self, frame: &Frame<'_>) -> bool {
        match (self, frame) {
            (Self::Ack { delay_us, ranges, ecn }, Frame::Ack(ack)) => {
                ack.delay_us == *delay_us
                    && ack.ecn == *ecn
                    && ack.largest == *ranges[0].end()
                    && ack.ranges().eq(ranges.iter().cloned())
            }
            (Self::Padding(_), Frame::Padding)
            | (Self::Ping, Frame::Ping)
            | (Self::ImmediateAck, Frame::ImmediateAck) => true,
            (Self::ResetStream(a, b, c), Frame::ResetStream { id, code, final_size }) => {
                (a, b, c) == (id, code, final_size)
            }
            (Self::StopSending(a, b), Frame::StopSending { id, code }) => (a, b) == (id, code),
            (
                Self::Stream { id, offset, fin, data },
                Frame::Stream { id: i, offset: o, fin: f, data: d },
            ) => (id, offset, fin, &data[..]) == (i, o, f, d),
            (Self::MaxData(a), Frame::MaxData(b)) => a == b,
            (Self::MaxStreamData(a, b), Frame::MaxStreamData { id, maximum }) => {
                (a, b) == (id, maximum)
            }
            (Self::MaxStreams(a), Frame::MaxStreams(b))
            | (Self::DataBlocked(a), Frame::DataBlocked(b))
            | (Self::StreamsBlocked(a), Frame::StreamsBlocked(b)) => a == b,
            (Self::StreamDataBlocked(a, b), Frame::StreamDataBlocked { id, maximum }) => {
                (a, b) == (id, maximum)
            }
            (Self::Datagram(a), Frame::Datagram(b)) => &a[..] == *b,
            (Self::PathChallenge(a), Frame::PathChallenge(b)) => a == b,
            (Self::PathResponse(a), Frame::PathResponse(b)) => a == b,
            (Self::Candidates(a, b), Frame::Candidates(frame)) => {
                *a == frame.sequence && frame.addresses().eq(b.iter().copied())
            }
            (Self::ObservedAddress(a), Frame::ObservedAddress(b)) => a == b,
            (
                Self::AckFrequency(a, b, c),
                Frame::AckFrequency { sequence, packets, max_delay_us },
            ) => (a, b, c) == (sequence, packets, max_delay_us),
            (Self::Ratchet(a, b, c), Frame::Ratchet { number, part, bytes }) => {
                (a, b, &c[..]) == (number, part, bytes)
            }
            (Self::Close(a, b), Frame::Close { code, reason }) => a == code && b == reason,
            _ => false,
        }
    }
}

fn number() -> impl Strategy<Value = u64> + Clone {
    (0u32..62, 0..=varint::MAX).prop_map(|(shift, noise)| noise >> shift)
}

fn ranges() -> impl Strategy<Value = Vec<RangeInclusive<u64>>> {
    let pair = (0u64..5000, 0u64..5000);
    (prop::collection::vec(pair, 1..40), 0u64..1 << 40).prop_map(|(pairs, base)| {
        let mut next = base;
        let mut ranges = Vec::new();
        for (gap, len) in pairs {
            let start = next + gap;
            ranges.push(start..=start + len);
            next = start + len + 2;
        }
        ranges.reverse();
        ranges
    })
}

fn frame() -> impl Strategy<Value = Owned> {
    let bytes = |max| prop::collection::vec(any::<u8>(), 0..max);
    let ecn =
        prop::option::of((number(), number(), number()).prop_map(|(ect0, ect1, ce)| EcnCounts {
            ect0,
            ect1,
            ce,
        }));
    prop_oneof![
        (1usize..40).prop_map(Owned::Padding),
        Just(Owned::Ping),
        (number(), ranges(), ecn).prop_map(|(delay_us, ranges, ecn)| Owned::Ack {
            delay_us,
            ranges,
            ecn
        }),
        (number(), number(), number()).prop_map(|(a, b, c)| Owned::ResetStream(a, b, c)),
        (number(), number()).prop_map(|(a, b)| Owned::StopSending(a, b)),
        (number(), 0..=varint::MAX - 2000, any::<bool>(), bytes(1500))
            .prop_map(|(id, offset, fin, data)| Owned::Stream { id, offset, fin, data }),
        number().prop_map(Owned::MaxData),
        (number(), number()).prop_map(|(a, b)| Owned::MaxStreamData(a, b)),
        number().prop_map(Owned::MaxStreams),
        number().prop_map(Owned::DataBlocked),
        (number(), number()).prop_map(|(a, b)| Owned::StreamDataBlocked(a, b)),
        number().prop_map(Owned::StreamsBlocked),
        bytes(200).prop_map(Owned::Datagram),
        any::<[u8; 8]>().prop_map(Owned::PathChallenge),
        any::<[u8; 8]>().prop_map(Owned::PathResponse),
        (number(), prop::collection::vec((any::<IpAddr>(), any::<u16>()), 0..=16)).prop_map(
            |(sequence, addresses)| {
                Owned::Candidates(sequence, addresses.into_iter().map(SocketAddr::from).collect())
            }
        ),
        (any::<IpAddr>(), any::<u16>())
            .prop_map(|(ip, port)| Owned::ObservedAddress(SocketAddr::new(ip, port))),
        (number(), number(), number()).prop_map(|(a, b, c)| Owned::AckFrequency(a, b, c)),
        Just(Owned::ImmediateAck),
        (number(), any::<u8>(), bytes(700)).prop_map(|(a, b, c)| Owned::Ratchet(a, b, c)),
        (number(), "\\PC{0,60}").prop_map(|(code, reason)| Owned::Close(code, reason)),
    ]
}

/// Merges adjacent PADDING frames, which are read as one.
fn without_repeated_padding(frames: Vec<Owned>) -> Vec<Owned> {
    let mut kept: Vec<Owned> = Vec::new();
    for frame in frames {
        let both = matches!((kept.last(), &frame), (Some(Owned::Padding(_)), Owned::Padding(_)));
        if !both {
            kept.push(frame);
        }
    }
    kept
}

proptest! {
    #[test]
    fn every_frame_is_read_as_it_was_written(frames in prop::collection::vec(frame(), 1..12)) {
        let frames = without_repeated_padding(frames);
        let mut buf = vec![0xaa; 40_000];
        let mut out = FrameWriter::new(&mut buf);
        for frame in &frames {
            prop_assert!(frame.write(&mut out));
        }
        let len = out.len();
        let read: Result<Vec<_>, _> = Frames::new(&buf[..len]).collect();
        let read = read.unwrap();
        prop_assert_eq!(read.len(), frames.len());
        for (owned, frame) in frames.iter().zip(&read) {
            prop_assert!(owned.is(frame), "{:?} was read as {:?}", owned, frame);
        }
    }

    #[test]
    fn a_frame_that_does_not_fit_leaves_nothing_behind(frame in frame(), room in 0usize..1600) {
        let mut buf = vec![0xaa; room];
        let mut out = FrameWriter::new(&mut buf);
        let written = frame.write(&mut out);
        let len = out.len();
        prop_assert!(len <= room);
        if !written && !matches!(frame, Owned::Stream { .. }) {
            prop_assert_eq!(len, 0);
        }
        if len > 0 {
            prop_assert!(Frames::new(&buf[..len]).all(|frame| frame.is_ok()));
        }
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        for frame in Frames::new(&bytes).flatten() {
            if let Frame::Ack(ack) = frame {
                prop_assert!(ack.ranges().count() as u64 <= ACK_RANGES_MAX);
            }
        }
    }

    #[test]
    fn damaged_frames_are_read_without_a_panic(
        frame in frame(), at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<prop::sample::Index>(),
    ) {
        let mut buf = vec![0; 4000];
        let mut out = FrameWriter::new(&mut buf);
        prop_assert!(frame.write(&mut out));
        let len = out.len();
        let buf = &mut buf[..len];
        buf[at.index(len)] = byte;
        for frame in Frames::new(&buf[..cut.index(len)]).flatten() {
            if let Frame::Ack(ack) = frame {
                ack.ranges().for_each(drop);
            }
        }
    }

    #[test]
    fn an_ack_that_does_not_fit_keeps_its_highest_ranges(ranges in ranges(), room in 0usize..200) {
        let mut buf = vec![0; room];
        let mut out = FrameWriter::new(&mut buf);
        if out.ack(1, ranges.iter().cloned(), None) {
            let len = out.len();
            let Some(Ok(Frame::Ack(ack))) = Frames::new(&buf[..len]).next() else { panic!("no ACK") };
            let read: Vec<_> = ack.ranges().collect();
            prop_assert_eq!(&read[..], &ranges[..read.len()]);
            prop_assert!(read.len() == ranges.len() || len + 18 > room);
        }
    }
}

#[test]
fn an_empty_packet_is_malformed() {
    assert_eq!(Frames::new(&[]).collect::<Vec<_>>(), vec![Err(Malformed("empty packet"))]);
}

#[test]
fn reading_stops_at_the_first_error() {
    let frames: Vec<_> = Frames::new(&[kind::PING, 0x22, kind::PING]).collect();
    assert_eq!(frames, vec![Ok(Frame::Ping), Err(Malformed("unknown frame type"))]);
}

#[test]
fn an_ack_below_zero_is_malformed() {
    for body in [&[2, 3, 0, 0, 4][..], &[2, 9, 0, 1, 0, 8, 0], &[2, 9, 0, 1, 0, 0, 8]] {
        assert_eq!(
            Frames::new(body).next(),
            Some(Err(Malformed("ACK range below packet number 0")))
        );
    }
    // 9 and 0..=7.
    let Some(Ok(Frame::Ack(ack))) = Frames::new(&[2, 9, 0, 1, 0, 0, 7]).next() else { panic!() };
    assert_eq!(ack.ranges().collect::<Vec<_>>(), vec![9..=9, 0..=7]);
}

#[test]
fn a_stream_frame_at_the_end_of_the_packet_has_no_length() {
    for available in 0..120usize {
        let mut buf = [0xaa; 100];
        let mut out = FrameWriter::new(&mut buf);
        let n = out.stream(4, 1000, available, true, |b| b.fill(7)).unwrap();
        let len = out.len();
        assert_eq!(n, available.min(96), "1 + 1 + 2 bytes of header");
        assert!(available < 94 || len == 100, "a packet that can be filled is filled");
        let frames: Vec<_> = Frames::new(&buf[..len]).map(Result::unwrap).collect();
        let data = &[7; 120][..n];
        let fin = available <= 96;
        assert_eq!(frames.last(), Some(&Frame::Stream { id: 4, offset: 1000, fin, data }));
    }
}

#[test]
fn a_useless_fragment_of_a_stream_is_not_written() {
    let mut buf = [0; 20];
    let mut out = FrameWriter::new(&mut buf);
    assert_eq!(out.stream(0, 0, 1000, false, |_| {}), None);
    assert!(out.is_empty());
    assert_eq!(out.stream(0, 0, 10, false, |_| {}), Some(10));
}

#[test]
fn a_reason_is_cut_at_a_character() {
    let long = "é".repeat(600);
    let mut buf = [0; 600];
    let mut out = FrameWriter::new(&mut buf);
    assert!(out.close(0x100, &long));
    let len = out.len();
    let Some(Ok(Frame::Close { reason, .. })) = Frames::new(&buf[..len]).next() else { panic!() };
    assert_eq!(reason, &long[..512]);
}

#[test]
fn a_sent_frame_stays_small() {
    assert!(size_of::<SentFrame>() <= 24);
    // Four entries and the vector's own words are kept for every packet in flight.
    assert!(size_of::<SentFrames>() <= 4 * 24 + 16);
}
