//! Selection of the mapping protocol.
//!
//! PCP and NAT-PMP share a port and are tried one after the other. The search for a UPnP device
//! runs at the same time; the search changes nothing at the router. Two protocols therefore never
//! hold a grant at once, with one exception: if the answer with a grant was lost, that grant stays
//! until its lifetime ends.

use std::num::NonZeroU16;
use std::time::Duration;

use tokio::time::timeout;

use crate::gateway::Gateway;
use crate::grant::{Grant, Refusal};
use crate::igd::{Igd, IgdMapping};
use crate::port_control::{self, PortControlMapping};
use crate::{Protocol, Unmapped};

/// Head start of PCP and NAT-PMP after a UPnP device was found. A router that supports PCP or
/// NAT-PMP answers within milliseconds.
const PORT_CONTROL_HEAD_START: Duration = Duration::from_secs(1);

/// A mapping that the router holds.
#[derive(Debug)]
pub(crate) struct Mapping {
    protocol: Protocol,
    held: ProtocolMapping,
}

#[derive(Debug)]
enum ProtocolMapping {
    PortControl(PortControlMapping),
    Igd(IgdMapping),
}

impl Mapping {
    /// Requests a mapping by all protocols and keeps the first grant. `search` is the duration of
    /// the search for a UPnP device.
    pub async fn request(
        gateway: Gateway,
        search: Duration,
        local_port: NonZeroU16,
        preferred_port: Option<NonZeroU16>,
    ) -> Result<(Self, Grant), Unmapped> {
        let port_control = request_by_port_control(gateway, local_port, preferred_port);
        let find_igd = Igd::find(gateway, search);
        tokio::pin!(port_control, find_igd);
        let mut refusals = None;
        let igd = tokio::select! {
            granted = &mut port_control => match granted {
                Ok(granted) => return Ok(granted),
                Err(refused) => {
                    refusals = Some(refused);
                    find_igd.await
                }
            },
            igd = &mut find_igd => igd,
        };
        if igd.is_ok() && refusals.is_none() {
            match timeout(PORT_CONTROL_HEAD_START, &mut port_control).await {
                Ok(Ok(granted)) => return Ok(granted),
                Ok(Err(refused)) => refusals = Some(refused),
                // The request stays pending and is resumed if the device refuses.
                Err(_) => {}
            }
        }
        let mapped = match igd {
            Ok(igd) => igd.map(local_port, preferred_port).await,
            Err(refusal) => Err(refusal),
        };
        let refused = match mapped {
            Ok((mapping, grant)) => {
                let held = ProtocolMapping::Igd(mapping);
                return Ok((Self { protocol: Protocol::UpnpIgd, held }, grant));
            }
            Err(refusal) => refusal,
        };
        let mut refusals = match refusals {
            Some(refused) => refused,
            None => match port_control.await {
                Ok(granted) => return Ok(granted),
                Err(refused) => refused,
            },
        };
        refusals.push((Protocol::UpnpIgd, refused));
        Err(Unmapped::Refused(refusals))
    }

    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Repeats the request for the same mapping.
    pub async fn renew(&mut self) -> Result<Grant, Refusal> {
        match &mut self.held {
            ProtocolMapping::PortControl(mapping) => mapping.renew().await,
            ProtocolMapping::Igd(mapping) => mapping.renew().await,
        }
    }

    pub async fn remove(&mut self) -> Result<(), Refusal> {
        match &mut self.held {
            ProtocolMapping::PortControl(mapping) => mapping.remove().await,
            ProtocolMapping::Igd(mapping) => mapping.remove().await,
        }
    }
}

/// Tries PCP, then NAT-PMP. Some routers that support only NAT-PMP do not answer a PCP request.
async fn request_by_port_control(
    gateway: Gateway,
    local_port: NonZeroU16,
    preferred_port: Option<NonZeroU16>,
) -> Result<(Mapping, Grant), Vec<(Protocol, Refusal)>> {
    let mut refusals = Vec::new();
    for protocol in [Protocol::Pcp, Protocol::NatPmp] {
        match port_control::request(protocol, gateway, local_port, preferred_port).await {
            Ok((mapping, grant)) => {
                return Ok((
                    Mapping { protocol, held: ProtocolMapping::PortControl(mapping) },
                    grant,
                ));
            }
            Err(refusal) => refusals.push((protocol, refusal)),
        }
    }
    Err(refusals)
}
