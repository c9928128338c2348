//! Measures how long a NAT or a firewall keeps a mapping without traffic. Several sockets ask a
//! relay for a delayed answer, each with another delay. Until the answer is due, a socket sends
//! nothing.
//!
//! Invariant: the reported lifetime lies between two pauses: the longest one after which an answer
//! arrived, and the next longer one after which no answer arrived. A real pause is slightly longer
//! than requested, because the relay checks only every 2 s which answers are due.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::sleep;
use wraith_transport::AnswerMode;

use super::Check;
use super::observer::{Observer, open};
use crate::output::Reporter;

const NAME: &str = "NAT lifetime";
/// Pauses around the usual lifetimes of routers: 30 s, 1 and 2 minutes; 3 minutes and more are
/// beyond. They are multiples of 8 s, the unit of the relay's delay. The first one shows whether
/// the relay answers late at all: it does so for a few clients only, and perhaps not for this one.
const PAUSES_S: [u64; 5] = [8, 24, 48, 104, 168];
/// Pause between two exchanges. Linux connection tracking treats a flow older than 2 s as a stream
/// and keeps it longer, as it does for a transfer.
const FLOW_AGE: Duration = Duration::from_millis(2500);
/// Required lifetime. Endpoints ask for their address every 25 s; with a shorter lifetime they lose
/// the mapping in between.
const NEEDED_S: u64 = 24;

/// Pairs of a pause in seconds and whether an answer came after it, in ascending order.
type PauseResults = [(u64, bool)];

/// Returns one check for each address family of the relays, or one that explains why there is none.
pub async fn check(observers: &[Observer], reporter: &Reporter) -> Vec<Check> {
    let relay = |is_ipv4| {
        observers.iter().find_map(|observer| match observer {
            Observer::Relay { secret, of, .. } if of.is_ipv4() == is_ipv4 => Some((*secret, *of)),
            _ => None,
        })
    };
    let relays: Vec<_> = [true, false].into_iter().filter_map(relay).collect();
    if relays.is_empty() {
        let meaning = "the time for which this machine stays reachable without traffic is unknown";
        let check = Check::none(NAME, "not measured: no relay answers over UDP", meaning);
        return vec![check.next("name a relay, which can delay its answers: --relay HOST")];
    }
    reporter.status("Waiting silently for 3 minutes, to measure how long answers get through …");
    let mut asking = JoinSet::new();
    for (number, (secret, of)) in relays.iter().copied().enumerate() {
        for pause in PAUSES_S {
            asking.spawn(
                async move { Some((number, pause, lets_in_after(secret, of, pause).await?)) },
            );
        }
    }
    let mut all: Vec<_> = asking.join_all().await.into_iter().flatten().collect();
    all.sort_unstable();
    let of_relay = |number| {
        let answered = all.iter().filter(move |(of, ..)| *of == number);
        answered.map(|(_, pause, came)| (*pause, *came)).collect::<Vec<_>>()
    };
    relays.iter().enumerate().map(|(number, (_, of))| judge(*of, &of_relay(number))).collect()
}

/// Returns whether an answer requested after `pause` seconds arrives; None if not even an immediate
/// answer does.
async fn lets_in_after(secret: [u8; 32], of: SocketAddr, pause: u64) -> Option<bool> {
    let socket = open(None).ok()?;
    socket.observe(secret, of).await.ok()?;
    sleep(FLOW_AGE).await;
    let by = AnswerMode::ItselfAfter(Duration::from_secs(pause));
    Some(socket.observe_by(secret, of, by).await.is_ok())
}

fn judge(of: SocketAddr, answered: &PauseResults) -> Check {
    let lived = answered.iter().filter(|(_, came)| *came).map(|(pause, _)| *pause).max();
    let above = |pause: &u64| lived.is_none_or(|lived| *pause > lived);
    let died = answered.iter().filter(|(_, came)| !came).map(|(pause, _)| *pause).find(above);
    let by = format!("measured with {of}");
    let found = match (lived, died) {
        (None, _) => {
            let meaning =
                "the time for which this machine stays reachable without traffic is unknown";
            return Check::none(
                NAME,
                format!("not measured: no delayed answer came, {by}"),
                meaning,
            );
        }
        (Some(lived), Some(died)) => {
            format!("answers get through after {lived} s of silence, not after {died} s; {by}")
        }
        (Some(lived), None) => format!("answers get through after {lived} s of silence; {by}"),
    };
    if lived.is_some_and(|lived| lived >= NEEDED_S) {
        let meaning = "a wraith that waits here stays reachable: it sends a packet every 25 s";
        return Check::ok(NAME, found, meaning);
    }
    let meaning =
        "a wraith that waits here sends a packet every 25 s, and may be unreachable in between";
    Check::warn(NAME, found, meaning).next(
        "raise the UDP timeout of the router to 30 s or more (RFC 4787: 120 s); or enable UPnP or PCP in it, or use a relay: --relay HOST",
    )
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;

    fn judged(answered: &PauseResults) -> Check {
        judge("192.0.2.1:443".parse().unwrap(), answered)
    }

    #[test]
    fn the_reported_lifetime_lies_between_an_answer_and_a_silence() {
        let check = judged(&[(24, true), (48, true), (104, false), (168, false)]);
        assert!(check.found.contains("after 48 s of silence, not after 104 s"), "{check:?}");
        assert_eq!(check.status, Status::Ok);
        // A lost answer is no evidence, since a later one came.
        let check = judged(&[(24, false), (48, true), (104, true), (168, false)]);
        assert!(check.found.contains("after 104 s of silence, not after 168 s"), "{check:?}");
        let check = judged(&[(24, true), (48, true), (104, true), (168, true)]);
        assert!(check.found.contains("after 168 s of silence;"), "{check:?}");
    }

    #[test]
    fn a_mapping_shorter_than_the_keep_alive_is_a_warning_and_no_answer_is_no_result() {
        let check = judged(&[(8, true), (24, false), (48, false)]);
        assert!(
            check.status == Status::Warn && check.found.contains("not after 24 s"),
            "{check:?}"
        );
        assert!(check.next.unwrap().contains("--relay"));
        // A relay without room for late answers gives no evidence about a NAT.
        for silent in [&[][..], &[(8, false), (24, false)]] {
            assert_eq!(judged(silent).status, Status::None);
        }
    }
}
