//! Random walks against the obvious implementation: a map of packets with linear search.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::TimeoutOutcome;
use super::*;

#[derive(Clone, Debug)]
enum Op {
    Send {
        count: u64,
        eliciting: bool,
        probe: bool,
    },
    /// Acknowledges the outstanding and a few settled packets that a bit pattern selects.
    Ack {
        pattern: u64,
        from_newest: u64,
    },
    Wait {
        micros: u64,
    },
    Migrate,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (1u64..20, prop::bool::weighted(0.8), prop::bool::weighted(0.1))
            .prop_map(|(count, eliciting, probe)| Op::Send { count, eliciting, probe }),
        6 => (any::<u64>(), 0u64..30)
            .prop_map(|(pattern, from_newest)| Op::Ack { pattern, from_newest }),
        4 => (0u64..200_000).prop_map(|micros| Op::Wait { micros }),
        1 => Just(Op::Migrate),
    ]
}

struct Model {
    packets: BTreeMap<u64, (Time, bool, u32)>,
    generation: u32,
    largest_acked: Option<u64>,
}

impl Model {
    fn in_flight(&self) -> u64 {
        let counted = |(_, eliciting, generation): &&(Time, bool, u32)| {
            *eliciting && *generation == self.generation
        };
        self.packets.values().filter(counted).count() as u64 * u64::from(MTU)
    }

    /// Returns the packets lost at `now` by definition: overtaken, and sent at least `delay` ago.
    fn lost(&mut self, now: Time, delay: Duration) -> Vec<u64> {
        let Some(largest) = self.largest_acked else { return Vec::new() };
        let overtaken = self.packets.range(..largest);
        let due = |(pn, (sent_at, eliciting, _)): (&u64, &(Time, bool, u32))| {
            (*eliciting && *sent_at + delay <= now).then_some(*pn)
        };
        let lost: Vec<u64> = overtaken.filter_map(due).collect();
        lost.iter().for_each(|pn| {
            self.packets.remove(pn);
        });
        lost
    }
}

fn runs_descending(numbers: &[u64]) -> Vec<RangeInclusive<u64>> {
    let mut runs: Vec<RangeInclusive<u64>> = Vec::new();
    for &pn in numbers {
        match runs.last_mut() {
            Some(run) if run.end() + 1 == pn => *run = *run.start()..=pn,
            _ => runs.push(pn..=pn),
        }
    }
    runs.reverse();
    runs
}

fn walk(ops: Vec<Op>) -> Result<(), TestCaseError> {
    let mut s = Stepper::new(ms(40));
    let mut model = Model { packets: BTreeMap::new(), generation: 0, largest_acked: None };
    let mut now = ms(1);
    for op in ops {
        match op {
            Op::Send { count, eliciting, probe } => {
                for _ in 0..count {
                    model.packets.insert(s.next, (at(now), eliciting, model.generation));
                    s.send_other(now, |packet| {
                        packet.ack_eliciting = eliciting;
                        packet.mtu_probe = probe;
                    });
                    now += us(7);
                }
            }
            Op::Ack { pattern, from_newest } => {
                let newest = s.next.saturating_sub(from_newest);
                let oldest = newest.saturating_sub(64);
                let chosen: Vec<u64> =
                    (oldest..newest).filter(|pn| pattern >> (pn - oldest) & 1 == 1).collect();
                let Some(&largest) = chosen.last() else { continue };
                s.ack(now, &runs_descending(&chosen));
                let expected: Vec<u64> =
                    chosen.into_iter().filter(|pn| model.packets.remove(pn).is_some()).collect();
                // Recovery drops overtaken ACK-only packets; the model keeps them.
                let forgotten = expected.iter().filter(|pn| !s.acked().contains(pn)).count();
                prop_assert_eq!(s.acked().len() + forgotten, expected.len());
                if !s.acked().is_empty() {
                    model.largest_acked = model.largest_acked.max(Some(largest));
                }
                if !s.acked().is_empty() || s.out.spurious > 0 {
                    prop_assert!(s.recovery.timeout().is_none_or(|next| next >= at(now)));
                    let delay = s.recovery.path.loss_delay();
                    prop_assert_eq!(s.lost(), model.lost(at(now), delay));
                }
            }
            Op::Wait { micros } => {
                now += us(micros);
                let due = s.recovery.timeout().is_some_and(|due| due <= at(now));
                match s.recovery.on_timeout(at(now), &mut s.out) {
                    TimeoutOutcome::Lost => {
                        let delay = s.recovery.path.loss_delay();
                        prop_assert_eq!(s.lost(), model.lost(at(now), delay));
                    }
                    TimeoutOutcome::Probe => prop_assert!(s.out.lost.is_empty() && due),
                    TimeoutOutcome::Nothing => prop_assert!(!due),
                }
                prop_assert!(s.recovery.timeout().is_none_or(|next| next > at(now)));
            }
            Op::Migrate => {
                model.generation += 1;
                s.recovery.reset_path(at(now), MTU);
            }
        }
        prop_assert_eq!(s.recovery.bytes_in_flight(), model.in_flight());
        prop_assert!(s.recovery.window() >= 2 * u64::from(MTU));
        let eliciting = model.packets.values().any(|(_, eliciting, _)| *eliciting);
        prop_assert_eq!(s.recovery.oldest_unacked().is_some(), eliciting);
        prop_assert_eq!(s.recovery.timeout().is_some(), eliciting);
    }
    Ok(())
}

proptest! {
    #[test]
    fn settling_matches_a_search_through_all_packets(ops in prop::collection::vec(op(), 0..120)) {
        walk(ops)?;
    }
}
