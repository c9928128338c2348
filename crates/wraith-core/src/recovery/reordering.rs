//! How long to wait for a packet that newer ones overtook: a time, not a count of packets.
//!
//! A fixed threshold of three packets is wrong at Gbit/s, where three packets are a few microseconds. We begin with
//! RFC 9002's time threshold (an eighth of the round trip) and widen it, in the spirit of RFC 8985 §6.2, to what
//! reordering really took as soon as a late ACK proves a loss wrong; never beyond one smoothed round trip. The wider
//! window is given up after [`PERSIST_EPISODES`] recovery episodes without such proof.
//!
//! [`LatePackets`] remembers the packets declared lost, so that the proof is noticed.

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::GRANULARITY;
use crate::Time;
use crate::measure::Rtt;

/// RFC 9002 §6.1.2: kTimeThreshold is 9/8.
const WINDOW_DIVISOR: u32 = 8;
/// RFC 8985 §6.2: a widened window lasts this many recoveries.
const PERSIST_EPISODES: u8 = 16;
/// Lost packets remembered. Losing more than this in one episode is no reordering.
const REMEMBERED_MAX: usize = 2048;

/// The reordering window of one path.
#[derive(Clone, Debug, Default)]
pub(super) struct Reordering {
    seen: Duration,
    persists: u8,
}

impl Reordering {
    /// A packet is lost if a newer one was acknowledged and it was sent this long ago.
    pub(super) fn loss_delay(&self, rtt: &Rtt) -> Duration {
        let flight = rtt.smoothed().max(rtt.latest());
        let window = (flight / WINDOW_DIVISOR).max(self.seen.min(rtt.smoothed()));
        (flight + window).max(GRANULARITY)
    }

    /// A packet declared lost was acknowledged `age` after it was sent.
    pub(super) fn on_late(&mut self, age: Duration, rtt: &Rtt) {
        let late_by = age.saturating_sub(rtt.smoothed());
        // A little more than observed, so that the next one like it is not lost again.
        self.seen = self.seen.max(late_by + late_by / 4);
        self.persists = PERSIST_EPISODES;
    }

    /// A recovery episode began.
    pub(super) fn on_episode(&mut self) {
        self.persists = self.persists.saturating_sub(1);
        if self.persists == 0 {
            self.seen = Duration::ZERO;
        }
    }
}

/// A packet declared lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LatePacket {
    pub(super) pn: u64,
    pub(super) sent_at: Time,
    /// The recovery episode it was lost in.
    pub(super) episode: u64,
}

/// The last [`REMEMBERED_MAX`] packets declared lost, ascending.
#[derive(Debug, Default)]
pub(super) struct LatePackets {
    packets: VecDeque<LatePacket>,
}

/// Packets from this place on lie above the ranges still to come. An ACK has dozens of ranges and repeats them;
/// searching for each from the start would cost more than everything else about it.
#[derive(Debug)]
pub(super) struct LateWalk {
    above: usize,
}

impl LatePackets {
    /// Remembers a packet; its number must be above all before.
    pub(super) fn push(&mut self, packet: LatePacket) {
        debug_assert!(self.packets.back().is_none_or(|last| last.pn < packet.pn));
        if self.packets.len() == REMEMBERED_MAX {
            self.packets.pop_front();
        }
        self.packets.push_back(packet);
    }

    /// Where a walk through descending ranges starts.
    pub(super) fn walk(&self) -> LateWalk {
        LateWalk { above: self.packets.len() }
    }

    /// Takes one packet of `range`: it was acknowledged after all. The ranges of one walk descend.
    pub(super) fn take(
        &mut self,
        walk: &mut LateWalk,
        range: &RangeInclusive<u64>,
    ) -> Option<LatePacket> {
        while walk.above > 0 && self.packets[walk.above - 1].pn > *range.end() {
            // Most ranges are one lost packet apart; a burst of losses is jumped over.
            let mut step = 1;
            while step <= walk.above && self.packets[walk.above - step].pn > *range.end() {
                walk.above -= step;
                step *= 2;
            }
        }
        let i = walk.above.checked_sub(1)?;
        if self.packets[i].pn < *range.start() {
            return None;
        }
        walk.above = i;
        self.packets.remove(i)
    }

    pub(super) fn clear(&mut self) {
        self.packets.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn rtt(sample: Duration) -> Rtt {
        let mut rtt = Rtt::assumed(sample);
        rtt.update(sample, Duration::ZERO);
        rtt
    }

    #[test]
    fn the_window_follows_what_was_seen_up_to_one_round_trip_and_is_given_up_later() {
        let rtt = rtt(ms(80));
        let mut reordering = Reordering::default();
        assert_eq!(reordering.loss_delay(&rtt), ms(90));
        reordering.on_late(ms(120), &rtt);
        assert_eq!(reordering.loss_delay(&rtt), ms(130));
        reordering.on_late(ms(1000), &rtt);
        assert_eq!(reordering.loss_delay(&rtt), ms(160));
        for _ in 0..PERSIST_EPISODES {
            reordering.on_episode();
        }
        assert_eq!(reordering.loss_delay(&rtt), ms(90));
    }

    #[test]
    fn a_loopback_round_trip_waits_at_least_the_timer_granularity() {
        assert_eq!(Reordering::default().loss_delay(&rtt(Duration::from_micros(30))), ms(1));
    }

    #[test]
    fn lost_packets_are_found_by_range_once_and_the_oldest_are_forgotten() {
        let mut late = LatePackets::default();
        let packet = |pn| LatePacket { pn, sent_at: Time::ZERO, episode: 0 };
        (0..REMEMBERED_MAX as u64 + 10).for_each(|pn| late.push(packet(pn * 2)));
        let mut walk = late.walk();
        assert_eq!(late.take(&mut walk, &(4500..=u64::MAX)), None);
        assert_eq!(late.take(&mut walk, &(4001..=4001)), None);
        assert_eq!(late.take(&mut walk, &(3000..=3002)), Some(packet(3002)));
        assert_eq!(late.take(&mut walk, &(3000..=3002)), Some(packet(3000)));
        assert_eq!(late.take(&mut walk, &(3000..=3002)), None);
        assert_eq!(late.take(&mut walk, &(23..=24)), Some(packet(24)));
        assert_eq!(late.take(&mut walk, &(20..=21)), Some(packet(20)));
        assert_eq!(late.take(&mut walk, &(0..=19)), None);
        let mut again = late.walk();
        assert_eq!(late.take(&mut again, &(20..=25)), Some(packet(22)));
        assert_eq!(late.take(&mut again, &(20..=25)), None);
    }
}
