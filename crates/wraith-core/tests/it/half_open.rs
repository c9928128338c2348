//! Limits on an attacker with an access key that begins handshakes without end: it gets no more
//! than its share.

use std::time::Duration;

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use wraith_core::{
    AccessKey, Endpoint, EndpointConfig, Entropy, Event, PathAddr, Time, TransportConfig,
};
use wraith_crypto::identity::{NodeId, SecretIdentity};
use wraith_crypto::kdf;
use wraith_noise::{CookieSecret, MAC1_BYTES, MAC2_BYTES};

use crate::counting::bytes_held;
use crate::pair::{ip, moves, side};

/// Maximum number of half-open handshakes per source.
const OF_ONE_SOURCE: usize = 16;
/// Time of an initiator's first retransmission of H1.
const REPEATED: Duration = Duration::from_millis(250);
const REPEATED_AT: Time = Time::from_nanos(250_000_000);

pub(crate) fn responder_id() -> NodeId {
    SecretIdentity::from_seed([2; 32]).node_id()
}

pub(crate) fn access_key() -> AccessKey {
    AccessKey::of_ticket(&[7; 16], responder_id())
}

pub(crate) fn responder(change: impl FnOnce(&mut EndpointConfig)) -> Endpoint {
    let mut config = EndpointConfig::new(SecretIdentity::from_seed([2; 32]));
    config.door.access_keys = vec![access_key()];
    change(&mut config);
    Endpoint::new(config, [2; 32])
}

/// Returns an initiator and its H1; they differ by seed.
pub(crate) fn initiator(seed: u8) -> (Endpoint, H1) {
    let mut initiator = side(seed, TransportConfig::default()).endpoint;
    initiator.connect(Time::ZERO, ip([127, 0, 0, 2], 1000), responder_id(), &access_key()).unwrap();
    let h1 = h1_of(&mut initiator, Time::ZERO);
    (initiator, h1)
}

/// The two datagrams of an H1 or an H2.
pub(crate) type H1 = Vec<Vec<u8>>;

/// Returns the H1 that `initiator` sends now.
fn h1_of(initiator: &mut Endpoint, now: Time) -> H1 {
    let h1: H1 = sent(initiator, now).into_iter().map(|(_, datagram)| datagram).collect();
    assert_eq!(h1.len(), 2, "H1, and nothing else");
    h1
}

pub(crate) fn h1(seed: u8) -> H1 {
    initiator(seed).1
}

/// Returns all pending datagrams of `endpoint`.
pub(crate) fn sent(endpoint: &mut Endpoint, now: Time) -> Vec<(PathAddr, Vec<u8>)> {
    let mut buf = vec![0; 65536];
    let next = || endpoint.poll_transmit(now, &mut buf).map(|t| (t.to, buf[..t.len].to_vec()));
    std::iter::from_fn(next).collect()
}

/// Returns the answer of `endpoint` to these datagrams: none, a cookie, or the two of H2.
pub(crate) fn answer(
    endpoint: &mut Endpoint,
    now: Time,
    from: PathAddr,
    h1: &H1,
) -> Option<Vec<Vec<u8>>> {
    let mut answers = Vec::new();
    for (part, datagram) in h1.iter().enumerate() {
        endpoint.handle_datagram(now, from, None, &mut datagram.clone());
        let answered = sent(endpoint, now);
        assert!(answered.iter().all(|(to, _)| *to == from));
        assert!(
            part == 1 || answered.len() <= 1,
            "the first brings a cookie at most, or what it brought before"
        );
        answers.extend(answered.into_iter().map(|(_, bytes)| bytes));
    }
    let bytes = |datagrams: &[Vec<u8>]| datagrams.iter().map(Vec::len).sum::<usize>();
    assert!(bytes(&answers) <= bytes(h1), "no amplification");
    (!answers.is_empty()).then_some(answers)
}

pub(crate) fn hear(initiator: &mut Endpoint, now: Time, answer: &[Vec<u8>]) {
    for datagram in answer {
        initiator.handle_datagram(now, ip([127, 0, 0, 2], 1000), None, &mut datagram.clone());
    }
}

/// Completes the handshake of `initiator` at `here` with this H2. Returns whether it is connected.
fn completes(
    initiator: &mut Endpoint,
    responder: &mut Endpoint,
    now: Time,
    here: PathAddr,
    h2: &[Vec<u8>],
) -> bool {
    hear(initiator, now, h2);
    for (_, mut datagram) in sent(initiator, now) {
        responder.handle_datagram(now, here, None, &mut datagram);
    }
    is_connected(responder)
}

/// Returns the H2 that answers the H1 of this seed, or `None`, also if a cookie is demanded.
fn h2(endpoint: &mut Endpoint, now: Time, from: PathAddr, seed: u8) -> Option<Vec<Vec<u8>>> {
    let (mut initiator, h1) = initiator(seed);
    let h2 = answer(endpoint, now, from, &h1)?;
    hear(&mut initiator, now, &h2);
    is_connected(&mut initiator).then_some(h2)
}

/// Returns the H1 that an initiator sends after the cookie in `answer`.
fn with_cookie(initiator: &mut Endpoint, now: Time, answer: &[Vec<u8>]) -> H1 {
    hear(initiator, now, answer);
    h1_of(initiator, now)
}

/// Begins the handshake of this seed with a cookie: the endpoint is under load.
fn begins_with_cookie(endpoint: &mut Endpoint, now: Time, from: PathAddr, seed: u8) -> bool {
    let (mut initiator, h1) = initiator(seed);
    let cookie = answer(endpoint, now, from, &h1).expect("it is asked for a cookie");
    let h1 = with_cookie(&mut initiator, now, &cookie);
    let Some(h2) = answer(endpoint, now, from, &h1) else { return false };
    hear(&mut initiator, now, &h2);
    is_connected(&mut initiator)
}

/// Puts `endpoint` under load: unproven initiators take half of its places.
fn load(endpoint: &mut Endpoint, now: Time, places: u8) {
    for i in 0..places / 2 {
        assert!(h2(endpoint, now, ip([10, 1, 1, i], 1), 100 + i).is_some());
    }
}

pub(crate) fn is_connected(endpoint: &mut Endpoint) -> bool {
    std::iter::from_fn(|| endpoint.poll_event()).any(|(_, event)| event == Event::Connected)
}

#[test]
fn handshakes_under_way_are_bounded_for_each_source_of_either_kind() {
    for [from, elsewhere] in moves() {
        let mut responder = responder(|_| {});
        let mut answered = |from, seeds: std::ops::Range<u8>| {
            seeds.filter(|seed| h2(&mut responder, Time::ZERO, from, *seed).is_some()).count()
        };
        assert_eq!(answered(from, 10..40), OF_ONE_SOURCE);
        assert_eq!(answered(elsewhere, 40..44), 4, "another address has room of its own");
    }
}

#[test]
fn another_port_or_another_address_of_the_same_64_is_no_other_source() {
    let v4 = |i: u8| ip([192, 0, 2, 1], 1000 + u16::from(i));
    let v6 = |i: u8| {
        let address = format!("[2001:db8:1:2:{i}::{i}]:{i}").parse::<std::net::SocketAddr>();
        PathAddr::from(address.unwrap())
    };
    let addresses: [&dyn Fn(u8) -> PathAddr; 2] = [&v4, &v6];
    for of in addresses {
        let mut responder = responder(|_| {});
        let answered = (10..40).filter(|i| h2(&mut responder, Time::ZERO, of(*i), *i).is_some());
        assert_eq!(answered.count(), OF_ONE_SOURCE);
    }
}

#[test]
fn with_cookies_too_a_source_has_sixteen_handshakes_under_way() {
    let mut responder = responder(|config| config.half_open_max = 60);
    load(&mut responder, Time::ZERO, 60);
    let from = ip([192, 0, 2, 1], 1);
    let begin = (10..40).filter(|i| begins_with_cookie(&mut responder, Time::ZERO, from, *i));
    assert_eq!(begin.count(), OF_ONE_SOURCE);
}

#[test]
fn the_source_with_most_handshakes_gives_way_first() {
    let mut responder = responder(|config| config.half_open_max = 20);
    let (now, here) = (Time::ZERO, ip([192, 0, 2, 1], 1));
    load(&mut responder, now, 20);
    let (mut early, h1_of_early) = initiator(10);
    let cookie = answer(&mut responder, now, here, &h1_of_early).unwrap();
    let h1_of_early = with_cookie(&mut early, now, &cookie);
    let h2 = answer(&mut responder, now, here, &h1_of_early).unwrap();
    for seed in 11..60 {
        // Many handshakes of one address, and some of others: more than the places.
        let from = if seed % 3 == 0 { [198, 51, 100, seed] } else { [198, 51, 100, 1] };
        begins_with_cookie(&mut responder, now, ip(from, 1), seed);
    }
    assert!(completes(&mut early, &mut responder, now, here, &h2));
}

#[test]
fn a_forged_source_address_does_not_lock_out_its_owner() {
    let mut responder = responder(|_| {});
    let here = ip([192, 0, 2, 1], 1);
    for seed in 10..10 + 2 * OF_ONE_SOURCE as u8 {
        answer(&mut responder, Time::ZERO, here, &h1(seed));
    }
    assert!(h2(&mut responder, Time::ZERO, here, 9).is_none());
    assert!(begins_with_cookie(&mut responder, Time::ZERO, here, 9));
}

#[test]
fn a_cookie_that_was_given_elsewhere_is_none() {
    let mut responder = responder(|config| config.half_open_max = 4);
    load(&mut responder, Time::ZERO, 4);
    let [here, elsewhere] = [ip([192, 0, 2, 1], 1), ip([192, 0, 2, 1], 2)];
    let (mut initiator, h1) = initiator(10);
    let cookie = answer(&mut responder, Time::ZERO, elsewhere, &h1).unwrap();
    let h1 = with_cookie(&mut initiator, Time::ZERO, &cookie);
    let second = answer(&mut responder, Time::ZERO, here, &h1).expect("another cookie");
    hear(&mut initiator, Time::ZERO, &second);
    assert!(!is_connected(&mut initiator));
    let h1 = h1_of(&mut initiator, Time::ZERO);
    let h2 = answer(&mut responder, Time::ZERO, here, &h1).expect("H2");
    hear(&mut initiator, Time::ZERO, &h2);
    assert!(is_connected(&mut initiator));
}

#[test]
fn forged_cookies_cost_three_h1s_between_two_repeats_and_the_true_one_still_counts() {
    let mut responder = responder(|config| config.half_open_max = 4);
    load(&mut responder, Time::ZERO, 4);
    let here = ip([192, 0, 2, 1], 1);
    let (mut initiator, mut h1) = initiator(10);
    let mut rng = ChaCha20Rng::from_seed([5; 32]);
    let mut forged = 0;
    for _ in 0..20 {
        let cookie = CookieSecret::draw(&mut rng).cookie(b"anywhere");
        let mut datagram = cookie.seal(&access_key(), &h1[0], &mut rng);
        hear(&mut initiator, Time::ZERO, &[std::mem::take(&mut datagram)]);
        let again = sent(&mut initiator, Time::ZERO);
        if !again.is_empty() {
            forged += 1;
            h1 = again.into_iter().map(|(_, datagram)| datagram).collect();
        }
    }
    assert_eq!(forged, 3);
    let now = Time::ZERO + REPEATED;
    assert_eq!(initiator.poll_timeout(), Some(now), "it repeats all the same");
    initiator.handle_timeout(now);
    let repeat = h1_of(&mut initiator, now);
    let cookie = answer(&mut responder, now, here, &repeat).expect("the true cookie");
    let h1 = with_cookie(&mut initiator, now, &cookie);
    let h2 = answer(&mut responder, now, here, &h1).expect("H2");
    hear(&mut initiator, now, &h2);
    assert!(is_connected(&mut initiator));
}

#[test]
fn a_flood_of_h1s_from_100_000_addresses_is_held_in_bounded_memory() {
    let mut responder = responder(|_| {});
    let mut buf = vec![0; 65_536];
    let before = bytes_held();
    let (mut received, mut answered) = (0, 0);
    for i in 0..100_000_u32 {
        let now = Time::from_nanos(u64::from(i) * 20_000);
        let mut h1 = [0; 900];
        h1[..4].copy_from_slice(&i.to_be_bytes());
        write_first_mac1(&mut h1);
        received += h1.len();
        let [_, b, c, d] = i.to_be_bytes();
        let from = ip([100, 64 + b, c, d], 5000);
        responder.handle_datagram(now, from, None, &mut h1);
        while let Some(transmit) = responder.poll_transmit(now, &mut buf) {
            assert!(transmit.to == from && transmit.len <= 300);
            answered += transmit.len;
        }
    }
    let held = bytes_held() - before;
    assert!(held < 256 << 10, "{held} bytes");
    assert!(answered > received / 10 && answered < received / 3, "{answered} of {received}");
}

/// Writes the mac1 of a datagram under `key`, as specified.
fn write_mac1(datagram: &mut [u8], key: &[u8; 32]) {
    let (rest, value) = datagram.split_at_mut(datagram.len() - MAC1_BYTES);
    value.copy_from_slice(&kdf::keyed(key, &kdf::hash(rest))[..MAC1_BYTES]);
}

/// Writes the mac1 of the first datagram of H1.
fn write_first_mac1(first: &mut [u8]) {
    write_mac1(first, &kdf::derive("wraith/2 gate 1", &access_key_bytes()));
}

/// Writes both mac1 values of an H1, which requires the access key.
pub(crate) fn rewrite_mac1s(h1: &mut [Vec<u8>]) {
    let [first, second] = h1 else { panic!("two datagrams") };
    write_first_mac1(first);
    let hash = kdf::hash(&first[..first.len() - MAC1_BYTES - MAC2_BYTES]);
    let parts: [&[u8]; 2] = [&access_key_bytes(), &hash];
    write_mac1(second, &kdf::derive_parts("wraith/2 gate 1, second datagram", &parts));
}

fn access_key_bytes() -> [u8; 32] {
    kdf::derive_parts("wraith/2 door of a ticket", &[&[7; 16], responder_id().as_bytes()])
}

/// Returns an H1 with valid mac1 values and meaningless content.
fn nonsense(seed: u8) -> H1 {
    let mut h1 = vec![vec![seed; 1000], vec![seed; 900]];
    rewrite_mac1s(&mut h1);
    h1
}

/// Returns true if `responder` has done more computations than `twin`, which has the same seed and
/// received less. Reading an H1 draws an ephemeral key, so the two would then answer the same H1
/// with different H2s.
pub(crate) fn computed_more(responder: &mut Endpoint, twin: &mut Endpoint) -> bool {
    let from = ip([203, 0, 113, 1], 1);
    let [one, other] = [responder, twin].map(|e| answer(e, Time::ZERO, from, &h1(9)).unwrap());
    one != other
}

#[test]
fn h1s_beyond_the_source_limit_cost_no_curve_work() {
    for make in [h1, nonsense] {
        let mut pair = [responder(|_| {}), responder(|_| {})];
        let from = ip([192, 0, 2, 1], 1);
        for (endpoint, more) in pair.iter_mut().zip([30, 0]) {
            for seed in 10..10 + OF_ONE_SOURCE as u8 + more {
                answer(endpoint, Time::ZERO, from, &make(seed));
            }
        }
        let [responder, twin] = &mut pair;
        assert!(!computed_more(responder, twin));
    }
}

#[test]
fn an_h1_within_the_source_limit_costs_curve_work() {
    let [mut responder, mut twin] = [responder(|_| {}), responder(|_| {})];
    answer(&mut responder, Time::ZERO, ip([192, 0, 2, 1], 1), &nonsense(1));
    assert!(computed_more(&mut responder, &mut twin));
}

#[test]
fn an_initiator_whose_h1_was_overtaken_by_a_copy_connects_with_its_repeat() {
    for [here, elsewhere] in moves() {
        let mut responder = responder(|_| {});
        let (mut initiator, h1) = initiator(10);
        let now = Time::ZERO;
        let h2_of_copy = answer(&mut responder, now, elsewhere, &h1).unwrap();
        assert!(answer(&mut responder, now, here, &h1).is_none(), "which is the copy?");

        let now = now + REPEATED;
        let h2 = answer(&mut responder, now, here, &h1).unwrap();
        assert_ne!(h2, h2_of_copy, "H3 has to prove that H2 was received there");
        assert_eq!(answer(&mut responder, now, here, &h1), Some(h2.clone()));

        hear(&mut initiator, now, &h2);
        let said = sent(&mut initiator, now);
        for (_, datagram) in &said {
            responder.handle_datagram(now, elsewhere, None, &mut datagram.clone());
        }
        assert!(!is_connected(&mut responder), "the answer to another H2");
        for (_, mut datagram) in said {
            responder.handle_datagram(now, here, None, &mut datagram);
        }
        assert!(is_connected(&mut responder));
        sent(&mut responder, now);
        let third = ip([203, 0, 113, 1], 1);
        for late in [elsewhere, third] {
            assert!(answer(&mut responder, now + REPEATED, late, &h1).is_none(), "it is over");
        }
    }
}

#[test]
fn one_h1_is_answered_to_eight_addresses_at_most() {
    let mut responder = responder(|_| {});
    let h1 = h1(10);
    let copies = (0..30).filter(|i| {
        let now = Time::ZERO + REPEATED * u32::from(*i > 0);
        answer(&mut responder, now, ip([192, 0, 2, *i], 1), &h1).is_some()
    });
    assert_eq!(copies.count(), 8);
}

#[test]
fn a_cookie_evicts_an_unproven_handshake_which_succeeds_on_retransmission() {
    let mut responder = responder(|config| config.half_open_max = 4);
    let (mut early, h1_of_early) = initiator(10);
    let here = ip([192, 0, 2, 1], 1);
    assert!(answer(&mut responder, Time::ZERO, here, &h1_of_early).is_some());
    assert!(h2(&mut responder, Time::ZERO, ip([198, 51, 100, 11], 1), 11).is_some());
    for seed in 12..15 {
        let from = ip([198, 51, 100, seed], 1);
        assert!(begins_with_cookie(&mut responder, Time::ZERO, from, seed));
    }
    let now = Time::ZERO + REPEATED;
    let cookie = answer(&mut responder, now, here, &h1_of_early).expect("a repeat is heard");
    let h1 = with_cookie(&mut early, Time::ZERO, &cookie);
    let h2 = answer(&mut responder, now, here, &h1).expect("and finds room");
    assert!(completes(&mut early, &mut responder, now, here, &h2));
}

#[test]
fn handshakes_of_peers_off_the_allowlist_count_as_half_open() {
    let mut responder =
        responder(|config| config.door.admitted = Some(std::collections::HashSet::new()));
    let here = ip([192, 0, 2, 1], 1);
    let mut answered = 0;
    for seed in 10..10 + 2 * OF_ONE_SOURCE as u8 {
        let Some(h2) = h2(&mut responder, Time::ZERO, here, seed) else { continue };
        answered += 1;
        let mut initiator = initiator(seed).0;
        assert!(!completes(&mut initiator, &mut responder, Time::ZERO, here, &h2));
    }
    assert_eq!(answered, OF_ONE_SOURCE, "its curve work is bounded");
    assert!(!begins_with_cookie(&mut responder, Time::ZERO, here, 200), "and with a cookie, too");
}

/// The mac1 of H1's second datagram is visible on the wire.
#[test]
fn a_datagram_with_the_mac1_of_the_second_is_not_its_retransmission() {
    let mut responder = responder(|_| {});
    let from = ip([192, 0, 2, 1], 1);
    let h1 = h1(10);
    let h2 = answer(&mut responder, Time::ZERO, from, &h1).unwrap();
    let mac1 = &h1[1][h1[1].len() - MAC1_BYTES..];
    let mut changed = h1[1].clone();
    changed[0] ^= 1;
    for lie in [[&[0x55; 13], mac1].concat(), changed] {
        responder.handle_datagram(REPEATED_AT, from, None, &mut lie.clone());
        assert_eq!(sent(&mut responder, REPEATED_AT), []);
    }
    assert_eq!(answer(&mut responder, REPEATED_AT, from, &h1), Some(h2));
}

#[test]
fn a_datagram_with_the_mac1_of_h3_is_not_its_retransmission() {
    let mut responder = responder(|_| {});
    let from = ip([192, 0, 2, 1], 1);
    let (mut initiator, h1) = initiator(10);
    let h2 = answer(&mut responder, Time::ZERO, from, &h1).unwrap();
    hear(&mut initiator, Time::ZERO, &h2);
    let h3 = sent(&mut initiator, Time::ZERO).remove(0).1;
    responder.handle_datagram(Time::ZERO, from, None, &mut h3.clone());
    sent(&mut responder, Time::ZERO);
    let mut lie = [&[0x55; 13], &h3[h3.len() - MAC1_BYTES..]].concat();
    responder.handle_datagram(REPEATED_AT, from, None, &mut lie);
    assert_eq!(sent(&mut responder, REPEATED_AT), []);
    responder.handle_datagram(REPEATED_AT, from, None, &mut h3.clone());
    assert_eq!(sent(&mut responder, REPEATED_AT).len(), 1);
}

/// Returns true if the initiator of this seed, with the H1 `h1`, gets an H2 by its first
/// retransmission.
fn is_heard_at_last(responder: &mut Endpoint, seed: u8) -> bool {
    let (mut initiator, h1) = initiator(seed);
    let here = ip([192, 0, 2, 1], 1);
    let times = [Time::ZERO + Duration::from_millis(1), REPEATED_AT];
    times.into_iter().any(|now| {
        let h2 = answer(responder, now, here, &h1);
        h2.is_some_and(|h2| {
            hear(&mut initiator, now, &h2);
            is_connected(&mut initiator)
        })
    })
}

/// The attacker has the access key and is faster.
#[test]
fn garbage_behind_a_copied_first_datagram_costs_one_repeat_at_most() {
    let there = ip([198, 51, 100, 1], 1);
    let first = h1(10)[0].clone();
    let mut forged = vec![first.clone(), vec![1; 900]];
    rewrite_mac1s(&mut forged);
    forged[0] = first;
    let mut responder = responder(|_| {});
    assert_eq!(answer(&mut responder, Time::ZERO, there, &forged), None);
    assert!(is_heard_at_last(&mut responder, 10));
}

#[test]
fn an_h1_forged_with_a_copied_ephemeral_key_locks_no_peer_out() {
    let there = ip([198, 51, 100, 1], 1);
    let mut forged = vec![vec![1; 900], vec![1; 900]];
    forged[0][..32].copy_from_slice(&h1(10)[0][..32]);
    rewrite_mac1s(&mut forged);
    let mut responder = responder(|_| {});
    assert_eq!(answer(&mut responder, Time::ZERO, there, &forged), None);
    assert!(is_heard_at_last(&mut responder, 10));
}

/// Unproven initiators are evicted before those with a cookie.
#[test]
fn a_source_has_sixteen_handshakes_under_way_with_and_without_cookies_together() {
    let mut responder = responder(|config| config.half_open_max = 100);
    let from = ip([192, 0, 2, 1], 1);
    let mut begun = Vec::new();
    for seed in 10..26 {
        let (mut initiator, h1) = initiator(seed);
        let h2 = answer(&mut responder, Time::ZERO, from, &h1).unwrap();
        hear(&mut initiator, Time::ZERO, &h2);
        begun.push(initiator);
    }
    for seed in 30..60 {
        let (mut initiator, h1) = initiator(seed);
        let cookie = answer(&mut responder, Time::ZERO, from, &h1).expect("a cookie");
        let h1 = with_cookie(&mut initiator, Time::ZERO, &cookie);
        if let Some(h2) = answer(&mut responder, Time::ZERO, from, &h1) {
            hear(&mut initiator, Time::ZERO, &h2);
            begun.push(initiator);
        }
    }
    let complete = begun.iter_mut().filter_map(|initiator| {
        let h3 = sent(initiator, Time::ZERO).remove(0).1;
        responder.handle_datagram(Time::ZERO, from, None, &mut h3.clone());
        let mut events = std::iter::from_fn(|| responder.poll_event());
        events.any(|(_, event)| event == Event::Connected).then_some(())
    });
    assert_eq!(complete.count(), OF_ONE_SOURCE);
}

#[test]
fn system_entropy_makes_a_cloned_endpoint_diverge() {
    let h1_with = |entropy: Option<u8>| {
        let mut config = EndpointConfig::new(SecretIdentity::from_seed([3; 32]));
        config.entropy =
            entropy.map_or_else(Entropy::default, |byte| Entropy::new(move || [byte; 32]));
        let mut copy = Endpoint::new(config, [3; 32]);
        copy.connect(Time::ZERO, ip([127, 0, 0, 2], 1000), responder_id(), &access_key()).unwrap();
        h1_of(&mut copy, Time::ZERO)
    };
    assert_eq!(h1_with(None), h1_with(None));
    assert_ne!(h1_with(Some(1)), h1_with(Some(2)));
}
