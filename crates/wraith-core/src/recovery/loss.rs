//! Loss detection (RFC 9002 §6.1) by time: a packet is lost if a newer one was acknowledged and
//! enough time has passed.

use std::time::Duration;

use super::packet::Outstanding;
use super::path::LossSum;
use super::persistent_congestion::LostRun;
use super::reordering::LatePacket;
use super::{Recovery, SentPacket, Settled};
use crate::Time;

impl<F> Recovery<F> {
    /// Declares lost packets. Losses are a prefix of the outstanding packets, because both packet
    /// number and sending time ascend.
    pub(super) fn detect_lost(&mut self, now: Time, out: &mut Settled<F>) {
        let mut sum = LossSum::default();
        let mut run = LostRun::default();
        while let Some((pn, oldest)) = self.sent.front() {
            let overtaken = self.largest_acked.is_some_and(|largest| pn < largest);
            // Recomputed for each packet: an episode that begins in this loop may end the wider
            // reordering window.
            let lost_at = oldest.sent_at + self.loss_delay_of(oldest);
            let due = !oldest.packet.ack_eliciting || lost_at <= now;
            let is_lost = overtaken && due;
            if !is_lost && !self.exceeds_bounds() {
                break;
            }
            let (pn, lost) = self.sent.pop_front().expect("there is a front");
            let counts = self.take_lost(now, pn, &lost, &mut sum);
            run.extend(pn, counts.then_some(lost.sent_at), self.path.first_sample_at());
            if lost.packet.ack_eliciting {
                out.lost.push(lost.settle(pn));
            }
        }
        if sum.packets == 0 {
            return;
        }
        let limit = self.path.persistent_congestion_duration(self.config.max_ack_delay);
        sum.persistent_congestion = run.longest > limit;
        out.persistent_congestion = sum.persistent_congestion;
        self.packets_lost += sum.packets;
        self.path.on_lost(now, &sum);
    }

    /// Accounts for one lost packet. Returns true if it indicates congestion on the current path.
    fn take_lost(&mut self, now: Time, pn: u64, lost: &Outstanding<F>, sum: &mut LossSum) -> bool {
        let SentPacket { size, ack_eliciting, mtu_probe, ect0, .. } = lost.packet;
        self.eliciting -= u64::from(ack_eliciting);
        if !ack_eliciting || lost.generation != self.path.generation {
            return false;
        }
        self.path.in_flight -= u64::from(size);
        if ect0 {
            self.path.ecn.on_lost();
        }
        if mtu_probe {
            return false;
        }
        let episode = self.path.on_packet_lost(now, pn, lost.sent_at, size, &lost.snapshot, sum);
        self.late.push(LatePacket { pn, sent_at: lost.sent_at, episode });
        true
    }

    pub(super) fn loss_time(&self) -> Option<Time> {
        let (pn, oldest) = self.sent.front()?;
        if self.exceeds_bounds() {
            return Some(Time::ZERO);
        }
        (pn < self.largest_acked?).then(|| oldest.sent_at + self.loss_delay_of(oldest))
    }

    fn loss_delay_of(&self, packet: &Outstanding<F>) -> Duration {
        let delay = self.loss_delay();
        if packet.generation == self.path.generation {
            delay
        } else {
            delay.max(self.left_loss_delay)
        }
    }

    pub(super) fn loss_delay(&self) -> Duration {
        let delay = self.path.loss_delay();
        // `wait_max` is at least a second, so its whole seconds are compared first: this runs for
        // every packet and ACK.
        if delay.as_secs() < self.wait_max.as_secs() { delay } else { delay.min(self.wait_max) }
    }
}
