//! Mappings by UPnP Internet Gateway Devices, the oldest and most widespread protocol.
//!
//! Discovery of the router and its service changes nothing at the router; only [`Igd::map`] changes
//! its state.

mod description;
mod http;
mod soap;
mod ssdp;

use std::net::{Ipv4Addr, SocketAddrV4};
use std::num::NonZeroU16;
use std::time::Duration;

use self::description::Service;
use crate::gateway::Gateway;
use crate::grant::{Grant, LIFETIME, Refusal};

/// `OnlyPermanentLeasesSupported`: the router has no lifetimes. The mapping lasts until this client
/// removes it.
const ONLY_PERMANENT: u16 = 725;
/// `ConflictInMappingEntry`: another machine holds the port.
const CONFLICT: u16 = 718;
/// `SamePortValuesRequired`: the external port must equal the local one.
const SAME_PORT: u16 = 724;
/// Most external ports to try while other machines hold them.
const PORTS_TRIED_MAX: u16 = 4;
/// Step to the next port after a conflict. It is prime, so that the sequences of two machines
/// seldom meet.
const PORT_STEP: u16 = 1009;
/// Lowest port to map. Ports below belong to services of the router and the system.
const PORT_MIN: u16 = 1024;
/// Description of the mapping in the router's user interface.
const DESCRIPTION: &str = "wraith";

/// A router that supports port mapping, before any request.
#[derive(Debug)]
pub struct Igd {
    gateway: Gateway,
    services: Vec<Service>,
}

/// A mapping held by one of the router's services.
#[derive(Debug)]
pub struct IgdMapping {
    local: SocketAddrV4,
    service: Service,
    external_port: u16,
    permanent: bool,
}

impl Igd {
    pub async fn find(gateway: Gateway, search: Duration) -> Result<Self, Refusal> {
        let page = ssdp::search(gateway, search).await?;
        let answer = http::get(&page).await?;
        if answer.status != 200 {
            return Err(Refusal::Refused(answer.status));
        }
        let services = description::services(&page, &answer.body)?;
        Ok(Self { gateway, services })
    }

    /// Maps a port with the first service that is connected to the internet.
    pub async fn map(
        &self,
        local_port: NonZeroU16,
        preferred_port: Option<NonZeroU16>,
    ) -> Result<(IgdMapping, Grant), Refusal> {
        let local = SocketAddrV4::new(self.gateway.local, local_port.get());
        let mut last = Refusal::Unsupported;
        for service in &self.services {
            // Checked before the mapping: a service without an external address is of no use.
            match external_ip(service).await {
                Ok(ip) => {
                    let preferred_port = preferred_port.unwrap_or(local_port).get();
                    return IgdMapping::add(service.clone(), local, preferred_port, ip).await;
                }
                Err(refusal) => last = refusal,
            }
        }
        Err(last)
    }
}

impl IgdMapping {
    /// Adds the mapping at the preferred port, or at a free one.
    async fn add(
        service: Service,
        local: SocketAddrV4,
        preferred_port: u16,
        ip: Ipv4Addr,
    ) -> Result<(Self, Grant), Refusal> {
        let mut mapping = Self { local, service, external_port: preferred_port, permanent: false };
        let mut tried = 1;
        loop {
            match mapping.invoke_add().await {
                Ok(()) => break,
                Err(Refusal::Refused(ONLY_PERMANENT)) if !mapping.permanent => {
                    mapping.permanent = true;
                }
                Err(Refusal::Refused(SAME_PORT)) if mapping.external_port != local.port() => {
                    mapping.external_port = local.port();
                }
                Err(Refusal::Refused(CONFLICT)) if tried < PORTS_TRIED_MAX => {
                    tried += 1;
                    mapping.external_port =
                        mapping.external_port.wrapping_add(PORT_STEP).max(PORT_MIN);
                }
                Err(refusal) => return Err(refusal),
            }
        }
        match mapping.grant(ip) {
            Ok(grant) => Ok((mapping, grant)),
            Err(refusal) => {
                let _ = mapping.remove().await;
                Err(refusal)
            }
        }
    }

    /// Adds the same mapping again, which renews it or restores a lost one.
    pub async fn renew(&mut self) -> Result<Grant, Refusal> {
        let ip = external_ip(&self.service).await?;
        self.invoke_add().await?;
        self.grant(ip)
    }

    pub async fn remove(&self) -> Result<(), Refusal> {
        let port = self.external_port.to_string();
        let arguments = [("NewRemoteHost", ""), ("NewExternalPort", &port), ("NewProtocol", "UDP")];
        soap::invoke(&self.service, "DeletePortMapping", &arguments).await.map(drop)
    }

    async fn invoke_add(&self) -> Result<(), Refusal> {
        let (external, port) = (self.external_port.to_string(), self.local.port().to_string());
        let client = self.local.ip().to_string();
        let seconds = if self.permanent { 0 } else { LIFETIME.as_secs() }.to_string();
        let arguments = [
            ("NewRemoteHost", ""),
            ("NewExternalPort", &external),
            ("NewProtocol", "UDP"),
            ("NewInternalPort", &port),
            ("NewInternalClient", &client),
            ("NewEnabled", "1"),
            ("NewPortMappingDescription", DESCRIPTION),
            ("NewLeaseDuration", &seconds),
        ];
        soap::invoke(&self.service, "AddPortMapping", &arguments).await.map(drop)
    }

    /// Builds the grant. The router does not report a lifetime; it accepted the requested one.
    fn grant(&self, ip: Ipv4Addr) -> Result<Grant, Refusal> {
        Grant::validated(SocketAddrV4::new(ip, self.external_port), LIFETIME)
    }
}

async fn external_ip(service: &Service) -> Result<Ipv4Addr, Refusal> {
    let answer = soap::invoke(service, "GetExternalIPAddress", &[]).await?;
    let ip = answer.value("NewExternalIPAddress").ok_or(Refusal::Malformed)?;
    let ip = ip.parse().map_err(|_| Refusal::Malformed)?;
    // The port is a placeholder; only the address is validated.
    Grant::validated(SocketAddrV4::new(ip, PORT_MIN), LIFETIME).map(|grant| *grant.external.ip())
}
