//! Contacts on the local network: the caller asks the group, the listener answers from a port of its own (SPEC §12.2).

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::call::{Found, Search};
use super::listen::Board;
use super::packet::{LAN_LEN, SALT_LEN, Said, open, seal};
use super::{Addresses, unix_seconds};
use crate::lan::Lan;
use crate::lan::sockets::{Sockets, receive};
use crate::meeting::Place;
use crate::rates::{Limit, Rates, Source};

/// First pause between two calls; it doubles up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(60);
const LONGEST_PAUSE: Duration = Duration::from_millis(1000);
/// How often the threads look whether they are to stop.
const GLANCE: Duration = Duration::from_millis(100);
/// Calls whose answers still count: those of more than ten seconds.
const MAX_CALLS: usize = 16;
/// How often new interfaces are looked for.
const RESCAN: Duration = Duration::from_secs(5);
/// Packets of one address that are looked at, whoever they are for: to try every contact's key takes up to half a
/// millisecond. A caller sends one a second.
const RATE: Limit = Limit { burst: 20, refill: Duration::from_millis(200), addresses: 64 };

/// Calls until the search is over.
pub(super) fn call(lan: &Lan, mut search: Search) {
    let not = |why: &str| Found::Not(Place::Lan, why.to_owned());
    let sockets = match Sockets::own() {
        Ok(sockets) => sockets,
        Err(error) => return search.tell(not(&error.to_string())),
    };
    let mut calls: VecDeque<[u8; SALT_LEN]> = VecDeque::new();
    let (mut pause, mut next) = (FIRST_PAUSE, Instant::now());
    while !search.is_over() {
        if Instant::now() >= next {
            let interfaces = lan.interfaces();
            if interfaces.is_empty() {
                search.tell(not(&lan.missing()));
            }
            let mut salt = [0; SALT_LEN];
            if getrandom::fill(&mut salt).is_err() {
                return search.tell(not("the system has no randomness"));
            }
            let said = Said::Call { unix_seconds: unix_seconds() };
            sockets.multicast(&interfaces, &seal(&search.pair, salt, &said, LAN_LEN));
            if calls.len() >= MAX_CALLS {
                calls.pop_front();
            }
            calls.push_back(salt);
            next = Instant::now() + pause;
            pause = (2 * pause).min(LONGEST_PAUSE);
        }
        let mut answered = None;
        receive(&[&sockets], GLANCE.min(pause), |from, bytes| {
            if let Some((_, Said::Answer { call, addresses })) = open(&search.pair, bytes)
                && calls.contains(&call)
            {
                answered = Some(nearest_first(from, addresses));
            }
        });
        if let Some(addresses) = answered {
            search.tell(Found::At(Place::Lan, addresses));
        }
    }
}

/// Where the answer came from comes first: there the listener can be reached, even by an address that means nothing
/// elsewhere. It listens there at the port of its first address.
fn nearest_first(from: SocketAddr, mut addresses: Addresses) -> Addresses {
    if let Some(port) = addresses.first().map(SocketAddr::port) {
        let mut nearest = from;
        nearest.set_port(port);
        addresses.retain(|address| *address != nearest);
        addresses.insert(0, nearest);
    }
    addresses
}

/// The sockets of a listener.
#[derive(Debug)]
pub(super) struct Ear {
    lan: Lan,
    shared: Sockets,
    own: Sockets,
}

impl Ear {
    /// Joins the group; why it cannot.
    pub fn new(lan: Lan) -> Result<Self, String> {
        let interfaces = lan.interfaces();
        if interfaces.is_empty() {
            return Err(lan.missing());
        }
        let plain = |error: std::io::Error| error.to_string();
        let (shared, own) = (Sockets::shared().map_err(plain)?, Sockets::own().map_err(plain)?);
        if shared.join(&interfaces) == 0 {
            return Err("no network interface takes multicast".into());
        }
        Ok(Self { lan, shared, own })
    }

    /// Answers contacts until the board is stopped.
    pub fn listen(self, board: &Arc<Board>) {
        let mut rates = Rates::new(RATE);
        let mut scanned = Instant::now();
        while !board.is_stopped() {
            let mut came = Vec::new();
            receive(&[&self.shared], GLANCE, |from, bytes| {
                let likely = bytes.len() == LAN_LEN;
                if likely && rates.allow(Source::of(from.ip()), Instant::now()) {
                    came.push((from, bytes.to_vec()));
                }
            });
            for (from, bytes) in came {
                if let Some(answer) = board.answer(&bytes, None) {
                    self.own.send(from, &answer);
                }
            }
            if scanned.elapsed() >= RESCAN {
                scanned = Instant::now();
                self.shared.join(&self.lan.interfaces());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_that_answered_comes_first_and_once() {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        let own = vec![address("10.0.0.1:9"), address("127.0.0.1:9")];
        let from = address("10.0.0.1:5555");
        assert_eq!(nearest_first(from, own.clone()), own);
        let link_local = nearest_first(address("[fe80::1]:5555"), own.clone());
        assert_eq!(link_local, [address("[fe80::1]:9"), own[0], own[1]]);
        assert!(nearest_first(from, Vec::new()).is_empty());
    }
}
