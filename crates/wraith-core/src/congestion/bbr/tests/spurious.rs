//! Spurious losses.

use super::*;

const UP: BbrState = BbrState::ProbeBw(Phase::Up);

#[test]
fn handling_spurious_fast_recovery() {
    let mut run = Run::deep(100, ms(80), 4);
    run.until_state(UP);
    let bw = run.bbr().max_bw.get();
    let bound = run.bbr().long_term.inflight_longterm;
    let window = run.flow.recovery.window();
    run.flow.link.fate =
        |pn, _| if pn.is_multiple_of(10) { Fate::Late(ms(60)) } else { Fate::Arrives };
    run.run(ms(8));
    run.flow.link.fate = |_, _| Fate::Arrives;
    run.until("a loss", ms(500), |run| run.flow.recovery.packets_lost() > 0);
    assert!(run.bbr().undo.has_saved());
    run.until("known to be none", ms(500), |run| {
        run.flow.recovery.packets_lost() == run.flow.recovery.spurious_losses()
    });
    run.step();
    let bbr = run.bbr();
    assert_eq!(bbr.long_term.inflight_longterm, bound);
    assert_eq!(
        (bbr.short_term.bw_shortterm, bbr.short_term.inflight_shortterm),
        (UNLIMITED, UNLIMITED)
    );
    assert!(matches!(bbr.state, BbrState::ProbeBw(Phase::Up | Phase::Refill)), "{:?}", bbr.state);
    assert!(bbr.max_bw.get() * 100 >= bw * 95 && run.flow.recovery.window() * 100 >= window * 90);
}

#[test]
fn handling_spurious_rto_recovery() {
    // Nothing returns for a second: probe timeouts fire, then everything arrives at once.
    let mut run = Run::clean(100, ms(80));
    run.until_phase(Phase::Cruise);
    let (bw, min_rtt) = (run.bbr().max_bw.get(), run.bbr().min_rtt.get());
    let window = run.flow.recovery.window();
    run.flow.link.fate = |_, _| Fate::Late(ms(1000));
    run.until("probed", ms(3000), |run| run.flow.recovery.probe_timeouts() > 0);
    run.flow.link.fate = |_, _| Fate::Arrives;
    assert_eq!(
        (run.bbr().max_bw.get(), run.bbr().min_rtt.get()),
        (bw, min_rtt),
        "a timeout is no measurement"
    );
    run.run(ms(3000));
    assert!(run.bbr().max_bw.get() * 100 >= bw * 90);
    assert!(run.flow.recovery.window() * 100 >= window * 80);
    run.expect_goodput(ms(3000), 90);
}

#[test]
fn a_startup_ended_by_losses_that_were_none_goes_on() {
    let mut run = Run::clean(500, ms(80));
    run.limit_application(100 * MBIT);
    run.run(ms(1000));
    run.flow.link.fate = |pn, _| if pn % 40 < 20 { Fate::Late(ms(200)) } else { Fate::Arrives };
    run.run(ms(30));
    run.flow.link.fate = |_, _| Fate::Arrives;
    run.until("out of Startup", ms(2000), |run| run.state() != BbrState::Startup);
    run.until("back in Startup", ms(1000), |run| run.state() == BbrState::Startup);
    assert!(!run.bbr().full_bw.reached);
}
