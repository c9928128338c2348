//! Shared test helpers: content, entries, and a receiver that copies a tree without a network.

use std::path::Path;
use std::time::{Duration, Instant};

use wraith_files::*;

/// Returns unstructured bytes derived from a seed.
pub fn content(seed: u8, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    blake3::Hasher::new().update(&[seed]).finalize_xof().fill(&mut bytes);
    bytes
}

pub fn path(path: &str) -> RelPath {
    RelPath::parse(path.as_bytes()).unwrap()
}

pub const MTIME: Mtime = Mtime { s: 1_111_111_111, ns: 987_654_321 };

pub fn file(name: &str, size: usize) -> Entry {
    let kind = Kind::File { size: size as u64, sparse: None };
    Entry { path: path(name), kind, mode: 0o640, mtime: MTIME }
}

pub fn sparse_file(name: &str, size: u64) -> Entry {
    Entry { kind: Kind::File { size, sparse: Some(Tree::Blake3) }, ..file(name, 0) }
}

pub fn dir(name: &str, mode: u32) -> Entry {
    Entry { path: path(name), kind: Kind::Dir, mode, mtime: MTIME }
}

pub fn link(name: &str, target: &str) -> Entry {
    let kind = Kind::Symlink { target: target.into() };
    Entry { path: path(name), kind, mode: 0o777, mtime: MTIME }
}

/// Returns chunk `index` of `bytes`.
pub fn chunk(bytes: &[u8], index: u64) -> &[u8] {
    let start = index as usize * CHUNK_BYTES;
    &bytes[start..bytes.len().min(start + CHUNK_BYTES)]
}

/// Writes chunk `index` of `bytes` with its hash.
pub fn put(part: &PartFile, bytes: &[u8], index: u64) -> Result<()> {
    let chunk = chunk(bytes, index);
    let cv =
        if part.chunks() == 1 { small_root(chunk) } else { Tree::Blake3.chunk_cv(index, &[chunk]) };
    part.write_chunk(index, &[chunk], cv)
}

/// Repeats `attempt` until the part is no longer locked. A concurrent test that starts a program
/// has, between fork and exec, a copy of every descriptor, and so of every lock.
pub fn again<T>(attempt: impl Fn() -> Result<T>) -> Result<T> {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        match attempt() {
            Err(Error::InUse { .. }) if Instant::now() < deadline => std::thread::yield_now(),
            done => return done,
        }
    }
}

/// Returns the names in a directory, sorted and escaped.
pub fn names(dir: &Path) -> Vec<String> {
    use std::os::unix::ffi::OsStrExt;
    let items = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<String> =
        items.map(|item| shown(item.unwrap().file_name().as_bytes())).collect();
    names.sort();
    names
}

/// Reads, verifies and writes one found entry, as a transfer does.
pub fn receive(
    found: &WalkEntry,
    target: &TargetDir,
    commit_options: CommitOptions,
) -> Result<Option<Committed>> {
    let entry = &found.entry;
    match &entry.kind {
        Kind::Dir => target.make_dir(entry).map(|_| None),
        Kind::Symlink { .. } => target.make_symlink(entry, commit_options.on_conflict).map(Some),
        Kind::File { size, .. } if *size <= CHUNK_BYTES as u64 => {
            let source = found.open()?;
            let mut buffer = vec![0; *size as usize];
            source.read_chunk(0, &mut buffer)?;
            assert!(source.unchanged());
            target.write_small(entry, &[&buffer], commit_options).map(Some)
        }
        Kind::File { .. } => receive_large(found, target, commit_options).map(Some),
    }
}

fn receive_large(
    found: &WalkEntry,
    target: &TargetDir,
    commit_options: CommitOptions,
) -> Result<Committed> {
    let source = found.open()?;
    let part = target.open_or_resume(&found.entry, &[0; 32])?;
    let have = part.have();
    let tree = found.entry.tree();
    let (mut root, mut buffer) = (RootBuilder::of(tree), vec![0; CHUNK_BYTES]);
    for run in source.runs() {
        match run {
            Run::Data(range) => {
                for index in range {
                    let len = source.read_chunk(index, &mut buffer)?;
                    let cv = tree.chunk_cv(index, &[&buffer[..len]]);
                    root.push(cv);
                    if !have.contains(index) {
                        part.write_chunk(index, &[&buffer[..len / 3], &buffer[len / 3..len]], cv)?;
                    }
                }
            }
            Run::Hole(range) => {
                root.set_zeros(range.clone(), source.size());
                part.write_hole(range)?;
            }
        }
    }
    assert!(source.unchanged());
    part.finish(&root.finish(source.size()).unwrap(), commit_options)
}

/// A target folder that is removed in the end.
pub struct Stage {
    pub dir: tempfile::TempDir,
    pub target: TargetDir,
}

impl Stage {
    pub fn new() -> Self {
        let dir = tempfile::tempdir_in(".").unwrap();
        let target = TargetDir::open(dir.path()).unwrap();
        Self { dir, target }
    }

    pub fn names(&self) -> Vec<String> {
        names(self.dir.path())
    }
}
