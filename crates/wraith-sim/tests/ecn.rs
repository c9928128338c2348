//! Queues that mark instead of dropping, and paths and peers that do not leave the marks alone.

use std::time::Duration;

use wraith_core::{Algorithm, Role};
use wraith_sim::link::{Delay, EcnMangle, Hops, QueueMeter, Rate};
use wraith_sim::{Outcome, Scenario, hops};

const MBIT: u64 = 20;
const BYTES: u64 = 25_000_000;
/// What the bytes take with headers at the full rate is ten seconds and a bit; this is all of it at 0.85.
const GOODPUT_MIN: f64 = 0.85;
/// Payload in a full datagram on the wire, headers and tag taken off.
const PAYLOAD_PART: f64 = 1430.0 / 1500.0;
/// A queue of 5 ms is marked; 100 ms are held.
const THRESHOLD: Duration = Duration::from_millis(5);

/// 20 Mbit/s with 40 ms, which marks, and then does `mangle` to the marks.
fn marking(mangle: Hops) -> Hops {
    let mut hops = hops![Rate::mbit(MBIT).marking(THRESHOLD)];
    hops.extend(mangle);
    hops.extend(hops![Delay::ms(20)]);
    hops
}

fn upload(up: Hops, algorithm: Algorithm) -> Scenario {
    Scenario::new()
        .up(up)
        .down(hops![Delay::ms(20)])
        .upload(BYTES)
        .configure(move |transport| transport.congestion = algorithm.into())
        .within(Duration::from_secs(60))
        .seeds(0..1)
}

fn run(up: Hops, algorithm: Algorithm) -> Outcome {
    upload(up, algorithm).run().remove(0)
}

fn goodput(outcome: &Outcome) -> f64 {
    let seconds = outcome.completed.expect("complete").as_nanos() as f64 / 1e9;
    BYTES as f64 * 8.0 / seconds / (MBIT as f64 * 1e6) / PAYLOAD_PART
}

#[test]
fn marks_slow_the_sender_without_loss_and_keep_the_queue_short() {
    for algorithm in [Algorithm::Bbr, Algorithm::Cubic] {
        let (marked, dropped) = (QueueMeter::default(), QueueMeter::default());
        let line = Rate::mbit(MBIT).marking(THRESHOLD).measured(&marked);
        let with = run(hops![line, Delay::ms(20)], algorithm);
        let line = Rate::mbit(MBIT).measured(&dropped);
        let without = run(hops![line, Delay::ms(20)], algorithm);
        let (stats, plain) = (with.initiator_stats, without.initiator_stats);
        let waits = [&marked, &dropped].map(|meter| meter.percentile(95.0));
        let figures = format!(
            "{algorithm:?}: {:.3} with marks, {:.3} without; {waits:?}; {stats:?}; {plain:?}",
            goodput(&with),
            goodput(&without)
        );
        assert!(stats.ecn_capable && stats.ecn_ce > 0, "{figures}");
        assert_eq!(stats.packets_lost, 0, "{figures}");
        assert!(goodput(&with) >= GOODPUT_MIN, "{figures}");
        assert!(plain.ecn_ce == 0 && waits[0] < waits[1], "{figures}");
    }
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
    let outcome = run(hops![EcnMangle::drop(), Rate::mbit(MBIT), Delay::ms(20)], Algorithm::Bbr);
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
    // Every queue at all is marked: the sender stays near the least that fills the line.
    let line = Rate::mbit(MBIT).marking(Duration::ZERO);
    let outcome = upload(hops![line, Delay::ms(20)], Algorithm::Bbr)
        .configure_one(Role::Initiator, |transport| transport.max_mtu = 1452)
        .run()
        .remove(0);
    assert!(
        outcome.completed.is_some() && outcome.initiator_stats.packets_lost == 0,
        "{outcome:#?}"
    );
}
