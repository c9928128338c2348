//! The text and the bytes of tickets: round trips, what is refused, and hostile input.

use proptest::prelude::*;
use wraith_crypto::identity::SecretIdentity;

use super::*;

fn ticket(addresses: Vec<SocketAddr>) -> Ticket {
    let node_id = SecretIdentity::from_seed([1; 32]).node_id();
    Ticket::new(node_id, Capability::from_bytes([2; 16]), addresses)
}

fn sealed(mut body: Vec<u8>) -> Vec<u8> {
    let check = check(&body);
    body.extend_from_slice(&check);
    body
}

fn any_address() -> impl Strategy<Value = SocketAddr> {
    (any::<IpAddr>(), 1..=u16::MAX).prop_map(|(ip, port)| SocketAddr::new(ip, port))
}

fn relay(host: &str) -> RelayAddr {
    RelayAddr::new(host, 443, [3; 32], [4; 16]).unwrap()
}

fn any_way() -> impl Strategy<Value = CustomWay> {
    let bytes = prop::collection::vec(any::<u8>(), 0..=60);
    (3..=u16::MAX, bytes).prop_map(|(kind, bytes)| CustomWay::new(kind, bytes).unwrap())
}

fn any_relay() -> impl Strategy<Value = RelayAddr> {
    ("[a-z0-9.-]{1,64}", 1..=u16::MAX, any::<[u8; 32]>(), any::<[u8; 16]>())
        .prop_map(|(host, port, pin, mailbox)| RelayAddr::new(&host, port, pin, mailbox).unwrap())
}

proptest! {
    #[test]
    fn every_ticket_survives_text(
        addresses in prop::collection::vec(any_address(), 0..=50),
        relays in prop::collection::vec(any_relay(), 0..=3),
        ways in prop::collection::vec(any_way(), 0..=10),
        suites in any::<u8>(),
        is_of_service in any::<bool>(),
    ) {
        let all = Reach::from(addresses.clone()).with(relays).with(ways);
        let mut ticket = ticket(Vec::new()).at(all).with_suites(suites);
        if is_of_service {
            ticket = ticket.of_service();
        }
        prop_assert_eq!(ticket.suites(), suites);
        prop_assert!(addresses.starts_with(&ticket.addresses()));
        prop_assert!(ticket.encode().len() <= MAX_LEN);
        prop_assert_eq!(&ticket.at(ticket.reach().clone()), &ticket);
        let text = ticket.to_string();
        prop_assert_eq!(text.parse::<Ticket>(), Ok(ticket.clone()));
        prop_assert_eq!(text.to_uppercase().parse::<Ticket>(), Ok(ticket));
    }

    #[test]
    fn arbitrary_bytes_are_refused_or_encode_to_themselves(
        body in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        for bytes in [body.clone(), sealed(body)] {
            if let Ok(ticket) = Ticket::decode(&bytes) {
                prop_assert_eq!(ticket.encode(), bytes);
            }
        }
    }

    #[test]
    fn arbitrary_text_never_panics(text in "\\PC{0,80}", tail in "[a-z2-7]{0,200}") {
        let _ = text.parse::<Ticket>();
        let _ = format!("wraith:{tail}").parse::<Ticket>();
    }
}

#[test]
fn a_ticket_pasted_with_line_breaks_is_understood() {
    let ticket = ticket(vec!["192.0.2.7:4433".parse().unwrap()]);
    let text = ticket.to_string();
    let (a, b) = text.split_at(40);
    assert_eq!(format!("  {a}\r\n {b}\n").parse(), Ok(ticket));
}

#[test]
fn any_single_wrong_character_is_reported_as_mistyped() {
    let text = ticket(vec!["[2001:db8::1]:9".parse().unwrap()]).to_string();
    for at in PREFIX.len()..text.len() - 1 {
        let mut bytes = text.clone().into_bytes();
        bytes[at] = if bytes[at] == b'a' { b'b' } else { b'a' };
        let wrong = String::from_utf8(bytes).unwrap();
        assert_eq!(wrong.parse::<Ticket>(), Err(TicketError::Mistyped), "{wrong}");
    }
}

#[test]
fn invalid_tickets_are_rejected_with_the_reason() {
    let parse = |text: &str| text.parse::<Ticket>().unwrap_err();
    assert_eq!(parse("hello"), TicketError::NotATicket);
    assert_eq!(parse(""), TicketError::NotATicket);
    assert_eq!(parse("wraith:"), TicketError::WrongLength);
    assert_eq!(parse("wraith:0189"), TicketError::NotBase32);
    assert_eq!(parse(&"a".repeat(100_000)), TicketError::WrongLength);
    let whole = ticket(vec![]).to_string();
    assert_eq!(parse(&whole[..whole.len() - 8]), TicketError::WrongLength);
}

#[test]
fn a_valid_check_does_not_excuse_a_bad_body() {
    let good = ticket(vec![]).encode();
    let body = &good[..good.len() - CHECK_LEN];

    let mut newer = body.to_vec();
    newer[0] = 9;
    assert_eq!(Ticket::decode(&sealed(newer)), Err(TicketError::UnknownVersion(9)));
    for version in [0, 1, 2] {
        let mut older = body.to_vec();
        older[0] = version;
        assert_eq!(Ticket::decode(&sealed(older)), Err(TicketError::OlderVersion(version)));
    }

    for (relays, error) in [
        (vec![], TicketError::WrongLength),
        (vec![0], TicketError::BadRelay),
        (vec![3], TicketError::BadRelay),
        (vec![1, 0], TicketError::WrongLength),
        ([&[1, 1, b' '][..], &[1; 50]].concat(), TicketError::BadRelay),
    ] {
        let mut relayed = body.to_vec();
        relayed[0] = VERSION_WITH_RELAYS;
        relayed.extend_from_slice(&relays);
        assert_eq!(Ticket::decode(&sealed(relayed)), Err(error), "{relays:?}");
    }

    for (rest, error) in [
        (vec![0], TicketError::WrongLength),
        (vec![0, Policy::Default.packet_suites()], TicketError::BadSuites),
        (vec![0, 4, 0], TicketError::WrongLength),
    ] {
        let mut with_suites = body.to_vec();
        with_suites[0] = VERSION_WITH_SUITES;
        with_suites.extend_from_slice(&rest);
        assert_eq!(Ticket::decode(&sealed(with_suites)), Err(error), "{rest:?}");
    }

    for (rest, error) in [
        (vec![0, 3], TicketError::WrongLength),
        (vec![0, 3, 1, 44], TicketError::WrongLength),
        (vec![0, 3, 1, 44, 2, 9], TicketError::WrongLength),
        (vec![0, 3, 0, 1, 1, 9], TicketError::BadAddress),
    ] {
        let mut with_ways = body.to_vec();
        with_ways[0] = VERSION_WITH_WAYS;
        with_ways.extend_from_slice(&rest);
        assert_eq!(Ticket::decode(&sealed(with_ways)), Err(error), "{rest:?}");
    }

    let mut many = body.to_vec();
    many[HEAD_LEN - 1] = 41;
    assert_eq!(Ticket::decode(&sealed(many)), Err(TicketError::TooManyAddresses));

    let mut missing = body.to_vec();
    missing[HEAD_LEN - 1] = 1;
    assert_eq!(Ticket::decode(&sealed(missing.clone())), Err(TicketError::WrongLength));
    missing.extend_from_slice(&[5, 1, 2, 3, 4, 0, 1]);
    assert_eq!(Ticket::decode(&sealed(missing.clone())), Err(TicketError::BadAddress));
    missing.truncate(HEAD_LEN);
    missing.extend_from_slice(&[4, 1, 2, 3, 4, 0, 0]);
    assert_eq!(Ticket::decode(&sealed(missing)), Err(TicketError::BadAddress));

    let mut longer = body.to_vec();
    longer.push(0);
    assert_eq!(Ticket::decode(&sealed(longer)), Err(TicketError::WrongLength));
}

#[test]
fn a_ticket_has_the_addresses_of_40_networks() {
    let addresses: Vec<_> = (1..=50).map(|n| SocketAddr::from(([10, n, 0, 1], 9))).collect();
    let ticket = ticket(addresses.clone());
    assert_eq!(ticket.addresses(), addresses[..40]);
    assert_eq!(Ticket::decode(&ticket.encode()), Ok(ticket));
}

#[test]
fn addresses_make_room_for_relays_and_the_best_of_both_stay() {
    let addresses: Vec<SocketAddr> =
        (1..=16).map(|n| SocketAddr::new(Ipv6Addr::from([n; 16]).into(), 9)).collect();
    let relays = ["a.example", &"b".repeat(64), "c.example"].map(relay);
    let ticket = ticket(Vec::new()).at(Reach::from(addresses.clone()).with(relays.clone()));
    assert!(ticket.reach().relays().eq(&relays[..2]));
    let kept = ticket.addresses();
    assert!((5..16).contains(&kept.len()) && addresses.starts_with(&kept), "{}", kept.len());
}

#[test]
fn ways_of_unknown_kinds_are_kept_within_bounds_beside_the_known() {
    let address: SocketAddr = "192.0.2.7:9".parse().unwrap();
    let way = |kind| CustomWay::new(kind, vec![1; 20]).unwrap();
    let all = Reach::from(vec![address]).with([relay("a.example")]).with((300..1300).map(way));
    let ticket = ticket(Vec::new()).at(all);
    assert_eq!(ticket.encode()[0], VERSION_WITH_WAYS);
    assert_eq!((ticket.addresses(), ticket.reach().relays().count()), (vec![address], 1));
    assert!(ticket.reach().custom().cloned().eq((300..308).map(way)));
    assert_eq!(Ticket::decode(&ticket.encode()), Ok(ticket.clone()));
    assert_eq!(ticket.clone().of_service().encode()[0], VERSION_OF_SERVICE_WITH_WAYS);

    let body = ticket.encode();
    let mut body = body[..body.len() - CHECK_LEN].to_vec();
    (0..1000).for_each(|_| way(300).encode(&mut body));
    assert_eq!(Ticket::decode(&sealed(body.clone())), Err(TicketError::WrongLength));
    body.truncate(MAX_LEN - CHECK_LEN - 2);
    body.extend_from_slice(&[0; 64 << 10]);
    assert_eq!(Ticket::decode(&sealed(body)), Err(TicketError::WrongLength));
}

#[test]
fn the_encoding_is_the_one_of_the_specification() {
    let bytes = ticket(vec!["1.2.3.4:258".parse().unwrap()]).encode();
    assert_eq!(bytes[0], 3);
    assert_eq!(bytes[1..33], SecretIdentity::from_seed([1; 32]).node_id().0);
    assert_eq!(bytes[33..49], [2; 16]);
    assert_eq!(bytes[49..57], [1, 4, 1, 2, 3, 4, 1, 2]);
    assert_eq!(bytes.len(), 57 + CHECK_LEN);
}
