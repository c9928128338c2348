//! Meeting by multicast between two network namespaces joined by a cable (veth), without a server
//! or a route.

use crate::support::cable::Cable;
use crate::support::{self, Process, World, expect_arrival, on_ipv4, on_ipv6, tree};

fn transfer_over(cable: &Cable) {
    let (world, film) = World::with_file("film.mov", 1, 1_000_000);
    let mut send = world.wraith("sender");
    send.args(["send", "--json", "--lan", "all"]).arg(&film);
    let mut sender = Process::start("send", &mut cable.at(0, &send));
    let code = sender.code();
    let mut receive = world.wraith("receiver");
    receive
        .args(["receive", "--json", "--yes", "--lan", "all", "-o"])
        .arg(world.target())
        .arg(code);
    let received = Process::start("receive", &mut cable.at(1, &receive)).succeed();
    assert_eq!(received.last("met")["place"], "lan");
    sender.succeed();
    tree::assert_same(&film, &world.target().join("film.mov"));
}

/// The same with a code that the receiver makes. It dials the address from which the sender's
/// ticket came.
fn transfer_by_a_code_of_the_receiver(cable: &Cable) {
    let (world, film) = World::with_file("film.mov", 1, 1_000_000);
    let mut receive = world.wraith("receiver");
    receive
        .args(["receive", "--json", "--yes", "--code", "--lan", "all", "-o"])
        .arg(world.target());
    let mut receiver = Process::start("receive", &mut cable.at(1, &receive));
    let code = receiver.event("waiting")["code"].as_str().unwrap().to_owned();
    let mut send = world.wraith("sender");
    send.args(["send", "--json", "--lan", "all", "--timeout", "60", "--code", &code]).arg(&film);
    let sender = Process::start("send", &mut cable.at(0, &send));
    expect_arrival(receiver, sender, &film, &world.target());
}

#[test]
fn a_code_of_the_receiver_works_where_only_link_local_addresses_are() {
    let Some(cable) = Cable::new(Some(["169.254.7.1/16", "169.254.7.2/16"])) else {
        return support::skipped("network namespaces need root and ip");
    };
    transfer_by_a_code_of_the_receiver(&cable);
    let cable = Cable::new(None).expect("the first one could be made");
    cable.wait_for_ipv6();
    transfer_by_a_code_of_the_receiver(&cable);
}

#[test]
fn two_machines_on_one_cable_meet_over_ipv4() {
    on_ipv4(transfer_over);
}

#[test]
fn two_machines_without_any_configured_address_meet_over_ipv6() {
    on_ipv6(transfer_over);
}
