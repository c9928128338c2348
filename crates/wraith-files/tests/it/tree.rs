//! A whole tree is walked, read, verified and written; it must arrive unchanged.

#![allow(clippy::single_range_in_vec_init)] // lists of ranges

use std::fs::{self, File, FileTimes};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::common::*;
use wraith_files::*;

fn set(path: &Path, mode: u32, mtime: u64, ns: u32) {
    let time = SystemTime::UNIX_EPOCH + Duration::new(mtime, ns);
    File::open(path).unwrap().set_times(FileTimes::new().set_modified(time)).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// A tree with all difficult cases.
fn make_tree(at: &Path) {
    let file = |name: &[u8], bytes: &[u8]| {
        let path = at.join(std::ffi::OsStr::from_bytes(name));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    };
    file(b"empty", b"");
    set(&file(b"setuid", b"#!"), 0o6755, 5, 0);
    set(&file(b"secret", b"x"), 0o400, 1_700_000_000, 123_456_789);
    file(b"caf\xe9 \xff", b"not UTF-8");
    file("日本\u{202e}語".as_bytes(), b"bidi");
    file(b"new\nline\x1b[31m", b"control");
    file(b"deep/er/and/deeper/file", b"down here");
    for (n, len) in
        [1, 4096, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES, 2_000_000]
            .into_iter()
            .enumerate()
    {
        file(format!("sizes/{len}").as_bytes(), &content(n as u8, len));
    }
    let mut sparse = File::create(at.join("sparse")).unwrap();
    sparse.write_all(b"front").unwrap();
    sparse.seek(SeekFrom::Start(300 << 20)).unwrap();
    sparse.write_all(b"far behind").unwrap();
    sparse.set_len((300 << 20) + 1_000_000).unwrap();
    symlink("deep/er", at.join("link")).unwrap();
    symlink("/nowhere/at all", at.join("dangling")).unwrap();
    fs::create_dir(at.join("read-only")).unwrap();
    file(b"read-only/inside", b"y");
    fs::create_dir(at.join("empty dir")).unwrap();
    set(&at.join("empty dir"), 0o700, 77, 0);
    set(&at.join("read-only"), 0o555, 1_600_000_000, 5);
    set(&at.join("deep/er"), 0o755, 1_500_000_000, 999_999_999);
}

/// Path, type, mode, time and content of everything below `at`.
fn snapshot(at: &Path) -> Vec<String> {
    let walk = Walk::new(&[at]).unwrap();
    let mut lines = Vec::new();
    for found in walk {
        let found = found.unwrap();
        let Entry { path, kind, mode, mtime } = &found.entry;
        let below: Vec<_> = path.components().skip(1).map(shown).collect();
        let hash = match kind {
            Kind::File { .. } => {
                let mut hasher = blake3::Hasher::new();
                hasher.update_mmap_or_read(&found);
                hasher.finalize().to_hex().to_string()
            }
            other => format!("{other:?}"),
        };
        let size = found.entry.size();
        lines.push(format!("{} {size} {:o} {mtime:?} {hash}", below.join("/"), mode & 0o777));
    }
    lines
}

/// Hashes a found file in a simple, obvious way.
trait Update {
    fn update_mmap_or_read(&mut self, found: &WalkEntry);
}

impl Update for blake3::Hasher {
    fn update_mmap_or_read(&mut self, found: &WalkEntry) {
        let source = found.open().unwrap();
        let mut buffer = vec![0; CHUNK_BYTES];
        for index in 0..source.chunks() {
            let len = source.read_chunk(index, &mut buffer).unwrap();
            self.update(&buffer[..len]);
        }
    }
}

#[test]
fn a_tree_arrives_with_every_name_byte_mode_and_time() {
    let from = tempfile::tempdir_in(".").unwrap();
    let tree = from.path().join("tree");
    fs::create_dir(&tree).unwrap();
    make_tree(&tree);
    set(&tree, 0o750, 1_234_567, 0);
    let to = tempfile::tempdir_in(".").unwrap();
    let target = TargetDir::open(to.path()).unwrap();
    let mut walk = Walk::new(&[&tree]).unwrap();
    let mut previous: Option<RelPath> = None;
    for found in walk.by_ref() {
        let found = found.unwrap();
        assert!(previous.is_none_or(|previous| previous < found.entry.path), "manifest order");
        previous = Some(found.entry.path.clone());
        let mut bytes = Vec::new();
        found.entry.encode(&mut bytes);
        assert_eq!(Entry::decode(&bytes), Ok((found.entry.clone(), bytes.len())));
        if let Some(committed) = receive(&found, &target, CommitOptions::default()).unwrap() {
            assert_eq!((committed.outcome, &committed.path), (Outcome::Created, &found.entry.path));
        }
    }
    assert_eq!(walk.summary().skipped, 0);
    assert_eq!((walk.summary().dirs, walk.summary().symlinks), (8, 2));
    assert_eq!(walk.summary().largest, (300 << 20) + 1_000_000);
    target.finish_dirs().unwrap();
    target.sync().unwrap();
    assert_eq!(target.metadata_errors(), MetadataErrors::default());
    let arrived = to.path().join("tree");
    assert_eq!(snapshot(&arrived), snapshot(&tree));
    assert_eq!(names(to.path()), ["tree"], "nothing hidden stays");
    let mode = |name: &str| fs::metadata(arrived.join(name)).unwrap().permissions().mode();
    assert_eq!(mode("setuid") & 0o7777, 0o755, "set-uid does not travel");
    let blocks = fs::metadata(arrived.join("sparse")).unwrap().blocks();
    assert!(blocks * 512 < 1 << 20, "{blocks} blocks for a file of holes");

    // Again: every file is already present, and nothing changes.
    let before = snapshot(&arrived);
    let inodes = |at: &Path| -> Vec<u64> {
        Walk::new(&[at]).unwrap().map(|found| found.unwrap().stamp().ino).collect()
    };
    let inodes_before = inodes(&arrived);
    let target = TargetDir::open(to.path()).unwrap();
    for found in Walk::new(&[&tree]).unwrap() {
        if let Some(committed) =
            receive(&found.unwrap(), &target, CommitOptions::default()).unwrap()
        {
            assert_eq!(committed.outcome, Outcome::AlreadyHere, "{:?}", committed.path);
        }
    }
    target.finish_dirs().unwrap();
    drop(target);
    assert_eq!(inodes(&arrived), inodes_before);
    let without_read_only = |lines: Vec<String>| -> Vec<String> {
        lines.into_iter().filter(|line| !line.starts_with("read-only ")).collect()
    };
    assert_eq!(without_read_only(snapshot(&arrived)), without_read_only(before));
}

#[test]
fn unsendable_entries_are_reported_and_the_rest_is_walked() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("good"), "x").unwrap();
    fs::write(at(".left.wraith-part"), "x").unwrap();
    let _socket = UnixListener::bind(at("socket")).unwrap();
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    let mut walk = Walk::new(&[dir.path()]).unwrap();
    for item in walk.by_ref() {
        match item {
            Ok(found) => good.push(shown(found.entry.path.file_name())),
            Err(skipped) => bad.push(skipped),
        }
    }
    assert_eq!(good[1..], ["good"]);
    assert!(matches!(bad[0].why, SkipReason::Name(_)) && bad[0].path.contains(".wraith-part"));
    assert!(matches!(bad[1].why, SkipReason::Special) && bad[1].path.ends_with("socket"));
    assert_eq!(bad[0].what(), "it is reserved for unfinished files of this program");
    assert_eq!((walk.summary().skipped, walk.summary().special), (1, 1));
}

#[test]
fn roots_keep_their_last_name_and_may_be_files_links_or_dots() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::create_dir_all(at("one/x")).unwrap();
    fs::create_dir_all(at("two/x")).unwrap();
    fs::write(at("two/x/f"), "content").unwrap();
    symlink("two/x", at("link")).unwrap();
    let walked = |roots: &[std::path::PathBuf]| -> Vec<String> {
        let walk = Walk::new(roots).unwrap();
        walk.map(|found| found.unwrap().entry.path.display().to_string()).collect()
    };
    assert_eq!(walked(&[at("two/x/f")]), ["f"]);
    assert_eq!(walked(&[at("two/./x/")]), ["x", "x/f"]);
    assert_eq!(walked(&[at("two/x/../x")]), ["x", "x/f"]);
    assert_eq!(walked(&[at("two/x/..")]), ["two", "two/x", "two/x/f"]);
    // For a link on the command line, its target is sent, under the link's own name.
    assert_eq!(walked(&[at("link")]), ["link", "link/f"]);
    let mut walk = Walk::new(&[at("link")]).unwrap();
    let found = walk.nth(1).unwrap().unwrap();
    let mut buffer = [0; 7];
    found.open().unwrap().read_chunk(0, &mut buffer).unwrap();
    assert_eq!(&buffer, b"content");
    assert_eq!(walked(&[at("two/x/f"), at("one")]), ["f", "one", "one/x"]);
    let twins = Walk::new(&[at("one/x"), at("two/x")]);
    assert!(matches!(twins, Err(Error::Misuse { .. })), "{twins:?}");
    assert!(Walk::new(&[at("none")]).unwrap_err().is_not_found());
    assert!(matches!(Walk::new(&["/"]), Err(Error::Misuse { .. })));
}

#[test]
fn a_file_that_changes_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("f");
    let found = |bytes: &[u8]| {
        fs::write(&file, bytes).unwrap();
        Walk::new(&[&file]).unwrap().next().unwrap().unwrap()
    };
    let listed = found(&content(1, 1000));
    let source = listed.open().unwrap();
    assert!(source.unchanged());
    File::options().write(true).open(&file).unwrap().set_len(10).unwrap();
    let read = source.read_chunk(0, &mut vec![0; 1000]);
    assert!(matches!(read, Err(Error::Changed { .. })), "{read:?}");
    assert!(!source.unchanged());
    assert!(matches!(listed.open(), Err(Error::Changed { .. })), "another size");

    let listed = found(b"one");
    fs::rename(&file, dir.path().join("away")).unwrap();
    assert!(listed.open().unwrap_err().is_not_found());
    fs::write(&file, "two").unwrap();
    assert!(matches!(listed.open(), Err(Error::Changed { .. })), "another file");
    fs::remove_file(&file).unwrap();
    symlink("away", &file).unwrap();
    assert!(matches!(listed.open(), Err(Error::InTheWay { .. })), "a link");
    fs::remove_file(&file).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &file,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    assert!(matches!(listed.open(), Err(Error::Changed { .. })), "a pipe, without waiting for it");
}

#[test]
fn holes_are_found_chunk_by_chunk() {
    let chunk = CHUNK_BYTES as u64;
    let dir = tempfile::tempdir_in(".").unwrap();
    let path = dir.path().join("f");
    let runs = |data: &[std::ops::Range<u64>], size: u64| -> Vec<Run> {
        let mut file = File::create(&path).unwrap();
        for range in data {
            file.seek(SeekFrom::Start(range.start)).unwrap();
            file.write_all(&vec![1; (range.end - range.start) as usize]).unwrap();
        }
        file.set_len(size).unwrap();
        file.sync_all().unwrap();
        let found = Walk::new(&[&path]).unwrap().next().unwrap().unwrap();
        found.open().unwrap().runs().collect()
    };
    use Run::{Data, Hole};
    assert_eq!(runs(&[], 0), []);
    assert_eq!(runs(&[0..10], 10), [Data(0..1)]);
    assert_eq!(runs(&[], 10 * chunk), [Hole(0..10)]);
    assert_eq!(runs(&[], 10 * chunk + 1), [Hole(0..11)]);
    assert_eq!(runs(&[0..1], 3 * chunk), [Data(0..1), Hole(1..3)]);
    assert_eq!(
        runs(&[5 * chunk..5 * chunk + 1], 6 * chunk + 9),
        [Hole(0..5), Data(5..6), Hole(6..7)]
    );
    // A hole inside one chunk, or across a boundary of chunks without covering a chunk, is data.
    let edges = [0..4096, 65536..69632, 2 * chunk - 4096..2 * chunk, 3 * chunk - 4096..3 * chunk];
    assert_eq!(runs(&edges, 4 * chunk), [Data(0..3), Hole(3..4)]);
    let full = [0..3 * chunk];
    assert_eq!(runs(&full, 3 * chunk), [Data(0..3)]);
    let ends = [0..4096, 7 * chunk - 1..7 * chunk];
    assert_eq!(runs(&ends, 7 * chunk), [Data(0..1), Hole(1..6), Data(6..7)]);
}
