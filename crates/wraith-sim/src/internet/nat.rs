//! A network address translator, defined by its behaviour (RFC 4787): mapping, filtering, port
//! allocation, mapping lifetime and hairpinning.
//!
//! The model has no I/O: its input is the time and the two addresses of a datagram, its output the
//! translated address. So a simulation and a translator between real interfaces can use the same
//! model. Invariants: two live mappings never share an outside address, and nothing passes inwards
//! without a live mapping.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use wraith_core::Time;

use crate::Rng;

/// First port of sequential and random allocation, above the hosts' own and the well-known ports.
const FIRST_PORT: u16 = 20_000;
/// Maximum number of mappings. Beyond it the one that was silent for the longest time is evicted,
/// as in small routers.
const MAPPINGS_MAX: usize = 8192;

/// EndpointDependence of a mapping or a filter on the outside endpoint (RFC 4787 §4.1, §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointDependence {
    /// Independent of it: one for each inside address.
    EndpointIndependent,
    /// On the outside host's IP address.
    AddressDependent,
    /// On the outside host's IP address and port.
    AddressAndPortDependent,
}

/// Port allocation of new mappings (RFC 4787 §4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortAllocation {
    /// The inside port, or the next free one.
    Preserving,
    /// The next port after the last allocated one.
    Sequential,
    /// A random port.
    Random,
    /// No translation: a firewall.
    Untranslated,
}

/// The behaviour of a translator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Behaviour {
    /// EndpointDependence of a mapping.
    pub mapping: EndpointDependence,
    /// EndpointDependence of the filter.
    pub filtering: EndpointDependence,
    /// Port allocation.
    pub ports: PortAllocation,
    /// Mapping lifetime: time without outbound datagrams after which it is dropped.
    pub lifetime: Duration,
    /// Hairpinning: whether hosts behind it reach each other by their outside addresses.
    pub hairpin: bool,
}

/// Key of a mapping: the inside address and, as far as the mapping depends on it, the outside one.
type MappingKey = (SocketAddr, Option<IpAddr>, Option<u16>);

#[derive(Debug)]
struct Mapping {
    key: MappingKey,
    /// Time of the last outbound datagram, in total and to each outside address.
    used: Time,
    permitted: HashMap<SocketAddr, Time>,
}

/// A translator.
#[derive(Debug)]
pub struct Nat {
    behaviour: Behaviour,
    outside: IpAddr,
    by_key: HashMap<MappingKey, SocketAddr>,
    mappings: HashMap<SocketAddr, Mapping>,
    next_port: u16,
    rng: Rng,
}

impl Nat {
    /// Creates a translator with the address `outside`. Its ports are drawn from `rng`.
    pub fn new(behaviour: Behaviour, outside: IpAddr, mut rng: Rng) -> Self {
        let span = u64::from(u16::MAX - FIRST_PORT) / 2;
        let first = u16::try_from(rng.below(span)).expect("half of the ports is less than all");
        Self {
            behaviour,
            outside,
            by_key: HashMap::new(),
            mappings: HashMap::new(),
            next_port: FIRST_PORT + first,
            rng,
        }
    }

    /// Returns the outside address of the hosts behind it.
    pub fn outside(&self) -> IpAddr {
        self.outside
    }

    /// Returns its behaviour.
    pub fn behaviour(&self) -> Behaviour {
        self.behaviour
    }

    /// Drops all mappings, as a restarted router does.
    pub fn forget(&mut self) {
        self.by_key.clear();
        self.mappings.clear();
    }

    /// Translates an outbound datagram. Returns its outside source address.
    pub fn outbound(&mut self, now: Time, from: SocketAddr, to: SocketAddr) -> SocketAddr {
        let key = match self.behaviour.mapping {
            EndpointDependence::EndpointIndependent => (from, None, None),
            EndpointDependence::AddressDependent => (from, Some(to.ip()), None),
            EndpointDependence::AddressAndPortDependent => (from, Some(to.ip()), Some(to.port())),
        };
        let lifetime = self.behaviour.lifetime;
        let known = self.by_key.get(&key).copied();
        let alive = known.filter(|mapped| {
            self.mappings.get(mapped).is_some_and(|mapping| now - mapping.used < lifetime)
        });
        let mapped = alive.unwrap_or_else(|| self.map(now, key));
        if let Some(mapping) = self.mappings.get_mut(&mapped) {
            mapping.used = now;
            mapping.permitted.insert(to, now);
        }
        mapped
    }

    /// Translates an inbound datagram from `from` to the outside address `to`. Returns its inside
    /// destination, if the filter lets it pass.
    pub fn inbound(&mut self, now: Time, from: SocketAddr, to: SocketAddr) -> Option<SocketAddr> {
        let Behaviour { filtering, lifetime, .. } = self.behaviour;
        let mapping = self.mappings.get(&to)?;
        if now - mapping.used >= lifetime {
            return None;
        }
        let allowed = mapping.permitted.iter().any(|(address, at)| {
            let recent = now - *at < lifetime;
            recent
                && match filtering {
                    EndpointDependence::EndpointIndependent => true,
                    EndpointDependence::AddressDependent => address.ip() == from.ip(),
                    EndpointDependence::AddressAndPortDependent => *address == from,
                }
        });
        allowed.then_some(mapping.key.0)
    }

    fn map(&mut self, now: Time, key: MappingKey) -> SocketAddr {
        self.make_room(now, &key);
        let mapped = match self.behaviour.ports {
            PortAllocation::Untranslated => key.0,
            PortAllocation::Preserving => self.first_free(key.0.port()),
            PortAllocation::Sequential => {
                let mapped = self.first_free(self.next_port);
                self.next_port = mapped.port().checked_add(1).unwrap_or(FIRST_PORT);
                mapped
            }
            PortAllocation::Random => {
                let port = self.rng.between(u64::from(FIRST_PORT), u64::from(u16::MAX));
                self.first_free(u16::try_from(port).expect("drawn from the ports"))
            }
        };
        self.by_key.insert(key, mapped);
        self.mappings.insert(mapped, Mapping { key, used: now, permitted: HashMap::new() });
        mapped
    }

    fn first_free(&self, wanted: u16) -> SocketAddr {
        let ports = (wanted..=u16::MAX).chain(FIRST_PORT..wanted);
        let mut addresses = ports.map(|port| SocketAddr::new(self.outside, port));
        let free = addresses.find(|address| !self.mappings.contains_key(address));
        free.expect("there are more ports than mappings")
    }

    /// Drops the previous mapping of `key`. If the table is full, also drops dead mappings or the
    /// oldest one.
    fn make_room(&mut self, now: Time, key: &MappingKey) {
        if let Some(old) = self.by_key.remove(key) {
            self.mappings.remove(&old);
        }
        if self.mappings.len() < MAPPINGS_MAX {
            return;
        }
        let lifetime = self.behaviour.lifetime;
        let oldest = self.mappings.iter().min_by_key(|(address, m)| (m.used, **address));
        let oldest = oldest.map(|(address, _)| *address);
        let dead = |address: &SocketAddr, mapping: &Mapping| {
            now - mapping.used >= lifetime || Some(*address) == oldest
        };
        let by_key = &mut self.by_key;
        self.mappings.retain(|address, mapping| {
            let gone = dead(address, mapping);
            if gone {
                by_key.remove(&mapping.key);
            }
            !gone
        });
    }
}

#[cfg(test)]
mod tests {
    use super::EndpointDependence::*;
    use super::*;

    const LIFETIME: Duration = Duration::from_secs(30);

    fn nat(
        mapping: EndpointDependence,
        filtering: EndpointDependence,
        ports: PortAllocation,
    ) -> Nat {
        let behaviour = Behaviour { mapping, filtering, ports, lifetime: LIFETIME, hairpin: false };
        Nat::new(behaviour, [203, 0, 113, 1].into(), Rng::new(1, 0))
    }

    fn address(host: u8, port: u16) -> SocketAddr {
        SocketAddr::from(([198, 51, 100, host], port))
    }

    fn inside() -> SocketAddr {
        SocketAddr::from(([192, 168, 1, 2], 5000))
    }

    #[test]
    fn a_mapping_is_shared_by_destinations_it_does_not_depend_on() {
        let others = [address(1, 2), address(2, 1)];
        for (mapping, same) in [
            (EndpointIndependent, [true, true]),
            (AddressDependent, [true, false]),
            (AddressAndPortDependent, [false, false]),
        ] {
            let mut nat = nat(mapping, EndpointIndependent, PortAllocation::Sequential);
            let first = nat.outbound(Time::ZERO, inside(), address(1, 1));
            let again = others.map(|to| nat.outbound(Time::ZERO, inside(), to) == first);
            assert_eq!(again, same, "{mapping:?}");
            assert_eq!(nat.outbound(Time::ZERO, inside(), address(1, 1)), first);
        }
    }

    #[test]
    fn a_filter_passes_endpoints_it_does_not_depend_on() {
        let others = [address(1, 1), address(1, 2), address(2, 1)];
        for (filtering, let_in) in [
            (EndpointIndependent, [true, true, true]),
            (AddressDependent, [true, true, false]),
            (AddressAndPortDependent, [true, false, false]),
        ] {
            let mut nat = nat(EndpointIndependent, filtering, PortAllocation::Sequential);
            let mapped = nat.outbound(Time::ZERO, inside(), address(1, 1));
            let came = others.map(|from| nat.inbound(Time::ZERO, from, mapped).is_some());
            assert_eq!(came, let_in, "{filtering:?}");
            assert_eq!(nat.inbound(Time::ZERO, address(1, 1), address(9, 9)), None);
        }
    }

    #[test]
    fn ports_are_kept_counted_drawn_or_not_translated() {
        let ports = |how| {
            let mut nat = nat(AddressAndPortDependent, EndpointIndependent, how);
            [1, 2, 3].map(|host| nat.outbound(Time::ZERO, inside(), address(host, 1)))
        };
        let kept = ports(PortAllocation::Preserving).map(|mapped| mapped.port());
        assert_eq!(kept, [5000, 5001, 5002]);
        let counted = ports(PortAllocation::Sequential).map(|mapped| mapped.port());
        assert_eq!([counted[1] - counted[0], counted[2] - counted[1]], [1, 1]);
        let drawn = ports(PortAllocation::Random).map(|mapped| mapped.port());
        assert!(drawn[1].abs_diff(drawn[0]) > 1 && drawn[2].abs_diff(drawn[1]) > 1, "{drawn:?}");
        let mut firewall =
            nat(EndpointIndependent, AddressAndPortDependent, PortAllocation::Untranslated);
        assert_eq!(firewall.outbound(Time::ZERO, inside(), address(1, 1)), inside());
        assert_eq!(firewall.inbound(Time::ZERO, address(1, 1), inside()), Some(inside()));
        assert_eq!(firewall.inbound(Time::ZERO, address(2, 1), inside()), None);
    }

    #[test]
    fn outgoing_traffic_keeps_a_mapping_alive() {
        let mut nat = nat(EndpointIndependent, EndpointIndependent, PortAllocation::Sequential);
        let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
        let mapped = nat.outbound(at(0), inside(), address(1, 1));
        assert_eq!(nat.outbound(at(29), inside(), address(2, 1)), mapped);
        assert_eq!(nat.inbound(at(58), address(3, 1), mapped), Some(inside()));
        assert_eq!(nat.inbound(at(59), address(3, 1), mapped), None);
        assert_ne!(nat.outbound(at(59), inside(), address(1, 1)), mapped);
    }

    #[test]
    fn a_full_table_evicts_the_oldest_mapping() {
        let mut nat = nat(AddressAndPortDependent, EndpointIndependent, PortAllocation::Sequential);
        let count = u16::try_from(MAPPINGS_MAX).unwrap() + 100;
        let mapped: Vec<_> = (0..count)
            .map(|n| {
                let now = Time::from_nanos(u64::from(n));
                nat.outbound(now, inside(), address(1, n + 1))
            })
            .collect();
        assert_eq!((nat.mappings.len(), nat.by_key.len()), (MAPPINGS_MAX, MAPPINGS_MAX));
        let now = Time::from_nanos(u64::from(count));
        assert_eq!(nat.inbound(now, address(9, 9), mapped[0]), None);
        assert_eq!(nat.inbound(now, address(9, 9), mapped[101]), Some(inside()));
    }
}
