//! The relay's side of UDP address binding (SPEC §13.6).
//!
//! Invariant: an address is bound only after a cookie was sent to it and returned from it. The
//! cookie is for a new counter, and the response with the cookie is sealed with the client's key.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use wraith_crypto::{equal, kdf};
use wraith_discovery::rates::Source;

use super::{BINDING_LIFETIME, Client, Table};
use crate::binding::{BIND_WINDOW, BINDING_MIN, Binding, BindingKeys, COOKIE_BYTES};
use crate::header::{Direction, WireId, down_mask};
use crate::wire::put_address;

/// Least time between two challenges for a client's datagrams from a new address. A client that
/// moved answers the first challenge. Copies with spoofed source addresses do not cause additional
/// challenges.
const CHALLENGE_PAUSE: Duration = Duration::from_millis(100);

impl Table {
    /// Handles a binding message of client `number`. The response is never longer than the message.
    pub(super) fn on_binding(
        &mut self,
        now: Instant,
        number: usize,
        from: SocketAddr,
        datagram: &mut [u8],
    ) -> Option<Vec<u8>> {
        let client = self.clients.get_mut(number)?;
        let keys = BindingKeys::new(&client.secret, client.binding);
        let Binding::Bind { counter, answers, cookie } = keys.open(Direction::Up, datagram)? else {
            return None;
        };
        if counter <= client.highest {
            return None;
        }
        self.expect_bindings_after(number, counter);
        let client = self.clients.get_mut(number)?;
        let is_bound = client.is_bound_to(from);
        let is_proved = answers != 0
            && answers == client.challenged
            && equal(&cookie, &make_cookie(&self.cookie_key, client.session, answers, from));
        let (answer, len) = if is_bound || is_proved {
            // A client takes a place at each address that it uses. Without a place for UDP, it
            // gets no answer and stays with TLS.
            let source = Source::of(from.ip());
            let udp_source = (source != client.source).then_some(source);
            if udp_source != client.udp_source {
                if let Some(source) = udp_source {
                    self.sources.enter(now, &self.limits, source, 0).ok()?;
                }
                if let Some(source) = std::mem::replace(&mut client.udp_source, udp_source) {
                    self.sources.leave(source, 0);
                }
            }
            if let Some((before, _)) = client.bound.replace((from, now)) {
                self.addresses.remove(before, number);
            }
            self.addresses.insert(from, number);
            client.challenged = 0;
            self.metrics.bindings.add(u64::from(!is_bound));
            // As long as the request: the path has to carry that in both directions.
            (Binding::Bound { counter, observed: from }, datagram.len())
        } else {
            client.challenged = counter;
            self.metrics.challenges.add(1);
            let cookie = make_cookie(&self.cookie_key, client.session, counter, from);
            (Binding::Challenge { counter, cookie }, BINDING_MIN)
        };
        let mask = down_mask(&client.secret);
        Some(keys.seal_down(&mask, &answer, len, &mut self.random))
    }

    /// Handles a datagram of `len` bytes of client `number` from an unbound address. Returns the
    /// challenge, if one is due.
    pub(super) fn challenge(
        &mut self,
        now: Instant,
        number: usize,
        from: SocketAddr,
        len: usize,
    ) -> Option<Vec<u8>> {
        let client = self.clients.get_mut(number)?;
        let too_soon = |at| now.saturating_duration_since(at) < CHALLENGE_PAUSE;
        if len < BINDING_MIN || client.highest == 0 || client.challenged_at.is_some_and(too_soon) {
            return None;
        }
        client.challenged_at = Some(now);
        client.challenged = client.highest;
        self.metrics.challenges.add(1);
        let counter = client.highest;
        let cookie = make_cookie(&self.cookie_key, client.session, counter, from);
        let keys = BindingKeys::new(&client.secret, client.binding);
        let (mask, challenge) = (down_mask(&client.secret), Binding::Challenge { counter, cookie });
        Some(keys.seal_down(&mask, &challenge, BINDING_MIN, &mut self.random))
    }

    /// Goes on with binding messages from `counter`, at the request of the client.
    pub fn bind_from(&mut self, number: usize, counter: u64) {
        let before = counter.saturating_sub(1);
        if self.clients.get(number).is_some_and(|client| client.highest < before) {
            self.expect_bindings_after(number, before);
        }
    }

    /// Sets the highest counter of a client, and recognises the [`BIND_WINDOW`] messages after it.
    pub(super) fn expect_bindings_after(&mut self, number: usize, highest: u64) {
        let Some(client) = self.clients.get_mut(number) else { return };
        let known = client.next_ids.len() as u64;
        let passed = known.min(highest - client.highest);
        let passed: Vec<_> = client.next_ids.drain(..passed as usize).collect();
        client.highest = highest;
        // After a jump beyond all known IDs, none is left.
        while (client.next_ids.len() as u64) < BIND_WINDOW {
            let next = highest.saturating_add(1 + client.next_ids.len() as u64);
            let id = client.up_ids.of(next);
            client.next_ids.push_back(id);
            self.bind_ids.insert(id, number);
        }
        self.forget_bindings(number, passed.iter());
    }

    /// Recognises messages with these IDs no more.
    pub(super) fn forget_bindings<'a>(
        &mut self,
        number: usize,
        ids: impl IntoIterator<Item = &'a WireId>,
    ) {
        for id in ids {
            if self.bind_ids.get(id) == Some(&number) {
                self.bind_ids.remove(id);
            }
        }
    }

    /// Returns the UDP address for datagrams to client `number`; `None` if they go over TLS.
    pub(super) fn udp_address(&self, now: Instant, number: usize) -> Option<SocketAddr> {
        let client = self.clients.get(number).filter(|client| client.use_udp)?;
        let (address, since) = client.bound?;
        (now.saturating_duration_since(since) < BINDING_LIFETIME).then_some(address)
    }
}

impl Client {
    /// Reports whether the client is bound at `from`.
    pub(super) fn is_bound_to(&self, from: SocketAddr) -> bool {
        self.bound.is_some_and(|(address, _)| address == from)
    }
}

fn make_cookie(
    key: &[u8; 32],
    session: u64,
    counter: u64,
    address: SocketAddr,
) -> [u8; COOKIE_BYTES] {
    let mut data = [session.to_be_bytes(), counter.to_be_bytes()].concat();
    put_address(&mut data, address);
    *kdf::keyed(key, &data).first_chunk().expect("longer than a cookie")
}
