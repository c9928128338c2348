//! Commands without a peer.

use std::fs;
use std::process::Output;

use crate::support::{World, tree};

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn id_prints_the_same_node_id_every_time() {
    let world = World::new();
    let id = |side: &str| text(&world.wraith(side).arg("id").output().unwrap());
    let first = id("one");
    assert_eq!(first.trim().len(), 52);
    assert_eq!(id("one"), first);
    assert_ne!(id("two"), first);
}

#[test]
fn hash_prints_what_b3sum_prints() {
    let world = World::new();
    let mut expected = String::new();
    let mut command = world.wraith("one");
    command.arg("hash");
    for (name, len) in [("empty", 0), ("small", 10), ("large", 5_000_000)] {
        let path = world.source().join(name);
        tree::file(&path, 3, len);
        let hash = blake3::hash(&fs::read(&path).unwrap()).to_hex();
        expected.push_str(&format!("{hash}  {}\n", path.display()));
        command.arg(path);
    }
    let sparse = world.source().join("sparse");
    tree::sparse(&sparse, (8 << 20) + 5, &[0, 4 << 20]);
    let hash = blake3::hash(&fs::read(&sparse).unwrap()).to_hex();
    expected.push_str(&format!("{hash}  {}\n", sparse.display()));
    command.arg(sparse);
    assert_eq!(text(&command.output().unwrap()), expected);
}

#[test]
fn hash_reads_standard_input_as_b3sum_does() {
    let (world, path) = World::with_file("file", 3, 5_000_000);
    let hash = blake3::hash(&fs::read(&path).unwrap()).to_hex();
    for words in [&["hash"][..], &["hash", "-"]] {
        let mut command = world.wraith("one");
        let output = command.args(words).stdin(fs::File::open(&path).unwrap()).output().unwrap();
        assert_eq!(text(&output), format!("{hash}  -\n"));
    }
}

#[test]
fn a_file_that_cannot_be_read_does_not_stop_the_others() {
    let (world, there) = World::with_file("there", 1, 10);
    let mut command = world.wraith("one");
    let output = command.arg("hash").arg(world.path("missing")).arg(&there).output().unwrap();
    assert_eq!(output.status.code(), Some(7));
    assert!(String::from_utf8_lossy(&output.stdout).ends_with("there\n"));
    assert!(String::from_utf8_lossy(&output.stderr).contains("missing: No such file"));
}

#[test]
fn a_file_that_cannot_be_read_has_its_event() {
    let world = World::new();
    let missing = world.path("missing");
    let mut command = world.wraith("one");
    let output =
        command.args(["hash", "--json"]).arg(&missing).arg(world.source()).output().unwrap();
    let events = String::from_utf8(output.stdout).unwrap();
    let events: Vec<serde_json::Value> =
        events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<_> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(names, ["hash_failed", "hash_failed", "error"]);
    assert_eq!(events[0]["path"], missing.to_str().unwrap());
    assert!(events[1]["message"].as_str().unwrap().contains("directory"), "{}", events[1]);
}
