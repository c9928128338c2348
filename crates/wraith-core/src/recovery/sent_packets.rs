//! Outstanding packets by packet number.
//!
//! A ring buffer: slot `i` belongs to packet number `base + i`. Invariant: the first slot is
//! outstanding, if there is one, so everything below `base` is settled. An empty slot above it is
//! either in `acked` or was never sent.
//!
//! All operations are O(1) per packet, amortised. Acknowledging is O(r) in addition, for the r runs
//! of acknowledged numbers between outstanding ones. The length of the runs does not matter: an ACK
//! repeats earlier ranges.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use crate::RangeSet;

/// Maximum number of packet numbers skipped between two packets.
const SKIPPED_MAX: u64 = 1024;

/// The ring buffer. `P` is the record of a packet.
#[derive(Debug)]
pub(super) struct SentPackets<P> {
    base: u64,
    slots: VecDeque<Option<P>>,
    acked: RangeSet,
}

/// Error: an ACK contains a packet number that was never used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NeverSent;

impl<P> SentPackets<P> {
    pub(super) fn new() -> Self {
        Self { base: 0, slots: VecDeque::new(), acked: RangeSet::new() }
    }

    /// Returns the lowest unused packet number.
    pub(super) fn next(&self) -> u64 {
        self.base + self.slots.len() as u64
    }

    /// Returns the number of slots, from the oldest outstanding packet to the newest sent.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns the packet number below which everything is settled.
    pub(super) fn base(&self) -> u64 {
        self.base
    }

    /// Adds the packet just sent. Panics if its number was used before or skips too many.
    pub(super) fn push(&mut self, pn: u64, packet: P) {
        let skipped = pn.checked_sub(self.next()).expect("packet numbers only grow");
        assert!(skipped <= SKIPPED_MAX, "too many packet numbers skipped");
        if self.slots.is_empty() {
            self.base = pn;
        } else {
            self.slots.extend((0..skipped).map(|_| None));
        }
        self.slots.push_back(Some(packet));
    }

    /// Returns the oldest outstanding packet.
    pub(super) fn front(&self) -> Option<(u64, &P)> {
        self.slots.front().map(|slot| (self.base, occupied(slot.as_ref())))
    }

    /// Removes and returns the oldest outstanding packet.
    pub(super) fn pop_front(&mut self) -> Option<(u64, P)> {
        let slot = self.slots.pop_front()?;
        let pn = self.base;
        self.base += 1;
        self.drop_settled();
        Some((pn, occupied(slot)))
    }

    /// Iterates over outstanding packets, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &P> {
        self.slots.iter().flatten()
    }

    /// Removes every outstanding packet of `range`, in ascending order.
    pub(super) fn acknowledge(
        &mut self,
        range: RangeInclusive<u64>,
        mut settle: impl FnMut(u64, P),
    ) -> Result<(), NeverSent> {
        if *range.end() >= self.next() {
            return Err(NeverSent);
        }
        let range = self.base.max(*range.start())..range.end() + 1;
        if self.acked.contains_range(&range) {
            return Ok(());
        }
        for gap in self.acked.gaps(range.clone()) {
            for pn in gap {
                let i = usize::try_from(pn - self.base).expect("the ring fits in memory");
                settle(pn, self.slots[i].take().ok_or(NeverSent)?);
            }
        }
        self.acked.insert(range);
        self.drop_settled();
        Ok(())
    }

    fn drop_settled(&mut self) {
        while let Some(None) = self.slots.front() {
            self.slots.pop_front();
            self.base += 1;
        }
        while self.acked.first().is_some_and(|range| range.end <= self.base) {
            self.acked.pop_first();
        }
    }
}

fn occupied<T>(slot: Option<T>) -> T {
    slot.expect("the first slot is outstanding")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_number_that_was_never_sent_is_an_error() {
        let mut sent = SentPackets::new();
        sent.push(0, ());
        sent.push(2, ());
        assert_eq!(sent.acknowledge(3..=3, |_, ()| {}), Err(NeverSent));
        assert_eq!(sent.acknowledge(1..=1, |_, ()| {}), Err(NeverSent));
        assert_eq!(sent.acknowledge(u64::MAX - 1..=u64::MAX - 1, |_, ()| {}), Err(NeverSent));
        assert_eq!(sent.acknowledge(2..=2, |_, ()| {}), Ok(()));
        assert_eq!(sent.acknowledge(0..=0, |_, ()| {}), Ok(()));
        assert_eq!(sent.len(), 0);
    }

    #[test]
    fn repeated_acknowledgements_of_a_long_run_settle_nothing_twice() {
        let mut sent = SentPackets::new();
        (0..10_000).for_each(|pn| sent.push(pn, pn));
        let mut settled = 0;
        for largest in 1..10_000 {
            sent.acknowledge(1..=largest, |pn, p| {
                assert_eq!(pn, p);
                settled += 1;
            })
            .unwrap();
        }
        assert_eq!((settled, sent.base(), sent.acked.len()), (9999, 0, 1));
        assert_eq!(sent.pop_front(), Some((0, 0)));
        assert_eq!((sent.base(), sent.len(), sent.acked.len()), (10_000, 0, 0));
    }

    #[derive(Clone, Debug)]
    enum Op {
        Send { skip: u64 },
        Ack { start: u64, len: u64 },
        PopFront,
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            4 => (0u64..2).prop_map(|skip| Op::Send { skip }),
            3 => (0u64..60, 0u64..12).prop_map(|(start, len)| Op::Ack { start, len }),
            1 => Just(Op::PopFront),
        ]
    }

    proptest! {
        #[test]
        fn behaves_like_a_map(ops in prop::collection::vec(op(), 0..200)) {
            let mut sent = SentPackets::new();
            let mut model = BTreeMap::new();
            let mut next = 0;
            for op in ops {
                match op {
                    Op::Send { skip } => {
                        let pn = next + skip;
                        sent.push(pn, pn);
                        model.insert(pn, pn);
                        next = pn + 1;
                    }
                    Op::Ack { start, len } => {
                        let range = start..=start + len;
                        let mut settled = Vec::new();
                        if sent.acknowledge(range.clone(), |pn, _| settled.push(pn)).is_err() {
                            // The connection closes: the range must contain a skipped or unsent
                            // number.
                            prop_assert!(range.clone().any(|pn| pn >= next || !model.contains_key(&pn)));
                            break;
                        }
                        let expected: Vec<u64> = model.range(range).map(|(pn, _)| *pn).collect();
                        expected.iter().for_each(|pn| { model.remove(pn); });
                        prop_assert_eq!(settled, expected);
                    }
                    Op::PopFront => prop_assert_eq!(sent.pop_front(), model.pop_first()),
                }
                prop_assert_eq!(sent.front().map(|(pn, _)| pn), model.keys().next().copied());
                prop_assert!(sent.iter().eq(model.values()));
                if !model.is_empty() {
                    prop_assert_eq!(sent.next(), next);
                }
            }
        }
    }
}
