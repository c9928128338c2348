//! Tests whether multicast works on this machine, with a packet that does not leave it.

use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout_at};

use super::interfaces::Lan;
use super::packet::{OPENING_LEN, open, seal};
use super::sockets::{Datagram, DualStackSockets, RecvBuffer};
use crate::place::PlaceError;

/// Longest wait for the packet, and the interval between repetitions.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
const REPEAT_INTERVAL: Duration = Duration::from_millis(100);
/// An arbitrary nameplate: the packet is recognised by its random bytes.
const NAMEPLATE: u32 = 1;

/// Result of a [`probe`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeResult {
    /// Number of usable interfaces.
    pub interfaces: usize,
    /// Number of interfaces on which the group was joined.
    pub joined: usize,
    /// Whether the packet came back over IPv4 and over IPv6.
    pub ipv4: bool,
    pub ipv6: bool,
}

/// Joins the group as a creator does, sends a packet to it as a joiner does, and waits for it. The
/// packet has a time to live of 0, so it does not leave the machine. Must be called in a tokio
/// runtime.
///
/// # Errors
/// The reason why the test could not run.
pub async fn probe(lan: &Lan) -> Result<ProbeResult, PlaceError> {
    let plain = |error: std::io::Error| PlaceError::Unusable(error.to_string());
    let interfaces = lan.interfaces();
    let (shared, own) = (
        DualStackSockets::on_group_port().map_err(plain)?,
        DualStackSockets::ephemeral().map_err(plain)?,
    );
    let joined = shared.join(&interfaces);
    let mut result = ProbeResult { interfaces: interfaces.len(), joined, ipv4: false, ipv6: false };
    own.confine_multicast_to_host().map_err(plain)?;
    let mut hello = [0; OPENING_LEN];
    let mut salt = [0; 16];
    let random = getrandom::fill(&mut hello).and_then(|()| getrandom::fill(&mut salt));
    random.map_err(|_| PlaceError::no_randomness())?;
    let packet = seal(NAMEPLATE, salt, &hello, &[]).ok_or(PlaceError::Protocol)?;
    let (v4, v6) = (interfaces.iter().any(|i| i.ipv4.is_some()), interfaces.iter().any(|i| i.ipv6));
    let deadline = Instant::now() + PROBE_TIMEOUT;
    let mut buffer = RecvBuffer::new();
    while Instant::now() < deadline && joined > 0 && (result.ipv4, result.ipv6) != (v4, v6) {
        own.multicast(&interfaces, &packet);
        let next = Instant::now() + REPEAT_INTERVAL;
        while let Ok(received) = timeout_at(next, shared.receive(&mut buffer)).await {
            let Ok(Datagram { len, from, .. }) = received else {
                sleep_until(next).await;
                break;
            };
            if matches!(open(NAMEPLATE, &buffer.bytes()[..len]), Some((theirs, _)) if theirs == hello)
            {
                result.ipv4 |= from.is_ipv4();
                result.ipv6 |= from.is_ipv6();
            }
            if (result.ipv4, result.ipv6) == (v4, v6) {
                break;
            }
        }
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_probe_receives_its_own_packet_on_loopback() {
        let loopback = Lan::With(std::net::Ipv4Addr::LOCALHOST.into());
        let result = probe(&loopback).await.unwrap();
        assert_eq!((result.interfaces, result.joined), (1, 1));
        assert!(result.ipv4 || result.ipv6, "{result:?}");
    }

    #[tokio::test]
    async fn a_probe_without_interfaces_receives_no_packet() {
        let result = probe(&Lan::Off).await.unwrap();
        assert_eq!(result, ProbeResult { interfaces: 0, joined: 0, ipv4: false, ipv6: false });
    }
}
