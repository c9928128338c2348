//! `wraith doctor` on this machine, with a rendezvous server of the test, and with faults that it
//! must find.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::over_the_dht::bootstrap;
use crate::support::{Outcome, Process, World, lan};
use serde_json::Value;

const NAMES: [&str; 17] = [
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
    "relay",
    "clock difference",
    "DHT",
    "port mapping",
    "NAT",
];

fn check<'a>(outcome: &'a Outcome, name: &str) -> &'a Value {
    outcome.all("check").find(|check| check["name"] == name).unwrap_or_else(|| panic!("no {name}"))
}

#[test]
fn with_relays_only_and_no_relay_something_is_missing() {
    let world = World::new();
    let mut command = world.wraith("one");
    let outcome =
        Process::start("doctor", command.args(["doctor", "--json", "--relay-only"])).finish();
    let relay = check(&outcome, "relay");
    assert_eq!(relay["status"], "warn", "{relay}");
    assert!(relay["next"].as_str().unwrap().contains("--relay HOST"), "{relay}");
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
    let outcome = Process::start("doctor", doctor).succeed();
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
    // The doctor has released its nameplate, and the server still serves.
    let again = world.wraith("one").args(["doctor", "--rendezvous", &address]).output().unwrap();
    assert!(again.status.success());
    let text = String::from_utf8_lossy(&again.stdout).into_owned();
    assert!(NAMES.iter().all(|name| text.contains(name)), "{text}");
}

#[test]
fn multicast_on_loopback_is_received() {
    let _network = lan::own_network();
    let world = World::new();
    let mut command = world.wraith("one");
    command.args(["doctor", "--json", "--lan", "lo"]);
    let outcome = Process::start("doctor", &mut command).finish();
    let lan = check(&outcome, "local network");
    assert_eq!(lan["status"], "ok", "{lan}");
    assert!(check(&outcome, "rendezvous")["found"].as_str().unwrap().contains("none"));
}

#[test]
fn impossible_setups_fail_with_advice() {
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
fn relays_are_tried_by_tls_and_udp_and_say_where_this_machine_is_seen() {
    let world = World::new();
    let start = |words: &[&str]| {
        let mut command = world.wraith("server");
        command.args(["relay", "--json", "--listen", "127.0.0.1:0"]).args(words);
        let mut relay = Process::start("relay", &mut command);
        let listening = relay.event("listening");
        let text = |key: &str| listening[key].as_str().unwrap().to_owned();
        (text("address"), text("pin"), relay)
    };
    let (open, pin, _open) = start(&[]);
    let (guarded, _, _guarded) = start(&["--token", "right"]);
    let both = [&*open, &*guarded].join(",");
    let mut command = world.wraith("one");
    command.args(["doctor", "--json", "--relay", &both, "--relay-token", "wrong"]);
    let outcome = Process::start("doctor", &mut command).finish();
    outcome.expect_error(1);
    let relays: Vec<_> = outcome.all("check").filter(|check| check["name"] == "relay").collect();
    let found = |at: usize| relays[at]["found"].as_str().unwrap();
    assert_eq!((&relays[0]["status"], &relays[1]["status"]), (&"ok".into(), &"fail".into()));
    for fact in [&*open, "over TLS and UDP", "round trip", &pin] {
        assert!(found(0).contains(fact), "{}", found(0));
    }
    assert!(found(1).contains("token"), "{}", found(1));
    assert!(relays[1]["next"].as_str().unwrap().contains("--relay-token"));
    let nat = check(&outcome, "NAT");
    assert_eq!(nat["status"], "ok");
    let found = nat["found"].as_str().unwrap();
    assert!(found.starts_with("none: seen at 127.0.0.1:"), "{nat}");
    // Seen by both ports of the single relay, and packets from its other port get through.
    for fact in [" by 2,", "lets in other ports of contacted addresses"] {
        assert!(found.contains(fact), "{nat}");
    }
}

#[test]
fn how_long_answers_are_let_in_is_not_measured_where_no_relay_could_answer_later() {
    let world = World::new();
    let mut command = world.wraith("one");
    command.args(["doctor", "--json", "--lifetime"]);
    let outcome = Process::start("doctor", &mut command).succeed();
    let lifetime = check(&outcome, "NAT lifetime");
    assert_eq!(lifetime["status"], "none");
    assert!(lifetime["next"].as_str().unwrap().contains("--relay"), "{lifetime}");
}

#[test]
fn an_unreachable_relay_fails_and_no_observers_mean_no_nat_report() {
    let world = World::new();
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut command = world.wraith("one");
    command.args(["doctor", "--json", "--relay", &nobody.to_string()]);
    let outcome = Process::start("doctor", &mut command).finish();
    assert!(outcome.expect_error(1)["message"].as_str().unwrap().contains("relay"));
    let relay = check(&outcome, "relay");
    assert_eq!(relay["status"], "fail");
    assert!(relay["found"].as_str().unwrap().contains(&nobody.to_string()), "{relay}");
    assert!(relay["next"].as_str().unwrap().contains("port 443"), "{relay}");
    let nat = check(&outcome, "NAT");
    assert_eq!(nat["status"], "none");
    assert!(nat["found"].as_str().unwrap().contains("not measured"), "{nat}");
}

#[test]
fn nodes_of_the_dht_answer_and_say_where_this_machine_is_seen() {
    let world = World::new();
    let mut command = world.wraith("one");
    command.args(["doctor", "--json", "--dht", "on", "--dht-bootstrap", bootstrap()]);
    let outcome = Process::start("doctor", &mut command).succeed();
    let dht = check(&outcome, "DHT");
    assert_eq!(dht["status"], "ok", "{dht}");
    assert!(dht["found"].as_str().unwrap().contains(bootstrap()), "{dht}");
    let nat = check(&outcome, "NAT");
    assert!(nat["found"].as_str().unwrap().starts_with("none: seen at 127.0.0.1:"), "{nat}");
}

#[test]
fn the_version_names_its_backends() {
    let world = World::new();
    let run = |word: &str| {
        let output = world.wraith("one").arg(word).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let long = run("--version");
    for fact in [
        "commit",
        "target",
        "protocol",
        "keys",
        "X25519+ML-KEM-768",
        "cipher",
        "hash",
        "BLAKE3",
        "wraith/2",
    ] {
        assert!(long.contains(fact), "{long}");
    }
    assert_eq!(run("-V").trim(), long.lines().next().unwrap());
}
