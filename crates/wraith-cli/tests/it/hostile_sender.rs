//! Senders that lie about names, content and counts. Nothing outside the target is touched, no
//! unverified file gets its name, and the receiver reports the reason.

use std::fs;
use std::path::PathBuf;

use crate::support::hostile::{HostileSender, Kind, Script, chunk, end, entry, manifest, whole};
use crate::support::{Outcome, World, tree};

/// Plays the script to `wraith receive`. Returns its outcome.
fn receive(world: &World, script: Script) -> Outcome {
    let sender = HostileSender::listen();
    let ticket = sender.ticket();
    let playing = sender.play(script);
    let outcome = world.receive_with(&ticket, &["--reconnect", "0"]).finish();
    playing.join().unwrap();
    outcome
}

fn file_named(path: &[u8]) -> Script {
    let bytes = b"gotcha";
    let root = *blake3::hash(bytes).as_bytes();
    Script {
        files: 1,
        bytes: 6,
        manifest: manifest(&[entry(path, &Kind::File(6))]),
        data: whole(0, root, bytes),
        ..Script::default()
    }
}

/// Returns everything next to and in the target, so that an escape is visible.
fn everything(world: &World) -> Vec<PathBuf> {
    let (outside, inside) = (tree::names(&world.path("")), tree::names(&world.target()));
    outside.into_iter().chain(inside).filter(|n| !n.starts_with("home-receiver")).collect()
}

#[test]
fn the_hostile_sender_can_also_be_honest() {
    let world = World::new();
    receive(&world, file_named(b"gift")).expect_exit(0);
    assert_eq!(fs::read(world.target().join("gift")).unwrap(), b"gotcha");
}

#[test]
fn a_name_that_could_leave_the_target_is_refused() {
    let long = vec![b'n'; 256];
    let deep = b"d/".repeat(200);
    for name in [
        &b"../escape"[..],
        b"a/../../escape",
        b"..",
        b".",
        b"/tmp/wraith-escape",
        b"a//b",
        b"a/",
        b"nul\0inside",
        b"",
        &long,
        &deep,
    ] {
        let world = World::new();
        let before = everything(&world);
        let outcome = receive(&world, file_named(name));
        let shown = String::from_utf8_lossy(name).into_owned();
        let code = outcome.status.code();
        assert_eq!(
            code,
            Some(11),
            "{shown:?}: {:?}\n{}",
            outcome.all("error").last(),
            outcome.stderr
        );
        assert_eq!(everything(&world), before, "{shown:?} left something behind");
    }
}

#[test]
fn nothing_is_written_through_a_link_of_the_manifest() {
    let world = World::new();
    let outside = world.path("outside");
    fs::create_dir(&outside).unwrap();
    let link = Kind::Link(outside.as_os_str().as_encoded_bytes().to_vec());
    let entries = [entry(b"way", &link), entry(b"way/out", &Kind::File(6))];
    let root = *blake3::hash(b"gotcha").as_bytes();
    let script = Script {
        files: 1,
        bytes: 6,
        manifest: manifest(&entries),
        data: whole(1, root, b"gotcha"),
        ..Script::default()
    };
    receive(&world, script).expect_error(11);
    assert!(tree::names(&outside).is_empty());
}

#[test]
fn nothing_is_written_through_a_link_that_is_there_already() {
    let world = World::new();
    let outside = world.path("outside");
    fs::create_dir(&outside).unwrap();
    std::os::unix::fs::symlink(&outside, world.target().join("tree")).unwrap();
    let root = world.tree("tree", &[("file", 100)]);
    let mut sender = world.send_with(&[root], &["--reconnect", "0"]);
    let received = world.receive_with(&sender.ticket(), &["--reconnect", "0"]).finish();
    assert!(tree::names(&outside).is_empty(), "{:?}", received.events);
}

#[test]
fn a_name_with_control_characters_arrives_but_never_reaches_the_terminal() {
    let world = World::new();
    let sender = HostileSender::listen();
    let ticket = sender.ticket();
    let name = "bell\u{7}\u{1b}[2J\u{202e}fdp.exe".as_bytes();
    let playing = sender.play(file_named(name));
    let mut command = world.wraith("receiver");
    command.args(["receive", "-o"]).arg(world.target()).arg(&ticket);
    let (reader, mut writer) = std::io::pipe().unwrap();
    std::io::Write::write_all(&mut writer, b"y\n").unwrap();
    let output = command.stdin(reader).output().unwrap();
    playing.join().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    assert!(!said.contains(['\u{7}', '\u{1b}', '\u{202e}']), "{said:?}");
    assert_eq!(tree::names(&world.target()).len(), 1);
}

/// Checks that the receiver fails, and does not keep the file `name`.
fn is_not_kept(world: &World, script: Script, name: &str) {
    receive(world, script).expect_error(8);
    assert!(!world.target().join(name).exists());
}

#[test]
fn a_small_file_with_other_bytes_than_its_root_is_not_kept() {
    let world = World::new();
    let script = Script { data: whole(0, [7; 32], b"gotcha"), ..file_named(b"gift") };
    is_not_kept(&world, script, "gift");
}

#[test]
fn a_chunk_with_other_bytes_than_its_chaining_value_is_not_kept() {
    let world = World::new();
    let size = 600_000;
    let script = Script {
        files: 1,
        bytes: size,
        manifest: manifest(&[entry(b"film", &Kind::File(size))]),
        data: chunk(0, 0, [7; 32], &vec![1; 256 << 10]),
        ..Script::default()
    };
    is_not_kept(&world, script, "film");
}

#[test]
fn a_root_that_its_chunks_do_not_make_is_not_kept() {
    let world = World::new();
    let bytes = tree::noise(1, (256 << 10) + 10);
    let (first, second) = bytes.split_at(256 << 10);
    let cv = |index: u64, bytes: &[u8]| wraith_files::Tree::Blake3.chunk_cv(index, &[bytes]);
    let data =
        [chunk(0, 0, cv(0, first), first), chunk(0, 1, cv(1, second), second), end(0, 2, [9; 32])];
    let script = Script {
        files: 1,
        bytes: bytes.len() as u64,
        manifest: manifest(&[entry(b"film", &Kind::File(bytes.len() as u64))]),
        data: data.concat(),
        ..Script::default()
    };
    is_not_kept(&world, script, "film");
}

#[test]
fn a_million_entries_behind_an_offer_of_one_are_cut_off() {
    let world = World::new();
    let entries: Vec<_> =
        (0..1_000_000).map(|n| entry(format!("{n:07}").as_bytes(), &Kind::File(0))).collect();
    let script = Script { files: 1, manifest: manifest(&entries), ..Script::default() };
    let outcome = receive(&world, script);
    assert!(matches!(outcome.status.code(), Some(1 | 8 | 11)), "{:?}", outcome.all("error").last());
    assert!(tree::names(&world.target()).len() < 10_000);
}

#[test]
fn bytes_that_are_no_messages_end_the_transfer() {
    for control in [
        vec![0xff; 100],
        [&4u32.to_be_bytes()[..], &[0xff; 4]].concat(),
        [&8u32.to_be_bytes()[..], &[0x82, 0x01, 0xbb, 0xff, 0xff, 0xff, 0xff, 0xff]].concat(),
    ] {
        let world = World::new();
        let outcome = receive(&world, Script { control, ..file_named(b"gift") });
        outcome.expect_error(1);
        assert!(tree::names(&world.target()).is_empty());
    }
}

#[test]
fn records_for_unannounced_files_end_the_transfer() {
    let world = World::new();
    let root = *blake3::hash(b"gotcha").as_bytes();
    let script = Script { data: whole(77, root, b"gotcha"), ..file_named(b"gift") };
    receive(&world, script).expect_error(1);
    assert!(!world.target().join("gift").exists());
}
