//! The UDP port against senders that are not clients, forgers, and clients that lie about their
//! address.
//!
//! The relay's thread handles datagrams in order of arrival. An answered request therefore shows
//! that no earlier datagram was answered.

use std::net::{Ipv4Addr, UdpSocket};

use super::raw::{RawClient, RawUdp, Relay, is_silent, socket};
use crate::binding::{BINDING_MIN, Binding};
use crate::frame::ClientFrame;
use crate::header::{self, WireId, up_mask};
use crate::server::Timeouts;

/// Makes a pair of two bound clients; the second receives by UDP.
async fn pair(relay: &Relay) -> [(RawClient, RawUdp, WireId); 2] {
    let (mut a, welcome_a) = RawClient::welcome(relay.address).await;
    let (mut b, welcome_b) = RawClient::welcome(relay.address).await;
    let mailbox = b.register([5; 32]).await;
    let (at_a, at_b) = (a.dial(mailbox).await, b.incoming().await);
    let mut udp_a = RawUdp::new(relay.address, &welcome_a);
    let mut udp_b = RawUdp::new(relay.address, &welcome_b);
    udp_a.bind(1);
    udp_b.bind(1);
    b.send(&ClientFrame::UseUdp(true));
    b.ping().await;
    [(a, udp_a, at_a), (b, udp_b, at_b)]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_senders_and_forged_tags_get_no_answer() {
    let relay = Relay::usual().await;
    let [(_a, mut udp_a, at_a), (_b, udp_b, at_b)] = pair(&relay).await;
    let stranger = socket();
    for len in [0, 1, 15, 16, 31, 32, 80, 1200, 9000] {
        stranger.send_to(&vec![0x5a; len], relay.address).unwrap();
    }
    let good = udp_a.datagram(at_a, &[7; 100]);
    for i in (0..16).chain([16, 31]) {
        let mut forged = good.clone();
        forged[i] ^= 1;
        udp_a.send(&forged);
    }
    // The ID of another client's end, with the keys of this client.
    udp_a.send(&udp_a.datagram(at_b, &[7; 100]));
    udp_a.send(&good);
    assert_eq!(udp_b.receive_datagram(at_b), [7; 100]);
    let question = udp_a.bind_message(3, None);
    udp_a.send(&question);
    assert!(matches!(udp_a.receive(), Binding::Bound { counter: 3, .. }));
    assert!(is_silent(&stranger) && is_silent(&udp_a.socket) && is_silent(&udp_b.socket));
    assert_eq!(relay.metrics.forwarded.get(), 1);
    assert!(relay.metrics.unauthentic.get() >= 25);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replayed_binding_is_ignored() {
    let relay = Relay::usual().await;
    let (_client, welcome) = RawClient::welcome(relay.address).await;
    let mut udp = RawUdp::new(relay.address, &welcome);
    let first = udp.bind_message(1, None);
    udp.send(&first);
    let Binding::Challenge { counter: 1, cookie } = udp.receive() else { panic!() };
    let second = udp.bind_message(2, Some((1, cookie)));
    // An attacker replays every message from its own address, before and after.
    let thief = socket();
    thief.send_to(&first, relay.address).unwrap();
    udp.send(&second);
    assert!(matches!(udp.receive(), Binding::Bound { counter: 2, .. }));
    for message in [&first, &second] {
        thief.send_to(message, relay.address).unwrap();
        udp.send(message);
    }
    let third = udp.bind_message(3, None);
    udp.send(&third);
    assert!(matches!(udp.receive(), Binding::Bound { counter: 3, .. }));
    assert!(is_silent(&thief) && is_silent(&udp.socket));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cookie_is_valid_for_one_address_and_one_counter() {
    let relay = Relay::usual().await;
    let (_client, welcome) = RawClient::welcome(relay.address).await;
    let mut udp = RawUdp::new(relay.address, &welcome);
    udp.bind(1);
    // A client cannot redirect its datagrams to a victim.
    let victim = socket();
    let question = udp.bind_message(3, None);
    udp.send(&question);
    assert!(matches!(udp.receive(), Binding::Bound { counter: 3, .. }));
    let other = socket();
    let asked = udp.bind_message(4, None);
    other.send_to(&asked, relay.address).unwrap();
    let (Binding::Challenge { counter: 4, cookie }, _) = udp.receive_at(&other) else { panic!() };
    let answer = udp.bind_message(5, Some((4, cookie)));
    victim.send_to(&answer, relay.address).unwrap();
    let (Binding::Challenge { counter: 5, .. }, _) = udp.receive_at(&victim) else { panic!() };
    // A cookie for an older counter is invalid.
    let answer = udp.bind_message(6, Some((4, cookie)));
    other.send_to(&answer, relay.address).unwrap();
    assert!(matches!(udp.receive_at(&other).0, Binding::Challenge { counter: 6, .. }));
    let still = udp.bind_message(7, None);
    udp.send(&still);
    assert!(matches!(udp.receive(), Binding::Bound { counter: 7, .. }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copies_from_forged_addresses_cause_one_small_challenge_and_are_not_forwarded() {
    let relay = Relay::usual().await;
    let [(_a, mut udp_a, at_a), (_b, udp_b, _)] = pair(&relay).await;
    let victim = socket();
    let (long, short) = (udp_a.datagram(at_a, &[8; 1200]), udp_a.datagram(at_a, &[9; 40]));
    assert!(short.len() < BINDING_MIN);
    // An attacker spoofs the victim's address on copied datagrams.
    victim.send_to(&short, relay.address).unwrap();
    for _ in 0..50 {
        victim.send_to(&long, relay.address).unwrap();
    }
    let (challenge, len) = udp_a.receive_at(&victim);
    assert!(matches!(challenge, Binding::Challenge { counter: 2, .. }));
    assert!(len <= long.len());
    let question = udp_a.bind_message(3, None);
    udp_a.send(&question);
    assert!(matches!(udp_a.receive(), Binding::Bound { counter: 3, .. }));
    // The number of challenges depends on the elapsed time, but is never one per datagram.
    let mut more = 0;
    while !is_silent(&victim) {
        more += 1;
    }
    assert!(more < 10, "{more}");
    assert_eq!(relay.metrics.forwarded.get(), 0);
    assert!(is_silent(&udp_b.socket));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_with_a_new_address_is_bound_again_by_its_next_datagram() {
    let relay = Relay::usual().await;
    let [(_a, mut udp_a, at_a), (_b, udp_b, at_b)] = pair(&relay).await;
    udp_a.socket = socket();
    udp_a.send(&udp_a.datagram(at_a, &[1; 1000]));
    let Binding::Challenge { counter, cookie } = udp_a.receive() else { panic!() };
    let answer = udp_a.bind_message(3, Some((counter, cookie)));
    udp_a.send(&answer);
    assert!(matches!(udp_a.receive(), Binding::Bound { counter: 3, .. }));
    udp_a.send(&udp_a.datagram(at_a, &[2; 1000]));
    assert_eq!(udp_b.receive_datagram(at_b), [2; 1000]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_recognises_no_datagram_of_another_client() {
    let relay = Relay::usual().await;
    let [(_a, mut udp_a, at_a), (_b, udp_b, at_b)] = pair(&relay).await;
    let watcher = RawClient::welcome(relay.address).await.1;
    let watched = [udp_a.datagram(at_a, &[7; 100]), udp_b.datagram(at_b, &[7; 100])];
    for (datagram, id) in watched.iter().zip([at_a, at_b]) {
        assert_ne!(header::read_id(&up_mask(&watcher.secret), datagram), Some(id));
        assert_ne!(header::read_plain_id(datagram), Some(id));
    }
    // No two binding messages have anything in common.
    let ids: Vec<_> = (3..20)
        .map(|counter| header::read_plain_id(&udp_a.bind_message(counter, None)).unwrap())
        .collect();
    assert!((1..ids.len()).all(|i| !ids[..i].contains(&ids[i])));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_at_another_ip_address_is_bound_by_its_next_binding_message() {
    let relay = Relay::start(Timeouts::default(), |options| {
        options.listen = (Ipv4Addr::UNSPECIFIED, 0).into();
    })
    .await;
    let [(_a, mut udp_a, at_a), (_b, udp_b, at_b)] = pair(&relay).await;
    let moved = UdpSocket::bind(("127.0.0.7", 0)).unwrap();
    moved.set_read_timeout(Some(std::time::Duration::from_secs(30))).unwrap();
    udp_a.socket = moved;
    udp_a.send(&udp_a.datagram(at_a, &[1; 1000]));
    udp_a.bind(3);
    udp_a.send(&udp_a.datagram(at_a, &[2; 1000]));
    assert_eq!(udp_b.receive_datagram(at_b), [2; 1000], "the first one is lost");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_got_no_answers_goes_on_with_a_reported_counter() {
    let relay = Relay::usual().await;
    let (mut client, welcome) = RawClient::welcome(relay.address).await;
    let mut udp = RawUdp::new(relay.address, &welcome);
    let unknown = udp.bind_message(1000, None);
    udp.send(&unknown);
    client.send(&ClientFrame::BindFrom(1001));
    client.ping().await;
    udp.bind(1001);
    // A lower counter changes nothing.
    client.send(&ClientFrame::BindFrom(5));
    client.send(&ClientFrame::BindFrom(u64::MAX));
    client.ping().await;
    let last = udp.bind_message(u64::MAX, None);
    udp.send(&last);
    assert!(matches!(udp.receive(), Binding::Bound { counter: u64::MAX, .. }));
    assert!(is_silent(&udp.socket));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_of_several_pairs_in_one_buffer_all_arrive() {
    let relay = Relay::usual().await;
    let (mut a, welcome_a) = RawClient::welcome(relay.address).await;
    let mut udp_a = RawUdp::new(relay.address, &welcome_a);
    udp_a.bind(1);
    let mut others = Vec::new();
    for i in 0..3 {
        let (mut b, welcome) = RawClient::welcome(relay.address).await;
        let mailbox = b.register([i; 32]).await;
        let (at_a, at_b) = (a.dial(mailbox).await, b.incoming().await);
        let mut udp = RawUdp::new(relay.address, &welcome);
        udp.bind(1);
        b.send(&ClientFrame::UseUdp(true));
        b.ping().await;
        others.push((b, udp, at_a, at_b));
    }
    // The kernel merges equal-sized datagrams that are sent in a row.
    for round in 0..20_u8 {
        for (_, _, at_a, _) in &others {
            udp_a.send(&udp_a.datagram(*at_a, &[round; 500]));
        }
    }
    for (_, udp, _, at_b) in &others {
        for round in 0..20 {
            assert_eq!(udp.receive_datagram(*at_b), [round; 500]);
        }
    }
}
