//! Queues that mark instead of dropping, and paths and peers that falsify the marks.

use std::time::Duration;

use wraith_core::{Algorithm, Role};
use wraith_sim::link::{Delay, EcnMangle, Hops, QueueMeter, Rate};
use wraith_sim::{Outcome, Scenario, hops};

/// The link of most tests.
const LINE: Line =
    Line { mbit: 20, delay_ms: 20, threshold: Duration::from_millis(5), bytes: 25_000_000 };
/// Minimum goodput, as a part of the capacity.
const GOODPUT_MIN: f64 = 0.85;
/// Stream payload as a part of a full datagram on the wire.
const PAYLOAD_PART: f64 = 1430.0 / 1500.0;

/// A marking line, and the bytes sent over it: about ten seconds' worth.
#[derive(Clone, Copy, Debug)]
struct Line {
    mbit: u64,
    delay_ms: u64,
    /// Waiting time from which on it marks. Its queue holds 100 ms.
    threshold: Duration,
    bytes: u64,
}

impl Line {
    fn marking(self) -> Rate {
        Rate::mbit(self.mbit).marking(self.threshold)
    }

    /// Returns the boxes of one direction: the bottleneck `rate`, then `mangle`.
    fn hops(self, rate: Rate, mangle: Hops) -> Hops {
        let mut hops = hops![rate];
        hops.extend(mangle);
        hops.extend(hops![Delay::ms(self.delay_ms)]);
        hops
    }

    fn upload(self, up: Hops, algorithm: Algorithm) -> Scenario {
        Scenario::new()
            .up(up)
            .down(hops![Delay::ms(self.delay_ms)])
            .upload(self.bytes)
            .configure(move |transport| transport.congestion = algorithm.into())
            .within(Duration::from_secs(60))
            .seeds(0..1)
    }

    fn goodput(self, outcome: &Outcome) -> f64 {
        let seconds = outcome.completed.expect("complete").as_nanos() as f64 / 1e9;
        self.bytes as f64 * 8.0 / seconds / (self.mbit as f64 * 1e6) / PAYLOAD_PART
    }
}

fn upload(up: Hops, algorithm: Algorithm) -> Scenario {
    LINE.upload(up, algorithm)
}

fn marking(mangle: Hops) -> Hops {
    LINE.hops(LINE.marking(), mangle)
}

fn run(up: Hops, algorithm: Algorithm) -> Outcome {
    upload(up, algorithm).run().remove(0)
}

fn goodput(outcome: &Outcome) -> f64 {
    LINE.goodput(outcome)
}

/// Sends over `line` with and without marks, and compares the two.
fn compare(line: Line, algorithm: Algorithm) {
    let (marked, dropped) = (QueueMeter::default(), QueueMeter::default());
    let send = |rate: Rate| line.upload(line.hops(rate, hops![]), algorithm).run().remove(0);
    let with = send(line.marking().measured(&marked));
    let without = send(Rate::mbit(line.mbit).measured(&dropped));
    let goodputs = [&with, &without].map(|outcome| line.goodput(outcome));
    let waits = [&marked, &dropped].map(|meter| meter.percentile(95.0));
    let (with, without) = (with.initiator_stats, without.initiator_stats);
    let lost = [with.packets_lost, without.packets_lost];
    let figures = format!(
        "{algorithm:?} over {line:?}, with marks and without: goodput {goodputs:?}, waits {waits:?}, lost {lost:?}, \
         {} marks",
        with.ecn_ce
    );
    println!("{figures}");
    assert!(with.ecn_capable && with.ecn_ce > 0 && without.ecn_ce == 0, "{figures}");
    // No loss; or a tenth, if the queue is smaller than the first windows of a long path.
    assert!(lost[0] * 10 <= lost[1], "{figures}");
    assert!(goodputs[0] >= GOODPUT_MIN, "{figures}");
    assert!(waits[0] < waits[1], "{figures}");
}

#[test]
fn marks_slow_the_sender_without_loss_and_keep_the_queue_short() {
    compare(LINE, Algorithm::Bbr);
    compare(LINE, Algorithm::Cubic);
}

#[test]
fn marks_are_enough_on_short_and_on_long_paths() {
    let ms = Duration::from_millis;
    for line in [
        Line { mbit: 50, delay_ms: 2, threshold: ms(1), bytes: 50_000_000 },
        Line { mbit: 5, delay_ms: 100, threshold: ms(10), bytes: 8_000_000 },
        Line { mbit: 50, delay_ms: 50, threshold: ms(5), bytes: 60_000_000 },
    ] {
        compare(line, Algorithm::Bbr);
    }
}

#[test]
fn a_new_path_is_tested_and_used_with_marks_again() {
    let outcome = upload(marking(hops![]), Algorithm::Bbr)
        .nat_rebinding(&[Duration::from_secs(3)])
        .run()
        .remove(0);
    assert!(outcome.initiator_stats.ecn_capable, "{outcome:#?}");
    assert!(goodput(&outcome) > 0.75, "{} {outcome:#?}", goodput(&outcome));
}

#[test]
fn bleached_marks_end_marking_and_cost_nothing() {
    for (what, mangle) in [
        ("bleached", EcnMangle::bleach()),
        ("ECT(1)", EcnMangle::to_ect1()),
        ("all CE", EcnMangle::to_ce()),
    ] {
        let outcome = run(marking(hops![mangle]), Algorithm::Bbr);
        assert!(!outcome.initiator_stats.ecn_capable, "{what}: {outcome:#?}");
        assert!(goodput(&outcome) >= GOODPUT_MIN, "{what}: {} {outcome:#?}", goodput(&outcome));
    }
}

#[test]
fn a_path_that_drops_marked_packets_carries_the_others() {
    let line = Rate::mbit(LINE.mbit);
    let outcome = run(hops![EcnMangle::drop(), line, Delay::ms(20)], Algorithm::Bbr);
    assert!(!outcome.initiator_stats.ecn_capable, "{outcome:#?}");
    assert!(goodput(&outcome) >= GOODPUT_MIN, "{} {outcome:#?}", goodput(&outcome));
}

#[test]
fn marks_that_are_bleached_on_the_way_to_the_other_side_do_not_concern_this_one() {
    let outcome = upload(marking(hops![]), Algorithm::Bbr)
        .down(hops![EcnMangle::bleach(), Delay::ms(20)])
        .run()
        .remove(0);
    assert!(outcome.initiator_stats.ecn_capable && !outcome.responder_stats.ecn_capable);
}

#[test]
fn a_receiver_that_denies_marks_gets_no_more_than_one_without_ecn() {
    let denied = run(marking(hops![EcnMangle::hide_marks()]), Algorithm::Bbr);
    let bleached = run(marking(hops![EcnMangle::bleach()]), Algorithm::Bbr);
    assert_eq!(denied.initiator_stats.ecn_ce, 0);
    let (denied, without) = (goodput(&denied), goodput(&bleached));
    assert!(denied <= without * 1.02, "{denied} and {without}");
}

#[test]
fn a_path_that_is_marked_from_the_first_packet_on_still_gets_through() {
    // Every queued datagram is marked: the sender stays near the minimum that fills the line.
    let line = Rate::mbit(LINE.mbit).marking(Duration::ZERO);
    let outcome = upload(hops![line, Delay::ms(20)], Algorithm::Bbr)
        .configure_one(Role::Initiator, |transport| transport.max_mtu = 1452)
        .run()
        .remove(0);
    assert!(
        outcome.completed.is_some() && outcome.initiator_stats.packets_lost == 0,
        "{outcome:#?}"
    );
}
