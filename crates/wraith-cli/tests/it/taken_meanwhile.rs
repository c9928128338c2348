//! A name that was free when the file was requested, and is taken when it has arrived.

use std::fs;
use std::path::PathBuf;

use crate::support::{Outcome, Process, World, journal, tree};

const SKIP: [&str; 2] = ["--on-conflict", "skip"];

fn verify(world: &World) -> Outcome {
    let mut command = world.wraith("receiver");
    Process::start("verify", command.args(["verify", "--json"]).arg(world.target())).finish()
}

fn records(world: &World) -> Vec<PathBuf> {
    let folder = world.path("home-receiver/received");
    tree::names(&folder).into_iter().map(|name| folder.join(name)).collect()
}

#[test]
fn beside_a_file_created_meanwhile_the_received_one_gets_another_name() {
    let (world, root) = World::with_tree("t", &[("a", 1000)]);
    tree::file(&root.join("large"), 2, 200 << 20);
    let mut sender = world.send(&[&root]);
    let receiver = world.receive_with(&sender.ticket(), &[&SKIP[..], &["--rate", "60M"]].concat());
    let there = world.target().join("t");
    journal::wait_until_verified(&there, "large", 2);
    fs::write(there.join("large"), "somebody's").unwrap();

    let (received, sent) = (receiver.finish(), sender.finish());
    received.expect_exit(0);
    sent.expect_exit(0);
    let done = received.last("done");
    assert_eq!(
        (&done["files"], &done["skipped"], &done["failed"]),
        (&2.into(), &0.into(), &0.into())
    );
    assert_eq!(fs::read(there.join("large")).unwrap(), b"somebody's");
    tree::assert_same(&root.join("large"), &there.join("large (1)"));
    assert_eq!(tree::names(&there), ["a", "large", "large (1)"].map(PathBuf::from));

    // Only the received files are checked.
    assert_eq!(records(&world).len(), 1);
    let verified = verify(&world);
    verified.expect_exit(0);
    assert_eq!(verified.last("verified")["files"], 2);
    fs::write(there.join("large"), "something else").unwrap();
    verify(&world).expect_exit(0);
    fs::write(there.join("a"), "something else").unwrap();
    verify(&world).expect_error(8);
}

#[test]
fn a_stream_with_a_taken_name_is_received_and_skipped() {
    let world = World::new();
    fs::write(world.target().join("stdin"), "somebody's").unwrap();
    let mut command = world.wraith("sender");
    command.args(["send", "--json", "--ticket", "--listen", "127.0.0.1:0", "-"]);
    command.stdin(fs::File::open(std::env::current_exe().unwrap()).unwrap());
    let mut sender = Process::start_with_stdin("send", &mut command);
    let receiver = world.receive_with(&sender.ticket(), &SKIP);
    receiver.succeed();
    sender.succeed();
    assert_eq!(fs::read(world.target().join("stdin")).unwrap(), b"somebody's");
    let verified = verify(&world);
    verified.expect_exit(0);
    assert_eq!(verified.last("verified")["files"], 0);
}
