//! Known failures of other implementations, as tests of the controller. `recovery` tests
//! acknowledgements and keep-alives, `wraith-sim` whole connections.

use super::*;
use crate::congestion::Algorithm;

#[test]
fn departures_follow_the_pacing_rate() {
    let mut run = Run::clean(100, ms(50));
    run.until_phase(Phase::Cruise);
    run.flow.departures = Some(Vec::new());
    run.run(ms(1000));
    let departures = run.flow.departures.take().unwrap();
    let quantum = run.flow.recovery.send_quantum();
    let (mut start, mut sent) = (0, 0);
    for &(time, size) in &departures {
        sent += size;
        while departures[start].0 + ms(10) < time {
            sent -= departures[start].1;
            start += 1;
        }
        // The probe's gain, one quantum, and the catch-up of a late timer.
        let allowed = run.bbr().max_bw.get() / 100 * 125 / 100 + 2 * quantum + 12_000;
        assert!(sent <= allowed, "{sent} bytes within 10 ms, {allowed} allowed");
    }
    let total: u64 = departures.iter().map(|(_, size)| size).sum();
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
    let goodput = run.goodput(ms(2000));
    assert!(goodput > 85 * MBIT, "{} Mbit/s after the outage", goodput / MBIT);
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
    let mut link = Link::clean(10_000 * MBIT, Duration::from_micros(60));
    link.ack_every = 32;
    link.queue_bytes = 2_000_000;
    let mut run = Run::new(link);
    run.step = ms(1);
    run.run(ms(500));
    let goodput = run.goodput(ms(500));
    assert!(goodput > 8_500 * MBIT, "{} Mbit/s", goodput / MBIT);
}

#[test]
fn quanta_leave_whole_at_high_rates() {
    let mut run = Run::clean(1000, ms(2));
    run.run(ms(1000));
    run.flow.departures = Some(Vec::new());
    run.run(ms(500));
    let departures = run.flow.departures.take().unwrap();
    let batches = departures.windows(2).filter(|pair| pair[0].0 != pair[1].0).count();
    let mean = departures.len() / (batches + 1);
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
    let goodput = run.goodput(ms(2000));
    assert!(goodput > 930 * MBIT, "{} Mbit/s", goodput / MBIT);
}

#[test]
fn more_than_two_to_the_33_bytes_keep_their_rate() {
    let mut flow =
        Flow::with(Link::clean(100_000 * MBIT, Duration::from_micros(200)), Algorithm::Bbr);
    flow.set_mtu(65_000);
    flow.transfer(1 << 32);
    let first = flow.transfer(1 << 32);
    let second = flow.transfer(1 << 32);
    assert!(second <= first * 11 / 10, "{first:?} then {second:?}");
    assert!(flow.delivered > 1 << 33);
}

#[test]
fn a_startup_limited_by_the_receivers_window_goes_on_when_it_opens() {
    let mut run = Run::clean(500, ms(50));
    // Emulates a receive window of 256 KiB.
    run.limit_application(5_000_000);
    run.run(ms(3000));
    run.application = None;
    run.run(ms(600));
    let goodput = run.goodput(ms(1000));
    assert!(goodput > 440 * MBIT, "{} Mbit/s", goodput / MBIT);
}

#[test]
fn random_loss_up_to_a_tenth_costs_little_more_than_itself() {
    for (one_in, share) in [(1000, 95), (200, 94), (100, 93), (33, 88), (20, 82), (10, 75)] {
        let mut link = Link::clean(100 * MBIT, ms(50));
        link.fate = match one_in {
            1000 => |pn, _| lost_one_in(pn, 1000),
            200 => |pn, _| lost_one_in(pn, 200),
            100 => |pn, _| lost_one_in(pn, 100),
            33 => |pn, _| lost_one_in(pn, 33),
            20 => |pn, _| lost_one_in(pn, 20),
            _ => |pn, _| lost_one_in(pn, 10),
        };
        let mut run = Run::new(link);
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
    let mut link = Link::clean(10_000 * MBIT, Duration::from_micros(200));
    link.fate = |pn, _| lost_one_in(pn, 50);
    let mut run = Run::new(link);
    run.run(ms(200));
    let goodput = run.goodput(ms(300)) / MBIT;
    assert!(goodput > 9000, "{goodput} Mbit/s of 10,000: {:#?}", run.bbr());
}

fn lost_one_in(pn: u64, n: u64) -> Fate {
    if scatter(pn).is_multiple_of(n) { Fate::Lost } else { Fate::Arrives }
}
