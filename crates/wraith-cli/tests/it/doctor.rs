//! `wraith doctor` on this machine, with a rendezvous server of our own, and with what it must find wrong.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::support::{Outcome, Process, World, lan};
use serde_json::Value;

const NAMES: [&str; 12] = [
    "processor",
    "clock",
    "free space",
    "home folder",
    "config file",
    "datagrams",
    "batches",
    "buffers",
    "addresses",
    "links (MTU)",
    "protocol",
    "rendezvous",
];

fn check<'a>(outcome: &'a Outcome, name: &str) -> &'a Value {
    outcome.all("check").find(|check| check["name"] == name).unwrap_or_else(|| panic!("no {name}"))
}

#[test]
fn it_tries_everything_and_reaches_the_server_that_is_configured() {
    let world = World::new();
    let mut command = world.wraith("server");
    let mut server = Process::start(
        "rendezvous",
        command.args(["rendezvous", "--json", "--listen", "127.0.0.1:0"]),
    );
    let address = server.event("listening")["address"].as_str().unwrap().to_owned();
    let mut command = world.wraith("one");
    let doctor = command.args(["doctor", "--json", "--rendezvous", &address]);
    let outcome = Process::start("doctor", doctor).finish();
    outcome.expect_exit(0);
    for name in NAMES {
        let check = check(&outcome, name);
        assert_ne!(check["status"], "fail", "{check}");
        assert!(check["found"].as_str().is_some_and(|found| !found.is_empty()));
        assert!(check["meaning"].as_str().is_some_and(|meaning| !meaning.is_empty()));
        assert!(check["status"] != "warn" || check["next"].is_string() || name == "processor");
    }
    let rendezvous = check(&outcome, "rendezvous")["found"].as_str().unwrap();
    assert!(rendezvous.contains("127.0.0.1"), "{rendezvous}");
    assert!(check(&outcome, "protocol")["found"].as_str().unwrap().contains("127.0.0.1 ("));
    // The number that was opened is free again, and the server serves on.
    let again = world.wraith("one").args(["doctor", "--rendezvous", &address]).output().unwrap();
    assert!(again.status.success());
    let text = String::from_utf8_lossy(&again.stdout).into_owned();
    assert!(NAMES.iter().all(|name| text.contains(name)), "{text}");
}

#[test]
fn multicast_on_loopback_is_heard() {
    let _alone = lan::alone();
    let world = World::new();
    let mut command = world.wraith("one");
    command.args(["doctor", "--json", "--lan", "lo"]);
    let outcome = Process::start("doctor", &mut command).finish();
    let lan = check(&outcome, "local network");
    assert_eq!(lan["status"], "ok", "{lan}");
    assert!(check(&outcome, "rendezvous")["found"].as_str().unwrap().contains("none"));
}

#[test]
fn what_cannot_work_fails_and_says_what_to_do() {
    let world = World::new();
    let home = world.path("home-one");
    assert!(world.wraith("one").arg("id").output().unwrap().status.success());
    fs::set_permissions(home.join("identity"), PermissionsExt::from_mode(0o644)).unwrap();
    fs::write(home.join("config.toml"), "tiemout = 1\n").unwrap();
    fs::write(home.join("contacts.toml"), "anna = \n").unwrap();
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut command = world.wraith("one");
    command.args(["doctor", "--json", "--rendezvous", &nobody.to_string()]);
    let outcome = Process::start("doctor", &mut command).finish();
    let error = outcome.expect_error(1)["message"].as_str().unwrap();
    for (name, next) in
        [("home folder", "chmod 600"), ("config file", "wraith config"), ("contacts", "")]
    {
        assert_eq!(check(&outcome, name)["status"], "fail");
        assert!(check(&outcome, name)["next"].as_str().unwrap().contains(next));
        assert!(error.contains(name), "{error}");
    }
    assert_eq!(check(&outcome, "rendezvous")["status"], "fail");
}

#[test]
fn the_version_says_what_it_is_made_of() {
    let world = World::new();
    let run = |word: &str| {
        let output = world.wraith("one").arg(word).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let long = run("--version");
    for fact in ["commit", "target", "protocol", "cipher", "hash", "BLAKE3", "wraith/1"] {
        assert!(long.contains(fact), "{long}");
    }
    assert_eq!(run("-V").trim(), long.lines().next().unwrap());
}
