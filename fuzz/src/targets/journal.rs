//! The journal of a part file after damage by another program or by the disk. Invariant: only
//! chunks that were written are treated as present.

use std::cell::RefCell;
use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;
use wraith_files::{CHUNK_BYTES, Entry, Kind, Mtime, PartFile, RelPath, TargetDir, Tree};

use crate::input::Input;

/// Chunks of the file; all but the last have full length.
const CHUNKS: u64 = 5;
/// Chunks that were received.
const WRITTEN: [u64; 3] = [0, 1, 3];
const KEY: [u8; 32] = [6; 32];

pub(crate) fn run(input: &[u8]) {
    thread_local!(static FOLDER: RefCell<Folder> = RefCell::new(Folder::new()));
    FOLDER.with_borrow_mut(|folder| folder.resume_with(&mut Input(input)));
}

struct Folder {
    target: TargetDir,
    entry: Entry,
    journal: PathBuf,
    /// The journal before any damage.
    genuine: Vec<u8>,
    /// Holds the folder until the end.
    _dir: TempDir,
}

impl Folder {
    fn new() -> Self {
        let dir = TempDir::new().expect("a temporary folder");
        let target = TargetDir::open(dir.path()).expect("it exists");
        let entry = Entry {
            path: RelPath::parse(b"file").expect("a safe name"),
            kind: Kind::File { size: (CHUNKS - 1) * CHUNK_BYTES as u64 + 100, sparse: None },
            mode: 0o600,
            mtime: Mtime::default(),
        };
        let journal = dir.path().join(".file.wraith-journal");
        let mut folder = Self { target, entry, journal, genuine: Vec::new(), _dir: dir };
        folder.receive();
        folder
    }

    /// Receives [`WRITTEN`] and stops as if killed.
    fn receive(&mut self) {
        let part = self.target.open_or_resume(&self.entry, &KEY).expect("it can be made");
        for index in WRITTEN {
            let chunk = vec![index as u8; CHUNK_BYTES];
            part.write_chunk(index, &[&chunk], Tree::Blake3.chunk_cv(index, &[&chunk]))
                .expect("it is written");
        }
        drop(part);
        self.genuine = fs::read(&self.journal).expect("the journal is where it should be");
    }

    fn resume_with(&mut self, input: &mut Input<'_>) {
        let damaged = damage(input, &self.genuine);
        fs::write(&self.journal, &damaged).expect("the same file with other bytes");
        let resumed = self.target.resume(&self.entry, &KEY).expect("the disk works");
        let intact = resumed.is_some_and(only_what_was_written);
        if damaged == self.genuine {
            assert!(intact, "an undamaged journal counts");
        }
        // A journal in which nothing counted was removed already.
        let _ = fs::remove_file(&self.journal);
        let _ = fs::remove_file(self.journal.with_file_name(".file.wraith-part"));
        self.receive();
    }
}

/// Returns whether all written chunks count; panics if others do.
fn only_what_was_written(mut part: PartFile) -> bool {
    if part.needs_recheck() {
        part.recheck(|_| true).expect("the disk works");
    }
    let have: Vec<u64> = part.have().iter().flatten().collect();
    assert!(have.iter().all(|chunk| WRITTEN.contains(chunk)), "{have:?}");
    have == WRITTEN
}

/// Applies up to 8 changes.
fn damage(input: &mut Input<'_>, genuine: &[u8]) -> Vec<u8> {
    let mut bytes = genuine.to_vec();
    for _ in 0..8 {
        if input.is_empty() || bytes.is_empty() {
            break;
        }
        let (kind, at) = (input.byte(), usize::from(input.u16()) % bytes.len());
        match kind % 5 {
            0 => bytes[at] ^= input.byte(),
            1 => bytes.truncate(at),
            2 => bytes.extend_from_slice(input.bytes(64)),
            3 => bytes.extend_from_within(at..),
            _ => {
                let with = input.bytes(48);
                let end = (at + with.len()).min(bytes.len());
                bytes[at..end].copy_from_slice(&with[..end - at]);
            }
        }
    }
    bytes
}
