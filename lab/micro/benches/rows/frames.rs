//! Writing and reading frames, without cryptography.

use std::hint::black_box;

use criterion::{BenchmarkId, Throughput};
use wraith_core::frame::{Frame, FrameWriter, Frames};

use crate::Criterion;
use crate::content::content;

const STREAM: u64 = 4;
const OFFSET: u64 = 1 << 30;

/// Writes one STREAM frame with as much of `data` as fits, and PADDING in the remaining room.
/// Returns the length of the data.
fn write(packet: &mut [u8], data: &[u8]) -> usize {
    let mut out = FrameWriter::new(packet);
    let len = data.len();
    let written =
        out.stream(STREAM, OFFSET, len, false, |to| to.copy_from_slice(&data[..to.len()]));
    let room = out.remaining();
    out.padding(room);
    written.expect("there is room")
}

/// Reads the frame back.
fn read(packet: &[u8]) -> &[u8] {
    match Frames::new(packet).next() {
        Some(Ok(Frame::Stream { id: STREAM, offset: OFFSET, data, .. })) => data,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn rows(criterion: &mut Criterion) {
    let data = content(2048);
    let mut group = criterion.benchmark_group("frame_write");
    for size in [64, 128, 256, 512, 1024, 1456] {
        let mut packet = vec![0; size];
        let written = write(&mut packet, &data);
        assert_eq!(read(&packet), &data[..written]);
        group.throughput(Throughput::Bytes(written as u64));
        group.bench_function(BenchmarkId::from_parameter(size), |b| {
            b.iter(|| write(black_box(&mut packet), black_box(&data)));
        });
    }
    group.finish();

    let mut group = criterion.benchmark_group("frame_write_padded");
    let mut packet = vec![1; 1456];
    assert_eq!(write(&mut packet, &data[..1200]), 1200);
    assert_eq!((read(&packet), packet.last()), (&data[..1200], Some(&0)));
    group.throughput(Throughput::Bytes(1200));
    group.bench_function(BenchmarkId::from_parameter(1456), |b| {
        b.iter(|| write(black_box(&mut packet), black_box(&data[..1200])));
    });
    group.finish();

    let mut group = criterion.benchmark_group("frame_read");
    for size in [64, 128, 256, 512, 1024, 1456] {
        let mut packet = vec![0; size];
        write(&mut packet, &data);
        group.throughput(Throughput::Elements(1));
        group.bench_function(BenchmarkId::from_parameter(size), |b| {
            b.iter(|| read(black_box(&packet)).len());
        });
    }
    group.finish();

    let mut group = criterion.benchmark_group("frame_write_read");
    for size in [64, 256, 1024, 1456] {
        let mut packet = vec![0; size];
        group.throughput(Throughput::Bytes(size as u64));
        group.bench_function(BenchmarkId::from_parameter(size), |b| {
            b.iter(|| {
                write(black_box(&mut packet), black_box(&data));
                read(black_box(&packet)).len()
            });
        });
    }
    group.finish();
}
