//! Known failures of other implementations, as tests of the controller. `recovery` tests
//! acknowledgements and keep-alives, `wraith-sim` whole connections.

use super::*;
use crate::congestion::Algorithm;

#[test]
fn departures_follow_the_pacing_rate() {
    let mut run = Run::clean(100, ms(50));
    run.until_phase(Phase::Cruise);
    let departures = run.departures(ms(1000));
    let quantum = run.flow.recovery.send_quantum();
    // The probe's gain, one quantum, and the catch-up of a late timer.
    let allowed = run.bbr().max_bw.get() / 100 * 125 / 100 + 2 * quantum + 12_000;
    let sent = departures.most_within(ms(10));
    assert!(sent <= allowed, "{sent} bytes within 10 ms, {allowed} allowed");
    let total = departures.bytes();
    assert!(total > 10_500_000, "{total} bytes in a second");
}

#[test]
fn timeouts_forget_neither_bandwidth_nor_round_trip() {
    let mut run = Run::clean(100, ms(40));
    run.until_phase(Phase::Cruise);
    let (bw, min_rtt) = (run.bbr().max_bw.get(), run.bbr().min_rtt.get());
    run.flow.link.fate = |_, _| Fate::Lost;
    run.run(ms(5000));
    assert!(run.flow.recovery.probe_timeouts() > 2);
    assert_eq!((run.bbr().max_bw.get(), run.bbr().min_rtt.get()), (bw, min_rtt));
    run.flow.link.fate = |_, _| Fate::Arrives;
    run.run(ms(2500));
    run.expect_goodput(ms(2000), 85);
}

#[test]
fn an_empty_flight_between_messages_does_not_lower_the_rate() {
    let mut run = Run::clean(160, ms(40));
    run.run(ms(4000));
    let bw = run.bbr().max_bw.get();
    for _ in 0..20 {
        run.limit_application(0);
        run.run(ms(500));
        let message = 2_000_000;
        let took = run.flow.transfer(message);
        assert!(took < ms(40 + 100 + 20), "{took:?} for {message} bytes");
    }
    assert!(run.bbr().max_bw.get() * 100 >= bw * 95);
}

#[test]
fn keep_alives_are_no_bandwidth_samples() {
    let mut run = Run::clean(100, ms(40));
    run.run(ms(3000));
    let bw = run.bbr().max_bw.get();
    run.limit_application(0);
    for _ in 0..200 {
        run.run(ms(100));
        run.flow.backlog = 50;
        let now = run.flow.now + ms(1);
        run.flow.run_until(now);
    }
    assert_eq!(run.bbr().max_bw.get(), bw);
}

#[test]
fn the_first_pacing_rate_follows_the_measured_round_trip_and_is_not_kept_for_life() {
    let link = Link::clean(100 * MBIT, ms(100));
    let mut flow = Flow::with(link, Algorithm::Bbr);
    flow.recovery.assume_rtt(Time::ZERO, Duration::from_micros(1000));
    let assumed = flow.recovery.pacing_rate();
    flow.transfer(3000);
    let now = flow.now + ms(200);
    flow.run_until(now);
    // 2.77 initial windows per measured round trip.
    let measured = flow.recovery.pacing_rate();
    assert!(measured * 50 < assumed, "{assumed} then {measured}");
}

#[test]
fn segments_over_a_very_short_round_trip_do_not_ratchet_the_rate_down() {
    let mut run = Run::with_queue(10_000, Duration::from_micros(60), 2_000_000);
    run.flow.link.ack_every = 32;
    run.step = ms(1);
    run.run(ms(500));
    run.expect_goodput(ms(500), 8_500);
}

#[test]
fn quanta_leave_whole_at_high_rates() {
    let mut run = Run::clean(1000, ms(2));
    run.run(ms(1000));
    let mean = run.departures(ms(500)).mean_batch();
    assert!(mean >= 20, "{mean} packets per batch");
}

#[test]
fn a_larger_mtu_raises_the_first_window_and_never_lowers_a_rate() {
    let mut run = Run::clean(1000, ms(5));
    let before = run.flow.recovery.window();
    run.flow.set_mtu(1452);
    assert!(run.flow.recovery.window() > before);
    run.run(ms(2000));
    let rate = run.flow.recovery.pacing_rate();
    run.flow.set_mtu(8952);
    assert_eq!(run.flow.recovery.pacing_rate(), rate);
    assert!(run.flow.recovery.window() >= 4 * 8952);
    run.expect_goodput(ms(2000), 930);
}

#[test]
fn a_startup_limited_by_the_receivers_window_goes_on_when_it_opens() {
    let mut run = Run::clean(500, ms(50));
    // Emulates a receive window of 256 KiB.
    run.limit_application(5_000_000);
    run.run(ms(3000));
    run.application = None;
    run.run(ms(600));
    run.expect_goodput(ms(1000), 440);
}

#[test]
fn random_loss_up_to_a_tenth_costs_little_more_than_itself() {
    for (one_in, share) in [(1000, 95), (200, 94), (100, 93), (33, 88), (20, 82), (10, 75)] {
        let fate = match one_in {
            1000 => lose_one_in::<1000>,
            200 => lose_one_in::<200>,
            100 => lose_one_in::<100>,
            33 => lose_one_in::<33>,
            20 => lose_one_in::<20>,
            _ => lose_one_in::<10>,
        };
        let mut run = Run::with_fate(100, ms(50), fate);
        run.run(ms(5000));
        let goodput = run.goodput(ms(15_000)) / MBIT;
        assert!(
            goodput >= share,
            "{goodput} Mbit/s of 100 with one in {one_in} lost: {:#?}",
            run.bbr()
        );
    }
}

/// A loss is detected after the timer's granularity, here five round trips. Losses in that time
/// belong to several flights.
#[test]
fn random_loss_on_a_path_shorter_than_the_timer_costs_little_more_than_itself() {
    let mut run = Run::with_fate(10_000, Duration::from_micros(200), lose_one_in::<50>);
    run.run(ms(200));
    let goodput = run.goodput(ms(300)) / MBIT;
    assert!(goodput > 9000, "{goodput} Mbit/s of 10,000: {:#?}", run.bbr());
}
