//! A SOCKS5 and an HTTP proxy, written from their RFCs. They lead to relays, by a name or an
//! address that is useless without the proxies.
//!
//! Invariants: only these proxies resolve [`NAME`], so a connection to that name used one of them.
//! At the address of a [`Trap`], only the proxies reach a relay; the trap catches packets that are
//! sent there directly.

use std::io::{self, Read, Write};
use std::net::{
    IpAddr, Ipv4Addr, Shutdown, SocketAddr, SocketAddrV4, TcpListener, TcpStream, UdpSocket,
};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// A name that means loopback to these proxies. No name server has the top-level domain `test` (RFC
/// 6761).
pub const NAME: &str = "relay.test";
/// Addresses of traps, which are loopback to these proxies.
const TRAPS: [u8; 3] = [127, 0, 9];
/// Interval at which a thread that waits for datagrams checks for the end.
const LOOK: Duration = Duration::from_millis(50);

/// The protocol of a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaks {
    /// Without UDP ASSOCIATE.
    Socks5,
    Socks5AndUdp,
    /// Ends every association after this many bytes from its client.
    Socks5AndUdpUpTo(u64),
    /// Sends forged datagrams before every datagram of the server.
    Socks5AndLies,
    Http,
}

/// A proxy in this process, with a record of its requests.
#[derive(Debug)]
pub struct Proxy {
    pub address: SocketAddr,
    state: Arc<ProxyState>,
}

#[derive(Debug, Default)]
struct ProxyState {
    asked: Mutex<Vec<String>>,
    associations: AtomicU64,
    refused: AtomicU64,
    /// Bytes of datagrams, without headers.
    up: AtomicU64,
    down: AtomicU64,
}

impl Proxy {
    pub fn start(speaks: Speaks) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::<ProxyState>::default();
        let serving = Arc::clone(&state);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let state = Arc::clone(&serving);
                thread::spawn(move || serve(client, speaks, &state));
            }
        });
        Self { address, state }
    }

    pub fn url(&self) -> String {
        format!("socks5://{}", self.address)
    }

    /// Returns the `HOST:PORT` of every requested connection.
    pub fn asked(&self) -> Vec<String> {
        self.state.asked.lock().unwrap().clone()
    }

    /// Returns how often UDP was granted, and refused.
    pub fn associations(&self) -> (u64, u64) {
        let ProxyState { associations, refused, .. } = &*self.state;
        (associations.load(Ordering::Relaxed), refused.load(Ordering::Relaxed))
    }

    /// Returns the bytes that went up and down by UDP, without headers.
    pub fn udp_bytes(&self) -> (u64, u64) {
        (self.state.up.load(Ordering::Relaxed), self.state.down.load(Ordering::Relaxed))
    }
}

/// An address where proxies reach the relay with this port, and other clients reach only the trap.
#[derive(Debug)]
pub struct Trap {
    pub address: SocketAddr,
    tcp: TcpListener,
    udp: UdpSocket,
}

impl Trap {
    pub fn new(relay_port: u16) -> Self {
        let [a, b, c] = TRAPS;
        let set = (2..=254).find_map(|last| {
            let address = SocketAddr::from(([a, b, c, last], relay_port));
            let (tcp, udp) = (TcpListener::bind(address).ok()?, UdpSocket::bind(address).ok()?);
            tcp.set_nonblocking(true).ok()?;
            udp.set_nonblocking(true).ok()?;
            Some(Self { address, tcp, udp })
        });
        set.expect("an address of loopback")
    }

    /// Asserts that no packet bypassed the proxy.
    pub fn assert_empty(&self) {
        let tcp = self.tcp.accept().map(|(_, from)| from).map_err(|error| error.kind());
        assert_eq!(tcp, Err(io::ErrorKind::WouldBlock));
        let udp = self.udp.recv_from(&mut [0; 64]).map(|(_, from)| from);
        assert_eq!(udp.map_err(|error| error.kind()), Err(io::ErrorKind::WouldBlock));
    }
}

/// Resolves a target as the proxies do.
fn resolve(host: &str, port: u16) -> SocketAddr {
    match host.parse::<Ipv4Addr>() {
        Ok(ip) if !ip.octets().starts_with(&TRAPS) => (ip, port).into(),
        Err(_) if host != NAME => panic!("nobody knows {host}"),
        _ => (Ipv4Addr::LOCALHOST, port).into(),
    }
}

fn serve(mut client: TcpStream, speaks: Speaks, state: &Arc<ProxyState>) -> Option<()> {
    let (host, port, granted) = match speaks {
        Speaks::Http => {
            let (host, port) = http_target(&mut client)?;
            (host, port, &b"HTTP/1.1 200 OK\r\n\r\n"[..])
        }
        _ => match socks5_request(&mut client)? {
            (1, host, port) => (host, port, &b"\x05\0\0\x01\0\0\0\0\0\0"[..]),
            (3, ..) => return associate(client, speaks, state),
            _ => return None,
        },
    };
    let server = TcpStream::connect(resolve(&host, port)).ok()?;
    state.asked.lock().unwrap().push(format!("{host}:{port}"));
    client.write_all(granted).ok()?;
    let back = (server.try_clone().ok()?, client.try_clone().ok()?);
    let up = thread::spawn(move || copy(client, server));
    copy(back.0, back.1);
    up.join().ok()
}

fn copy(mut from: TcpStream, mut to: TcpStream) {
    // One end closed or broke, so close the other.
    let _ = std::io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
}

/// Serves an association (RFC 1928 §7) while the client holds the connection, or until the bytes
/// are used up.
fn associate(mut control: TcpStream, speaks: Speaks, state: &Arc<ProxyState>) -> Option<()> {
    if speaks == Speaks::Socks5 {
        state.refused.fetch_add(1, Ordering::Relaxed);
        return control.write_all(b"\x05\x07\0\x01\0\0\0\0\0\0").ok();
    }
    let [inner, outer] = [(); 2].map(|()| {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(LOOK)).unwrap();
        Arc::new(socket)
    });
    let [high, low] = inner.local_addr().ok()?.port().to_be_bytes();
    state.associations.fetch_add(1, Ordering::Relaxed);
    let udp = Arc::new(Udp {
        speaks,
        inner,
        outer,
        client: Mutex::default(),
        server: Mutex::default(),
        over: AtomicBool::default(),
        state: Arc::clone(state),
    });
    for carry in [Udp::up, Udp::down] {
        let (udp, control) = (Arc::clone(&udp), control.try_clone().ok()?);
        thread::spawn(move || {
            carry(&udp);
            udp.over.store(true, Ordering::Relaxed);
            let _ = control.shutdown(Shutdown::Both);
        });
    }
    // An unreachable address, as from a proxy behind a NAT.
    control.write_all(&[5, 0, 0, 1, 192, 0, 2, 1, high, low]).ok()?;
    while control.read(&mut [0; 64]).is_ok_and(|len| len > 0) {}
    udp.over.store(true, Ordering::Relaxed);
    Some(())
}

/// One UDP association. The first sender is its client, and the first target its only server.
#[derive(Debug)]
struct Udp {
    speaks: Speaks,
    inner: Arc<UdpSocket>,
    outer: Arc<UdpSocket>,
    client: Mutex<Option<SocketAddr>>,
    /// The server's address as the client names it, if by an address, and its real address.
    server: Mutex<Option<(SocketAddrV4, SocketAddr)>>,
    over: AtomicBool,
    state: Arc<ProxyState>,
}

impl Udp {
    fn next(&self, socket: &UdpSocket, buffer: &mut [u8]) -> Option<(usize, SocketAddr)> {
        while !self.over.load(Ordering::Relaxed) {
            match socket.recv_from(buffer) {
                Ok(received) => return Some(received),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // An earlier datagram was refused.
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused),
            }
        }
        None
    }

    fn up(&self) {
        let (mut buffer, mut bytes) = (vec![0; 65_536], 0);
        while let Some((len, from)) = self.next(&self.inner, &mut buffer) {
            assert_eq!(*self.client.lock().unwrap().get_or_insert(from), from);
            let (host, port, payload) = unwrap(&buffer[..len]);
            let to = resolve(&host, port);
            let called = match host.parse::<Ipv4Addr>() {
                Ok(ip) => SocketAddrV4::new(ip, port),
                Err(_) => SocketAddrV4::new(Ipv4Addr::LOCALHOST, port),
            };
            *self.server.lock().unwrap() = Some((called, to));
            bytes += payload.len() as u64;
            self.state.up.fetch_add(payload.len() as u64, Ordering::Relaxed);
            let _ = self.outer.send_to(payload, to);
            if matches!(self.speaks, Speaks::Socks5AndUdpUpTo(most) if bytes > most) {
                return;
            }
        }
    }

    fn down(&self) {
        let mut buffer = vec![0; 65_536];
        while let Some((len, from)) = self.next(&self.outer, &mut buffer) {
            let (Some(client), Some((called, server))) =
                (*self.client.lock().unwrap(), *self.server.lock().unwrap())
            else {
                continue;
            };
            assert_eq!(from, server);
            let header =
                [&[0, 0, 0, 1][..], &called.ip().octets(), &called.port().to_be_bytes()].concat();
            let good = [&header, &buffer[..len]].concat();
            if self.speaks == Speaks::Socks5AndLies {
                self.lie(client, &header, &good);
            }
            self.state.down.fetch_add(len as u64, Ordering::Relaxed);
            let _ = self.inner.send_to(&good, client);
        }
    }

    /// Sends datagrams that differ from `good` in one field, and garbage.
    fn lie(&self, client: SocketAddr, header: &[u8], good: &[u8]) {
        // Reserved bytes, the fragment number, the address type, the address, the port.
        for byte in [0, 1, 2, 3, 7, 9] {
            let mut bad = good.to_vec();
            bad[byte] ^= 3;
            let _ = self.inner.send_to(&bad, client);
        }
        let long = [header, &[0x5a; 65_400]].concat();
        for bad in [&[][..], &good[..5], &good[..10], &good[..20], &good[10..], &[0; 10], &long] {
            let _ = self.inner.send_to(bad, client);
        }
        let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
        let _ = stranger.send_to(good, client);
    }
}

/// Returns the target of a datagram, and its payload.
fn unwrap(datagram: &[u8]) -> (String, u16, &[u8]) {
    let (host, rest) = match datagram {
        [0, 0, 0, 1, a, b, c, d, rest @ ..] => (IpAddr::from([*a, *b, *c, *d]).to_string(), rest),
        [0, 0, 0, 3, len, rest @ ..] => {
            let (name, rest) = rest.split_at((*len).into());
            (String::from_utf8(name.to_vec()).unwrap(), rest)
        }
        _ => panic!("no header of a datagram: {datagram:?}"),
    };
    let (port, payload) = rest.split_first_chunk().unwrap();
    (host, u16::from_be_bytes(*port), payload)
}

/// Reads a request (RFC 1928): no authentication, a command, a name or an IPv4 address.
fn socks5_request(client: &mut TcpStream) -> Option<(u8, String, u16)> {
    let [5, methods] = read(client)? else { return None };
    client.read_exact(&mut vec![0; methods.into()]).ok()?;
    client.write_all(&[5, 0]).ok()?;
    let [5, command, 0, kind] = read(client)? else { return None };
    let host = match kind {
        1 => Ipv4Addr::from(read::<4>(client)?).to_string(),
        3 => {
            let [len] = read(client)?;
            let mut name = vec![0; len.into()];
            client.read_exact(&mut name).ok()?;
            String::from_utf8(name).ok()?
        }
        _ => return None,
    };
    Some((command, host, u16::from_be_bytes(read(client)?)))
}

/// Reads the target of a CONNECT request (RFC 9110 §9.3.6).
fn http_target(client: &mut TcpStream) -> Option<(String, u16)> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.extend(read::<1>(client)?);
    }
    let head = String::from_utf8(head).ok()?;
    let target = head.strip_prefix("CONNECT ")?.split_once(' ')?.0;
    let (host, port) = target.rsplit_once(':')?;
    Some((host.to_owned(), port.parse().ok()?))
}

fn read<const N: usize>(client: &mut TcpStream) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    client.read_exact(&mut bytes).ok()?;
    Some(bytes)
}
