//! The network between a client and its relay: a NAT for UDP that rebinds and drops, and a TCP
//! connection that is cut.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpStream, UdpSocket};
use tokio::task::JoinHandle;
use wraith_relay::{Connect, ConnectRelay, Connected, Connecting, RelayConfig};

/// Largest datagram in bytes.
const DATAGRAM_MAX: usize = 65_536;

/// A NAT at another loopback address with the relay's port. The client believes that this NAT is
/// the relay's UDP port.
#[derive(Debug)]
pub struct Nat {
    ip: IpAddr,
    inside: Arc<UdpSocket>,
    relay: SocketAddr,
    client: Arc<Mutex<Option<SocketAddr>>>,
    swallows: Arc<AtomicBool>,
    tasks: Mutex<Vec<JoinHandle<()>>>,
    cut: Mutex<Vec<JoinHandle<()>>>,
}

impl Nat {
    /// Creates a NAT in front of `relay`, at 127.0.0.`last`.
    pub async fn new(relay: SocketAddr, last: u8) -> Arc<Self> {
        let ip = IpAddr::from(Ipv4Addr::new(127, 0, 0, last));
        let inside = Arc::new(UdpSocket::bind((ip, relay.port())).await.unwrap());
        let nat = Arc::new(Self {
            ip,
            inside,
            relay,
            client: Arc::default(),
            swallows: Arc::default(),
            tasks: Mutex::default(),
            cut: Mutex::default(),
        });
        nat.rebind().await;
        nat
    }

    /// Rebinds to another outside address.
    pub async fn rebind(&self) {
        let outside = Arc::new(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap());
        let (inside, relay) = (Arc::clone(&self.inside), self.relay);
        let (client, swallows) = (Arc::clone(&self.client), Arc::clone(&self.swallows));
        let (theirs, swallows_too) = (Arc::clone(&outside), Arc::clone(&self.swallows));
        let up = tokio::spawn(async move {
            let mut bytes = vec![0; DATAGRAM_MAX];
            while let Ok((len, from)) = inside.recv_from(&mut bytes).await {
                *client.lock().unwrap() = Some(from);
                if !swallows.load(Ordering::Relaxed) {
                    let _ = outside.send_to(&bytes[..len], relay).await;
                }
            }
        });
        let (inside, client) = (Arc::clone(&self.inside), Arc::clone(&self.client));
        let down = tokio::spawn(async move {
            let mut bytes = vec![0; DATAGRAM_MAX];
            while let Ok(len) = theirs.recv(&mut bytes).await {
                let to = *client.lock().unwrap();
                if let Some(to) = to.filter(|_| !swallows_too.load(Ordering::Relaxed)) {
                    let _ = inside.send_to(&bytes[..len], to).await;
                }
            }
        });
        let before = std::mem::replace(&mut *self.tasks.lock().unwrap(), vec![up, down]);
        before.iter().for_each(JoinHandle::abort);
    }

    /// Drops all UDP from now on.
    pub fn drop_udp(&self) {
        self.swallows.store(true, Ordering::Relaxed);
    }

    /// Cuts every TCP connection through this NAT.
    pub fn cut(&self) {
        self.cut.lock().unwrap().drain(..).for_each(|task| task.abort());
    }

    /// Returns a configuration that connects through this NAT.
    pub fn config(self: &Arc<Self>, config: RelayConfig) -> RelayConfig {
        RelayConfig { connect: Arc::new(ProxyConnector(Arc::clone(self))), ..config }
    }
}

impl Drop for Nat {
    fn drop(&mut self) {
        self.tasks.lock().unwrap().iter().for_each(JoinHandle::abort);
        self.cut();
    }
}

#[derive(Debug)]
struct ProxyConnector(Arc<Nat>);

impl Connect for ProxyConnector {
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> Connecting<'a> {
        Box::pin(async move {
            let mut outside = TcpStream::connect((host, port)).await?;
            let (stream, mut inside) = tokio::io::duplex(DATAGRAM_MAX);
            let task = tokio::spawn(async move {
                let _ = copy_bidirectional(&mut inside, &mut outside).await;
            });
            self.0.cut.lock().unwrap().push(task);
            Ok(Connected { stream: Box::new(stream), udp: Some(self.0.ip) })
        })
    }
}

impl ConnectRelay for ProxyConnector {}
