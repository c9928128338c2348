//! TCP through well-behaved proxies.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use wraith_proxy::{Denial, Proxy, ProxyError};

use crate::server::{ESCAPED, NAME, Server, USER, echo, http, socks5};

/// Checks that the stream delivers the whole greeting, though it shared a write with the proxy's
/// answer, and that the target echoes.
async fn check_echo(mut stream: TcpStream) {
    let mut bytes = [0; 5];
    stream.read_exact(&mut bytes).await.unwrap();
    assert_eq!(&bytes, b"hello");
    stream.write_all(b"there").await.unwrap();
    stream.read_exact(&mut bytes).await.unwrap();
    assert_eq!(&bytes, b"there");
}

/// Returns one proxy of each kind, with authentication if `guarded`.
async fn both_proxies(guarded: bool) -> [(Server, &'static str); 2] {
    [(socks5(guarded).await, "socks5"), (http(guarded).await, "http")]
}

#[tokio::test]
async fn the_proxy_resolves_names_and_the_stream_starts_with_target_data() {
    let port = echo().await.port();
    for (server, scheme) in both_proxies(false).await {
        check_echo(server.proxy(scheme, "").connect(NAME, port).await.unwrap()).await;
        assert!(
            server.requested_targets()[0].ends_with(&format!("{NAME}:{port}")),
            "{:?}",
            server.requested_targets()
        );
    }
}

#[tokio::test]
async fn addresses_are_requested_as_addresses() {
    let port = echo().await.port();
    for (server, scheme) in both_proxies(false).await {
        check_echo(server.proxy(scheme, "").connect("127.0.0.1", port).await.unwrap()).await;
        let _ = server.proxy(scheme, "").connect("[::1]", 9).await;
        let asked = server.requested_targets();
        assert!(asked[0].ends_with(&format!("127.0.0.1:{port}")), "{asked:?}");
        assert!(asked[1].ends_with("[::1]:9"), "{asked:?}");
    }
}

#[tokio::test]
async fn credentials_are_sent_if_required() {
    let port = echo().await.port();
    for (server, scheme) in both_proxies(true).await {
        check_echo(server.proxy(scheme, ESCAPED).connect(NAME, port).await.unwrap()).await;
    }
    for (server, scheme) in both_proxies(false).await {
        check_echo(server.proxy(scheme, ESCAPED).connect(NAME, port).await.unwrap()).await;
    }
}

/// Returns an address where nothing listens. A port that is only free could be given to the next
/// server, or to the connection to it, which then connects to itself.
fn closed_port() -> (TcpSocket, SocketAddr) {
    let taken = TcpSocket::new_v4().unwrap();
    taken.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = taken.local_addr().unwrap();
    (taken, address)
}

async fn error(proxy: Proxy, port: u16) -> ProxyError {
    proxy.connect(NAME, port).await.expect_err("it was refused")
}

#[tokio::test]
async fn missing_and_wrong_credentials_are_distinct_errors_without_the_secret() {
    for (server, scheme) in both_proxies(true).await {
        let missing = error(server.proxy(scheme, ""), 1).await;
        assert!(matches!(missing, ProxyError::CredentialsWanted { .. }), "{missing}");
        let wrong = error(server.proxy(scheme, "somebody:topsecret@"), 1).await;
        assert!(matches!(wrong, ProxyError::CredentialsRefused { .. }), "{wrong}");
        for shown in [
            wrong.to_string(),
            format!("{wrong:?}"),
            format!("{:?}", server.proxy(scheme, ESCAPED)),
        ] {
            assert!(!shown.contains("topsecret") && !shown.contains("somebody"), "{shown}");
            assert!(!shown.contains(USER), "{shown}");
        }
    }
}

#[tokio::test]
async fn an_unreachable_target_is_named() {
    let (_taken, closed) = closed_port();
    let closed = closed.port();
    for (server, scheme) in both_proxies(false).await {
        let error = error(server.proxy(scheme, ""), closed).await;
        let ProxyError::Denied { ref target, denial, .. } = error else { panic!("{error}") };
        assert_eq!(
            (target.as_str(), denial),
            (format!("{NAME}:{closed}").as_str(), Denial::Unreachable)
        );
    }
}

#[tokio::test]
async fn an_absent_proxy_and_an_invalid_target_are_distinct_errors() {
    let server = socks5(false).await;
    for host in ["", "a b", "a\r\nX: y", "ä", &"a".repeat(254)] {
        let error = server.proxy("http", "").connect(host, 1).await.unwrap_err();
        assert!(matches!(error, ProxyError::BadTarget(_)), "{error}");
    }
    assert!(server.requested_targets().is_empty());
    let (_taken, gone) = closed_port();
    let proxy = Proxy::new(format!("http://{gone}").parse().unwrap());
    let error = error(proxy, 1).await;
    assert!(matches!(error, ProxyError::Unreachable { .. }), "{error}");
}
