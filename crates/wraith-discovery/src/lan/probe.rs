//! Whether multicast works on this machine: a packet to the group that only this machine hears.

use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout_at};

use super::interfaces::Lan;
use super::packet::{OPENING_LEN, open, seal};
use super::sockets::{Buffer, Sockets};
use crate::place::PlaceError;

/// How long the packet may take from this machine to itself, and how often it is sent meanwhile.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
const REPEAT_INTERVAL: Duration = Duration::from_millis(100);
/// Any nameplate will do: the packet is found by its random bytes.
const NAMEPLATE: u32 = 1;

/// What came of a [`probe`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heard {
    /// Interfaces to meet on.
    pub interfaces: usize,
    /// Interfaces on which the group could be joined.
    pub joined: usize,
    /// The packet came back, over IPv4 and over IPv6.
    pub ipv4: bool,
    pub ipv6: bool,
}

/// Joins the group as one who waits with a code does, sends a packet to it as one who has typed a code does, and listens
/// for it. The packet does not leave the machine: its time to live is 0. Must be called in a tokio runtime.
///
/// # Errors
/// Why nothing could be tried.
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
