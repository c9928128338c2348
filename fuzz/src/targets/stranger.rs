//! Datagrams to an endpoint from hosts that it does not know. Some of these hosts have its NodeId
//! (its public key), and some also have an invitation (the key that permits a handshake).
//!
//! Invariant: the endpoint answers only a genuine first handshake message (H1) of an invited host.
//! Its answer is no longer than that message.

use std::net::SocketAddr;
use std::time::Duration;

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use wraith_core::{Door, Endpoint, EndpointConfig, PathAddr, Time};
use wraith_crypto::kdf;
use wraith_noise::{
    AccessKey, EphemeralKey, H1_BYTES, Initiator, InitiatorHello, MAC1_BYTES, NodeId,
    SecretIdentity,
};

use crate::input::Input;

const STRANGER: ([u8; 4], u16) = ([192, 0, 2, 1], 4711);
/// The peer that the endpoint dials.
const PEER: ([u8; 4], u16) = ([192, 0, 2, 2], 4712);
/// Maximum number of datagrams of one input: a genuine H1 costs three key agreements, and fuzzing
/// needs many inputs per second.
const DATAGRAMS_MAX: u32 = 16;
const START: Time = Time::from_nanos(1_000_000_000);

pub(crate) fn run(input: &[u8]) {
    let mut input = Input(input);
    let identity = SecretIdentity::from_seed([3; 32]);
    let node_id = identity.node_id();
    let door = Door { access_keys: vec![access_key(node_id)], ..Door::default() };
    let config = EndpointConfig { door, ..EndpointConfig::new(identity) };
    let mut endpoint = Endpoint::new(config, [7; 32]);
    let mut now = START;
    let peer = SecretIdentity::from_seed([4; 32]).node_id();
    endpoint
        .connect(now, SocketAddr::from(PEER), peer, &access_key(peer))
        .expect("the first connection");
    sent(&mut endpoint, now);
    let stranger = PathAddr::from(SocketAddr::from(STRANGER));
    // Bytes of the peer and of the stranger.
    let (mut asked, mut answered) = ([0; 2], [0; 2]);
    for _ in 0..DATAGRAMS_MAX {
        if input.is_empty() {
            break;
        }
        let kind = input.byte();
        if kind & 0x80 != 0 {
            now += Duration::from_millis(u64::from(input.u16()));
            endpoint.handle_timeout(now);
            sent(&mut endpoint, now);
        }
        let from = if kind & 0x40 != 0 { PEER } else { STRANGER };
        let from = PathAddr::from(SocketAddr::from(from));
        let mut datagrams = match kind & 3 {
            0 => vec![input.bytes(2000).to_vec()],
            1 => vec![with_mac1(&mut input, node_id)],
            // From a host that has only the NodeId.
            2 => h1(&mut input, node_id, &AccessKey::public(node_id), now).to_vec(),
            _ => h1(&mut input, node_id, &access_key(node_id), now).to_vec(),
        };
        if kind & 0x20 != 0 {
            datagrams.reverse();
        }
        for datagram in &mut datagrams {
            asked[usize::from(from == stranger)] += datagram.len();
            endpoint.handle_datagram(now, from, None, datagram);
            let answers = sent(&mut endpoint, now);
            assert!(kind & 3 == 3 || answers.is_empty(), "a stranger was answered");
            assert!(answers.iter().all(|(to, _)| *to == from), "it was sent elsewhere");
            let len = answers.iter().map(|(_, answer)| answer).sum::<usize>();
            answered[usize::from(from == stranger)] += len;
            assert!(answered.iter().zip(&asked).all(|(answered, asked)| answered <= asked));
        }
        while endpoint.poll_event().is_some() {}
        endpoint.poll_timeout();
    }
}

fn access_key(node_id: NodeId) -> AccessKey {
    AccessKey::of_ticket(&[7; 16], node_id)
}

/// Arbitrary bytes with the mac1 of a first datagram of H1, of a permitted length.
fn with_mac1(input: &mut Input<'_>, node_id: NodeId) -> Vec<u8> {
    let len = H1_BYTES.start() + usize::from(input.u16()) % (H1_BYTES.end() - H1_BYTES.start() + 1);
    let mut datagram = input.bytes(64).to_vec();
    datagram.resize(len, 0);
    let parts: [&[u8]; 2] = [&[7; 16], node_id.as_bytes()];
    let key =
        kdf::derive("wraith/2 gate 1", &kdf::derive_parts("wraith/2 door of a ticket", &parts));
    let mac1 = kdf::keyed(&key, &kdf::hash(&datagram[..len - MAC1_BYTES]));
    datagram[len - MAC1_BYTES..].copy_from_slice(&mac1[..MAC1_BYTES]);
    datagram
}

fn h1(input: &mut Input<'_>, node_id: NodeId, access_key: &AccessKey, now: Time) -> [Vec<u8>; 2] {
    let hello = InitiatorHello {
        suites: input.byte(),
        aes_hardware: true,
        unix_seconds: (now.as_nanos() / 1_000_000_000).saturating_sub(u64::from(input.byte())),
    };
    let stranger = SecretIdentity::from_seed([5; 32]);
    let mut rng = ChaCha20Rng::seed_from_u64(u64::from(input.byte()));
    let ephemeral = EphemeralKey::generate(&mut rng);
    let started = Initiator::start(&stranger, node_id, access_key, &ephemeral, &hello, &mut rng);
    started.expect("a valid NodeId").1
}

/// Returns the destination and length of each datagram that the endpoint sends.
fn sent(endpoint: &mut Endpoint, now: Time) -> Vec<(PathAddr, usize)> {
    let mut buf = vec![0; 1 << 16];
    std::iter::from_fn(|| endpoint.poll_transmit(now, &mut buf))
        .map(|transmit| (transmit.to, transmit.len))
        .collect()
}
