//! Meeting by multicast between two network namespaces joined by a cable (veth), with nothing else: no server, no route.

mod support;

use support::cable::Cable;
use support::{Process, World, tree};

fn transfer_over(cable: &Cable) {
    let world = World::new();
    let film = world.source().join("film.mov");
    tree::file(&film, 1, 1_000_000);
    let mut send = world.wraith("sender");
    send.args(["send", "--json", "--lan", "all"]).arg(&film);
    let mut sender = Process::start("send", &mut cable.at(0, &send));
    let code = sender.code();
    let mut receive = world.wraith("receiver");
    receive
        .args(["receive", "--json", "--yes", "--lan", "all", "-o"])
        .arg(world.target())
        .arg(code);
    let received = Process::start("receive", &mut cable.at(1, &receive)).finish();
    received.expect_exit(0);
    assert_eq!(received.last("met")["place"], "lan");
    sender.finish().expect_exit(0);
    tree::assert_same(&film, &world.target().join("film.mov"));
}

#[test]
fn two_machines_on_one_cable_meet_over_ipv4() {
    match Cable::new(Some(["10.73.0.1/24", "10.73.0.2/24"])) {
        Some(cable) => transfer_over(&cable),
        None => support::skipped("network namespaces need root and ip"),
    }
}

#[test]
fn two_machines_without_any_configured_address_meet_over_ipv6() {
    match Cable::new(None) {
        Some(cable) => {
            cable.wait_for_ipv6();
            transfer_over(&cable);
        }
        None => support::skipped("network namespaces need root and ip"),
    }
}
