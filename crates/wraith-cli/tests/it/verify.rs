//! `wraith verify` accepts an unchanged tree and detects every kind of difference.

use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::support::{self, Outcome, Process, World, tree};

/// Runs `wraith verify --json` as the receiver, with more arguments.
fn verify(world: &World, more: &[&OsStr]) -> Outcome {
    let mut command = world.wraith("receiver");
    Process::start("verify", command.args(["verify", "--json"]).args(more)).finish()
}

fn verify_target(world: &World) -> Outcome {
    verify(world, &[world.target().as_os_str()])
}

/// Returns status and path of every difference.
fn differences(outcome: &Outcome) -> Vec<(String, String)> {
    let of = |event: &serde_json::Value, field: &str| event[field].as_str().unwrap().to_owned();
    let mut all: Vec<_> =
        outcome.all("differs").map(|event| (of(event, "status"), of(event, "path"))).collect();
    all.sort();
    all
}

#[track_caller]
fn expect_difference(world: &World, status: &str, path: &str) {
    assert_one_difference(&verify_target(world), status, path);
}

#[track_caller]
fn assert_one_difference(outcome: &Outcome, status: &str, path: &str) {
    outcome.expect_error(8);
    assert_eq!(differences(outcome), [(status.to_owned(), path.to_owned())]);
    assert_eq!(outcome.last("verified")["differ"], 1);
}

fn records(world: &World) -> Vec<PathBuf> {
    tree::names(&world.path("home-receiver/received"))
        .into_iter()
        .map(|name| world.path("home-receiver/received").join(name))
        .collect()
}

/// A change of the bytes of a received list.
type Edit<'a> = dyn Fn(&mut Vec<u8>) + 'a;

fn edit(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_tree_with_everything_is_as_it_was_received() {
    let world = World::new();
    let root = world.source().join("tree");
    tree::everything(&root);
    // Another file has the name.
    tree::file(&world.target().join("tree/modes/odd"), 99, 77);
    world.transfer(&[&root]);
    assert!(world.target().join("tree/modes/odd (1)").exists());

    let outcome = verify_target(&world);
    outcome.expect_exit(0);
    let verified = outcome.last("verified");
    let files = verified["files"].as_u64().unwrap();
    assert!(files >= 20 && verified["not_received"] == 0 && verified["differ"] == 0, "{verified}");
    let record = &records(&world)[..];
    assert_eq!(record.len(), 1, "nothing but the record is left: {record:?}");
    assert_eq!(fs::metadata(&record[0]).unwrap().permissions().mode() & 0o777, 0o600);

    // By its own id too, and not by an unknown one.
    let listed = verify(&world, &["--list".as_ref()]);
    listed.expect_exit(0);
    let id = listed.last("received")["id"].as_str().unwrap().to_owned();
    verify(&world, &[id[..6].as_ref()]).expect_exit(0);
    verify(&world, &["0123456789ab".as_ref()]).expect_error(1);
    verify(&world, &[world.source().as_os_str()]).expect_error(1);
    verify(&world, &["/nonexistent".as_ref()]).expect_error(1);

    // The file that took the name is not part of the transfer; the renamed one is.
    tree::file(&world.target().join("tree/modes/odd"), 98, 77);
    verify_target(&world).expect_exit(0);
    tree::file(&world.target().join("tree/modes/odd (1)"), 98, 100);
    expect_difference(&world, "changed", "tree/modes/odd (1)");
}

#[test]
fn every_changed_file_is_named() {
    let (world, root) = World::with_tree("t", &[("large", 3_000_000), ("a/small", 1000)]);
    tree::sparse(&root.join("sparse"), 8 << 20, &[0, 4 << 20]);
    let odd = OsStr::from_bytes(b"odd \xff\n\x1b[31m");
    tree::file(&root.join(odd), 3, 10);
    fs::create_dir(root.join("nobody")).unwrap();
    symlink("a/small", root.join("link")).unwrap();
    world.transfer(&[&root]);
    verify_target(&world).expect_exit(0);
    let at = |name: &str| world.target().join("t").join(name);

    // Flip one bit, and flip it back.
    for name in ["large", "sparse"] {
        let file = OpenOptions::new().read(true).write(true).open(at(name)).unwrap();
        let mut byte = [0];
        file.read_exact_at(&mut byte, 2_500_000).unwrap();
        file.write_all_at(&[byte[0] ^ 1], 2_500_000).unwrap();
        expect_difference(&world, "changed", &format!("t/{name}"));
        file.write_all_at(&byte, 2_500_000).unwrap();
        verify_target(&world).expect_exit(0);
    }
    // Shorter, longer, missing.
    OpenOptions::new().write(true).open(at("large")).unwrap().set_len(2_999_999).unwrap();
    expect_difference(&world, "changed", "t/large");
    tree::file(&at("large"), 1, 3_000_000);
    OpenOptions::new().append(true).open(at("large")).unwrap().write_all(b"x").unwrap();
    expect_difference(&world, "changed", "t/large");
    tree::file(&at("large"), 1, 3_000_000);
    fs::rename(at("a/small"), at("a/other")).unwrap();
    expect_difference(&world, "missing", "t/a/small");
    // A link to the same content is no file.
    symlink("other", at("a/small")).unwrap();
    expect_difference(&world, "kind", "t/a/small");
    fs::remove_file(at("a/small")).unwrap();
    fs::rename(at("a/other"), at("a/small")).unwrap();
    // A link to the same folder is no folder.
    fs::rename(at("a"), at("b")).unwrap();
    symlink("b", at("a")).unwrap();
    let outcome = verify_target(&world);
    outcome.expect_error(8);
    let kind = |path: &str| ("kind".to_owned(), path.to_owned());
    assert_eq!(differences(&outcome), [kind("t/a"), kind("t/a/small")]);
    fs::remove_file(at("a")).unwrap();
    fs::rename(at("b"), at("a")).unwrap();
    // Folders and links.
    fs::remove_dir(at("nobody")).unwrap();
    expect_difference(&world, "missing", "t/nobody");
    fs::create_dir(at("nobody")).unwrap();
    fs::remove_file(at("link")).unwrap();
    symlink("elsewhere", at("link")).unwrap();
    expect_difference(&world, "changed", "t/link");
    fs::remove_file(at("link")).unwrap();
    symlink("a/small", at("link")).unwrap();
    // A name that is unsafe at a terminal.
    fs::remove_file(world.target().join("t").join(odd)).unwrap();
    expect_difference(&world, "missing", "t/odd \\xff\\x0a\\x1b[31m");
    let mut command = world.wraith("receiver");
    let output = command.arg("verify").arg(world.target()).output().unwrap();
    assert_eq!(output.status.code(), Some(8));
    assert!(!output.stdout.contains(&0x1b) && !output.stderr.contains(&0x1b));
    assert_eq!(output.stdout, b"t/odd \\xff\\x0a\\x1b[31m: it is missing\n");
}

#[test]
fn unreadable_entries_are_named() {
    let (world, film) = World::with_file("film.mov", 1, 1000);
    world.transfer(&[&film]);
    tree::set_mode(&world.target().join("film.mov"), 0);
    let mut verify = world.wraith_as_nobody("receiver");
    verify.args(["verify", "--json"]).arg(world.target());
    assert_one_difference(
        &Process::start("verify", &mut verify).finish(),
        "unreadable",
        "film.mov",
    );
}

#[test]
fn a_record_that_was_edited_proves_nothing() {
    let world = World::new();
    let (a, b) = (world.source().join("aaa"), world.source().join("bbb"));
    tree::file(&a, 1, 1000);
    tree::file(&b, 2, 1000);
    world.transfer(&[&a, &b]);
    verify_target(&world).expect_exit(0);
    let record = records(&world).remove(0);
    let good = fs::read(&record).unwrap();
    let find = |bytes: &[u8], name: &[u8]| {
        bytes.windows(name.len()).position(|window| window == name).unwrap()
    };
    let swap_names = |bytes: &mut Vec<u8>| {
        let (a, b) = (find(bytes, b" aaa\0"), find(bytes, b" bbb\0"));
        bytes[a + 1..a + 4].copy_from_slice(b"bbb");
        bytes[b + 1..b + 4].copy_from_slice(b"aaa");
    };
    let drop_a_line = |bytes: &mut Vec<u8>| {
        let from = find(bytes, b"\0f ") + 1;
        let len = bytes[from..].iter().position(|&byte| byte == 0).unwrap() + 1;
        bytes.drain(from..from + len);
    };
    let edits: [&Edit<'_>; 7] = [
        &|bytes| bytes[good.len() / 2] ^= 1,
        &swap_names,
        &drop_a_line,
        &|bytes| bytes.truncate(good.len() - 1),
        &|bytes| bytes.truncate(good.len() / 2),
        &|bytes| bytes.extend_from_slice(b"f 1 - - more\0"),
        &|bytes| {
            bytes
                .splice(find(&good, b"receipt ")..find(&good, b"by "), *b"receipt aa\0")
                .for_each(drop)
        },
    ];
    for (n, change) in edits.iter().enumerate() {
        fs::write(&record, &good).unwrap();
        edit(&record, |bytes| change(bytes));
        let listed = verify(&world, &["--list".as_ref()]);
        listed.expect_exit(0);
        let id = record.file_stem().unwrap().to_str().unwrap().split_once('-').unwrap().1;
        let outcome = verify(&world, &[id.as_ref()]);
        let error = outcome.expect_error(8);
        assert!(
            error["message"].as_str().unwrap().contains("was changed after it was signed"),
            "{n}: {error}"
        );
        assert_eq!(outcome.all("verified").count(), 0);
    }
    for garbage in [&b""[..], b"\0", b"wraith received 1\0", &[0xff; 100_000]] {
        fs::write(&record, garbage).unwrap();
        let id = record.file_stem().unwrap().to_str().unwrap().split_once('-').unwrap().1;
        verify(&world, &[id.as_ref()]).expect_error(8);
    }
}

#[test]
fn two_transfers_into_one_folder_are_two_records() {
    let world = World::new();
    let (one, two) = (world.source().join("one"), world.source().join("two"));
    tree::file(&one, 1, 1000);
    tree::file(&two, 2, 1000);
    world.transfer(&[&one]);
    let first = records(&world).remove(0);
    let id = first.file_stem().unwrap().to_str().unwrap().split_once('-').unwrap().1.to_owned();
    world.transfer(&[&two]);
    assert_eq!(records(&world).len(), 2);
    fs::remove_file(world.target().join("one")).unwrap();
    let both = verify(&world, &[id.as_ref()]);
    both.expect_error(8);
    assert_eq!(differences(&both), [("missing".to_owned(), "one".to_owned())]);
}

#[test]
fn a_folder_that_was_moved_is_found_when_it_is_named() {
    let (world, film) = World::with_file("film.mov", 1, 1000);
    world.transfer(&[&film]);
    let id = {
        let listed = verify(&world, &["--list".as_ref()]);
        listed.last("received")["id"].as_str().unwrap().to_owned()
    };
    let moved = world.path("moved");
    fs::rename(world.target(), &moved).unwrap();
    verify(&world, &[id.as_ref()]).expect_error(8);
    verify(&world, &[id.as_ref(), "--moved-to".as_ref(), moved.as_os_str()]).expect_exit(0);
    // By its former path, too.
    let old = world.target();
    verify(&world, &[old.as_os_str(), "--moved-to".as_ref(), moved.as_os_str()]).expect_exit(0);
    for path in [old.as_os_str(), moved.as_os_str()] {
        let outcome = verify(&world, &[path]);
        let error = outcome.last("error");
        assert!(error["hint"].as_str().unwrap().contains("OLD --moved-to NEW"), "{error}");
    }
}

/// Offers a folder with many small files and a large one, which comes last.
fn many_and_a_large_one(
    folder: &str,
    count: u64,
    len: usize,
    name: impl Fn(u64) -> String,
) -> (World, Process, String) {
    let world = World::new();
    let root = world.source().join(folder);
    tree::files(&root, count, len, name);
    tree::file(&root.join("z-large"), count + 1, 200 << 20);
    let mut sender = world.send_with(&[&root], &["--reconnect", "60"]);
    let ticket = sender.ticket();
    (world, sender, ticket)
}

#[test]
fn files_of_an_earlier_connection_are_verified_too() {
    let (world, sender, ticket) = many_and_a_large_one("tree", 40, 5000, |n| format!("small-{n}"));
    let mut receiver = world.receive_with(&ticket, &["--rate", "40M"]);
    // Names are given once their content is on the disk, which may take longer than the first
    // chunks of the large file.
    receiver.event("file");
    support::journal::wait_until_verified(&world.target().join("tree"), "z-large", 2);
    // It stops cleanly, so its list is complete.
    receiver.signal(libc::SIGINT);
    receiver.finish().expect_error(130);
    let again = world.receive(&ticket).succeed();
    sender.succeed();
    assert!(again.all("file").any(|file| file["status"] == "already-here"));
    let outcome = verify_target(&world);
    outcome.expect_exit(0);
    let verified = outcome.last("verified");
    assert_eq!(
        (verified["files"].as_u64(), verified["not_received"].as_u64()),
        (Some(41), Some(0))
    );
    tree::file(&world.target().join("tree/small-3"), 99, 5000);
    expect_difference(&world, "changed", "tree/small-3");
}

#[test]
fn a_record_that_is_not_wanted_or_cannot_be_kept_costs_nothing_else() {
    let (world, film) = World::with_file("film.mov", 1, 1000);
    let mut sender = world.send(&[&film]);
    world.receive_with(&sender.ticket(), &["--no-record"]).succeed();
    sender.succeed();
    verify_target(&world).expect_error(1);
    assert!(records(&world).is_empty());

    // A file has the name of the folder for received lists.
    fs::remove_dir(world.path("home-receiver/received")).unwrap();
    fs::write(world.path("home-receiver/received"), "").unwrap();
    let (_, received) = world.transfer(&[&film]);
    let note = received.last("note")["message"].as_str().unwrap();
    assert!(note.contains("no list was saved"), "{note}");
}

#[test]
fn a_full_record_counts_its_omitted_entries() {
    let world = World::new();
    let root = world.source().join("t");
    for n in 0..2000 {
        tree::file(&root.join(format!("file-{n:04}")), n, 10);
    }
    let mut sender = world.send(&[&root]);
    let received = world.receive_with(&sender.ticket(), &["--record-max", "64K"]).succeed();
    sender.succeed();
    let note =
        received.all("note").find(|note| note["message"].to_string().contains("--record-max"));
    assert!(note.is_some(), "{:?}", received.all("note").collect::<Vec<_>>());
    let record = records(&world).remove(0);
    let bytes = fs::metadata(&record).unwrap().len();
    assert!((60 << 10..=64 << 10).contains(&bytes), "{bytes}");

    // Listed files are checked, and the others are counted.
    let outcome = verify_target(&world);
    outcome.expect_exit(0);
    let verified = outcome.last("verified");
    let (files, unlisted) =
        (verified["files"].as_u64().unwrap(), verified["unlisted"].as_u64().unwrap());
    assert!(files > 400 && unlisted > 400, "{verified}");
    assert_eq!(files + unlisted, 2000);
    let mut command = world.wraith("receiver");
    let output = command.arg("verify").arg(world.target()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains(&format!("{unlisted} files are not in the list")), "{said}");
    let text = fs::read(&record).unwrap();
    let listed = |n: &u64| {
        let name = format!(" t/file-{n:04}\0");
        text.windows(name.len()).any(|window| window == name.as_bytes())
    };
    let (inside, outside): (Vec<u64>, Vec<u64>) = (0..2000).partition(listed);
    let at = |n: u64| world.target().join(format!("t/file-{n:04}"));
    fs::remove_file(at(outside[0])).unwrap();
    verify_target(&world).expect_exit(0);
    fs::remove_file(at(inside[0])).unwrap();
    expect_difference(&world, "missing", &format!("t/file-{:04}", inside[0]));

    // The signature also covers the number of unlisted files.
    edit(&record, |bytes| {
        let name = b"\0rest ";
        let at = bytes.windows(name.len()).position(|window| window == name).unwrap() + name.len();
        bytes[at] = if bytes[at] == b'1' { b'2' } else { b'1' };
    });
    let id = record.file_stem().unwrap().to_str().unwrap().split_once('-').unwrap().1;
    let outcome = verify(&world, &[id.as_ref()]);
    let error = outcome.expect_error(8);
    assert!(
        error["message"].as_str().unwrap().contains("was changed after it was signed"),
        "{error}"
    );
}

#[test]
fn lists_of_unfinished_transfers_are_bounded() {
    let (world, sender, ticket) = many_and_a_large_one("t", 300, 10, |n| format!("file-{n:04}"));
    let room = ["--record-max", "64K", "--rate", "20M"];
    let part = || {
        let parts =
            records(&world).into_iter().filter(|path| path.to_str().unwrap().ends_with(".part"));
        parts.map(|path| fs::metadata(path).unwrap().len()).sum::<u64>()
    };
    let there = world.target().join("t");
    for n in 1..=4 {
        let chunks = support::journal::verified_chunks(&there, "z-large");
        let receiver = world.receive_with(&ticket, &room);
        support::journal::wait_until_verified(&there, "z-large", chunks + 2);
        receiver.signal(libc::SIGINT);
        let stopped = receiver.finish();
        let hint = stopped.expect_error(130)["hint"].as_str().unwrap();
        assert!(hint.contains("--record-max 64K"), "{hint}");
        let bytes = part();
        assert!((1..=128 << 10).contains(&bytes), "{bytes} bytes after {n}");
    }
    world.receive_with(&ticket, &room[..2]).succeed();
    sender.succeed();
    assert_eq!(records(&world).len(), 1);
    verify_target(&world).expect_exit(0);
}
