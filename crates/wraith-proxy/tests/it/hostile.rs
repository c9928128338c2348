//! Hostile proxies: invalid, truncated, oversized or missing answers.

use std::time::Duration;

use wraith_proxy::{CONNECT_TIMEOUT, ProxyError};

use crate::server::server_that_sends;

/// Time limit of attempts through a silent proxy; the test expects it to expire.
const LIMIT: Duration = Duration::from_millis(100);

async fn error(scheme: &str, says: &[u8], then_close: bool, limit: Duration) -> ProxyError {
    let server = server_that_sends(says.to_vec(), then_close).await;
    let proxy = server.proxy(scheme, "user:topsecret@").timeout(limit);
    let error = proxy.connect("host.example", 443).await.expect_err("no connection");
    assert!(!format!("{error} {error:?}").contains("topsecret"), "{error:?}");
    error
}

#[tokio::test]
async fn invalid_replies_are_reported_at_once() {
    let http = b"HTTP/1.1 200 OK\r\n\r\n";
    let socks: [&[u8]; 7] = [
        http,
        &[4, 0],
        &[5, 1],
        &[5, 2, 5, 0],
        &[5, 0, 4, 0, 0, 1],
        &[5, 0, 5, 0, 0, 9],
        &[0xff; 4096],
    ];
    for says in socks {
        let error = error("socks5", says, false, CONNECT_TIMEOUT).await;
        assert!(matches!(error, ProxyError::NotAProxy { .. }), "{says:?}: {error}");
    }
    let long_line = [&b"HTTP/1.1 200 "[..], &[b'a'; 9000]].concat();
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(100));
    let http: [&[u8]; 6] = [
        b"SSH-2.0-x\r\n",
        &[5, 0],
        &long_line,
        many.as_bytes(),
        b"HTTP/1.1 999999\r\n\r\n",
        &[0; 9000],
    ];
    for says in http {
        let error = error("http", says, false, CONNECT_TIMEOUT).await;
        assert!(matches!(error, ProxyError::NotAProxy { .. }), "{says:?}: {error}");
    }
}

#[tokio::test]
async fn a_partial_reply_fails_at_the_time_limit_or_at_the_close() {
    for (scheme, says) in [
        ("socks5", &b""[..]),
        ("socks5", &[5]),
        ("socks5", &[5, 2, 1]),
        ("socks5", &[5, 0, 5, 0, 0, 3, 255, b'x']),
        ("http", b""),
        ("http", b"HTTP/1.1 200 OK\r\n"),
    ] {
        let silent = error(scheme, says, false, LIMIT).await;
        assert!(matches!(silent, ProxyError::NoAnswer { .. }), "{scheme} {says:?}: {silent}");
        let closed = error(scheme, says, true, CONNECT_TIMEOUT).await;
        let half_http = scheme == "http" && !says.is_empty();
        let right = match closed {
            ProxyError::NotAProxy { .. } => half_http,
            ProxyError::BrokenOff { .. } => !half_http,
            _ => false,
        };
        assert!(right, "{scheme} {says:?}: {closed}");
    }
}

#[tokio::test]
async fn an_association_without_a_port_is_rejected() {
    for reply in [&[5, 0, 0, 1, 127, 0, 0, 1, 0, 0][..], &[5, 0, 0, 3, 1, b'a', 0, 9]] {
        let server = server_that_sends([&[5, 0][..], reply].concat(), false).await;
        let error = server.proxy("socks5", "").associate("192.0.2.1", 9).await.unwrap_err();
        assert!(matches!(error, ProxyError::NotAProxy { .. }), "{error}");
    }
}
