//! A network address translator: inside addresses appear outside as ports of one address. At given
//! times the translator drops its mappings, and the same host then appears at another port.
//!
//! Its two directions share the table, so [`Nat::pair`] makes both: [`NatOut`] is for the outbound
//! path, [`NatIn`] for the inbound path.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use wraith_core::Time;

use super::{Datagram, Departures, Hop};
use crate::Rng;

/// First allocated port: any port that the simulated hosts do not use themselves.
const FIRST_PORT: u16 = 40_000;

/// The table shared by both directions.
#[derive(Debug)]
pub struct Nat {
    outside: IpAddr,
    /// Times at which every mapping is dropped, the next one last.
    forget_at: Vec<Time>,
    next_port: u16,
    ports: HashMap<SocketAddr, u16>,
    hosts: HashMap<u16, SocketAddr>,
}

impl Nat {
    /// Returns both directions of a translator with the address `outside`. It drops its mappings at
    /// each of the times `rebind_after` the start.
    pub fn pair(outside: IpAddr, rebind_after: &[Duration]) -> (NatOut, NatIn) {
        let mut forget_at: Vec<_> = rebind_after.iter().map(|after| Time::ZERO + *after).collect();
        forget_at.sort_unstable_by(|a, b| b.cmp(a));
        let nat = Self {
            outside,
            forget_at,
            next_port: FIRST_PORT,
            ports: HashMap::new(),
            hosts: HashMap::new(),
        };
        let nat = Arc::new(Mutex::new(nat));
        (NatOut(nat.clone()), NatIn(nat))
    }

    fn advance(&mut self, now: Time) {
        while self.forget_at.pop_if(|at| *at <= now).is_some() {
            self.ports.clear();
            self.hosts.clear();
        }
    }

    fn outside_of(&mut self, inside: SocketAddr) -> SocketAddr {
        let port = *self.ports.entry(inside).or_insert_with(|| {
            let port = self.next_port;
            self.next_port = self.next_port.checked_add(1).unwrap_or(FIRST_PORT);
            self.hosts.insert(port, inside);
            port
        });
        SocketAddr::new(self.outside, port)
    }
}

/// Outbound: replaces the source address.
#[derive(Clone, Debug)]
pub struct NatOut(Arc<Mutex<Nat>>);

/// Inbound: restores the inside address as destination, and drops datagrams without a mapping.
#[derive(Clone, Debug)]
pub struct NatIn(Arc<Mutex<Nat>>);

fn table(nat: &Mutex<Nat>) -> MutexGuard<'_, Nat> {
    nat.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Hop for NatOut {
    fn pass(&mut self, now: Time, mut datagram: Datagram, _: &mut Rng, out: &mut Departures) {
        let mut nat = table(&self.0);
        nat.advance(now);
        datagram.from = nat.outside_of(datagram.from);
        out.push((now, datagram));
    }
}

impl Hop for NatIn {
    fn pass(&mut self, now: Time, mut datagram: Datagram, _: &mut Rng, out: &mut Departures) {
        let mut nat = table(&self.0);
        nat.advance(now);
        let inside = nat.hosts.get(&datagram.to.port()).copied();
        if let Some(inside) = inside.filter(|_| datagram.to.ip() == nat.outside) {
            datagram.to = inside;
            out.push((now, datagram));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Path;
    use super::super::tests::{INSIDE, OUTSIDE, datagram, micros};
    use super::*;
    use crate::hops;

    fn answer(to: SocketAddr) -> Datagram {
        Datagram::new(OUTSIDE, to, vec![1])
    }

    #[test]
    fn after_a_rebinding_the_source_changes_and_the_old_mapping_is_dead() {
        let outside: IpAddr = [192, 0, 2, 1].into();
        let (nat_out, nat_in) = Nat::pair(outside, &[Duration::from_micros(100)]);
        let (mut up, mut down) = (Path::new(0, hops![nat_out]), Path::new(0, hops![nat_in]));
        let mut send = |now, datagram| {
            up.push(now, datagram);
            up.pop(now).unwrap().from
        };
        let before = send(micros(1), datagram(1, 4));
        assert_eq!((before.ip(), send(micros(99), datagram(2, 4))), (outside, before));

        down.push(micros(99), answer(before));
        assert_eq!(down.pop(micros(99)).unwrap().to, INSIDE);
        down.push(micros(100), answer(before));
        assert_eq!(down.pop(micros(100)), None);

        let after = send(micros(101), datagram(3, 4));
        assert_ne!(before, after);
        down.push(micros(102), answer(after));
        assert_eq!(down.pop(micros(102)).unwrap().to, INSIDE);
    }
}
