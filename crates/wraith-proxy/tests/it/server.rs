//! A SOCKS5 and an HTTP proxy, written from the RFCs independently of the client, and an echo
//! server as target.
//!
//! Invariant: an incomplete or malformed request panics in the proxy's task, so the test sees a
//! broken connection.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use wraith_proxy::{Proxy, ProxyUrl};

pub const USER: &str = "me:at@home";
pub const PASSWORD: &str = "p%40ss word";
/// [`USER`] and [`PASSWORD`], escaped for a URL.
pub const ESCAPED: &str = "me%3Aat%40home:p%2540ss%20word@";
/// The only name that these proxies resolve: an echo server on loopback.
pub const NAME: &str = "echo.example";

/// A proxy, and the targets requested from it.
#[derive(Debug)]
pub struct Server {
    pub address: SocketAddr,
    pub asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub fn proxy(&self, scheme: &str, credentials: &str) -> Proxy {
        let url: ProxyUrl = format!("{scheme}://{credentials}{}", self.address).parse().unwrap();
        Proxy::new(url)
    }

    pub fn requested_targets(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// Starts a proxy that runs `work` for each connection. `work` records the requested targets in its
/// second argument.
async fn start_server<F, W>(work: W) -> Server
where
    W: Fn(TcpStream, Arc<Mutex<Vec<String>>>) -> F + Send + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = Server { address: listener.local_addr().unwrap(), asked: Arc::default() };
    let asked = server.asked.clone();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(work(stream, asked.clone()));
        }
    });
    server
}

/// Starts a server that sends a greeting, then echoes everything.
pub async fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                stream.write_all(b"hello").await.unwrap();
                let (mut read, mut write) = stream.split();
                let _ = tokio::io::copy(&mut read, &mut write).await;
            });
        }
    });
    address
}

/// Connects to the target, and sends `granted` in the same write as the first bytes from the
/// target.
async fn tunnel(mut client: TcpStream, to: &str, granted: &[u8], refused: &[u8]) {
    let to = to.replace(NAME, "127.0.0.1");
    let Ok(mut other) = TcpStream::connect(&to).await else {
        client.write_all(refused).await.unwrap();
        return;
    };
    let mut first = granted.to_vec();
    other.read_buf(&mut first).await.unwrap();
    client.write_all(&first).await.unwrap();
    let _ = copy_bidirectional(&mut client, &mut other).await;
}

/// Starts an HTTP proxy. If `guarded`, it accepts only [`USER`].
pub async fn http(guarded: bool) -> Server {
    start_server(move |mut stream, asked| async move {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        let head = String::from_utf8(head).unwrap();
        let mut lines = head.lines();
        let request = lines.next().unwrap();
        let target = request.strip_prefix("CONNECT ").unwrap().strip_suffix(" HTTP/1.1").unwrap();
        let headers: Vec<&str> = lines.collect();
        assert!(headers.contains(&format!("Host: {target}").as_str()), "{head}");
        let basic = data_encoding::BASE64.encode(format!("{USER}:{PASSWORD}").as_bytes());
        let known = headers.contains(&format!("Proxy-Authorization: Basic {basic}").as_str());
        if guarded && !known {
            let answer =
                "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n\r\n";
            return stream.write_all(answer.as_bytes()).await.unwrap();
        }
        asked.lock().unwrap().push(target.to_owned());
        let granted = b"HTTP/1.1 200 Connection established\r\nVia: 1.1 test\r\n\r\n";
        tunnel(stream, target, granted, b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
            .await;
    })
    .await
}

/// Starts a SOCKS5 proxy. If `guarded`, it accepts only [`USER`].
pub async fn socks5(guarded: bool) -> Server {
    start_server(move |mut stream, asked| async move {
        let [version, count] = read(&mut stream).await;
        assert_eq!(version, 5);
        let mut methods = vec![0; count.into()];
        stream.read_exact(&mut methods).await.unwrap();
        let wanted = if guarded { 2 } else { 0 };
        if !methods.contains(&wanted) {
            return stream.write_all(&[5, 0xff]).await.unwrap();
        }
        stream.write_all(&[5, wanted]).await.unwrap();
        if guarded {
            let [version] = read(&mut stream).await;
            assert_eq!(version, 1);
            let (user, password) = (text(&mut stream).await, text(&mut stream).await);
            let right = user == USER && password == PASSWORD;
            stream.write_all(&[1, u8::from(!right)]).await.unwrap();
            if !right {
                return;
            }
        }
        let [version, command, reserved, kind] = read(&mut stream).await;
        assert_eq!((version, reserved), (5, 0));
        let host = match kind {
            1 => std::net::Ipv4Addr::from(read::<4>(&mut stream).await).to_string(),
            3 => text(&mut stream).await,
            4 => format!("[{}]", std::net::Ipv6Addr::from(read::<16>(&mut stream).await)),
            other => panic!("address of kind {other}"),
        };
        let target = format!("{host}:{}", u16::from_be_bytes(read(&mut stream).await));
        asked.lock().unwrap().push(format!("{command} {target}"));
        match command {
            1 => {
                let granted = [5, 0, 0, 3, 2, b'i', b'f', 0, 0];
                tunnel(stream, &target, &granted, &[5, 5, 0, 1, 0, 0, 0, 0, 0, 0]).await;
            }
            3 => relay_udp(stream).await,
            other => panic!("command {other}"),
        }
    })
    .await
}

/// Relays UDP as in RFC 1928 §7 for as long as the TCP connection lives. The first sender is the
/// client.
async fn relay_udp(mut control: TcpStream) {
    let inner = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let outer = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let port = inner.local_addr().unwrap().port().to_be_bytes();
    // An unreachable address: the client has to ignore it.
    control.write_all(&[5, 0, 0, 1, 192, 0, 2, 1, port[0], port[1]]).await.unwrap();
    let (mut a, mut b) = (vec![0; 65_536], vec![0; 65_536]);
    let mut client = None;
    loop {
        tokio::select! {
            _ = control.read_u8() => return,
            received = inner.recv_from(&mut a) => {
                let (len, from) = received.unwrap();
                client = Some(from);
                let (ip, rest) = match &a[..len] {
                    [0, 0, 0, 1, a, b, c, d, rest @ ..] => ([*a, *b, *c, *d], rest),
                    [0, 0, 0, 3, len, rest @ ..] => {
                        let (name, rest) = rest.split_at(usize::from(*len));
                        assert_eq!(name, NAME.as_bytes());
                        ([127, 0, 0, 1], rest)
                    }
                    _ => panic!("no header"),
                };
                let (port, payload) = rest.split_first_chunk().unwrap();
                let to = SocketAddr::from((ip, u16::from_be_bytes(*port)));
                outer.send_to(payload, to).await.unwrap();
            }
            received = outer.recv_from(&mut b) => {
                let (len, SocketAddr::V4(from)) = received.unwrap() else { unreachable!() };
                let mut datagram = vec![0, 0, 0, 1];
                datagram.extend(from.ip().octets());
                datagram.extend(from.port().to_be_bytes());
                // Invalid datagrams first, which the client has to drop: a fragment, a name, half a
                // header.
                for stray in [&[0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 9][..], &[0, 0, 0, 3, 1, b'a', 0, 1, 2, 3, 4], &[0; 4]] {
                    inner.send_to(stray, client.unwrap()).await.unwrap();
                }
                datagram.extend(&b[..len]);
                inner.send_to(&datagram, client.unwrap()).await.unwrap();
            }
        }
    }
}

/// Starts a server that sends these bytes to every client, and then shuts down its side if
/// `then_close`.
pub async fn server_that_sends(bytes: Vec<u8>, then_close: bool) -> Server {
    start_server(move |mut stream, _| {
        let bytes = bytes.clone();
        async move {
            let _ = stream.write_all(&bytes).await;
            if then_close {
                let _ = stream.shutdown().await;
            }
            // Read until the client closes: unread data would reset the connection and discard the
            // answer.
            while stream.read(&mut [0; 1024]).await.is_ok_and(|len| len > 0) {}
        }
    })
    .await
}

async fn read<const N: usize>(stream: &mut TcpStream) -> [u8; N] {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).await.unwrap();
    bytes
}

async fn text(stream: &mut TcpStream) -> String {
    let [len] = read(stream).await;
    let mut bytes = vec![0; len.into()];
    stream.read_exact(&mut bytes).await.unwrap();
    String::from_utf8(bytes).unwrap()
}
