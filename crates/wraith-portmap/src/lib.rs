//! A UDP port of the internet that leads to one of this machine, granted by the router at home.
//!
//! ```text
//!   PortMapping            what an application holds; dropping it gives the port back
//!     │ watch
//!   keeper                 one task: ask, renew, notice loss, ask again, remove
//!     │
//!   router                 which protocol: whoever answers first
//!   ├── port_control       PCP and NAT-PMP (by crab_nat)
//!   └── igd/               UPnP: ssdp → description → soap, over a bounded HTTP client
//! ```
//!
//! Whoever answers as the router is not trusted: every step has a bound in time and bytes, a grant whose address is not one of
//! the internet, whose port is zero or which ends at once is none, and a URL that leads anywhere but to the gateway is not
//! followed. What it says decides only which address we tell our peer, who proves by the handshake that it reached us.
//!
//! **Why these libraries.** `crab_nat` speaks PCP and NAT-PMP for five small crates. `igd-next` would add 49 for one GET and
//! three POSTs (an HTTP/2 client and the tables of international domain names among them), and `portmapper` 94; so UPnP is here,
//! on `httparse` and `roxmltree`, which have no dependencies that were not there before.
//!
//! Invariant: nothing is sent before [`PortMapping::request`], and at most one mapping of a [`PortMapping`] stands at the router.

#![forbid(unsafe_code)]

mod gateway;
mod grant;
mod igd;
mod keeper;
mod port_control;
mod router;

use std::fmt;
use std::net::{SocketAddr, SocketAddrV4};
use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, oneshot, watch};
use tokio::task::JoinHandle;

pub use gateway::Gateway;
pub use grant::Refusal;

/// How long [`PortMapping::release`] waits for the router: a removal is one exchange, and a router that does not answer it now
/// forgets the mapping when its lifetime ends.
pub const RELEASE_TIMEOUT: Duration = Duration::from_secs(3);

/// By what a router was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// RFC 6887.
    Pcp,
    /// RFC 6886.
    NatPmp,
    /// `WANIPConnection` or `WANPPPConnection` of an Internet Gateway Device.
    UpnpIgd,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pcp => "PCP",
            Self::NatPmp => "NAT-PMP",
            Self::UpnpIgd => "UPnP",
        })
    }
}

/// How it stands with a mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// The router has been asked and has not answered yet.
    Asking,
    /// What arrives at `external` is led to the local port.
    Mapped {
        /// As the router says; it lies within the internet, and nobody has tried it.
        external: SocketAddrV4,
        /// By what it was granted.
        protocol: Protocol,
    },
    /// There is none now, and why; it is asked for again later.
    Unmapped(Arc<Unmapped>),
}

impl Status {
    /// Where this machine can be reached, if the router said so and it still holds.
    #[must_use]
    pub fn external(&self) -> Option<SocketAddr> {
        match self {
            Self::Mapped { external, .. } => Some(SocketAddr::V4(*external)),
            Self::Asking | Self::Unmapped(_) => None,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Asking => f.write_str("the router is being asked for a port"),
            Self::Mapped { external, protocol } => {
                write!(f, "the router leads {external} here (by {protocol})")
            }
            Self::Unmapped(why) => why.fmt(f),
        }
    }
}

/// Why there is no mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unmapped {
    /// This machine has no IPv4 router, or the system does not say which.
    NoGateway,
    /// None of the protocols brought one: what each met, in the order in which they were tried.
    Refused(Vec<(Protocol, Refusal)>),
}

impl fmt::Display for Unmapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoGateway => f.write_str("no router is known from which a port could be had"),
            Self::Refused(refusals) => {
                f.write_str("the router gives no port (")?;
                for (at, (protocol, refusal)) in refusals.iter().enumerate() {
                    let comma = if at == 0 { "" } else { "; " };
                    write!(f, "{comma}{protocol}: {refusal}")?;
                }
                f.write_str("); UPnP or PCP may be switched off in its settings")
            }
        }
    }
}

impl std::error::Error for Unmapped {}

/// How a mapping is asked for. The default is right for everything but a test or a lab.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Who is asked; `None` is the default gateway of this thread's network namespace.
    pub gateway: Option<Gateway>,
    /// How long a UPnP device is searched for: devices spread their answers over a second, and a slow router takes another.
    pub search: Duration,
    /// So often at least a mapping that stands is asked for anew: a router that was restarted, or whose address changed, tells
    /// nobody. A request of the same again costs two small datagrams, and restores what was forgotten.
    pub recheck: Duration,
    /// The first wait after a request that brought nothing; doubled each time up to [`Settings::retry_max`].
    pub retry: Duration,
    /// Longest wait between requests that bring nothing.
    pub retry_max: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            gateway: None,
            search: Duration::from_secs(2),
            recheck: Duration::from_secs(120),
            retry: Duration::from_secs(60),
            retry_max: Duration::from_secs(30 * 60),
        }
    }
}

/// A mapping that is asked for, kept and given back by a task of its own on the runtime on which it was made. Dropping it gives
/// the mapping back in the background, if the runtime lives long enough; [`release`](Self::release) waits for that.
#[derive(Debug)]
pub struct PortMapping {
    status: watch::Receiver<Status>,
    refresh: Arc<Notify>,
    /// Dropped to stop the keeper.
    _stop: oneshot::Sender<()>,
    keeper: JoinHandle<()>,
}

impl PortMapping {
    /// Asks the default gateway to lead UDP to `local_port` of this machine, and goes on for as long as this value lives.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    #[must_use]
    pub fn request(local_port: NonZeroU16) -> Self {
        Self::request_with(local_port, Settings::default())
    }

    /// The same with settings.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    #[must_use]
    pub fn request_with(local_port: NonZeroU16, settings: Settings) -> Self {
        let (publish, status) = watch::channel(Status::Asking);
        let (stop, stopped) = oneshot::channel();
        let refresh = Arc::new(Notify::new());
        let keeper = keeper::Keeper::new(local_port, settings, publish, refresh.clone());
        let keeper = tokio::spawn(keeper.run(stopped));
        Self { status, refresh, _stop: stop, keeper }
    }

    /// How it stands, now and whenever that changes.
    #[must_use]
    pub fn status(&self) -> watch::Receiver<Status> {
        self.status.clone()
    }

    /// Asks again at once: after a sleep, or when the machine's addresses changed.
    pub fn refresh(&self) {
        self.refresh.notify_one();
    }

    /// Gives the mapping back; waits until the router has confirmed it, or [`RELEASE_TIMEOUT`].
    pub async fn release(self) {
        let Self { _stop: stop, mut keeper, .. } = self;
        drop(stop);
        if tokio::time::timeout(RELEASE_TIMEOUT, &mut keeper).await.is_err() {
            keeper.abort();
        }
    }
}

/// The example of the README, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
