//! The NAT between this machine and others: what relays and nodes of the DHT see of sockets of ours, and what that means.
//!
//! Invariant: what cannot be told from that is said to be not measured. A relay can answer from a second port, but nobody from a second
//! address, so of the filtering it is told what happens to other ports of an address that was asked, and no more. How long a mapping
//! lives takes minutes to find out: see [`lifetime`](super::lifetime).

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;
use wraith_dht::SeenQuestion;
use wraith_transport::nat::{Allocation, Mapping, Sighting, allocation, filtering, mapping};
use wraith_transport::{AnswerBy, AskError, Endpoint, PunchEvent, Role};

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
        /// A second one, if it has one.
        other: Option<SocketAddr>,
    },
    /// A node of the DHT, asked in the clear.
    Node(SocketAddr),
}

impl Observer {
    /// Where it is asked, and its other port.
    fn ports(&self) -> impl Iterator<Item = SocketAddr> + use<> {
        let (of, other) = match self {
            Self::Relay { of, other, .. } => (*of, *other),
            Self::Node(node) => (*node, None),
        };
        [of].into_iter().chain(other)
    }

    /// What it sees of `socket` at `port`, one of its ports.
    async fn see(&self, socket: &Endpoint, port: SocketAddr) -> Option<Sighting> {
        let at = match self {
            Self::Relay { secret, .. } => socket.observe(*secret, port).await.ok()?,
            Self::Node(node) => {
                let question = SeenQuestion::new().ok()?;
                let answer = socket.exchange(*node, question.datagram()).await.ok()?;
                SocketAddr::V4(question.seen_at(&answer)?)
            }
        };
        let at = SocketAddr::new(at.ip().to_canonical(), at.port());
        Some(Sighting { by: port, at })
    }
}

/// What was found out.
#[derive(Debug, Default)]
struct Facts {
    /// Who saw the first socket where.
    sightings: Vec<Sighting>,
    mapping: Option<Mapping>,
    allocation: Option<Allocation>,
    /// Whether what comes from another port of an address that was asked gets through.
    other_port: Option<bool>,
    /// Whether two sockets here reach each other at their outside addresses.
    hairpin: Option<bool>,
    /// The lifetime of a mapping is told apart.
    lifetime: bool,
}

/// One check for each family in which somebody answers.
pub async fn check(
    args: &MeetingArgs,
    socket: &Endpoint,
    observers: &[Observer],
    lifetime: bool,
) -> Vec<Check> {
    if args.relay_only {
        let meaning = "neither side learns the address of the other";
        return vec![Check::none(NAME, "not looked at (--relay-only)", meaning)];
    }
    let interfaces = if_addrs::get_if_addrs().unwrap_or_default();
    let own: Vec<_> = interfaces.iter().map(if_addrs::Interface::ip).collect();
    let mut checks = Vec::new();
    for answers in answers(socket, observers).await {
        let facts = measure(socket, &own, &answers).await;
        checks.push(judge(&Facts { lifetime, ..facts }));
    }
    if checks.is_empty() {
        checks.push(judge(&Facts::default()));
    }
    checks
}

/// What somebody saw of a socket.
type Answer = (Sighting, Observer);

/// What all see of `socket`, IPv4 and IPv6 apart, of those in which anybody sees it.
async fn answers(socket: &Endpoint, observers: &[Observer]) -> Vec<Vec<Answer>> {
    let mut asking = JoinSet::new();
    for observer in observers {
        for port in observer.ports() {
            let (socket, observer) = (socket.clone(), observer.clone());
            asking.spawn(async move { Some((observer.see(&socket, port).await?, observer)) });
        }
    }
    let mut answers: Vec<Answer> = asking.join_all().await.into_iter().flatten().collect();
    answers.sort_by_key(|(sighting, _)| sighting.by);
    let (v4, v6) = answers.into_iter().partition(|(sighting, _)| sighting.at.is_ipv4());
    let families: [Vec<Answer>; 2] = [v4, v6];
    families.into_iter().filter(|family| !family.is_empty()).collect()
}

async fn measure(socket: &Endpoint, own: &[IpAddr], answers: &[Answer]) -> Facts {
    let sightings: Vec<_> = answers.iter().map(|(sighting, _)| *sighting).collect();
    let port = socket.local_addr().port();
    let mapping = mapping(own, port, &sightings);
    let mut facts = Facts { sightings, mapping, ..Facts::default() };
    let Some((first, observer)) = answers.first() else { return facts };
    if mapping == Some(Mapping::None) {
        facts.other_port = other_port(answers).await;
        return facts;
    }
    let mut ports = vec![(port, first.at.port())];
    let mut last = None;
    // One after the other: the order is what tells.
    for _ in 0..SOCKETS {
        let Ok(other) = open(None) else { break };
        let Some(seen) = observer.see(&other, first.by).await else { break };
        ports.push((other.local_addr().port(), seen.at.port()));
        last = Some((other, seen.at));
    }
    facts.allocation = allocation(&ports);
    let hairpin = async {
        let (other, at) = last?;
        Some(hairpin(socket, first.at, &other, at).await)
    };
    (facts.other_port, facts.hairpin) = tokio::join!(other_port(answers), hairpin);
    facts
}

/// Whether what comes from another port of an address that was asked gets through: a relay is asked for that which is known to answer
/// at both. None if there is none, or it does not answer any more.
async fn other_port(answers: &[Answer]) -> Option<bool> {
    let answers_at = |port| answers.iter().any(|(sighting, _)| sighting.by == port);
    let (secret, of, other) = answers.iter().find_map(|(_, observer)| match observer {
        Observer::Relay { secret, of, other: Some(other) }
            if answers_at(*of) && answers_at(*other) =>
        {
            Some((*secret, *of, *other))
        }
        _ => None,
    })?;
    // One that has sent nothing to the other port.
    let fresh = open(None).ok()?;
    match fresh.observe_by(secret, of, AnswerBy::Port(other.port())).await {
        Ok(_) => Some(true),
        Err(AskError::NoAnswer) => fresh.observe(secret, of).await.is_ok().then_some(false),
        Err(_) => None,
    }
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
    let lets_in = match facts.other_port {
        // Of what is closed to other ports of an address that was asked, no other address gets in either.
        Some(false) => format!("{} filtering", filtering(false, false)),
        Some(true) => "lets in other ports of who was asked".to_owned(),
        None => "filtering not measured".to_owned(),
    };
    if facts.mapping == Some(Mapping::None) {
        let meaning = match facts.other_port {
            Some(false) => {
                "a firewall lets in only who was asked: direct transfers work, since both sides ask"
            }
            _ => "others reach this machine directly, unless a firewall stops UDP",
        };
        let found = format!("none: {seen}, which is its own address; {lets_in}");
        return Check::ok(NAME, found, meaning);
    }
    let mapped = match facts.mapping {
        Some(mapping) => format!("{mapping} mapping"),
        None if asked_at_two_ports(&facts.sightings) => {
            "the same mapping for both ports of an address (no second address asked)".to_owned()
        }
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
    let lifetime = if facts.lifetime { "" } else { "lifetime not measured (--lifetime); " };
    let found = format!("{mapped}, {lets_in}, {ports}, {hairpin}; {lifetime}{seen}");
    match (facts.mapping, facts.allocation) {
        (Some(Mapping::EndpointIndependent), _) => {
            let meaning = "direct transfers work with most others: both sides open their NATs";
            Check::ok(NAME, found, meaning)
        }
        (None, _) if asked_at_two_ports(&facts.sightings) => {
            let meaning =
                "direct transfers probably work: few NATs tell addresses apart and not their ports";
            Check::ok(NAME, found, meaning)
        }
        (None, _) => {
            let meaning = "there is a NAT; whether direct transfers work is not known";
            let next = match first.at.is_ipv4() {
                true => {
                    "to know: a second relay at another address, or --dht on; or the relay's other UDP port let in"
                }
                false => {
                    "to know: a second relay at another address, or the relay's other UDP port let in"
                }
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

/// Whether two ports of one address were asked.
fn asked_at_two_ports(sightings: &[Sighting]) -> bool {
    let other = |a: &Sighting, b: &Sighting| a.by.ip() == b.by.ip() && a.by != b.by;
    sightings.iter().any(|a| sightings.iter().any(|b| other(a, b)))
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
        Facts {
            sightings: vec![sighting],
            mapping,
            allocation,
            hairpin: Some(false),
            ..Facts::default()
        }
    }

    #[test]
    fn what_is_not_measured_is_said_to_be() {
        let nobody = judge(&Facts::default());
        assert!(nobody.status == Status::None && nobody.found.contains("not measured"));
        let one = judge(&facts(None, Some(Allocation::Preserving)));
        assert!(one.status == Status::None && one.next.unwrap().contains("second relay"));
        for mapping in [None, Some(Mapping::EndpointIndependent), Some(Mapping::AddressDependent)] {
            let check = judge(&facts(mapping, None));
            assert!(check.found.contains("lifetime not measured (--lifetime)"), "{check:?}");
            assert!(check.found.contains("filtering not measured"), "{check:?}");
            let told_apart = judge(&Facts { lifetime: true, ..facts(mapping, None) });
            assert!(!told_apart.found.contains("lifetime"), "{told_apart:?}");
        }
    }

    #[test]
    fn of_one_relay_with_two_ports_is_said_what_they_show_and_no_more() {
        let at = |text: &str| text.parse().unwrap();
        let by = |by: &str| Sighting { by: at(by), at: at("11.1.1.2:5000") };
        let sightings = vec![by("9.9.9.9:1"), by("9.9.9.9:2")];
        let same = Facts { sightings, ..facts(None, Some(Allocation::Preserving)) };
        let check = judge(&same);
        assert!(check.status == Status::Ok && check.meaning.contains("probably"), "{check:?}");
        assert!(check.found.contains("no second address asked"), "{check:?}");
        let open = judge(&Facts { other_port: Some(true), ..same });
        assert!(open.found.contains("lets in other ports of who was asked"), "{open:?}");
        assert!(!open.found.contains("filtering"), "whether other addresses get in is not known");
        let closed = Facts { other_port: Some(false), ..facts(Some(Mapping::None), None) };
        let check = judge(&closed);
        assert!(check.found.contains("address-and-port-dependent filtering"), "{check:?}");
        assert!(check.status == Status::Ok && check.meaning.contains("firewall"), "{check:?}");
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
