//! Measures the NAT between this machine and others, by the addresses at which relays and DHT nodes
//! see our sockets.
//!
//! Invariant: a property without evidence is reported as not measured. A relay can answer from a
//! second port, but no observer (relay or DHT node) can answer from a second address. So the result
//! for filtering covers only other ports of an address that this machine has contacted. The
//! lifetime of a mapping takes minutes to measure: see [`lifetime`](super::lifetime).

mod judge;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;
use wraith_transport::nat::{Mapping, ObservedAddress, allocation, mapping};
use wraith_transport::{AnswerMode, Endpoint, ObserveError, PeerStart, PunchEvent, Role};

use self::judge::{NatMeasurements, judge};
use super::Check;
use super::observer::{Observer, open};
use crate::args::MeetingArgs;

const NAME: &str = "NAT";
/// Number of further sockets for the measurement of port allocation.
const SOCKETS: usize = 3;
/// Timeout for a packet to the router and back. A punch sends several in that time.
const HAIRPIN_WAIT: Duration = Duration::from_millis(1500);

/// Returns one check for each address family with an observer that answers.
pub async fn check(
    args: &MeetingArgs,
    socket: &Endpoint,
    observers: &[Observer],
    lifetime: bool,
) -> Vec<Check> {
    if args.relay_only {
        let meaning = "neither side sees the address of the other";
        return vec![Check::none(NAME, "not tested (--relay-only)", meaning)];
    }
    let interfaces = if_addrs::get_if_addrs().unwrap_or_default();
    let own: Vec<_> = interfaces.iter().map(if_addrs::Interface::ip).collect();
    let mut checks = Vec::new();
    for answers in answers(socket, observers).await {
        let facts = measure(socket, &own, &answers).await;
        checks.push(judge(&NatMeasurements { lifetime, ..facts }));
    }
    if checks.is_empty() {
        checks.push(judge(&NatMeasurements::default()));
    }
    checks
}

/// An observed address of a socket, and its observer.
type Observation = (ObservedAddress, Observer);

/// Returns the observed addresses of `socket`, grouped by address family; families without any are left out.
async fn answers(socket: &Endpoint, observers: &[Observer]) -> Vec<Vec<Observation>> {
    let mut asking = JoinSet::new();
    for observer in observers {
        for port in observer.ports() {
            let (socket, observer) = (socket.clone(), observer.clone());
            asking.spawn(async move { Some((observer.observe(&socket, port).await?, observer)) });
        }
    }
    let mut answers: Vec<Observation> = asking.join_all().await.into_iter().flatten().collect();
    answers.sort_by_key(|(observation, _)| observation.by);
    let (v4, v6) = answers.into_iter().partition(|(observation, _)| observation.at.is_ipv4());
    let families: [Vec<Observation>; 2] = [v4, v6];
    families.into_iter().filter(|family| !family.is_empty()).collect()
}

async fn measure(socket: &Endpoint, own: &[IpAddr], answers: &[Observation]) -> NatMeasurements {
    let observations: Vec<_> = answers.iter().map(|(observation, _)| *observation).collect();
    let port = socket.local_addr().port();
    let mapping = mapping(own, port, &observations);
    let mut facts = NatMeasurements { observations, mapping, ..NatMeasurements::default() };
    let Some((first, observer)) = answers.first() else { return facts };
    if mapping == Some(Mapping::None) {
        facts.other_port = other_port(answers).await;
        return facts;
    }
    let mut ports = vec![(port, first.at.port())];
    let mut last = None;
    // One after the other: the order of the ports reveals the allocation.
    for _ in 0..SOCKETS {
        let Ok(other) = open(None) else { break };
        let Some(seen) = observer.observe(&other, first.by).await else { break };
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

/// Returns whether packets from another port of a contacted address get through. It asks a relay
/// that is known to answer at both ports. Returns None without such a relay, or if it no longer
/// answers.
async fn other_port(answers: &[Observation]) -> Option<bool> {
    let answers_at = |port| answers.iter().any(|(observation, _)| observation.by == port);
    let (secret, of, other) = answers.iter().find_map(|(_, observer)| match observer {
        Observer::Relay { secret, of, other: Some(other) }
            if answers_at(*of) && answers_at(*other) =>
        {
            Some((*secret, *of, *other))
        }
        _ => None,
    })?;
    // A socket that has sent nothing to the other port.
    let fresh = open(None).ok()?;
    match fresh.observe_by(secret, of, AnswerMode::Port(other.port())).await {
        Ok(_) => Some(true),
        Err(ObserveError::NoAnswer) => fresh.observe(secret, of).await.is_ok().then_some(false),
        Err(_) => None,
    }
}

/// Returns whether two sockets reach each other at the outside addresses `at_a` and `at_b`.
async fn hairpin(a: &Endpoint, at_a: SocketAddr, b: &Endpoint, at_b: SocketAddr) -> bool {
    let mut secret = [0; 32];
    if getrandom::fill(&mut secret).is_err() {
        return false;
    }
    let mut towards_b = a.punch(secret, Role::Initiator, PeerStart::Now, [at_b]);
    // It answers until it is dropped.
    let _towards_a = b.punch(secret, Role::Responder, PeerStart::Now, [at_a]);
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
        // Both, because a socket answers a received packet at its source address.
        let nowhere = silent.local_addr().unwrap();
        assert!(!hairpin(&a, nowhere, &b, nowhere).await);
    }
}
