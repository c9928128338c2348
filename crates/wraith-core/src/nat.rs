//! NAT classification (RFC 4787) from the source addresses that observers reported for a socket. It
//! performs no I/O.
//!
//! Invariant: a result never claims more than the observations show. If a conclusion needs more
//! observers, the result is `None`.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// Largest step between two successive ports of a sequential NAT. It leaves room for a few other
/// flows in between.
const STEP_MAX: u16 = 10;

/// Mapping behaviour (RFC 4787 §4.1): the inputs that decide a socket's outside address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mapping {
    /// The outside address is the socket's own address: there is no NAT.
    None,
    /// One outside address for all destinations.
    EndpointIndependent,
    /// One outside address for each destination address. If no two observers share an address, it
    /// may depend on the destination port too.
    AddressDependent,
    /// One outside address for each destination address and port.
    AddressAndPortDependent,
}

/// Filtering behaviour (RFC 4787 §5): the hosts that can reach a socket after it sent to one
/// endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filtering {
    /// Every host and port.
    EndpointIndependent,
    /// Every port of the address that the socket sent to.
    AddressDependent,
    /// Only the address and port that the socket sent to.
    AddressAndPortDependent,
}

/// Port assignment (RFC 4787 §4.2): the choice of outside ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocation {
    /// The outside port equals the inside port.
    Preserving,
    /// The outside port follows the previous one.
    Sequential,
    /// No pattern was recognised.
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

/// One observation of a socket's outside address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObservedAddress {
    /// The observer: the endpoint that the socket sent to.
    pub by: SocketAddr,
    /// The socket's outside address.
    pub at: SocketAddr,
}

/// Returns the mapping behaviour for a socket bound to `port` on a machine with the addresses
/// `own`. All observers belong to one address family. Returns `None` if the observations do not
/// decide it: there are none, or all observers share one address and saw the same.
pub fn mapping(own: &[IpAddr], port: u16, observations: &[ObservedAddress]) -> Option<Mapping> {
    let first = observations.first()?;
    let pairs = || {
        let each = observations.iter().enumerate();
        each.flat_map(|(i, a)| observations[i + 1..].iter().map(move |b| (a, b)))
    };
    if pairs().any(|(a, b)| a.by.ip() == b.by.ip() && a.at != b.at) {
        return Some(Mapping::AddressAndPortDependent);
    }
    if observations.iter().any(|observation| observation.at != first.at) {
        return Some(Mapping::AddressDependent);
    }
    if first.at.port() == port && own.contains(&first.at.ip()) {
        return Some(Mapping::None);
    }
    let independent = pairs().any(|(a, b)| a.by.ip() != b.by.ip());
    independent.then_some(Mapping::EndpointIndependent)
}

/// Returns the filtering behaviour. `other_address`: an answer from another address arrived.
/// `other_port`: an answer from another port of the queried address arrived.
pub fn filtering(other_address: bool, other_port: bool) -> Filtering {
    match (other_address, other_port) {
        (true, _) => Filtering::EndpointIndependent,
        (false, true) => Filtering::AddressDependent,
        (false, false) => Filtering::AddressAndPortDependent,
    }
}

/// Returns the port assignment from (inside port, outside port) pairs, in the order of their
/// creation. Returns `None` for no pair, or for a single pair whose ports differ.
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

    fn seen(observations: &[(&str, &str)]) -> Option<Mapping> {
        let at = |text: &str| text.parse().unwrap();
        let observations: Vec<_> = observations
            .iter()
            .map(|(by, seen)| ObservedAddress { by: at(by), at: at(seen) })
            .collect();
        mapping(&["192.168.7.2".parse().unwrap()], 5000, &observations)
    }

    const A: &str = "9.9.9.1:1";
    const B: &str = "9.9.9.2:1";
    const B2: &str = "9.9.9.2:2";

    #[test]
    fn mapping_behaviour_needs_observers_at_two_addresses() {
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
    fn filtering_behaviour_follows_from_the_answers_that_arrive() {
        assert_eq!(filtering(true, true), Filtering::EndpointIndependent);
        assert_eq!(filtering(false, true), Filtering::AddressDependent);
        assert_eq!(filtering(false, false), Filtering::AddressAndPortDependent);
    }
}
