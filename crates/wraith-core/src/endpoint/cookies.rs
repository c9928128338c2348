//! The responder's cookies: while the responder is under load, an initiator must return one (SPEC
//! §3.6).
//!
//! Invariant: the responder keeps no state per address. A cookie is a MAC of the initiator's
//! address under a secret of the responder. The responder recomputes the cookie to verify it. A
//! cookie is invalid from another address, and after at most two periods ([`LIFETIME`]) of the
//! secret.

use std::net::SocketAddr;
use std::time::Duration;

use rand_chacha::ChaCha20Rng;
use wraith_noise::{AccessKey, CookieSecret};

use crate::{PathAddr, Time};

/// A secret creates cookies for this long and verifies them for as long again. A handshake attempt
/// lasts ten seconds.
const LIFETIME: Duration = Duration::from_secs(120);

pub(crate) struct Cookies {
    /// The current secret and the previous one. `None` if no cookie was requested in that period.
    secrets: [Option<CookieSecret>; 2],
    /// Start of the current secret's period.
    since: Time,
    /// A generator of its own, so that cookies do not affect the random values of handshakes.
    rng: ChaCha20Rng,
}

impl Cookies {
    pub(crate) fn new(rng: ChaCha20Rng) -> Self {
        Self { secrets: [None, None], since: Time::ZERO, rng }
    }

    /// Returns the datagram that demands a cookie from the sender of `h1` at `from`. It is never
    /// longer than `h1`.
    pub(crate) fn ask(&mut self, now: Time, from: PathAddr, key: &AccessKey, h1: &[u8]) -> Vec<u8> {
        self.expire(now);
        let Self { secrets: [secret, _], rng, .. } = self;
        let secret = secret.get_or_insert_with(|| CookieSecret::draw(rng));
        secret.cookie(&encode(from)).seal(key, h1, rng)
    }

    /// Returns true if an H1 from `from` carries a cookie issued to that address.
    pub(crate) fn shown(&mut self, now: Time, from: PathAddr, h1: &[u8]) -> bool {
        self.expire(now);
        let address = encode(from);
        self.secrets.iter().flatten().any(|secret| secret.cookie(&address).verifies(h1))
    }

    /// Retires secrets that are too old.
    fn expire(&mut self, now: Time) {
        let age = now - self.since;
        if age < LIFETIME {
            return;
        }
        let current = self.secrets[0].take();
        if age < 2 * LIFETIME {
            self.secrets[1] = current;
            self.since += LIFETIME;
        } else {
            self.secrets[1] = None;
            self.since = now;
        }
    }
}

/// Encodes an address injectively.
fn encode(address: PathAddr) -> [u8; 23] {
    let mut bytes = [0; 23];
    match address {
        PathAddr::Ip(address) => {
            // An IPv4 address has one encoding, whether or not the socket maps it to IPv6.
            let ip = match address.ip() {
                std::net::IpAddr::V4(ip) => ip.to_ipv6_mapped(),
                std::net::IpAddr::V6(ip) => ip,
            };
            bytes[0] = 6;
            bytes[1..17].copy_from_slice(&ip.octets());
            bytes[17..19].copy_from_slice(&address.port().to_be_bytes());
            if let SocketAddr::V6(address) = address {
                bytes[19..].copy_from_slice(&address.scope_id().to_be_bytes());
            }
        }
        PathAddr::Via(number) => bytes[1..5].copy_from_slice(&number.get().to_be_bytes()),
    }
    bytes
}

#[cfg(test)]
mod tests {
    use rand_core::SeedableRng;
    use wraith_crypto::identity::SecretIdentity;
    use wraith_noise::{EphemeralKey, Initiator, InitiatorHello, Policy};

    use super::*;

    fn cookies() -> Cookies {
        Cookies::new(ChaCha20Rng::from_seed([1; 32]))
    }

    fn address(address: &str) -> PathAddr {
        address.parse::<SocketAddr>().expect("an address and port").into()
    }

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    /// Returns an H1, sent again with the cookie that `cookies` issues to `from` at `now`.
    fn h1_with_cookie(cookies: &mut Cookies, now: Time, from: PathAddr) -> Vec<u8> {
        let [us, them] = [2, 3].map(|seed| SecretIdentity::from_seed([seed; 32]));
        let hello = InitiatorHello {
            suites: Policy::Default.packet_suites(),
            aes_hardware: true,
            unix_seconds: 0,
        };
        let mut rng = ChaCha20Rng::from_seed([4; 32]);
        let ephemeral = EphemeralKey::generate(&mut rng);
        let access_key = AccessKey::public(them.node_id());
        let (mut initiator, [h1, _]) =
            Initiator::start(&us, them.node_id(), &access_key, &ephemeral, &hello, &mut rng)
                .expect("a valid NodeId");
        assert!(!cookies.shown(now, from, &h1));
        let answer = cookies.ask(now, from, &access_key, &h1);
        assert!(answer.len() < h1.len() / 2);
        let [h1, _] = initiator.read_cookie(&answer).expect("an answer to this H1");
        h1
    }

    #[test]
    fn a_cookie_counts_from_its_address_and_port_and_from_no_other() {
        let here = address("192.0.2.1:1000");
        let via = |n| PathAddr::Via(std::num::NonZeroU32::new(n).expect("not zero"));
        let neighbour = address("[fe80::1%2]:1000");
        for from in [here, address("[2001:db8::1]:1000"), neighbour, via(7)] {
            let mut cookies = cookies();
            let h1 = h1_with_cookie(&mut cookies, at(0), from);
            assert!(cookies.shown(at(1), from, &h1));
            let elsewhere = address("[fe80::1%3]:1000");
            for other in [address("192.0.2.1:1001"), address("192.0.2.2:1000"), elsewhere, via(8)] {
                assert!(!cookies.shown(at(1), other, &h1));
            }
        }
        let mut cookies = cookies();
        let h1 = h1_with_cookie(&mut cookies, at(0), here);
        assert!(cookies.shown(at(1), address("[::ffff:192.0.2.1]:1000"), &h1));
    }

    #[test]
    fn a_cookie_counts_for_two_minutes_at_least_and_four_at_most() {
        let here = address("192.0.2.1:1000");
        for given in [0, 60, 119] {
            let mut cookies = cookies();
            h1_with_cookie(&mut cookies, at(1000), here);
            let h1 = h1_with_cookie(&mut cookies, at(1000 + given), here);
            assert!(cookies.shown(at(1000 + given + 120), here, &h1));
            h1_with_cookie(&mut cookies, at(1000 + given + 121), here);
            assert!(!cookies.shown(at(1000 + given + 240), here, &h1));
        }
        let mut cookies = cookies();
        let h1 = h1_with_cookie(&mut cookies, at(0), here);
        assert!(!cookies.shown(at(240), here, &h1), "no cookie was requested since");
    }
}
