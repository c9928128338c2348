//! An application's controller receives every event. A controller that records its calls tests
//! this.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::flow::{Fate, Flow, Link};
use super::*;
use crate::congestion::{
    Acked, Control, Controller, ControllerFactory, Lost, Marked, Metrics, Rtt, Start,
    initial_window,
};
use crate::frame::EcnCounts;
use crate::recovery::Budget;

const MBIT: u64 = 125_000;

/// Number of calls of each hook.
#[derive(Clone, Debug, Default)]
struct Recorder(Arc<Mutex<BTreeMap<&'static str, u64>>>);

impl Recorder {
    fn record(&self, hook: &'static str) {
        *self.0.lock().unwrap().entry(hook).or_default() += 1;
    }

    fn calls(&self, hook: &str) -> u64 {
        self.0.lock().unwrap().get(hook).copied().unwrap_or(0)
    }

    fn factory(&self) -> Arc<dyn ControllerFactory> {
        Arc::new(self.clone())
    }
}

impl ControllerFactory for Recorder {
    fn name(&self) -> &'static str {
        "recorder"
    }

    fn build(&self, start: &Start) -> Box<dyn Controller> {
        self.record("build");
        Box::new(Recorded { recorder: self.clone(), mtu: start.mtu })
    }
}

/// A fixed window of many packets, at a fixed rate.
#[derive(Debug)]
struct Recorded {
    recorder: Recorder,
    mtu: u16,
}

impl Controller for Recorded {
    fn on_restart(&mut self, _now: Time, app_limited: bool) {
        self.recorder.record(if app_limited { "restart after a pause" } else { "restart" });
    }

    fn on_acked(&mut self, acked: &Acked) {
        assert!(acked.bytes > 0 && acked.delivered >= acked.bytes);
        self.recorder.record("acked");
    }

    fn on_lost(&mut self, lost: &Lost<'_>) {
        assert!(!lost.packets.is_empty() && lost.bytes > 0);
        self.recorder.record(if lost.new_episode { "lost, first of its episode" } else { "lost" });
    }

    fn on_congestion_experienced(&mut self, marked: &Marked) {
        assert!(marked.packets > 0 && marked.delivered > 0);
        self.recorder.record("marked");
    }

    fn on_spurious_episode(&mut self, _now: Time) {
        self.recorder.record("spurious");
    }

    fn set_mtu(&mut self, mtu: u16) {
        self.mtu = mtu;
        self.recorder.record("mtu");
    }

    fn control(&self, _rtt: &Rtt) -> Control {
        self.recorder.record("control");
        Control::new(2 * initial_window(self.mtu), 10 * MBIT, self.mtu)
    }

    fn state(&self) -> &'static str {
        "Recording"
    }

    fn metrics(&self) -> Metrics {
        Metrics { bandwidth: Some(10 * MBIT), ..Metrics::default() }
    }
}

#[test]
fn every_hook_of_a_controller_is_called() {
    let recorder = Recorder::default();
    let mut link = Link::clean(20 * MBIT, ms(20));
    link.fate = |pn, _| match pn {
        100 => Fate::Lost,
        // Later than the reordering window, so that it is declared lost first.
        1000 => Fate::Late(ms(15)),
        _ => Fate::Arrives,
    };
    let mut flow = Flow::with(link, recorder.factory());
    assert_eq!((recorder.calls("build"), recorder.calls("acked")), (1, 0));
    flow.transfer(1_000_000);
    flow.run_until(flow.now + ms(500));
    flow.transfer(1_000_000);
    flow.set_mtu(1400);
    flow.transfer(100_000);
    let Flow { recovery, now, .. } = &mut flow;
    // One marked packet that arrives unchanged makes the path capable; the next one arrives as CE.
    let next = recovery.largest_acked().expect("much was acknowledged") + 10;
    for (pn, ect0, ce) in [(next, 1, 0), (next + 1, 1, 1)] {
        let sent = SentPacket { ect0: true, ..packet(pn) };
        assert!(recovery.marks_ecn(*now));
        recovery.on_sent(*now, pn, sent);
        let mut out = Settled::default();
        let ranges = std::iter::once(pn..=pn);
        recovery.on_ack(*now + ms(20), pn, ranges, Duration::ZERO, &mut out).unwrap();
        recovery.on_ecn(*now + ms(20), Some(EcnCounts { ect0, ect1: 0, ce }));
    }
    for hook in [
        "restart",
        "restart after a pause",
        "acked",
        "lost, first of its episode",
        "marked",
        "spurious",
        "mtu",
        "control",
    ] {
        assert!(recorder.calls(hook) > 0, "{hook}: {recorder:?}");
    }
    assert_eq!(recovery.controller().state(), "Recording");
    assert_eq!(recovery.controller().metrics().bandwidth, Some(10 * MBIT));
    recovery.reset_path(*now, 1200);
    assert_eq!(recorder.calls("build"), 2, "a path of its own for each controller");
}

/// A controller that returns nonsense.
#[derive(Debug)]
struct Nonsense;

impl ControllerFactory for Nonsense {
    fn name(&self) -> &'static str {
        "nonsense"
    }

    fn build(&self, _start: &Start) -> Box<dyn Controller> {
        Box::new(Self)
    }
}

impl Controller for Nonsense {
    fn on_acked(&mut self, _acked: &Acked) {}

    fn on_lost(&mut self, _lost: &Lost<'_>) {}

    fn control(&self, _rtt: &Rtt) -> Control {
        Control {
            window: 0,
            pacing_rate: 0,
            send_quantum: 0,
            measuring_round_trip: false,
            acks_per_window: 0,
        }
    }
}

#[test]
fn a_controllers_outputs_are_raised_to_the_least_that_makes_progress() {
    let config = RecoveryConfig { congestion: Arc::new(Nonsense), ..config(ms(20)) };
    let recovery: Recovery<u64> = Recovery::new(Time::ZERO, &config);
    assert_eq!(recovery.window(), 2 * u64::from(MTU));
    assert!(recovery.pacing_rate() > 0 && recovery.acks_per_window() > 0);
    assert!(recovery.send_quantum() >= u64::from(MTU));
}

/// A controller with only the required methods.
#[derive(Debug)]
struct Least {
    reductions: Arc<Mutex<u64>>,
}

impl Controller for Least {
    fn on_acked(&mut self, _acked: &Acked) {}

    fn on_lost(&mut self, lost: &Lost<'_>) {
        *self.reductions.lock().unwrap() += u64::from(lost.new_episode);
    }

    fn control(&self, _rtt: &Rtt) -> Control {
        Control::new(100_000, 100_000, MTU)
    }
}

#[test]
fn a_mark_is_a_loss_to_a_controller_that_does_not_know_marks() {
    let reductions = Arc::new(Mutex::new(0));
    let mut controller = Least { reductions: reductions.clone() };
    controller.on_congestion_experienced(&Marked::new(Time::ZERO));
    controller.on_congestion_experienced(&Marked { new_episode: false, ..Marked::new(Time::ZERO) });
    assert_eq!(*reductions.lock().unwrap(), 1);
}

/// A controller with a window that never fills, at any rate.
#[derive(Clone, Copy, Debug)]
struct AtRate(u64);

impl ControllerFactory for AtRate {
    fn name(&self) -> &'static str {
        "at a rate"
    }

    fn build(&self, _start: &Start) -> Box<dyn Controller> {
        Box::new(*self)
    }
}

impl Controller for AtRate {
    fn on_acked(&mut self, _acked: &Acked) {}

    fn on_lost(&mut self, _lost: &Lost<'_>) {}

    fn control(&self, _rtt: &Rtt) -> Control {
        Control { pacing_rate: self.0, ..Control::new(1 << 30, MBIT, MTU) }
    }
}

/// Returns the number of packets that leave in ten seconds, up to 10,000, under a controller with
/// `rate` bytes per second.
fn packets_in_ten_seconds(rate: u64) -> u64 {
    let config = RecoveryConfig { congestion: Arc::new(AtRate(rate)), ..config(ms(20)) };
    let mut recovery: Recovery<u64> = Recovery::new(Time::ZERO, &config);
    let (mut now, mut packets) = (Time::ZERO, 0);
    while now <= Time::ZERO + ms(10_000) && packets < 10_000 {
        match recovery.budget(now) {
            Budget::Bytes(_) => {
                recovery.on_sent(now, packets, packet(packets));
                packets += 1;
            }
            Budget::At(at) => {
                assert!(at > now);
                now = at;
            }
            Budget::Blocked => panic!("the window is wide open"),
        }
    }
    packets
}

#[test]
fn two_packets_leave_in_a_second_whatever_a_controller_believes() {
    for rate in [0, 1, u64::from(MTU)] {
        let packets = packets_in_ten_seconds(rate);
        // In addition to an initial burst.
        assert!((20..40).contains(&packets), "{packets} at {rate} bytes a second");
    }
    let ten = packets_in_ten_seconds(10 * u64::from(MTU));
    assert!((100..120).contains(&ten), "more than the least is not changed: {ten}");
}

#[test]
fn a_rate_beyond_all_bounds_is_no_pacing_at_all() {
    assert_eq!(packets_in_ten_seconds(u64::MAX), 10_000);
}
