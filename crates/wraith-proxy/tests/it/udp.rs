//! UDP through a SOCKS5 proxy.

use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::time::timeout;
use wraith_proxy::{Association, ProxyError};

use crate::server::{NAME, http, server_that_sends, socks5};

/// Returns the payload of the server's next datagram.
async fn next(association: &Association, socket: &UdpSocket) -> Vec<u8> {
    let mut buffer = vec![0; 65_536];
    loop {
        let len = socket.recv(&mut buffer).await.unwrap();
        if let Some(header) = association.header_from(&buffer[..len]) {
            return buffer[header..len].to_vec();
        }
    }
}

async fn socket(association: &Association) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(association.proxy()).await.unwrap();
    socket
}

#[tokio::test]
async fn datagrams_of_any_size_pass_both_ways_and_foreign_ones_are_dropped() {
    let server = socks5(false).await;
    let peer = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let port = peer.local_addr().unwrap().port();
    for host in ["127.0.0.1", NAME] {
        let association = server.proxy("socks5", "").associate(host, port).await.unwrap();
        assert!(
            server.requested_targets()[0].starts_with("3 0.0.0.0:0"),
            "{:?}",
            server.requested_targets()
        );
        let socket = socket(&association).await;
        for len in [0, 1, 1200, 9000, 60_000] {
            let payload: Vec<u8> = (0..len).map(|byte| byte as u8).collect();
            socket.send(&[association.header(), &payload].concat()).await.unwrap();
            let mut buffer = vec![0; 65_536];
            let (received, from) = peer.recv_from(&mut buffer).await.unwrap();
            assert_eq!(&buffer[..received], payload);
            peer.send_to(&payload, from).await.unwrap();
            assert_eq!(next(&association, &socket).await, payload);
        }
    }
}

/// The proxy's reply contains an unreachable address, which the client has to ignore.
#[tokio::test]
async fn datagrams_use_the_address_of_the_control_connection() {
    let server = socks5(false).await;
    let association = server.proxy("socks5", "").associate("192.0.2.1", 9).await.unwrap();
    assert_eq!(association.proxy().ip(), server.address.ip());
    assert_ne!(association.proxy().port(), server.address.port());
}

#[tokio::test]
async fn an_association_ends_with_its_tcp_connection() {
    let server = socks5(false).await;
    let association = server.proxy("socks5", "").associate("192.0.2.1", 9).await.unwrap();
    let held = timeout(Duration::from_millis(50), association.closed()).await;
    assert!(held.is_err(), "the proxy holds it");
    let server = server_that_sends(vec![5, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0, 99], true).await;
    let association = server.proxy("socks5", "").associate("192.0.2.1", 9).await.unwrap();
    association.closed().await;
}

#[tokio::test]
async fn a_proxy_without_udp_is_reported() {
    let server = server_that_sends(vec![5, 0, 5, 7, 0, 1, 0, 0, 0, 0, 0, 0], false).await;
    let error = server.proxy("socks5", "").associate("192.0.2.1", 9).await.unwrap_err();
    assert!(matches!(error, ProxyError::NoUdp { .. }), "{error}");
    let error = http(false).await.proxy("http", "").associate("192.0.2.1", 9).await.unwrap_err();
    assert!(matches!(error, ProxyError::NoUdp { .. }), "{error}");
}
