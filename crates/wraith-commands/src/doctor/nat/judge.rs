//! Explains the measured properties of a NAT: their consequences for direct transfers.

use std::net::SocketAddr;

use wraith_transport::nat::{Allocation, Mapping, ObservedAddress, filtering};

use super::NAME;
use crate::doctor::Check;

/// The measured properties.
#[derive(Debug, Default)]
pub(super) struct NatMeasurements {
    /// The observers of the first socket, with the address that each of them saw.
    pub observations: Vec<ObservedAddress>,
    pub mapping: Option<Mapping>,
    pub allocation: Option<Allocation>,
    /// Whether packets from another port of a contacted address get through.
    pub other_port: Option<bool>,
    /// Whether two local sockets reach each other at their outside addresses.
    pub hairpin: Option<bool>,
    /// Whether another check reports the lifetime of a mapping.
    pub lifetime: bool,
}

/// Returns the check of one address family.
pub(super) fn judge(facts: &NatMeasurements) -> Check {
    let Some(first) = facts.observations.first() else {
        let meaning = "it is unknown whether peers can reach this machine";
        return Check::none(
            NAME,
            "not measured: no observer reports this machine's outside address",
            meaning,
        )
        .next("use two observers or more: --relay HOST,HOST, or --dht on");
    };
    match facts.mapping {
        Some(Mapping::None) => without_nat(facts),
        Some(Mapping::EndpointIndependent) => {
            let meaning = "direct transfers work with most peers, by hole punching on both sides";
            Check::ok(NAME, found(facts), meaning)
        }
        Some(_) => per_destination(facts),
        None if asked_at_two_ports(&facts.observations) => {
            let meaning = "direct transfers probably work: few NATs distinguish addresses but not their ports";
            Check::ok(NAME, found(facts), meaning)
        }
        None => unknown(facts, first.at.is_ipv4()),
    }
}

/// Returns the check for a machine whose outside address is its own.
fn without_nat(facts: &NatMeasurements) -> Check {
    let meaning = match facts.other_port {
        Some(false) => {
            "a firewall lets in only answers: direct transfers work, because both sides send"
        }
        _ => "peers can reach this machine directly, unless a firewall blocks UDP",
    };
    let (seen, lets_in) = (seen(&facts.observations), lets_in(facts));
    let found = format!("none: {seen}, which is its own address; {lets_in}");
    Check::ok(NAME, found, meaning)
}

/// Returns the check for a NAT that gives each destination another port.
fn per_destination(facts: &NatMeasurements) -> Check {
    let meaning = match facts.allocation {
        Some(Allocation::Sequential) => {
            "each destination sees another port; the ports count up, so guessing the next one usually works"
        }
        _ => {
            "each destination sees another port: direct transfers work only with peers that are reachable from outside, or by chance"
        }
    };
    Check::warn(NAME, found(facts), meaning).next(
        "use a relay for the rest: --relay HOST on both sides; or enable UPnP or PCP in the router, or use IPv6",
    )
}

/// Returns the check for a NAT with too few observers.
fn unknown(facts: &NatMeasurements, is_ipv4: bool) -> Check {
    let meaning = "there is a NAT; it is unknown whether direct transfers work";
    let next = match is_ipv4 {
        true => {
            "to find out, use a second relay at another address, or --dht on; or open the relay's other UDP port"
        }
        false => {
            "to find out, use a second relay at another address, or open the relay's other UDP port"
        }
    };
    Check::none(NAME, found(facts), meaning).next(next)
}

/// Describes the measured properties of a NAT.
fn found(facts: &NatMeasurements) -> String {
    let mapped = match facts.mapping {
        Some(mapping) => format!("{mapping} mapping"),
        None if asked_at_two_ports(&facts.observations) => {
            "the same mapping for both ports of one address (no second address asked)".to_owned()
        }
        None => "mapping not measured (one address asked)".to_owned(),
    };
    let ports = match facts.allocation {
        Some(Allocation::Preserving) => "ports preserved",
        Some(Allocation::Sequential) => "sequential ports",
        Some(Allocation::Random) => "random ports",
        None => "ports not measured",
    };
    let hairpin = match facts.hairpin {
        Some(true) => "hairpin works",
        Some(false) => "no hairpin",
        None => "hairpin not measured",
    };
    let lifetime = if facts.lifetime { "" } else { "lifetime not measured (--lifetime); " };
    let (lets_in, seen) = (lets_in(facts), seen(&facts.observations));
    format!("{mapped}, {lets_in}, {ports}, {hairpin}; {lifetime}{seen}")
}

fn lets_in(facts: &NatMeasurements) -> String {
    match facts.other_port {
        // A NAT that blocks other ports of a contacted address blocks other addresses too.
        Some(false) => format!("{} filtering", filtering(false, false)),
        Some(true) => "lets in other ports of contacted addresses".to_owned(),
        None => "filtering not measured".to_owned(),
    }
}

/// Returns whether two ports of one address answered.
fn asked_at_two_ports(observations: &[ObservedAddress]) -> bool {
    let other = |a: &ObservedAddress, b: &ObservedAddress| a.by.ip() == b.by.ip() && a.by != b.by;
    observations.iter().any(|a| observations.iter().any(|b| other(a, b)))
}

/// Lists the outside addresses with the number of their observers: `seen at 11.1.1.2:5000 by 3`.
fn seen(observations: &[ObservedAddress]) -> String {
    let mut places: Vec<(SocketAddr, usize)> = Vec::new();
    for observation in observations {
        match places.iter_mut().find(|(at, _)| *at == observation.at) {
            Some((_, count)) => *count += 1,
            None => places.push((observation.at, 1)),
        }
    }
    let each: Vec<_> = places.iter().map(|(at, count)| format!("{at} by {count}")).collect();
    format!("seen at {}", each.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Status;

    fn facts(mapping: Option<Mapping>, allocation: Option<Allocation>) -> NatMeasurements {
        let at = |text: &str| text.parse().unwrap();
        let observation = ObservedAddress { by: at("9.9.9.9:1"), at: at("11.1.1.2:5000") };
        NatMeasurements {
            observations: vec![observation],
            mapping,
            allocation,
            hairpin: Some(false),
            ..NatMeasurements::default()
        }
    }

    #[test]
    fn unmeasured_properties_are_reported_as_unknown() {
        let nobody = judge(&NatMeasurements::default());
        assert!(nobody.status == Status::None && nobody.found.contains("not measured"));
        let one = judge(&facts(None, Some(Allocation::Preserving)));
        assert!(one.status == Status::None && one.next.unwrap().contains("second relay"));
        for mapping in [None, Some(Mapping::EndpointIndependent), Some(Mapping::AddressDependent)] {
            let check = judge(&facts(mapping, None));
            assert!(check.found.contains("lifetime not measured (--lifetime)"), "{check:?}");
            assert!(check.found.contains("filtering not measured"), "{check:?}");
            let told_apart = judge(&NatMeasurements { lifetime: true, ..facts(mapping, None) });
            assert!(!told_apart.found.contains("lifetime"), "{told_apart:?}");
        }
    }

    #[test]
    fn two_ports_of_one_relay_are_reported_without_conclusions() {
        let at = |text: &str| text.parse().unwrap();
        let by = |by: &str| ObservedAddress { by: at(by), at: at("11.1.1.2:5000") };
        let observations = vec![by("9.9.9.9:1"), by("9.9.9.9:2")];
        let same = NatMeasurements { observations, ..facts(None, Some(Allocation::Preserving)) };
        let check = judge(&same);
        assert!(check.status == Status::Ok && check.meaning.contains("probably"), "{check:?}");
        assert!(check.found.contains("no second address asked"), "{check:?}");
        let open = judge(&NatMeasurements { other_port: Some(true), ..same });
        assert!(open.found.contains("lets in other ports of contacted addresses"), "{open:?}");
        assert!(!open.found.contains("filtering"), "whether other addresses get in is not known");
        let closed =
            NatMeasurements { other_port: Some(false), ..facts(Some(Mapping::None), None) };
        let check = judge(&closed);
        assert!(check.found.contains("address-and-port-dependent filtering"), "{check:?}");
        assert!(check.status == Status::Ok && check.meaning.contains("firewall"), "{check:?}");
    }

    #[test]
    fn a_symmetric_nat_is_a_warning_with_a_workaround() {
        for mapping in [Mapping::AddressDependent, Mapping::AddressAndPortDependent] {
            let check = judge(&facts(Some(mapping), Some(Allocation::Random)));
            assert!(check.status == Status::Warn && check.next.unwrap().contains("--relay"));
        }
        let easy = judge(&facts(Some(Mapping::EndpointIndependent), Some(Allocation::Random)));
        assert_eq!(easy.status, Status::Ok);
        assert_eq!(judge(&facts(Some(Mapping::None), None)).status, Status::Ok);
    }
}
