//! Names taken at the target by another kind of entry: a folder's name by a file or a link, a
//! file's or a link's by a folder. The conflict policy applies to them and to everything below a
//! folder, as the dry run announces.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::disk_image::{FileSystem, disk, images};
use crate::support::journal::wait_until_verified;
use crate::support::odd_disk::{Habits, odd_disk};
use crate::support::{Outcome, Process, World, tree};

/// Makes the offered tree. Each name is of one kind here and of another at the target.
fn offered(root: &Path) {
    tree::file(&root.join("folder-on-file/in/large"), 1, 600_000);
    tree::file(&root.join("folder-on-file/small"), 2, 100);
    symlink("small", root.join("folder-on-file/to small")).unwrap();
    tree::set_time(&root.join("folder-on-file/in"), 1_500_000_000, 7);
    tree::set_mode(&root.join("folder-on-file"), 0o750);
    tree::set_time(&root.join("folder-on-file"), 1_600_000_000, 9);
    tree::file(&root.join("folder-on-link/x"), 3, 100);
    tree::file(&root.join("file-on-empty"), 4, 100);
    tree::file(&root.join("file-on-full"), 5, 100);
    tree::file(&root.join("large-on-full"), 6, 600_000);
    symlink("file-on-full", root.join("link-on-empty")).unwrap();
    symlink("file-on-full", root.join("link-on-full")).unwrap();
}

/// Makes the entries at the target that take the names.
fn there(root: &Path) {
    fs::create_dir_all(root).unwrap();
    fs::write(root.join("folder-on-file"), "mine").unwrap();
    symlink("elsewhere", root.join("folder-on-link")).unwrap();
    for name in ["file-on-empty", "link-on-empty"] {
        fs::create_dir(root.join(name)).unwrap();
    }
    for name in ["file-on-full", "large-on-full", "link-on-full"] {
        fs::create_dir(root.join(name)).unwrap();
        fs::write(root.join(name).join("mine"), "mine").unwrap();
    }
}

fn dry_run(world: &World, ticket: &str, more: &[&str]) -> Vec<Value> {
    let mut command = world.wraith("receiver");
    command
        .args(["receive", "--json", "--dry-run", "-o"])
        .arg(world.target())
        .args(more)
        .arg(ticket);
    let looked = Process::start("receive", &mut command).succeed();
    looked.all("would_receive").cloned().collect()
}

/// Compares the announcement of a dry run for each entry with the result.
fn expect_as_said(said: &[Value], world: &World) {
    for entry in said {
        let (offered, action) =
            (entry["path"].as_str().unwrap(), entry["action"].as_str().unwrap());
        let place = world.target().join(entry["arrives_as"].as_str().unwrap_or(offered));
        let (from, own) = (world.source().join(offered), world.target().join(offered));
        if action == "skip" {
            let is_same = own.symlink_metadata().is_ok_and(|there| {
                there.file_type() == from.symlink_metadata().unwrap().file_type()
            });
            assert!(!is_same, "{offered} was to be skipped");
            continue;
        }
        if from.is_dir() && !from.is_symlink() {
            assert!(place.is_dir() && !place.is_symlink(), "{entry}");
        } else {
            tree::assert_same(&from, &place);
        }
        assert_eq!(
            action == "rename",
            !entry["arrives_as"].is_null() && {
                let (own, other) = (Path::new(offered), entry["arrives_as"].as_str().unwrap());
                own.file_name() != Path::new(other).file_name()
            },
            "{entry}"
        );
    }
}

/// Transfers after a dry run, with this policy, into a folder where all names are taken.
fn conflicted(policy: &[&str]) -> (World, Vec<Value>, Outcome) {
    let world = World::new();
    let tree = world.source().join("t");
    offered(&tree);
    there(&world.target().join("t"));
    let mut sender = world.send(&[&tree]);
    let ticket = sender.ticket();
    let said = dry_run(&world, &ticket, policy);
    let received = world.receive_with(&ticket, policy).succeed();
    sender.succeed();
    expect_as_said(&said, &world);
    assert!(tree::leftovers(&world.target()).is_empty());
    (world, said, received)
}

fn action<'a>(said: &'a [Value], path: &str) -> (&'a str, Option<&'a str>) {
    let entry = said.iter().find(|entry| entry["path"] == path).unwrap();
    (entry["action"].as_str().unwrap(), entry["arrives_as"].as_str())
}

fn expect_untouched(world: &World, names: &[&str]) {
    let (before, target) = (World::new(), world.target().join("t"));
    there(&before.target());
    for name in names {
        let (mine, now) = (before.target().join(name), target.join(name));
        let of = |path: &Path| path.symlink_metadata().unwrap().file_type();
        assert_eq!(of(&mine), of(&now), "{name}");
        if now.is_dir() {
            assert_eq!(tree::names(&mine), tree::names(&now), "{name}");
        } else if now.is_file() {
            assert_eq!(fs::read(&now).unwrap(), b"mine", "{name}");
        }
    }
}

const ALL: [&str; 7] = [
    "folder-on-file",
    "folder-on-link",
    "file-on-empty",
    "file-on-full",
    "large-on-full",
    "link-on-empty",
    "link-on-full",
];

#[test]
fn by_default_everything_gets_a_new_name_with_all_that_is_in_it() {
    let (world, said, received) = conflicted(&[]);
    expect_untouched(&world, &ALL);
    let target = world.target().join("t");
    assert_eq!(action(&said, "t/folder-on-file"), ("rename", Some("t/folder-on-file (1)")));
    assert_eq!(
        action(&said, "t/folder-on-file/in/large"),
        ("new", Some("t/folder-on-file (1)/in/large"))
    );
    // Modes, times, links and content of the whole tree.
    for name in
        ["folder-on-file", "folder-on-link", "file-on-empty", "large-on-full", "link-on-full"]
    {
        tree::assert_same(
            &world.source().join("t").join(name),
            &target.join(format!("{name} (1)")),
        );
    }
    let note = |path: &str| {
        received.all("note").find(|note| note["path"] == path).unwrap()["message"].clone()
    };
    assert!(note("t/folder-on-file").as_str().unwrap().contains("t/folder-on-file (1)"));
    assert!(note("t/link-on-full").as_str().unwrap().contains("t/link-on-full (1)"));

    // The received list has the actual names.
    let mut command = world.wraith("receiver");
    let verified =
        Process::start("verify", command.args(["verify", "--json"]).arg(world.target())).finish();
    verified.expect_exit(0);
    assert_eq!(verified.last("verified")["files"], 6);
    fs::write(target.join("folder-on-file (1)/small"), "changed").unwrap();
    let mut command = world.wraith("receiver");
    let changed =
        Process::start("verify", command.args(["verify", "--json"]).arg(world.target())).finish();
    changed.expect_error(8);
    assert_eq!(changed.last("differs")["path"], "t/folder-on-file (1)/small");
}

#[test]
fn skip_leaves_out_the_folder_and_everything_below_it() {
    let (world, said, received) = conflicted(&["--on-conflict", "skip"]);
    expect_untouched(&world, &ALL);
    assert_eq!(tree::names(&world.target().join("t")).len(), ALL.len());
    assert_eq!(action(&said, "t/folder-on-file/in/large"), ("skip", None));
    // Six files, and their folders and links.
    assert_eq!(received.last("done")["skipped"], 12);
    let skipped = |file: &&Value| file["status"] == "skipped";
    assert_eq!(received.all("file").filter(skipped).count(), 6);
}

#[test]
fn overwrite_replaces_files_links_and_empty_folders_and_no_tree() {
    let (world, said, received) = conflicted(&["--on-conflict", "overwrite"]);
    expect_untouched(&world, &["file-on-full", "large-on-full", "link-on-full"]);
    let (source, target) = (world.source().join("t"), world.target().join("t"));
    for name in ["folder-on-file", "folder-on-link", "file-on-empty", "link-on-empty"] {
        assert_eq!(action(&said, &format!("t/{name}")), ("overwrite", None));
        tree::assert_same(&source.join(name), &target.join(name));
        assert!(!target.join(format!("{name} (1)")).exists());
    }
    for name in ["file-on-full", "large-on-full", "link-on-full"] {
        let other = format!("t/{name} (1)");
        assert_eq!(action(&said, &format!("t/{name}")), ("rename", Some(other.as_str())));
        tree::assert_same(&source.join(name), &world.target().join(&other));
        let is_told = |note: &Value| {
            let message = note["message"].as_str().unwrap();
            message.contains("a folder that is not empty") && message.ends_with(&other)
        };
        assert!(received.all("note").any(is_told), "{name}");
    }
}

#[test]
fn a_renamed_file_is_not_overwritten_by_a_later_one() {
    let world = World::new();
    let (source, target) = (world.source().join("t"), world.target().join("t"));
    for name in ["a", "b"] {
        tree::file(&source.join(name), 1, 3000);
        tree::file(&target.join(name).join("keep"), 2, 7);
    }
    symlink("elsewhere", source.join("a (1)")).unwrap();
    tree::file(&source.join("b (1)").join("inside"), 3, 10);
    let mut sender = world.send(&[&source]);
    world.receive_with(&sender.ticket(), &["--on-conflict", "overwrite"]).succeed();
    sender.succeed();
    // All of them exist, under any name.
    let content = fs::read(source.join("a")).unwrap();
    let names = tree::names(&target);
    let files = names.iter().map(|name| target.join(name)).filter(|path| path.is_file());
    assert_eq!(files.filter(|path| fs::read(path).unwrap() == content).count(), 2, "{names:?}");
    let links = names.iter().filter(|name| target.join(name).is_symlink()).count();
    let inside = names.iter().filter(|name| target.join(name).join("inside").exists()).count();
    assert_eq!((links, inside), (1, 1), "{names:?}");
}

#[test]
fn two_folders_of_an_offer_never_come_into_one() {
    let (world, tree) = World::with_tree("t", &[("a/of a", 10), ("a (1)/of a 1", 10)]);
    fs::create_dir(world.target().join("t")).unwrap();
    fs::write(world.target().join("t/a"), "mine").unwrap();
    let mut sender = world.send(&[&tree]);
    let ticket = sender.ticket();
    let said = dry_run(&world, &ticket, &[]);
    world.receive(&ticket).succeed();
    sender.succeed();
    expect_as_said(&said, &world);
    let target = world.target().join("t");
    tree::assert_same(&tree.join("a"), &target.join("a (1)"));
    tree::assert_same(&tree.join("a (1)"), &target.join("a (1) (1)"));
}

/// Kills the receiver while a folder arrives as `t (2)`, because its own name is taken. Returns the
/// sender and its ticket.
fn kill_in_renamed_folder(world: &World) -> (Process, String) {
    let tree = world.tree("t", &[("a", 10)]);
    tree::file(&tree.join("film"), 2, 40 << 20);
    tree::set_mode(&tree, 0o750);
    for path in [tree.join("a"), tree.join("film"), tree.clone()] {
        // Some targets only store whole seconds.
        tree::set_time(&path, 1_500_000_000, 0);
    }
    fs::write(world.target().join("t"), "mine").unwrap();
    // A folder of another transfer, whose content must stay unchanged.
    fs::create_dir(world.target().join("t (1)")).unwrap();
    fs::write(world.target().join("t (1)/a"), "mine").unwrap();
    let mut sender = world.send_with(&[&tree], &["--reconnect", "600"]);
    let ticket = sender.ticket();
    let receiver = world.receive_with(&ticket, &["--rate", "20M"]);
    wait_until_verified(&world.target().join("t (2)"), "film", 80);
    receiver.kill();
    (sender, ticket)
}

/// Kills the receiver while a renamed folder arrives. The same command must continue in that folder.
fn expect_own_folder_resumed(world: &World) {
    let before = tree::names(&world.target());
    let (sender, ticket) = kill_in_renamed_folder(world);
    let ino = fs::metadata(world.target().join("t (2)")).unwrap().ino();

    let said = dry_run(world, &ticket, &[]);
    assert_eq!(action(&said, "t"), ("rename", Some("t (2)")));
    assert_eq!(action(&said, "t/film"), ("continue", Some("t (2)/film")));
    let received = world.receive(&ticket).succeed();
    sender.succeed();
    assert!(received.last("done")["bytes_moved"].as_u64().unwrap() < 24 << 20, "it was continued");
    assert_eq!(fs::metadata(world.target().join("t (2)")).unwrap().ino(), ino);
    tree::assert_same(&world.source().join("t"), &world.target().join("t (2)"));
    assert_eq!(fs::read(world.target().join("t (1)/a")).unwrap(), b"mine");
    assert_eq!(tree::leftovers(&world.target()), Vec::<PathBuf>::new());
    let mut new = tree::names(&world.target());
    new.retain(|name| !before.contains(name));
    assert_eq!(new, ["t", "t (1)", "t (2)"].map(PathBuf::from), "nothing else was made");
}

#[test]
fn after_a_kill_only_the_own_renamed_folder_is_resumed() {
    expect_own_folder_resumed(&World::new());
}

fn expect_no_creation_times(folder: &Path) {
    let created = fs::metadata(folder).unwrap().created();
    assert!(created.is_err(), "{} has creation times", folder.display());
}

#[test]
fn the_own_renamed_folder_is_resumed_where_no_creation_time_exists() {
    let world = World::new();
    let Some(_disk) = odd_disk(Habits::default(), &world.target()) else { return };
    expect_no_creation_times(&world.target());
    expect_own_folder_resumed(&world);
}

#[test]
fn a_folder_in_place_of_the_own_renamed_one_stays_unchanged_where_no_creation_time_exists() {
    let world = World::new();
    let Some(_disk) = odd_disk(Habits::default(), &world.target()) else { return };
    expect_no_creation_times(&world.target());
    let (sender, ticket) = kill_in_renamed_folder(&world);
    let mine = world.target().join("t (2)");
    fs::rename(&mine, world.target().join("moved")).unwrap();
    tree::file(&mine.join("a"), 3, 20);

    world.receive(&ticket).succeed();
    sender.succeed();
    tree::assert_same(&world.source().join("t"), &world.target().join("t (3)"));
    assert_eq!(tree::names(&mine), [Path::new("a")]);
    assert_eq!(fs::read(mine.join("a")).unwrap(), tree::noise(3, 20));
}

#[test]
fn the_own_renamed_folder_is_resumed_in_inodes_of_128_bytes() {
    let (world, images) = (World::new(), images());
    let Some(_disk) = disk(FileSystem::Ext4SmallInodes, &world.target(), images.path()) else {
        return;
    };
    expect_no_creation_times(&world.target());
    expect_own_folder_resumed(&world);
}
