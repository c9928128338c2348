//! Several doors of one socket: each accepts its own peers, and ends alone.

use std::time::Duration;

use crate::support::{HANG, V4, config, endpoint, node_id, run};
use wraith_transport::{
    AccessKey, CloseReason, Config, ConnectError, Connection, Door, Endpoint, block_on_timeout,
};

/// The access key of one door of identity 2.
fn key(door: u8) -> AccessKey {
    AccessKey::of_ticket(&[door; 16], node_id(2))
}

fn door(number: u8) -> Door {
    Door { access_keys: vec![key(number)], ..Door::default() }
}

fn dial(from: &Endpoint, to: &Endpoint, door: u8) -> Result<Connection, ConnectError> {
    run(from.connect(&[to.local_addr()], node_id(2), &key(door)))
}

#[test]
fn each_peer_comes_through_the_door_of_its_access_key() {
    let (server, client) = (endpoint(2, V4), endpoint(1, V4));
    let doors = [1, 2, 3].map(|number| server.open_door(door(number)));
    for number in [3_u8, 1, 2] {
        let peer = dial(&client, &server, number).unwrap();
        let accepted = run(doors[usize::from(number) - 1].accept()).unwrap();
        assert_eq!(accepted.peer(), node_id(1));
        assert_eq!(doors[0].local_addr(), server.local_addr(), "one socket");
        peer.close(0x100, "");
        assert!(matches!(run(accepted.closed()), CloseReason::Peer { code: 0x100, .. }));
    }
}

#[test]
fn a_closed_door_ends_its_connections_and_leaves_those_of_others() {
    let (server, client) = (endpoint(2, V4), endpoint(1, V4));
    let (one, other) = (server.open_door(door(1)), server.open_door(door(2)));
    let (a, b) = (dial(&client, &server, 1).unwrap(), dial(&client, &server, 2).unwrap());
    let (mine, theirs) = (run(one.accept()).unwrap(), run(other.accept()).unwrap());
    // The last message of a closing door is still delivered.
    let (mut send, _recv) = run(mine.open_stream()).unwrap();
    run(send.write_all(b"farewell")).unwrap();
    send.finish().unwrap();
    one.start_close();
    let limit = Duration::from_millis(2500);
    assert!(block_on_timeout(one.closed(), limit).is_some(), "it waited until its deadline");
    let (_, mut recv) = run(a.accept_stream()).unwrap();
    assert_eq!(&run(recv.read_chunk()).unwrap().unwrap()[..], b"farewell");
    assert!(matches!(run(a.closed()), CloseReason::Peer { code: 0, .. }));
    assert_eq!(run(one.accept()).map(drop), None);
    assert_eq!((b.close_reason(), theirs.close_reason()), (None, None));
    assert!(matches!(
        run(one.connect(&[client.local_addr()], node_id(1), &key(1))),
        Err(ConnectError::EndpointClosed)
    ));
    // The other door still accepts.
    let again = dial(&client, &server, 2).unwrap();
    let accepted = run(other.accept()).unwrap();
    assert_eq!((again.close_reason(), accepted.close_reason()), (None, None));
}

#[test]
fn a_door_that_stops_accepting_keeps_its_connections() {
    let (server, client) = (endpoint(2, V4), endpoint(1, V4));
    let one = server.open_door(door(1));
    let peer = dial(&client, &server, 1).unwrap();
    let accepted = run(one.accept()).unwrap();
    let unclaimed = dial(&client, &server, 1).unwrap();
    // Acknowledged: the server has the connection.
    let (mut send, _recv) = run(unclaimed.open_stream()).unwrap();
    run(send.write_all(b"is anybody there?")).unwrap();
    send.finish().unwrap();
    run(send.acked()).unwrap();
    one.stop_accepting();
    assert!(matches!(run(unclaimed.closed()), CloseReason::Peer { code: 0, .. }));
    assert_eq!(run(one.accept()).map(drop), None);
    let addresses = [server.local_addr()];
    let access_key = key(1);
    let late = client.connect(&addresses, node_id(2), &access_key);
    assert!(block_on_timeout(late, Duration::from_millis(500)).is_none(), "no answer");
    // The handle still dials.
    let listening = client.open_door(Door {
        access_keys: vec![AccessKey::of_ticket(&[9; 16], node_id(1))],
        ..Door::default()
    });
    let access_key = AccessKey::of_ticket(&[9; 16], node_id(1));
    let _back = run(one.connect([client.local_addr()], node_id(1), &access_key)).unwrap();
    assert_eq!(run(listening.accept()).unwrap().peer(), node_id(2));
    let (mut send, _) = run(peer.open_stream()).unwrap();
    run(send.write_all(b"still here")).unwrap();
    let (_, mut recv) = run(accepted.accept_stream()).unwrap();
    assert_eq!(&run(recv.read_chunk()).unwrap().unwrap()[..], b"still here");
}

#[test]
fn a_gone_door_is_silent() {
    let server = endpoint(2, V4);
    drop(server.open_door(door(1)));
    let mut core = config(1);
    core.transport.idle_timeout = Duration::from_secs(1);
    let stranger = Endpoint::bind(Config::new(core).bind((V4, 0))).unwrap();
    // The request to close is read in the round of the request to open, or soon after.
    let dialled = dial(&stranger, &server, 1);
    let is_silent = match dialled {
        Err(ConnectError::Closed(CloseReason::HandshakeTimeout)) => true,
        Ok(connection) => run(connection.closed()) == CloseReason::IdleTimeout,
        Err(_) => false,
    };
    assert!(is_silent);
}

#[test]
fn a_door_admits_its_own_number_of_connections() {
    let (server, client) = (endpoint(2, V4), endpoint(1, V4));
    let one = server.open_door(Door { connections_max: 1, ..door(1) });
    let other = server.open_door(door(2));
    let _first = dial(&client, &server, 1).unwrap();
    let _held = run(one.accept()).unwrap();
    let addresses = [server.local_addr()];
    let access_key = key(1);
    let full = client.connect(&addresses, node_id(2), &access_key);
    assert!(block_on_timeout(full, Duration::from_millis(500)).is_none(), "no answer");
    let peer = dial(&client, &server, 2).unwrap();
    let accepted = run(other.accept()).unwrap();
    assert_eq!((peer.close_reason(), accepted.close_reason()), (None, None));
}

#[test]
fn the_first_handle_closes_all_doors_and_the_socket() {
    let (server, client) = (endpoint(2, V4), endpoint(1, V4));
    let one = server.open_door(door(1));
    let peer = dial(&client, &server, 1).unwrap();
    let _held = run(one.accept()).unwrap();
    let address = server.local_addr();
    server.close();
    assert!(matches!(run(peer.closed()), CloseReason::Peer { code: 0, .. }));
    assert_eq!(run(one.accept()).map(drop), None);
    run(one.closed());
    // The port is free again, and a door of the closed endpoint is closed.
    drop(std::net::UdpSocket::bind(address).unwrap());
    assert_eq!(run(server.open_door(door(2)).accept()).map(drop), None);
}

#[test]
fn a_socket_lives_as_long_as_any_of_its_doors() {
    let (server, client) = (endpoint(2, V4), endpoint(1, V4));
    let one = server.open_door(door(1));
    drop(server);
    let peer = run(client.connect(&[one.local_addr()], node_id(2), &key(1))).unwrap();
    let accepted = block_on_timeout(one.accept(), HANG).unwrap().unwrap();
    assert_eq!((peer.close_reason(), accepted.close_reason()), (None, None));
}
