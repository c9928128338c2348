//! Packet protection: AEAD, packet number and header masks, replay window.

use std::hint::black_box;

use criterion::{BatchSize, BenchmarkId, Throughput};
use wraith_core::frame::{Frame, FrameWriter, Frames};
use wraith_noise::{
    DirectionKeys, HEADER_BYTES, Opener, PACKET_OVERHEAD, ReplayWindow, Sealer, Suite,
};

use crate::Criterion;
use crate::content::content;

const SUITES: [(&str, Suite); 2] = [("aes", Suite::Aes256Gcm), ("chacha", Suite::ChaCha20Poly1305)];
const TAG_BYTES: usize = PACKET_OVERHEAD - HEADER_BYTES;

/// Both ends of one direction, which change their key long before its limit.
struct Direction {
    sealer: Sealer,
    opener: Opener,
    pn: u64,
}

impl Direction {
    fn new(suite: Suite) -> Self {
        let keys =
            DirectionKeys { secret: [1; 32], pn_mask: [2; 32], cid: [3; 8], cid_mask: [4; 32] };
        Self { sealer: Sealer::new(suite, &keys), opener: Opener::new(suite, &keys), pn: 0 }
    }

    fn seal(&mut self, packet: &mut [u8]) {
        if self.sealer.packets_in_phase() >= wraith_noise::REKEY_PACKETS {
            self.sealer.advance_phase();
        }
        self.sealer.seal(self.pn, packet);
        self.pn += 1;
    }

    fn open(&mut self, packet: &mut [u8]) -> usize {
        self.opener.open(packet).expect("authentic").payload_len
    }
}

/// Room for the header, `payload` bytes, room for the tag.
fn packet(payload: usize) -> Vec<u8> {
    let mut packet = vec![0; HEADER_BYTES];
    packet.extend(content(payload));
    packet.resize(payload + PACKET_OVERHEAD, 0);
    packet
}

pub(crate) fn rows(criterion: &mut Criterion) {
    for (name, suite) in SUITES {
        seal(criterion, name, suite);
        open(criterion, name, suite);
        both(criterion, name, suite);
        pipeline(criterion, name, suite);
    }
    replay(criterion);
}

fn seal(criterion: &mut Criterion, name: &str, suite: Suite) {
    let mut group = criterion.benchmark_group(format!("packet_seal_{name}"));
    for size in [64, 256, 1024, 4096, 16384, 65536] {
        let (mut direction, mut packet) = (Direction::new(suite), packet(size));
        group.throughput(Throughput::Bytes(size as u64));
        group.bench_function(BenchmarkId::from_parameter(size), |b| {
            b.iter(|| direction.seal(black_box(&mut packet)));
        });
    }
    group.finish();
}

fn open(criterion: &mut Criterion, name: &str, suite: Suite) {
    let mut group = criterion.benchmark_group(format!("packet_open_{name}"));
    for size in [64, 256, 1024, 4096, 16384, 65536] {
        let (mut sending, mut receiving) = (Direction::new(suite), Direction::new(suite));
        let plain = packet(size);
        let sealed = |sending: &mut Direction| {
            let mut packet = plain.clone();
            sending.seal(&mut packet);
            packet
        };
        let mut first = sealed(&mut sending);
        assert_eq!(receiving.open(&mut first), size);
        assert_eq!(first[HEADER_BYTES..][..size], plain[HEADER_BYTES..][..size]);
        group.throughput(Throughput::Bytes(size as u64));
        group.bench_function(BenchmarkId::from_parameter(size), |b| {
            let batch = BatchSize::NumIterations(64);
            b.iter_batched_ref(|| sealed(&mut sending), |packet| receiving.open(packet), batch);
        });
    }
    group.finish();
}

/// Seals and opens in sequence, in the same buffer.
fn both(criterion: &mut Criterion, name: &str, suite: Suite) {
    let mut group = criterion.benchmark_group(format!("packet_seal_open_{name}"));
    for size in [1200, 1400, 4096] {
        let (mut direction, mut packet) = (Direction::new(suite), packet(size));
        let before = packet[HEADER_BYTES..][..size].to_vec();
        group.throughput(Throughput::Bytes(size as u64));
        group.bench_function(BenchmarkId::from_parameter(size), |b| {
            b.iter(|| {
                direction.seal(black_box(&mut packet));
                direction.open(black_box(&mut packet))
            });
        });
        assert_eq!(packet[HEADER_BYTES..][..size], before, "what was sealed was opened");
    }
    group.finish();
}

/// Builds, seals, opens and parses a packet: the work of the sender and the receiver together.
/// Returns the received bytes.
fn travel<'a>(direction: &mut Direction, data: &[u8], packet: &'a mut [u8]) -> &'a [u8] {
    let end = packet.len() - TAG_BYTES;
    let mut out = FrameWriter::new(&mut packet[HEADER_BYTES..end]);
    let fill = |to: &mut [u8]| to.copy_from_slice(&data[..to.len()]);
    out.stream(4, 1 << 30, data.len(), false, fill).expect("there is room");
    direction.seal(packet);
    let len = direction.open(packet);
    match Frames::new(&packet[HEADER_BYTES..][..len]).next() {
        Some(Ok(Frame::Stream { data, .. })) => data,
        other => panic!("{other:?}"),
    }
}

fn pipeline(criterion: &mut Criterion, name: &str, suite: Suite) {
    let mut group = criterion.benchmark_group(format!("packet_pipeline_{name}"));
    let data = content(1456);
    let (mut direction, mut packet) = (Direction::new(suite), packet(1456));
    let received = travel(&mut direction, &data, &mut packet);
    assert_eq!(*received, data[..received.len()]);
    group.throughput(Throughput::Bytes(received.len() as u64));
    group.bench_function(BenchmarkId::from_parameter(1456), |b| {
        b.iter(|| travel(&mut direction, black_box(&data), black_box(&mut packet)).len());
    });
    group.finish();
}

fn replay(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("replay_window");
    group.throughput(Throughput::Elements(1));
    let (mut window, mut pn) = (ReplayWindow::new(), 0);
    group.bench_function("in_order", |b| {
        b.iter(|| {
            pn += 1;
            assert!(window.insert(black_box(pn)));
        });
    });
    group.bench_function("repeated", |b| {
        b.iter(|| assert!(!window.insert(black_box(pn))));
    });
    // Every second packet is late by a hundred.
    let (mut window, mut pn) = (ReplayWindow::new(), 1000);
    group.bench_function("reordered", |b| {
        b.iter(|| {
            pn += 1;
            let late = if pn % 2 == 0 { pn } else { pn - 100 };
            assert!(window.insert(black_box(late)));
        });
    });
    group.finish();
}
