//! TCP through well-behaved proxies.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use wraith_proxy::{Denial, Proxy, ProxyError};

use crate::server::{ESCAPED, NAME, Server, USER, echo, http, socks5};

/// Checks that the stream delivers the whole greeting, though it shared a write with the proxy's
/// answer, and that the target echoes.
async fn talk(mut stream: TcpStream) {
    let mut bytes = [0; 5];
    stream.read_exact(&mut bytes).await.unwrap();
    assert_eq!(&bytes, b"hello");
    stream.write_all(b"there").await.unwrap();
    stream.read_exact(&mut bytes).await.unwrap();
    assert_eq!(&bytes, b"there");
}

/// Returns one proxy of each kind, with authentication if `guarded`.
async fn both(guarded: bool) -> [(Server, &'static str); 2] {
    [(socks5(guarded).await, "socks5"), (http(guarded).await, "http")]
}

#[tokio::test]
async fn a_name_is_resolved_by_the_proxy_and_the_first_byte_is_the_other_sides() {
    let port = echo().await.port();
    for (server, scheme) in both(false).await {
        talk(server.proxy(scheme, "").connect(NAME, port).await.unwrap()).await;
        assert!(server.asked()[0].ends_with(&format!("{NAME}:{port}")), "{:?}", server.asked());
    }
}

#[tokio::test]
async fn an_address_is_asked_for_as_such() {
    let port = echo().await.port();
    for (server, scheme) in both(false).await {
        talk(server.proxy(scheme, "").connect("127.0.0.1", port).await.unwrap()).await;
        let _ = server.proxy(scheme, "").connect("[::1]", 9).await;
        let asked = server.asked();
        assert!(asked[0].ends_with(&format!("127.0.0.1:{port}")), "{asked:?}");
        assert!(asked[1].ends_with("[::1]:9"), "{asked:?}");
    }
}

#[tokio::test]
async fn user_and_password_are_sent_where_they_are_wanted() {
    let port = echo().await.port();
    for (server, scheme) in both(true).await {
        talk(server.proxy(scheme, ESCAPED).connect(NAME, port).await.unwrap()).await;
    }
    for (server, scheme) in both(false).await {
        talk(server.proxy(scheme, ESCAPED).connect(NAME, port).await.unwrap()).await;
    }
}

async fn error(proxy: Proxy, port: u16) -> ProxyError {
    proxy.connect(NAME, port).await.expect_err("it was refused")
}

#[tokio::test]
async fn missing_and_wrong_credentials_are_told_apart_and_not_shown() {
    for (server, scheme) in both(true).await {
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
async fn a_host_that_the_proxy_does_not_get_to_is_named() {
    let closed = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap().port()
    };
    for (server, scheme) in both(false).await {
        let error = error(server.proxy(scheme, ""), closed).await;
        let ProxyError::Denied { ref target, denial, .. } = error else { panic!("{error}") };
        assert_eq!((target.as_str(), denial), (format!("{NAME}:{closed}").as_str(), Denial::NoWay));
    }
}

#[tokio::test]
async fn a_proxy_that_is_not_there_and_a_target_that_is_no_host_are_errors_of_their_own() {
    let server = socks5(false).await;
    for host in ["", "a b", "a\r\nX: y", "ä", &"a".repeat(254)] {
        let error = server.proxy("http", "").connect(host, 1).await.unwrap_err();
        assert!(matches!(error, ProxyError::BadTarget(_)), "{error}");
    }
    assert!(server.asked().is_empty());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let gone = listener.local_addr().unwrap();
    drop(listener);
    let proxy = Proxy::new(format!("http://{gone}").parse().unwrap());
    let error = error(proxy, 1).await;
    assert!(matches!(error, ProxyError::Unreachable { .. }), "{error}");
}
