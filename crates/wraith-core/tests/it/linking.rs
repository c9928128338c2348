//! Linkability of packets: the two ends of a connection recognise its packets from any address, and
//! no other host can.

use std::collections::HashSet;

use bytes::Bytes;
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use wraith_core::{Event, PathAddr, TransportConfig};
use wraith_crypto::MaskKey;
use wraith_crypto::identity::SecretIdentity;
use wraith_noise::{
    AccessKey, EphemeralKey, FinalHello, Initiator, InitiatorHello, PACKET_BYTES_MIN, Parameters,
    Policy, Sealer, SessionKeys,
};

use crate::pair::{Pair, ip};

/// The initiator's address, and the address it moves to.
const HERE: ([u8; 4], u16) = ([127, 0, 0, 1], 1000);
const ELSEWHERE: ([u8; 4], u16) = ([127, 0, 0, 77], 7);
/// Address of an attacker with a connection to the same endpoint.
const ATTACKER: ([u8; 4], u16) = ([192, 0, 2, 9], 9);

fn connected() -> Pair {
    let mut pair = Pair::new(TransportConfig::default());
    pair.connect();
    pair.run_until(|p| [0, 1].iter().all(|side| p.handle(*side).is_some()));
    pair
}

/// Writes `bytes` bytes on a new stream of the initiator.
fn write(pair: &mut Pair, bytes: usize) {
    let handle = pair.handle(0).unwrap();
    let connection = pair.sides[0].endpoint.connection(handle).unwrap();
    let id = connection.open_stream().unwrap();
    connection.write(id, Bytes::from(vec![7; bytes])).unwrap();
}

/// Returns the keys of an attacker's connection to the responder, and packets that it sends.
fn connection_of_attacker(pair: &mut Pair) -> (SessionKeys, Vec<Vec<u8>>) {
    let mut rng = ChaCha20Rng::from_seed([3; 32]);
    let attacker = SecretIdentity::from_seed([9; 32]);
    let (now, from) = (pair.now, ip(ATTACKER.0, ATTACKER.1));
    let endpoint = &mut pair.sides[1].endpoint;
    let mut buf = vec![0; 65_536];
    while endpoint.poll_transmit(now, &mut buf).is_some() {}
    let unix_seconds = now.as_nanos() / 1_000_000_000;
    let hello = InitiatorHello {
        suites: Policy::Default.packet_suites(),
        aes_hardware: true,
        unix_seconds,
    };
    let responder = SecretIdentity::from_seed([2; 32]).node_id();
    let (ephemeral, access_key) = (EphemeralKey::generate(&mut rng), AccessKey::public(responder));
    let (mut initiator, h1) =
        Initiator::start(&attacker, responder, &access_key, &ephemeral, &hello, &mut rng).unwrap();
    for mut datagram in h1 {
        endpoint.handle_datagram(now, from, None, &mut datagram);
    }
    let mut read = || {
        let h2 = endpoint.poll_transmit(now, &mut buf).expect("H1 is answered");
        initiator.read_h2(&buf[..h2.len]).unwrap()
    };
    assert_eq!(read(), None);
    let theirs = read().expect("both datagrams");
    let last = FinalHello { node_id: attacker.node_id(), parameters: Parameters::default() };
    let (mut h3, keys) = initiator.write_h3(&last, &mut rng);
    endpoint.handle_datagram(now, from, None, &mut h3);
    let connected = |(_, event)| event == Event::Connected;
    assert!(std::iter::from_fn(|| endpoint.poll_event()).any(connected));
    let mut sealer = Sealer::new(theirs.suite, &keys.send);
    let packets = (0..20).map(|pn| {
        let mut packet = vec![0; 100];
        sealer.seal(pn, &mut packet);
        packet
    });
    let packets = packets.collect();
    (keys, packets)
}

/// Unmasks the connection IDs of `packets` with `key`. The right key yields one ID, any other key
/// random values.
fn unmasked(key: [u8; 32], packets: &[Vec<u8>]) -> HashSet<[u8; 8]> {
    let key = MaskKey::new(key);
    let unmask = |packet: &Vec<u8>| {
        let mask = key.mask(packet.last_chunk().unwrap());
        std::array::from_fn(|i| packet[i] ^ mask[i])
    };
    packets.iter().map(unmask).collect()
}

#[test]
fn another_peer_cannot_recognise_packets_of_a_connection() {
    let mut pair = connected();
    pair.watched = true;
    let (here, elsewhere) = (ip(HERE.0, HERE.1), ip(ELSEWHERE.0, ELSEWHERE.1));
    write(&mut pair, 20_000);
    for _ in 0..100 {
        pair.step();
    }
    pair.sides[0].address = elsewhere;
    write(&mut pair, 20_000);
    let moved = Event::PathChanged { remote: elsewhere };
    pair.run_until(|p| p.sides[1].events.iter().any(|(_, event)| *event == moved));
    let responder = pair.sides[1].address;
    let sent_from = |at: &dyn Fn(PathAddr) -> bool| -> Vec<Vec<u8>> {
        pair.seen.iter().filter(|(from, _)| at(*from)).map(|(_, packet)| packet.clone()).collect()
    };
    let [before, after] = [here, elsewhere].map(|address| sent_from(&|from| from == address));
    assert!(before.len() > 10 && after.len() > 2, "{} and {}", before.len(), after.len());
    let directions = [[before, after].concat(), sent_from(&|from| from == responder)];

    let (keys, own) = connection_of_attacker(&mut pair);
    assert_eq!(unmasked(keys.send.cid_mask, &own).len(), 1, "whoever has the key links them");
    for packets in directions {
        let values = |key| unmasked(key, &packets).len();
        for key in [&keys.send, &keys.recv] {
            assert_eq!(values(key.cid_mask), packets.len());
            assert_eq!(values(key.pn_mask), packets.len());
        }
        let shown: HashSet<_> = packets.iter().map(|packet| packet[..8].to_vec()).collect();
        assert_eq!(shown.len(), packets.len(), "what is on the wire in its place");
    }
}

/// Returns the next packet of the initiator.
fn packet(pair: &mut Pair) -> Vec<u8> {
    write(pair, 10);
    let mut buf = vec![0; 65_536];
    let len = pair.sides[0].endpoint.poll_transmit(pair.now, &mut buf).expect("a packet").len;
    buf.truncate(len);
    buf
}

/// Returns true if the responder accepts the datagram.
fn takes(pair: &mut Pair, from: ([u8; 4], u16), mut datagram: Vec<u8>) -> bool {
    let Pair { now, sides: [_, responder], .. } = pair;
    let dropped = responder.endpoint.datagrams_dropped();
    responder.endpoint.handle_datagram(*now, ip(from.0, from.1), None, &mut datagram);
    responder.endpoint.datagrams_dropped() == dropped
}

#[test]
fn a_flood_delays_only_migrating_peers() {
    let mut pair = connected();
    let mut rng = ChaCha20Rng::from_seed([4; 32]);
    let first = packet(&mut pair);
    assert!(takes(&mut pair, HERE, first));
    for i in 0..50_000_u32 {
        let mut datagram = vec![0; PACKET_BYTES_MIN + i as usize % 100];
        rng.fill_bytes(&mut datagram);
        let [_, a, b, c] = i.to_be_bytes();
        assert!(!takes(&mut pair, ([10, a, b, c], 1), datagram));
    }
    let early = packet(&mut pair);
    assert!(!takes(&mut pair, ELSEWHERE, early.clone()), "nothing is left to find it with");
    let next = packet(&mut pair);
    assert!(takes(&mut pair, HERE, next), "there is nothing to be found");
    pair.now += std::time::Duration::from_millis(1);
    assert!(takes(&mut pair, ELSEWHERE, early), "the flood is over");
    // From then on, the new address is known too, however many datagrams arrive.
    for i in 0..50_000_u32 {
        let [_, a, b, c] = i.to_be_bytes();
        assert!(!takes(&mut pair, ([10, a, b, c], 1), vec![0; 100]));
    }
    for from in [ELSEWHERE, HERE, ELSEWHERE] {
        let next = packet(&mut pair);
        assert!(takes(&mut pair, from, next));
    }
}
