//! A router that grants ports as told: PCP, NAT-PMP and UPnP-IGD over one table of mappings.
//!
//! Invariant: what stands in the table was asked for in a whole, well-formed request of its protocol; anything else panics in
//! the router's task, and the test sees no answer.

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

pub use self::port_control::of_another;

pub const EXTERNAL: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 5);
pub const LOCAL_PORT: NonZeroU16 = NonZeroU16::new(4433).unwrap();

/// How a protocol is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Speaks {
    /// As its standard says.
    Well,
    /// Nothing is said.
    Silent,
    /// With the code for what is not spoken (port control), or not at all (UPnP).
    No,
    /// With these bytes, whatever was asked.
    Bytes(Vec<u8>),
}

/// A mapping: where to, and by which nonce if PCP made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub to: SocketAddrV4,
    pub lifetime: u32,
    pub nonce: Option<[u8; 12]>,
}

/// What a router knows and how it behaves.
#[derive(Debug)]
pub struct State {
    pub pcp: Speaks,
    pub nat_pmp: Speaks,
    pub igd: Speaks,
    pub external_ip: Ipv4Addr,
    /// In place of the lifetime that is asked for.
    pub lifetime: Option<u32>,
    /// Said in place of the port that was mapped.
    pub port_said: Option<u16>,
    /// UPnP: only mappings without an end.
    pub permanent_only: bool,
    /// UPnP: maps nothing for anybody.
    pub refuses: bool,
    /// UPnP: the external port must be the local one.
    pub same_port: bool,
    /// UPnP: where the description is said to be, in place of where it is.
    pub location: Option<String>,
    /// UPnP: takes connections and never answers.
    pub stalls: bool,
    pub mappings: BTreeMap<u16, Entry>,
}

#[derive(Debug)]
pub struct Router {
    pub ip: Ipv4Addr,
    state: Arc<Mutex<State>>,
    /// Requests answered, of any kind.
    served: watch::Receiver<u32>,
}

impl Router {
    /// A router that speaks nothing, set up by `with`.
    pub async fn start(with: impl FnOnce(&mut State)) -> Self {
        let (ip, port_control, ssdp) = free_address();
        let mut state = State {
            pcp: Speaks::Silent,
            nat_pmp: Speaks::Silent,
            igd: Speaks::No,
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
        tokio::spawn(port_control::serve(port_control, state.clone(), count.clone()));
        igd::start(ip, ssdp, state.clone(), count).await;
        Self { ip, state, served }
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// A mapping of [`LOCAL_PORT`] is asked for; nothing happens by itself but what these intervals say.
    pub fn request(&self, recheck: Duration) -> PortMapping {
        let gateway = Some(Gateway::at(self.ip).unwrap());
        let retry = Duration::from_secs(3600);
        // What does not answer at all is not waited for.
        let answers = self.state().igd != Speaks::No;
        let search = if answers { Settings::default().search } else { Duration::from_millis(20) };
        let settings = Settings { gateway, search, recheck, retry, retry_max: retry };
        PortMapping::request_with(LOCAL_PORT, settings)
    }

    /// The same, renewed only when told to.
    pub fn request_once(&self) -> PortMapping {
        self.request(Duration::from_secs(3600))
    }

    /// Until one more request than now was answered.
    pub async fn next_request(&self) {
        let mut served = self.served.clone();
        let now = *served.borrow_and_update();
        served.wait_for(|count| *count > now).await.unwrap();
    }

    /// Until so many requests were answered in all.
    pub async fn until_served(&self, requests: u32) {
        self.served.clone().wait_for(|count| *count >= requests).await.unwrap();
    }

    pub fn served(&self) -> u32 {
        *self.served.borrow()
    }
}

/// The first end of the asking that is shown.
pub async fn outcome(mapping: &PortMapping) -> Status {
    let mut status = mapping.status();
    status.wait_for(|status| *status != Status::Asking).await.unwrap().clone()
}

/// An address of loopback whose ports for both protocols are free: they belong to this router until its tasks end.
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
