//! Attacks of an authenticated initiator with RATCHET frames (SPEC §4.6). `hostile_responses.rs`
//! covers the responder.

use std::time::Duration;

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use wraith_core::{CloseReason, TransportConfig, Violation};
use wraith_noise::{RATCHET_REQUEST_BYTES, RATCHET_RESPONSE_BYTES, Ratchet};

use crate::hostile_peer::HostilePeer;

const PART: usize = RATCHET_REQUEST_BYTES / 2;

fn connect() -> HostilePeer {
    HostilePeer::connect(TransportConfig::default())
}

fn rng() -> ChaCha20Rng {
    ChaCha20Rng::from_seed([7; 32])
}

pub(crate) fn violation(what: &'static str) -> Option<CloseReason> {
    Some(CloseReason::Violation(Violation::protocol(what)))
}

impl HostilePeer {
    pub(crate) fn send_part(&mut self, number: u64, part: u8, bytes: &[u8]) {
        self.send(0, |out| assert!(out.ratchet(number, part, bytes)));
    }

    /// Returns the numbers of ratchets of the victim, and of packets that it could not open.
    pub(crate) fn ratchets_and_drops(&mut self) -> (u64, u64) {
        let stats = self.victim.connection(self.handle).unwrap().stats();
        (stats.ratchets, stats.datagrams_dropped)
    }

    /// Sends a request, and returns the response, if any.
    fn ask(&mut self, number: u64, request: &[u8]) -> Option<[u8; RATCHET_RESPONSE_BYTES]> {
        self.ratchets.clear();
        for part in 0..2 {
            self.send_part(number, part, &request[usize::from(part) * PART..][..PART]);
        }
        let parts: Vec<_> = self.ratchets.iter().filter(|(of, _, _)| *of == number).collect();
        let [(_, 0, low), (_, 1, high)] = &parts[..] else { return None };
        Some([&low[..], high].concat().try_into().expect("the length of a response"))
    }

    /// Runs one honest ratchet. Returns false if it was not answered.
    fn ratchet(&mut self, number: u64, rng: &mut ChaCha20Rng) -> bool {
        let ratchet = Ratchet::begin(rng);
        let Some(response) = self.ask(number, ratchet.request()) else { return false };
        let agreed = ratchet.finish(&response).expect("shares that are good");
        self.sealer.ratchet(&agreed);
        self.opener.ratchet(&agreed);
        self.sealer.advance_phase();
        self.ack_all();
        // Elicits an answer, which shows that the other direction has moved too.
        self.send(0, |out| assert!(out.ping() && out.immediate_ack()));
        true
    }
}

#[test]
fn a_conforming_ratchet_request_is_followed() {
    let (mut peer, mut rng) = (connect(), rng());
    for number in 1..=8 {
        let before = peer.opener.phase();
        assert!(peer.ratchet(number, &mut rng), "ratchet {number}");
        assert_ne!(peer.opener.phase(), before, "the answers are sealed with the new keys");
    }
    assert_eq!((peer.closed.clone(), peer.ratchets_and_drops()), (None, (8, 0)));
}

#[test]
fn parts_that_cannot_be_end_the_connection() {
    for (number, part, len) in
        [(2, 0, PART), (u64::MAX >> 2, 0, PART), (1, 2, PART), (1, 0, PART - 1)]
    {
        let mut peer = connect();
        peer.send_part(number, part, &vec![1; len]);
        assert_eq!(peer.closed, violation("invalid ratchet fragment"));
    }
}

#[test]
fn shares_nobody_can_agree_on_end_the_connection() {
    let good = *Ratchet::begin(&mut rng()).request();
    let (mut low, mut no_key) = (good, good);
    low[..32].fill(0);
    no_key[32..].fill(0xff);
    for request in [low, no_key] {
        let mut peer = connect();
        assert_eq!(peer.ask(1, &request), None);
        assert_eq!(peer.closed, violation("invalid ratchet shares"));
    }
}

#[test]
fn a_flood_of_parts_and_of_late_ones_is_no_more_than_packets() {
    let (mut peer, mut rng) = (connect(), rng());
    // For a request that is never completed, the first content counts.
    let ratchet = Ratchet::begin(&mut rng);
    peer.send_part(1, 0, &ratchet.request()[..PART]);
    for byte in 0..2000u32 {
        peer.send_part(1, 0, &[byte as u8; PART]);
    }
    peer.ratchets.clear();
    peer.send_part(1, 1, &ratchet.request()[PART..]);
    assert_eq!(peer.ratchets.len(), 2, "one response");
    for number in [0, 1] {
        for _ in 0..1000 {
            peer.send_part(number, 1, &[7; PART]);
        }
    }
    assert_eq!((peer.closed.clone(), peer.ratchets.len()), (None, 2));
}

#[test]
fn the_next_one_is_too_soon_before_the_last_one_is_over() {
    let (mut peer, mut rng) = (connect(), rng());
    assert!(peer.ask(1, Ratchet::begin(&mut rng).request()).is_some());
    assert_eq!(peer.ask(2, Ratchet::begin(&mut rng).request()), None);
    assert_eq!(peer.closed, violation("ratchet requested too early"));
}

#[test]
fn ratchets_beyond_the_rate_limit_close_the_connection() {
    let (mut peer, mut rng) = (connect(), rng());
    let answered = (1..1000).take_while(|number| peer.ratchet(*number, &mut rng)).count();
    assert_eq!(answered, 32);
    assert_eq!(peer.closed, violation("ratchet requested too early"));

    // One ratchet a second is allowed; in fact, two are.
    let (mut peer, mut rng) = (connect(), self::rng());
    for number in 1..=100 {
        assert!(peer.ratchet(number, &mut rng), "ratchet {number}");
        peer.wait(Duration::from_millis(500));
    }
    assert_eq!(peer.closed, None);
}

#[test]
fn an_idle_time_does_not_raise_the_ratchet_burst() {
    let (mut peer, mut rng) = (connect(), rng());
    // Half an hour with keep-alive packets only.
    for _ in 0..120 {
        peer.wait(Duration::from_secs(15));
        peer.send(0, |out| assert!(out.ping()));
        peer.ack_all();
    }
    assert_eq!(peer.closed, None);
    let answered = (1..1000).take_while(|number| peer.ratchet(*number, &mut rng)).count();
    assert_eq!(peer.closed, violation("ratchet requested too early"));
    assert_eq!(answered, 32);
}

#[test]
fn a_peer_with_a_different_secret_is_cut_off_silently() {
    let (mut peer, mut rng) = (connect(), rng());
    assert!(peer.ask(1, Ratchet::begin(&mut rng).request()).is_some());
    peer.sealer.ratchet(&[0; 32]);
    peer.sealer.advance_phase();
    let heard = |peer: &mut HostilePeer| {
        let stats = peer.victim.connection(peer.handle).unwrap().stats();
        (stats.packets_received, stats.datagrams_dropped)
    };
    let (before, dropped) = heard(&mut peer);
    for _ in 0..50 {
        peer.send(0, |out| assert!(out.ping()));
    }
    assert_eq!(heard(&mut peer), (before, dropped + 50));
    peer.wait(Duration::from_secs(40));
    assert_eq!(peer.closed, Some(CloseReason::IdleTimeout));
}

#[test]
fn nothing_opens_with_keys_whose_time_is_over() {
    let (mut peer, mut rng) = (connect(), rng());
    // Sealed before the ratchet, and held back.
    let [soon, late] = [(); 2].map(|()| peer.seal(|out| assert!(out.ping())));
    assert!(peer.ratchet(1, &mut rng));
    let heard = |peer: &mut HostilePeer, mut packet: Vec<u8>| {
        let count = |peer: &mut HostilePeer| {
            peer.victim.connection(peer.handle).unwrap().stats().packets_received
        };
        let before = count(peer);
        peer.deliver(&mut packet);
        count(peer) - before
    };
    assert_eq!(heard(&mut peer, soon), 1, "it may have been overtaken");
    // More than three probe timeouts.
    peer.wait(Duration::from_secs(5));
    assert_eq!(heard(&mut peer, late), 0);
    peer.send(0, |out| assert!(out.ping()));
    assert_eq!(peer.closed, None);
}
