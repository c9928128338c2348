//! Contacts find each other by multicast between two network namespaces, without a server, an
//! address or a code.

use crate::support::cable::Cable;
use crate::support::{Process, World, on_ipv4, on_ipv6, tree};

/// Bob listens at one end, and Anna sends from the other. A stranger is there too.
fn send_over(cable: &Cable) {
    let (world, film) = World::with_file("film.mov", 1, 1_000_000);
    world.know("bob", "anna", None);
    world.know("anna", "bob", None);
    world.know("stranger", "bob", None);
    let command = world.listen_command("bob", &["--accept", "contacts", "--lan", "all"]);
    let mut listener = Process::start("listen", &mut cable.at(0, &command));
    listener.event("listening");

    let send = |side: &str, more: &[&str]| {
        let mut send = world.wraith(side);
        send.args(["send", "--json", "--lan", "all", "--to", "bob"]).args(more).arg(&film);
        Process::start("send", &mut cable.at(1, &send)).finish()
    };
    let sent = send("anna", &[]);
    sent.expect_exit(0);
    assert_eq!(sent.last("met")["place"], "lan");
    listener.event("done");
    tree::assert_same(&film, &world.target().join("film.mov"));
    send("stranger", &["--timeout", "2"]).expect_error(3);

    // Next time, the known address is dialled without a search. With a search, the contact is found
    // in any case.
    send("anna", &[]).expect_exit(0);
    listener.event("done");
    listener.signal(libc::SIGINT);
    let ended = listener.finish();
    assert!(ended.all("connected").all(|event| event["contact"] == "anna"));
}

#[test]
fn contacts_on_one_cable_meet_over_ipv4() {
    on_ipv4(send_over);
}

#[test]
fn contacts_without_any_configured_address_meet_over_ipv6() {
    on_ipv6(send_over);
}
