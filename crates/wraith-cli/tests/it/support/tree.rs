//! Trees of files to send, and the comparison of the result: names, kinds, bytes, modes, times,
//! links, holes.

use std::ffi::OsStr;
use std::fs::{self, File, FileTimes};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

pub use super::noise::noise;

/// Writes a file of noise, and makes its parent folders.
pub fn file(path: &Path, seed: u64, len: usize) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, noise(seed, len)).unwrap();
}

/// Writes `count` files of noise of `len` bytes each. `name` makes the names from their numbers.
pub fn files(root: &Path, count: u64, len: usize, name: impl Fn(u64) -> String) {
    (0..count).for_each(|n| file(&root.join(name(n)), n, len));
}

/// Makes a tree with every file system feature that transfers preserve.
pub fn everything(root: &Path) {
    let at = |name: &str| root.join(name);
    file(&at("empty"), 0, 0);
    for (seed, len) in
        [1, 1023, 65_535, 65_536, 65_537, 262_143, 262_144, 262_145, 524_288, 3_000_017]
            .into_iter()
            .enumerate()
    {
        file(&at(&format!("sizes/{len}")), seed as u64, len);
    }
    fs::create_dir_all(at("empty folder/with/one inside")).unwrap();
    file(&at("deep/a/b/c/d/e/f/g/h/i/j/k/leaf"), 20, 10);
    file(&at("-dash and space"), 21, 5);
    file(&at(&"n".repeat(255)), 22, 300_000);
    file(&root.join(OsStr::from_bytes(b"not utf-8 \xff\xfe")), 23, 12);
    file(&root.join(OsStr::from_bytes(b"line\nbreak and \x1b[31mcolor")), 24, 12);
    symlink("sizes/1", at("link")).unwrap();
    symlink("../nowhere", at("dangling")).unwrap();
    symlink("/etc/hostname", at("absolute")).unwrap();
    symlink("sizes", at("link to folder")).unwrap();
    sparse(&at("sparse"), 64 << 20, &[0, 32 << 20, (64 << 20) - 10]);
    for (name, mode) in
        [("program", 0o755), ("secret", 0o600), ("read only", 0o444), ("odd", 0o641)]
    {
        file(&at(&format!("modes/{name}")), 30, 100);
        set_mode(&at(&format!("modes/{name}")), mode);
    }
    for (name, seconds, nanos) in
        [("old", 0, 1), ("now", 1_700_000_000, 123_456_789), ("far", 4_000_000_000, 999_999_999)]
    {
        file(&at(&format!("times/{name}")), 31, 100);
        set_time(&at(&format!("times/{name}")), seconds, nanos);
    }
    file(&at("locked folder/inside"), 32, 100);
    set_time(&at("locked folder"), 1_600_000_000, 987_654_321);
    set_mode(&at("locked folder"), 0o555);
    set_time(&at("empty folder/with"), 1_500_000_000, 1);
}

/// Makes a sparse file of `len` bytes with a few bytes at each offset of `data`.
pub fn sparse(path: &Path, len: u64, data: &[u64]) {
    let file = File::create(path).unwrap();
    file.set_len(len).unwrap();
    for at in data {
        file.write_all_at(&noise(*at, 10), *at).unwrap();
    }
}

pub fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

/// Sets the modification time.
pub fn set_time(path: &Path, seconds: u64, nanos: u32) {
    let time = SystemTime::UNIX_EPOCH + Duration::new(seconds, nanos);
    File::open(path).unwrap().set_times(FileTimes::new().set_modified(time)).unwrap();
}

/// Asserts that two trees are equal in everything, below and including the roots.
#[track_caller]
pub fn assert_same(a: &Path, b: &Path) {
    if let Some(difference) = difference(a, b) {
        panic!("{} and {} differ: {difference}", a.display(), b.display());
    }
}

fn difference(a: &Path, b: &Path) -> Option<String> {
    let (Ok(x), Ok(y)) = (fs::symlink_metadata(a), fs::symlink_metadata(b)) else {
        return Some(format!("{} or {} is missing", a.display(), b.display()));
    };
    let say = |what: &str| Some(format!("{}: {what}", a.display()));
    if x.file_type() != y.file_type() {
        return say("another kind");
    }
    if x.is_symlink() {
        let same = fs::read_link(a).unwrap() == fs::read_link(b).unwrap();
        return if same { None } else { say("another target") };
    }
    if x.mode() & 0o7777 != y.mode() & 0o7777 {
        return say(&format!("mode {:o} and {:o}", x.mode(), y.mode()));
    }
    if (x.mtime(), x.mtime_nsec()) != (y.mtime(), y.mtime_nsec()) {
        return say(&format!(
            "times {}.{} and {}.{}",
            x.mtime(),
            x.mtime_nsec(),
            y.mtime(),
            y.mtime_nsec()
        ));
    }
    if x.is_dir() {
        let (left, right) = (names(a), names(b));
        if left != right {
            return say(&format!("holds {left:?} and {right:?}"));
        }
        return left.iter().find_map(|name| difference(&a.join(name), &b.join(name)));
    }
    if x.len() != y.len() {
        return say(&format!("{} and {} bytes", x.len(), y.len()));
    }
    // A sparse file must stay sparse, within the block size of the file system.
    let (left, right) = (x.blocks() * 512, y.blocks() * 512);
    if left < x.len() / 2 && right > left + (1 << 20) {
        return say(&format!("takes {left} and {right} bytes of disk"));
    }
    if same_bytes(a, b) { None } else { say("other bytes") }
}

/// Returns every name in a folder, sorted.
pub fn names(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<PathBuf> = entries.map(|e| e.unwrap().file_name().into()).collect();
    names.sort();
    names
}

fn same_bytes(a: &Path, b: &Path) -> bool {
    let (mut x, mut y) = (File::open(a).unwrap(), File::open(b).unwrap());
    let (mut left, mut right) = (vec![0; 1 << 20], vec![0; 1 << 20]);
    loop {
        let n = x.read(&mut left).unwrap();
        if n == 0 {
            return true;
        }
        y.read_exact(&mut right[..n]).unwrap();
        if left[..n] != right[..n] {
            return false;
        }
    }
}

/// Returns every path below a folder that still has a temporary name of wraith.
pub fn leftovers(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for name in names(folder) {
        let path = folder.join(&name);
        if name.to_string_lossy().contains(".wraith-") {
            found.push(path.clone());
        }
        if path.is_dir() && !path.is_symlink() {
            found.extend(leftovers(&path));
        }
    }
    found
}
