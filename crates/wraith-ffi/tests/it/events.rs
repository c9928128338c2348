//! Events of the library in the form for other languages.

use wraith_ffi::Event;

#[test]
fn events_of_a_listener_are_no_text_for_developers() {
    use wraith::Event as LibraryEvent;
    for (event, expected) in [
        (LibraryEvent::RefusedUnread { total: 3 }, "RefusedUnread { total: 3 }"),
        (LibraryEvent::ContactsChanged(2), "ContactsChanged { contacts: 2 }"),
        (LibraryEvent::UnauthorizedPeer, "UnauthorizedPeer"),
        (LibraryEvent::ReceiverReconnected, "ReceiverReconnected"),
    ] {
        assert_eq!(format!("{:?}", Event::from(event)), expected);
    }
}

#[test]
fn a_path_names_its_peer_and_the_reason_for_staying_on_a_relay() {
    use wraith::{Addr, NodeId, PathKind, PathOrigin, Route};
    let (peer, why) = (NodeId([1; 32]), Some("no answer".to_owned()));
    let remote = Addr::from("192.0.2.1:9".parse::<std::net::SocketAddr>().unwrap());
    let route = Route { kind: PathKind::Relay, origin: PathOrigin::Relay };
    let event = wraith::Event::Path { peer, remote, route, why: why.clone() };
    let Event::Path { peer: shown, why: given, path, .. } = Event::from(event) else {
        panic!("another event");
    };
    assert_eq!((shown, given, path), (peer.to_string(), why, "relay".to_owned()));
}
