//! PCP (RFC 6887) and NAT-PMP (RFC 6886): one datagram asks, one answers, by `crab_nat`.
//!
//! Both are at UDP port 5351 of the gateway; a router with only the older one says so, or says nothing.

use std::net::{IpAddr, SocketAddrV4};
use std::num::NonZeroU16;
use std::time::Duration;

use crab_nat::{
    GatewayAddress, InternetProtocol, PortMapping, PortMappingOptions, PortMappingType,
    TimeoutConfig, natpmp, pcp,
};

use crate::Protocol;
use crate::gateway::Gateway;
use crate::grant::{Grant, LIFETIME, Refusal};

/// RFC 6886 §3.1 begins with 250 ms and doubles; three requests in 1.75 s are enough for a router in the same house.
const TIMEOUTS: TimeoutConfig = TimeoutConfig {
    initial_timeout: Duration::from_millis(250),
    max_retries: 2,
    max_retry_timeout: None,
};
/// Of a removal: two requests in 0.75 s, so that whoever ends is not held up.
const REMOVAL_TIMEOUTS: TimeoutConfig = TimeoutConfig { max_retries: 1, ..TIMEOUTS };
/// Result codes of RFC 6887 §7.4; those of RFC 6886 §3.5 that mean the same are told by the same numbers.
mod code {
    pub const NOT_AUTHORIZED: u16 = 2;
    pub const MALFORMED_REQUEST: u16 = 3;
    pub const NETWORK_FAILURE: u16 = 7;
    pub const NO_RESOURCES: u16 = 8;
    pub const UNSUPPORTED_PROTOCOL: u16 = 9;
    pub const USER_EX_QUOTA: u16 = 10;
    pub const CANNOT_PROVIDE_EXTERNAL: u16 = 11;
    pub const ADDRESS_MISMATCH: u16 = 12;
    pub const EXCESSIVE_REMOTE_PEERS: u16 = 13;
}

/// A mapping that the router keeps for us, and how to ask for it again: PCP by the same nonce.
#[derive(Debug)]
pub(crate) struct PortControlMapping(PortMapping);

/// Asks by one of the two. `wish` is the external port that would be best, for a mapping that was lost.
pub(crate) async fn request(
    protocol: Protocol,
    gateway: Gateway,
    local_port: NonZeroU16,
    wish: Option<NonZeroU16>,
) -> Result<(PortControlMapping, Grant), Refusal> {
    let router = GatewayAddress::IpV4(gateway.router);
    let (udp, options) = (InternetProtocol::Udp, options(wish));
    let mapping = if protocol == Protocol::NatPmp {
        natpmp::port_mapping(router, udp, local_port, options).await?
    } else {
        let base = pcp::BaseMapRequest::new(router, gateway.local.into(), udp, local_port);
        pcp::port_mapping(base, None, None, options).await?
    };
    let mapping = PortControlMapping(mapping);
    match mapping.grant().await {
        Ok(grant) => Ok((mapping, grant)),
        Err(refusal) => {
            // Nobody will use it, so it is not left open.
            let _ = mapping.remove().await;
            Err(refusal)
        }
    }
}

/// What is asked for each time, whatever the router granted before.
fn options(wish: Option<NonZeroU16>) -> PortMappingOptions {
    PortMappingOptions {
        external_port: wish,
        lifetime_seconds: Some(LIFETIME.as_secs() as u32),
        timeout_config: Some(TIMEOUTS),
    }
}

impl PortControlMapping {
    /// Asks for the same once more: renews what stands, restores what was forgotten.
    pub async fn renew(&mut self) -> Result<Grant, Refusal> {
        let options = options(Some(self.0.external_port()));
        let (router, udp, port) = (self.0.gateway(), self.0.protocol(), self.0.internal_port());
        self.0 = match self.0.mapping_type() {
            PortMappingType::NatPmp => natpmp::port_mapping(router, udp, port, options).await?,
            PortMappingType::Pcp { client, nonce, external_ip } => {
                let base = pcp::BaseMapRequest::new(router, client, udp, port);
                pcp::port_mapping(base, Some(nonce), Some(external_ip), options).await?
            }
        };
        self.grant().await
    }

    pub async fn remove(&self) -> Result<(), Refusal> {
        let mut mapping = self.0.clone();
        mapping.timeout_config = REMOVAL_TIMEOUTS;
        mapping.try_drop().await.map_err(|(failure, _)| match failure {
            crab_nat::MappingFailure::NatPmp(failure) => failure.into(),
            crab_nat::MappingFailure::Pcp(failure) => failure.into(),
        })
    }

    /// What of it is believed. NAT-PMP tells the external address separately.
    async fn grant(&self) -> Result<Grant, Refusal> {
        let ip = match self.0.mapping_type() {
            PortMappingType::NatPmp => {
                natpmp::external_address(self.0.gateway(), Some(TIMEOUTS)).await?
            }
            PortMappingType::Pcp { external_ip: IpAddr::V4(ip), .. } => ip,
            PortMappingType::Pcp { external_ip: IpAddr::V6(_), .. } => {
                return Err(Refusal::Malformed);
            }
        };
        let external = SocketAddrV4::new(ip, self.0.external_port().get());
        Grant::believed(external, Duration::from_secs(self.0.lifetime().into()))
    }
}

impl From<pcp::Failure> for Refusal {
    fn from(failure: pcp::Failure) -> Self {
        use pcp::Failure as F;
        Self::Refused(match failure {
            F::Socket(error) => return error.into(),
            F::Timeout => return Self::NoAnswer,
            F::Nonce | F::InvalidResponse(_) => return Self::Malformed,
            F::UnsupportedVersion(_) | F::UnsupportedOpcode => return Self::Unsupported,
            F::UnsupportedOption | F::MalformedOption | F::MalformedRequest => {
                code::MALFORMED_REQUEST
            }
            F::NotAuthorized(_) => code::NOT_AUTHORIZED,
            F::NetworkFailure(_) => code::NETWORK_FAILURE,
            F::NoResources(_) => code::NO_RESOURCES,
            F::UnsupportedProtocol => code::UNSUPPORTED_PROTOCOL,
            F::UserExceededQuota(_) => code::USER_EX_QUOTA,
            F::CannotProvideExternal(_) => code::CANNOT_PROVIDE_EXTERNAL,
            F::AddressMismatch => code::ADDRESS_MISMATCH,
            F::ExcessiveRemotePeers => code::EXCESSIVE_REMOTE_PEERS,
        })
    }
}

impl From<natpmp::Failure> for Refusal {
    fn from(failure: natpmp::Failure) -> Self {
        use natpmp::Failure as F;
        match failure {
            F::Socket(error) => error.into(),
            F::Timeout => Self::NoAnswer,
            F::InvalidResponse(_) => Self::Malformed,
            F::UnsupportedVersion(_) | F::UnsupportedOpcode => Self::Unsupported,
            F::NotAuthorized => Self::Refused(code::NOT_AUTHORIZED),
            F::NetworkFailure => Self::Refused(code::NETWORK_FAILURE),
            F::OutOfResources => Self::Refused(code::NO_RESOURCES),
        }
    }
}
