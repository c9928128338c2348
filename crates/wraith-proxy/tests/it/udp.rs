//! UDP through a SOCKS5 proxy.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, poll};
use wraith_proxy::{Association, ProxyError};

use crate::server::{http, saying, socks5};

/// The next datagram; waits as an I/O thread does, for the descriptor.
fn next(association: &Association) -> (SocketAddr, Vec<u8>) {
    let mut buffer = vec![0; 65_536];
    loop {
        match association.receive(&mut buffer) {
            Ok((from, len)) => return (from, buffer[..len].to_vec()),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
        }
        tokio::task::block_in_place(|| {
            poll(&mut [PollFd::new(association, PollFlags::IN)], None).unwrap();
        });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn datagrams_of_any_size_go_both_ways_and_strays_are_dropped() {
    let server = socks5(false).await;
    let association = server.proxy("socks5", "").associate().await.unwrap();
    assert!(server.asked()[0].starts_with("3 0.0.0.0:0"), "{:?}", server.asked());
    let peer = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let to = peer.local_addr().unwrap();
    for len in [0, 1, 1200, 9000, 60_000] {
        let payload: Vec<u8> = (0..len).map(|byte| byte as u8).collect();
        association.send(to, &payload).unwrap();
        let mut buffer = vec![0; 65_536];
        let (received, from) = peer.recv_from(&mut buffer).await.unwrap();
        assert_eq!(&buffer[..received], payload);
        peer.send_to(&payload, from).await.unwrap();
        assert_eq!(next(&association), (to, payload));
    }
}

#[tokio::test]
async fn an_association_ends_with_its_tcp_connection() {
    let server = saying(vec![5, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0, 99], true).await;
    let association = server.proxy("socks5", "").associate().await.unwrap();
    association.closed().await;
    assert!(!association.is_open());
    let error = association.send("127.0.0.1:9".parse().unwrap(), b"x").unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotConnected);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_proxy_is_heard() {
    let server = socks5(false).await;
    let association = server.proxy("socks5", "").associate().await.unwrap();
    let ours = rustix::net::getsockname(association.as_fd()).unwrap();
    let ours = SocketAddr::try_from(ours).unwrap();
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    stranger.send_to(&[0, 0, 0, 1, 127, 0, 0, 1, 0, 9, 1], ours).unwrap();
    let peer = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    association.send(peer.local_addr().unwrap(), b"question").unwrap();
    let mut buffer = [0; 64];
    let (_, from) = peer.recv_from(&mut buffer).await.unwrap();
    peer.send_to(b"answer", from).await.unwrap();
    assert_eq!(next(&association), (peer.local_addr().unwrap(), b"answer".to_vec()));
}

#[tokio::test]
async fn a_proxy_without_udp_says_so() {
    let server = saying(vec![5, 0, 5, 7, 0, 1, 0, 0, 0, 0, 0, 0], false).await;
    let error = server.proxy("socks5", "").associate().await.unwrap_err();
    assert!(matches!(error, ProxyError::NoUdp { .. }), "{error}");
    let error = http(false).await.proxy("http", "").associate().await.unwrap_err();
    assert!(matches!(error, ProxyError::NoUdp { .. }), "{error}");
}
