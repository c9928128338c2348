//! What kind of NAT it is, from what was observed through it: the behaviours of RFC 4787, without any network.

use std::net::SocketAddr;

use serde::Serialize;

/// Largest step between two ports in a row for a NAT that counts up, with room for a few flows of others in between.
const STEP_MAX: u16 = 10;

/// On what the outside address of one socket depends (RFC 4787 §4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mapping {
    /// It is its own: there is no NAT.
    None,
    EndpointIndependent,
    AddressDependent,
    AddressAndPortDependent,
}

/// From where a socket can be reached that has sent to one endpoint (RFC 4787 §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Filtering {
    EndpointIndependent,
    AddressDependent,
    AddressAndPortDependent,
}

/// Which outside ports are given (RFC 4787 §4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Allocation {
    Preserving,
    Sequential,
    Random,
}

/// Of a socket at `local`, as two endpoints of one other address and one of a first saw it.
pub fn mapping(local: SocketAddr, first: SocketAddr, others: [SocketAddr; 2]) -> Mapping {
    let [a, b] = others;
    match (first == a, a == b) {
        (true, true) if first == local => Mapping::None,
        (true, true) => Mapping::EndpointIndependent,
        (false, true) => Mapping::AddressDependent,
        (_, false) => Mapping::AddressAndPortDependent,
    }
}

/// Whether an answer came from another address, and from another port of the address that was asked.
pub fn filtering(other_address: bool, other_port: bool) -> Filtering {
    match (other_address, other_port) {
        (true, _) => Filtering::EndpointIndependent,
        (false, true) => Filtering::AddressDependent,
        (false, false) => Filtering::AddressAndPortDependent,
    }
}

/// Of mappings in the order in which they were made: inside and outside port of each.
pub fn allocation(ports: &[(u16, u16)]) -> Allocation {
    if ports.iter().all(|(inside, outside)| inside == outside) {
        return Allocation::Preserving;
    }
    let mut steps = ports.windows(2).map(|pair| pair[1].1.wrapping_sub(pair[0].1));
    if steps.all(|step| (1..=STEP_MAX).contains(&step)) {
        Allocation::Sequential
    } else {
        Allocation::Random
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_mapping_is_told_by_what_three_endpoints_see() {
        let local = at("192.168.7.2:5000");
        let of = |first, a, b| mapping(local, at(first), [at(a), at(b)]);
        assert_eq!(
            of("11.1.1.2:5000", "11.1.1.2:5000", "11.1.1.2:5000"),
            Mapping::EndpointIndependent
        );
        assert_eq!(
            of("11.1.1.2:5000", "11.1.1.2:5001", "11.1.1.2:5001"),
            Mapping::AddressDependent
        );
        assert_eq!(of("11.1.1.2:1", "11.1.1.2:2", "11.1.1.2:3"), Mapping::AddressAndPortDependent);
        assert_eq!(of("11.1.1.2:1", "11.1.1.2:1", "11.1.1.2:3"), Mapping::AddressAndPortDependent);
        assert_eq!(mapping(local, local, [local, local]), Mapping::None);
    }

    #[test]
    fn ports_are_kept_counted_up_or_random() {
        assert_eq!(allocation(&[(5, 5), (9, 9)]), Allocation::Preserving);
        assert_eq!(allocation(&[(5, 65_534), (9, 65_535), (7, 2)]), Allocation::Sequential);
        assert_eq!(allocation(&[(5, 100), (9, 99)]), Allocation::Random);
        assert_eq!(allocation(&[(5, 100), (9, 100), (7, 101)]), Allocation::Random);
        assert_eq!(allocation(&[(5, 100), (9, 4100), (7, 4101)]), Allocation::Random);
    }

    #[test]
    fn filtering_is_told_by_who_gets_through() {
        assert_eq!(filtering(true, true), Filtering::EndpointIndependent);
        assert_eq!(filtering(false, true), Filtering::AddressDependent);
        assert_eq!(filtering(false, false), Filtering::AddressAndPortDependent);
    }
}
