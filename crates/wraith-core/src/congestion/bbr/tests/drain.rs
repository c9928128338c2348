//! Leaving Drain.

use super::*;

#[test]
fn exiting_drain_based_on_inflight() {
    let mut run = Run::clean(100, ms(50));
    run.step = Duration::from_micros(100);
    run.until_state(BbrState::Drain);
    let rate = run.flow.recovery.pacing_rate();
    assert_close(rate, run.bbr().bw * 99 / 200, 1);
    let since = run.bbr().round.round_count;
    run.until("out of Drain", ms(1000), |run| run.state() != BbrState::Drain);
    assert!(matches!(run.state(), BbrState::ProbeBw(_)));
    // Bytes sent since the decisive ACK are in flight again.
    assert!(run.in_flight() * 100 <= run.bbr().inflight(run.bbr().bw, 1.0) * 105);
    assert!(run.bbr().round.round_count <= since + 2, "within about a round trip");
}

#[test]
fn exiting_drain_based_on_time() {
    let mut run = Run::clean(100, ms(50));
    run.step = ms(1);
    run.until_state(BbrState::Drain);
    let since = run.bbr().drain_start_round;
    // A path longer than estimated: more stays in flight than the estimate targets.
    run.flow.link.round_trip *= 4;
    run.until("out of Drain", ms(3000), |run| run.state() != BbrState::Drain);
    assert_eq!(run.state(), BbrState::ProbeBw(Phase::Down));
    assert_eq!(run.bbr().round.round_count, since + 4);
    assert!(run.in_flight() > run.bbr().inflight(run.bbr().bw, 1.0));
}
