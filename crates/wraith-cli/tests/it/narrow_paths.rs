//! Paths that drop IP packets far below the size of Ethernet: with and without a message of the
//! kernel, direct and through a relay.

use std::thread;

use crate::support::cable::Cable;
use crate::support::{self, Outcome, Process, World, cases, tree};

/// Least IP MTU at which a direct connection is certain: the longest datagram of a short H1 (SPEC
/// §3.4) and the headers.
const DIRECT_MIN: [(Family, u32); 2] = [(Family::V4, 748), (Family::V6, 768)];
/// IP MTUs of the paths of each test. The first two carry no direct connection.
const MTUS: [u32; 6] = [576, 670, 770, 1000, 1200, 1300];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    V4,
    V6,
}

impl Family {
    fn cable(self) -> Option<Cable> {
        let addresses = match self {
            Self::V4 => ["10.73.0.1/24", "10.73.0.2/24"],
            Self::V6 => ["fd73::1/64", "fd73::2/64"],
        };
        let cable = Cable::new(Some(addresses));
        if cable.is_none() {
            support::skipped("network namespaces need root and ip");
        }
        cable
    }

    /// Returns a cable that drops IP packets above `bytes` without a message.
    fn silent_cable(self, bytes: u32) -> Option<Cable> {
        let cable = self.cable()?;
        if !cable.drop_above(bytes) {
            support::skipped("dropping packets by length needs nft");
            return None;
        }
        Some(cable)
    }

    fn relay_address(self) -> &'static str {
        match self {
            Self::V4 => "10.73.0.1:0",
            Self::V6 => "[fd73::1]:0",
        }
    }

    fn carries_direct(self, bytes: u32) -> bool {
        DIRECT_MIN.iter().any(|(family, least)| *family == self && bytes >= *least)
    }
}

/// Sends a file from one end to the other by ticket. With `relay_address`, the ticket names a relay
/// at the sender's end. Returns the receiver's outcome.
fn transfer(cable: &Cable, relay_address: Option<&str>) -> Outcome {
    let (world, film) = World::with_file("film.mov", 1, 300_000);
    let mut send = world.wraith("sender");
    send.args(["send", "--json", "--ticket"]).arg(&film);
    let relay = relay_address.map(|address| {
        let mut command = world.wraith("relay");
        command.args(["relay", "--json", "--drain", "0", "--listen", address]);
        let mut relay = Process::start("relay", &mut cable.at(0, &command));
        send.arg("--relay").arg(relay.event("listening")["address"].as_str().unwrap());
        relay
    });
    let mut sender = Process::start("send", &mut cable.at(0, &send));
    let ticket = sender.ticket();
    let mut receive = world.wraith("receiver");
    receive.args(["receive", "--json", "--yes", "-o"]).arg(world.target()).arg(ticket);
    let received = Process::start("receive", &mut cable.at(1, &receive)).finish();
    if received.all("done").count() > 0 {
        sender.succeed();
        tree::assert_same(&film, &world.target().join("film.mov"));
    }
    drop(relay);
    received
}

/// Number of transfers at once. With more on a busy machine, a sender shows its ticket before it has
/// reached its relay.
const AT_ONCE: usize = 3;

/// Transfers over paths of each MTU that drop larger packets without a message.
fn table(family: Family, has_relay: bool) {
    MTUS.chunks(AT_ONCE).for_each(|some| transfers(family, has_relay, some));
}

fn transfers(family: Family, has_relay: bool, mtus: &[u32]) {
    thread::scope(|scope| {
        for &bytes in mtus {
            scope.spawn(move || {
                let Some(cable) = family.silent_cable(bytes) else { return };
                let received = transfer(&cable, has_relay.then(|| family.relay_address()));
                if has_relay || family.carries_direct(bytes) {
                    received.expect_exit(0);
                } else {
                    let error = received.expect_error(3);
                    let hint = error["hint"].as_str().unwrap();
                    assert!(hint.contains("drops UDP or large packets"), "{bytes}: {hint}");
                }
                if has_relay && !family.carries_direct(bytes) {
                    assert_eq!(received.last("connected")["path"], "relay", "{bytes}");
                }
            });
        }
    });
}

cases! {
    a_silent_ipv4_path_carries_a_transfer_or_is_named: table(Family::V4, false);
    a_silent_ipv6_path_carries_a_transfer_or_is_named: table(Family::V6, false);
    a_silent_ipv4_path_of_any_size_carries_a_transfer_if_there_is_a_relay: table(Family::V4, true);
    a_silent_ipv6_path_of_any_size_carries_a_transfer_if_there_is_a_relay: table(Family::V6, true);
}

#[test]
fn a_path_whose_mtu_the_kernel_knows_carries_a_transfer_directly_or_by_relay() {
    for mtu in [600, 760, 1200] {
        let Some(cable) = Family::V4.cable() else { return };
        cable.set_mtu(mtu);
        let is_direct = Family::V4.carries_direct(mtu);
        let relay = (!is_direct).then(|| Family::V4.relay_address());
        let received = transfer(&cable, relay);
        received.expect_exit(0);
        assert_eq!(received.last("connected")["path"] != "relay", is_direct, "{mtu}");
    }
}

#[test]
fn a_path_too_narrow_for_any_transfer_is_named_with_its_mtu() {
    let Some(cable) = Family::V4.cable() else { return };
    cable.set_mtu(576);
    let received = transfer(&cable, None);
    let message = received.last("error")["message"].as_str().unwrap().to_owned();
    assert!(message.contains("carries IP packets of up to 576 bytes"), "{message}");
}
