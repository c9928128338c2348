//! The receiver's side of acknowledgements (SPEC §7): received packet numbers, and the time of the
//! next ACK.
//!
//! The module keeps the newest [`RANGES_MAX`] ranges of received packet numbers. Invariant: the
//! module never gets a packet number twice, because the replay window drops duplicates first.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::event::Ecn;
use crate::frame::EcnCounts;
use crate::{RangeSet, Time};

/// Maximum number of ranges kept and reported. The packets of older ranges were lost, or reported
/// in many ACKs before.
pub(crate) const RANGES_MAX: usize = 64;
/// Ack-eliciting packets per ACK, until the peer sends ACK_FREQUENCY (RFC 9000 §13.2.2).
const THRESHOLD_DEFAULT: u64 = 2;
/// Number of ACK-only packets after which one carries a PING. The peer's ACK of it allows dropping
/// old ranges.
const ACK_ONLY_MAX: u32 = 64;

#[derive(Debug)]
pub(crate) struct Acks {
    received: RangeSet,
    largest: Option<(u64, Time)>,
    /// Ack-eliciting packets since the last ACK was sent.
    unreported: u64,
    immediate: bool,
    deadline: Option<Time>,
    threshold: u64,
    delay_max: Duration,
    frequency_sequence: Option<u64>,
    ack_only_sent: u32,
    /// Packets received with each ECN codepoint.
    ecn: EcnCounts,
    /// The last packet was marked CE.
    marked: bool,
}

impl Acks {
    pub(crate) fn new(delay_max: Duration) -> Self {
        Self {
            received: RangeSet::new(),
            largest: None,
            unreported: 0,
            immediate: false,
            deadline: None,
            threshold: THRESHOLD_DEFAULT,
            delay_max,
            frequency_sequence: None,
            ack_only_sent: 0,
            ecn: EcnCounts::default(),
            marked: false,
        }
    }

    /// Records an authenticated packet.
    pub(crate) fn on_received(&mut self, now: Time, pn: u64, ack_eliciting: bool) {
        let expected = self.largest.map_or(0, |(largest, _)| largest + 1);
        self.received.insert(pn..pn + 1);
        if self.received.len() > RANGES_MAX {
            self.received.pop_first();
        }
        if pn >= expected {
            self.largest = Some((pn, now));
        }
        if !ack_eliciting {
            return;
        }
        self.unreported += 1;
        if pn != expected || self.unreported >= self.threshold {
            self.immediate = true;
        }
        self.deadline.get_or_insert(now + self.delay_max);
    }

    /// Counts the ECN codepoint of an authenticated packet. The first CE mark after unmarked
    /// packets is reported at once (RFC 9000 §13.2.1). In a run of marks that suffices, because the
    /// sender responds once per round trip.
    pub(crate) fn on_codepoint(&mut self, codepoint: Option<Ecn>) {
        match codepoint {
            None => {}
            Some(Ecn::Ect0) => self.ecn.ect0 += 1,
            Some(Ecn::Ect1) => self.ecn.ect1 += 1,
            Some(Ecn::Ce) => self.ecn.ce += 1,
        }
        let marked = codepoint == Some(Ecn::Ce);
        self.immediate |= marked && !self.marked;
        self.marked = marked;
    }

    /// Returns the ECN counters, if any packet had a codepoint.
    pub(crate) fn ecn_counts(&self) -> Option<EcnCounts> {
        (self.ecn != EcnCounts::default()).then_some(self.ecn)
    }

    /// Returns the highest packet number received.
    pub(crate) fn largest(&self) -> Option<u64> {
        self.largest.map(|(pn, _)| pn)
    }

    /// Handles IMMEDIATE_ACK: an ACK is due at once.
    pub(crate) fn on_immediate_ack(&mut self) {
        self.immediate = true;
    }

    /// Handles ACK_FREQUENCY. A frame that is older than the newest one is ignored.
    pub(crate) fn on_ack_frequency(&mut self, sequence: u64, packets: u64, delay_max: Duration) {
        if self.frequency_sequence.is_some_and(|newest| sequence <= newest) {
            return;
        }
        self.frequency_sequence = Some(sequence);
        self.threshold = packets.max(1);
        self.delay_max = delay_max.clamp(Duration::from_millis(1), Duration::from_millis(200));
    }

    /// Returns true if an ACK must be sent now, even in a packet of its own.
    pub(crate) fn is_due(&self, now: Time) -> bool {
        self.unreported > 0 && (self.immediate || self.deadline.is_some_and(|at| at <= now))
    }

    /// Returns true if an ACK should be added to a packet that is sent anyway.
    pub(crate) fn is_pending(&self) -> bool {
        self.unreported > 0
    }

    /// Returns the time at which an ACK becomes due.
    pub(crate) fn timeout(&self) -> Option<Time> {
        if self.unreported == 0 { None } else { self.deadline }
    }

    /// Returns the delay of the largest packet number and the ranges in descending order, for an
    /// ACK frame.
    pub(crate) fn report(
        &self,
        now: Time,
    ) -> Option<(Duration, impl Iterator<Item = RangeInclusive<u64>> + Clone + '_)> {
        let (_, at) = self.largest?;
        let ranges = self.received.iter_rev().map(|r| r.start..=r.end - 1);
        Some((now - at, ranges))
    }

    /// Records a sent ACK. Returns true if its packet should also carry a PING (see
    /// [`ACK_ONLY_MAX`]). That never happens while another packet `awaits_ack`, so a peer that
    /// acknowledges nothing leaves at most one PING outstanding.
    pub(crate) fn on_sent(&mut self, ack_only: bool, awaits_ack: bool) -> bool {
        self.unreported = 0;
        self.immediate = false;
        self.deadline = None;
        if !ack_only {
            self.ack_only_sent = 0;
            return false;
        }
        self.ack_only_sent = self.ack_only_sent.saturating_add(1);
        if self.ack_only_sent < ACK_ONLY_MAX || self.received.len() < 2 || awaits_ack {
            return false;
        }
        self.ack_only_sent = 0;
        true
    }

    /// Handles the acknowledgement of an ACK up to `largest`: the ranges below have been delivered.
    pub(crate) fn on_ack_acked(&mut self, largest: u64) {
        // The range that contains `largest` stays, so that a gap above it remains visible.
        let keep_from = self
            .received
            .iter()
            .find(|r| r.start <= largest && largest < r.end)
            .map_or(largest, |r| r.start);
        self.received.remove(0..keep_from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELAY: Duration = Duration::from_millis(25);

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn the_second_packet_makes_an_ack_due_and_the_first_only_after_the_delay() {
        let mut acks = Acks::new(DELAY);
        acks.on_received(at(0), 0, true);
        assert!(!acks.is_due(at(0)) && acks.is_due(at(25)));
        assert_eq!(acks.timeout(), Some(at(25)));
        acks.on_received(at(1), 1, true);
        assert!(acks.is_due(at(1)));
        acks.on_sent(true, false);
        assert!(!acks.is_due(at(100)) && acks.timeout().is_none());
    }

    #[test]
    fn a_gap_is_reported_at_once() {
        let mut acks = Acks::new(DELAY);
        acks.on_ack_frequency(1, 100, DELAY);
        acks.on_received(at(0), 0, true);
        acks.on_received(at(0), 2, true);
        assert!(acks.is_due(at(0)));
        let (_, ranges) = acks.report(at(0)).unwrap();
        assert_eq!(ranges.collect::<Vec<_>>(), vec![2..=2, 0..=0]);
    }

    #[test]
    fn codepoints_are_counted_and_the_first_mark_is_reported_at_once() {
        let mut acks = Acks::new(DELAY);
        acks.on_ack_frequency(1, 100, DELAY);
        acks.on_received(at(0), 0, true);
        acks.on_codepoint(None);
        assert_eq!(acks.ecn_counts(), None);
        acks.on_codepoint(Some(Ecn::Ect0));
        assert!(!acks.is_due(at(0)));
        acks.on_codepoint(Some(Ecn::Ce));
        assert!(acks.is_due(at(0)));
        acks.on_sent(true, false);
        acks.on_received(at(1), 1, true);
        acks.on_codepoint(Some(Ecn::Ce));
        assert!(!acks.is_due(at(1)), "of a run of marks only the first");
        acks.on_codepoint(Some(Ecn::Ect1));
        assert_eq!(acks.ecn_counts(), Some(EcnCounts { ect0: 1, ect1: 1, ce: 2 }));
    }

    #[test]
    fn packets_that_need_no_ack_get_none() {
        let mut acks = Acks::new(DELAY);
        acks.on_received(at(0), 0, false);
        assert!(!acks.is_due(at(1000)) && acks.timeout().is_none());
    }

    #[test]
    fn ranges_stay_bounded_and_the_newest_survive() {
        let mut acks = Acks::new(DELAY);
        for pn in (0..1000).step_by(2) {
            acks.on_received(at(0), pn, true);
        }
        let ranges: Vec<_> = acks.report(at(0)).unwrap().1.collect();
        assert_eq!(ranges.len(), RANGES_MAX);
        assert_eq!(ranges[0], 998..=998);
    }

    #[test]
    fn an_acked_ack_lets_older_ranges_go() {
        let mut acks = Acks::new(DELAY);
        for pn in [0, 1, 3, 4, 6] {
            acks.on_received(at(0), pn, true);
        }
        acks.on_ack_acked(4);
        let ranges: Vec<_> = acks.report(at(0)).unwrap().1.collect();
        assert_eq!(ranges, vec![6..=6, 3..=4]);
    }

    #[test]
    fn an_older_ack_frequency_is_ignored() {
        let mut acks = Acks::new(DELAY);
        acks.on_ack_frequency(5, 10, DELAY);
        acks.on_ack_frequency(4, 1, DELAY);
        acks.on_received(at(0), 0, true);
        assert!(!acks.is_due(at(0)));
    }
}
