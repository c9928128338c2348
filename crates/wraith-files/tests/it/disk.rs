//! Disks that are full, read-only or owned by another user: errors are clear, and verified content
//! is kept.
//!
//! The tests need a small file system of their own, so they run only as the superuser; otherwise
//! they print that they were skipped.

#![allow(clippy::single_range_in_vec_init)] // lists of ranges

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::common::*;
use wraith_files::*;

const KEY: [u8; 32] = [4; 32];

/// A small tmpfs, unmounted when dropped.
struct SmallDisk(tempfile::TempDir, #[allow(dead_code, reason = "held")] MutexGuard<'static, ()>);

/// Serialises the tests. Between fork and exec, a child process holds the locks of every part file
/// that another test has open, and would keep them past a drop.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SmallDisk {
    fn new(options: &str) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: mounting a small file system needs the superuser");
            return None;
        }
        let alone = alone();
        let dir = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", options, "wraith-test"])
            .arg(dir.path())
            .status();
        if !mounted.is_ok_and(|status| status.success()) {
            println!("skipped: no file system can be mounted here");
            return None;
        }
        Some(Self(dir, alone))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn remount(&self, options: &str) {
        let options = format!("remount,{options}");
        let done = Command::new("mount").args(["-o", &options]).arg(self.path()).status().unwrap();
        assert!(done.success());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

fn is_full<T: std::fmt::Debug>(result: Result<T>) {
    assert!(matches!(result, Err(Error::DiskFull { .. })), "{result:?}");
}

#[test]
fn a_full_disk_stops_a_file_and_room_lets_it_go_on() {
    let Some(disk) = SmallDisk::new("size=1m") else { return };
    let target = TargetDir::open(disk.path()).unwrap();
    assert!(target.free_bytes().unwrap() <= 1 << 20);
    let bytes = content(1, 6 * CHUNK_BYTES);
    let entry = file("f", bytes.len());
    let part = again(|| target.open_or_resume(&entry, &KEY)).unwrap();
    let written = (0..6).take_while(|index| put(&part, &bytes, *index).is_ok()).count() as u64;
    assert!((2..4).contains(&written), "{written}");
    is_full(put(&part, &bytes, written));
    is_full(put(&part, &bytes, written));
    assert_eq!(part.have().count(), written);
    is_full(target.write_small(
        &file("s", CHUNK_BYTES),
        &[&bytes[..CHUNK_BYTES]],
        CommitOptions::default(),
    ));
    assert!(!disk.path().join("s").exists());
    drop(part);
    disk.remount("size=8m");
    let part = again(|| target.open_or_resume(&entry, &KEY)).unwrap();
    assert_eq!(part.have().iter().collect::<Vec<_>>(), [0..written]);
    (written..6).for_each(|index| put(&part, &bytes, index).unwrap());
    part.finish(&small_root(&bytes), CommitOptions::default()).unwrap();
    assert_eq!(fs::read(disk.path().join("f")).unwrap(), bytes);
    drop((part, target));
    assert_eq!(names(disk.path()), ["f"]);
}

/// Uses up all free space.
fn fill(path: &Path) {
    use std::os::unix::fs::FileExt;
    let file = fs::File::create(path).unwrap();
    let (mut len, mut step) = (0, 1 << 20);
    while step > 0 {
        match file.write_at(&vec![1; step], len) {
            Ok(written) => len += written as u64,
            Err(_) => step /= 2,
        }
    }
}

#[test]
fn a_chunk_whose_record_does_not_fit_does_not_count_until_it_does() {
    let Some(disk) = SmallDisk::new("size=28m") else { return };
    let target = TargetDir::open(disk.path()).unwrap();
    let bytes = content(1, 100 * CHUNK_BYTES);
    let entry = file("f", bytes.len());
    let part = again(|| target.open_or_resume(&entry, &KEY)).unwrap();
    // All blocks of the part are taken first, then the rest of the disk: only the journal needs
    // another page.
    fs::write(disk.path().join(".f.wraith-part"), &bytes).unwrap();
    let filler = disk.path().join("filler");
    fill(&filler);
    let records_in_a_page = (4096 - 128) / 48;
    for index in 0..records_in_a_page {
        put(&part, &bytes, index).unwrap();
    }
    for _ in 0..2 {
        is_full(put(&part, &bytes, records_in_a_page));
        assert_eq!(part.have().count(), records_in_a_page);
    }
    is_full(target.open_or_resume(&file("g", bytes.len()), &KEY));
    drop(part);
    // This test wrote to the part, so its chunks are hashed again. There is no room for that, but
    // nothing is lost.
    let mut part = again(|| target.open_or_resume(&entry, &KEY)).unwrap();
    is_full(part.recheck(|_| true));
    assert!(part.needs_recheck() && part.have().is_empty());
    drop(part);
    fs::remove_file(&filler).unwrap();
    let mut part = again(|| target.open_or_resume(&entry, &KEY)).unwrap();
    part.recheck(|_| true).unwrap();
    assert_eq!(part.have().iter().collect::<Vec<_>>(), [0..records_in_a_page]);
    put(&part, &bytes, records_in_a_page).unwrap();
    drop(part);
    let part = again(|| target.open_or_resume(&entry, &KEY)).unwrap();
    assert_eq!(part.have().count(), records_in_a_page + 1);
    drop((part, target));
    assert_eq!(names(disk.path()), [".f.wraith-journal", ".f.wraith-part"]);
}

#[test]
fn a_disk_without_room_for_another_inode_is_full_and_nothing_is_left() {
    let Some(disk) = SmallDisk::new("size=4m,nr_inodes=4") else { return };
    let target = TargetDir::open(disk.path()).unwrap();
    let bytes = content(1, 2 * CHUNK_BYTES);
    // Inodes for the root directory and two of: file, part, journal.
    target.write_small(&file("a", 1), &[b"x"], CommitOptions::default()).unwrap();
    target.write_small(&file("b", 1), &[b"x"], CommitOptions::default()).unwrap();
    is_full(target.open_or_resume(&file("f", bytes.len()), &KEY));
    assert_eq!(names(disk.path()), ["a", "b"], "the journal without a part is gone");
    target.write_small(&file("c", 1), &[b"x"], CommitOptions::default()).unwrap();
    is_full(target.write_small(&file("d", 1), &[b"x"], CommitOptions::default()));
    is_full(target.make_dir(&dir("d", 0o755)));
    is_full(target.make_symlink(&link("l", "x"), OnConflict::Rename));
    drop(target);
    assert!(names(disk.path()).iter().all(|name| !name.starts_with('.')));
}

#[test]
fn a_read_only_disk_is_reported() {
    let Some(disk) = SmallDisk::new("size=4m") else { return };
    let target = TargetDir::open(disk.path()).unwrap();
    let bytes = content(1, 2 * CHUNK_BYTES);
    target.make_dir(&dir("d", 0o755)).unwrap();
    target.write_small(&file("d/a", 1), &[b"x"], CommitOptions::default()).unwrap();
    disk.remount("ro");
    let is_read_only = |error: Error| assert!(matches!(error, Error::ReadOnly { .. }), "{error:?}");
    is_read_only(
        target.write_small(&file("d/b", 1), &[b"x"], CommitOptions::default()).unwrap_err(),
    );
    is_read_only(target.open_or_resume(&file("d/f", bytes.len()), &KEY).unwrap_err());
    is_read_only(target.make_dir(&dir("e", 0o755)).unwrap_err());
    is_read_only(target.make_symlink(&link("l", "x"), OnConflict::Rename).unwrap_err());
    assert_eq!(
        target.root_of(&path("d/a"), Tree::Blake3, || true).unwrap(),
        Some(small_root(b"x"))
    );
    disk.remount("rw");
}

/// Two seconds in all.
const BUSY_LOOKS: u32 = 200;
const BUSY_PAUSE: Duration = Duration::from_millis(10);

/// Runs the test `name` of this binary as the user nobody, in a directory owned by nobody.
fn as_nobody(name: &str, prepare: impl Fn(&Path)) {
    const NOBODY: u32 = 65534;
    if !rustix::process::geteuid().is_root() {
        println!("skipped: becoming another user needs the superuser");
        return;
    }
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    // The binary may lie in a directory that nobody cannot enter.
    let binary = dir.path().join("test");
    fs::copy(std::env::current_exe().unwrap(), &binary).unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let target = dir.path().join("target");
    fs::create_dir(&target).unwrap();
    std::os::unix::fs::chown(&target, Some(NOBODY), Some(NOBODY)).unwrap();
    prepare(&target);
    let mut command = Command::new(&binary);
    command.args(["--exact", name, "--nocapture"]).env("WRAITH_TEST_TARGET", &target);
    command.current_dir("/").uid(NOBODY).gid(NOBODY);
    // A program that another test is starting briefly holds the copy open for writing.
    let is_busy = |done: &io::Result<_>| {
        done.as_ref().is_err_and(|e: &io::Error| e.kind() == io::ErrorKind::ExecutableFileBusy)
    };
    let mut done = command.output();
    for _ in 0..BUSY_LOOKS {
        if !is_busy(&done) {
            break;
        }
        std::thread::sleep(BUSY_PAUSE);
        done = command.output();
    }
    let done = done.unwrap();
    let output = [done.stdout, done.stderr].map(|text| String::from_utf8(text).unwrap()).concat();
    assert!(done.status.success() && output.contains("1 passed"), "{output}");
}

#[test]
fn an_unprivileged_user_gets_all_files_and_the_metadata_errors() {
    as_nobody("disk::as_an_ordinary_user", |target| {
        let forbidden = target.join("forbidden");
        fs::create_dir(&forbidden).unwrap();
        fs::set_permissions(&forbidden, fs::Permissions::from_mode(0o755)).unwrap();
        let locked = target.join("locked");
        fs::create_dir(&locked).unwrap();
        fs::set_permissions(&locked, fs::Permissions::from_mode(0o700)).unwrap();
        // A journal that another user could have written.
        fs::write(target.join(".foreign.wraith-journal"), "x").unwrap();
    });
}

#[test]
fn as_an_ordinary_user() {
    let Ok(target_path) = std::env::var("WRAITH_TEST_TARGET") else { return };
    assert!(!rustix::process::geteuid().is_root());
    let target_path = Path::new(&target_path);
    let target = TargetDir::open(target_path).unwrap();
    let bytes = content(1, 2 * CHUNK_BYTES);
    let is_denied = |error: Error| assert!(matches!(error, Error::Permission { .. }), "{error:?}");
    for name in ["forbidden", "locked"] {
        let below = format!("{name}/f");
        is_denied(
            target.write_small(&file(&below, 1), &[b"x"], CommitOptions::default()).unwrap_err(),
        );
        is_denied(target.open_or_resume(&file(&below, bytes.len()), &KEY).unwrap_err());
        is_denied(target.make_dir(&dir(&below, 0o755)).unwrap_err());
        is_denied(target.make_symlink(&link(&below, "x"), OnConflict::Rename).unwrap_err());
        assert!(!target.make_dir(&dir(name, 0o700)).unwrap());
    }
    // Files that no user may read or write, in folders that no user may write to, are created all
    // the same.
    let commit_options = CommitOptions { on_conflict: OnConflict::Overwrite, sync: false };
    target.make_dir(&dir("ro", 0o555)).unwrap();
    for content in ["one", "two"] {
        let entry = Entry { mode: 0, ..file("ro/none", 3) };
        target.write_small(&entry, &[content.as_bytes()], commit_options).unwrap();
    }
    let entry = Entry { mode: 0o444, ..file("ro/big", bytes.len()) };
    let part = again(|| target.open_or_resume(&entry, &KEY)).unwrap();
    put(&part, &bytes, 0).unwrap();
    drop(part);
    // As if killed between setting the mode and giving the name.
    let hidden = target_path.join("ro/.big.wraith-part");
    fs::set_permissions(&hidden, fs::Permissions::from_mode(0o444)).unwrap();
    let mut part = again(|| target.open_or_resume(&entry, &KEY)).unwrap();
    part.recheck(|_| true).unwrap();
    assert_eq!(part.have().count(), 1);
    put(&part, &bytes, 1).unwrap();
    part.finish(&small_root(&bytes), commit_options).unwrap();
    drop(part);
    target.finish_dirs().unwrap();
    assert_eq!(names(&target_path.join("ro")), ["big", "none"]);
    let mode = |name: &str| fs::metadata(target_path.join(name)).unwrap().permissions().mode();
    assert_eq!((mode("ro") & 0o7777, mode("ro/none") & 0o7777), (0o555, 0));
    is_denied(target.write_small(&file("ro/late", 1), &[b"x"], commit_options).unwrap_err());
    // Files planted by another user are neither used nor removed.
    let part = target.open_or_resume(&file("foreign", bytes.len()), &KEY).unwrap();
    put(&part, &bytes, 0).unwrap();
    put(&part, &bytes, 1).unwrap();
    part.finish(&small_root(&bytes), commit_options).unwrap();
    drop(part);
    assert_eq!(fs::read(target_path.join(".foreign.wraith-journal")).unwrap(), b"x");
    assert_eq!(target.metadata_errors(), MetadataErrors::default());
    fs::set_permissions(target_path.join("ro"), fs::Permissions::from_mode(0o755)).unwrap();
}
