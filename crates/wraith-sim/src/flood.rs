//! A flooding host: it has an access key and begins handshakes without end, each under a forged
//! source address.
//!
//! It receives no answers, so it never returns a cookie. `checks.rs` verifies the target's answers
//! to the forged addresses.

use std::net::SocketAddr;
use std::time::Duration;

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use wraith_core::Time;
use wraith_crypto::identity::{NodeId, SecretIdentity};

use crate::Rng;
use crate::hostile::begin_handshake;
use crate::link::Datagram;

/// Interval of its sends, with many datagrams each time.
const TICK: Duration = Duration::from_millis(1);
/// Valid H1s that it prepares and sends again under other addresses. An H1 without an H2 left no
/// state behind, so its next copy is as good as new. Only those that the target read are spent, a
/// few hundred per second.
const POOL: usize = 5000;

/// A flooding host; see the module.
#[derive(Debug)]
pub(crate) struct Flood {
    target: SocketAddr,
    per_tick: u32,
    sources: u32,
    wake: Time,
    sent: u32,
    pool: Vec<[Vec<u8>; 2]>,
}

impl Flood {
    /// Creates a host that sends `per_second` valid H1s to `target` with identity `target_id`. It
    /// uses `sources` forged addresses, one after the other.
    pub(crate) fn new(
        mut rng: Rng,
        target: SocketAddr,
        target_id: NodeId,
        unix_seconds: u64,
        (per_second, sources): (u32, u32),
    ) -> Self {
        let identity = SecretIdentity::from_seed(rng.seed());
        let mut chance = ChaCha20Rng::from_seed(rng.seed());
        let mut h1 = || begin_handshake(&identity, target_id, unix_seconds, &mut chance).1;
        let pool = std::iter::repeat_with(&mut h1).take(POOL).collect();
        let per_tick = per_second / 1000;
        Self { target, per_tick, sources, wake: Time::ZERO, sent: 0, pool }
    }

    /// Returns the time of its next send; `None` once all addresses are used.
    pub(crate) fn wake(&self) -> Option<Time> {
        (self.sent < self.sources).then_some(self.wake)
    }

    /// Returns the datagrams that it sends now.
    pub(crate) fn act(&mut self) -> Vec<Datagram> {
        self.wake += TICK;
        let numbers = self.sent..self.sources.min(self.sent + self.per_tick);
        self.sent = numbers.end;
        let datagram = |number: u32| {
            let [_, b, c, d] = number.to_be_bytes();
            let from = SocketAddr::from(([100, 64 + b, c, d], 5000));
            let of = |bytes: &Vec<u8>| Datagram::new(from, self.target, bytes.clone());
            self.pool[number as usize % POOL].iter().map(of).collect::<Vec<_>>()
        };
        numbers.flat_map(datagram).collect()
    }
}
