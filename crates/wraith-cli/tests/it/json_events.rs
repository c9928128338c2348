//! The events of `--json`: their kinds, order and fields.

use crate::support::{Outcome, World, tree};

/// Returns the kinds of events in order, without repetitions.
fn kinds(outcome: &Outcome) -> Vec<&str> {
    let mut kinds: Vec<&str> =
        outcome.events.iter().map(|e| e["event"].as_str().unwrap()).collect();
    kinds.retain(|kind| *kind != "progress" && *kind != "file");
    kinds.dedup();
    kinds
}

#[test]
fn both_sides_report_events_in_order() {
    let (world, film) = World::with_file("film.mov", 1, 3_000_000);
    let (sent, received) = world.transfer(&[&film]);
    assert_eq!(kinds(&sent), ["ready", "connected", "offer", "accept", "done"]);
    assert_eq!(kinds(&received), ["connected", "offer", "accept", "done"]);

    for outcome in [&sent, &received] {
        assert_eq!(outcome.last("connected")["path"], "loopback");
        let (offer, done) = (outcome.last("offer"), outcome.last("done"));
        assert_eq!((&offer["files"], &offer["bytes"]), (&1.into(), &3_000_000.into()));
        assert_eq!((&done["files"], &done["bytes"]), (&1.into(), &3_000_000.into()));
        assert!(done["seconds"].as_f64().is_some_and(|s| s > 0.0));
        assert!(done["receipt"].as_str().is_some_and(|r| !r.is_empty()));
        let progress = outcome.last("progress");
        assert_eq!(
            (&progress["bytes"], &progress["total"]),
            (&3_000_000.into(), &3_000_000.into())
        );
    }
    assert_eq!(sent.last("done")["receipt"], received.last("done")["receipt"]);
}

#[test]
fn every_file_is_reported_with_its_blake3() {
    let world = World::new();
    let root = world.source().join("tree");
    for (name, len) in [("a", 0), ("b", 100), ("c", 262_144), ("d", 1_000_000)] {
        tree::file(&root.join(name), 1, len);
    }
    let (_, received) = world.transfer(&[&root]);
    let mut reported: Vec<_> = received.all("file").collect();
    reported.sort_by_key(|event| event["path"].as_str().unwrap());
    assert_eq!(reported.len(), 4);
    for (event, name) in reported.iter().zip(["a", "b", "c", "d"]) {
        let hash = blake3::hash(&std::fs::read(root.join(name)).unwrap());
        assert_eq!(event["path"], format!("tree/{name}"));
        assert_eq!(event["status"], "done");
        assert_eq!(event["root"], hash.to_hex().as_str());
    }
}
