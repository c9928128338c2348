//! Port prediction for sequential NATs (SPEC §14.4).

use std::net::SocketAddr;

/// Number of ports tried beyond the last observed one: a punch of the other side uses one for each
/// of its targets.
const AHEAD: u16 = 10;
/// Largest step between two successive ports that is treated as sequential.
const STEP_MAX: u16 = 4;

/// Returns the likely next addresses of a peer observed at `candidates`, in this order. If the last
/// port of an IP address is slightly above the one before it, the ports that follow at the same
/// step are returned.
pub(super) fn predict(candidates: &[SocketAddr]) -> Vec<SocketAddr> {
    let mut predicted = Vec::new();
    for (i, last) in candidates.iter().enumerate() {
        let same_ip = |address: &&SocketAddr| address.ip() == last.ip();
        let is_last = !candidates[i + 1..].iter().any(|address| same_ip(&address));
        let Some(before) = candidates[..i].iter().rev().find(same_ip).filter(|_| is_last) else {
            continue;
        };
        let step = last.port().wrapping_sub(before.port());
        if (1..=STEP_MAX).contains(&step) {
            let ports = (1..=AHEAD).filter_map(|n| last.port().checked_add(n * step));
            predicted.extend(ports.map(|port| SocketAddr::new(last.ip(), port)));
        }
    }
    predicted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(host: u8, port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, host], port))
    }

    #[test]
    fn ports_that_count_up_are_continued() {
        let seen = [address(9, 5000), address(1, 40_000), address(1, 40_001)];
        let expected: Vec<_> = (40_002..=40_011).map(|port| address(1, port)).collect();
        assert_eq!(predict(&seen), expected);
        let by_two = [address(1, 100), address(1, 102), address(2, 9)];
        assert_eq!(predict(&by_two)[..2], [address(1, 104), address(1, 106)]);
    }

    #[test]
    fn one_port_ports_apart_and_the_last_ports_of_all_are_not() {
        assert_eq!(predict(&[address(1, 1), address(2, 2)]), []);
        assert_eq!(predict(&[address(1, 1), address(1, 6)]), []);
        assert_eq!(predict(&[address(1, 2), address(1, 1)]), []);
        assert_eq!(predict(&[address(1, 65_533), address(1, 65_534)]), [address(1, 65_535)]);
    }
}
