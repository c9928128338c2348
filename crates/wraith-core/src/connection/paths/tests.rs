//! The addresses of a connection, without packets.

use std::num::NonZeroU32;

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

use super::*;

const PTO: Duration = Duration::from_millis(10);
const LATER: Time = Time::from_nanos(1_000_000_000);
const DATAGRAM: [usize; 2] = [1200, 0];

fn addr(number: u32) -> PathAddr {
    PathAddr::Via(NonZeroU32::new(number).expect("tests number addresses from 1"))
}

fn rng() -> ChaCha20Rng {
    ChaCha20Rng::from_seed([1; 32])
}

/// Returns the paths of a connection at the first address.
fn paths() -> Paths {
    Paths::new(Path::new(addr(1), 1200, 1500))
}

/// Receives a full non-probing packet from `from`, as the responder. Returns the address that
/// the connection moves to.
fn receive(paths: &mut Paths, now: Time, from: PathAddr) -> Option<PathAddr> {
    let moves = paths.on_packet(now, from, false, false)?;
    paths.begin_validation(now, from, moves, &mut rng());
    paths.on_candidate_packet(moves, DATAGRAM).map(|candidate| candidate.remote)
}

/// Answers the next challenge to `at`. Returns the move that follows.
fn answer(
    paths: &mut Paths,
    now: Time,
    at: PathAddr,
    is_silent: bool,
) -> Option<(Candidate, Cause)> {
    let (to, data, _) = paths.poll_challenge(now, PTO).expect("a challenge is due");
    assert_eq!(to, at);
    paths.on_response(now, data, is_silent)
}

/// Moves to the second address on request, at the start.
fn moved_on_request() -> Paths {
    let mut paths = paths();
    assert_eq!(paths.request_move(Time::ZERO, addr(2), true, &mut rng()), None);
    let (to, cause) = answer(&mut paths, Time::ZERO, addr(2), false).expect("it moves");
    assert_eq!(cause, Cause::Requested);
    let left = paths.switch(Time::ZERO, &to, cause, &mut rng());
    assert_eq!((left, paths.remote()), (addr(1), addr(2)));
    paths.keep_move(left, LATER);
    paths
}

#[test]
fn the_connection_follows_the_peer_once_its_new_address_has_answered() {
    let mut paths = paths();
    assert_eq!(receive(&mut paths, Time::ZERO, addr(2)), None);
    assert!(!paths.is_validated(addr(2)));
    let (to, cause) = answer(&mut paths, Time::ZERO, addr(2), false).expect("it moves");
    assert_eq!((to.remote, cause), (addr(2), Cause::PeerMoved));
    paths.switch(Time::ZERO, &to, cause, &mut rng());
    assert!(paths.is_validated(addr(2)) && paths.is_settled_on(addr(2)));
    let challenged = paths.poll_challenge(Time::ZERO, PTO).map(|(to, ..)| to);
    assert_eq!(challenged, Some(addr(1)), "the peer may never have moved");
}

#[test]
fn a_probing_packet_validates_an_address_and_moves_nothing() {
    let mut paths = paths();
    let moves = paths.on_packet(Time::ZERO, addr(2), true, false);
    assert_eq!(moves, Some(false));
    assert!(paths.begin_validation(Time::ZERO, addr(2), false, &mut rng()));
    assert!(paths.on_candidate_packet(false, DATAGRAM).is_none());
    assert!(answer(&mut paths, Time::ZERO, addr(2), false).is_none());
    assert!(paths.is_validated(addr(2)));
    assert_eq!(receive(&mut paths, Time::ZERO, addr(2)), Some(addr(2)), "now it is in use");
}

#[test]
fn packets_from_the_address_left_do_not_undo_a_move_before_the_peer_follows_or_time_is_up() {
    let mut paths = moved_on_request();
    assert!(!paths.is_settled_on(addr(2)));
    assert_eq!(paths.on_packet(Time::ZERO, addr(1), false, false), Some(false));
    assert_eq!(paths.on_packet(Time::ZERO, addr(3), false, false), Some(true));
    assert_eq!(paths.on_packet(Time::ZERO, addr(3), false, true), Some(false), "initiator");
    assert_eq!(paths.on_packet(LATER, addr(1), false, false), Some(true));
    let mut followed = moved_on_request();
    assert_eq!(followed.on_packet(Time::ZERO, addr(2), true, false), None);
    assert!(!followed.is_settled_on(addr(2)), "a probing packet follows nothing");
    assert_eq!(followed.on_packet(Time::ZERO, addr(2), false, false), None);
    assert!(followed.is_settled_on(addr(2)));
    assert_eq!(followed.on_packet(Time::ZERO, addr(1), false, false), Some(true));
}

#[test]
fn a_chosen_address_never_becomes_a_candidate() {
    let mut paths = paths();
    paths.request_move(Time::ZERO, addr(2), true, &mut rng());
    assert_eq!(paths.on_packet(Time::ZERO, addr(2), false, false), None);
}

#[test]
fn a_new_request_fails_the_earlier_one_and_a_repeated_request_changes_nothing() {
    let mut paths = paths();
    let mut request = |to, has_h3| paths.request_move(Time::ZERO, to, has_h3, &mut rng());
    assert_eq!(request(addr(2), false), None);
    assert_eq!(request(addr(2), false), None);
    assert_eq!(request(addr(3), false), Some(addr(2)));
    assert!(paths.poll_challenge(Time::ZERO, PTO).is_none(), "the peer would drop it");
    assert_eq!(paths.take_pending_move(), Some(addr(3)));
    let mut request = |to| paths.request_move(Time::ZERO, to, true, &mut rng());
    assert_eq!(request(addr(3)), None);
    assert_eq!(request(addr(3)), None);
    assert_eq!(request(addr(4)), Some(addr(3)));
}

#[test]
fn a_silent_path_is_left_for_the_previous_one_which_is_asked_a_bounded_number_of_times() {
    let mut paths = moved_on_request();
    let mut now = Time::ZERO;
    for round in 0..=PREVIOUS_PATH_CHALLENGES_MAX {
        paths.challenge_previous(now, &mut rng());
        let asked = paths.poll_challenge(now, PTO).is_some();
        assert_eq!(asked, round < PREVIOUS_PATH_CHALLENGES_MAX);
        while paths.timeout().is_some() {
            now = paths.timeout().expect("it was checked").max(now + PTO);
            paths.poll_challenge(now, PTO);
            paths.handle_timeout(now);
        }
    }
    let mut paths = moved_on_request();
    paths.challenge_previous(LATER, &mut rng());
    assert!(answer(&mut paths, LATER, addr(1), false).is_none(), "the path came back");
    paths.challenge_previous(LATER, &mut rng());
    let (to, cause) = answer(&mut paths, LATER, addr(1), true).expect("it moves");
    assert_eq!((to.remote, cause), (addr(1), Cause::PathDead));
}

#[test]
fn addresses_without_an_answer_are_given_up() {
    let mut paths = paths();
    receive(&mut paths, Time::ZERO, addr(2));
    paths.request_move(Time::ZERO, addr(3), true, &mut rng());
    let (mut candidate, mut requested, mut now) = (None, None, Time::ZERO);
    while candidate.is_none() || requested.is_none() {
        now = paths.timeout().expect("an address is asked").max(now + PTO);
        while paths.poll_challenge(now, PTO).is_some() {}
        let given_up = paths.handle_timeout(now);
        candidate = candidate.or(given_up.candidate);
        requested = requested.or(given_up.requested);
        // Without further bytes from there, the candidate gets no further challenge.
        assert_eq!(receive(&mut paths, now, addr(2)), None);
    }
    assert_eq!((candidate, requested), (Some(addr(2)), Some(addr(3))));
    assert_eq!(paths.remote(), addr(1));
}

#[test]
fn the_last_challenge_of_a_packet_is_answered_and_few_answers_wait() {
    let mut paths = paths();
    assert_eq!(paths.queue_response(addr(2), 100), 0, "nothing was asked");
    paths.on_challenge([1; 8]);
    paths.on_challenge([2; 8]);
    assert_eq!(paths.queue_response(addr(2), 100), 100);
    paths.on_challenge([3; 8]);
    paths.forget_challenge();
    assert_eq!(paths.queue_response(addr(2), 100), 0);
    for _ in 0..2 * RESPONSES_MAX {
        paths.on_challenge([4; 8]);
        paths.queue_response(addr(3), 100);
    }
    let sent: Vec<_> = std::iter::from_fn(|| paths.poll_response()).collect();
    assert_eq!(sent.len(), RESPONSES_MAX);
    assert_eq!((sent[0].to, sent[0].data), (addr(2), [2; 8]));
}
