//! Common NAT behaviours by their usual names, in terms of RFC 4787.

use std::time::Duration;

use super::nat::{Behaviour, EndpointDependence, PortAllocation};

/// Minimum mapping lifetime of home routers (RFC 4787 REQ-5 requires two minutes; many keep 30 s).
const LIFETIME: Duration = Duration::from_secs(30);

/// NatBehaviours by name.
#[derive(Clone, Copy, Debug)]
pub struct NatBehaviours;

impl NatBehaviours {
    /// Endpoint-independent mapping, no filtering.
    pub const FULL_CONE: Behaviour = cone(EndpointDependence::EndpointIndependent);
    /// Endpoint-independent mapping, address-dependent filtering.
    pub const RESTRICTED: Behaviour = cone(EndpointDependence::AddressDependent);
    /// Endpoint-independent mapping, address and port-dependent filtering.
    pub const PORT_RESTRICTED: Behaviour = cone(EndpointDependence::AddressAndPortDependent);
    /// One mapping for each destination, with sequential ports.
    pub const SYMMETRIC_COUNTING: Behaviour = symmetric(PortAllocation::Sequential);
    /// One mapping for each destination, with random ports.
    pub const SYMMETRIC_RANDOM: Behaviour = symmetric(PortAllocation::Random);
    /// No translation, and only answers pass inwards.
    pub const FIREWALL: Behaviour = Behaviour {
        ports: PortAllocation::Untranslated,
        ..cone(EndpointDependence::AddressAndPortDependent)
    };
}

const fn cone(filtering: EndpointDependence) -> Behaviour {
    Behaviour {
        mapping: EndpointDependence::EndpointIndependent,
        filtering,
        ports: PortAllocation::Preserving,
        lifetime: LIFETIME,
        hairpin: false,
    }
}

const fn symmetric(ports: PortAllocation) -> Behaviour {
    Behaviour {
        mapping: EndpointDependence::AddressAndPortDependent,
        filtering: EndpointDependence::AddressAndPortDependent,
        ports,
        lifetime: LIFETIME,
        hairpin: false,
    }
}
