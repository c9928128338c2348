//! Test data of the demonstration: one big file, many small ones, and entries that tools often get
//! wrong.

use std::ffi::OsStr;
use std::fs::{self, File, FileTimes};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

/// Mean size of small files; the sizes range from 0 to twice this.
const SMALL_FILE_MEAN_BYTES: u64 = 12 << 10;
const FILES_IN_A_FOLDER: u32 = 50;
const SPARSE_FILE_BYTES: u64 = 64 << 20;
const BUFFER_BYTES: usize = 1 << 20;

/// The amount of test data.
#[derive(Clone, Copy, Debug, Default)]
pub struct DataAmount {
    pub files: u64,
    pub bytes: u64,
}

/// Returns roughly the disk space that [`make`] takes.
pub fn bytes_needed(size: u64, files: u32) -> u64 {
    // A small file takes whole blocks.
    size.saturating_add(u64::from(files) * (SMALL_FILE_MEAN_BYTES + 4096))
}

/// Makes the test data. Polls `stop` in between.
pub fn make(root: &Path, size: u64, files: u32, stop: &dyn Fn() -> bool) -> io::Result<DataAmount> {
    let mut maker = DataGenerator { noise: SplitMix64(0x5eed), made: DataAmount::default(), stop };
    fs::create_dir_all(root)?;
    maker.file(&root.join("big.bin"), size)?;
    for n in 0..files {
        let folder = root.join(format!("small/{:04}", n / FILES_IN_A_FOLDER));
        if n % FILES_IN_A_FOLDER == 0 {
            fs::create_dir_all(&folder)?;
        }
        let size = maker.noise.next() % (2 * SMALL_FILE_MEAN_BYTES);
        maker.file(&folder.join(format!("file-{n}")), size)?;
    }
    maker.curiosities(&root.join("curiosities"))?;
    Ok(maker.made)
}

struct DataGenerator<'a> {
    noise: SplitMix64,
    made: DataAmount,
    stop: &'a dyn Fn() -> bool,
}

impl DataGenerator<'_> {
    fn file(&mut self, path: &Path, size: u64) -> io::Result<()> {
        let mut file = File::create(path)?;
        let mut buffer = vec![0; BUFFER_BYTES.min(size as usize)];
        let mut left = size;
        while left > 0 {
            if (self.stop)() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let n = left.min(buffer.len() as u64) as usize;
            self.noise.fill(&mut buffer[..n]);
            file.write_all(&buffer[..n])?;
            left -= n as u64;
        }
        self.made.files += 1;
        self.made.bytes += size;
        Ok(())
    }

    /// Makes special cases: empty files and folders, holes, links, modes, times, names.
    fn curiosities(&mut self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder.join("empty folder"))?;
        self.file(&folder.join("empty file"), 0)?;
        self.file(&folder.join(OsStr::from_bytes(b"not utf-8 \xff")), 100)?;
        self.file(&folder.join("program"), 1000)?;
        fs::set_permissions(folder.join("program"), PermissionsExt::from_mode(0o755))?;
        symlink("program", folder.join("link"))?;
        symlink("nowhere", folder.join("dangling link"))?;
        let old = UNIX_EPOCH + Duration::new(1_000_000_000, 123_456_789);
        File::open(folder.join("program"))?.set_times(FileTimes::new().set_modified(old))?;
        let holes = File::create(folder.join("holes"))?;
        holes.set_len(SPARSE_FILE_BYTES)?;
        holes.write_all_at(b"not only holes", SPARSE_FILE_BYTES / 2)?;
        // Its holes move no bytes, so they do not count.
        self.made.files += 1;
        Ok(())
    }
}

/// SplitMix64: incompressible bytes, generated faster than a disk writes.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn fill(&mut self, bytes: &mut [u8]) {
        for piece in bytes.chunks_mut(8) {
            piece.copy_from_slice(&self.next().to_le_bytes()[..piece.len()]);
        }
    }
}
