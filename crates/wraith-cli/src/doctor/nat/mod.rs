//! The NAT between this machine and others: what relays and nodes of the DHT see of sockets of ours, and what that means.
//!
//! Invariant: what cannot be told from that is said to be not measured. A relay can answer from a second port, but nobody from a second
//! address, so of the filtering it is told what happens to other ports of an address that was asked, and no more. How long a mapping
//! lives takes minutes to find out: see [`lifetime`](super::lifetime).

mod judge;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;
use wraith_dht::SeenQuestion;
use wraith_transport::nat::{Mapping, Sighting, allocation, mapping};
use wraith_transport::{AnswerBy, AskError, Endpoint, PunchEvent, Role};

use self::judge::{Facts, judge};
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

#[cfg(test)]
mod tests {
    use super::*;

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
