//! The UDP association with a proxy of one relay task. It is used if this machine reaches the relay
//! only by a TCP stream through the proxy.
//!
//! The association is requested with each connection to the relay, and again one minute after it
//! ended or failed. It outlives those connections: datagrams use it while the next connection is
//! established.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tracing::debug;

use super::connect::{Associating, ConnectRelay, UdpAssociation};
use super::route::Route;

/// Wait before the next request to a proxy.
const RETRY_INTERVAL: Duration = Duration::from_secs(60);

/// Current association and its state; see the module documentation.
#[derive(Debug, Default)]
pub struct ProxyAssociation {
    /// The relay that the association is for.
    target: Option<Target>,
    state: AssociationState,
}

#[derive(Clone, Debug)]
struct Target {
    connect: Arc<dyn ConnectRelay>,
    host: String,
    port: u16,
}

#[derive(Default)]
enum AssociationState {
    /// No association exists or is wanted.
    #[default]
    Unused,
    Requesting(Associating<'static>),
    Open(Box<dyn UdpAssociation>),
    Pausing(Instant),
}

/// A change of the association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AssociationChange {
    /// It has become usable.
    Opened,
    /// It has ended.
    Closed,
}

impl ProxyAssociation {
    /// Starts with a new connection to the relay. `target` names the connector, host and UDP port;
    /// `None` if no association is wanted.
    pub fn start(&mut self, target: Option<(&Arc<dyn ConnectRelay>, &str, u16)>) {
        let Some((connect, host, port)) = target else {
            *self = Self::default();
            return;
        };
        let is_kept =
            self.target.as_ref().is_some_and(|target| target.host == host && target.port == port);
        if !is_kept || matches!(self.state, AssociationState::Unused | AssociationState::Pausing(_))
        {
            let target = Target { connect: Arc::clone(connect), host: host.to_owned(), port };
            self.state = target.request();
            self.target = Some(target);
        }
    }

    /// Returns the association while the proxy holds it.
    pub fn open(&self) -> Option<&dyn UdpAssociation> {
        match &self.state {
            AssociationState::Open(open) => Some(open.as_ref()),
            AssociationState::Unused
            | AssociationState::Requesting(_)
            | AssociationState::Pausing(_) => None,
        }
    }

    /// Returns the route through the association, before the relay has answered on it.
    pub fn route(&self) -> Option<Route> {
        self.open().map(|open| Route::through_proxy(open.proxy()))
    }

    /// Waits for the next change; pends forever if there will be no change. Cancel-safe.
    pub async fn changed(&mut self) -> AssociationChange {
        loop {
            match &mut self.state {
                AssociationState::Unused => std::future::pending().await,
                AssociationState::Requesting(requesting) => match requesting.await {
                    Ok(open) => {
                        debug!(proxy = %open.proxy(), "a proxy carries UDP to a relay");
                        self.state = AssociationState::Open(open);
                        return AssociationChange::Opened;
                    }
                    Err(error) => {
                        debug!(%error, "no UDP to a relay through the proxy");
                        self.state = match error.kind() {
                            io::ErrorKind::Unsupported => AssociationState::Unused,
                            _ => AssociationState::Pausing(Instant::now() + RETRY_INTERVAL),
                        };
                    }
                },
                AssociationState::Open(open) => {
                    open.closed().await;
                    debug!(proxy = %open.proxy(), "a proxy carries UDP to a relay no longer");
                    self.state = AssociationState::Pausing(Instant::now() + RETRY_INTERVAL);
                    return AssociationChange::Closed;
                }
                AssociationState::Pausing(until) => {
                    sleep_until(*until).await;
                    self.state =
                        self.target.as_ref().map_or(AssociationState::Unused, Target::request);
                }
            }
        }
    }
}

impl Target {
    fn request(&self) -> AssociationState {
        let Self { connect, host, port } = self.clone();
        AssociationState::Requesting(Box::pin(async move {
            match connect.associate(&host, port) {
                Some(requesting) => requesting.await,
                // The connector has no association to offer.
                None => Err(io::ErrorKind::Unsupported.into()),
            }
        }))
    }
}

impl std::fmt::Debug for AssociationState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unused => f.write_str("Unused"),
            Self::Requesting(_) => f.write_str("Asking"),
            Self::Open(open) => f.debug_tuple("Open").field(open).finish(),
            Self::Pausing(until) => f.debug_tuple("Pausing").field(until).finish(),
        }
    }
}
