//! A host that has a key to a door and begins handshakes without end, each under a source address that it forges.
//!
//! It receives nothing of what is sent there, so it never shows a cookie. What the target sends to an address that only
//! it has named is judged by `checks.rs`.

use std::net::SocketAddr;
use std::time::Duration;

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use wraith_core::Time;
use wraith_crypto::identity::{NodeId, SecretIdentity};
use wraith_noise::{DoorKey, EphemeralKey, Initiator, InitiatorHello, Policy};

use crate::Rng;
use crate::link::Datagram;

/// How often it sends, many datagrams each time.
const TICK: Duration = Duration::from_millis(1);
/// True H1s that it makes beforehand and sends again under other addresses. One that was not answered with H2 left nothing behind, so its next copy is as good as
/// new; only those that were read are spent, and these are a few hundred a second.
const POOL: usize = 5000;

/// See the module.
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
    /// One that sends `per_second` true H1s to who has `target_id` at `target`, from one forged address after the other until
    /// there were `sources`.
    pub(crate) fn new(
        mut rng: Rng,
        target: SocketAddr,
        target_id: NodeId,
        unix_seconds: u64,
        (per_second, sources): (u32, u32),
    ) -> Self {
        let identity = SecretIdentity::from_seed(rng.seed());
        let hello = InitiatorHello {
            suites: Policy::Default.packet_suites(),
            aes_hardware: true,
            unix_seconds,
        };
        let mut chance = ChaCha20Rng::from_seed(rng.seed());
        let door = DoorKey::of_everybody(target_id);
        let mut h1 = || {
            let ephemeral = EphemeralKey::generate(&mut chance);
            let started =
                Initiator::start(&identity, target_id, &door, &ephemeral, &hello, &mut chance);
            started.expect("the NodeId of an endpoint").1
        };
        let pool = std::iter::repeat_with(&mut h1).take(POOL).collect();
        let per_tick = per_second / 1000;
        Self { target, per_tick, sources, wake: Time::ZERO, sent: 0, pool }
    }

    /// When it sends next; `None` once it has named all its addresses.
    pub(crate) fn wake(&self) -> Option<Time> {
        (self.sent < self.sources).then_some(self.wake)
    }

    /// What it sends now.
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
