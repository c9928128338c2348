//! What kind of NAT a socket is behind, from what others saw of it: the behaviours of RFC 4787, without any network.
//!
//! Invariant: nothing is said that the observations do not show; where more observers would be needed there is no answer.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// Largest step between two ports in a row for a NAT that counts up, with room for a few flows of others in between.
const STEP_MAX: u16 = 10;

/// On what the outside address of one socket depends (RFC 4787 §4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mapping {
    /// It is its own: there is no NAT.
    None,
    /// On nothing: everybody sees the same one.
    EndpointIndependent,
    /// On the address that is sent to; on its port too, perhaps, if no two observers had one address.
    AddressDependent,
    /// On the address and port that are sent to.
    AddressAndPortDependent,
}

/// From where a socket can be reached that has sent to one endpoint (RFC 4787 §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filtering {
    /// From everywhere.
    EndpointIndependent,
    /// From every port of the address that was sent to.
    AddressDependent,
    /// From the address and port that were sent to.
    AddressAndPortDependent,
}

/// Which outside ports are given (RFC 4787 §4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocation {
    /// The inside port.
    Preserving,
    /// The one after the last.
    Sequential,
    /// None that could be told.
    Random,
}

impl fmt::Display for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::EndpointIndependent => "endpoint-independent",
            Self::AddressDependent => "address-dependent",
            Self::AddressAndPortDependent => "address-and-port-dependent",
        })
    }
}

impl fmt::Display for Filtering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::EndpointIndependent => "endpoint-independent",
            Self::AddressDependent => "address-dependent",
            Self::AddressAndPortDependent => "address-and-port-dependent",
        })
    }
}

impl fmt::Display for Allocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Preserving => "preserving",
            Self::Sequential => "sequential",
            Self::Random => "random",
        })
    }
}

/// Where somebody saw a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// Who: the endpoint that was sent to.
    pub by: SocketAddr,
    /// The socket's outside address.
    pub at: SocketAddr,
}

/// Of a socket at `port` of a machine that has the addresses `own`, as endpoints of one family saw it. None if they do not tell: there are
/// none, or all have one address and saw the same.
pub fn mapping(own: &[IpAddr], port: u16, sightings: &[Sighting]) -> Option<Mapping> {
    let first = sightings.first()?;
    let pairs = || {
        let each = sightings.iter().enumerate();
        each.flat_map(|(i, a)| sightings[i + 1..].iter().map(move |b| (a, b)))
    };
    if pairs().any(|(a, b)| a.by.ip() == b.by.ip() && a.at != b.at) {
        return Some(Mapping::AddressAndPortDependent);
    }
    if sightings.iter().any(|sighting| sighting.at != first.at) {
        return Some(Mapping::AddressDependent);
    }
    if first.at.port() == port && own.contains(&first.at.ip()) {
        return Some(Mapping::None);
    }
    let independent = pairs().any(|(a, b)| a.by.ip() != b.by.ip());
    independent.then_some(Mapping::EndpointIndependent)
}

/// Whether an answer came from another address, and from another port of the address that was asked.
pub fn filtering(other_address: bool, other_port: bool) -> Filtering {
    match (other_address, other_port) {
        (true, _) => Filtering::EndpointIndependent,
        (false, true) => Filtering::AddressDependent,
        (false, false) => Filtering::AddressAndPortDependent,
    }
}

/// Of mappings in the order in which they were made: inside and outside port of each. Of one that is not its own port nothing can be told.
pub fn allocation(ports: &[(u16, u16)]) -> Option<Allocation> {
    if ports.is_empty() {
        return None;
    }
    if ports.iter().all(|(inside, outside)| inside == outside) {
        return Some(Allocation::Preserving);
    }
    let mut steps = ports.windows(2).map(|pair| pair[1].1.wrapping_sub(pair[0].1));
    match ports.len() {
        1 => None,
        _ if steps.all(|step| (1..=STEP_MAX).contains(&step)) => Some(Allocation::Sequential),
        _ => Some(Allocation::Random),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(sightings: &[(&str, &str)]) -> Option<Mapping> {
        let at = |text: &str| text.parse().unwrap();
        let sightings: Vec<_> =
            sightings.iter().map(|(by, seen)| Sighting { by: at(by), at: at(seen) }).collect();
        mapping(&["192.168.7.2".parse().unwrap()], 5000, &sightings)
    }

    const A: &str = "9.9.9.1:1";
    const B: &str = "9.9.9.2:1";
    const B2: &str = "9.9.9.2:2";

    #[test]
    fn a_mapping_is_told_by_what_endpoints_of_two_addresses_see() {
        let outside = "11.1.1.2:5000";
        let independent = Some(Mapping::EndpointIndependent);
        assert_eq!(seen(&[(A, outside), (B, outside), (B2, outside)]), independent);
        assert_eq!(seen(&[(A, outside), (B, outside)]), independent);
        let by_address = [(A, outside), (B, "11.1.1.2:5001"), (B2, "11.1.1.2:5001")];
        assert_eq!(seen(&by_address), Some(Mapping::AddressDependent));
        let by_port = Some(Mapping::AddressAndPortDependent);
        assert_eq!(seen(&[(A, "11.1.1.2:1"), (B, "11.1.1.2:2"), (B2, "11.1.1.2:3")]), by_port);
        assert_eq!(seen(&[(A, "11.1.1.2:1"), (B, "11.1.1.2:1"), (B2, "11.1.1.2:3")]), by_port);
        let other_address = [(A, outside), (B, "11.1.1.3:5000")];
        assert_eq!(seen(&other_address), Some(Mapping::AddressDependent));
    }

    #[test]
    fn without_a_nat_one_observer_is_enough_and_with_one_it_is_not() {
        assert_eq!(seen(&[(A, "192.168.7.2:5000")]), Some(Mapping::None));
        assert_eq!(seen(&[(A, "192.168.7.2:5001")]), None, "another port");
        assert_eq!(seen(&[(A, "11.1.1.2:5000")]), None);
        assert_eq!(seen(&[(B, "11.1.1.2:5000"), (B2, "11.1.1.2:5000")]), None, "one address");
        assert_eq!(seen(&[]), None);
    }

    #[test]
    fn ports_are_kept_counted_up_or_random() {
        use Allocation::*;
        assert_eq!(allocation(&[(5, 5), (9, 9)]), Some(Preserving));
        assert_eq!(allocation(&[(5, 65_534), (9, 65_535), (7, 2)]), Some(Sequential));
        assert_eq!(allocation(&[(5, 100), (9, 99)]), Some(Random));
        assert_eq!(allocation(&[(5, 100), (9, 100), (7, 101)]), Some(Random));
        assert_eq!(allocation(&[(5, 100), (9, 4100), (7, 4101)]), Some(Random));
        assert_eq!((allocation(&[]), allocation(&[(5, 6)])), (None, None));
    }

    #[test]
    fn filtering_is_told_by_who_gets_through() {
        assert_eq!(filtering(true, true), Filtering::EndpointIndependent);
        assert_eq!(filtering(false, true), Filtering::AddressDependent);
        assert_eq!(filtering(false, false), Filtering::AddressAndPortDependent);
    }
}
