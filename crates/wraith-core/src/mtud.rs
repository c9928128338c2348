//! Path MTU discovery with probes (RFC 8899) and black-hole detection.
//!
//! A pure state machine over UDP payload sizes. It probes common sizes in ascending order, then
//! searches between the largest that arrived and the smallest that did not. Every ten minutes it
//! searches again. A size is treated as too large only after [`PROBES_PER_SIZE`] lost probes,
//! because single packets also get lost for other reasons. Invariant: `MTU_MIN <= current() <=
//! max`, and at most one probe is in flight.
//!
//! A black hole is a path that no longer carries `current()`. The sign is [`BLACK_HOLE_LOSSES`]
//! lost large packets, all newer than the newest acknowledged large packet. The search then
//! restarts from [`MTU_MIN`].

use std::time::Duration;

use crate::Time;

/// Size that every path carries (RFC 9000 §14).
pub const MTU_MIN: u16 = 1200;
/// Common sizes: Ethernet under IPv6 and IPv4, jumbo frames, then large steps for loopback and
/// similar links. 65,000 leaves room for headers.
const COMMON_SIZES: [u16; 7] = [1452, 1472, 8952, 16_384, 32_768, 49_152, 65_000];
/// Lost probes after which a size is treated as too large (MAX_PROBES, RFC 8899 §5.1.2).
const PROBES_PER_SIZE: u8 = 3;
/// The search ends when at most this many bytes remain to be gained: less is not worth lost probes.
const SEARCH_STEP_MIN: u16 = 32;
/// Interval between searches (PMTU_RAISE_TIMER, RFC 8899 §5.1.1).
const RAISE_AFTER: Duration = Duration::from_secs(600);
/// Lost large packets in a row that indicate a black hole.
const BLACK_HOLE_LOSSES: u8 = 6;

/// MTU discovery on one path.
#[derive(Clone, Debug)]
pub struct MtuDiscovery {
    current: u16,
    /// Largest size to probe.
    max: u16,
    /// Smallest size found too large, or `max + 1`.
    too_large: u32,
    probe: Option<u16>,
    /// Lost probes of the current size.
    lost_probes: u8,
    /// Time of the next search.
    idle_until: Option<Time>,
    newest_large_acked: Option<u64>,
    large_losses: u8,
}

impl MtuDiscovery {
    /// Starts with `initial` bytes of UDP payload and searches up to `max`, the smaller limit of
    /// both sides.
    pub fn new(initial: u16, max: u16) -> Self {
        let max = max.max(MTU_MIN);
        Self {
            current: initial.clamp(MTU_MIN, max),
            max,
            too_large: u32::from(max) + 1,
            probe: None,
            lost_probes: 0,
            idle_until: None,
            newest_large_acked: None,
            large_losses: 0,
        }
    }

    /// Lowers the maximum to the peer's limit of `max` bytes.
    pub fn limit(&mut self, max: u16) {
        if max < self.max {
            *self = Self::new(self.current, max);
        }
    }

    /// Starts over from [`MTU_MIN`], for another path.
    pub fn restart(&mut self) {
        *self = Self::new(MTU_MIN, self.max);
    }

    /// Returns the UDP payload size that the path carries, in bytes.
    pub fn current(&self) -> u16 {
        self.current
    }

    /// Returns the size to probe now. The probe is a datagram of exactly that size with PING and
    /// PADDING, sent as `mtu_probe`. Returns `None` while a probe is in flight or the search is
    /// over.
    pub fn poll_probe(&mut self, now: Time) -> Option<u16> {
        self.poll_probe_within(now, u64::MAX)
    }

    /// Like [`Self::poll_probe`], but also returns `None` while the next size exceeds `bytes`.
    pub fn poll_probe_within(&mut self, now: Time, bytes: u64) -> Option<u16> {
        if self.probe.is_some() {
            return None;
        }
        if let Some(until) = self.idle_until {
            if now < until {
                return None;
            }
            self.idle_until = None;
            self.too_large = u32::from(self.max) + 1;
        }
        let next = self.next_size();
        if next.is_some_and(|size| u64::from(size) > bytes) {
            return None;
        }
        self.probe = next;
        if self.probe.is_none() {
            self.idle_until = Some(now + RAISE_AFTER);
        }
        self.probe
    }

    fn next_size(&self) -> Option<u16> {
        let beyond = self.too_large;
        // First the common sizes, then the maximum, then halving.
        let common = COMMON_SIZES.into_iter().find(|size| *size > self.current);
        let ceiling = (beyond == u32::from(self.max) + 1).then_some(self.max);
        let gain = beyond - 1 - u32::from(self.current);
        let half = (gain > u32::from(SEARCH_STEP_MIN)).then(|| self.current + (gain / 2) as u16);
        [common, ceiling, half]
            .into_iter()
            .flatten()
            .find(|size| *size > self.current && u32::from(*size) < beyond)
    }

    /// Handles the acknowledgement of a probe of `size` bytes. Returns the new
    /// [`current`](Self::current) if it grew.
    pub fn on_probe_acked(&mut self, size: u16) -> Option<u16> {
        if self.probe != Some(size) {
            return None;
        }
        self.probe = None;
        self.lost_probes = 0;
        self.large_losses = 0;
        self.current = size;
        Some(size)
    }

    /// Handles a probe that was lost or that the kernel refused to send.
    pub fn on_probe_lost(&mut self) {
        let Some(size) = self.probe.take() else { return };
        self.lost_probes += 1;
        if self.lost_probes == PROBES_PER_SIZE {
            self.lost_probes = 0;
            self.too_large = u32::from(size);
        }
    }

    /// Handles the acknowledgement of non-probe packet `pn` of `size` bytes. The caller reports the
    /// acknowledged packets of an ACK before the lost ones.
    pub fn on_packet_acked(&mut self, pn: u64, size: u32) {
        if size > u32::from(MTU_MIN) && self.newest_large_acked < Some(pn) {
            self.newest_large_acked = Some(pn);
            self.large_losses = 0;
        }
    }

    /// Handles the loss of non-probe packet `pn` of `size` bytes. Returns the new, smaller
    /// [`current`](Self::current) if the path no longer carries large datagrams.
    pub fn on_packet_lost(&mut self, pn: u64, size: u32) -> Option<u16> {
        let large = size > u32::from(MTU_MIN) && size <= u32::from(self.current);
        if !large || self.newest_large_acked >= Some(pn) {
            return None;
        }
        self.large_losses += 1;
        if self.large_losses < BLACK_HOLE_LOSSES {
            return None;
        }
        self.restart();
        Some(MTU_MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Probes at `now` until the search is over, on a path that carries `limit` bytes. Probes with
    /// an index in `unlucky` are lost as well. Returns the number of probes.
    fn search(mtud: &mut MtuDiscovery, now: Time, limit: u16, unlucky: &[u32]) -> u32 {
        let mut probes = 0;
        while let Some(size) = mtud.poll_probe(now) {
            assert_eq!(mtud.poll_probe(now), None, "one probe at a time");
            assert!(size > mtud.current());
            if size <= limit && !unlucky.contains(&probes) {
                assert_eq!(mtud.on_probe_acked(size), Some(size));
                assert_eq!(mtud.current(), size);
            } else {
                mtud.on_probe_lost();
            }
            probes += 1;
            assert!(probes < 200, "does not end");
        }
        probes
    }

    #[test]
    fn loopback_is_found_in_one_probe_per_common_size() {
        let mut mtud = MtuDiscovery::new(1200, 65_000);
        assert_eq!(search(&mut mtud, Time::ZERO, 65_000, &[]), COMMON_SIZES.len() as u32);
        assert_eq!(mtud.current(), 65_000);
    }

    #[test]
    fn a_limit_of_either_side_is_reached_and_never_passed() {
        let mut mtud = MtuDiscovery::new(1200, 65_000);
        mtud.limit(1500);
        search(&mut mtud, Time::ZERO, 9000, &[]);
        assert_eq!(mtud.current(), 1500);
        mtud.limit(1300);
        assert_eq!((mtud.current(), mtud.poll_probe(Time::ZERO)), (1300, None));
        mtud.limit(100);
        assert_eq!(mtud.current(), MTU_MIN);
    }

    #[test]
    fn one_lost_probe_says_nothing() {
        let mut mtud = MtuDiscovery::new(1200, 65_000);
        search(&mut mtud, Time::ZERO, 65_000, &[0, 2, 3, 7]);
        assert_eq!(mtud.current(), 65_000);
    }

    #[test]
    fn a_path_that_improves_is_noticed_after_ten_minutes() {
        let mut mtud = MtuDiscovery::new(1200, 9000);
        search(&mut mtud, Time::ZERO, 1472, &[]);
        assert_eq!(mtud.current(), 1472);
        let later = Time::ZERO + RAISE_AFTER;
        assert_eq!(mtud.poll_probe(later - Duration::from_nanos(1)), None);
        search(&mut mtud, later, 9000, &[]);
        assert_eq!(mtud.current(), 9000);
    }

    #[test]
    fn a_path_that_stops_carrying_large_datagrams_falls_back_and_searches_again() {
        let mut mtud = MtuDiscovery::new(1200, 9000);
        search(&mut mtud, Time::ZERO, 9000, &[]);
        mtud.on_packet_acked(10, 9000);
        for pn in 11..16 {
            assert_eq!(mtud.on_packet_lost(pn, 9000), None);
        }
        // Small packets that arrive do not reset the count.
        mtud.on_packet_acked(16, 60);
        assert_eq!(mtud.on_packet_lost(17, 9000), Some(MTU_MIN));
        search(&mut mtud, Time::ZERO, 1400, &[]);
        assert!((1400 - SEARCH_STEP_MIN..=1400).contains(&mtud.current()));
    }

    #[test]
    fn a_burst_of_losses_that_newer_large_packets_overtook_is_congestion() {
        let mut mtud = MtuDiscovery::new(1472, 1472);
        mtud.on_packet_acked(1000, 1472);
        for pn in 0..1000 {
            assert_eq!(mtud.on_packet_lost(pn, 1472), None);
        }
        // Large packets that arrive in between reset the count.
        for pn in 1001..1100 {
            assert_eq!(mtud.on_packet_lost(pn, 1472), None);
            if pn % 5 == 0 {
                mtud.on_packet_acked(pn + 1000, 1472);
            }
        }
    }

    #[test]
    fn small_packets_lost_say_nothing_about_size() {
        let mut mtud = MtuDiscovery::new(1472, 1472);
        assert!((0..100).all(|pn| mtud.on_packet_lost(pn, 1200).is_none()));
    }

    #[test]
    fn a_probe_that_is_too_large_for_now_is_put_off_and_not_given_up() {
        let mut mtud = MtuDiscovery::new(1200, 9000);
        assert_eq!(mtud.poll_probe_within(Time::ZERO, 1451), None);
        assert_eq!(mtud.poll_probe_within(Time::ZERO, 1452), Some(1452));
        assert_eq!(mtud.on_probe_acked(1452), Some(1452));
        assert_eq!(mtud.poll_probe_within(Time::ZERO, 1460), None);
        search(&mut mtud, Time::ZERO, 9000, &[]);
        assert_eq!(mtud.current(), 9000);
    }

    #[test]
    fn the_answer_to_a_probe_of_the_past_is_ignored() {
        let mut mtud = MtuDiscovery::new(1200, 9000);
        let size = mtud.poll_probe(Time::ZERO).unwrap();
        mtud.restart();
        assert_eq!(mtud.on_probe_acked(size), None);
        mtud.on_probe_lost();
        assert_eq!(mtud.current(), MTU_MIN);
    }

    proptest! {
        #[test]
        fn any_limit_is_found_closely_and_never_exceeded(limit in MTU_MIN..=65_000, max in MTU_MIN..=65_000) {
            let mut mtud = MtuDiscovery::new(1200, max);
            let probes = search(&mut mtud, Time::ZERO, limit, &[]);
            let best = limit.min(max);
            prop_assert!(mtud.current() <= best && best - mtud.current() <= SEARCH_STEP_MIN);
            prop_assert!(probes <= 50, "{} probes", probes);
        }
    }
}
