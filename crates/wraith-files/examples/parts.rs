//! Measures the cost of the individual steps of a file: read, hash, write, and pairs of them that
//! share a cache.
//!
//! ```sh
//! cargo run --release -p wraith-files --example parts -- [--rounds N] [--pool MIB] FILE FOLDER
//! ```
//!
//! Reads FILE as a sender does, and writes it to FOLDER as a receiver does (journal included).
//! Chunks of 256 KiB come from a pool of MIB mebibytes, on one thread. The steps take turns in
//! every round.
//!
//! Prints processor time (user and system) in nanoseconds per byte. This time depends little on
//! other load on the machine. The step `cp` only reads and writes.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use wraith_files::*;

const KEY: [u8; 32] = [0; 32];

struct Setting {
    found: WalkEntry,
    folder: PathBuf,
    buffers: Vec<Vec<u8>>,
    cvs: Vec<Cv>,
    root: Root,
}

type Part = (&'static str, fn(&mut Setting) -> Result<()>);

const PARTS: [Part; 6] = [
    ("read", |s| s.each_chunk(true, false, None)),
    ("hash", |s| s.each_chunk(false, true, None)),
    ("read, hash (sender)", |s| s.each_chunk(true, true, None)),
    ("write", |s| s.receive(false, false)),
    ("hash, write (receiver)", |s| s.receive(false, true)),
    ("read, write (cp)", |s| s.receive(true, false)),
];

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let rounds = option(&mut arguments, "--rounds")?.unwrap_or(5);
    let pool = option(&mut arguments, "--pool")?.unwrap_or(2);
    let [file, folder] = &arguments[..] else {
        return Err("usage: parts [--rounds N] [--pool MIB] FILE FOLDER".into());
    };
    let mut setting = Setting::new(file.as_ref(), folder.as_ref(), pool)?;
    let size = setting.found.entry.size() as f64;
    let mut results = vec![Vec::new(); PARTS.len()];
    for _ in 0..rounds {
        for ((_, run), results) in PARTS.iter().zip(&mut results) {
            let before = cpu_time();
            run(&mut setting)?;
            results.push((cpu_time() - before).as_nanos() as f64 / size);
        }
    }
    println!("{size} bytes, {pool} MiB of buffers, median (min–max) of {rounds}, ns per byte:");
    for ((name, _), mut results) in PARTS.iter().zip(results) {
        results.sort_by(f64::total_cmp);
        let (min, max) = (results[0], results[results.len() - 1]);
        println!("{name:24} {:.3} ({min:.3}–{max:.3})", results[results.len() / 2]);
    }
    Ok(())
}

fn option(
    arguments: &mut Vec<String>,
    name: &str,
) -> std::result::Result<Option<usize>, Box<dyn Error>> {
    let Some(at) = arguments.iter().position(|argument| argument == name) else { return Ok(None) };
    let value = arguments.get(at + 1).ok_or("an option without its value")?.parse()?;
    arguments.drain(at..at + 2);
    Ok(Some(value))
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

impl Setting {
    fn new(file: &Path, folder: &Path, pool_mib: usize) -> Result<Self> {
        let found = Walk::new(&[file])?.next().expect("a path yields an entry").expect("a file");
        let buffers = (pool_mib << 20).div_ceil(CHUNK_BYTES).max(1);
        let mut setting = Self {
            found,
            folder: folder.to_owned(),
            buffers: vec![vec![1; CHUNK_BYTES]; buffers],
            cvs: Vec::new(),
            root: [0; 32],
        };
        // Also brings the file into the page cache.
        let (source, mut root) = (setting.found.open()?, RootBuilder::new());
        for index in 0..source.chunks() {
            let len = source.read_chunk(index, &mut setting.buffers[0])?;
            let cv = Tree::Blake3.chunk_cv(index, &[&setting.buffers[0][..len]]);
            setting.cvs.push(cv);
            root.push(cv);
        }
        setting.root = root.finish(source.size()).expect("every chunk was pushed");
        Ok(setting)
    }

    /// Reads, hashes and writes each chunk, as requested.
    fn each_chunk(&mut self, read: bool, hash: bool, part: Option<&PartFile>) -> Result<()> {
        let (source, count) = (self.found.open()?, self.buffers.len());
        for index in 0..source.chunks() {
            let buffer = &mut self.buffers[index as usize % count];
            let len = chunk_len(source.size(), index);
            if read {
                source.read_chunk(index, buffer)?;
            }
            let bytes = &buffer[..len];
            if hash {
                std::hint::black_box(Tree::Blake3.chunk_cv(index, &[bytes]));
            }
            if let Some(part) = part {
                part.write_chunk(index, &[bytes], self.cvs[index as usize])?;
            }
        }
        Ok(())
    }

    /// Writes all chunks to a new file. If they were also read, the content is the same and the
    /// file is finished; otherwise it is discarded.
    fn receive(&mut self, read: bool, hash: bool) -> Result<()> {
        let target = TargetDir::open(&self.folder)?;
        let part = target.open_or_resume(&self.found.entry, &KEY)?;
        self.each_chunk(read, hash, Some(&part))?;
        if !read {
            return part.discard();
        }
        let commit_options = CommitOptions { on_conflict: OnConflict::Overwrite, sync: false };
        part.finish(&self.root, commit_options).map(drop)
    }
}
