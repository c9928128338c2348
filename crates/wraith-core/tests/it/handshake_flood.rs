//! An attacker with an access key that receives at any number of addresses, and begins authentic
//! handshakes without end.

use std::ops::Range;

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use wraith_core::{Endpoint, PathAddr, Time, TransportConfig};
use wraith_crypto::identity::SecretIdentity;
use wraith_noise::{EphemeralKey, Initiator, InitiatorHello, Policy};

use crate::counting::bytes_held;
use crate::half_open::{access_key, is_connected, responder, responder_id, sent};
use crate::pair::{ip, side};

/// Total number of H1s. `WRAITH_WHOLE_H1S=1000000` takes some minutes.
const H1S: u32 = 4000;
/// Number of honest initiators meanwhile.
const NEWCOMERS: u32 = 4;
/// Interval between H1s: 5000 per second, more than a core answers.
const APART_NS: u64 = 200_000;
/// Number of H1s that arrive within one round trip.
const ROUND_TRIP: u32 = 100;
/// Maximum memory that an H1 leaves behind: its ID and that of its ephemeral key, in tables that
/// are half empty.
const REMEMBERED_BYTES: i64 = 128;
/// Maximum memory in total: half for remembered H1s, half for half-open handshakes.
const HELD_MAX: i64 = 16 << 20;

fn at(number: u32) -> Time {
    Time::from_nanos(u64::from(number) * APART_NS)
}

struct Flood {
    identity: SecretIdentity,
    rng: ChaCha20Rng,
    answered: u32,
    sent: u32,
}

impl Flood {
    /// Sends the H1s with these numbers, each from another address, and with a cookie if one is
    /// demanded.
    fn send(&mut self, responder: &mut Endpoint, numbers: Range<u32>) {
        for number in numbers {
            let (now, [_, b, c, d]) = (at(number), number.to_be_bytes());
            let from = ip([100, 64 + b, c, d], 5000);
            let unix_seconds = now.as_nanos() / 1_000_000_000;
            let hello = InitiatorHello {
                suites: Policy::Default.packet_suites(),
                aes_hardware: true,
                unix_seconds,
            };
            let ephemeral = EphemeralKey::generate(&mut self.rng);
            let (id, access_key) = (responder_id(), access_key());
            let (mut initiator, h1) = Initiator::start(
                &self.identity,
                id,
                &access_key,
                &ephemeral,
                &hello,
                &mut self.rng,
            )
            .expect("a valid NodeId");
            let mut answers = say(responder, now, from, &h1);
            if let [cookie] = &answers[..] {
                let h1 = initiator.read_cookie(cookie).expect("a cookie");
                answers = say(responder, now, from, &h1);
            }
            self.answered += u32::from(answers.len() == 2);
            self.sent += 1;
        }
    }
}

/// Returns the answers of `responder`.
fn say(responder: &mut Endpoint, now: Time, from: PathAddr, said: &[Vec<u8>]) -> Vec<Vec<u8>> {
    for datagram in said {
        responder.handle_datagram(now, from, None, &mut datagram.clone());
    }
    sent(responder, now).into_iter().map(|(_, datagram)| datagram).collect()
}

/// Returns true if `newcomer` connects. It starts when H1 `number` arrives, during the flood.
fn connects(
    newcomer: &mut Endpoint,
    responder: &mut Endpoint,
    flood: &mut Flood,
    number: u32,
) -> bool {
    let (here, there) = (ip([192, 0, 2, 1], 1), ip([127, 0, 0, 2], 1000));
    newcomer.connect(at(number), there, responder_id(), &access_key()).unwrap();
    // H1 and a cookie, H1 and H2, H3.
    for round in 0..3 {
        let (began, ended) = (number + round * ROUND_TRIP, number + (round + 1) * ROUND_TRIP);
        let said: Vec<_> = sent(newcomer, at(began)).into_iter().map(|(_, d)| d).collect();
        flood.send(responder, began..began + ROUND_TRIP / 2);
        let answers = say(responder, at(began + ROUND_TRIP / 2), here, &said);
        flood.send(responder, began + ROUND_TRIP / 2..ended);
        for mut answer in answers {
            newcomer.handle_datagram(at(ended), there, None, &mut answer);
        }
    }
    is_connected(responder)
}

#[test]
fn true_h1s_with_cookies_without_end_are_held_in_bounded_memory_and_a_newcomer_gets_in() {
    let count: u32 = std::env::var("WRAITH_WHOLE_H1S").map_or(H1S, |n| n.parse().unwrap());
    let mut responder = responder(|_| {});
    let rng = ChaCha20Rng::from_seed([1; 32]);
    let identity = SecretIdentity::from_seed([1; 32]);
    let mut flood = Flood { identity, rng, answered: 0, sent: 0 };
    // All places are taken from here on.
    flood.send(&mut responder, 0..H1S / 4);
    let (full, mut most) = (bytes_held(), 0);
    let each = (count - H1S / 4) / NEWCOMERS;
    for n in 0..NEWCOMERS {
        let first = H1S / 4 + n * each;
        let last = first + each - 3 * ROUND_TRIP;
        flood.send(&mut responder, first..last);
        most = most.max(bytes_held() - full);
        let mut newcomer = side(100 + n as u8, TransportConfig::default()).endpoint;
        assert!(connects(&mut newcomer, &mut responder, &mut flood, last), "newcomer {n}");
    }
    println!("{} H1s, {} answered, {full} bytes and {most} more", flood.sent, flood.answered);
    assert_eq!(flood.answered, flood.sent, "they are as good as the newcomer's");
    assert!(most < REMEMBERED_BYTES * i64::from(count) && full + most < HELD_MAX, "{most} bytes");
}
