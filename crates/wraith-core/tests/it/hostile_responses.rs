//! Attacks of an authenticated responder with RATCHET frames (SPEC §4.6) on the initiator that
//! requests a ratchet.

use std::time::Duration;

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use wraith_core::{CloseReason, TransportConfig};
use wraith_noise::{RATCHET_REQUEST_BYTES, RATCHET_RESPONSE_BYTES, respond_to_ratchet};

use crate::counting::bytes_held;
use crate::hostile_peer::HostilePeer;
use crate::hostile_ratchets::violation;

const PART: usize = RATCHET_RESPONSE_BYTES / 2;

type Response = [u8; RATCHET_RESPONSE_BYTES];

/// Returns the peer of a victim that requests ratchets as soon and as often as it may.
fn accept() -> HostilePeer {
    let mut peer =
        HostilePeer::accept(TransportConfig { ratchet_bytes: 1, ..TransportConfig::default() });
    peer.drain();
    peer
}

/// Returns the peer of a victim that has no reason to request a ratchet.
fn accept_one_that_does_not_ask() -> HostilePeer {
    let mut peer = HostilePeer::accept(TransportConfig::default());
    peer.drain();
    peer
}

impl HostilePeer {
    /// Returns the number and content of the victim's request.
    fn asked(&self) -> (u64, [u8; RATCHET_REQUEST_BYTES]) {
        let (number, _, _) = *self.ratchets.last().expect("it asks");
        let part = |part| {
            let mut of = self.ratchets.iter();
            let (_, _, bytes) = of.find(|of| (of.0, of.1) == (number, part)).expect("both parts");
            &bytes[..]
        };
        (number, [part(0), part(1)].concat().try_into().expect("the length of a request"))
    }

    /// Returns the number of the victim's request, an honest response, and the agreed secret.
    fn answer(&self, rng: &mut ChaCha20Rng) -> (u64, Response, [u8; 32]) {
        let (number, request) = self.asked();
        let (response, agreed) = respond_to_ratchet(&request, rng).expect("shares that are good");
        (number, response, *agreed)
    }

    /// Moves this side's keys to the agreed secret.
    fn follow(&mut self, agreed: &[u8; 32]) {
        self.sealer.ratchet(agreed);
        self.opener.ratchet(agreed);
    }

    fn respond(&mut self, number: u64, response: &Response) {
        for part in 0..2 {
            self.send_part(number, part, &response[usize::from(part) * PART..][..PART]);
        }
    }

    /// Runs one honest ratchet, and returns its number.
    fn answer_well(&mut self, rng: &mut ChaCha20Rng) -> u64 {
        let (number, response, agreed) = self.answer(rng);
        self.follow(&agreed);
        self.respond(number, &response);
        // The victim has the response. It moves once this is acknowledged, and confirms under new
        // keys.
        self.exchange();
        self.sealer.advance_phase();
        self.exchange();
        number
    }

    /// Acknowledges everything, and elicits an answer.
    fn exchange(&mut self) {
        self.ack_all();
        self.send(0, |out| assert!(out.ping() && out.immediate_ack()));
    }

    /// Returns the numbers of packets that the victim opened and could not open.
    fn heard(&mut self) -> (u64, u64) {
        let stats = self.victim.connection(self.handle).unwrap().stats();
        (stats.packets_received, stats.datagrams_dropped)
    }
}

fn rng() -> ChaCha20Rng {
    ChaCha20Rng::from_seed([7; 32])
}

#[test]
fn a_conforming_ratchet_response_is_followed() {
    let (mut peer, mut rng) = (accept(), rng());
    for number in 1..=8 {
        let before = peer.opener.phase();
        assert_eq!(peer.answer_well(&mut rng), number);
        assert_ne!(peer.opener.phase(), before, "it has moved to the new keys");
    }
    assert_eq!((peer.closed.clone(), peer.ratchets_and_drops()), (None, (8, 0)));
}

#[test]
fn a_share_of_low_order_ends_the_connection() {
    let mut one = [0; 32];
    one[0] = 1;
    for low in [[0; 32], one] {
        let mut peer = accept();
        let (number, mut response, _) = peer.answer(&mut rng());
        response[..32].copy_from_slice(&low);
        peer.respond(number, &response);
        assert_eq!(peer.closed, violation("invalid ratchet shares"));
    }
}

#[test]
fn a_garbage_kem_ciphertext_ends_the_connection_by_idle_timeout() {
    let mut peer = accept();
    let (number, mut response, agreed) = peer.answer(&mut rng());
    response[32..].fill(0x5a);
    peer.follow(&agreed);
    peer.respond(number, &response);
    assert_eq!(peer.closed, None, "it cannot know");

    // The victim moves, when this is acknowledged, to keys that only it has.
    peer.unopened = Some(0);
    peer.ack_all();
    let received = peer.received.len();
    peer.send(0, |out| assert!(out.ping() && out.immediate_ack()));
    assert_eq!(peer.received.len(), received);
    assert!(peer.unopened > Some(0));

    // The victim cannot open packets sealed with our keys.
    peer.sealer.advance_phase();
    let (heard, dropped) = peer.heard();
    for _ in 0..50 {
        peer.send(0, |out| assert!(out.ping()));
    }
    assert_eq!(peer.heard(), (heard, dropped + 50));
    peer.wait(Duration::from_secs(40));
    assert_eq!(peer.closed, Some(CloseReason::IdleTimeout));
    assert_eq!(peer.received.len(), received, "nothing was said in keys that we have");
}

#[test]
fn a_response_that_nobody_asked_for_ends_the_connection() {
    for number in [1, 2, u64::MAX >> 2] {
        let mut peer = accept_one_that_does_not_ask();
        assert!(peer.ratchets.is_empty());
        peer.send_part(number, 0, &[7; PART]);
        assert_eq!(peer.closed, violation("invalid ratchet fragment"));
    }
}

#[test]
fn a_response_to_a_request_of_the_future_ends_the_connection() {
    for number in [2, 3, u64::MAX >> 2] {
        let mut peer = accept();
        assert_eq!(peer.asked().0, 1);
        peer.send_part(number, 0, &[7; PART]);
        assert_eq!(peer.closed, violation("invalid ratchet fragment"));
    }
}

#[test]
fn parts_that_cannot_be_end_the_connection() {
    for (part, len) in [
        (0, PART - 1),
        (0, PART + 1),
        (1, 0),
        (1, RATCHET_REQUEST_BYTES / 2),
        (2, PART),
        (255, PART),
    ] {
        let mut peer = accept();
        peer.send_part(1, part, &vec![7; len]);
        assert_eq!(peer.closed, violation("invalid ratchet fragment"), "{part}, {len}");
    }
}

#[test]
fn late_parts_mean_nothing() {
    let (mut peer, mut rng) = (accept(), rng());
    for _ in 0..3 {
        peer.answer_well(&mut rng);
    }
    // The victim has requested the fourth ratchet; these fragments belong to the ones before.
    assert_eq!(peer.asked().0, 4);
    for number in 0..4 {
        for part in [0, 1, 0, 1] {
            peer.send_part(number, part, &[7; PART]);
        }
    }
    assert_eq!(peer.answer_well(&mut rng), 4);
    assert_eq!((peer.closed.clone(), peer.heard().1), (None, 0));
}

#[test]
fn a_response_that_is_repeated_after_it_was_taken_means_nothing() {
    let mut peer = accept();
    let (number, response, agreed) = peer.answer(&mut rng());
    peer.follow(&agreed);
    for _ in 0..100 {
        peer.respond(number, &response);
    }
    peer.exchange();
    assert_eq!((peer.closed.clone(), peer.heard().1), (None, 0));
}

#[test]
fn a_response_that_never_gets_complete_costs_no_memory_and_the_connection_goes_on() {
    let mut peer = accept();
    let (number, response, agreed) = peer.answer(&mut rng());
    peer.send_part(number, 0, &response[..PART]);
    peer.exchange();
    peer.notes = false;
    let before = bytes_held();
    for byte in 0..2000_u32 {
        peer.send_part(number, 0, &[byte as u8; PART]);
    }
    let held = bytes_held() - before;
    // The memory holds only the victim's own unacknowledged packets.
    assert!(held < 2000 * PART as i64 / 4, "{held} bytes");

    // An hour later, the connection is alive, has not requested another ratchet, and accepts the
    // rest.
    peer.notes = true;
    peer.unopened = Some(0);
    for _ in 0..240 {
        peer.wait(Duration::from_secs(15));
        peer.exchange();
    }
    assert_eq!((peer.closed.clone(), peer.unopened), (None, Some(0)));
    assert_eq!(peer.asked().0, number);
    peer.follow(&agreed);
    peer.send_part(number, 1, &response[PART..]);
    peer.exchange();
    peer.sealer.advance_phase();
    peer.exchange();
    assert_eq!((peer.closed.clone(), peer.unopened), (None, Some(0)));
    assert_eq!(peer.ratchets_and_drops(), (1, 0));
}
