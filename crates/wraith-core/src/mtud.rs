//! Path MTU discovery with probes (RFC 8899) and black-hole detection.
//!
//! A pure state machine over UDP payload sizes. It probes near common sizes in ascending order, then
//! searches between the largest that arrived and the smallest that did not. Every ten minutes it
//! searches again. A size is treated as too large only after [`PROBES_PER_SIZE`] lost probes,
//! because single packets also get lost for other reasons. Invariant: `MTU_MIN <= current() <=
//! max`, and at most one probe is in flight.
//!
//! Sizes are drawn, so that no list of exact sizes identifies a connection. Some seconds after the
//! search, exact common sizes replace the drawn ones: by then, full packets show the size of the
//! path anyway.
//!
//! A black hole is a path that no longer carries `current()`. The sign is [`BLACK_HOLE_LOSSES`]
//! lost large packets, all newer than the newest acknowledged large packet. The search then
//! restarts from [`MTU_BASE`] or, if packets of that size got lost, from [`MTU_MIN`]. A path that loses
//! [`MTU_MIN`] as well is unusable.

use std::time::Duration;

use rand_core::Rng;

use crate::Time;

/// Smallest size of full packets. A datagram of a short H1 is as long, so a path that carries less
/// completes no handshake. A part of a RATCHET message fits (SPEC §4.6).
pub const MTU_MIN: u16 = 660;
/// Size that nearly every path carries (RFC 9000 §14), and from which a search starts.
pub const MTU_BASE: u16 = 1200;
/// The initial size of full packets is up to this many bytes below [`MTU_BASE`].
pub(crate) const INITIAL_JITTER: u16 = 48;
/// Common sizes: the base, Ethernet under IPv6 and IPv4, jumbo frames, then large steps for loopback
/// and similar links. 65,000 leaves room for headers.
const COMMON_SIZES: [u16; 8] = [MTU_BASE, 1452, 1472, 8952, 16_384, 32_768, 49_152, 65_000];
/// Exact sizes of common paths: tunnels with 1280 and 1420 bytes, PPPoE, Ethernet and jumbo frames,
/// each under IPv6 and IPv4.
const EXACT_SIZES: [u16; 11] = [1200, 1232, 1252, 1372, 1392, 1444, 1464, 1452, 1472, 8952, 8972];
/// Largest exact size that is probed. Above it a probe gains less than the data that it delays.
const EXACT_SIZE_MAX: u16 = 9000;
/// A probe near a common size is smaller by up to 1/64 of it. This is the divisor.
const JITTER_DIVISOR: u16 = 64;
/// Lost probes after which a size is treated as too large (MAX_PROBES, RFC 8899 §5.1.2).
const PROBES_PER_SIZE: u8 = 3;
/// The search ends if it can gain at most this many bytes, or at most 1/[`JITTER_DIVISOR`] of the
/// current size. A smaller gain is not worth lost probes.
const SEARCH_STEP_MIN: u16 = 32;
/// Interval between searches (PMTU_RAISE_TIMER, RFC 8899 §5.1.1), drawn between this and a quarter
/// more.
const RAISE_AFTER: Duration = Duration::from_secs(600);
/// Wait before exact sizes are probed, drawn between this and four times as long.
const EXACT_AFTER: Duration = Duration::from_secs(1);
/// Lost large packets in a row that indicate a black hole.
const BLACK_HOLE_LOSSES: u8 = 6;
/// Time that these losses have to span if packets of at most [`MTU_BASE`] bytes got lost, which nearly
/// every path carries. A third party may carry copies of small packets faster than the path; large
/// ones then seem lost and arrive within this time.
const BLACK_HOLE_TIME: Duration = Duration::from_millis(500);
/// Lost packets in a row at [`MTU_MIN`] that end the connection.
const UNUSABLE_LOSSES: u8 = 12;
/// Least time between the first and the last of them.
const UNUSABLE_TIME: Duration = Duration::from_secs(3);

/// Meaning of a lost packet for the path MTU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlackHole {
    /// The path no longer carries the previous size. This is the new one.
    Lowered(u16),
    /// The path carries small packets, but none of [`MTU_MIN`] bytes.
    Unusable,
}

/// MTU discovery on one path.
#[derive(Clone, Debug)]
pub struct MtuDiscovery {
    current: u16,
    /// Largest size to probe.
    max: u16,
    /// Smallest size found too large, or `max + 1`.
    too_large: u32,
    probe: Option<u16>,
    /// Lost probes of the current step of the search, and the smallest of them.
    lost_probes: u8,
    smallest_lost: u16,
    /// Time of the next search.
    idle_until: Option<Time>,
    /// Time of the next probe of an exact size.
    exact_at: Option<Time>,
    newest_large_acked: Option<u64>,
    large_losses: u8,
    /// Time of the first of these losses.
    large_losses_since: Time,
    /// Spurious losses seen on the connection.
    spurious_losses: u64,
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
            smallest_lost: u16::MAX,
            idle_until: None,
            exact_at: None,
            newest_large_acked: None,
            large_losses: 0,
            large_losses_since: Time::ZERO,
            spurious_losses: 0,
        }
    }

    /// Lowers the maximum to the peer's limit of `max` bytes.
    pub fn limit(&mut self, max: u16) {
        if max < self.max {
            *self = Self::new(self.current, max);
        }
    }

    /// Starts over from `initial` bytes, for another path.
    pub fn restart(&mut self, initial: u16) {
        *self = Self::new(initial, self.max);
    }

    /// Returns the UDP payload size that the path carries, in bytes.
    pub fn current(&self) -> u16 {
        self.current
    }

    /// Returns the size to probe now. The probe is a datagram of exactly that size with PING and
    /// PADDING, sent as `mtu_probe`. Returns `None` while a probe is in flight or the search is
    /// over.
    pub fn poll_probe(&mut self, now: Time, rng: &mut impl Rng) -> Option<u16> {
        self.poll_probe_within(now, u64::MAX, rng)
    }

    /// Like [`Self::poll_probe`], but also returns `None` while the next size may exceed `bytes`.
    pub fn poll_probe_within(&mut self, now: Time, bytes: u64, rng: &mut impl Rng) -> Option<u16> {
        if self.probe.is_some() {
            return None;
        }
        if self.idle_until.is_some_and(|until| until <= now) {
            self.idle_until = None;
            self.too_large = u32::from(self.max) + 1;
        }
        let next = match self.idle_until {
            None => self.next_range(),
            Some(_) if self.exact_at.is_some_and(|at| at <= now) => {
                self.exact_size().map(|size| (size, size))
            }
            Some(_) => return None,
        };
        let Some((least, most)) = next else {
            self.rest(now, rng);
            return None;
        };
        if u64::from(most) > bytes {
            return None;
        }
        self.probe = Some(least + (rng.next_u32() % (u32::from(most - least) + 1)) as u16);
        self.probe
    }

    /// Ends the search, or the probes of exact sizes.
    #[cold]
    fn rest(&mut self, now: Time, rng: &mut impl Rng) {
        let drawn = |most: Duration, rng: &mut dyn FnMut() -> u32| {
            most.mul_f64(f64::from(rng()) / f64::from(u32::MAX))
        };
        let mut next = || rng.next_u32();
        if self.idle_until.is_none() {
            self.idle_until = Some(now + RAISE_AFTER + drawn(RAISE_AFTER / 4, &mut next));
            self.exact_at = Some(now + EXACT_AFTER + drawn(EXACT_AFTER * 3, &mut next));
        } else {
            self.exact_at = None;
        }
    }

    /// Returns the range from which the next size of the search is drawn.
    fn next_range(&self) -> Option<(u16, u16)> {
        // First near the common sizes, then near the maximum, then halving.
        let near = |size: u16| (size - size / JITTER_DIVISOR, size);
        let ceiling = (self.too_large == u32::from(self.max) + 1).then_some(self.max);
        let is_based = self.current >= MTU_BASE - INITIAL_JITTER;
        let common = COMMON_SIZES
            .into_iter()
            .filter(|size| u32::from(*size) < self.too_large && !(*size == MTU_BASE && is_based));
        let next = common.map(near).find(|(least, _)| *least > self.current);
        let next = next.or_else(|| ceiling.map(near).filter(|(least, _)| *least > self.current));
        let gain = (self.too_large - 1) as u16 - self.current;
        let most = self.smallest_lost.max(self.current.saturating_add(1));
        next.or_else(|| {
            let half = (self.current + gain / 2, gain / 8);
            let ends = SEARCH_STEP_MIN.max(self.current / JITTER_DIVISOR);
            (gain > ends).then_some((half.0 - half.1, half.0 + half.1))
        })
        // A repeat is no larger than the probe that was lost, so its loss says as much.
        .map(|(least, greatest)| (least.min(most), greatest.min(most)))
    }

    /// Returns the next exact size slightly above the present one.
    fn exact_size(&self) -> Option<u16> {
        let above = |size: &u16| *size > self.current && u32::from(*size) < self.too_large;
        let sizes = EXACT_SIZES.into_iter().chain([self.max]).filter(above);
        let size = sizes.min().filter(|size| *size <= EXACT_SIZE_MAX)?;
        (size - self.current <= SEARCH_STEP_MIN.max(size / JITTER_DIVISOR)).then_some(size)
    }

    /// Handles the acknowledgement of a probe of `size` bytes. Returns the new
    /// [`current`](Self::current) if it grew.
    pub fn on_probe_acked(&mut self, size: u16) -> Option<u16> {
        if self.probe != Some(size) {
            return None;
        }
        self.probe = None;
        self.lost_probes = 0;
        self.smallest_lost = u16::MAX;
        self.large_losses = 0;
        self.current = size;
        Some(size)
    }

    /// Handles a probe that was lost or that the kernel refused to send.
    pub fn on_probe_lost(&mut self) {
        let Some(size) = self.probe.take() else { return };
        self.lost_probes += 1;
        self.smallest_lost = self.smallest_lost.min(size);
        if self.lost_probes == PROBES_PER_SIZE {
            self.too_large = u32::from(self.smallest_lost);
            self.lost_probes = 0;
            self.smallest_lost = u16::MAX;
        }
    }

    /// Returns the size from which the search restarts after a black hole.
    fn fallback(&self) -> u16 {
        if self.current > MTU_BASE { MTU_BASE } else { MTU_MIN }
    }

    /// Returns the size up to which packets say nothing about the path MTU.
    fn small(&self) -> u16 {
        if self.current == MTU_MIN { MTU_MIN / 2 } else { self.fallback() }
    }

    /// Handles the acknowledgement of non-probe packet `pn` of `size` bytes. The caller reports the
    /// acknowledged packets of an ACK before the lost ones.
    pub fn on_packet_acked(&mut self, pn: u64, size: u32) {
        if size > u32::from(self.small()) && self.newest_large_acked < Some(pn) {
            self.newest_large_acked = Some(pn);
            self.large_losses = 0;
        }
    }

    /// Handles the number of losses of the connection that turned out to be spurious. Such packets
    /// were late, so the losses so far say nothing about their size.
    pub fn on_spurious_losses(&mut self, total: u64) {
        if total != self.spurious_losses {
            (self.spurious_losses, self.large_losses) = (total, 0);
        }
    }

    /// Handles the loss of non-probe packet `pn` of `size` bytes. Returns the consequence, if the
    /// path no longer carries large datagrams.
    pub fn on_packet_lost(&mut self, now: Time, pn: u64, size: u32) -> Option<BlackHole> {
        let large = size > u32::from(self.small()) && size <= u32::from(self.current);
        if !large || self.newest_large_acked >= Some(pn) {
            return None;
        }
        if self.large_losses == 0 {
            self.large_losses_since = now;
        }
        self.large_losses = self.large_losses.saturating_add(1);
        let (losses, time) = match self.current {
            MTU_MIN => (UNUSABLE_LOSSES, UNUSABLE_TIME),
            ..=MTU_BASE => (BLACK_HOLE_LOSSES, BLACK_HOLE_TIME),
            _ => (BLACK_HOLE_LOSSES, Duration::ZERO),
        };
        if self.large_losses < losses || now - self.large_losses_since < time {
            return None;
        }
        if self.current == MTU_MIN {
            return Some(BlackHole::Unusable);
        }
        self.restart(self.fallback());
        Some(BlackHole::Lowered(self.current))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;

    fn rng() -> ChaCha20Rng {
        ChaCha20Rng::seed_from_u64(1)
    }

    /// Probes at `now` until the search is over, on a path that carries `limit` bytes. Probes with
    /// an index in `unlucky` are lost as well. Returns the sizes of the probes.
    fn search(
        mtud: &mut MtuDiscovery,
        now: Time,
        limit: u16,
        unlucky: &[usize],
        rng: &mut ChaCha20Rng,
    ) -> Vec<u16> {
        let mut probes = Vec::new();
        while let Some(size) = mtud.poll_probe(now, rng) {
            assert_eq!(mtud.poll_probe(now, rng), None, "one probe at a time");
            assert!(size > mtud.current());
            if size <= limit && !unlucky.contains(&probes.len()) {
                assert_eq!(mtud.on_probe_acked(size), Some(size));
                assert_eq!(mtud.current(), size);
            } else {
                mtud.on_probe_lost();
            }
            probes.push(size);
            assert!(probes.len() < 200, "does not end");
        }
        probes
    }

    /// Like [`search`], and then probes exact sizes.
    fn search_exactly(mtud: &mut MtuDiscovery, limit: u16) -> u16 {
        let mut rng = rng();
        search(mtud, Time::ZERO, limit, &[], &mut rng);
        search(mtud, Time::ZERO + EXACT_AFTER * 4, limit, &[], &mut rng);
        mtud.current()
    }

    #[test]
    fn loopback_is_found_in_one_probe_per_common_size() {
        let mut mtud = MtuDiscovery::new(1200, 65_000);
        let probes = search(&mut mtud, Time::ZERO, 65_000, &[], &mut rng());
        assert!((5..=COMMON_SIZES.len() - 1).contains(&probes.len()), "{probes:?}");
        assert!(mtud.current() >= 65_000 - 65_000 / 64);
        search(&mut mtud, Time::ZERO + EXACT_AFTER * 4, 65_000, &[], &mut rng());
        assert_eq!(probes.last(), Some(&mtud.current()), "no exact size is worth a probe here");
    }

    #[test]
    fn the_sizes_of_common_paths_are_reached_exactly_after_some_seconds() {
        for size in EXACT_SIZES {
            let mut mtud = MtuDiscovery::new(1180, 65_000);
            assert_eq!(search_exactly(&mut mtud, size), size);
        }
    }

    #[test]
    fn no_size_of_an_early_probe_is_common() {
        let mut counts = std::collections::HashMap::<u16, u32>::new();
        let mut rng = rng();
        for _ in 0..1000 {
            let mut mtud = MtuDiscovery::new(1180, 65_000);
            for size in search(&mut mtud, Time::ZERO, 1472, &[], &mut rng) {
                *counts.entry(size).or_default() += 1;
            }
        }
        let most = counts.values().max().unwrap();
        assert!(*most < 200, "of 1000 searches {most} probed the same size");
    }

    #[test]
    fn a_limit_of_either_side_is_reached_and_never_passed() {
        let mut mtud = MtuDiscovery::new(1200, 65_000);
        mtud.limit(1500);
        assert_eq!(search_exactly(&mut mtud, 9000), 1500);
        mtud.limit(1300);
        assert_eq!((mtud.current(), mtud.poll_probe(Time::ZERO, &mut rng())), (1300, None));
        mtud.limit(100);
        assert_eq!(mtud.current(), MTU_MIN);
    }

    #[test]
    fn one_lost_probe_says_nothing() {
        let mut mtud = MtuDiscovery::new(1200, 65_000);
        search(&mut mtud, Time::ZERO, 65_000, &[0, 2, 3, 6], &mut rng());
        assert!(mtud.current() >= 65_000 - 65_000 / 64);
    }

    #[test]
    fn a_path_that_improves_is_noticed_after_ten_minutes() {
        let (mut mtud, mut rng) = (MtuDiscovery::new(1200, 9000), rng());
        search(&mut mtud, Time::ZERO, 1472, &[], &mut rng);
        assert!((1440..=1472).contains(&mtud.current()));
        let early = Time::ZERO + RAISE_AFTER - Duration::from_nanos(1);
        search(&mut mtud, early, 9000, &[], &mut rng);
        assert!(mtud.current() <= 1472, "only exact sizes");
        search(&mut mtud, Time::ZERO + RAISE_AFTER * 5 / 4, 9000, &[], &mut rng);
        assert!(mtud.current() >= 8812);
    }

    #[test]
    fn a_path_that_stops_carrying_large_datagrams_falls_back_and_searches_again() {
        let (mut mtud, mut rng) = (MtuDiscovery::new(1200, 9000), rng());
        search(&mut mtud, Time::ZERO, 9000, &[], &mut rng);
        let size = u32::from(mtud.current());
        mtud.on_packet_acked(10, size);
        for pn in 11..16 {
            assert_eq!(mtud.on_packet_lost(Time::ZERO, pn, size), None);
        }
        // Small packets that arrive do not reset the count.
        mtud.on_packet_acked(16, 60);
        assert_eq!(mtud.on_packet_lost(Time::ZERO, 17, size), Some(BlackHole::Lowered(MTU_BASE)));
        search(&mut mtud, Time::ZERO, 1400, &[], &mut rng);
        assert!((1400 - SEARCH_STEP_MIN..=1400).contains(&mtud.current()));
    }

    #[test]
    fn a_path_below_the_base_falls_back_to_the_least_size_and_one_below_that_is_unusable() {
        let (mut mtud, mut rng) = (MtuDiscovery::new(MTU_BASE, 9000), rng());
        mtud.on_packet_acked(1, 660);
        assert!((2..20).all(|pn| mtud.on_packet_lost(Time::ZERO, pn, 1200).is_none()));
        let lowered = mtud.on_packet_lost(Time::ZERO + BLACK_HOLE_TIME, 20, 1200);
        assert_eq!(lowered, Some(BlackHole::Lowered(MTU_MIN)));
        let (mut good, mut bad) = (mtud.clone(), mtud);
        search(&mut good, Time::ZERO, 1000, &[], &mut rng);
        assert!((968..=1000).contains(&good.current()));
        // Losses that a newer full packet overtook do not count.
        bad.on_packet_acked(40, 660);
        assert!((21..40).all(|pn| bad.on_packet_lost(Time::ZERO, pn, 660).is_none()));
        bad.on_packet_acked(60, 40);
        // Losses of a moment may be a detour of the small packets.
        assert!((41..70).all(|pn| bad.on_packet_lost(Time::ZERO, pn, 660).is_none()));
        let mut late = bad.clone();
        let after = Time::ZERO + UNUSABLE_TIME;
        late.on_spurious_losses(1);
        assert_eq!(late.on_packet_lost(after, 70, 660), None);
        let lost = (70..71).filter_map(|pn| bad.on_packet_lost(after, pn, 660));
        assert_eq!(lost.collect::<Vec<_>>(), [BlackHole::Unusable]);
    }

    #[test]
    fn a_burst_of_losses_that_newer_large_packets_overtook_is_congestion() {
        let mut mtud = MtuDiscovery::new(1472, 1472);
        mtud.on_packet_acked(1000, 1472);
        for pn in 0..1000 {
            assert_eq!(mtud.on_packet_lost(Time::ZERO, pn, 1472), None);
        }
        // Large packets that arrive in between reset the count.
        for pn in 1001..1100 {
            assert_eq!(mtud.on_packet_lost(Time::ZERO, pn, 1472), None);
            if pn % 5 == 0 {
                mtud.on_packet_acked(pn + 1000, 1472);
            }
        }
    }

    #[test]
    fn small_packets_lost_say_nothing_about_size() {
        let mut mtud = MtuDiscovery::new(1472, 1472);
        assert!((0..100).all(|pn| mtud.on_packet_lost(Time::ZERO, pn, 1200).is_none()));
    }

    #[test]
    fn a_probe_that_is_too_large_for_now_is_put_off_and_not_given_up() {
        let (mut mtud, mut rng) = (MtuDiscovery::new(1200, 9000), rng());
        assert_eq!(mtud.poll_probe_within(Time::ZERO, 1451, &mut rng), None);
        let size = mtud.poll_probe_within(Time::ZERO, 1452, &mut rng).unwrap();
        assert_eq!(mtud.on_probe_acked(size), Some(size));
        assert_eq!(mtud.poll_probe_within(Time::ZERO, 1460, &mut rng), None);
        search(&mut mtud, Time::ZERO, 9000, &[], &mut rng);
        assert!(mtud.current() >= 8812);
    }

    #[test]
    fn the_answer_to_a_probe_of_the_past_is_ignored() {
        let mut mtud = MtuDiscovery::new(1200, 9000);
        let size = mtud.poll_probe(Time::ZERO, &mut rng()).unwrap();
        mtud.restart(MTU_BASE);
        assert_eq!(mtud.on_probe_acked(size), None);
        mtud.on_probe_lost();
        assert_eq!(mtud.current(), MTU_BASE);
    }

    proptest! {
        #[test]
        fn any_limit_is_found_closely_and_never_exceeded(
            limit in MTU_MIN..=65_000,
            max in MTU_MIN..=65_000,
            from_base: bool,
            seed: u64,
        ) {
            let initial = if from_base { MTU_BASE } else { MTU_MIN }.min(limit);
            let mut mtud = MtuDiscovery::new(initial, max);
            let mut rng = ChaCha20Rng::seed_from_u64(seed);
            let probes = search(&mut mtud, Time::ZERO, limit, &[], &mut rng).len();
            let best = limit.min(max);
            let near = SEARCH_STEP_MIN.max(best / JITTER_DIVISOR);
            prop_assert!(mtud.current() <= best && best - mtud.current() <= near);
            prop_assert!(probes <= 60, "{} probes", probes);
        }
    }
}
