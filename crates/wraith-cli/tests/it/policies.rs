//! `--policy`: the permitted packet ciphers.

use crate::support::{World, expect_arrival, lan, offering, tree};

fn film(world: &World) -> std::path::PathBuf {
    world.file("film.mov", 1, 3_000_000)
}

#[test]
fn packets_use_a_suite_that_both_policies_allow() {
    for (sender, receiver, suite) in [
        ("sm", "sm", "SM4-GCM"),
        ("fips-like", "default", "AES-256-GCM"),
        ("default", "fips-like", "AES-256-GCM"),
    ] {
        let world = World::new();
        let film = film(&world);
        let mut sending = world.send_with(&[&film], &["--policy", sender]);
        let received = world.receive_with(&sending.ticket(), &["--policy", receiver]).succeed();
        sending.succeed();
        let seen = received.last("connected")["suite"].as_str().unwrap();
        assert_eq!(seen, format!("X25519+ML-KEM-768, {suite}"));
        tree::assert_same(&film, &world.target().join("film.mov"));
    }
}

#[test]
fn peers_without_a_common_suite_do_not_connect() {
    let (world, _, sending, ticket) = offering(3_000_000, &["--policy", "sm"]);
    let refused = world.receive_with(&ticket, &[]).finish();
    let error = refused.expect_error(3);
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("SM4-GCM") && message.contains("AES-256-GCM"), "{message}");
    assert!(error["hint"].as_str().unwrap().contains("--policy"), "{error}");
    assert_eq!(refused.all("connected").count(), 0);
    // The offer stays valid for a receiver with the right policy.
    world.receive_with(&ticket, &["--policy", "sm"]).succeed();
    sending.succeed();
}

#[test]
fn policies_without_a_common_suite_are_named_after_a_code_and_the_code_stays_valid() {
    let _network = lan::own_network();
    for (sender, receiver) in [("sm", "default"), ("default", "sm")] {
        let world = World::new();
        let film = film(&world);
        let places = |policy| ["--lan", "lo", "--policy", policy];
        let mut sending = world.send_by_code(&[&film], &places(sender));
        let code = sending.code();
        world.receive_with(&code, &places(receiver)).finish().expect_message(3, "policies");
        expect_arrival(world.receive_with(&code, &places(sender)), sending, &film, &world.target());
    }
}

#[test]
fn a_policy_that_does_not_exist_is_refused_with_those_that_do() {
    let world = World::new();
    let film = film(&world);
    let output =
        world.wraith("sender").args(["send", "--policy", "nsa"]).arg(film).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("default, fips-like, sm, pq-only"), "{said}");
}
