//! The relay's side of UDP address binding (SPEC §13.6).
//!
//! Invariant: an address is bound only after a cookie was sent to it and returned from it. The
//! cookie is for a new counter, and the response with the cookie is sealed with the client's key.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use wraith_crypto::{equal, kdf};
use wraith_discovery::rates::Source;

use super::{BINDING_LIFETIME, Client, Table};
use crate::binding::{BINDING_MIN, Binding, BindingKeys, COOKIE_BYTES};
use crate::header::{Direction, down_mask};
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
        client.highest = counter;
        let is_bound = client.is_bound_to(from);
        let is_proved = answers != 0
            && answers == client.challenged
            && equal(&cookie, &make_cookie(&self.cookie_key, client.session, answers, from));
        let answer = if is_bound || is_proved {
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
            client.bound = Some((from, now));
            client.challenged = 0;
            self.metrics.bindings.add(u64::from(!is_bound));
            Binding::Bound { counter, observed: from }
        } else {
            client.challenged = counter;
            self.metrics.challenges.add(1);
            let cookie = make_cookie(&self.cookie_key, client.session, counter, from);
            Binding::Challenge { counter, cookie }
        };
        let mask = down_mask(&client.secret);
        Some(keys.seal(&mask, Direction::Down, &answer, &mut self.random))
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
        Some(keys.seal(&mask, Direction::Down, &challenge, &mut self.random))
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
