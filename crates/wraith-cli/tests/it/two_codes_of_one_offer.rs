//! The short and the long code of one offer: each lives for itself, and both share its places.

use mainline::Testnet;

use crate::support::{Outcome, Process, World, lan, other_words, rounds};
use wraith_discovery::Code;

/// DHT nodes, enough for lookups of several hops.
const NODES: usize = 30;

/// A local network of its own with a DHT.
struct Places {
    testnet: Testnet,
    _network: lan::OwnNetwork,
}

impl Places {
    fn new() -> Self {
        let _network = lan::own_network();
        Self { testnet: Testnet::builder(NODES).build().unwrap(), _network }
    }

    fn options(&self) -> [&str; 6] {
        ["--lan", "lo", "--dht", "on", "--dht-bootstrap", &self.testnet.bootstrap[0]]
    }

    /// Starts a sender. Returns it with its short and its long code.
    fn sender(&self, world: &World, more: &[&str]) -> (Process, [String; 2]) {
        let film = world.file("film.mov", 1, 300_000);
        let mut command = world.wraith("sender");
        command.args(["send", "--json"]).args(self.options()).args(more).arg(film);
        let mut sender = Process::start("send", &mut command);
        let short = sender.code();
        let long = sender.event("long_code")["code"].as_str().unwrap().to_owned();
        (sender, [short, long])
    }

    fn receiver(&self, world: &World, side: &str, code: &str) -> Process {
        let mut command = world.wraith(side);
        command.args(["receive", "--json", "--yes", "-o"]).arg(world.path(side));
        Process::start("receive", command.args(self.options()).arg(code))
    }
}

#[test]
fn a_burned_short_code_leaves_the_long_code_valid() {
    let (places, world) = (Places::new(), World::new());
    let (sender, [short, long]) = places.sender(&world, &[]);
    places.receiver(&world, "guesser", &other_words(&short)).finish().expect_error(5);
    places.receiver(&world, "late", &short).finish().expect_error(5);
    places.receiver(&world, "receiver", &long).succeed();
    let sent = sender.succeed();
    assert_eq!(sent.all("code").filter(|e| e["state"] == "wrong_guess").count(), 1);
    let mut notes = sent.all("note").map(|note| note["message"].to_string());
    assert!(notes.any(|note| note.contains("the code of six words is still valid")));
}

#[test]
fn a_long_code_that_was_used_leaves_no_place_for_the_short_one() {
    let (places, world) = (Places::new(), World::new());
    let (mut sender, [short, long]) = places.sender(&world, &["--rate", "100k"]);
    let first = places.receiver(&world, "first", &long);
    sender.event("accept");
    places.receiver(&world, "second", &short).finish().expect_message(5, "used");
    first.succeed();
    sender.succeed();
}

/// Starts `n` senders' worth of receivers more than there are places, half with each code.
fn exactly_n_are_served(places: &Places, n: usize) {
    let world = World::new();
    let (sender, codes) = places.sender(&world, &["-n", &n.to_string(), "--rate", "150k"]);
    assert!(codes[0].parse::<Code>().is_ok());
    let sides: Vec<_> = (0..n + 3).map(|side| format!("side-{side}")).collect();
    let running: Vec<_> = sides
        .iter()
        .enumerate()
        .map(|(number, side)| places.receiver(&world, side, &codes[number % 2]))
        .collect();
    let ended: Vec<Outcome> = running.into_iter().map(Process::finish).collect();
    let sent = sender.succeed();
    let served: Vec<_> = ended.iter().filter(|outcome| outcome.status.code() == Some(0)).collect();
    assert_eq!((served.len(), sent.all("done").count()), (n, n));
    for outcome in &ended {
        let has_offer = outcome.all("offer").count() > 0;
        let is_served = outcome.status.code() == Some(0);
        assert_eq!(has_offer, is_served, "displaced: {:?}", outcome.events);
    }
}

#[test]
fn exactly_n_receivers_are_served_by_both_codes_together() {
    let places = Places::new();
    for round in 0..rounds(2) {
        exactly_n_are_served(&places, 2 + (round % 3) as usize);
    }
}
