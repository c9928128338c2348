//! Entering, leaving and avoiding ProbeRTT.

use super::*;

/// Makes the path longer by `by`, so that the minimum is not seen again.
fn longer_path(run: &mut Run, by: Duration) {
    run.flow.link.round_trip += by;
}

#[test]
fn entering_and_exiting_probe_rtt() {
    let mut run = Run::clean(100, ms(40));
    run.until_phase(Phase::Cruise);
    longer_path(&mut run, ms(10));
    let since = run.flow.now;
    run.until_state(BbrState::ProbeRtt);
    let waited = run.flow.now - since;
    assert!((ms(3500)..=ms(5200)).contains(&waited), "{waited:?}");
    run.run(ms(100));
    assert!(
        run.in_flight() <= run.bbr().bdp_multiple(0.51) + 2400,
        "half of the product is in flight"
    );
    let entered = run.flow.now;
    run.until("out of ProbeRTT", ms(1000), |run| run.state() != BbrState::ProbeRtt);
    assert!(run.flow.now - entered >= ms(100));
    assert!(matches!(run.state(), BbrState::ProbeBw(_)));
    run.expect_goodput(ms(2000), 90);
    run.run(ms(10_000));
    assert_close(run.bbr().min_rtt.get().unwrap().as_micros() as u64, 50_000, 3);
}

#[test]
fn skipping_probe_rtt_due_to_application_limited_sending() {
    let mut run = Run::clean(100, ms(40));
    run.until_phase(Phase::Cruise);
    run.limit_application(0);
    run.run(ms(8000));
    assert_eq!(run.in_flight(), 0);
    longer_path(&mut run, ms(10));
    run.application = None;
    run.step();
    assert!(run.bbr().idle_restart);
    for _ in 0..40 {
        run.step();
        assert!(run.state() != BbrState::ProbeRtt);
    }
    assert!(!run.bbr().idle_restart);
}

#[test]
fn entering_and_exiting_probe_rtt_during_startup() {
    let mut run = Run::clean(1000, ms(40));
    run.limit_application(10 * MBIT);
    run.run(ms(1000));
    longer_path(&mut run, ms(10));
    run.until_state(BbrState::ProbeRtt);
    assert!(!run.bbr().full_bw.reached);
    run.until("out of ProbeRTT", ms(1000), |run| run.state() != BbrState::ProbeRtt);
    assert_eq!(run.state(), BbrState::Startup);
    run.application = None;
    run.until_state(BbrState::Drain);
    assert_close(run.bbr().max_bw.get(), 1000 * MBIT, 5);
}

#[test]
fn a_flow_alone_sees_the_empty_path_anyway_and_needs_no_probe_rtt() {
    let mut run = Run::clean(50, ms(100));
    run.until_phase(Phase::Cruise);
    for _ in 0..400 {
        run.run(ms(50));
        assert!(run.state() != BbrState::ProbeRtt);
    }
}

#[test]
fn idleness_in_probe_rtt_ends_it_before_the_next_packet() {
    let mut run = Run::clean(100, ms(40));
    run.until_phase(Phase::Cruise);
    longer_path(&mut run, ms(10));
    run.until_state(BbrState::ProbeRtt);
    run.run(ms(100));
    run.limit_application(0);
    run.run(ms(1000));
    run.application = None;
    run.step();
    assert_eq!(run.state(), BbrState::ProbeBw(Phase::Cruise));
}
