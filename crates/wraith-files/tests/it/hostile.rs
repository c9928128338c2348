//! A hostile peer, a hostile target directory, and both while files arrive: nothing outside the
//! target is ever touched.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::common::*;
use wraith_files::*;

const KEY: [u8; 32] = [1; 32];

/// A directory with a file that must stay as it is, and a target beside it.
struct Stage {
    _dir: tempfile::TempDir,
    outside: PathBuf,
    inside: PathBuf,
}

impl Stage {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (outside, inside) = (dir.path().join("outside"), dir.path().join("inside"));
        fs::create_dir(&outside).unwrap();
        fs::create_dir(&inside).unwrap();
        fs::write(outside.join("precious"), "precious").unwrap();
        Self { _dir: dir, outside, inside }
    }

    fn target(&self) -> TargetDir {
        TargetDir::open(&self.inside).unwrap()
    }

    fn assert_untouched(&self) {
        assert_eq!(names(&self.outside), ["precious"]);
        assert_eq!(fs::read(self.outside.join("precious")).unwrap(), b"precious");
        let meta = fs::metadata(self.outside.join("precious")).unwrap();
        assert_ne!((meta.mtime(), meta.mtime_nsec()), (MTIME.s, MTIME.ns.into()));
    }
}

fn overwrite() -> CommitOptions {
    CommitOptions { on_conflict: OnConflict::Overwrite, sync: false }
}

#[test]
fn nothing_is_written_through_a_link_in_the_target() {
    let stage = Stage::new();
    symlink(&stage.outside, stage.inside.join("d")).unwrap();
    symlink("../outside", stage.inside.join("r")).unwrap();
    symlink("/proc/self/cwd", stage.inside.join("m")).unwrap();
    let target = stage.target();
    for link in ["d", "r", "m"] {
        let below = |name: &str| format!("{link}/{name}");
        let in_the_way = |error: Error| {
            assert!(matches!(error, Error::InTheWay { .. } | Error::Exists { .. }), "{error}");
        };
        in_the_way(
            target.write_small(&file(&below("precious"), 1), &[b"x"], overwrite()).unwrap_err(),
        );
        in_the_way(target.write_small(&file(&below("a/b"), 1), &[b"x"], overwrite()).unwrap_err());
        in_the_way(target.open_or_resume(&file(&below("big"), 1 << 20), &KEY).unwrap_err());
        in_the_way(target.make_dir(&dir(&below("new"), 0o755)).unwrap_err());
        in_the_way(target.make_dir(&dir(link, 0o755)).unwrap_err());
        in_the_way(
            target
                .make_symlink(&crate::common::link(&below("l"), "x"), OnConflict::Overwrite)
                .unwrap_err(),
        );
        in_the_way(target.existing(&path(&below("precious"))).unwrap_err());
    }
    // The peer creates the link itself, then tries to write through it.
    target.make_symlink(&link("own", "../outside"), OnConflict::Overwrite).unwrap();
    assert!(target.write_small(&file("own/precious", 1), &[b"x"], overwrite()).is_err());
    // A file in place of a link replaces the link, not the link's target.
    symlink("../outside/precious", stage.inside.join("f")).unwrap();
    let committed = target.write_small(&file("f", 1), &[b"x"], overwrite()).unwrap();
    assert_eq!(committed.outcome, Outcome::Replaced);
    assert!(fs::symlink_metadata(stage.inside.join("f")).unwrap().is_file());
    target.finish_dirs().unwrap();
    stage.assert_untouched();
}

#[test]
fn a_directory_swapped_for_a_link_while_files_arrive_leads_nowhere() {
    let stage = Stage::new();
    let stop = AtomicBool::new(false);
    let (directory, trap) = (stage.inside.join("d"), stage.inside.join("trap"));
    fs::create_dir(&directory).unwrap();
    symlink(&stage.outside, &trap).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            use rustix::fs::{CWD, RenameFlags, renameat_with};
            // `d` alternates between the directory and a link to the outside, and is never missing.
            while !stop.load(Relaxed) {
                renameat_with(CWD, &directory, CWD, &trap, RenameFlags::EXCHANGE).unwrap();
            }
        });
        let (mut written, mut refused) = (0, 0);
        for round in 0..100_000u32 {
            if round >= 400 && written > 0 && refused > 0 {
                break;
            }
            // A new handle each time; otherwise the first one would simply be reused.
            let target = stage.target();
            let name = format!("d/e{}/f{round}", round % 3);
            let small = target.write_small(&file(&name, 3), &[b"new"], overwrite());
            let precious = target.write_small(&file("d/precious", 3), &[b"bad"], overwrite());
            let bytes = content(1, CHUNK_BYTES + 1);
            let big = target.open_or_resume(&file("d/big", bytes.len()), &KEY).and_then(|part| {
                put(&part, &bytes, 0)?;
                put(&part, &bytes, 1)?;
                part.finish(&small_root(&bytes), overwrite())
            });
            let made = target.make_dir(&dir("d/x/y", 0o755));
            let _ = target.finish_dirs();
            for ok in [small.is_ok(), precious.is_ok(), big.is_ok(), made.is_ok()] {
                if ok { written += 1 } else { refused += 1 }
            }
        }
        stop.store(true, Relaxed);
        assert!(written > 0 && refused > 0, "{written} written, {refused} refused: no race");
    });
    stage.assert_untouched();
}

#[test]
fn a_hidden_file_planted_by_someone_is_not_written_to() {
    let bytes = content(1, 2 * CHUNK_BYTES);
    let entry = file("f", bytes.len());
    for trap in ["link", "hard link", "directory", "junk", "pipe"] {
        for hidden in [".f.wraith-part", ".f.wraith-journal"] {
            let stage = Stage::new();
            let precious = stage.outside.join("precious");
            let at = stage.inside.join(hidden);
            match trap {
                "link" => symlink(&precious, &at).unwrap(),
                "hard link" => fs::hard_link(&precious, &at).unwrap(),
                "directory" => fs::create_dir(&at).unwrap(),
                "junk" => fs::write(&at, "junk").unwrap(),
                _ => rustix::fs::mknodat(
                    rustix::fs::CWD,
                    &at,
                    rustix::fs::FileType::Fifo,
                    rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
                    0,
                )
                .unwrap(),
            }
            match stage.target().open_or_resume(&entry, &KEY) {
                Ok(part) => {
                    assert!(part.have().is_empty());
                    put(&part, &bytes, 0).unwrap();
                    put(&part, &bytes, 1).unwrap();
                    part.finish(&small_root(&bytes), CommitOptions::default()).unwrap();
                    assert_eq!(fs::read(stage.inside.join("f")).unwrap(), bytes);
                }
                // A directory under the part's name cannot be moved out of the way safely.
                Err(error) => assert!(trap == "directory", "{trap} {hidden}: {error}"),
            }
            stage.assert_untouched();
        }
    }
}

#[test]
fn a_part_replaced_behind_our_back_does_not_get_the_name() {
    let stage = Stage::new();
    let bytes = content(1, 2 * CHUNK_BYTES);
    let target = stage.target();
    let part = target.open_or_resume(&file("f", bytes.len()), &KEY).unwrap();
    put(&part, &bytes, 0).unwrap();
    put(&part, &bytes, 1).unwrap();
    let hidden = stage.inside.join(".f.wraith-part");
    fs::remove_file(&hidden).unwrap();
    fs::write(&hidden, "something else").unwrap();
    let finished = part.finish(&small_root(&bytes), CommitOptions::default());
    assert!(matches!(finished, Err(Error::Changed { .. })), "{finished:?}");
    assert!(!stage.inside.join("f").exists());
}

#[test]
fn a_folder_with_something_in_it_is_never_replaced_and_an_empty_one_only_by_overwriting() {
    let stage = Stage::new();
    for name in ["full", "empty", "empty 2", "empty 3", "empty 4"] {
        fs::create_dir(stage.inside.join(name)).unwrap();
    }
    fs::write(stage.inside.join("full/mine"), "mine").unwrap();
    let target = stage.target();
    assert!(target.is_empty_dir(&path("empty")) && !target.is_empty_dir(&path("full")));
    let is = |committed: Committed, outcome, name: &str| {
        assert_eq!((committed.outcome, committed.path), (outcome, path(name)));
    };
    let large = |name: &str| {
        let bytes = content(1, 2 * CHUNK_BYTES);
        let part = target.open_or_resume(&file(name, bytes.len()), &KEY).unwrap();
        put(&part, &bytes, 0).unwrap();
        put(&part, &bytes, 1).unwrap();
        part.finish(&small_root(&bytes), overwrite()).unwrap()
    };
    let small = |name: &str, options| target.write_small(&file(name, 1), &[b"x"], options).unwrap();
    let symlink =
        |name: &str| target.make_symlink(&link(name, "x"), OnConflict::Overwrite).unwrap();
    assert_eq!(target.free_copy(&path("full")), Some(path("full (1)")));
    is(small("full", overwrite()), Outcome::Renamed, "full (1)");
    is(symlink("full"), Outcome::Renamed, "full (2)");
    is(large("full"), Outcome::Renamed, "full (3)");
    is(small("empty 4", CommitOptions::default()), Outcome::Renamed, "empty 4 (1)");
    is(small("empty", overwrite()), Outcome::Replaced, "empty");
    is(symlink("empty 2"), Outcome::Replaced, "empty 2");
    is(large("empty 3"), Outcome::Replaced, "empty 3");
    assert!(stage.inside.join("empty 4").is_dir());
    assert_eq!(fs::read(stage.inside.join("full/mine")).unwrap(), b"mine");
    target.finish_dirs().unwrap();
    assert!(names(&stage.inside).iter().all(|name| !name.contains(".wraith-")));
}

#[test]
fn a_file_is_replaced_by_a_folder_only_on_request() {
    let stage = Stage::new();
    fs::write(stage.inside.join("f"), "mine").unwrap();
    fs::create_dir(stage.inside.join("f (1)")).unwrap();
    std::os::unix::fs::symlink("f (1)", stage.inside.join("l")).unwrap();
    let target = stage.target();
    for name in ["f", "l"] {
        let error = target.make_dir(&dir(name, 0o755)).unwrap_err();
        assert!(matches!(error, Error::Exists { .. }), "{error}");
    }
    assert!(matches!(
        target.write_small(&file("f/x", 1), &[b"x"], overwrite()),
        Err(Error::InTheWay { .. })
    ));
    // An existing folder belongs to the user.
    assert_eq!(target.make_dir_copy(&dir("f", 0o500)).unwrap(), path("f (2)"));
    target.write_small(&file("f (2)/x", 1), &[b"x"], overwrite()).unwrap();
    assert_eq!(fs::read(stage.inside.join("f")).unwrap(), b"mine");
    for name in ["f", "l"] {
        assert!(target.replace_with_dir(&dir(name, 0o700)).unwrap());
    }
    assert!(!target.replace_with_dir(&dir("f (1)", 0o700)).unwrap(), "a folder is used");
    target.finish_dirs().unwrap();
    let mode = |name: &str| fs::symlink_metadata(stage.inside.join(name)).unwrap().mode();
    assert_eq!(mode("f (2)") & 0o7777, 0o500);
    assert_eq!((mode("f") & KIND_BITS, mode("l") & KIND_BITS), (0o040_000, 0o040_000));
}

/// The bits of a mode that encode the file type.
const KIND_BITS: u32 = 0o170_000;

#[test]
fn a_folder_that_was_there_keeps_its_permissions() {
    let stage = Stage::new();
    let mode = |name: &str| fs::metadata(stage.inside.join(name)).unwrap().mode() & 0o7777;
    let make = |name: &str, mode| {
        fs::create_dir(stage.inside.join(name)).unwrap();
        fs::set_permissions(stage.inside.join(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    make("private", 0o700);
    make("open", 0o755);
    make("shared", 0o2775);
    let target = stage.target();
    assert!(!target.make_dir(&dir("private", 0o777)).unwrap());
    assert!(!target.make_dir(&dir("open", 0o055)).unwrap());
    assert!(target.make_dir(&dir("shared/new", 0o7700)).unwrap());
    assert!(target.make_dir(&dir("fresh", 0o1500)).unwrap());
    target.write_small(&file("fresh/f", 1), &[b"x"], CommitOptions::default()).unwrap();
    target.finish_dirs().unwrap();
    assert_eq!((mode("private"), mode("open")), (0o700, 0o755));
    assert_eq!(mode("shared/new"), 0o2700, "the group is inherited; nothing else special");
    assert_eq!(mode("fresh"), 0o500);
    let meta = fs::metadata(stage.inside.join("fresh")).unwrap();
    assert_eq!((meta.mtime(), meta.mtime_nsec()), (MTIME.s, MTIME.ns.into()));
}

#[test]
fn links_are_made_as_they_are_and_conflicts_follow_the_policy() {
    let stage = Stage::new();
    let target = stage.target();
    let make = |name: &str, to: &str, on_conflict| {
        let committed = target.make_symlink(&link(name, to), on_conflict).unwrap();
        (committed.outcome, committed.path.display().to_string())
    };
    let is = |outcome, name: &str| (outcome, name.to_owned());
    assert_eq!(make("l", "../../outside", OnConflict::Skip), is(Outcome::Created, "l"));
    assert_eq!(make("l", "../../outside", OnConflict::Rename), is(Outcome::AlreadyHere, "l"));
    assert_eq!(make("l", "other", OnConflict::Rename), is(Outcome::Renamed, "l (1)"));
    assert_eq!(make("l", "other", OnConflict::Skip), is(Outcome::Skipped, "l"));
    assert_eq!(make("l", "third", OnConflict::Overwrite), is(Outcome::Replaced, "l"));
    assert_eq!(fs::read_link(stage.inside.join("l")).unwrap(), Path::new("third"));
    let meta = fs::symlink_metadata(stage.inside.join("l")).unwrap();
    assert_eq!((meta.mtime(), meta.mtime_nsec()), (MTIME.s, MTIME.ns.into()));
    assert_eq!(names(&stage.inside), ["l", "l (1)"]);
}

#[test]
fn a_target_named_through_a_link_is_where_the_link_points() {
    let stage = Stage::new();
    let door = stage.inside.join("door");
    fs::create_dir(stage.inside.join("room")).unwrap();
    symlink("room", &door).unwrap();
    let target = TargetDir::open(&door).unwrap();
    target.write_small(&file("f", 1), &[b"x"], CommitOptions::default()).unwrap();
    assert!(stage.inside.join("room/f").exists());
    assert!(TargetDir::open(&stage.inside.join("none")).unwrap_err().is_not_found());
    assert!(TargetDir::open(&stage.inside.join("room/f")).is_err());
}

#[test]
fn folders_removed_while_files_arrive_are_made_again() {
    let stage = Stage::new();
    let target = stage.target();
    for round in 0..3 {
        for n in 0..2 {
            let name = format!("a/b/{n}");
            target.write_small(&file(&name, 1), &[b"x"], CommitOptions::default()).unwrap();
        }
        assert_eq!(names(&stage.inside.join("a/b")), ["0", "1"], "{round}");
        fs::remove_dir_all(stage.inside.join("a/b")).unwrap();
    }
    let _part = again(|| target.open_or_resume(&file("a/b/big", 1 << 20), &KEY)).unwrap();
    assert_eq!(names(&stage.inside.join("a/b")).len(), 2);
}
