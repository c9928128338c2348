//! A machine with many networks, such as those of containers and VPNs. The receiver is on one of
//! them, and its address is the last.

use crate::support::cable::{Cable, ip};
use crate::support::{self, Outcome, Process, World, tree};

/// The network of the receiver. The addresses of all others are lower, so that order does not help.
const CABLE: [&str; 2] = ["10.99.0.1/24", "10.99.0.2/24"];

/// Makes a cable whose sender's end has more networks, to this number in all.
fn with_networks(count: usize) -> Option<Cable> {
    let cable = Cable::new(Some(CABLE))?;
    for number in 1..count {
        let (name, other) = (format!("net{number}"), format!("end{number}"));
        let sender = cable.name(0);
        let link = ["link", "add", &name, "type", "veth", "peer", "name", &other];
        assert!(ip(&[&["-n", sender][..], &link].concat()));
        for address in [format!("10.{number}.0.1/24"), format!("2001:db8:{number}::1/64")] {
            assert!(ip(&["-n", sender, "addr", "add", &address, "dev", &name]));
        }
        assert!(ip(&["-n", sender, "link", "set", &name, "up"]));
        assert!(ip(&["-n", sender, "link", "set", &other, "up"]));
    }
    Some(cable)
}

/// Sends over the cable with these arguments. Returns the outcome of the sender.
fn sent_over(cable: &Cable, place: &[&str]) -> Outcome {
    let (world, film) = World::with_file("film.mov", 1, 1_000_000);
    let mut send = world.wraith("sender");
    send.args(["send", "--json"]).args(place).arg(&film);
    let mut sender = Process::start("send", &mut cable.at(0, &send));
    let ready = sender.event("ready");
    let wanted = ready["code"].as_str().or(ready["ticket"].as_str()).unwrap();
    let mut receive = world.wraith("receiver");
    receive.args(["receive", "--json", "--yes", "--lan", "all", "-o"]).arg(world.target());
    Process::start("receive", &mut cable.at(1, receive.arg(wanted))).succeed();
    tree::assert_same(&film, &world.target().join("film.mov"));
    sender.succeed()
}

fn notes(outcome: &Outcome) -> Vec<&str> {
    outcome.all("note").filter_map(|note| note["message"].as_str()).collect()
}

#[test]
fn the_ticket_of_a_machine_with_32_networks_has_the_one_that_the_receiver_reaches() {
    let Some(cable) = with_networks(32) else {
        return support::skipped("network namespaces need root and ip");
    };
    let sent = sent_over(&cable, &["--ticket"]);
    // Each network has room with one address; those of IPv6 are their second ones.
    let notes = notes(&sent);
    assert!(notes.iter().all(|note| !note.contains("10.")), "{notes:?}");
}

#[test]
fn a_machine_with_more_networks_than_a_ticket_holds_says_so_and_a_code_arrives() {
    let Some(cable) = with_networks(60) else {
        return support::skipped("network namespaces need root and ip");
    };
    let sent = sent_over(&cable, &["--lan", "all"]);
    let notes = notes(&sent);
    assert!(notes.iter().any(|note| note.contains("left out: 10.")), "{notes:?}");
}
