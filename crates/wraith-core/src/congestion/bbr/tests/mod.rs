//! The example test cases of the draft's appendix, in its order and under its names, and known
//! failures of other implementations in use. Each test runs in a closed loop: the real recovery,
//! sampler and pacer over an emulated link. The test can read the model. Whole connections over
//! simulated networks are in `wraith-sim`.

mod aggregation;
mod changes;
mod drain;
mod pitfalls;
mod probe_bw;
mod probe_rtt;
mod spurious;
mod startup;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{Bbr, BbrState, Phase, UNLIMITED};
use crate::Time;
use crate::congestion::{Acked, Control, Controller, ControllerFactory, Lost, Marked, Rtt, Start};
use crate::recovery::tests::flow::{Departures, Fate, Flow, Link};

const MBIT: u64 = 125_000;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Returns a fixed pseudo-random number for a packet number.
fn scatter(pn: u64) -> u64 {
    super::ProbeRng(pn.wrapping_mul(0x2545_f491_4f6c_dd1d)).next()
}

/// Loses one of `N` packets by chance.
fn lose_one_in<const N: u64>(pn: u64, _: Duration) -> Fate {
    if scatter(pn).is_multiple_of(N) { Fate::Lost } else { Fate::Arrives }
}

/// A BBR that the test can inspect while a flow uses it.
#[derive(Clone, Debug)]
struct Observed(Arc<Mutex<Bbr>>);

impl Observed {
    fn with<T>(&self, act: impl FnOnce(&mut Bbr) -> T) -> T {
        act(&mut self.0.lock().expect("no test panics while it looks"))
    }
}

impl ControllerFactory for Observed {
    fn name(&self) -> &'static str {
        "observed-bbr"
    }

    fn build(&self, start: &Start) -> Box<dyn Controller> {
        self.with(|bbr| *bbr = Bbr::new(start.now, start.mtu, start.seed));
        Box::new(self.clone())
    }
}

impl Controller for Observed {
    fn on_restart(&mut self, now: Time, app_limited: bool) {
        self.with(|bbr| bbr.on_restart(now, app_limited));
    }

    fn on_acked(&mut self, acked: &Acked) {
        self.with(|bbr| bbr.on_acked(acked));
    }

    fn on_lost(&mut self, lost: &Lost<'_>) {
        self.with(|bbr| bbr.on_lost(lost));
    }

    fn on_congestion_experienced(&mut self, marked: &Marked) {
        self.with(|bbr| bbr.on_congestion_experienced(marked));
    }

    fn on_spurious_episode(&mut self, now: Time) {
        self.with(|bbr| bbr.on_spurious_episode(now));
    }

    fn set_mtu(&mut self, mtu: u16) {
        self.with(|bbr| bbr.set_mtu(mtu));
    }

    fn control(&self, rtt: &Rtt) -> Control {
        self.with(|bbr| bbr.control(rtt))
    }
}

/// A flow under BBR, run in small time steps.
struct Run {
    flow: Flow,
    observed: Observed,
    /// Bytes per second that the application sends; `None` for no limit.
    application: Option<u64>,
    step: Duration,
}

impl Run {
    fn new(link: Link) -> Self {
        let step = link.round_trip / 20;
        let observed = Observed(Arc::new(Mutex::new(Bbr::new(Time::ZERO, 1200, 0))));
        let flow = Flow::with(link, Arc::new(observed.clone()) as Arc<dyn ControllerFactory>);
        Self { flow, observed, application: None, step }
    }

    /// Creates a link of `mbit` Mbit/s with a queue of one bandwidth-delay product.
    fn clean(mbit: u64, round_trip: Duration) -> Self {
        Self::new(Link::clean(mbit * MBIT, round_trip))
    }

    /// Creates a link of `mbit` Mbit/s with a queue of `bytes`.
    fn with_queue(mbit: u64, round_trip: Duration, bytes: u64) -> Self {
        Self::new(Link { queue_bytes: bytes, ..Link::clean(mbit * MBIT, round_trip) })
    }

    /// Creates a link of `mbit` Mbit/s that treats packets as `fate` says.
    fn with_fate(mbit: u64, round_trip: Duration, fate: fn(u64, Duration) -> Fate) -> Self {
        Self::new(Link { fate, ..Link::clean(mbit * MBIT, round_trip) })
    }

    /// Creates a link of `mbit` Mbit/s with a queue of so many bandwidth-delay products.
    fn deep(mbit: u64, round_trip: Duration, products: u64) -> Self {
        let link = Link::clean(mbit * MBIT, round_trip);
        Self::new(Link { queue_bytes: link.queue_bytes * products, ..link })
    }

    /// Returns a copy of the current BBR.
    fn bbr(&self) -> Bbr {
        self.observed.with(|bbr| bbr.clone())
    }

    fn state(&self) -> BbrState {
        self.bbr().state
    }

    fn in_flight(&self) -> u64 {
        self.flow.recovery.bytes_in_flight()
    }

    /// Runs one time step.
    fn step(&mut self) {
        self.flow.backlog = match self.application {
            None => u64::MAX / 2,
            Some(rate) => {
                // The backlog is data that the path did not take; its growth is bounded.
                let fresh = (rate as f64 * self.step.as_secs_f64()) as u64;
                self.flow.backlog.min(1 << 30) + fresh
            }
        };
        let until = self.flow.now + self.step;
        self.flow.run_until(until);
    }

    /// Limits the application to `rate` bytes per second, with no backlog.
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

    /// Runs until `reached` returns true. Panics after `limit`.
    fn until(&mut self, what: &str, limit: Duration, reached: impl Fn(&Self) -> bool) {
        let end = self.flow.now + limit;
        while !reached(self) {
            assert!(self.flow.now < end, "not {what} within {limit:?}: {:#?}", self.bbr());
            self.step();
        }
    }

    fn until_state(&mut self, state: BbrState) {
        self.until(&format!("{state:?}"), Duration::from_secs(30), |run| run.state() == state);
    }

    /// Runs until the end of Startup.
    fn until_started(&mut self, limit: Duration) {
        self.until("the end of Startup", limit, |run| run.state() != BbrState::Startup);
    }

    fn until_phase(&mut self, phase: Phase) {
        self.until_state(BbrState::ProbeBw(phase));
    }

    /// Changes the rate of the link, in Mbit/s, and its queue.
    fn change_path(&mut self, mbit: u64, queue_bytes: u64) {
        self.flow.link.bytes_per_second = mbit * MBIT;
        self.flow.link.queue_bytes = queue_bytes;
    }

    /// Returns the packets that leave during `duration`.
    fn departures(&mut self, duration: Duration) -> Departures {
        self.flow.departures = Some(Vec::new());
        self.run(duration);
        self.flow.take_departures()
    }

    /// Asserts that the goodput of the next `duration` exceeds `mbit` Mbit/s.
    #[track_caller]
    fn expect_goodput(&mut self, duration: Duration, mbit: u64) {
        let goodput = self.goodput(duration);
        assert!(goodput > mbit * MBIT, "{} kbit/s", goodput / 125);
    }

    /// Returns the goodput of the next `duration`, in bytes per second.
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
