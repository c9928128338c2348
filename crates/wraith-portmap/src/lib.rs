//! UDP port mappings: asks the home router to forward an external UDP port to this machine.
//!
//! ```text
//!   PortMapping            the application's handle; drop gives the port back
//!     │ watch
//!   mapping_task           one task: request, renew, detect loss, request again, remove
//!     │
//!   router                 selects the protocol: the first that grants a port
//!   ├── port_control       PCP and NAT-PMP (by crab_nat)
//!   └── igd/               UPnP: ssdp → description → soap, over a bounded HTTP client
//! ```
//!
//! The router is not trusted:
//!
//! - Every step is bounded in time and bytes.
//! - A grant is rejected if its address is not global, its port is zero, or its lifetime is too
//!   short.
//! - A URL is followed only if it points to the gateway.
//!
//! The router's answer decides only which address this machine gives to its peer. The handshake
//! with the peer then proves that the address leads to this machine.
//!
//! **Why these libraries.** `crab_nat` implements PCP and NAT-PMP and brings five small crates.
//! `igd-next` would add 49 crates for one GET and three POSTs, among them an HTTP/2 client and
//! tables of international domain names. `portmapper` would add 94 crates. UPnP is therefore
//! implemented in this crate, on `httparse` and `roxmltree`, which add no further dependencies.
//!
//! Invariant: nothing is sent before [`PortMapping::request`], and the router holds at most one
//! mapping per [`PortMapping`].

#![forbid(unsafe_code)]

mod gateway;
mod grant;
mod igd;
mod mapping_task;
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

/// Longest time that [`PortMapping::release`] waits for the router. A removal is one exchange; if
/// the router does not answer, it drops the mapping when the lifetime ends.
pub const RELEASE_TIMEOUT: Duration = Duration::from_secs(3);

/// The port mapping protocol.
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

/// State of a mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// The request is under way.
    Requesting,
    /// The router forwards packets for `external` to the local port.
    Mapped {
        /// External address as reported by the router: a global address, not yet tested.
        external: SocketAddrV4,
        /// The protocol that granted the mapping.
        protocol: Protocol,
    },
    /// No mapping at present, with the reason. The request is repeated later.
    Unmapped(Arc<Unmapped>),
}

impl Status {
    /// Returns the external address while a mapping is in force.
    #[must_use]
    pub fn external(&self) -> Option<SocketAddr> {
        match self {
            Self::Mapped { external, .. } => Some(SocketAddr::V4(*external)),
            Self::Requesting | Self::Unmapped(_) => None,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Requesting => f.write_str("requesting a port from the router"),
            Self::Mapped { external, protocol } => {
                write!(f, "the router forwards {external} to this machine ({protocol})")
            }
            Self::Unmapped(why) => why.fmt(f),
        }
    }
}

/// Reason for a missing mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unmapped {
    /// This machine has no IPv4 router, or the operating system does not report it.
    NoGateway,
    /// No protocol granted a mapping. Lists each protocol's failure in the order of the attempts.
    Refused(Vec<(Protocol, Refusal)>),
}

impl fmt::Display for Unmapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoGateway => f.write_str("no router was found"),
            Self::Refused(refusals) => {
                f.write_str("the router grants no port (")?;
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

/// Settings of a mapping request. The defaults suit everything except tests and labs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The router to ask. `None` selects the default gateway of this thread's network namespace.
    pub gateway: Option<Gateway>,
    /// Duration of the search for a UPnP device. Devices spread their answers over one second, and
    /// a slow router needs another second.
    pub search: Duration,
    /// Longest interval between renewals of a mapping. A router does not announce a restart or a
    /// new external address. A repeated request costs two small datagrams and restores a lost
    /// mapping.
    pub recheck: Duration,
    /// First wait after a failed request. It doubles after each failure, up to
    /// [`Settings::retry_max`].
    pub retry: Duration,
    /// Longest wait between failed requests.
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

/// A port mapping that a background task requests, renews and removes. The task runs on the runtime
/// that was current at creation. Drop removes the mapping in the background, if the runtime lives
/// long enough; [`release`](Self::release) waits for the removal.
#[derive(Debug)]
pub struct PortMapping {
    status: watch::Receiver<Status>,
    refresh: Arc<Notify>,
    /// Drop stops the task.
    _stop: oneshot::Sender<()>,
    mapping_task: JoinHandle<()>,
}

impl PortMapping {
    /// Asks the default gateway to forward UDP to `local_port` of this machine. The mapping is kept
    /// until this value is dropped.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    #[must_use]
    pub fn request(local_port: NonZeroU16) -> Self {
        Self::request_with(local_port, Settings::default())
    }

    /// Same as [`PortMapping::request`], with explicit settings.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    #[must_use]
    pub fn request_with(local_port: NonZeroU16, settings: Settings) -> Self {
        let (publish, status) = watch::channel(Status::Requesting);
        let (stop, stopped) = oneshot::channel();
        let refresh = Arc::new(Notify::new());
        let mapping_task =
            mapping_task::MappingTask::new(local_port, settings, publish, refresh.clone());
        let mapping_task = tokio::spawn(mapping_task.run(stopped));
        Self { status, refresh, _stop: stop, mapping_task }
    }

    /// Returns a receiver of the current status and its changes.
    #[must_use]
    pub fn status(&self) -> watch::Receiver<Status> {
        self.status.clone()
    }

    /// Renews or requests the mapping at once. Call it after a suspend, or when the machine's
    /// addresses changed.
    pub fn refresh(&self) {
        self.refresh.notify_one();
    }

    /// Removes the mapping. Waits for the router's confirmation, at most [`RELEASE_TIMEOUT`].
    pub async fn release(self) {
        let Self { _stop: stop, mut mapping_task, .. } = self;
        drop(stop);
        if tokio::time::timeout(RELEASE_TIMEOUT, &mut mapping_task).await.is_err() {
            mapping_task.abort();
        }
    }
}

/// Runs the README example as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
