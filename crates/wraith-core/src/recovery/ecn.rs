//! ECN validation on a path (RFC 9000 §13.4 and appendix A.4): whether packets are marked ECT(0),
//! and whether the peer's counts are plausible.
//!
//! ```text
//!            10 packets or 3 PTO               a mark came through
//!  Testing ───────────────────────▶ Unknown ───────────────────────▶ Capable
//!     │ marked                          │ not marked                  │ marked
//!     └────────────────┬────────────────┴──────────────┬──────────────┘
//!                      │ all lost, or all CE           │ counts that cannot be
//!                      └────────────▶ Failed ◀─────────┘
//! ```
//!
//! A failure ends marking on the path and nothing else. If a middlebox mangles marks or a peer
//! reports false counts, the sender relies on loss and round trips and not on marks. A new path is
//! tested again.
//!
//! Invariant: congestion control sees marks only on a capable path.

use std::time::Duration;

use crate::Time;
use crate::frame::EcnCounts;

/// Packets marked to test a new path (RFC 9000 A.4).
const TEST_PACKETS: u64 = 10;
/// Maximum duration of the test, in probe timeouts (RFC 9000 A.4).
const TEST_PTOS: u32 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EcnState {
    Testing,
    Unknown,
    Capable,
    Failed,
}

/// ECN state of the current path.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathEcn {
    state: EcnState,
    /// Sending time of the first marked packet.
    since: Option<Time>,
    /// Marked packets of the test.
    marked: u64,
    /// Marked packets of the test that are ack-eliciting.
    eliciting: u64,
    /// Ack-eliciting packets of the test that were declared lost.
    lost: u64,
    /// Marked packets acknowledged before the path became capable, and those reported as CE.
    acked: u64,
    ce: u64,
}

impl PathEcn {
    pub(super) fn new() -> Self {
        let state = EcnState::Testing;
        Self { state, since: None, marked: 0, eliciting: 0, lost: 0, acked: 0, ce: 0 }
    }

    /// Returns true if packets must be marked now.
    pub(super) fn marks(&mut self, now: Time, pto: Duration) -> bool {
        let over = self.since.is_some_and(|since| now >= since + pto * TEST_PTOS);
        if self.state == EcnState::Testing && (over || self.marked >= TEST_PACKETS) {
            self.state = EcnState::Unknown;
        }
        matches!(self.state, EcnState::Testing | EcnState::Capable)
    }

    pub(super) fn is_capable(&self) -> bool {
        self.state == EcnState::Capable
    }

    /// Handles a marked packet that leaves.
    pub(super) fn on_sent(&mut self, now: Time, ack_eliciting: bool) {
        if self.state == EcnState::Testing {
            self.since.get_or_insert(now);
            self.marked += 1;
            self.eliciting += u64::from(ack_eliciting);
        }
    }

    /// Handles the loss of a marked ack-eliciting packet. If all of them are lost, the marks may be
    /// the cause.
    pub(super) fn on_lost(&mut self) {
        if matches!(self.state, EcnState::Testing | EcnState::Unknown) {
            self.lost += 1;
            let tested = self.state == EcnState::Unknown || self.eliciting >= TEST_PACKETS;
            if tested && self.acked == 0 && self.lost >= self.eliciting {
                self.state = EcnState::Failed;
            }
        }
    }

    fn fail(&mut self) {
        self.state = EcnState::Failed;
    }

    /// Handles plausible counts. `acked` marked packets of this path were newly acknowledged. Of
    /// all newly acknowledged ones, `ect0` arrived unchanged and `ce` with a CE mark. Returns the
    /// number of marks that require a response.
    fn on_valid(&mut self, acked: u64, ect0: u64, ce: u64) -> u64 {
        match self.state {
            EcnState::Capable => ce,
            EcnState::Failed => 0,
            EcnState::Testing | EcnState::Unknown => {
                self.acked += acked;
                self.ce += ce;
                if acked > 0 && ect0 > 0 {
                    self.state = EcnState::Capable;
                    return self.ce;
                }
                // If every packet arrives as CE, the path mangles marks; that is not congestion.
                if self.acked >= TEST_PACKETS {
                    self.state = EcnState::Failed;
                }
                0
            }
        }
    }
}

/// Marked packets that one ACK newly acknowledged.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AckedMarks {
    /// The ACK has the largest packet number so far. The counts of any other ACK are outdated.
    pub(super) is_newest: bool,
    /// On all paths.
    pub(super) all: u64,
    /// On the current path.
    pub(super) here: u64,
}

/// The peer's latest ECN counts, over all paths.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PeerCounts {
    /// Packets sent with ECT(0).
    sent: u64,
    counts: EcnCounts,
}

impl PeerCounts {
    /// Counts a packet sent with ECT(0).
    pub(super) fn on_sent(&mut self) {
        self.sent += 1;
    }

    /// Returns the number of packets that arrived as CE, as reported by the peer.
    pub(super) fn ce(&self) -> u64 {
        self.counts.ce
    }

    /// Validates and adopts the counts of an ACK. Returns the number of marks that require a
    /// response.
    pub(super) fn on_ack(
        &mut self,
        path: &mut PathEcn,
        acked: AckedMarks,
        counts: Option<EcnCounts>,
    ) -> u64 {
        if !acked.is_newest {
            return 0;
        }
        let before = self.counts;
        let Some(now) = counts else {
            if acked.all > 0 {
                path.fail();
            }
            return 0;
        };
        self.counts = now;
        let valid = self.is_possible(before, now, acked.all);
        if !valid {
            path.fail();
            return 0;
        }
        path.on_valid(acked.here, now.ect0 - before.ect0, now.ce - before.ce)
    }

    /// Checks the counts (RFC 9000 §13.4.2.1).
    ///
    /// | condition | reason |
    /// |---|---|
    /// | no count decreases | they are totals |
    /// | ECT(1) does not increase | this sender never sends ECT(1) |
    /// | ECT(0) and CE together increase at least by the newly acknowledged packets with ECT(0) | a mark may be changed, not lost |
    /// | ECT(0) and CE together do not exceed the packets sent with ECT(0) | the peer counts only packets of this sender |
    fn is_possible(&self, before: EcnCounts, now: EcnCounts, newly_acked: u64) -> bool {
        let (Some(ect0), Some(ce)) =
            (now.ect0.checked_sub(before.ect0), now.ce.checked_sub(before.ce))
        else {
            return false;
        };
        now.ect1 == before.ect1
            && ect0.saturating_add(ce) >= newly_acked
            && now.ect0.saturating_add(now.ce) <= self.sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTO: Duration = Duration::from_millis(100);

    /// A sender on a path, with its peer's counts.
    struct Sender {
        path: PathEcn,
        peer: PeerCounts,
        now: Time,
    }

    impl Sender {
        fn new() -> Self {
            Self { path: PathEcn::new(), peer: PeerCounts::default(), now: Time::ZERO }
        }

        /// Sends `packets`, marked as the path demands. Returns the number of marked ones.
        fn send(&mut self, packets: u64) -> u64 {
            let mut marked = 0;
            for _ in 0..packets {
                if self.path.marks(self.now, PTO) {
                    marked += 1;
                    self.path.on_sent(self.now, true);
                    self.peer.on_sent();
                }
            }
            marked
        }

        fn ack(&mut self, marked: u64, counts: Option<(u64, u64, u64)>) -> u64 {
            let acked = AckedMarks { is_newest: true, all: marked, here: marked };
            let counts = counts.map(|(ect0, ect1, ce)| EcnCounts { ect0, ect1, ce });
            self.peer.on_ack(&mut self.path, acked, counts)
        }

        /// Returns a sender whose first ten packets arrived unchanged.
        fn capable() -> Self {
            let mut sender = Self::new();
            assert_eq!(sender.send(20), TEST_PACKETS);
            assert_eq!(sender.ack(10, Some((10, 0, 0))), 0);
            assert!(sender.path.is_capable());
            sender
        }
    }

    #[test]
    fn ten_packets_test_a_path_and_their_counts_make_it_capable() {
        let mut sender = Sender::capable();
        assert_eq!(sender.send(20), 20);
        assert_eq!(sender.ack(20, Some((27, 0, 3))), 3);
        assert!(sender.path.is_capable());
    }

    #[test]
    fn the_test_ends_after_three_probe_timeouts_with_what_was_sent() {
        let mut sender = Sender::new();
        assert_eq!(sender.send(3), 3);
        sender.now += PTO * TEST_PTOS;
        assert_eq!(sender.send(3), 0);
        (0..3).for_each(|_| sender.path.on_lost());
        assert_eq!(sender.path.state, EcnState::Failed, "all that were marked are lost");
    }

    #[test]
    fn marked_packets_that_are_all_lost_end_marking_and_one_that_arrives_does_not() {
        let mut sender = Sender::new();
        sender.send(11);
        (0..9).for_each(|_| sender.path.on_lost());
        assert_eq!(sender.path.state, EcnState::Unknown);
        let mut lucky = Sender { path: sender.path, peer: sender.peer, now: sender.now };
        sender.path.on_lost();
        assert_eq!(sender.path.state, EcnState::Failed);
        lucky.ack(1, Some((1, 0, 0)));
        assert!(lucky.path.is_capable());
    }

    #[test]
    fn counts_that_cannot_be_end_marking_whatever_came_before() {
        let impossible = [
            ("missing", 5, None),
            ("eaten", 5, Some((12, 0, 0))),
            ("fallen", 0, Some((9, 0, 0))),
            ("fallen marks", 0, Some((10, 0, u64::MAX >> 2))),
            ("ECT(1)", 5, Some((15, 1, 0))),
            ("more than was sent", 5, Some((16, 0, 0))),
            ("far more", 5, Some((u64::MAX >> 2, u64::MAX >> 2, u64::MAX >> 2))),
        ];
        for (what, acked, counts) in impossible {
            let mut sender = Sender::capable();
            assert_eq!(sender.send(5), 5);
            assert_eq!(sender.ack(acked, counts), 0, "{what}");
            assert_eq!(sender.path.state, EcnState::Failed, "{what}");
            assert_eq!(sender.send(5), 0, "{what}");
            assert_eq!(sender.ack(5, Some((20, 0, 5))), 0, "{what}: nothing is believed later");
        }
    }

    /// Sends ten packets, of which the first four arrive with CE.
    fn with_four_ce() -> Sender {
        let mut sender = Sender::new();
        sender.send(10);
        assert_eq!(sender.ack(4, Some((0, 0, 4))), 0);
        sender
    }

    #[test]
    fn a_path_that_makes_everything_ce_is_not_congested() {
        let mut sender = with_four_ce();
        assert_eq!(sender.ack(6, Some((0, 0, 10))), 0);
        assert_eq!(sender.path.state, EcnState::Failed);
    }

    #[test]
    fn marks_from_before_the_path_was_capable_are_responded_to_then() {
        let mut sender = with_four_ce();
        assert_eq!(sender.ack(6, Some((5, 0, 5))), 5);
    }

    #[test]
    fn an_older_ack_says_nothing() {
        let mut sender = Sender::capable();
        sender.send(5);
        let older = AckedMarks { is_newest: false, all: 3, here: 3 };
        assert_eq!(sender.peer.on_ack(&mut sender.path, older, None), 0);
        assert!(sender.path.is_capable());
    }

    #[test]
    fn a_new_path_is_tested_although_the_last_one_mangled_marks() {
        let mut sender = Sender::new();
        sender.send(10);
        sender.ack(10, Some((0, 10, 0)));
        assert_eq!(sender.path.state, EcnState::Failed);
        sender.path = PathEcn::new();
        assert_eq!(sender.send(10), 10);
        sender.ack(10, Some((10, 10, 0)));
        assert!(sender.path.is_capable());
    }
}
