//! A configurable test router: PCP, NAT-PMP and UPnP-IGD over one mapping table.
//!
//! Invariant: an entry in the table comes from a whole, well-formed request of its protocol. Any
//! other request panics in the router's task, and the test receives no answer.

mod igd;
mod port_control;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket as StdUdpSocket};
use std::num::NonZeroU16;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::sync::watch;
use wraith_portmap::{Gateway, PortMapping, Settings, Status};

pub use self::port_control::map_for_another_client;

pub const EXTERNAL: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 5);
pub const LOCAL_PORT: NonZeroU16 = NonZeroU16::new(4433).unwrap();

/// Behaviour of a protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProtocolSupport {
    /// Answers by the standard.
    Supported,
    /// Does not answer.
    Silent,
    /// Answers with the code for an unsupported protocol (port control), or not at all (UPnP).
    Unsupported,
    /// Answers every request with these bytes.
    Bytes(Vec<u8>),
}

/// A mapping: its destination, lifetime, and nonce if PCP made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub to: SocketAddrV4,
    pub lifetime: u32,
    pub nonce: Option<[u8; 12]>,
}

/// State and behaviour of a router.
#[derive(Debug)]
pub struct RouterState {
    pub pcp: ProtocolSupport,
    pub nat_pmp: ProtocolSupport,
    pub igd: ProtocolSupport,
    pub external_ip: Ipv4Addr,
    /// Granted in place of the requested lifetime.
    pub lifetime: Option<u32>,
    /// Reported in place of the mapped port.
    pub port_said: Option<u16>,
    /// UPnP: supports only permanent mappings.
    pub permanent_only: bool,
    /// UPnP: refuses every mapping.
    pub refuses: bool,
    /// UPnP: requires the external port to equal the local one.
    pub same_port: bool,
    /// UPnP: announced in place of the description's URL.
    pub location: Option<String>,
    /// UPnP: accepts connections and never answers.
    pub stalls: bool,
    pub mappings: BTreeMap<u16, Entry>,
}

#[derive(Debug)]
pub struct Router {
    pub ip: Ipv4Addr,
    state: Arc<Mutex<RouterState>>,
    /// Number of answered requests of any kind.
    served: watch::Receiver<u32>,
}

impl Router {
    /// Starts a router that supports no protocol until `with` configures it.
    pub async fn start(with: impl FnOnce(&mut RouterState)) -> Self {
        let (ip, port_control, ssdp) = free_address();
        let mut state = RouterState {
            pcp: ProtocolSupport::Silent,
            nat_pmp: ProtocolSupport::Silent,
            igd: ProtocolSupport::Unsupported,
            external_ip: EXTERNAL,
            lifetime: None,
            port_said: None,
            permanent_only: false,
            refuses: false,
            same_port: false,
            location: None,
            stalls: false,
            mappings: BTreeMap::new(),
        };
        with(&mut state);
        let state = Arc::new(Mutex::new(state));
        let (count, served) = watch::channel(0);
        tokio::spawn(port_control::serve_port_control(port_control, state.clone(), count.clone()));
        igd::start(ip, ssdp, state.clone(), count).await;
        Self { ip, state, served }
    }

    pub fn state(&self) -> MutexGuard<'_, RouterState> {
        self.state.lock().unwrap()
    }

    /// Requests a mapping of [`LOCAL_PORT`]. Only these intervals cause further requests.
    pub fn request(&self, recheck: Duration) -> PortMapping {
        let gateway = Some(Gateway::at(self.ip).unwrap());
        let retry = Duration::from_secs(3600);
        // The search is short if the router does not support UPnP.
        let answers = self.state().igd != ProtocolSupport::Unsupported;
        let search = if answers { Settings::default().search } else { Duration::from_millis(20) };
        let settings = Settings { gateway, search, recheck, retry, retry_max: retry };
        PortMapping::request_with(LOCAL_PORT, settings)
    }

    /// Same as [`Router::request`], without automatic renewal.
    pub fn request_once(&self) -> PortMapping {
        self.request(Duration::from_secs(3600))
    }

    /// Waits until the router has answered one more request.
    pub async fn next_request(&self) {
        let mut served = self.served.clone();
        let now = *served.borrow_and_update();
        served.wait_for(|count| *count > now).await.unwrap();
    }

    /// Waits until the router has answered this many requests in total.
    pub async fn wait_for_requests(&self, requests: u32) {
        self.served.clone().wait_for(|count| *count >= requests).await.unwrap();
    }

    pub fn served(&self) -> u32 {
        *self.served.borrow()
    }
}

/// Returns the first status after [`Status::Requesting`].
pub async fn outcome(mapping: &PortMapping) -> Status {
    let mut status = mapping.status();
    status.wait_for(|status| *status != Status::Requesting).await.unwrap().clone()
}

/// Finds a loopback address with both protocols' ports free. The ports belong to this router until
/// its tasks end.
fn free_address() -> (Ipv4Addr, UdpSocket, UdpSocket) {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let bind = |ip, port| {
        let socket = StdUdpSocket::bind((ip, port)).ok()?;
        socket.set_nonblocking(true).ok()?;
        UdpSocket::from_std(socket).ok()
    };
    loop {
        let ip = Ipv4Addr::from_bits(
            Ipv4Addr::new(127, 77, 0, 1).to_bits() + NEXT.fetch_add(1, Relaxed),
        );
        if let (Some(port_control), Some(ssdp)) = (bind(ip, 5351), bind(ip, 1900)) {
            return (ip, port_control, ssdp);
        }
    }
}
