//! The data of a race: one big file, or a tree of small ones. The bytes are the same in each race,
//! and incompressible.

use std::fs::{self, File};
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

/// Mean size of a small file: 20,000 of them are 245 MB, like a checked-out source tree.
const SMALL_FILE_MEAN_BYTES: f64 = 12_250.0;
const FILES_IN_A_FOLDER: u32 = 10;
const FOLDERS_IN_A_FOLDER: u32 = 20;
const BUFFER_BYTES: usize = 1 << 20;

/// Files below one folder.
#[derive(Debug)]
pub struct DataSet {
    pub name: &'static str,
    /// Contains `source` and nothing else.
    pub folder: PathBuf,
    /// The file or folder that is copied.
    pub source: PathBuf,
    pub bytes: u64,
    pub files: u64,
}

impl DataSet {
    /// One file of exactly `size` bytes.
    pub fn one_file(folder: &Path, size: u64) -> Result<Self> {
        fs::create_dir_all(folder)?;
        let source = folder.join("big.bin");
        write_random(&source, size, &mut Random(1))?;
        Ok(Self { name: "one file", folder: folder.into(), source, bytes: size, files: 1 })
    }

    /// `files` files of 0–36 KB (mean 12 KB, more small than large ones) in nested folders.
    pub fn small_files(folder: &Path, files: u32) -> Result<Self> {
        let source = folder.join("tree");
        let (mut random, mut bytes) = (Random(2), 0);
        for n in 0..files {
            let inner = n / FILES_IN_A_FOLDER;
            let outer = inner / FOLDERS_IN_A_FOLDER;
            let parent = source.join(format!("folder-{outer:03}/part-{inner:05}"));
            if n % FILES_IN_A_FOLDER == 0 {
                fs::create_dir_all(&parent)?;
            }
            // The square of a uniform number has mean 1/3.
            let size = (random.fraction().powi(2) * 3.0 * SMALL_FILE_MEAN_BYTES) as u64;
            write_random(&parent.join(format!("file-{n:05}.dat")), size, &mut random)?;
            bytes += size;
        }
        let files = u64::from(files);
        Ok(Self { name: "small files", folder: folder.into(), source, bytes, files })
    }

    /// Reads all files once, so that the source is in the page cache.
    pub fn warm(&self) -> Result<()> {
        self.each_file(&mut |path| {
            let mut buffer = vec![0; BUFFER_BYTES];
            let mut file = File::open(path)?;
            while file.read(&mut buffer)? > 0 {}
            Ok(())
        })
    }

    /// Compares everything below `target` with the source: the same names and the same bytes, and
    /// no other files.
    pub fn verify(&self, target: &Path) -> Result<()> {
        let mut compared = 0;
        self.each_file(&mut |path| {
            let name = path.strip_prefix(&self.folder)?;
            compared += 1;
            same_bytes(path, &target.join(name))
        })?;
        ensure!(compared == self.files, "{compared} files at the source, not {}", self.files);
        let arrived = count_files(target)?;
        ensure!(arrived == self.files, "{arrived} files arrived, not {}", self.files);
        Ok(())
    }

    fn each_file(&self, visit: &mut dyn FnMut(&Path) -> Result<()>) -> Result<()> {
        fn below(path: &Path, visit: &mut dyn FnMut(&Path) -> Result<()>) -> Result<()> {
            if !path.is_dir() {
                return visit(path);
            }
            for entry in fs::read_dir(path)? {
                below(&entry?.path(), visit)?;
            }
            Ok(())
        }
        below(&self.source, visit)
    }
}

fn count_files(path: &Path) -> Result<u64> {
    let mut count = 0;
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        count += if entry.file_type()?.is_dir() { count_files(&entry.path())? } else { 1 };
    }
    Ok(count)
}

fn same_bytes(a: &Path, b: &Path) -> Result<()> {
    let open = |p: &Path| File::open(p).with_context(|| format!("{} is missing", p.display()));
    let (mut left, mut right) = (open(a)?, open(b)?);
    let (mut mine, mut theirs) = (vec![0; BUFFER_BYTES], vec![0; BUFFER_BYTES]);
    let same_length = left.metadata()?.len() == right.metadata()?.len();
    ensure!(same_length, "{} has another length", b.display());
    loop {
        let n = left.read(&mut mine)?;
        if n == 0 {
            return Ok(());
        }
        right.read_exact(&mut theirs[..n])?;
        ensure!(mine[..n] == theirs[..n], "{} has other bytes", b.display());
    }
}

fn write_random(path: &Path, size: u64, random: &mut Random) -> Result<()> {
    let mut file = BufWriter::with_capacity(BUFFER_BYTES, File::create(path)?);
    let mut left = size;
    let mut block = [0; 4096];
    while left > 0 {
        let n = left.min(block.len() as u64) as usize;
        random.fill(&mut block);
        file.write_all(&block[..n])?;
        left -= n as u64;
    }
    Ok(file.flush()?)
}

/// SplitMix64: fast, the same on every machine, and incompressible.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn fill(&mut self, block: &mut [u8]) {
        for word in block.chunks_exact_mut(8) {
            word.copy_from_slice(&self.next().to_le_bytes());
        }
    }
}
