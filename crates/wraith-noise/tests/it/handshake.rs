//! The handshake as its two users see it: an endpoint that dials and one that answers.

use std::net::SocketAddr;

use proptest::prelude::*;
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use wraith_noise::*;

struct Dialled {
    initiator: Initiator,
    h1: Vec<u8>,
}

struct Answered {
    responder: Responder,
    hello: InitiatorHello,
    h2: Vec<u8>,
}

fn alice() -> SecretIdentity {
    SecretIdentity::from_seed([0xa; 32])
}

fn bob() -> SecretIdentity {
    SecretIdentity::from_seed([0xb; 32])
}

fn rng(seed: u8) -> ChaCha20Rng {
    ChaCha20Rng::from_seed([seed; 32])
}

fn initiator_hello() -> InitiatorHello {
    InitiatorHello { suites: Suite::ALL, aes_hardware: true, unix_seconds: 1_700_000_000 }
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

fn dial(len: usize, seed: u8) -> Dialled {
    let (initiator, h1) =
        Initiator::start(&alice(), bob().node_id(), &initiator_hello(), len, &mut rng(seed))
            .unwrap();
    Dialled { initiator, h1 }
}

fn answer(h1: &[u8], len: usize, seed: u8) -> Answered {
    let mac1 = Mac1Key::for_responder(bob().node_id());
    let (mut responder, hello) = Responder::read_h1(&bob(), &mac1, h1, &mut rng(seed)).unwrap();
    let h2 = responder.write_h2(&responder_hello(), len);
    Answered { responder, hello, h2 }
}

#[test]
fn both_sides_end_with_the_same_keys_and_know_what_the_other_said() {
    let mut dialled = dial(1000, 1);
    let mut answered = answer(&dialled.h1, 500, 2);
    assert_eq!(answered.hello, initiator_hello());
    assert_eq!(dialled.initiator.read_h2(&answered.h2), Ok(responder_hello()));
    let (h3, keys) = dialled.initiator.write_h3(&final_hello(), 700);
    let (hello, peer_keys) = answered.responder.read_h3(&h3).unwrap();
    assert_eq!(hello, final_hello());
    assert_eq!(keys.send, peer_keys.recv);
    assert_eq!(keys.exporter, peer_keys.exporter);
    assert!(![keys.send.secret, keys.recv.secret].contains(&keys.exporter));
    assert_eq!(keys.recv, peer_keys.send);
    assert_ne!(keys.send.secret, keys.recv.secret);
    assert_ne!(keys.send.cid, keys.recv.cid);
    assert_ne!(keys.send.cid_mask, keys.recv.cid_mask);

    // And a packet goes each way.
    let suite = responder_hello().suite;
    for (sending, receiving) in [(&keys.send, &peer_keys.recv), (&peer_keys.send, &keys.recv)] {
        let mut packet = vec![0x42; 100 + PACKET_OVERHEAD];
        Sealer::new(suite, sending).seal(0, &mut packet);
        let opened = Opener::new(suite, receiving).open(&mut packet).unwrap();
        assert_eq!(packet[HEADER_BYTES..HEADER_BYTES + opened.payload_len], [0x42; 100]);
    }
}

#[test]
fn lengths_are_moved_into_what_the_specification_allows() {
    for (asked, h1_len) in [(0, 900), (900, 900), (1111, 1111), (1200, 1200), (9999, 1200)] {
        let mut dialled = dial(asked, 1);
        assert_eq!(dialled.h1.len(), h1_len);
        for (asked, h2_len) in [
            (0, *H2_BYTES.start()),
            (*H2_BYTES.start(), *H2_BYTES.start()),
            (700, 700),
            (h1_len, h1_len),
            (9999, h1_len),
        ] {
            let answered = answer(&dialled.h1, asked, 2);
            assert_eq!(answered.h2.len(), h2_len, "never longer than H1: no amplification");
        }
        let mut answered = answer(&dialled.h1, 9999, 2);
        dialled.initiator.read_h2(&answered.h2).unwrap();
        let (h3, _) = dialled.initiator.write_h3(&final_hello(), asked / 3);
        assert_eq!(h3.len(), (asked / 3).clamp(300, 1200));
        answered.responder.read_h3(&h3).unwrap();
    }
}

#[test]
fn an_h2_to_any_form_of_h1_is_accepted() {
    for answered in [0, 1, 2] {
        let mut dialled = dial(900, 1);
        let mut forms = vec![dialled.h1.clone()];
        for secret in [1, 2] {
            let last = forms.last().unwrap();
            let cookie = CookieSecret::draw(&mut rng(secret)).cookie(b"where it is");
            assert!(!cookie.verifies(last));
            let datagram = cookie.seal(bob().node_id(), last, &mut rng(3));
            let with_cookie = dialled.initiator.read_cookie(&datagram).unwrap();
            assert!(cookie.verifies(&with_cookie));
            assert_eq!(dialled.initiator.read_cookie(&datagram), None, "nothing new");
            assert_eq!(h1_id(&with_cookie), h1_id(&dialled.h1));
            assert_ne!(with_cookie, *last);
            forms.push(with_cookie);
        }
        let mut answered = answer(&forms[answered], 400, 2);
        dialled.initiator.read_h2(&answered.h2).unwrap();
        let (h3, keys) = dialled.initiator.write_h3(&final_hello(), 400);
        let (_, peer_keys) = answered.responder.read_h3(&h3).unwrap();
        assert_eq!(keys.send, peer_keys.recv);
    }
}

#[test]
fn a_forged_cookie_is_followed_by_the_true_one() {
    let mut dialled = dial(900, 1);
    let truth = CookieSecret::draw(&mut rng(1)).cookie(b"where it is");
    // To each form of H1, from somebody who saw it and knows the NodeId.
    let mut h1 = dialled.h1.clone();
    for forged in 2..5 {
        let lie = CookieSecret::draw(&mut rng(forged)).cookie(b"").seal(
            bob().node_id(),
            &h1,
            &mut rng(9),
        );
        h1 = dialled.initiator.read_cookie(&lie).unwrap();
        assert!(!truth.verifies(&h1));
    }
    let datagram = truth.seal(bob().node_id(), &dialled.h1, &mut rng(9));
    assert!(truth.verifies(&dialled.initiator.read_cookie(&datagram).unwrap()));
}

#[test]
fn an_h2_longer_than_h1_is_rejected() {
    let mut short = dial(900, 1);
    let mut long = answer(&dial(1200, 1).h1, 1200, 2).h2;
    assert_eq!(short.initiator.read_h2(&long), Err(Rejected::Length));
    long.truncate(900);
    assert_eq!(short.initiator.read_h2(&long), Err(Rejected::Mac1));
}

#[test]
fn every_changed_byte_of_h1_is_rejected() {
    let dialled = dial(900, 1);
    let mac1 = Mac1Key::for_responder(bob().node_id());
    for byte in 0..dialled.h1.len() {
        let mut changed = dialled.h1.clone();
        changed[byte] = !changed[byte];
        assert!(!mac1.verifies(&changed));
        let rejected = Responder::read_h1(&bob(), &mac1, &changed, &mut rng(2)).unwrap_err();
        assert_eq!(rejected, Rejected::Mac1, "byte {byte}");
    }
    assert!(mac1.verifies(&dialled.h1));
    answer(&dialled.h1, 300, 2);
}

#[test]
fn every_changed_byte_or_length_of_h2_and_h3_is_rejected_and_the_handshake_still_completes() {
    let mut dialled = dial(900, 1);
    let mut answered = answer(&dialled.h1, 400, 2);
    for byte in 0..answered.h2.len() {
        let mut changed = answered.h2.clone();
        changed[byte] = !changed[byte];
        assert_eq!(dialled.initiator.read_h2(&changed), Err(Rejected::Mac1), "byte {byte}");
        assert!(dialled.initiator.read_h2(&answered.h2[..byte]).is_err());
    }
    assert!(dialled.initiator.read_h2(&dialled.h1).is_err(), "our own H1, reflected");
    dialled.initiator.read_h2(&answered.h2).unwrap();
    assert_eq!(dialled.initiator.read_h2(&answered.h2), Err(Rejected::Unexpected));

    let (h3, keys) = dialled.initiator.write_h3(&final_hello(), 400);
    for byte in 0..h3.len() {
        let mut changed = h3.clone();
        changed[byte] = !changed[byte];
        assert_eq!(answered.responder.read_h3(&changed).unwrap_err(), Rejected::Mac1);
        assert!(answered.responder.read_h3(&h3[..byte]).is_err());
    }
    let (_, peer_keys) = answered.responder.read_h3(&h3).unwrap();
    assert_eq!(keys.send, peer_keys.recv);
}

#[test]
fn h1_for_somebody_else_does_not_pass_mac1() {
    let other = Mac1Key::for_responder(alice().node_id());
    let dialled = dial(900, 1);
    assert!(!other.verifies(&dialled.h1));
    assert_eq!(
        Responder::read_h1(&alice(), &other, &dialled.h1, &mut rng(2)).unwrap_err(),
        Rejected::Mac1
    );
}

#[test]
fn h3_before_h2_is_not_expected() {
    let mac1 = Mac1Key::for_responder(bob().node_id());
    let (mut responder, _) =
        Responder::read_h1(&bob(), &mac1, &dial(900, 1).h1, &mut rng(2)).unwrap();
    assert_eq!(responder.read_h3(&[0; 300]).unwrap_err(), Rejected::Unexpected);
}

#[test]
fn an_answer_in_a_suite_that_was_not_offered_is_rejected() {
    let hello = InitiatorHello { suites: Suite::ChaCha20Poly1305.bit(), ..initiator_hello() };
    let (mut initiator, h1) =
        Initiator::start(&alice(), bob().node_id(), &hello, 900, &mut rng(1)).unwrap();
    let answered = answer(&h1, 400, 2);
    assert_eq!(initiator.read_h2(&answered.h2), Err(Rejected::Malformed));
}

#[test]
fn an_answer_to_another_h1_is_rejected() {
    let mut dialled = dial(900, 1);
    let other = answer(&dial(900, 9).h1, 400, 2);
    assert_eq!(dialled.initiator.read_h2(&other.h2), Err(Rejected::Mac1));
}

#[test]
fn nobody_can_be_dialled_under_an_impossible_node_id() {
    let result = Initiator::start(&alice(), NodeId([0; 32]), &initiator_hello(), 900, &mut rng(1));
    assert_eq!(result.unwrap_err(), InvalidNodeId::Point);
}

#[test]
fn the_same_seeds_give_the_same_bytes_and_other_seeds_give_others() {
    let (one, again, other) = (dial(900, 1), dial(900, 1), dial(900, 7));
    assert_eq!(one.h1, again.h1);
    assert_ne!(one.h1, other.h1);
    assert_eq!(answer(&one.h1, 400, 2).h2, answer(&one.h1, 400, 2).h2);
    assert_ne!(answer(&one.h1, 400, 2).h2, answer(&one.h1, 400, 3).h2);
}

#[test]
fn no_byte_of_h1_h2_or_h3_is_anything_but_random() {
    // 16 bins of the upper and of the lower half of each byte, 15 degrees of freedom: mean 15, deviation 5.5.
    const HANDSHAKES: u32 = 600;
    const BOUND: f64 = 75.0;
    let (h1_len, h2_len, h3_len) = (900, 400, 300);
    let mut counts = vec![[0u32; 32]; h1_len + h2_len + h3_len];
    let mut seeds = rng(42);
    let mut seeded = || {
        let mut seed = [0; 32];
        seeds.fill_bytes(&mut seed);
        ChaCha20Rng::from_seed(seed)
    };
    let (alice, bob) = (alice(), bob());
    let mac1 = Mac1Key::for_responder(bob.node_id());
    for _ in 0..HANDSHAKES {
        let (mut initiator, h1) =
            Initiator::start(&alice, bob.node_id(), &initiator_hello(), h1_len, &mut seeded())
                .unwrap();
        let (mut responder, _) = Responder::read_h1(&bob, &mac1, &h1, &mut seeded()).unwrap();
        let h2 = responder.write_h2(&responder_hello(), h2_len);
        initiator.read_h2(&h2).unwrap();
        let (h3, _) = initiator.write_h3(&final_hello(), h3_len);
        for (counts, byte) in counts.iter_mut().zip([h1, h2, h3].concat()) {
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
        let mac1 = Mac1Key::for_responder(bob().node_id());
        prop_assert!(!mac1.verifies(&garbage));
        prop_assert!(Responder::read_h1(&bob(), &mac1, &garbage, &mut rng(3)).is_err());
        let mut dialled = dial(900, 1);
        let mut answered = answer(&dialled.h1, 400, 2);
        prop_assert!(dialled.initiator.read_h2(&garbage).is_err());
        prop_assert!(dialled.initiator.read_h2(&answered.h2).is_ok());
        prop_assert!(answered.responder.read_h3(&garbage).is_err());
        let (h3, _) = dialled.initiator.write_h3(&final_hello(), 400);
        prop_assert!(answered.responder.read_h3(&h3).is_ok());
    }
}
