//! Compares two trees with only the standard library, as an independent check of the demonstration.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const BUFFER_BYTES: usize = 1 << 20;
/// A hole that arrived as zeros takes at least this much more disk space.
const HOLE_TOLERANCE_BYTES: u64 = 1 << 20;

/// Returns a description of every difference; empty if the trees are equal.
pub fn trees(a: &Path, b: &Path) -> io::Result<Vec<String>> {
    let mut differences = Vec::new();
    compare(a, b, &mut differences)?;
    Ok(differences)
}

fn compare(a: &Path, b: &Path, found: &mut Vec<String>) -> io::Result<()> {
    let x = fs::symlink_metadata(a)?;
    let y = match fs::symlink_metadata(b) {
        Ok(y) => y,
        Err(_) => {
            found.push(format!("{} is missing", b.display()));
            return Ok(());
        }
    };
    if let Some(what) = other_metadata(&x, &y) {
        found.push(format!("{} has {what}", b.display()));
    }
    if x.file_type() != y.file_type() {
        return Ok(());
    }
    if x.is_symlink() {
        if fs::read_link(a)? != fs::read_link(b)? {
            found.push(format!("{} points to another target", b.display()));
        }
    } else if x.is_dir() {
        let (left, right) = (names(a)?, names(b)?);
        for extra in right.difference(&left) {
            found.push(format!("{} is unexpected", b.join(extra).display()));
        }
        for name in left {
            compare(&a.join(&name), &b.join(&name), found)?;
        }
    } else if !same_bytes(a, b)? {
        found.push(format!("{} has different content", b.display()));
    }
    Ok(())
}

fn other_metadata(x: &Metadata, y: &Metadata) -> Option<&'static str> {
    if x.file_type() != y.file_type() {
        return Some("a different kind");
    }
    // Links have no mode, and some systems do not keep their times.
    if x.is_symlink() {
        return None;
    }
    if x.mode() != y.mode() {
        return Some("a different mode");
    }
    if (x.mtime(), x.mtime_nsec()) != (y.mtime(), y.mtime_nsec()) {
        return Some("a different modification time");
    }
    if x.is_file() && x.len() != y.len() {
        return Some("a different length");
    }
    let sparse = x.is_file() && x.blocks() * 512 + HOLE_TOLERANCE_BYTES < x.len();
    if sparse && y.blocks() * 512 > x.blocks() * 512 + HOLE_TOLERANCE_BYTES {
        return Some("no holes any more");
    }
    None
}

fn names(folder: &Path) -> io::Result<BTreeSet<OsString>> {
    fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name())).collect()
}

fn same_bytes(a: &Path, b: &Path) -> io::Result<bool> {
    let (mut x, mut y) = (File::open(a)?, File::open(b)?);
    let (mut left, mut right) = (vec![0; BUFFER_BYTES], vec![0; BUFFER_BYTES]);
    loop {
        let n = x.read(&mut left)?;
        if n == 0 {
            return Ok(y.read(&mut right)? == 0);
        }
        match y.read_exact(&mut right[..n]) {
            Ok(()) if left[..n] == right[..n] => {}
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => return Err(error),
            _ => return Ok(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn two_copies() -> (tempfile::TempDir, std::path::PathBuf, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let (a, b) = (folder.path().join("a"), folder.path().join("b"));
        crate::demo::data::make(&a, 10_000, 3, &|| false).unwrap();
        let copied = std::process::Command::new("cp").arg("-a").arg(&a).arg(&b).status().unwrap();
        assert!(copied.success());
        (folder, a, b)
    }

    #[test]
    fn a_faithful_copy_has_no_difference() {
        let (_folder, a, b) = two_copies();
        assert_eq!(trees(&a, &b).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn every_kind_of_damage_is_found() {
        type Damage = fn(&Path) -> io::Result<()>;
        let damages: [(&str, Damage); 6] = [
            ("different content", |b| {
                use std::os::unix::fs::FileExt;
                let file = File::options().write(true).open(b.join("big.bin"))?;
                let time = file.metadata()?.modified()?;
                file.write_all_at(b"x", 9_999)?;
                file.set_modified(time)
            }),
            ("missing", |b| fs::remove_file(b.join("curiosities/link"))),
            ("unexpected", |b| fs::write(b.join("extra"), b"")),
            ("different mode", |b| {
                fs::set_permissions(b.join("big.bin"), PermissionsExt::from_mode(0o600))
            }),
            ("different modification time", |b| {
                File::open(b.join("big.bin"))?.set_modified(std::time::UNIX_EPOCH)
            }),
            ("different content", |b| {
                File::options().write(true).open(b.join("big.bin"))?.set_len(1)
            }),
        ];
        for (what, damage) in damages {
            let (_folder, a, b) = two_copies();
            damage(&b).unwrap();
            let found = trees(&a, &b).unwrap();
            assert!(found.iter().any(|line| line.contains(what)), "{what}: {found:?}");
        }
    }
}
