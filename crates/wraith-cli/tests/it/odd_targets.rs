//! Targets with the habits of other systems' file systems: every content arrives under some name,
//! or the entry is reported as failed and both sides exit with 10.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::odd_disk::{Habits, odd_disk};
use crate::support::{Outcome, Process, World, tree};

/// Returns how often each content is in the regular files below `folder`. No unfinished file must be
/// left. After a failure, the list of completed files stays for the next attempt.
fn contents(folder: &Path) -> BTreeMap<Vec<u8>, usize> {
    let mut all = BTreeMap::new();
    for item in fs::read_dir(folder).unwrap() {
        let item = item.unwrap();
        let name = item.file_name().into_string().unwrap();
        if name.starts_with(".wraith-") && name.ends_with(".state") {
            continue;
        }
        assert!(!name.contains(".wraith-"), "{name} is left");
        let kind = item.file_type().unwrap();
        if kind.is_dir() {
            for (content, count) in contents(&item.path()) {
                *all.entry(content).or_default() += count;
            }
        } else if kind.is_file() {
            *all.entry(fs::read(item.path()).unwrap()).or_default() += 1;
        }
    }
    all
}

/// Writes a file with a content of its own.
fn write(root: &Path, name: &str, bytes: usize) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let line = format!("{name} {bytes} ");
    fs::write(path, line.as_bytes().iter().cycle().take(bytes).copied().collect::<Vec<_>>())
        .unwrap();
}

fn transfer(world: &World, policy: &str) -> (Outcome, Outcome) {
    let mut sender = world.send(&[world.source().join("tree")]);
    let ticket = sender.ticket();
    let received = world.receive_with(&ticket, &["--on-conflict", policy]).finish();
    (sender.finish(), received)
}

/// Sends `source/tree` and returns the outcome of the receiver, after a check that nothing is lost.
fn expect_all(world: &World, policy: &str) {
    let (sent, received) = transfer(world, policy);
    received.expect_exit(0);
    sent.expect_exit(0);
    let there = contents(&world.target());
    assert_eq!(tree::leftovers(&world.target()), Vec::<PathBuf>::new());
    let lost: Vec<_> = contents(&world.source())
        .into_keys()
        .filter(|content| !there.contains_key(content))
        .map(|content| String::from_utf8_lossy(&content[..content.len().min(40)]).into_owned())
        .collect();
    assert!(lost.is_empty(), "{policy}: lost {lost:?}");
    let mut verify = world.wraith("receiver");
    let target = world.target();
    verify.args(["verify", "--json"]).arg(&target);
    Process::start("verify", &mut verify).succeed();
}

/// Writes pairs of names that differ only in case: small and large files, and whole folders.
fn write_twins(root: &Path) {
    for n in 0..13 {
        write(root, &format!("file-{n}"), 100 + n);
        write(root, &format!("FILE-{n}"), 100 + n);
        write(root, &format!("Größe-{n}.txt"), 3000);
        write(root, &format!("GRÖSSE-{n}.txt"), 3000);
    }
    for n in 0..3 {
        write(root, &format!("film-{n}.mov"), 600_000);
        write(root, &format!("Film-{n}.mov"), 600_000);
        write(root, &format!("dir/x{n}"), 50);
        write(root, &format!("Dir/X{n}"), 50);
        write(root, &format!("DIR/only-{n}"), 50);
    }
    write(root, "kind/a", 10);
    write(root, "KIND", 10);
}

fn check(habits: Habits, write: impl Fn(&Path)) {
    for policy in ["rename", "overwrite", "skip"] {
        let world = World::new();
        let Some(_disk) = odd_disk(habits, &world.target()) else { return };
        write(&world.source().join("tree"));
        expect_all(&world, policy);
        // Nothing is lost when everything is there already, and when it is not all of it.
        expect_all(&world, policy);
    }
}

#[test]
fn names_that_differ_only_in_case_arrive_where_they_are_one_name() {
    check(Habits { folds_case: true, ..Habits::default() }, write_twins);
}

#[test]
fn names_that_differ_only_in_case_arrive_where_inodes_go_by_path() {
    let habits = Habits { folds_case: true, inodes_by_path: true, ..Habits::default() };
    check(habits, write_twins);
    check(Habits { no_links: true, no_noreplace: true, ..habits }, write_twins);
}

#[test]
fn names_that_are_one_in_unicode_arrive_where_they_are_one_name() {
    for inodes_by_path in [false, true] {
        check(Habits { normalises: true, inodes_by_path, ..Habits::default() }, |root| {
            for n in 0..8 {
                write(root, &format!("caf\u{e9}-{n}"), 90 + n);
                write(root, &format!("cafe\u{301}-{n}"), 90 + n);
            }
            write(root, "\u{e9}.mov", 600_000);
            write(root, "e\u{301}.mov", 600_000);
        });
    }
}

#[test]
fn long_names_that_are_cut_to_one_name_all_arrive() {
    check(Habits { cuts_names: Some(143), ..Habits::default() }, |root| {
        let long = "long ".repeat(40);
        for n in 0..4 {
            write(root, &format!("{long}{n}.txt"), 77);
            write(root, &format!("{long}{n}.mov"), 600_000);
        }
    });
}

/// Sends good and bad entries, and expects the good ones and both exit codes.
fn expect_bad_alone(habits: Habits, bad: &[&str], bytes: usize) {
    for policy in ["rename", "overwrite"] {
        let world = World::new();
        let Some(_disk) = odd_disk(habits, &world.target()) else { return };
        let root = world.source().join("tree");
        for n in 0..10 {
            write(&root, &format!("good-{n}"), 1000 + n);
        }
        write(&root, "zz-good.mov", 600_000);
        let good = contents(&root);
        for name in bad {
            write(&root, name, bytes);
        }
        let (sent, received) = transfer(&world, policy);
        received.expect_exit(10);
        sent.expect_exit(10);
        assert_eq!(contents(&world.target()), good);
        let notes: Vec<_> = received.all("note").map(|note| note.to_string()).collect();
        for name in bad {
            let name = name.split('/').next().unwrap();
            assert!(notes.iter().any(|note| note.contains(&name[..3])), "{name}: {notes:?}");
        }
    }
}

#[test]
fn names_that_the_target_refuses_fail_alone() {
    let habits = Habits { refuses_characters: true, ..Habits::default() };
    for bytes in [100, 600_000] {
        expect_bad_alone(habits, &["b:c", "dot.", "que?stion", "sta*r/below"], bytes);
        expect_bad_alone(Habits { no_links: true, no_noreplace: true, ..habits }, &["b:c"], bytes);
        let habits = Habits { refuses_long_names: Some(143), ..Habits::default() };
        expect_bad_alone(habits, &["x".repeat(200).as_str()], bytes);
    }
}

#[test]
fn a_file_above_the_size_limit_of_the_target_fails_alone() {
    let habits = Habits { size_max: Some(1 << 20), ..Habits::default() };
    expect_bad_alone(habits, &["large.mov"], (1 << 20) + 1);
}

#[test]
fn a_target_without_links_modes_and_exact_times_holds_every_content() {
    let habits = Habits {
        no_links: true,
        no_noreplace: true,
        no_modes: true,
        coarse_times: true,
        inodes_by_path: true,
        ..Habits::default()
    };
    check(habits, |root| {
        for n in 0..20 {
            write(root, &format!("folder-{}/f{n}", n % 3), 500 + n);
        }
        write(root, "film.mov", 900_000);
    });
}
