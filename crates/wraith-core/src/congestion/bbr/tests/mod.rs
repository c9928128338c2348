//! The example test cases of the draft's appendix, in its order and under its names, and the failures that other
//! implementations had in the field, each in a closed loop: the real recovery, sampler and pacer over an emulated link,
//! with the model in view. Whole connections over simulated networks are in `wraith-sim`.

mod aggregation;
mod changes;
mod drain;
mod pitfalls;
mod probe_bw;
mod probe_rtt;
mod spurious;
mod startup;

use std::time::Duration;

use super::{Bbr, Phase, State, UNLIMITED};
use crate::Time;
use crate::congestion::Algorithm;
use crate::recovery::tests::flow::{Fate, Flow, Link};

const MBIT: u64 = 125_000;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A fixed pseudo-random number for a packet number.
fn scatter(pn: u64) -> u64 {
    super::Chance(pn.wrapping_mul(0x2545_f491_4f6c_dd1d)).next()
}

/// A flow under BBR, stepped in small pieces of time.
struct Run {
    flow: Flow,
    /// Bytes per second the application has to send; no limit if `None`.
    application: Option<u64>,
    step: Duration,
}

impl Run {
    fn new(link: Link) -> Self {
        let step = link.round_trip / 20;
        Self { flow: Flow::with(link, Algorithm::Bbr), application: None, step }
    }

    /// A link of `mbit` Mbit/s with a queue of one bandwidth-delay product.
    fn clean(mbit: u64, round_trip: Duration) -> Self {
        Self::new(Link::clean(mbit * MBIT, round_trip))
    }

    fn bbr(&self) -> &Bbr {
        self.flow.recovery.controller().as_bbr().expect("runs under BBR")
    }

    fn state(&self) -> State {
        self.bbr().state
    }

    fn in_flight(&self) -> u64 {
        self.flow.recovery.bytes_in_flight()
    }

    /// One step of time.
    fn step(&mut self) {
        self.flow.backlog = match self.application {
            None => u64::MAX / 2,
            Some(rate) => {
                // What is left over is what the path did not take; more than that does not pile up.
                let fresh = (rate as f64 * self.step.as_secs_f64()) as u64;
                self.flow.backlog.min(1 << 30) + fresh
            }
        };
        let until = self.flow.now + self.step;
        self.flow.run_until(until);
    }

    /// The application has so many bytes per second, and nothing left over.
    fn limit_application(&mut self, rate: u64) {
        self.application = Some(rate);
        self.flow.backlog = 0;
    }

    fn run(&mut self, duration: Duration) {
        let end = self.flow.now + duration;
        while self.flow.now < end {
            self.step();
        }
    }

    /// Runs until `reached` says so; panics after `limit`.
    fn until(&mut self, what: &str, limit: Duration, reached: impl Fn(&Self) -> bool) {
        let end = self.flow.now + limit;
        while !reached(self) {
            assert!(self.flow.now < end, "not {what} within {limit:?}: {:#?}", self.bbr());
            self.step();
        }
    }

    fn until_state(&mut self, state: State) {
        self.until(&format!("{state:?}"), Duration::from_secs(30), |run| run.state() == state);
    }

    fn until_phase(&mut self, phase: Phase) {
        self.until_state(State::ProbeBw(phase));
    }

    /// Goodput of the next `duration`, bytes per second.
    fn goodput(&mut self, duration: Duration) -> u64 {
        let before = self.flow.delivered;
        self.run(duration);
        ((self.flow.delivered - before) as f64 / duration.as_secs_f64()) as u64
    }
}

/// Asserts that `value` is within `percent` of `expected`.
#[track_caller]
fn assert_close(value: u64, expected: u64, percent: u64) {
    assert!(
        value.abs_diff(expected) * 100 <= expected * percent,
        "{value} is not {expected} ± {percent} %"
    );
}
