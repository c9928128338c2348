//! Paths that become faster or slower, and policers.

use super::*;

#[test]
fn increasing_bandwidth_10x_and_ensuring_full_bandwidth_is_reached() {
    let mut run = Run::clean(10, ms(40));
    run.until_phase(Phase::Cruise);
    run.flow.link.bytes_per_second = 100 * MBIT;
    run.flow.link.queue_bytes *= 10;
    run.until("nearly ten times the bandwidth", ms(20_000), |run| {
        run.bbr().max_bw.get() > 95 * MBIT
    });
    run.expect_goodput(ms(5000), 90);
}

#[test]
fn a_bound_set_by_loss_grows_exponentially_when_the_path_does() {
    let mut run = Run::with_queue(10, ms(40), 6_000);
    run.until("a bound", ms(10_000), |run| run.bbr().long_term.inflight_longterm != UNLIMITED);
    run.until_phase(Phase::Cruise);
    run.change_path(100, 200_000);
    run.until("nearly ten times the bandwidth", ms(30_000), |run| {
        run.bbr().max_bw.get() > 90 * MBIT
    });
}

#[test]
fn decreasing_bandwidth_10x_and_ensuring_max_bandwidth_adapts_down() {
    let mut run = Run::clean(100, ms(40));
    run.until_phase(Phase::Cruise);
    run.change_path(10, 50_000);
    run.until("slowed down", ms(3000), |run| run.bbr().short_term.bw_shortterm < 40 * MBIT);
    run.until("adapted", ms(15_000), |run| run.bbr().max_bw.get() < 13 * MBIT);
    let lost = run.flow.recovery.packets_lost();
    let goodput = run.goodput(ms(10_000));
    assert!(goodput > 85 * MBIT / 10, "{} kbit/s", goodput / 125);
    let lost = run.flow.recovery.packets_lost() - lost;
    assert!(lost * 20 < 10_000 * 1_250_000 / 1_200_000, "{lost} packets lost of about 10,000");
}

#[test]
fn handling_token_bucket_policers() {
    // No queue, and a fifth of the burst's rate: the link is a policer that has used up its tokens.
    let mut run = Run::with_queue(100, ms(40), 1_000_000);
    run.until_phase(Phase::Cruise);
    run.change_path(20, 10_000);
    run.until("a reaction", ms(3000), |run| {
        run.bbr().short_term.bw_shortterm < 60 * MBIT
            && run.bbr().short_term.inflight_shortterm != UNLIMITED
    });
    run.run(ms(15_000));
    let (lost, delivered) = (run.flow.recovery.packets_lost(), run.flow.delivered);
    run.expect_goodput(ms(20_000), 16);
    let lost = (run.flow.recovery.packets_lost() - lost) * 1200;
    let share = lost as f64 / (run.flow.delivered - delivered + lost) as f64;
    assert!(share < 0.06, "{share} of it lost");
}

#[test]
fn a_probe_that_finds_much_more_goes_on_as_startup_does() {
    let mut run = Run::clean(10, ms(50));
    run.until_phase(Phase::Cruise);
    run.change_path(100, 600_000);
    run.until_phase(Phase::Up);
    let since = run.flow.now;
    run.until("the bandwidth", ms(5000), |run| run.bbr().max_bw.get() > 90 * MBIT);
    // A quarter more in each round trip would take eleven rounds. Measured with the samples that a
    // probe needs: seventeen.
    assert!(run.flow.now - since < ms(50) * 10, "{:?}", run.flow.now - since);
    assert!(run.bbr().max_bw.get() < 105 * MBIT);
}

#[test]
fn after_a_probe_that_found_much_the_next_comes_soon() {
    let mut run = Run::clean(10, ms(50));
    run.until("used to the path", ms(30_000), |run| run.bbr().cycle.bw_probe_wait >= ms(2000));
    run.change_path(100, 600_000);
    run.until("found", ms(10_000), |run| run.bbr().max_bw.get() > 90 * MBIT);
    run.until_phase(Phase::Down);
    assert!(run.bbr().cycle.bw_probe_wait < ms(400), "{:?}", run.bbr().cycle.bw_probe_wait);
}

#[test]
fn a_probe_that_ended_as_the_path_became_faster_goes_on() {
    let mut run = Run::clean(10, ms(50));
    run.until("used to the path", ms(30_000), |run| run.bbr().cycle.bw_probe_wait >= ms(2000));
    run.until("nearly done probing", ms(10_000), |run| {
        run.bbr().is_up() && run.bbr().full_bw.count == 2
    });
    // Packets sent from now on are acknowledged after the probe.
    run.change_path(100, 600_000);
    run.until("the bandwidth", ms(1000), |run| run.bbr().max_bw.get() > 90 * MBIT);
}

#[test]
fn room_for_others_is_left_in_the_queue_and_not_in_the_pipe() {
    let mut run = Run::with_queue(100, ms(20), 50_000);
    run.run(ms(3000));
    run.until("a bound while cruising", ms(5000), |run| {
        run.state() == BbrState::ProbeBw(Phase::Cruise)
            && run.bbr().long_term.inflight_longterm != UNLIMITED
    });
    run.expect_goodput(ms(5000), 88);
}

#[test]
fn a_bound_just_above_the_pipe_leaves_the_pipe_full() {
    let mut run = Run::clean(100, ms(20));
    run.until_phase(Phase::Cruise);
    let bbr = run.bbr();
    let pipe = bbr.bdp_multiple(1.0);
    let mut model = Bbr::new(Time::ZERO, 1200, 1);
    model.bw = bbr.bw;
    model.min_rtt.update(Time::ZERO, bbr.min_rtt.get());
    for (bound, least) in
        [(pipe * 11 / 10, pipe), (pipe / 2, pipe / 2), (pipe * 2, pipe * 17 / 10 - 1)]
    {
        model.long_term.inflight_longterm = bound;
        let headroom = model.inflight_with_headroom();
        assert!((least..=bound).contains(&headroom), "{headroom} of {bound}, the pipe has {pipe}");
    }
}
