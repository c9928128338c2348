//! Access for other users: permissions of the group and of others, and links that lead out of the
//! tree. Both are shown with the offer. The receiver's umask limits the permissions, unless the
//! user asks to keep them.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::process::Command;

use crate::support::journal::wait_until_verified;
use crate::support::{Process, World, tree};

/// Starts `wraith receive` under this umask.
fn receive(world: &World, umask: &str, ticket: &str, more: &[&str]) -> Process {
    let program = world.wraith("receiver");
    let mut command = Command::new("sh");
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.args(["-c", &format!("umask {umask}; exec \"$@\""), "sh"]).arg(program.get_program());
    command.args(["receive", "--json", "-o"]).arg(world.target()).args(more).arg(ticket);
    Process::start("receive", &mut command)
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())).mode()
        & 0o7777
}

/// Makes a tree in which everything is open to others.
fn open_tree(root: &Path) {
    tree::file(&root.join("folder/small"), 1, 100);
    tree::file(&root.join("folder/large"), 2, 600_000);
    tree::file(&root.join("taken"), 3, 100);
    for name in ["folder/small", "folder/large", "taken"] {
        tree::set_mode(&root.join(name), 0o6777);
    }
    tree::set_mode(&root.join("folder"), 0o3777);
    tree::set_mode(root, 0o755);
}

#[test]
fn the_umask_decides_about_permissions_and_special_bits_never_arrive() {
    for (umask, more, expected) in [
        ("022", &[][..], 0o755),
        ("077", &[], 0o700),
        ("022", &["--keep-modes"], 0o777),
        ("077", &["--keep-modes"], 0o777),
    ] {
        let world = World::new();
        let root = world.source().join("t");
        open_tree(&root);
        fs::create_dir(world.target().join("t")).unwrap();
        fs::write(world.target().join("t/taken"), "mine").unwrap();
        let mut sender = world.send(&[&root]);
        let more = [more, &["--yes"]].concat();
        receive(&world, umask, &sender.ticket(), &more).succeed();
        sender.succeed();
        for name in ["folder", "folder/small", "folder/large", "taken (1)"] {
            let now = mode(&world.target().join("t").join(name));
            assert_eq!(now, expected, "{name} under {umask} with {more:?}: {now:o}");
        }
    }
}

#[test]
fn a_file_that_is_resumed_has_the_permissions_of_the_run_that_ends_it() {
    let (world, film) = World::with_file("film", 1, 60 << 20);
    tree::set_mode(&film, 0o666);
    let mut sender = world.send_with(&[&film], &["--reconnect", "600"]);
    let ticket = sender.ticket();
    let first = receive(&world, "000", &ticket, &["--yes", "--rate", "20M"]);
    wait_until_verified(&world.target(), "film", 20);
    first.kill();
    receive(&world, "027", &ticket, &["--yes"]).succeed();
    sender.succeed();
    assert_eq!(mode(&world.target().join("film")), 0o640);
}

#[test]
fn risky_links_and_modes_are_shown_with_the_offer() {
    let (world, root) = World::with_tree("t", &[("inside", 10), ("open", 10)]);
    tree::set_mode(&root.join("open"), 0o662);
    symlink("inside", root.join("good")).unwrap();
    symlink("/etc/passwd", root.join("absolute")).unwrap();
    symlink("../beside", root.join("beside")).unwrap();
    symlink("../../above", root.join("up")).unwrap();
    let mut sender = world.send(&[&root]);
    let ticket = sender.ticket();
    let looked = receive(&world, "022", &ticket, &["--dry-run"]).succeed();
    let openings = looked.last("risky_entries");
    assert_eq!((&openings["leading_out"], &openings["writable"]), (&3.into(), &1.into()));
    assert_eq!(
        openings["leading_out_first"],
        serde_json::json!(["t/absolute", "t/beside", "t/up"])
    );
    assert_eq!(openings["writable_first"], serde_json::json!(["t/open"]));
    for entry in looked.all("would_receive") {
        let path = entry["path"].as_str().unwrap();
        assert_eq!(
            entry["leads_out"],
            ["t/absolute", "t/beside", "t/up"].contains(&path),
            "{path}"
        );
        assert_eq!(entry["writable"], path == "t/open", "{path}");
    }
    let mut command = world.wraith("receiver");
    command.args(["receive", "--dry-run", "-o"]).arg(world.target()).arg(&ticket);
    let said = String::from_utf8(command.output().unwrap().stderr).unwrap();
    assert!(
        said.contains("3 that point out of the received files (links): t/absolute, t/beside, t/up"),
        "{said}"
    );
    assert!(said.contains("1 that their group or every user may write to"), "{said}");
    drop(sender.kill());
}
