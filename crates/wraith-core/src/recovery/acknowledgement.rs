//! ACK processing: newly acknowledged packets, and late packets that were declared lost.
//!
//! Invariant: an ACK of a packet number that was never sent, or was skipped, is a violation,
//! regardless of the rest of the ACK.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::ecn::AckedMarks;
use super::path::AckSum;
use super::sent_packets::NeverSent;
use super::{Recovery, SentPacket, Settled};
use crate::{Time, Violation};

impl<F> Recovery<F> {
    /// Handles an ACK frame with the `largest` packet number, all `ranges` in descending order, and
    /// the peer's ACK `delay`. Fills `out`. An ACK of a packet that was never sent is a violation.
    pub fn on_ack(
        &mut self,
        now: Time,
        largest: u64,
        ranges: impl Iterator<Item = RangeInclusive<u64>>,
        delay: Duration,
        out: &mut Settled<F>,
    ) -> Result<(), Violation> {
        out.clear();
        self.acked_marks = AckedMarks::default();
        if largest >= self.sent.next() {
            return Err(Violation::protocol("ACK of a packet that was never sent"));
        }
        let prior_in_flight = self.path.in_flight;
        let late = self.take_ranges(now, largest, ranges, out)?;
        let mut ack = self.settle_acked(now, largest, out)?;
        ack.rtt_sent_at = ack.rtt_sent_at.or(late);
        if out.acked.is_empty() && out.spurious == 0 {
            return Ok(());
        }
        self.pto_count = 0;
        self.last_change = now;
        ack.marks.is_newest = self.largest_acked < Some(largest);
        self.acked_marks = ack.marks;
        self.largest_acked = self.largest_acked.max(Some(largest));
        let rtt = ack.rtt_sent_at.map(|sent_at| now.since(sent_at));
        if let Some(sample) = rtt {
            self.path.sample_rtt(now, sample, delay.min(self.config.max_ack_delay));
        }
        self.detect_lost(now, out);
        self.path.on_acked(now, &ack.sum, prior_in_flight, rtt);
        self.path.refresh(now);
        Ok(())
    }

    /// Keeps the ranges that concern outstanding packets, and detects late ACKs of lost packets.
    /// Returns the sending time of `largest` if it is one of these. An abandoned packet that is
    /// acknowledged late still yields the current round trip.
    fn take_ranges(
        &mut self,
        now: Time,
        largest: u64,
        ranges: impl Iterator<Item = RangeInclusive<u64>>,
        out: &mut Settled<F>,
    ) -> Result<Option<Time>, Violation> {
        self.ranges.clear();
        let mut sent_at = None;
        let base = self.sent.base();
        let mut walk = self.late.walk();
        let mut skipped = self.skipped.walk();
        for range in ranges {
            if self.skipped.is_hit(&mut skipped, &range) {
                return Err(Violation::protocol("ACK of a packet number that was skipped"));
            }
            if *range.end() >= base {
                self.ranges.push(range.clone());
            }
            if *range.start() < base {
                while let Some(late) = self.late.take(&mut walk, &range) {
                    out.spurious += 1;
                    sent_at = sent_at.or((late.pn == largest).then_some(late.sent_at));
                    self.path.on_late(now, late.episode, now.since(late.sent_at));
                }
            }
        }
        self.spurious_losses += u64::from(out.spurious);
        Ok(sent_at)
    }

    fn settle_acked(
        &mut self,
        now: Time,
        largest: u64,
        out: &mut Settled<F>,
    ) -> Result<AckSettled, Violation> {
        let mut ack = AckSettled::default();
        let mut any_eliciting = false;
        let Self { sent, path, eliciting, largest_acked_sent_at, ranges, .. } = self;
        // In ascending order, so that every consumer sees packets in sending order.
        for range in ranges.iter().rev() {
            let settled = sent.acknowledge(range.clone(), |pn, outstanding| {
                let current = outstanding.generation == path.generation;
                let SentPacket { size, ack_eliciting, ect0, .. } = outstanding.packet;
                let sent_at = outstanding.sent_at;
                ack.marks.all += u64::from(ect0);
                ack.marks.here += u64::from(ect0 && current);
                if ack_eliciting {
                    *eliciting -= 1;
                    any_eliciting = true;
                    if current {
                        path.on_packet_acked(now, sent_at, size, &outstanding.snapshot);
                        ack.sum.bytes += u64::from(size);
                        ack.sum.newest_sent_at = sent_at;
                    }
                }
                if pn == largest {
                    *largest_acked_sent_at = sent_at;
                    ack.rtt_sent_at = current.then_some(sent_at);
                }
                out.acked.push(outstanding.settle(pn));
            });
            settled.map_err(|NeverSent| {
                Violation::protocol("ACK of a packet number that was skipped")
            })?;
        }
        if !any_eliciting {
            // RFC 9002 §5.1: the peer may have delayed the ACK of packets that are not
            // ack-eliciting.
            ack.rtt_sent_at = None;
        }
        Ok(ack)
    }
}

#[derive(Default)]
struct AckSettled {
    sum: AckSum,
    marks: AckedMarks,
    /// Sending time of the largest acknowledged packet, if it yields an RTT sample.
    rtt_sent_at: Option<Time>,
}
