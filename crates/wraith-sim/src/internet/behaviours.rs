//! The translators that people have, by their usual names, in terms of RFC 4787.

use std::time::Duration;

use super::nat::{Behaviour, Dependence, PortAllocation};

/// What home routers keep a mapping for at least (RFC 4787 REQ-5 asks for two minutes; many keep 30 s).
const LIFETIME: Duration = Duration::from_secs(30);

/// Behaviours by name.
#[derive(Clone, Copy, Debug)]
pub struct Behaviours;

impl Behaviours {
    /// One mapping for everybody, who may all come in.
    pub const FULL_CONE: Behaviour = cone(Dependence::EndpointIndependent);
    /// One mapping; hosts that were written to may come in.
    pub const RESTRICTED: Behaviour = cone(Dependence::AddressDependent);
    /// One mapping; addresses and ports that were written to may come in.
    pub const PORT_RESTRICTED: Behaviour = cone(Dependence::AddressAndPortDependent);
    /// A mapping for each destination, its ports one after the other.
    pub const SYMMETRIC_COUNTING: Behaviour = symmetric(PortAllocation::Sequential);
    /// A mapping for each destination, at any port.
    pub const SYMMETRIC_RANDOM: Behaviour = symmetric(PortAllocation::Random);
    /// Nothing is translated, and only answers come in.
    pub const FIREWALL: Behaviour = Behaviour {
        ports: PortAllocation::Untranslated,
        ..cone(Dependence::AddressAndPortDependent)
    };
}

const fn cone(filtering: Dependence) -> Behaviour {
    Behaviour {
        mapping: Dependence::EndpointIndependent,
        filtering,
        ports: PortAllocation::Preserving,
        lifetime: LIFETIME,
        hairpin: false,
    }
}

const fn symmetric(ports: PortAllocation) -> Behaviour {
    Behaviour {
        mapping: Dependence::AddressAndPortDependent,
        filtering: Dependence::AddressAndPortDependent,
        ports,
        lifetime: LIFETIME,
        hairpin: false,
    }
}
