//! Small messages in both directions, over both address families.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use crate::support::{V4, access_key, echo, endpoint, node_id, pair, pair_of, run};
use wraith_transport::{Bytes, ReadExactError};

#[test]
fn one_stream_carries_messages_in_both_directions() {
    let pair = pair(V4);
    let server = echo(pair.server);
    run(async {
        let (mut send, mut recv) = pair.client.open_stream().await.unwrap();
        for i in 0..500_u32 {
            let message = i.to_be_bytes();
            send.write_all(&message).await.unwrap();
            let mut answer = [0; 4];
            recv.read_exact(&mut answer).await.unwrap();
            assert_eq!(answer, message);
        }
        send.finish().unwrap();
        assert!(recv.read_chunk().await.unwrap().is_none());
        send.acked().await.unwrap();
    });
    drop(pair.client);
    server.join().unwrap();
}

#[test]
fn an_echo_works_over_ipv6() {
    let pair = pair(IpAddr::V6(Ipv6Addr::LOCALHOST));
    assert_eq!(pair.client.remote(), pair.server_endpoint.local_addr());
    let _server = echo(pair.server);
    run(async {
        let (mut send, mut recv) = pair.client.open_stream().await.unwrap();
        send.write_all(b"six").await.unwrap();
        let mut answer = [0; 3];
        recv.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"six");
    });
}

#[test]
fn a_dual_stack_endpoint_shows_an_ipv4_peer_as_ipv4() {
    let server = endpoint(2, IpAddr::V6(Ipv6Addr::UNSPECIFIED));
    let client = endpoint(1, V4);
    let address = SocketAddr::new(V4, server.local_addr().port());
    let to_server = run(client.connect(&[address], node_id(2), &access_key(2))).unwrap();
    let to_client = run(server.accept()).unwrap();
    assert_eq!(to_server.remote(), address);
    assert_eq!(to_client.remote(), client.local_addr());
    assert_eq!((to_server.peer(), to_client.peer()), (node_id(2), node_id(1)));
}

#[test]
fn the_server_can_open_streams_too() {
    let pair = pair(V4);
    run(async {
        let (mut send, _recv) = pair.server.open_stream().await.unwrap();
        send.write_chunks([Bytes::from_static(b"from "), Bytes::from_static(b"here")])
            .await
            .unwrap();
        send.finish().unwrap();
        let (_send, mut recv) = pair.client.accept_stream().await.unwrap();
        let mut got = [0; 9];
        recv.read_exact(&mut got).await.unwrap();
        assert_eq!(&got, b"from here");
        let mut more = [0; 2];
        assert_eq!(recv.read_exact(&mut more).await, Err(ReadExactError::Ended { got: 0 }));
    });
}

#[test]
fn an_empty_stream_arrives_as_one() {
    let pair = pair(V4);
    run(async {
        let (mut send, _recv) = pair.client.open_stream().await.unwrap();
        send.finish().unwrap();
        let (_send, mut recv) = pair.server.accept_stream().await.unwrap();
        assert!(recv.read_chunk().await.unwrap().is_none());
        send.acked().await.unwrap();
    });
}

#[test]
fn datagrams_arrive() {
    let pair = pair(V4);
    run(async {
        pair.client.send_datagram(Bytes::from_static(b"unreliable")).unwrap();
        assert_eq!(pair.server.read_datagram().await.unwrap(), &b"unreliable"[..]);
    });
}

#[test]
fn one_process_can_hold_both_ends_of_one_endpoint_pair_many_times() {
    let server = endpoint(2, V4);
    let client = endpoint(1, V4);
    for _ in 0..20 {
        let pair = pair_of(client.clone(), server.clone());
        run(async {
            let (mut send, _recv) = pair.client.open_stream().await.unwrap();
            send.write_all(b"x").await.unwrap();
            send.finish().unwrap();
            send.acked().await.unwrap();
        });
        pair.client.close(0, "");
    }
}
