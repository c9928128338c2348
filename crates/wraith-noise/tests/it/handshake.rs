//! The handshake as its two users see it: an endpoint that initiates and one that responds.

use std::net::SocketAddr;

use proptest::prelude::*;
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use wraith_crypto::kdf;
use wraith_noise::*;

use crate::parties::{access_key, alice, bob};

struct Dialled {
    initiator: Initiator,
    h1: [Vec<u8>; 2],
}

struct Answered {
    responder: Responder,
    hello: InitiatorHello,
    h2: [Vec<u8>; 2],
}

fn rng(seed: u8) -> ChaCha20Rng {
    ChaCha20Rng::from_seed([seed; 32])
}

fn initiator_hello() -> InitiatorHello {
    InitiatorHello {
        suites: Policy::Default.packet_suites(),
        aes_hardware: true,
        unix_seconds: 1_700_000_000,
    }
}

fn responder_hello() -> ResponderHello {
    ResponderHello {
        suite: Suite::Aes256Gcm,
        observed: SocketAddr::from(([192, 0, 2, 1], 4711)),
        parameters: Parameters { initial_max_data: 1 << 20, ..Parameters::default() },
    }
}

fn final_hello() -> FinalHello {
    let parameters = Parameters { initial_max_streams: 100, ..Parameters::default() };
    FinalHello { node_id: alice().node_id(), parameters }
}

fn start(
    responder: NodeId,
    hello: &InitiatorHello,
    seed: u8,
) -> Result<(Initiator, [Vec<u8>; 2]), InvalidNodeId> {
    let mut rng = rng(seed);
    let ephemeral = EphemeralKey::generate(&mut rng);
    Initiator::start(&alice(), responder, &access_key(), &ephemeral, hello, &mut rng)
}

fn dial(seed: u8) -> Dialled {
    let (initiator, h1) = start(bob().node_id(), &initiator_hello(), seed).unwrap();
    Dialled { initiator, h1 }
}

fn dial_short(seed: u8) -> Dialled {
    let (mut rng, bob, hello) = (rng(seed), bob().node_id(), initiator_hello());
    let ephemeral = EphemeralKey::generate(&mut rng);
    let started =
        Initiator::start_short(&alice(), bob, &access_key(), &ephemeral, &hello, &mut rng);
    let (initiator, h1) = started.unwrap();
    Dialled { initiator, h1 }
}

fn read_h1(h1: &[Vec<u8>; 2], seed: u8) -> Result<(Responder, InitiatorHello), HandshakeError> {
    let mut rng = rng(seed);
    let ephemeral = EphemeralKey::generate(&mut rng);
    let first = PendingH1::new(&access_key(), &h1[0])?;
    Responder::read_h1(&bob(), &first, &h1[1], &ephemeral, &mut rng)
}

fn answer(h1: &[Vec<u8>; 2], seed: u8) -> Answered {
    let (mut responder, hello) = read_h1(h1, seed).unwrap();
    let h2 = responder.write_h2(&responder_hello(), &mut rng(seed + 100)).unwrap();
    Answered { responder, hello, h2 }
}

/// Reads both datagrams of an H2, in order.
fn read_h2(initiator: &mut Initiator, h2: &[Vec<u8>; 2]) -> Result<ResponderHello, HandshakeError> {
    assert_eq!(initiator.read_h2(&h2[0])?, None);
    Ok(initiator.read_h2(&h2[1])?.expect("both are here"))
}

#[test]
fn both_sides_end_with_the_same_keys_and_know_what_the_other_said() {
    let mut dialled = dial(1);
    let mut answered = answer(&dialled.h1, 2);
    assert_eq!(answered.hello, initiator_hello());
    assert_eq!(read_h2(&mut dialled.initiator, &answered.h2), Ok(responder_hello()));
    let (h3, keys) = dialled.initiator.write_h3(&final_hello(), &mut rng(3));
    let (hello, peer_keys) = answered.responder.read_h3(&h3).unwrap();
    assert_eq!(hello, final_hello());
    assert_eq!(keys.send, peer_keys.recv);
    assert_eq!(keys.exporter, peer_keys.exporter);
    assert!(![keys.send.secret, keys.recv.secret].contains(&keys.exporter));
    assert_eq!(keys.recv, peer_keys.send);
    assert_ne!(keys.send.secret, keys.recv.secret);
    assert_ne!(keys.send.cid, keys.recv.cid);
    assert_ne!(keys.send.cid_mask, keys.recv.cid_mask);

    // One packet in each direction.
    let suite = responder_hello().suite;
    for (sending, receiving) in [(&keys.send, &peer_keys.recv), (&peer_keys.send, &keys.recv)] {
        let mut packet = vec![0x42; 100 + PACKET_OVERHEAD];
        Sealer::new(suite, sending).seal(0, &mut packet);
        let opened = Opener::new(suite, receiving).open(&mut packet).unwrap();
        assert_eq!(packet[HEADER_BYTES..HEADER_BYTES + opened.payload_len], [0x42; 100]);
    }
}

#[test]
fn the_datagrams_of_h2_come_in_any_order_and_any_number() {
    for order in [vec![0, 1], vec![1, 0], vec![0, 0, 1], vec![1, 1, 1, 0]] {
        let mut dialled = dial(1);
        let mut answered = answer(&dialled.h1, 2);
        let (last, others) = order.split_last().unwrap();
        for part in others {
            assert_eq!(dialled.initiator.read_h2(&answered.h2[*part]), Ok(None));
        }
        let hello = dialled.initiator.read_h2(&answered.h2[*last]);
        assert_eq!(hello, Ok(Some(responder_hello())));
        let (h3, _) = dialled.initiator.write_h3(&final_hello(), &mut rng(3));
        answered.responder.read_h3(&h3).unwrap();
    }
}

#[test]
fn of_two_answers_to_one_h1_either_may_be_taken() {
    // A copy of H1 from elsewhere is also answered. Both answers may reach the initiator,
    // interleaved.
    let mut dialled = dial(1);
    let (one, mut other) = (answer(&dialled.h1, 2), answer(&dialled.h1, 3));
    assert_ne!(one.h2, other.h2);
    assert_eq!(dialled.initiator.read_h2(&one.h2[0]), Ok(None));
    assert_eq!(dialled.initiator.read_h2(&other.h2[1]), Err(HandshakeError::Unauthentic));
    assert_eq!(dialled.initiator.read_h2(&other.h2[0]), Ok(Some(responder_hello())));
    let (h3, keys) = dialled.initiator.write_h3(&final_hello(), &mut rng(3));
    let mut one = one.responder;
    assert_eq!(one.read_h3(&h3).unwrap_err(), HandshakeError::Mac1);
    assert_eq!(other.responder.read_h3(&h3).unwrap().1.recv, keys.send);
}

#[test]
fn lengths_are_drawn_and_no_datagram_of_h2_is_longer_than_its_counterpart() {
    let mut lens = std::collections::HashSet::new();
    for seed in 0..60 {
        let mut dialled = dial(seed);
        let mut answered = answer(&dialled.h1, seed + 60);
        for (h1, h2) in dialled.h1.iter().zip(&answered.h2) {
            assert!(H1_BYTES.contains(&h1.len()));
            assert!((H2_BYTES_MIN..=h1.len()).contains(&h2.len()));
            lens.extend([h1.len(), h2.len()]);
        }
        read_h2(&mut dialled.initiator, &answered.h2).unwrap();
        let (h3, _) = dialled.initiator.write_h3(&final_hello(), &mut rng(seed));
        assert!(H3_BYTES.contains(&h3.len()));
        lens.insert(h3.len());
        answered.responder.read_h3(&h3).unwrap();
    }
    assert!(lens.len() > 200, "{} lengths of 300 datagrams", lens.len());
}

#[test]
fn an_h2_to_any_form_of_h1_is_accepted() {
    for answered in [0, 1, 2] {
        let mut dialled = dial(1);
        let mut forms = vec![dialled.h1.clone()];
        for secret in [1, 2] {
            let last = forms.last().unwrap();
            let cookie = CookieSecret::draw(&mut rng(secret)).cookie(b"where it is");
            assert!(!cookie.verifies(&last[0]));
            let datagram = cookie.seal(&access_key(), &last[0], &mut rng(3));
            let with_cookie = dialled.initiator.read_cookie(&datagram).unwrap();
            assert!(cookie.verifies(&with_cookie[0]));
            assert_eq!(dialled.initiator.read_cookie(&datagram), None, "nothing new");
            assert_eq!(h1_id(&with_cookie[0]), h1_id(&dialled.h1[0]));
            assert_ne!(with_cookie[0], last[0]);
            assert_eq!(with_cookie[1], last[1]);
            forms.push(with_cookie);
        }
        let mut answered = answer(&forms[answered], 2);
        read_h2(&mut dialled.initiator, &answered.h2).unwrap();
        let (h3, keys) = dialled.initiator.write_h3(&final_hello(), &mut rng(3));
        let (_, peer_keys) = answered.responder.read_h3(&h3).unwrap();
        assert_eq!(keys.send, peer_keys.recv);
    }
}

#[test]
fn a_forged_cookie_is_followed_by_the_true_one() {
    let mut dialled = dial(1);
    let truth = CookieSecret::draw(&mut rng(1)).cookie(b"where it is");
    // A forgery for each form of H1, by an attacker that saw it and has the access key.
    let mut h1 = dialled.h1.clone();
    for forged in 2..5 {
        let lie = CookieSecret::draw(&mut rng(forged)).cookie(b"");
        let lie = lie.seal(&access_key(), &h1[0], &mut rng(9));
        h1 = dialled.initiator.read_cookie(&lie).unwrap();
        assert!(!truth.verifies(&h1[0]));
    }
    let datagram = truth.seal(&access_key(), &dialled.h1[0], &mut rng(9));
    assert!(truth.verifies(&dialled.initiator.read_cookie(&datagram).unwrap()[0]));
}

#[test]
fn every_changed_byte_of_h1_is_rejected() {
    let dialled = dial(1);
    for part in 0..2 {
        for byte in 0..dialled.h1[part].len() {
            let mut changed = dialled.h1.clone();
            changed[part][byte] = !changed[part][byte];
            assert_eq!(read_h1(&changed, 2).unwrap_err(), HandshakeError::Mac1, "byte {byte}");
        }
    }
    answer(&dialled.h1, 2);
}

#[test]
fn an_h1_changed_by_somebody_who_has_the_access_key_is_rejected() {
    let dialled = dial(1);
    let macs = MAC1_BYTES + MAC2_BYTES;
    let resealed = |h1: &mut [Vec<u8>; 2]| {
        // The mac1 values, computed from their definition in the specification.
        let key = kdf::derive_parts(
            "wraith/2 door of a ticket",
            &[&[0xd; 16], bob().node_id().as_bytes()],
        );
        let message = h1[0].len() - macs;
        let first = kdf::hash(&h1[0][..message]);
        let second = kdf::derive_parts("wraith/2 gate 1, second datagram", &[&key, &first]);
        for (datagram, key) in h1.iter_mut().zip([kdf::derive("wraith/2 gate 1", &key), second]) {
            let rest = datagram.len() - MAC1_BYTES;
            let value = kdf::keyed(&key, &kdf::hash(&datagram[..rest]));
            datagram[rest..].copy_from_slice(&value[..MAC1_BYTES]);
        }
    };
    let mut same = dialled.h1.clone();
    resealed(&mut same);
    assert_eq!(same, dialled.h1);
    // Covers the spare bits of the representative and every other byte of the message.
    for part in 0..2 {
        for byte in 0..dialled.h1[part].len() - [macs, MAC1_BYTES][part] {
            let mut changed = dialled.h1.clone();
            changed[part][byte] ^= 0x80;
            resealed(&mut changed);
            assert_eq!(
                read_h1(&changed, 2).unwrap_err(),
                HandshakeError::Unauthentic,
                "byte {byte}"
            );
            let named = |h1: &[u8]| PendingH1::new(&access_key(), h1).unwrap().ephemeral_id();
            let is_spare = part == 0 && byte == 31;
            if part == 0 && byte < 32 {
                assert_eq!(named(&changed[0]) == named(&dialled.h1[0]), is_spare, "byte {byte}");
            }
        }
    }
}

#[test]
fn every_changed_byte_or_length_of_h2_and_h3_is_rejected_and_the_handshake_still_completes() {
    let mut dialled = dial(1);
    let mut answered = answer(&dialled.h1, 2);
    for part in 0..2 {
        for byte in 0..answered.h2[part].len() {
            let mut changed = answered.h2[part].clone();
            changed[byte] = !changed[byte];
            assert_eq!(
                dialled.initiator.read_h2(&changed),
                Err(HandshakeError::Mac1),
                "byte {byte}"
            );
            assert!(dialled.initiator.read_h2(&answered.h2[part][..byte]).is_err());
        }
    }
    for h1 in &dialled.h1 {
        assert!(dialled.initiator.read_h2(h1).is_err(), "our own H1, reflected");
    }
    read_h2(&mut dialled.initiator, &answered.h2).unwrap();
    assert_eq!(dialled.initiator.read_h2(&answered.h2[0]), Err(HandshakeError::Unexpected));

    let (h3, keys) = dialled.initiator.write_h3(&final_hello(), &mut rng(3));
    for byte in 0..h3.len() {
        let mut changed = h3.clone();
        changed[byte] = !changed[byte];
        assert_eq!(answered.responder.read_h3(&changed).unwrap_err(), HandshakeError::Mac1);
        assert!(answered.responder.read_h3(&h3[..byte]).is_err());
    }
    let (_, peer_keys) = answered.responder.read_h3(&h3).unwrap();
    assert_eq!(keys.send, peer_keys.recv);
    assert_eq!(answered.responder.read_h3(&h3).unwrap_err(), HandshakeError::Unexpected);
}

#[test]
fn an_h1_with_another_access_key_is_rejected() {
    let dialled = dial(1);
    let invited = Mac1Datagram::of(&dialled.h1[0]).unwrap();
    assert!(access_key().accepts(&invited));
    let bob = bob().node_id();
    for other in [
        AccessKey::public(bob),
        AccessKey::of_ticket(&[0xe; 16], bob),
        AccessKey::of_ticket(&[0xd; 16], alice().node_id()),
        AccessKey::of_pair(&[0xd; 32], bob),
    ] {
        assert!(!other.accepts(&invited));
        assert_eq!(PendingH1::new(&other, &dialled.h1[0]).unwrap_err(), HandshakeError::Mac1);
    }
}

#[test]
fn h3_before_h2_is_not_expected() {
    let (mut responder, _) = read_h1(&dial(1).h1, 2).unwrap();
    assert_eq!(responder.read_h3(&[0; 300]).unwrap_err(), HandshakeError::Unexpected);
}

#[test]
fn the_second_datagram_of_another_h1_is_rejected() {
    let (one, other) = (dial(1), dial(2));
    let mixed = [one.h1[0].clone(), other.h1[1].clone()];
    assert_eq!(read_h1(&mixed, 2).unwrap_err(), HandshakeError::Mac1);
}

#[test]
fn an_answer_in_a_suite_that_was_not_offered_is_rejected() {
    let hello = InitiatorHello { suites: Suite::ChaCha20Poly1305.bit(), ..initiator_hello() };
    let (mut initiator, h1) = start(bob().node_id(), &hello, 1).unwrap();
    let answered = answer(&h1, 2);
    assert_eq!(read_h2(&mut initiator, &answered.h2), Err(HandshakeError::Malformed));
}

#[test]
fn an_answer_to_another_h1_is_rejected() {
    let mut dialled = dial(1);
    let other = answer(&dial(9).h1, 2);
    assert!(other.h2.iter().all(|h2| dialled.initiator.read_h2(h2).is_err()));
}

#[test]
fn nobody_can_be_dialled_under_an_impossible_node_id() {
    let result = start(NodeId([0; 32]), &initiator_hello(), 1);
    assert_eq!(result.unwrap_err(), InvalidNodeId::Point);
}

#[test]
fn a_node_id_of_another_key_is_rejected() {
    let other = SecretIdentity::from_seed([77; 32]).node_id();
    for node_id in [other, NodeId([0; 32]), NodeId([0xff; 32])] {
        let mut dialled = dial(1);
        let mut answered = answer(&dialled.h1, 2);
        read_h2(&mut dialled.initiator, &answered.h2).unwrap();
        let hello = FinalHello { node_id, ..final_hello() };
        let (h3, _) = dialled.initiator.write_h3(&hello, &mut rng(3));
        assert_eq!(answered.responder.read_h3(&h3).unwrap_err(), HandshakeError::Identity);
    }
}

#[test]
fn handshakes_may_move_between_threads() {
    fn assert_send<T: Send>() {}
    assert_send::<Initiator>();
    assert_send::<Responder>();
}

#[test]
fn the_same_seeds_give_the_same_bytes_and_other_seeds_give_others() {
    let (one, again, other) = (dial(1), dial(1), dial(7));
    assert_eq!(one.h1, again.h1);
    assert_ne!(one.h1, other.h1);
    assert_eq!(answer(&one.h1, 2).h2, answer(&one.h1, 2).h2);
    assert_ne!(answer(&one.h1, 2).h2, answer(&one.h1, 3).h2);
}

#[test]
fn no_byte_of_h1_h2_or_h3_is_anything_but_random() {
    // 16 bins for the upper and for the lower half of each byte, 15 degrees of freedom: mean 15,
    // standard deviation 5.5.
    const HANDSHAKES: u32 = 600;
    const BOUND: f64 = 75.0;
    // Least lengths of the datagrams: every handshake has these bytes.
    let lens = [700, 700, H2_BYTES_MIN, H2_BYTES_MIN, 300];
    let mut counts = vec![[0u32; 32]; lens.iter().sum()];
    for i in 0..HANDSHAKES {
        let mut rng = ChaCha20Rng::seed_from_u64(i.into());
        let mut keys = [(); 2].map(|()| EphemeralKey::generate(&mut rng));
        rng.fill_bytes(&mut [0; 7]);
        keys.reverse();
        let [ours, theirs] = keys;
        let hello = initiator_hello();
        let (mut initiator, h1) =
            Initiator::start(&alice(), bob().node_id(), &access_key(), &ours, &hello, &mut rng)
                .unwrap();
        let first = PendingH1::new(&access_key(), &h1[0]).unwrap();
        let (mut responder, _) =
            Responder::read_h1(&bob(), &first, &h1[1], &theirs, &mut rng).unwrap();
        let h2 = responder.write_h2(&responder_hello(), &mut rng).unwrap();
        read_h2(&mut initiator, &h2).unwrap();
        let (h3, _) = initiator.write_h3(&final_hello(), &mut rng);
        let bytes = h1.iter().chain(&h2).chain([&h3]).zip(lens).flat_map(|(d, len)| &d[..len]);
        for (counts, byte) in counts.iter_mut().zip(bytes) {
            counts[usize::from(byte >> 4)] += 1;
            counts[16 + usize::from(byte & 15)] += 1;
        }
    }
    let expected = f64::from(HANDSHAKES) / 16.0;
    for (position, counts) in counts.iter().enumerate() {
        for half in counts.chunks(16) {
            let statistic: f64 =
                half.iter().map(|&n| (f64::from(n) - expected).powi(2) / expected).sum();
            assert!(statistic < BOUND, "byte {position} of H1, H2, H3 in a row: {statistic}");
        }
    }
}

proptest! {
    #[test]
    fn garbage_never_panics_and_never_stops_a_handshake(
        garbage in prop::collection::vec(any::<u8>(), 0..1400),
    ) {
        if let Some(datagram) = Mac1Datagram::of(&garbage) {
            prop_assert!(!access_key().accepts(&datagram));
        }
        prop_assert!(PendingH1::new(&access_key(), &garbage).is_err());
        let mut dialled = dial(1);
        prop_assert!(read_h1(&[dialled.h1[0].clone(), garbage.clone()], 2).is_err());
        let mut answered = answer(&dialled.h1, 2);
        prop_assert!(dialled.initiator.read_h2(&garbage).is_err());
        prop_assert!(read_h2(&mut dialled.initiator, &answered.h2).is_ok());
        prop_assert!(answered.responder.read_h3(&garbage).is_err());
        let (h3, _) = dialled.initiator.write_h3(&final_hello(), &mut rng(3));
        prop_assert!(answered.responder.read_h3(&h3).is_ok());
    }
}

#[test]
fn no_datagram_of_a_handshake_with_a_short_h1_is_longer_than_a_short_h1() {
    for seed in 0..60 {
        let mut dialled = dial_short(seed);
        let mut answered = answer(&dialled.h1, seed + 60);
        read_h2(&mut dialled.initiator, &answered.h2).unwrap();
        let (h3, _) = dialled.initiator.write_h3(&final_hello(), &mut rng(seed));
        let datagrams = dialled.h1.iter().chain(&answered.h2).chain([&h3]);
        assert!(datagrams.map(Vec::len).max() <= Some(*H1_BYTES_SHORT.end()));
        assert!(dialled.initiator.h1_bytes_max() <= *H1_BYTES_SHORT.end());
        assert_eq!(answered.responder.h1_bytes_max(), dialled.initiator.h1_bytes_max());
        answered.responder.read_h3(&h3).unwrap();
    }
}
