//! `wraith relay` as a program: it reports its address and its key, keeps that key, serves codes,
//! and ends on a signal.

use crate::support::{Process, World, expect_arrival};

fn start(world: &World, words: &[&str]) -> (Process, String, String) {
    let mut command = world.wraith("server");
    command.args(["relay", "--json", "--listen", "127.0.0.1:0"]).args(words);
    let mut relay = Process::start("relay", &mut command);
    let listening = relay.event("listening");
    let text = |key: &str| listening[key].as_str().unwrap().to_owned();
    let (address, pin) = (text("address"), text("pin"));
    (relay, address, pin)
}

#[test]
fn a_relay_serves_codes_keeps_its_key_and_stops_on_request() {
    let world = World::new();
    let (relay, address, pin) = start(&world, &[]);
    assert_eq!(pin.len(), 52);
    let film = world.file("film.mov", 1, 1_000_000);
    let place = ["--rendezvous", &address];
    let mut sender = world.send_by_code(&[&film], &place);
    let code = sender.code();
    expect_arrival(world.receive_with(&code, &place), sender, &film, &world.target());
    relay.signal(libc::SIGTERM);
    relay.finish().expect_exit(143);
    let (_relay, _, again) = start(&world, &[]);
    assert_eq!(again, pin);
}

#[test]
fn an_empty_token_does_not_open_a_relay_to_everybody() {
    let world = World::new();
    let words = ["relay", "--listen", "127.0.0.1:0", "--token", " "];
    let output = world.wraith("server").args(words).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("contain a token"));
}
