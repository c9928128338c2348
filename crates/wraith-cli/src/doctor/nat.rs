//! The NAT between this machine and others: what relays and nodes of the DHT see of sockets of ours, and what that means.
//!
//! Invariant: what cannot be told from that is said to be not measured. Nobody who is asked can send from a second address, which is what
//! telling the filtering takes, and how long a mapping lives takes minutes to find out.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;
use wraith_dht::SeenQuestion;
use wraith_transport::nat::{Allocation, Mapping, Sighting, allocation, mapping};
use wraith_transport::{Endpoint, PunchEvent, Role};

use super::Check;
use super::internet::open;
use crate::args::MeetingArgs;

const NAME: &str = "NAT";
/// Further sockets by which it is told how ports are given.
const SOCKETS: usize = 3;
/// For a packet to the router and back; a punch sends several in that time.
const HAIRPIN_WAIT: Duration = Duration::from_millis(1500);

/// Somebody who says where our sockets are seen.
#[derive(Clone, Debug)]
pub enum Observer {
    /// A relay, asked under its secret.
    Relay {
        /// What it gave us for this.
        secret: [u8; 32],
        /// Its UDP port.
        of: SocketAddr,
    },
    /// A node of the DHT, asked in the clear.
    Node(SocketAddr),
}

impl Observer {
    fn address(&self) -> SocketAddr {
        match self {
            Self::Relay { of, .. } => *of,
            Self::Node(node) => *node,
        }
    }

    async fn see(&self, socket: &Endpoint) -> Option<Sighting> {
        let at = match self {
            Self::Relay { secret, of } => socket.observe(*secret, *of).await.ok()?,
            Self::Node(node) => {
                let question = SeenQuestion::new().ok()?;
                let answer = socket.exchange(*node, question.datagram()).await.ok()?;
                SocketAddr::V4(question.seen_at(&answer)?)
            }
        };
        let at = SocketAddr::new(at.ip().to_canonical(), at.port());
        Some(Sighting { by: self.address(), at })
    }
}

/// What was found out.
#[derive(Debug, Default)]
struct Facts {
    /// Who saw the first socket where.
    sightings: Vec<Sighting>,
    mapping: Option<Mapping>,
    allocation: Option<Allocation>,
    /// Whether two sockets here reach each other at their outside addresses.
    hairpin: Option<bool>,
}

pub async fn check(args: &MeetingArgs, socket: &Endpoint, observers: &[Observer]) -> Check {
    if args.relay_only {
        let meaning = "neither side learns the address of the other";
        return Check::none(NAME, "not looked at (--relay-only)", meaning);
    }
    let interfaces = if_addrs::get_if_addrs().unwrap_or_default();
    let own: Vec<_> = interfaces.iter().map(if_addrs::Interface::ip).collect();
    judge(&measure(socket, &own, observers).await)
}

async fn measure(socket: &Endpoint, own: &[IpAddr], observers: &[Observer]) -> Facts {
    let mut asking = JoinSet::new();
    for observer in observers.iter().cloned() {
        let socket = socket.clone();
        asking.spawn(async move { Some((observer.see(&socket).await?, observer)) });
    }
    let mut answers: Vec<_> = asking.join_all().await.into_iter().flatten().collect();
    // NATs are of IPv4 but for rare ones; what only IPv6 sees is told all the same.
    if answers.iter().any(|(sighting, _)| sighting.at.is_ipv4()) {
        answers.retain(|(sighting, _)| sighting.at.is_ipv4());
    }
    answers.sort_by_key(|(sighting, _)| sighting.by);
    let sightings: Vec<_> = answers.iter().map(|(sighting, _)| *sighting).collect();
    let port = socket.local_addr().port();
    let mapping = mapping(own, port, &sightings);
    let mut facts = Facts { sightings, mapping, ..Facts::default() };
    let Some((first, observer)) = answers.first() else { return facts };
    if mapping == Some(Mapping::None) {
        return facts;
    }
    let mut ports = vec![(port, first.at.port())];
    let mut last = None;
    // One after the other: the order is what tells.
    for _ in 0..SOCKETS {
        let Ok(other) = open(None) else { break };
        let Some(seen) = observer.see(&other).await else { break };
        ports.push((other.local_addr().port(), seen.at.port()));
        last = Some((other, seen.at));
    }
    facts.allocation = allocation(&ports);
    if let Some((other, at)) = last {
        facts.hairpin = Some(hairpin(socket, first.at, &other, at).await);
    }
    facts
}

/// Whether two sockets get through to each other at the outside addresses `at_a` and `at_b`.
async fn hairpin(a: &Endpoint, at_a: SocketAddr, b: &Endpoint, at_b: SocketAddr) -> bool {
    let mut secret = [0; 32];
    if getrandom::fill(&mut secret).is_err() {
        return false;
    }
    let mut towards_b = a.punch(secret, Role::Initiator, [at_b]);
    // It answers for as long as it lives.
    let _towards_a = b.punch(secret, Role::Responder, [at_a]);
    let passes = async {
        while let Ok(Some(event)) = towards_b.next().await {
            match event {
                PunchEvent::Punched { .. } => return true,
                PunchEvent::Ended { best, .. } => return best.is_some(),
                _ => {}
            }
        }
        false
    };
    timeout(HAIRPIN_WAIT, passes).await.unwrap_or(false)
}

fn judge(facts: &Facts) -> Check {
    let Some(first) = facts.sightings.first() else {
        let meaning = "whether others get through to this machine is not known";
        return Check::none(NAME, "not measured: nobody says where this machine is seen", meaning)
            .next("two who say so tell more than one: --relay HOST,HOST, or --dht on");
    };
    let seen = seen(&facts.sightings);
    if facts.mapping == Some(Mapping::None) {
        return Check::ok(
            NAME,
            format!("none: {seen}, which is its own address"),
            "others reach this machine directly, unless a firewall stops UDP",
        );
    }
    let mapped = match facts.mapping {
        Some(mapping) => format!("{mapping} mapping"),
        None => "mapping not measured (one address asked)".to_owned(),
    };
    let ports = match facts.allocation {
        Some(Allocation::Preserving) => "ports preserved",
        Some(Allocation::Sequential) => "ports counted up",
        Some(Allocation::Random) => "ports at random",
        None => "ports not measured",
    };
    let hairpin = match facts.hairpin {
        Some(true) => "hairpin works",
        Some(false) => "no hairpin",
        None => "hairpin not measured",
    };
    let found =
        format!("{mapped}, {ports}, {hairpin}; filtering and lifetime not measured; {seen}");
    match (facts.mapping, facts.allocation) {
        (Some(Mapping::EndpointIndependent), _) => {
            let meaning = "direct transfers work with most others: both sides open their NATs";
            Check::ok(NAME, found, meaning)
        }
        (None, _) => {
            let meaning = "there is a NAT; whether direct transfers work is not known";
            let next = match first.at.is_ipv4() {
                true => "to know: a second relay at another address, or --dht on",
                false => "to know: a second relay at another address",
            };
            Check::none(NAME, found, meaning).next(next)
        }
        (_, allocation) => {
            let meaning = match allocation {
                Some(Allocation::Sequential) => {
                    "each destination sees another port; counting up, it is guessed more often than not"
                }
                _ => {
                    "each destination sees another port: direct only to who is reachable from outside, or now and then"
                }
            };
            Check::warn(NAME, found, meaning).next(
                "have a relay for the rest: --relay HOST on both sides; or switch on UPnP or PCP in the router, or use IPv6",
            )
        }
    }
}

/// `seen at 11.1.1.2:5000 by 3`: each place with how many saw it.
fn seen(sightings: &[Sighting]) -> String {
    let mut places: Vec<(SocketAddr, usize)> = Vec::new();
    for sighting in sightings {
        match places.iter_mut().find(|(at, _)| *at == sighting.at) {
            Some((_, count)) => *count += 1,
            None => places.push((sighting.at, 1)),
        }
    }
    let each: Vec<_> = places.iter().map(|(at, count)| format!("{at} by {count}")).collect();
    format!("seen at {}", each.join(", "))
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;

    fn facts(mapping: Option<Mapping>, allocation: Option<Allocation>) -> Facts {
        let at = |text: &str| text.parse().unwrap();
        let sighting = Sighting { by: at("9.9.9.9:1"), at: at("11.1.1.2:5000") };
        Facts { sightings: vec![sighting], mapping, allocation, hairpin: Some(false) }
    }

    #[test]
    fn what_is_not_measured_is_said_to_be() {
        let nobody = judge(&Facts::default());
        assert!(nobody.status == Status::None && nobody.found.contains("not measured"));
        let one = judge(&facts(None, Some(Allocation::Preserving)));
        assert!(one.status == Status::None && one.next.unwrap().contains("second relay"));
        for mapping in [None, Some(Mapping::EndpointIndependent), Some(Mapping::AddressDependent)] {
            assert!(judge(&facts(mapping, None)).found.contains("lifetime not measured"));
        }
    }

    #[test]
    fn a_nat_that_shows_everybody_another_port_is_a_warning_with_a_way_round() {
        for mapping in [Mapping::AddressDependent, Mapping::AddressAndPortDependent] {
            let check = judge(&facts(Some(mapping), Some(Allocation::Random)));
            assert!(check.status == Status::Warn && check.next.unwrap().contains("--relay"));
        }
        let easy = judge(&facts(Some(Mapping::EndpointIndependent), Some(Allocation::Random)));
        assert_eq!(easy.status, Status::Ok);
        assert_eq!(judge(&facts(Some(Mapping::None), None)).status, Status::Ok);
    }

    #[tokio::test]
    async fn two_sockets_of_one_machine_reach_each_other_and_where_nothing_gets_through_they_do_not()
     {
        let (a, b) = (open(None).unwrap(), open(None).unwrap());
        let at = |socket: &Endpoint| SocketAddr::from(([127, 0, 0, 1], socket.local_addr().port()));
        assert!(hairpin(&a, at(&a), &b, at(&b)).await);
        let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        // Both, since one that gets through is answered to where it came from.
        let nowhere = silent.local_addr().unwrap();
        assert!(!hairpin(&a, nowhere, &b, nowhere).await);
    }
}
