//! The reordering window: how long to wait for a packet after a newer one was acknowledged, as a
//! time.
//!
//! A fixed threshold of three packets is wrong at Gbit/s, where three packets last a few
//! microseconds. The window begins with RFC 9002's time threshold, an eighth of the round trip.
//! When a late ACK disproves a loss, the window widens to the observed reordering, in the spirit of
//! RFC 8985 §6.2. It never exceeds one smoothed round trip. It is reset after [`PERSIST_EPISODES`]
//! recovery episodes without such proof.
//!
//! [`LatePackets`] remembers the packets declared lost, so that late ACKs are detected.

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::GRANULARITY;
use crate::Time;
use crate::measure::Rtt;

/// Divisor of the time threshold: kTimeThreshold is 9/8 (RFC 9002 §6.1.2).
const WINDOW_DIVISOR: u32 = 8;
/// Recovery episodes for which a widened window lasts (RFC 8985 §6.2).
const PERSIST_EPISODES: u8 = 16;
/// Maximum number of remembered lost packets. More losses in one episode are not reordering.
const REMEMBERED_MAX: usize = 2048;

/// The reordering window of one path.
#[derive(Clone, Debug, Default)]
pub(super) struct Reordering {
    seen: Duration,
    persists: u8,
}

impl Reordering {
    /// Returns the loss delay: a packet this old is lost once a newer one was acknowledged.
    pub(super) fn loss_delay(&self, rtt: &Rtt) -> Duration {
        let flight = rtt.smoothed().max(rtt.latest());
        let window = (flight / WINDOW_DIVISOR).max(self.seen.min(rtt.smoothed()));
        (flight + window).max(GRANULARITY)
    }

    /// Handles the late ACK of a packet declared lost, `age` after it was sent.
    pub(super) fn on_late(&mut self, age: Duration, rtt: &Rtt) {
        let late_by = age.saturating_sub(rtt.smoothed());
        // Slightly more than observed, so that the next such packet is not declared lost.
        self.seen = self.seen.max(late_by + late_by / 4);
        self.persists = PERSIST_EPISODES;
    }

    /// Handles the start of a recovery episode.
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
    /// The recovery episode in which it was lost.
    pub(super) episode: u64,
}

/// The last [`REMEMBERED_MAX`] packets declared lost, in ascending order.
#[derive(Debug, Default)]
pub(super) struct LatePackets {
    packets: VecDeque<LatePacket>,
}

/// A cursor: packets from this position on lie above the remaining ranges. An ACK has dozens of
/// ranges and repeats them. A search for each from the start would dominate its cost.
#[derive(Debug)]
pub(super) struct LateCursor {
    above: usize,
}

impl LatePackets {
    /// Adds a packet; its number must exceed all previous ones.
    pub(super) fn push(&mut self, packet: LatePacket) {
        debug_assert!(self.packets.back().is_none_or(|last| last.pn < packet.pn));
        if self.packets.len() == REMEMBERED_MAX {
            self.packets.pop_front();
        }
        self.packets.push_back(packet);
    }

    /// Returns the start of a walk through descending ranges.
    pub(super) fn walk(&self) -> LateCursor {
        LateCursor { above: self.packets.len() }
    }

    /// Removes and returns one packet of `range`, which was acknowledged late. The ranges of one
    /// walk must descend.
    pub(super) fn take(
        &mut self,
        walk: &mut LateCursor,
        range: &RangeInclusive<u64>,
    ) -> Option<LatePacket> {
        while walk.above > 0 && self.packets[walk.above - 1].pn > *range.end() {
            // Most ranges are one lost packet apart; galloping skips a burst of losses.
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
