//! The phases of ProbeBW.

use super::*;

const CRUISE: BbrState = BbrState::ProbeBw(Phase::Cruise);
const DOWN: BbrState = BbrState::ProbeBw(Phase::Down);
const UP: BbrState = BbrState::ProbeBw(Phase::Up);

/// Loses every tenth packet.
fn heavy_loss(pn: u64, _: Duration) -> Fate {
    if pn.is_multiple_of(10) { Fate::Lost } else { Fate::Arrives }
}

fn no_loss(_: u64, _: Duration) -> Fate {
    Fate::Arrives
}

#[test]
fn exiting_probe_up_on_bandwidth_plateau() {
    let mut run = Run::deep(100, ms(40), 3);
    run.until_state(UP);
    let since = run.bbr().round.round_count;
    run.until("out of Up", ms(2000), |run| run.state() != UP);
    assert_eq!(run.state(), DOWN);
    assert!(run.bbr().full_bw.now);
    assert!((since + 2..=since + 5).contains(&run.bbr().round.round_count));
    assert_eq!(run.flow.recovery.packets_lost(), 0);
}

#[test]
fn exiting_probe_up_on_loss_when_application_limited() {
    let mut run = Run::clean(100, ms(40));
    run.step = Duration::from_micros(500);
    run.until_state(UP);
    run.limit_application(60 * MBIT);
    run.run(ms(80));
    assert_eq!(run.state(), UP);
    run.flow.link.fate = heavy_loss;
    run.until("down", ms(300), |run| run.state() != UP);
    assert!(run.bbr().long_term.prev_too_high);
    assert!(!run.bbr().full_bw.now, "the loss, not a plateau");
}

#[test]
fn never_exiting_probe_up_when_application_limited_with_no_loss() {
    let mut run = Run::clean(100, ms(40));
    run.until_state(UP);
    run.limit_application(20 * MBIT);
    for _ in 0..40 {
        run.run(ms(100));
        assert_eq!(run.state(), UP);
    }
}

#[test]
fn exiting_probe_down_on_inflight() {
    let mut run = Run::clean(100, ms(40));
    run.step = Duration::from_micros(100);
    run.until_state(UP);
    run.until_state(DOWN);
    run.step();
    assert_close(run.flow.recovery.pacing_rate(), run.bbr().bw * 99 * 9 / 1000, 1);
    run.until_state(CRUISE);
    assert!(
        run.in_flight()
            <= run.bbr().inflight(run.bbr().max_bw.get(), 1.0) + run.flow.recovery.send_quantum()
    );
    assert!(run.in_flight() <= run.bbr().inflight_with_headroom());
    run.step();
    assert_close(run.flow.recovery.pacing_rate(), run.bbr().bw * 99 / 100, 1);
}

#[test]
fn exiting_probe_down_after_max_time() {
    let mut run = Run::deep(100, ms(100), 20);
    run.until_state(UP);
    // The path slows down during the probe; the resulting queue is not gone within the time of a
    // cycle.
    run.flow.link.bytes_per_second = 30 * MBIT;
    run.until_state(DOWN);
    let (since, wait) = (run.flow.now, run.bbr().cycle.bw_probe_wait);
    run.until("out of Down", ms(4000), |run| run.state() != DOWN);
    assert_eq!(run.state(), BbrState::ProbeBw(Phase::Refill), "without cruising");
    assert!(run.flow.now - since >= wait);
}

#[test]
fn handling_loss_during_probe_up_after_inflight_longterm_is_set() {
    let mut run = Run::clean(100, ms(40));
    run.until_state(UP);
    run.flow.link.fate = heavy_loss;
    run.until_state(DOWN);
    let bound = run.bbr().long_term.inflight_longterm;
    assert!(bound != UNLIMITED);
    run.flow.link.fate = no_loss;
    // The next probe ends as soon as it reaches the bound; the one after it may exceed it.
    run.until("a careful probe", ms(10_000), |run| run.bbr().long_term.prev_precautionary);
    run.until_state(UP);
    let probed_from = run.bbr().long_term.inflight_longterm;
    run.flow.link.fate = heavy_loss;
    run.until("down", ms(500), |run| run.state() == DOWN);
    let bbr = run.bbr();
    assert!(bbr.long_term.prev_too_high);
    assert!(bbr.long_term.inflight_longterm <= probed_from.max(bound) * 13 / 10);
    assert!(
        bbr.long_term.inflight_longterm >= bbr.bdp_multiple(0.69),
        "not below what a loss may take"
    );
}

#[test]
fn handling_application_limited_sending_during_probe_refill() {
    let mut run = Run::clean(100, ms(40));
    run.until_state(BbrState::ProbeBw(Phase::Refill));
    let max_bw = run.bbr().max_bw.get();
    run.limit_application(3 * MBIT);
    run.until_state(UP);
    run.run(ms(500));
    assert_eq!(run.bbr().max_bw.get(), max_bw);
    run.application = None;
    run.expect_goodput(ms(4000), 90);
}

#[test]
fn probes_come_soon_at_first_then_within_two_to_three_seconds_and_not_in_step() {
    let mut run = Run::clean(200, ms(60));
    let mut gaps = Vec::new();
    for _ in 0..12 {
        run.until_state(DOWN);
        let since = run.flow.now;
        run.until_state(BbrState::ProbeBw(Phase::Refill));
        gaps.push(run.flow.now - since);
        run.until_state(UP);
    }
    for (i, gap) in gaps.iter().enumerate() {
        // The wait after Startup is too short to be observed.
        let part = (1.5_f64.powi(i as i32 + 1) / 8.0).min(1.0);
        let (least, most) = (ms(1990).mul_f64(part), ms(3000).mul_f64(part) + ms(100));
        assert!((least..=most).contains(gap), "{i}: {gaps:?}");
    }
    let gaps = &gaps[5..];
    assert!(gaps.iter().max().unwrap().abs_diff(*gaps.iter().min().unwrap()) > ms(100), "{gaps:?}");
}

#[test]
fn a_probe_that_only_raises_the_bound_ends_when_the_queue_shows_that_the_pipe_is_full() {
    // A queue of one bandwidth-delay product: Startup overflows it, so its bound is the capacity of
    // path and queue together.
    let mut run = Run::clean(100, ms(100));
    run.until("a bound", ms(5000), |run| run.bbr().long_term.inflight_longterm != UNLIMITED);
    for _ in 0..4 {
        run.until_state(UP);
        let since = run.flow.now;
        run.until("down again", ms(20_000), |run| run.state() != UP);
        assert!(run.flow.now - since < ms(800), "{:?}", run.flow.now - since);
    }
}

#[test]
fn twice_as_many_acks_are_asked_for_while_loss_bounds_the_window() {
    let mut run = Run::deep(100, ms(40), 8);
    run.until_state(UP);
    assert_eq!(run.flow.recovery.acks_per_window(), 4);
    run.flow.link.fate = heavy_loss;
    run.until_state(DOWN);
    assert!(run.bbr().long_term.inflight_longterm != UNLIMITED);
    assert_eq!(run.flow.recovery.acks_per_window(), 8);
}

#[test]
fn losses_of_a_probe_do_not_slow_the_following_cruise() {
    // A queue of a tenth of the pipe: each probe overflows it.
    let mut run = Run::with_queue(500, ms(40), 250_000);
    run.until_phase(Phase::Cruise);
    run.until_phase(Phase::Up);
    let before = run.flow.recovery.packets_lost();
    run.until_phase(Phase::Cruise);
    run.run(ms(100));
    assert!(run.flow.recovery.packets_lost() > before, "the probe lost something");
    assert_eq!(run.bbr().short_term.bw_shortterm, UNLIMITED);
}

#[test]
fn on_a_short_path_loss_by_chance_is_known_for_what_it_is() {
    let mut run = Run::with_fate(8000, Duration::from_micros(200), lose_one_in::<33>);
    run.run(ms(100));
    let rate = run.bbr().random_loss.rate();
    assert!((0.01..0.06).contains(&rate), "{rate}");
}

#[test]
fn a_probe_that_fails_by_loss_begins_to_ask_whose_loss_it_is() {
    // A slow, long path with a tenth of random loss: thirty packets per round, so trials take long.
    let mut link = Link::clean(MBIT, ms(600));
    link.queue_bytes /= 4;
    link.fate = lose_one_in::<10>;
    let mut run = Run::new(link);
    run.until("known", ms(12_000), |run| run.bbr().random_loss.rate() > 0.03);
}
