//! Tests whether multicast works on this machine, with a packet that does not leave it.

use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout_at};

use super::interfaces::Lan;
use super::packet::{OPENING_LEN, open, seal};
use super::sockets::{Buffer, Sockets};
use crate::place::PlaceError;

/// Longest wait for the packet, and the interval between repetitions.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
const REPEAT_INTERVAL: Duration = Duration::from_millis(100);
/// An arbitrary nameplate: the packet is recognised by its random bytes.
const NAMEPLATE: u32 = 1;

/// Result of a [`probe`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heard {
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
pub async fn probe(lan: &Lan) -> Result<Heard, PlaceError> {
    let plain = |error: std::io::Error| PlaceError::Unusable(error.to_string());
    let interfaces = lan.interfaces();
    let (shared, own) = (Sockets::shared().map_err(plain)?, Sockets::own().map_err(plain)?);
    let joined = shared.join(&interfaces);
    let mut heard = Heard { interfaces: interfaces.len(), joined, ipv4: false, ipv6: false };
    own.keep_multicast_here().map_err(plain)?;
    let mut hello = [0; OPENING_LEN];
    let mut salt = [0; 16];
    let random = getrandom::fill(&mut hello).and_then(|()| getrandom::fill(&mut salt));
    random.map_err(|_| PlaceError::no_randomness())?;
    let packet = seal(NAMEPLATE, salt, &hello, &[]).ok_or(PlaceError::Protocol)?;
    let (v4, v6) = (interfaces.iter().any(|i| i.ipv4.is_some()), interfaces.iter().any(|i| i.ipv6));
    let deadline = Instant::now() + PROBE_TIMEOUT;
    let mut buffer = Buffer::new();
    while Instant::now() < deadline && joined > 0 && (heard.ipv4, heard.ipv6) != (v4, v6) {
        own.multicast(&interfaces, &packet);
        let next = Instant::now() + REPEAT_INTERVAL;
        while let Ok(received) = timeout_at(next, shared.receive(&mut buffer)).await {
            let Ok((len, from)) = received else {
                sleep_until(next).await;
                break;
            };
            if matches!(open(NAMEPLATE, &buffer.bytes()[..len]), Some((theirs, _)) if theirs == hello)
            {
                heard.ipv4 |= from.is_ipv4();
                heard.ipv6 |= from.is_ipv6();
            }
            if (heard.ipv4, heard.ipv6) == (v4, v6) {
                break;
            }
        }
    }
    Ok(heard)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_machine_hears_itself_on_loopback() {
        let loopback = Lan::With(std::net::Ipv4Addr::LOCALHOST.into());
        let heard = probe(&loopback).await.unwrap();
        assert_eq!((heard.interfaces, heard.joined), (1, 1));
        assert!(heard.ipv4 || heard.ipv6, "{heard:?}");
    }

    #[tokio::test]
    async fn where_nothing_is_nothing_is_heard() {
        let heard = probe(&Lan::Off).await.unwrap();
        assert_eq!(heard, Heard { interfaces: 0, joined: 0, ipv4: false, ipv6: false });
    }
}
