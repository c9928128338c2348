//! Files in the page cache: reading, hashing, verification, reassembly.

use std::hint::black_box;

use criterion::{BatchSize, BenchmarkId, SamplingMode, Throughput};
use wraith_files::{
    CHUNK_BYTES, CommitOptions, Cv, Entry, Kind, Mtime, PartFile, RelPath, RootBuilder, SourceFile,
    TargetDir, Tree, Walk, chunk_count, small_root,
};

use crate::Criterion;
use crate::content::content;

const SIZES: [usize; 3] = [1_000_000, 10_000_000, 100_000_000];
/// Size of the reassembled file.
const REASSEMBLED: usize = 64 * CHUNK_BYTES;

pub(crate) fn rows(criterion: &mut Criterion) {
    hash(criterion);
    from_memory(criterion);
    from_disk(criterion);
    compose(criterion);
    verify(criterion);
    reassemble(criterion);
}

fn hash(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("hash");
    for size in [32, 256, 1024, 4096, 65536] {
        let bytes = content(size);
        group.throughput(Throughput::Bytes(size as u64));
        group.bench_function(BenchmarkId::from_parameter(size), |b| {
            b.iter(|| small_root(black_box(&bytes)));
        });
    }
    group.finish();
}

/// Computes the root of a file in memory by chunks, as a transfer does.
fn root_of(bytes: &[u8]) -> [u8; 32] {
    let mut root = RootBuilder::new();
    for (index, chunk) in bytes.chunks(CHUNK_BYTES).enumerate() {
        root.push(Tree::Blake3.chunk_cv(index as u64, &[chunk]));
    }
    root.finish(bytes.len() as u64).expect("all chunks are there")
}

fn from_memory(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("root_from_memory");
    // Otherwise later samples repeat more often, which takes long.
    group.sampling_mode(SamplingMode::Flat);
    for size in SIZES {
        let bytes = content(size);
        assert_eq!(root_of(&bytes), small_root(&bytes), "chunks make the same root");
        group.throughput(Throughput::Bytes(size as u64));
        group.bench_function(BenchmarkId::from_parameter(size), |b| {
            b.iter(|| root_of(black_box(&bytes)));
        });
    }
    group.finish();
}

/// Reads each chunk, and calls `each` with it.
fn read(source: &SourceFile, buffer: &mut [u8], mut each: impl FnMut(u64, &[u8])) {
    for index in 0..source.chunks() {
        let len = source.read_chunk(index, buffer).expect("it can be read");
        each(index, &buffer[..len]);
    }
}

fn from_disk(criterion: &mut Criterion) {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut sources = Vec::new();
    for size in SIZES {
        let (path, bytes) = (dir.path().join(size.to_string()), content(size));
        std::fs::write(&path, &bytes).expect("it can be written");
        let mut walk = Walk::new(&[path]).expect("it exists");
        let source = walk.next().expect("one file").expect("readable").open().expect("readable");
        let start = |index: u64| index as usize * CHUNK_BYTES;
        read(&source, &mut buffer, |index, chunk| {
            assert_eq!(*chunk, bytes[start(index)..][..chunk.len()]);
        });
        sources.push((size, source, small_root(&bytes)));
    }
    let mut group = criterion.benchmark_group("read_chunks");
    // Otherwise later samples repeat more often, which takes long.
    group.sampling_mode(SamplingMode::Flat);
    for (size, source, _) in &sources {
        group.throughput(Throughput::Bytes(*size as u64));
        group.bench_function(BenchmarkId::from_parameter(size), |b| {
            b.iter(|| read(source, &mut buffer, |_, chunk| _ = black_box(chunk)));
        });
    }
    group.finish();
    let mut group = criterion.benchmark_group("root_from_disk");
    // Otherwise later samples repeat more often, which takes long.
    group.sampling_mode(SamplingMode::Flat);
    for (size, source, expected) in &sources {
        group.throughput(Throughput::Bytes(*size as u64));
        group.bench_function(BenchmarkId::from_parameter(size), |b| {
            b.iter(|| {
                let mut root = RootBuilder::new();
                read(source, &mut buffer, |index, chunk| {
                    root.push(Tree::Blake3.chunk_cv(index, &[chunk]))
                });
                assert_eq!(root.finish(source.size()), Some(*expected));
            });
        });
    }
    group.finish();
}

fn compose(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("root_of_chunks");
    for count in [4, 16, 64, 256, 1024, 4096] {
        let cvs: Vec<Cv> = (0..count).map(|i: u64| [i as u8; 32]).collect();
        group.throughput(Throughput::Elements(count));
        group.bench_function(BenchmarkId::from_parameter(count), |b| {
            b.iter(|| {
                let mut root = RootBuilder::new();
                black_box(&cvs).iter().for_each(|cv| root.push(*cv));
                root.finish(count * CHUNK_BYTES as u64).expect("all chunks are there")
            });
        });
    }
    group.finish();
}

/// Hashes and compares a chunk that spans two received blocks.
fn verify(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("verify_chunk");
    let chunk = content(CHUNK_BYTES);
    let expected = Tree::Blake3.chunk_cv(5, &[&chunk]);
    let (a, b) = chunk.split_at(100_000);
    group.throughput(Throughput::Bytes(CHUNK_BYTES as u64));
    group.bench_function(BenchmarkId::from_parameter(CHUNK_BYTES), |bencher| {
        bencher
            .iter(|| assert_eq!(Tree::Blake3.chunk_cv(5, &[black_box(a), black_box(b)]), expected));
    });
    group.finish();
}

/// Reassembles a file of 16 MiB from verified chunks: each is written in two pieces and recorded in
/// the journal.
fn reassemble(criterion: &mut Criterion) {
    let bytes = content(REASSEMBLED);
    let chunks: Vec<&[u8]> = bytes.chunks(CHUNK_BYTES).collect();
    let cvs: Vec<Cv> =
        (0..).zip(&chunks).map(|(index, chunk)| Tree::Blake3.chunk_cv(index, &[chunk])).collect();
    let dir = tempfile::tempdir().expect("a temporary folder");
    let target = TargetDir::open(dir.path()).expect("it exists");
    let entry = Entry {
        path: RelPath::parse(b"file").expect("a safe name"),
        kind: Kind::File { size: bytes.len() as u64, sparse: None },
        mode: 0o600,
        mtime: Mtime::default(),
    };
    assert_eq!(chunk_count(entry.size()), chunks.len() as u64);
    let put = |part: &mut PartFile| {
        for (index, (chunk, cv)) in chunks.iter().zip(&cvs).enumerate() {
            let (a, b) = chunk.split_at(100_000);
            part.write_chunk(index as u64, &[a, b], *cv).expect("written");
        }
        part.discard().expect("it can be removed");
    };
    let begin = || target.open_or_resume(&entry, &[1; 32]).expect("nothing is there");
    let part = begin();
    for (index, (chunk, cv)) in chunks.iter().zip(&cvs).enumerate() {
        part.write_chunk(index as u64, &[chunk], *cv).expect("written");
    }
    part.finish(&small_root(&bytes), CommitOptions::default()).expect("the root is right");
    assert_eq!(std::fs::read(dir.path().join("file")).expect("it is there"), bytes);

    let mut group = criterion.benchmark_group("reassemble");
    group.throughput(Throughput::Bytes(bytes.len() as u64));
    group.sampling_mode(SamplingMode::Flat).sample_size(10);
    group.bench_function(BenchmarkId::from_parameter(bytes.len()), |b| {
        b.iter_batched_ref(begin, put, BatchSize::PerIteration);
    });
    group.finish();
}
