//! ECN on a path: whether packets are marked ECT(0), and whether the counts that come back can be believed (RFC 9000 §13.4
//! and appendix A.4).
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
//! A failure ends marking on the path and nothing else: whoever mangles marks or lies about them gets a sender that judges by
//! loss and round trips alone. A new path is tested anew.
//!
//! Invariant: a mark is told to congestion control only on a path that is capable.

use std::time::Duration;

use crate::Time;
use crate::frame::EcnCounts;

/// RFC 9000 A.4: packets marked on a path of which nothing is known.
const TEST_PACKETS: u64 = 10;
/// RFC 9000 A.4: probe timeouts that the test lasts at most.
const TEST_PTOS: u32 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Testing,
    Unknown,
    Capable,
    Failed,
}

/// ECN of the path in use.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathEcn {
    state: State,
    /// When the first marked packet left.
    since: Option<Time>,
    /// Marked packets of the test, all of them.
    marked: u64,
    /// Marked packets of the test that ask for an ACK.
    eliciting: u64,
    /// Of these, packets declared lost.
    lost: u64,
    /// Marked packets that were acknowledged before the path was found capable, and those that arrived as CE.
    acked: u64,
    ce: u64,
}

impl PathEcn {
    pub(super) fn new() -> Self {
        let state = State::Testing;
        Self { state, since: None, marked: 0, eliciting: 0, lost: 0, acked: 0, ce: 0 }
    }

    /// Packets that are built now are to be marked.
    pub(super) fn marks(&mut self, now: Time, pto: Duration) -> bool {
        let over = self.since.is_some_and(|since| now >= since + pto * TEST_PTOS);
        if self.state == State::Testing && (over || self.marked >= TEST_PACKETS) {
            self.state = State::Unknown;
        }
        matches!(self.state, State::Testing | State::Capable)
    }

    pub(super) fn is_capable(&self) -> bool {
        self.state == State::Capable
    }

    /// A marked packet leaves.
    pub(super) fn on_sent(&mut self, now: Time, ack_eliciting: bool) {
        if self.state == State::Testing {
            self.since.get_or_insert(now);
            self.marked += 1;
            self.eliciting += u64::from(ack_eliciting);
        }
    }

    /// A marked packet that asks for an ACK was lost. If all are, the marks may be why.
    pub(super) fn on_lost(&mut self) {
        if matches!(self.state, State::Testing | State::Unknown) {
            self.lost += 1;
            let tested = self.state == State::Unknown || self.eliciting >= TEST_PACKETS;
            if tested && self.acked == 0 && self.lost >= self.eliciting {
                self.state = State::Failed;
            }
        }
    }

    fn fail(&mut self) {
        self.state = State::Failed;
    }

    /// `acked` marked packets of this path were acknowledged, and of all that were, `ect0` came as they were sent and `ce`
    /// marked by the network. Returns the marks to respond to.
    fn on_valid(&mut self, acked: u64, ect0: u64, ce: u64) -> u64 {
        match self.state {
            State::Capable => ce,
            State::Failed => 0,
            State::Testing | State::Unknown => {
                self.acked += acked;
                self.ce += ce;
                if acked > 0 && ect0 > 0 {
                    self.state = State::Capable;
                    return self.ce;
                }
                // Where every packet comes as CE, that is what the path does to marks and no congestion.
                if self.acked >= TEST_PACKETS {
                    self.state = State::Failed;
                }
                0
            }
        }
    }
}

/// Marked packets that one ACK newly acknowledged.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AckedMarks {
    /// The ACK has a larger packet number than any before. Counts of others are older than what is known.
    pub(super) is_newest: bool,
    /// On all paths.
    pub(super) all: u64,
    /// On the path in use.
    pub(super) here: u64,
}

/// What the peer said so far about marks, on all paths.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PeerCounts {
    /// Packets that left with ECT(0).
    sent: u64,
    counts: EcnCounts,
}

impl PeerCounts {
    /// A packet left with ECT(0).
    pub(super) fn on_sent(&mut self) {
        self.sent += 1;
    }

    /// Packets that arrived as CE, as the peer says.
    pub(super) fn ce(&self) -> u64 {
        self.counts.ce
    }

    /// Takes what an ACK says of marks. Returns those to respond to.
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

    /// RFC 9000 §13.4.2.1.
    ///
    /// | the counts | because |
    /// |---|---|
    /// | do not fall | they are totals |
    /// | of ECT(1) do not grow | nothing is sent with it |
    /// | of ECT(0) and CE together grow by what was newly acknowledged with ECT(0), at least | a mark may be changed, not lost |
    /// | of both are no more than was sent | nobody else's packets count |
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

    /// A sender on a path, and the counts of its peer.
    struct Sender {
        path: PathEcn,
        peer: PeerCounts,
        now: Time,
    }

    impl Sender {
        fn new() -> Self {
            Self { path: PathEcn::new(), peer: PeerCounts::default(), now: Time::ZERO }
        }

        /// Sends `packets`, marked if they are to be; returns how many were.
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

        /// Whose first ten packets came as they were sent.
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
        assert_eq!(sender.path.state, State::Failed, "all that were marked are lost");
    }

    #[test]
    fn marked_packets_that_are_all_lost_end_marking_and_one_that_arrives_does_not() {
        let mut sender = Sender::new();
        sender.send(11);
        (0..9).for_each(|_| sender.path.on_lost());
        assert_eq!(sender.path.state, State::Unknown);
        let mut lucky = Sender { path: sender.path, peer: sender.peer, now: sender.now };
        sender.path.on_lost();
        assert_eq!(sender.path.state, State::Failed);
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
            assert_eq!(sender.path.state, State::Failed, "{what}");
            assert_eq!(sender.send(5), 0, "{what}");
            assert_eq!(sender.ack(5, Some((20, 0, 5))), 0, "{what}: nothing is believed later");
        }
    }

    #[test]
    fn a_path_that_makes_everything_ce_is_not_congested() {
        let mut sender = Sender::new();
        sender.send(10);
        assert_eq!(sender.ack(4, Some((0, 0, 4))), 0);
        assert_eq!(sender.ack(6, Some((0, 0, 10))), 0);
        assert_eq!(sender.path.state, State::Failed);
    }

    #[test]
    fn marks_from_before_the_path_was_capable_are_responded_to_then() {
        let mut sender = Sender::new();
        sender.send(10);
        assert_eq!(sender.ack(4, Some((0, 0, 4))), 0);
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
        assert_eq!(sender.path.state, State::Failed);
        sender.path = PathEcn::new();
        assert_eq!(sender.send(10), 10);
        sender.ack(10, Some((10, 10, 0)));
        assert!(sender.path.is_capable());
    }
}
