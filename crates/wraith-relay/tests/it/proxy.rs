//! An in-process SOCKS5 proxy with UDP (RFC 1928 §7), which moves whole batches as a fast proxy
//! does. It presents the relay to its clients at a trap address: a datagram that arrives there
//! bypassed the proxy.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::copy_bidirectional;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use wraith_relay::{
    Associating, Connect, ConnectRelay, Connected, Connecting, RelayConfig, RelayTransport,
    UdpAssociation,
};
use wraith_transport::mover::{RecvSlots, SendResult, Udp};

use super::support::{Relay, RelayedPair};

/// Name of the relay, which only the proxy resolves.
const NAME: &str = "relay.test";

/// Traffic that a proxy carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyBehaviour {
    TcpAlone,
    Udp,
    /// Datagrams up to this size.
    UdpUpTo(usize),
    /// Datagrams, with forged ones in front of each batch from the relay.
    UdpAndLies,
}

#[derive(Debug)]
pub struct Proxy(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    relay: SocketAddr,
    speaks: ProxyBehaviour,
    /// Socket at the address that clients believe to be the relay's.
    trap: UdpSocket,
    open: Mutex<watch::Sender<bool>>,
    streams: Mutex<Vec<JoinHandle<()>>>,
    outer: Mutex<Option<SocketAddr>>,
    swallows: AtomicBool,
    withholds: AtomicBool,
    asked: AtomicU64,
    up: AtomicU64,
    down: AtomicU64,
    merged: AtomicU64,
    names: AtomicU64,
    forged_datagrams: AtomicU64,
}

impl Proxy {
    /// Creates a proxy in front of `relay`.
    pub fn new(relay: SocketAddr, speaks: ProxyBehaviour) -> Self {
        // The first proxy's trap serves all proxies: a later one finds another free address.
        let trap = (2..=254)
            .find_map(|last| UdpSocket::bind((Ipv4Addr::new(127, 0, 9, last), relay.port())).ok());
        let trap = trap.expect("an address of loopback");
        trap.set_nonblocking(true).unwrap();
        Self(Arc::new(Inner {
            relay,
            speaks,
            trap,
            open: Mutex::new(watch::channel(true).0),
            streams: Mutex::default(),
            outer: Mutex::default(),
            swallows: AtomicBool::default(),
            withholds: AtomicBool::default(),
            asked: AtomicU64::default(),
            up: AtomicU64::default(),
            down: AtomicU64::default(),
            merged: AtomicU64::default(),
            names: AtomicU64::default(),
            forged_datagrams: AtomicU64::default(),
        }))
    }

    /// Returns the configuration of a client that uses the relay's (trap) address.
    pub fn config(&self, config: RelayConfig) -> RelayConfig {
        let host = self.0.trap.local_addr().unwrap().ip().to_string();
        RelayConfig { host, connect: Arc::new(ProxyConnector(Arc::clone(&self.0))), ..config }
    }

    /// Connects two clients of `relay` by UDP, of which the dialling one uses the proxy.
    pub async fn pair(&self, relay: &Relay) -> RelayedPair {
        let configs = [self.config(relay.config()), relay.config()];
        RelayedPair::new(configs, [RelayTransport::Udp; 2]).await
    }

    /// Returns the configuration of a client that uses the relay's name.
    pub fn config_by_name(&self, config: RelayConfig) -> RelayConfig {
        RelayConfig { host: NAME.to_owned(), ..self.config(config) }
    }

    /// Ends all associations by closing their control connections.
    pub fn end_associations(&self) {
        self.0.open.lock().unwrap().send_replace(false);
    }

    /// Cuts every TCP connection to the relay, but no association.
    pub fn cut_streams(&self) {
        self.0.streams.lock().unwrap().drain(..).for_each(|stream| stream.abort());
    }

    /// Drops all UDP from now on.
    pub fn drop_udp(&self) {
        self.0.swallows.store(true, Ordering::Relaxed);
    }

    /// Sends only forged datagrams to clients from now on.
    pub fn withhold(&self) {
        self.0.withholds.store(true, Ordering::Relaxed);
    }

    /// Returns the payload bytes to and from the relay.
    pub fn bytes(&self) -> [u64; 2] {
        [&self.0.up, &self.0.down].map(|bytes| bytes.load(Ordering::Relaxed))
    }

    /// Returns the number of multi-datagram batches that were sent to the client whole.
    pub fn merged_down(&self) -> u64 {
        self.0.merged.load(Ordering::Relaxed)
    }

    /// Returns the number of datagrams with the relay's name in their header.
    pub fn names_up(&self) -> u64 {
        self.0.names.load(Ordering::Relaxed)
    }

    pub fn forged_datagrams(&self) -> u64 {
        self.0.forged_datagrams.load(Ordering::Relaxed)
    }

    pub fn asked_for_udp(&self) -> u64 {
        self.0.asked.load(Ordering::Relaxed)
    }

    /// Returns the address of the socket that the relay observes.
    pub fn outer(&self) -> SocketAddr {
        self.0.outer.lock().unwrap().expect("an association")
    }

    pub fn nothing_came_directly(&self) -> bool {
        let nothing = self.0.trap.recv(&mut [0; 64]).map_err(|error| error.kind());
        nothing == Err(io::ErrorKind::WouldBlock)
    }
}

#[derive(Debug)]
struct ProxyConnector(Arc<Inner>);

impl Connect for ProxyConnector {
    fn connect<'a>(&'a self, _host: &'a str, _port: u16) -> Connecting<'a> {
        Box::pin(async move {
            let mut outside = TcpStream::connect(self.0.relay).await?;
            let (stream, mut inside) = tokio::io::duplex(65_536);
            let task = tokio::spawn(async move {
                let _ = copy_bidirectional(&mut inside, &mut outside).await;
            });
            self.0.streams.lock().unwrap().push(task);
            Ok(Connected { stream: Box::new(stream), udp: None })
        })
    }
}

impl ConnectRelay for ProxyConnector {
    fn associate<'a>(&'a self, host: &'a str, port: u16) -> Option<Associating<'a>> {
        self.0.asked.fetch_add(1, Ordering::Relaxed);
        Some(Box::pin(async move {
            if self.0.speaks == ProxyBehaviour::TcpAlone {
                return Err(io::ErrorKind::Unsupported.into());
            }
            let header = match host.parse::<Ipv4Addr>() {
                Ok(ip) => header(SocketAddrV4::new(ip, port)),
                Err(_) => {
                    let len = host.len() as u8;
                    [&[0, 0, 0, 3, len], host.as_bytes(), &port.to_be_bytes()].concat()
                }
            };
            let [inner, outer] = [(); 2].map(|()| Udp::bind((Ipv4Addr::LOCALHOST, 0).into()));
            let (inner, outer) = (inner?, outer?);
            *self.0.outer.lock().unwrap() = Some(outer.local_addr());
            let open = self.0.open.lock().unwrap().subscribe();
            let association = Fake { proxy: inner.local_addr(), header, port, open };
            let (state, open) = (Arc::clone(&self.0), association.open.clone());
            thread::spawn(move || state.carry(inner, outer, &open));
            Ok(Box::new(association) as Box<dyn UdpAssociation>)
        }))
    }
}

#[derive(Debug)]
struct Fake {
    proxy: SocketAddr,
    header: Vec<u8>,
    port: u16,
    open: watch::Receiver<bool>,
}

impl UdpAssociation for Fake {
    fn proxy(&self) -> SocketAddr {
        self.proxy
    }

    fn header(&self) -> &[u8] {
        &self.header
    }

    fn header_from(&self, datagram: &[u8]) -> Option<usize> {
        let (header, _) = datagram.split_first_chunk::<10>()?;
        let is_relay = match self.header[3] {
            3 => header[..4] == [0, 0, 0, 1] && header[8..] == self.port.to_be_bytes(),
            _ => header[..] == self.header,
        };
        is_relay.then_some(10)
    }

    fn closed(&self) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        let mut open = self.open.clone();
        Box::pin(async move {
            // A dropped proxy has ended the association as well.
            let _ = open.wait_for(|open| !open).await;
        })
    }
}

fn header(of: SocketAddrV4) -> Vec<u8> {
    [&[0, 0, 0, 1][..], &of.ip().octets(), &of.port().to_be_bytes()].concat()
}

impl Inner {
    /// Forwards datagrams until the association ends.
    fn carry(&self, mut inner: Udp, mut outer: Udp, open: &watch::Receiver<bool>) {
        let SocketAddr::V4(claimed) = self.trap.local_addr().unwrap() else { unreachable!() };
        let claimed = header(claimed);
        let named = [&[0, 0, 0, 3, NAME.len() as u8], NAME.as_bytes(), &claimed[8..]].concat();
        let (mut slots, mut client) = (RecvSlots::new(), None);
        let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
        while *open.borrow() && open.has_changed().is_ok() {
            let wait = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
            let mut ready =
                [PollFd::new(&inner, PollFlags::IN), PollFd::new(&outer, PollFlags::IN)];
            poll(&mut ready, Some(&wait)).unwrap();
            let filled = inner.receive(&mut slots).unwrap();
            for (from, ecn, datagrams) in slots.filled(filled) {
                client = from.ip();
                for datagram in datagrams {
                    let header = match datagram[3] {
                        3 => {
                            self.names.fetch_add(1, Ordering::Relaxed);
                            &named
                        }
                        _ => &claimed,
                    };
                    let payload =
                        datagram.strip_prefix(&header[..]).expect("a header to the relay");
                    if !self.swallows.load(Ordering::Relaxed) && payload.len() <= self.longest() {
                        self.up.fetch_add(payload.len() as u64, Ordering::Relaxed);
                        whole(|| outer.send(self.relay, ecn, payload, payload.len()));
                    }
                }
            }
            let filled = outer.receive(&mut slots).unwrap();
            for (from, ecn, datagrams) in slots.filled(filled) {
                assert_eq!(from, self.relay.into());
                let datagrams: Vec<_> = datagrams.map(|datagram| &*datagram).collect();
                let Some(client) = client.filter(|_| !self.swallows.load(Ordering::Relaxed)) else {
                    continue;
                };
                if datagrams[0].len() > self.longest() {
                    continue;
                }
                if self.speaks == ProxyBehaviour::UdpAndLies {
                    self.forge(&mut inner, &stranger, client, &claimed, datagrams[0]);
                }
                if self.withholds.load(Ordering::Relaxed) {
                    continue;
                }
                let payload: usize = datagrams.iter().map(|datagram| datagram.len()).sum();
                self.down.fetch_add(payload as u64, Ordering::Relaxed);
                let stride = claimed.len() + datagrams[0].len();
                let batch: Vec<u8> =
                    datagrams.iter().flat_map(|datagram| [&claimed, *datagram].concat()).collect();
                if batch.len() > stride {
                    self.merged.fetch_add(1, Ordering::Relaxed);
                }
                whole(|| inner.send(client, ecn, &batch, stride));
            }
        }
    }

    fn longest(&self) -> usize {
        match self.speaks {
            ProxyBehaviour::UdpUpTo(longest) => longest,
            _ => usize::MAX,
        }
    }

    /// Sends variants of `datagram` with one field changed.
    fn forge(
        &self,
        inner: &mut Udp,
        stranger: &UdpSocket,
        client: SocketAddr,
        claimed: &[u8],
        datagram: &[u8],
    ) {
        let good = [claimed, datagram].concat();
        // Reserved bytes, fragment number, address type, address, port.
        for byte in [0, 1, 2, 3, 7, 9] {
            let mut bad = good.clone();
            bad[byte] ^= 3;
            whole(|| inner.send(client, None, &bad, bad.len()));
        }
        let name = [&[0, 0, 0, 3, 1, b'r'], &claimed[8..], datagram].concat();
        let long = [claimed, &[0x5a; 65_000]].concat();
        for bad in [&good[..5], &good[..10], &good[..20], datagram, &name, &[0; 10], &long] {
            whole(|| inner.send(client, None, bad, bad.len().max(1)));
        }
        let _ = stranger.send_to(&good, client);
        self.forged_datagrams.fetch_add(14, Ordering::Relaxed);
    }
}

/// Repeats `send` until there is room.
fn whole(mut send: impl FnMut() -> SendResult) {
    while let SendResult::Blocked(_) = send() {
        thread::yield_now();
    }
}
