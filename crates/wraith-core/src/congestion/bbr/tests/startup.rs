//! Leaving Startup, and staying in it.

use super::*;

#[test]
fn exiting_startup_on_bandwidth_plateau() {
    for (mbit, round_trip) in [(1, ms(40)), (100, ms(50)), (1000, ms(10)), (50, ms(600))] {
        let mut link = Link::clean(mbit * MBIT, round_trip);
        link.queue_bytes *= 4;
        let mut run = Run::new(link);
        run.until_state(BbrState::Drain);
        assert!(run.bbr().full_bw.reached && run.bbr().full_bw.now);
        assert_close(run.bbr().max_bw.get(), mbit * MBIT, 2);
        assert_eq!(
            run.flow.recovery.packets_lost(),
            0,
            "the plateau was seen before the queue was full"
        );
    }
}

#[test]
fn exiting_startup_on_loss_when_application_limited() {
    let mut run = Run::clean(100, ms(50));
    run.limit_application(20 * MBIT);
    run.run(ms(1000));
    assert_eq!(run.state(), BbrState::Startup);
    run.flow.link.fate = lose_one_in::<10>;
    run.until("out of Startup", ms(1000), |run| run.state() != BbrState::Startup);
    assert!(run.bbr().full_bw.reached && run.bbr().full_bw.now);
    assert!(run.bbr().full_bw.count < 3, "the loss, not a plateau");
    assert!(run.bbr().long_term.inflight_longterm != UNLIMITED);
}

#[test]
fn one_burst_of_losses_ends_neither_startup_nor_lowers_a_bound() {
    let mut run = Run::clean(500, ms(50));
    run.flow.link.fate = |pn, _| if (200..208).contains(&pn) { Fate::Lost } else { Fate::Arrives };
    run.until("a loss", ms(2000), |run| run.flow.recovery.packets_lost() >= 8);
    run.run(ms(100));
    assert_eq!(run.state(), BbrState::Startup);
    assert_eq!(
        (run.bbr().short_term.bw_shortterm, run.bbr().short_term.inflight_shortterm),
        (UNLIMITED, UNLIMITED)
    );
    run.until_state(BbrState::Drain);
    assert_close(run.bbr().max_bw.get(), 500 * MBIT, 3);
}

#[test]
fn three_percent_of_random_loss_do_not_end_startup_below_the_bandwidth() {
    let mut run = Run::clean(200, ms(100));
    run.flow.link.fate = lose_one_in::<33>;
    run.until_state(BbrState::Drain);
    assert!(run.bbr().max_bw.get() > 190 * MBIT, "{} Mbit/s", run.bbr().max_bw.get() / MBIT);
}

#[test]
fn a_shallow_queue_ends_startup_by_its_loss() {
    let mut run = Run::with_queue(200, ms(50), 50_000);
    run.until_state(BbrState::Drain);
    assert!(run.bbr().full_bw.count < 3);
    assert!(run.bbr().long_term.inflight_longterm != UNLIMITED);
}

#[test]
fn never_exiting_startup_when_application_limited_with_no_loss() {
    let mut run = Run::clean(100, ms(20));
    run.limit_application(5 * MBIT);
    for _ in 0..100 {
        run.run(ms(200));
        assert!(matches!(run.state(), BbrState::Startup | BbrState::ProbeRtt), "{:?}", run.state());
    }
    assert!(!run.bbr().full_bw.reached);
}

#[test]
fn loss_before_the_pipe_was_half_full_is_known_to_be_random() {
    let mut run = Run::with_fate(100, ms(100), lose_one_in::<25>);
    run.until_started(ms(5000));
    let rate = run.bbr().random_loss.rate();
    assert!((0.02..0.07).contains(&rate), "{rate}");
}

#[test]
fn loss_of_the_rate_that_startup_reached_is_not_taken_for_random() {
    // A policer instead of a queue: the excess is lost without an effect on the round trips.
    let mut run = Run::with_queue(10, ms(60), 4000);
    run.until_started(ms(5000));
    assert!(run.bbr().random_loss.rate() < 0.02, "{}", run.bbr().random_loss.rate());
}

#[test]
fn a_first_rate_that_was_too_high_is_lowered_when_a_queue_shows_it() {
    let mut run = Run::with_queue(1, ms(60), 1_000_000);
    run.run(ms(50));
    let first = run.flow.recovery.pacing_rate();
    assert!(first > 5 * MBIT, "{first}");
    run.until("lowered", ms(2000), |run| run.flow.recovery.pacing_rate() < 3 * MBIT);
    assert_eq!(run.state(), BbrState::Startup);
}

#[test]
fn the_probe_after_a_startup_that_lost_raises_its_bound_faster() {
    let mut run = Run::with_queue(10, ms(100), 20_000);
    run.until_started(ms(5000));
    assert!(run.bbr().rough_bound.is_set());
    run.until_state(BbrState::ProbeBw(Phase::Up));
    assert!(!run.bbr().rough_bound.is_set(), "only the first");
}

#[test]
fn a_first_burst_shows_the_bandwidth_and_startup_jumps_there() {
    let mut run = Run::clean(500, ms(100));
    run.until("the bandwidth", ms(5000), |run| run.bbr().max_bw.get() > 450 * MBIT);
    // An initial window of 62,500 bytes is a hundredth of the path's capacity: doubling takes seven
    // round trips, tripling five, and the jump three.
    assert!(run.flow.now < Time::ZERO + ms(600), "{:?}", run.flow.now);
    run.until_started(ms(2000));
    assert!(run.bbr().max_bw.get() < 510 * MBIT);
    let (lost, delivered) = (run.flow.recovery.packets_lost(), run.flow.delivered);
    assert!(lost * 1200 * 20 < delivered, "{lost} packets lost of {delivered} bytes");
}

#[test]
fn a_jump_is_bounded_by_what_was_delivered_whatever_the_burst_showed() {
    // At 100 Gbit/s, the burst shows far more than twelve windows per round trip.
    let mut run = Run::clean(100_000, ms(100));
    run.run(ms(150));
    assert!(run.bbr().is_jumping());
    assert!(run.flow.recovery.window() < 14 * 62_500, "{}", run.flow.recovery.window());
}

/// A policer: a burst passes at line rate, and then next to nothing.
fn policed(pn: u64, _: Duration) -> Fate {
    if pn < 150 || scatter(pn).is_multiple_of(10) { Fate::Arrives } else { Fate::Lost }
}

#[test]
fn a_jump_that_is_lost_goes_back_to_the_model_and_startup_goes_on() {
    let mut run = Run::with_fate(1000, ms(50), policed);
    run.until("a failed jump", ms(1000), |run| run.bbr().has_failed_to_jump());
    assert_eq!(run.state(), BbrState::Startup);
    let found = run.bbr().max_bw.get();
    assert!(run.flow.recovery.pacing_rate() <= 3 * found, "the model's rate again");
    run.flow.link.fate = |_, _| Fate::Arrives;
    run.until("the bandwidth", ms(2000), |run| run.bbr().max_bw.get() > 900 * MBIT);
}
