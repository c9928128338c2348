//! Upper and lower bounds over emulated links. Each test guards against a known failure of other
//! implementations.

use super::flow::{Fate, Flow, Link};
use super::*;

const MBIT: u64 = 125_000;

/// Returns a fixed pseudo-random number for a packet number.
fn scatter(pn: u64) -> u64 {
    let mut x = pn.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Delays one of `N` packets by up to `MICROS`.
fn delay_one_in<const N: u64, const MICROS: u64>(pn: u64, _: Duration) -> Fate {
    match scatter(pn) % N {
        0 => Fate::Late(us(scatter(pn) % MICROS)),
        _ => Fate::Arrives,
    }
}

#[test]
fn a_clean_link_is_filled_from_dsl_to_data_centre() {
    for (rate, round_trip) in [
        (MBIT, ms(100)),
        (20 * MBIT, ms(30)),
        (500 * MBIT, ms(50)),
        (1000 * MBIT, ms(1)),
        (10_000 * MBIT, us(100)),
    ] {
        let seconds = if rate > 1000 * MBIT { 1 } else { 8 };
        let mut flow = Flow::new(Link::clean(rate, round_trip));
        let goodput = flow.run_bulk(Duration::from_secs(seconds));
        assert!(goodput * 100 >= rate * 85, "{goodput} of {rate} at {round_trip:?}");
        let goodput = flow.run_bulk(Duration::from_secs(seconds));
        assert!(goodput * 100 >= rate * 95, "{goodput} of {rate} at {round_trip:?} later");
    }
}

#[test]
fn a_loopback_round_trip_of_thirty_microseconds_neither_stalls_nor_creeps() {
    let mut link = Link::clean(20_000 * MBIT, us(30));
    link.queue_bytes = 4 << 20; // a socket buffer
    let mut flow = Flow::new(link);
    flow.set_mtu(65_000);
    let took = flow.transfer(1 << 30);
    assert!(took < ms(600), "{took:?}");
}

#[test]
fn a_transfer_of_more_than_two_to_the_33_bytes_keeps_its_rate() {
    for algorithm in [Algorithm::Bbr, Algorithm::Cubic] {
        let mut flow = Flow::with(Link::clean(100_000 * MBIT, us(200)), algorithm);
        flow.set_mtu(65_000);
        flow.transfer(1 << 32);
        let first = flow.transfer(1 << 32);
        let second = flow.transfer(1 << 32);
        assert!(second <= first * 11 / 10, "{first:?} then {second:?}");
        assert!(flow.delivered > 1 << 33);
    }
}

#[test]
fn departures_follow_the_pacing_rate() {
    let mut flow = Flow::new(Link::clean(100 * MBIT, ms(50)));
    flow.run_bulk(Duration::from_secs(2));
    let sent = flow.bulk_departures(Duration::from_secs(1)).most_within(ms(5));
    // No 5 ms contain more than the rate allows, plus one quantum and one catch-up.
    let quantum = flow.recovery.send_quantum();
    let allowed = flow.recovery.pacing_rate() * 8 / 1000 + 2 * quantum + 12_000;
    assert!(sent <= allowed, "{sent} bytes within 5 ms, {allowed} allowed");
}

#[test]
fn packets_leave_in_whole_quanta_where_the_rate_allows() {
    let mut flow = Flow::new(Link::clean(500 * MBIT, ms(20)));
    flow.run_bulk(Duration::from_secs(2));
    let mean = flow.bulk_departures(Duration::from_secs(1)).mean_batch();
    assert!(mean >= 20, "{mean} packets per batch");
}

#[test]
fn a_millisecond_of_reordering_at_gigabit_rates_costs_little() {
    let mut link = Link::clean(1600 * MBIT, ms(100));
    link.fate = delay_one_in::<10, 1000>;
    let mut flow = Flow::new(link);
    let goodput = flow.run_bulk(Duration::from_secs(3));
    assert!(goodput > 1000 * MBIT, "{} Mbit/s", goodput / MBIT);
    assert!(flow.recovery.spurious_losses() < 10, "an eighth of the round trip covers it");
}

#[test]
fn reordering_beyond_the_first_window_is_learned_and_forgiven() {
    let mut link = Link::clean(200 * MBIT, ms(20));
    link.fate = delay_one_in::<50, 12_000>;
    let mut flow = Flow::new(link);
    flow.run_bulk(ms(200));
    let learned = flow.recovery.spurious_losses();
    assert!(learned > 0);
    let goodput = flow.run_bulk(Duration::from_secs(6));
    assert!(goodput > 180 * MBIT, "{} Mbit/s", goodput / MBIT);
    let later = flow.recovery.spurious_losses() - learned;
    assert!(later < 50, "{learned} at first, {later} later");
}

#[test]
fn acks_in_batches_longer_than_the_round_trip_cause_no_loss() {
    let mut link = Link::clean(1000 * MBIT, us(100));
    link.ack_every = 64;
    let mut flow = Flow::new(link);
    flow.run_bulk(Duration::from_secs(1));
    assert_eq!(flow.recovery.spurious_losses(), 0);
}

#[test]
fn a_cap_holds_is_used_and_may_be_lifted() {
    for algorithm in [Algorithm::Bbr, Algorithm::Cubic] {
        let mut flow = Flow::with(Link::clean(100 * MBIT, ms(40)), algorithm);
        flow.recovery.set_rate_limit(flow.now, 10 * MBIT);
        for _ in 0..3 {
            let goodput = flow.run_bulk(Duration::from_secs(4));
            let kbit = goodput * 1000 / MBIT;
            assert!((9_000..=10_100).contains(&kbit), "{algorithm:?}: {kbit} kbit/s");
        }
        flow.recovery.set_rate_limit(flow.now, u64::MAX);
        flow.run_bulk(Duration::from_secs(8));
        let goodput = flow.run_bulk(Duration::from_secs(8));
        assert!(goodput > 80 * MBIT, "{algorithm:?}: {} Mbit/s", goodput / MBIT);
    }
}

#[test]
fn an_outage_is_survived_and_noticed_to_be_over_within_a_second() {
    let mut link = Link::clean(100 * MBIT, ms(40));
    link.fate = |_, sent_at| {
        if sent_at > ms(2000) && sent_at < ms(12_000) { Fate::Lost } else { Fate::Arrives }
    };
    let mut flow = Flow::new(link);
    flow.run_bulk(Duration::from_secs(12));
    let before = flow.delivered;
    flow.run_bulk(ms(1200));
    assert!(flow.delivered > before, "still silent");
    let goodput = flow.run_bulk(Duration::from_secs(5));
    assert!(goodput > 80 * MBIT, "{} Mbit/s", goodput / MBIT);
    assert!(flow.recovery.rtt().min() <= ms(45), "probe timeouts spoil no estimate");
}

#[test]
fn pauses_between_messages_do_not_make_the_next_one_slower() {
    let mut flow = Flow::new(Link::clean(100 * MBIT, ms(40)));
    flow.transfer(20_000_000);
    let first = flow.transfer(2_000_000);
    for _ in 0..10 {
        let pause = flow.now + Duration::from_secs(30);
        flow.run_until(pause);
        let took = flow.transfer(2_000_000);
        assert!(took <= first + ms(10), "{took:?} after a pause, {first:?} without");
    }
}

#[test]
fn a_trickle_does_not_grow_the_window() {
    let mut flow = Flow::new(Link::clean(100 * MBIT, ms(40)));
    let before = flow.recovery.window();
    for _ in 0..200 {
        flow.transfer(3000);
        let pause = flow.now + ms(50);
        flow.run_until(pause);
    }
    // Only the first message may count: the sender was not yet marked as application-limited.
    assert!(flow.recovery.window() <= before + 3000);
    // Its pacing rate follows the path, not the initial assumption.
    let rate = flow.recovery.pacing_rate();
    assert!(rate as f64 > before as f64 / 0.042, "{rate}");
}

#[test]
fn random_loss_leaves_cubic_what_its_formula_promises() {
    let mut link = Link::clean(100 * MBIT, ms(20));
    link.fate = |pn, _| if scatter(pn).is_multiple_of(1000) { Fate::Lost } else { Fate::Arrives };
    let mut flow = Flow::new(link);
    flow.run_bulk(Duration::from_secs(10));
    let goodput = flow.run_bulk(Duration::from_secs(20));
    // Reno-friendly: about 1.2 packets per round trip over the root of the loss rate.
    let reno = (1.2 * 1200.0 / 0.020 / 0.001f64.sqrt()) as u64;
    assert!(goodput > reno * 8 / 10, "{goodput} against {reno}");
}

#[test]
fn a_larger_mtu_in_the_middle_does_not_hurt() {
    let mut flow = Flow::new(Link::clean(1000 * MBIT, ms(5)));
    flow.run_bulk(Duration::from_secs(1));
    let before = flow.run_bulk(Duration::from_secs(1));
    flow.set_mtu(8952);
    let after = flow.run_bulk(Duration::from_secs(1));
    assert!(after * 100 >= before * 95, "{before} then {after}");
}

#[test]
fn a_shallow_queue_still_carries_most_of_the_link() {
    let mut link = Link::clean(200 * MBIT, ms(40));
    link.queue_bytes = 100_000;
    let mut flow = Flow::new(link);
    flow.run_bulk(Duration::from_secs(5));
    let goodput = flow.run_bulk(Duration::from_secs(10));
    assert!(goodput > 150 * MBIT, "{} Mbit/s", goodput / MBIT);
}
