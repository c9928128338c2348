//! Rendezvous by the DHT alone: real programs, and DHT nodes of the test on loopback.

use std::net::UdpSocket;
use std::sync::OnceLock;

use mainline::Testnet;

use crate::support::{Process, World, expect_arrival, lan, tree};

/// Enough nodes for lookups of several hops.
const NODES: usize = 50;

/// Returns the address of one node for the program. The network lives as long as the tests.
pub fn bootstrap() -> &'static str {
    static TESTNET: OnceLock<Testnet> = OnceLock::new();
    let testnet =
        TESTNET.get_or_init(|| Testnet::builder(NODES).build().expect("sockets on loopback"));
    &testnet.bootstrap[0]
}

/// Returns options with the DHT as the only meeting place.
fn places() -> [&'static str; 4] {
    ["--dht", "on", "--dht-bootstrap", bootstrap()]
}

/// Returns a node that never answers, and its address.
fn silent_node() -> (UdpSocket, String) {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    (silent, address)
}

fn film(world: &World) -> std::path::PathBuf {
    world.file("film.mov", 1, 1_000_000)
}

#[test]
fn a_long_code_needs_no_server_and_no_common_network() {
    let world = World::new();
    let film = film(&world);
    let mut command = world.wraith("sender");
    let mut sender =
        Process::start("send", command.args(["send", "--json"]).args(places()).arg(&film));
    let ready = sender.event("ready");
    let code = ready["code"].as_str().unwrap().to_owned();
    assert_eq!(code.split('-').count(), 6, "{code}");
    assert_eq!(ready["waiting_at"][0], "dht");
    let received = world.receive_with(&code, &places()).succeed();
    assert_eq!(received.all("met").next().unwrap()["place"], "dht");
    sender.succeed();
    tree::assert_same(&film, &world.target().join("film.mov"));
    let nodes = std::fs::read_to_string(world.path("home-receiver").join("dht-nodes")).unwrap();
    assert!(nodes.lines().count() > 1, "the next run needs no bootstrap node: {nodes}");

    let mut wrong: Vec<&str> = code.split('-').collect();
    wrong.swap(0, 2);
    let words = [&places()[..], &["--timeout", "5"]].concat();
    let error = world.receive_with(&wrong.join("-"), &words).finish();
    let message = error.expect_error(3)["message"].as_str().unwrap().to_owned();
    assert!(!message.contains("number"), "{message}");
}

#[test]
fn a_long_code_is_shown_once_it_is_published() {
    let _network = lan::own_network();
    // The other tests' nodes are on another network.
    let testnet = Testnet::builder(NODES).build().expect("sockets on loopback");
    let places = ["--dht", "on", "--dht-bootstrap", &testnet.bootstrap[0]];
    let world = World::new();
    let film = film(&world);
    let mut command = world.wraith("sender");
    command.args(["send", "--json", "--lan", "lo"]).args(places).arg(&film);
    let mut sender = Process::start("send", &mut command);
    assert_eq!(sender.event("ready")["code"].as_str().unwrap().split('-').count(), 3);
    let long = sender.event("long_code")["code"].as_str().unwrap().to_owned();
    world.receive_with(&long, &places).succeed();
    sender.succeed();
    tree::assert_same(&film, &world.target().join("film.mov"));
}

#[test]
fn a_sender_that_waits_for_the_dht_says_so_and_goes_on_without_it() {
    let world = World::new();
    let film = film(&world);
    let (_silent, bootstrap) = silent_node();
    let mut command = world.wraith("sender");
    command.args(["send", "--json", "--dht", "on", "--dht-bootstrap", &bootstrap]).arg(&film);
    let mut sender = Process::start("send", &mut command);
    let first = sender.event_where_either("note", "ready");
    assert!(first["message"].as_str().unwrap().contains("on the DHT"), "{first}");
    assert!(sender.event("ready")["ticket"].is_string());
}

#[test]
fn a_ticket_finds_a_sender_that_has_moved() {
    let world = World::new();
    let film = film(&world);
    let start = |port: &str| {
        let mut command = world.wraith("sender");
        command.args(["send", "--json", "--ticket", "--listen", port]).args(places()).arg(&film);
        Process::start("send", &mut command)
    };
    let mut first = start("[::]:0");
    let ticket = first.ticket();
    first.kill();
    // The same offer on another port; the ticket has the old one.
    let taken: wraith_discovery::Ticket = ticket.parse().unwrap();
    let port = taken.addresses()[0].port();
    let _taken = UdpSocket::bind(("0.0.0.0", port)).unwrap();
    let mut second = start("[::]:0");
    second.event("ready");
    let received = world.receive_with(&ticket, &[&places()[..], &["--timeout", "30"]].concat());
    expect_arrival(received, second, &film, &world.target());
}

#[test]
fn a_dht_without_answers_is_reported_and_nothing_hangs() {
    let world = World::new();
    let film = film(&world);
    let (_silent, nobody) = silent_node();
    let places = ["--dht", "on", "--dht-bootstrap", &nobody];
    let error = world.receive_with("crater-lemon-forest-piano-silver-velvet", &places).finish();
    error.expect_error(3);
    let mut command = world.wraith("sender");
    let mut sender =
        Process::start("send", command.args(["send", "--json"]).args(places).arg(&film));
    // The sender falls back to a ticket.
    assert!(sender.event("ready")["ticket"].is_string());
    sender.signal(libc::SIGINT);
}
