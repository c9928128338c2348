//! Whether multicast works on this machine: a packet to the group that only this machine hears.

use std::time::{Duration, Instant};

use super::holder::packet;
use super::interfaces::Lan;
use super::packet::open;
use super::sockets::{Sockets, receive};
use crate::message::Message;
use crate::pake::HELLO_LEN;

/// How long the packet may take from this machine to itself, and how often it is sent meanwhile.
const PATIENCE: Duration = Duration::from_secs(2);
const REPEAT: Duration = Duration::from_millis(100);

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
/// for it. The packet does not leave the machine: its time to live is 0.
///
/// # Errors
/// In words for people: why nothing could be tried.
pub fn probe(lan: &Lan) -> Result<Heard, String> {
    let plain = |error: std::io::Error| error.to_string();
    let interfaces = lan.interfaces();
    let (shared, own) = (Sockets::shared().map_err(plain)?, Sockets::own().map_err(plain)?);
    let joined = shared.join(&interfaces);
    let mut heard = Heard { interfaces: interfaces.len(), joined, ipv4: false, ipv6: false };
    own.keep_multicast_here().map_err(plain)?;
    let mut hello = [0; HELLO_LEN];
    getrandom::fill(&mut hello).map_err(|error| error.to_string())?;
    let number = 1;
    let probe = packet(number, &hello, &Message::Hello(hello));
    let probe = probe.ok_or("the system has no randomness")?;
    let (v4, v6) = (interfaces.iter().any(|i| i.ipv4.is_some()), interfaces.iter().any(|i| i.ipv6));
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline && joined > 0 && (heard.ipv4, heard.ipv6) != (v4, v6) {
        own.multicast(&interfaces, &probe);
        receive(&[&shared], REPEAT, |from, bytes| {
            if matches!(open(number, bytes), Some((theirs, _)) if theirs == hello) {
                heard.ipv4 |= from.is_ipv4();
                heard.ipv6 |= from.is_ipv6();
            }
        });
    }
    Ok(heard)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_hears_itself_on_loopback() {
        let loopback = Lan::With(std::net::Ipv4Addr::LOCALHOST.into());
        let heard = probe(&loopback).unwrap();
        assert_eq!((heard.interfaces, heard.joined), (1, 1));
        assert!(heard.ipv4 || heard.ipv6, "{heard:?}");
    }

    #[test]
    fn where_nothing_is_nothing_is_heard() {
        let heard = probe(&Lan::Off).unwrap();
        assert_eq!(heard, Heard { interfaces: 0, joined: 0, ipv4: false, ipv6: false });
    }
}
