//! PCP (RFC 6887) and NAT-PMP (RFC 6886) by `crab_nat`: one request datagram, one response
//! datagram.
//!
//! Both use UDP port 5351 of the gateway. A router that supports only NAT-PMP answers PCP with an
//! error or not at all.

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

/// Retransmission schedule. RFC 6886 §3.1 starts at 250 ms and doubles; three requests in 1.75 s
/// suffice on a home network.
const TIMEOUTS: TimeoutConfig = TimeoutConfig {
    initial_timeout: Duration::from_millis(250),
    max_retries: 2,
    max_retry_timeout: None,
};
/// Schedule of a removal: two requests in 0.75 s, so that shutdown is not delayed.
const REMOVAL_TIMEOUTS: TimeoutConfig = TimeoutConfig { max_retries: 1, ..TIMEOUTS };
/// Result codes of RFC 6887 §7.4. Codes of RFC 6886 §3.5 with the same meaning are mapped to these
/// numbers.
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

/// A mapping that the router holds for this client. A PCP mapping is renewed with the same nonce.
#[derive(Debug)]
pub(crate) struct PortControlMapping(PortMapping);

/// Requests a mapping by one of the two protocols. `preferred_port` is the preferred external port,
/// for a mapping that was lost.
pub(crate) async fn request(
    protocol: Protocol,
    gateway: Gateway,
    local_port: NonZeroU16,
    preferred_port: Option<NonZeroU16>,
) -> Result<(PortControlMapping, Grant), Refusal> {
    let router = GatewayAddress::IpV4(gateway.router);
    let (udp, options) = (InternetProtocol::Udp, options(preferred_port));
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
            // An invalid grant is not used, so it is not left open.
            let _ = mapping.remove().await;
            Err(refusal)
        }
    }
}

/// Returns the options of every request, independent of earlier grants.
fn options(preferred_port: Option<NonZeroU16>) -> PortMappingOptions {
    PortMappingOptions {
        external_port: preferred_port,
        lifetime_seconds: Some(LIFETIME.as_secs() as u32),
        timeout_config: Some(TIMEOUTS),
    }
}

impl PortControlMapping {
    /// Repeats the request: renews an existing mapping and restores a lost one.
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

    /// Validates the grant. NAT-PMP reports the external address in a separate exchange.
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
        Grant::validated(external, Duration::from_secs(self.0.lifetime().into()))
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
