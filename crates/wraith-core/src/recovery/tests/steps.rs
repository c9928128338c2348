//! Single calls of recovery, one at a time.

use super::super::bounds::{OUTSIDE_WINDOW_MAX, OUTSTANDING_MAX};
use super::super::{Budget, PTO_INTERVAL_MAX, TimeoutOutcome};
use super::*;
use crate::frame::EcnCounts;

#[test]
fn acknowledged_packets_come_back_once_and_in_order() {
    let mut s = Stepper::new(ms(50));
    s.send(ms(0), 10);
    s.ack(ms(50), &[8..=9, 5..=6, 0..=3]);
    assert_eq!(s.acked(), [0, 1, 2, 3, 5, 6, 8, 9]);
    assert!(s.out.acked.iter().all(|packet| packet.frames == packet.pn));
    assert_eq!(s.recovery.bytes_in_flight(), 2 * u64::from(MTU));
    s.ack(ms(51), &[8..=9, 5..=6, 0..=3]);
    assert!(s.acked().is_empty());
    s.ack(ms(52), &[0..=9]);
    assert_eq!(s.acked(), [4, 7]);
    assert_eq!(s.recovery.bytes_in_flight(), 0);
    assert_eq!(s.recovery.timeout(), None);
}

#[test]
fn an_ack_of_a_packet_never_sent_is_a_violation() {
    let mut s = Stepper::new(ms(50));
    s.send(ms(0), 3);
    for largest in [3, u64::MAX >> 2] {
        assert!(!s.accepts(ms(1), 0..=largest));
    }
}

#[test]
fn an_ack_of_a_skipped_number_is_a_violation() {
    let mut s = Stepper::new(ms(50));
    s.send(ms(0), 1);
    s.next += 1;
    s.send(ms(0), 1);
    assert!(!s.accepts(ms(50), 1..=2));
}

#[test]
fn overtaken_packets_are_lost_after_nine_eighths_of_a_round_trip_and_not_before() {
    let mut s = Stepper::new(ms(80));
    s.send(ms(0), 600);
    s.ack(ms(80), &[1..=599]);
    assert!(s.lost().is_empty(), "no count of newer packets makes a loss");
    assert_eq!(s.recovery.timeout(), Some(at(ms(90))));
    assert_eq!(s.recovery.on_timeout(at(us(89_999)), &mut s.out), TimeoutOutcome::Nothing);
    assert_eq!(s.recovery.on_timeout(at(ms(90)), &mut s.out), TimeoutOutcome::Lost);
    assert_eq!(s.lost(), [0]);
    assert_eq!(s.recovery.timeout(), None);
}

#[test]
fn on_a_loopback_round_trip_the_loss_timer_is_a_millisecond() {
    let mut s = Stepper::new(us(30));
    s.send(us(0), 2);
    s.ack(us(30), &[1..=1]);
    assert_eq!(s.recovery.timeout(), Some(at(ms(1))));
    assert_eq!(s.recovery.rtt().smoothed(), us(30));
}

#[test]
fn a_round_trip_of_zero_divides_nothing_by_zero() {
    let mut s = Stepper::new(Duration::ZERO);
    for i in 0..100 {
        s.send(ms(i), 10);
        s.ack(ms(i), &[0..=s.next - 1]);
        assert!(matches!(s.recovery.budget(at(ms(i))), Budget::Bytes(_) | Budget::At(_)));
    }
    assert!(s.recovery.pacing_rate() > 0);
}

#[test]
fn a_late_ack_takes_the_reduction_back_and_widens_the_reordering_window() {
    let mut s = Stepper::new(ms(80));
    s.send(ms(0), 32);
    s.ack(ms(80), &[1..=31]);
    let window = s.recovery.window();
    s.recovery.on_timeout(at(ms(90)), &mut s.out);
    assert!(s.recovery.window() < window);
    assert_eq!(s.recovery.packets_lost(), 1);

    s.ack(ms(100), &[0..=31]);
    assert_eq!((s.out.spurious, s.recovery.spurious_losses()), (1, 1));
    assert!(s.acked().is_empty(), "its frames were handed back as lost already");
    assert_eq!(s.recovery.window(), window);

    // The next packet that is as late as that one is not declared lost.
    s.send(ms(100), 2);
    s.ack(ms(180), &[33..=33, 0..=31]);
    assert_eq!(s.recovery.on_timeout(at(ms(200)), &mut s.out), TimeoutOutcome::Nothing);
    s.ack(ms(200), &[0..=33]);
    assert_eq!(s.acked(), [32]);
}

#[test]
fn a_reduction_with_one_real_loss_stands() {
    let mut s = Stepper::new(ms(80));
    s.send(ms(0), 32);
    s.ack(ms(80), &[2..=31]);
    s.recovery.on_timeout(at(ms(90)), &mut s.out);
    assert_eq!(s.lost(), [0, 1]);
    let reduced = s.recovery.window();
    s.ack(ms(91), &[1..=31]);
    assert_eq!((s.out.spurious, s.recovery.window()), (1, reduced));
}

#[test]
fn losses_of_one_flight_reduce_the_window_once() {
    let mut s = Stepper::new(ms(80));
    s.send(ms(0), 16);
    s.send(ms(5), 16);
    s.ack(ms(85), &[2..=15]);
    s.recovery.on_timeout(at(ms(100)), &mut s.out);
    let reduced = s.recovery.window();
    s.ack(ms(101), &[31..=31, 2..=15]);
    s.recovery.on_timeout(at(ms(200)), &mut s.out);
    assert_eq!((s.lost().len(), s.recovery.window()), (15, reduced));
    s.send(ms(201), 16);
    s.ack(ms(282), &[47..=47, 31..=31]);
    s.recovery.on_timeout(at(ms(400)), &mut s.out);
    assert!(s.recovery.window() < reduced);
}

#[test]
fn an_mtu_probe_that_is_lost_is_no_congestion() {
    let mut s = Stepper::new(ms(80));
    s.send_other(ms(0), |packet| packet.mtu_probe = true);
    s.send(ms(0), 1);
    s.ack(ms(100), &[1..=1]);
    let window = s.recovery.window();
    s.recovery.on_timeout(at(ms(200)), &mut s.out);
    assert!(s.out.lost[0].mtu_probe);
    assert_eq!((s.recovery.window(), s.recovery.bytes_in_flight()), (window, 0));
    assert_eq!(s.recovery.packets_lost(), 0);
}

#[test]
fn ack_only_packets_neither_count_nor_arm_timers_nor_give_samples() {
    let mut s = Stepper::new(ms(80));
    for _ in 0..10 {
        s.send_other(ms(0), |packet| packet.ack_eliciting = false);
    }
    assert_eq!((s.recovery.bytes_in_flight(), s.recovery.timeout()), (0, None));
    assert_eq!(s.recovery.oldest_unacked(), None);
    s.ack(ms(500), &[9..=9]);
    assert_eq!(s.acked(), [9]);
    assert!(s.lost().is_empty());
    assert!(!s.recovery.rtt().is_sampled());
    assert_eq!(s.recovery.sent.len(), 0, "overtaken ones are forgotten at once");
}

#[test]
fn only_the_largest_newly_acknowledged_packet_gives_a_round_trip() {
    let mut s = Stepper::new(ms(50));
    s.send(ms(0), 1);
    s.send(ms(10), 1);
    s.ack(ms(60), &[1..=1]);
    assert_eq!(s.recovery.rtt().latest(), ms(50));
    s.ack(ms(65), &[0..=1]);
    assert_eq!(s.recovery.rtt().latest(), ms(50));
}

#[test]
fn probe_timeouts_back_off_to_a_second_and_change_neither_window_nor_round_trip() {
    let mut s = Stepper::new(ms(50));
    s.send(ms(0), 4);
    s.ack(ms(50), &[0..=2]);
    let (rtt, window) = (*s.recovery.rtt(), s.recovery.window());
    assert_eq!(s.recovery.oldest_unacked(), Some(&3));
    let mut now = at(ms(0));
    let mut last = Duration::ZERO;
    for count in 1..40 {
        let due = s.recovery.timeout().expect("a packet is outstanding");
        let interval = due - now;
        assert!(interval >= last && interval <= PTO_INTERVAL_MAX, "{interval:?}");
        assert!(interval >= s.recovery.pto());
        (now, last) = (due, interval);
        assert_eq!(s.recovery.on_timeout(now, &mut s.out), TimeoutOutcome::Probe);
        assert_eq!(s.recovery.pto_count(), count);
        assert!(s.recovery.timeout() > Some(now));
    }
    assert_eq!(last, PTO_INTERVAL_MAX);
    assert_eq!((*s.recovery.rtt(), s.recovery.window()), (rtt, window));
    s.ack(now - Time::ZERO, &[0..=3]);
    assert_eq!((s.recovery.pto_count(), s.recovery.timeout()), (0, None));
}

#[test]
fn a_round_trip_that_was_long_once_is_not_waited_for_until_the_connection_is_idle() {
    let mut s = Stepper::new(ms(50));
    s.recovery.set_idle_timeout(ms(10_000));
    s.send(ms(0), 1);
    s.ack(ms(9_000), &[0..=0]);
    assert!(s.recovery.pto() > ms(9_000));
    // With nothing acknowledged, a probe is due; with a newer packet acknowledged, the loss.
    s.send(ms(9_000), 2);
    assert_eq!(s.recovery.timeout(), Some(at(ms(11_500))));
    s.ack(ms(9_100), &[2..=2]);
    assert_eq!(s.recovery.timeout(), Some(at(ms(11_500))));
}

#[test]
fn the_probe_timeout_leaves_room_for_scheduling_whatever_the_peer_promises() {
    let mut s = Stepper::new(us(30));
    s.recovery.set_max_ack_delay(Duration::ZERO);
    s.send(us(0), 1);
    s.ack(us(30), &[0..=0]);
    assert_eq!(s.recovery.pto(), ms(10));
}

#[test]
fn losing_everything_for_three_probe_timeouts_is_persistent_congestion() {
    let mut s = Stepper::new(ms(50));
    s.send(ms(0), 1);
    s.ack(ms(50), &[0..=0]);
    s.send(ms(60), 1);
    s.send(ms(700), 1);
    s.send(ms(2000), 1);
    s.ack(ms(2050), &[3..=3, 0..=0]);
    assert_eq!(s.lost(), [1, 2]);
    assert!(s.out.persistent_congestion);
    // The acknowledgement that proves it may grow the minimum window at once.
    assert!(s.recovery.window() <= 3 * u64::from(MTU));
    assert_eq!(s.recovery.rtt().min(), ms(50));
}

#[test]
fn an_arrival_in_between_is_no_persistent_congestion() {
    let mut s = Stepper::new(ms(50));
    s.send(ms(0), 1);
    s.ack(ms(50), &[0..=0]);
    s.send(ms(60), 1);
    s.send(ms(400), 1);
    s.send(ms(700), 1);
    s.send(ms(2000), 1);
    s.ack(ms(2050), &[4..=4, 2..=2, 0..=0]);
    assert_eq!(s.lost(), [1, 3]);
    assert!(!s.out.persistent_congestion);
}

#[test]
fn losses_before_the_first_sample_are_no_persistent_congestion() {
    let mut s = Stepper::new(ms(50));
    s.send(ms(0), 1);
    s.send(ms(3000), 1);
    s.send(ms(5000), 1);
    s.ack(ms(5050), &[2..=2]);
    assert_eq!(s.lost(), [0, 1]);
    assert!(!s.out.persistent_congestion);
}

#[test]
fn on_a_new_path_old_packets_are_handed_back_but_count_for_nothing() {
    let mut s = Stepper::new(ms(50));
    s.send(ms(0), 8);
    s.ack(ms(20), &[0..=0]);
    s.recovery.reset_path(at(ms(30)), 1400);
    assert_eq!(s.recovery.bytes_in_flight(), 0);
    assert!(!s.recovery.rtt().is_sampled());
    let window = s.recovery.window();
    s.send(ms(30), 1);
    s.ack(ms(60), &[5..=5]);
    assert_eq!((s.acked(), s.lost()), (vec![5], vec![1, 2, 3, 4]));
    assert!(!s.recovery.rtt().is_sampled(), "the old path's round trip is not the new one's");
    s.ack(ms(80), &[8..=8]);
    assert_eq!(s.lost(), [6, 7]);
    assert!(s.recovery.window() >= window);
    assert_eq!((s.recovery.bytes_in_flight(), s.recovery.timeout()), (0, None));
}

#[test]
fn a_ce_mark_reduces_once_per_round_trip_and_is_not_taken_back() {
    let mut s = Stepper::new(ms(50));
    let counts = |ect0, ce| Some(EcnCounts { ect0, ect1: 0, ce });
    assert!(s.recovery.marks_ecn(at(ms(0))));
    s.send_marked(ms(0), 32);
    assert!(!s.recovery.marks_ecn(at(ms(0))), "ten are enough for a test");
    s.ack(ms(50), &[0..=9]);
    s.recovery.on_ecn(at(ms(50)), counts(10, 0));
    assert!(s.recovery.is_ecn_capable() && s.recovery.marks_ecn(at(ms(50))));
    let window = s.recovery.window();
    s.ack(ms(50), &[0..=15]);
    s.recovery.on_ecn(at(ms(50)), counts(13, 3));
    let reduced = s.recovery.window();
    assert!(reduced < window);
    s.ack(ms(51), &[0..=31]);
    s.recovery.on_ecn(at(ms(51)), counts(24, 8));
    assert_eq!(s.recovery.window(), reduced);
    s.send_marked(ms(52), 1);
    s.ack(ms(102), &[32..=32]);
    s.recovery.on_ecn(at(ms(102)), counts(24, 9));
    assert!(s.recovery.window() < reduced);
    assert_eq!(s.recovery.ecn_ce(), 9);
}

#[test]
fn a_peer_without_counts_or_with_impossible_ones_ends_marking_and_nothing_else() {
    let most = u64::MAX >> 2;
    for counts in [
        None,
        Some(EcnCounts { ect0: 3, ect1: 0, ce: 0 }),
        Some(EcnCounts { ect0: 0, ect1: 10, ce: 0 }),
        Some(EcnCounts { ect0: 10, ect1: 0, ce: most }),
        Some(EcnCounts { ect0: most, ect1: most, ce: most }),
    ] {
        let mut s = Stepper::new(ms(50));
        s.send_marked(ms(0), 10);
        s.ack(ms(50), &[0..=9]);
        let window = s.recovery.window();
        s.recovery.on_ecn(at(ms(50)), counts);
        assert_eq!(s.recovery.window(), window, "{counts:?} is no sign of congestion");
        assert!(!s.recovery.marks_ecn(at(ms(50))), "{counts:?}");
        s.recovery.reset_path(at(ms(60)), MTU);
        assert!(s.recovery.marks_ecn(at(ms(60))), "another path is tested anew");
    }
}

#[test]
fn the_budget_is_whole_packets_within_the_window() {
    let mut s = Stepper::new(ms(50));
    let mut now = Time::ZERO;
    let blocked = loop {
        match s.recovery.budget(now) {
            Budget::Bytes(bytes) => {
                assert!(bytes > 0 && bytes % u64::from(MTU) == 0);
                s.send(now - Time::ZERO, bytes / u64::from(MTU));
            }
            Budget::At(later) => {
                assert!(later > now);
                now = later;
            }
            Budget::Blocked => break now,
        }
        assert!(s.recovery.bytes_in_flight() <= s.recovery.window());
    };
    assert_eq!(s.recovery.bytes_in_flight(), s.recovery.window());
    assert!(blocked - Time::ZERO < ms(50), "the first window leaves within one round trip");
}

#[test]
fn a_larger_mtu_rescales_window_pacing_and_quantum() {
    let mut s = Stepper::new(us(100));
    s.recovery.set_mtu(65_000);
    let mtu = 65_000;
    assert!(s.recovery.window() >= 4 * mtu);
    assert!(s.recovery.send_quantum() >= mtu);
    assert!(matches!(s.recovery.budget(at(ms(1))), Budget::Bytes(bytes) if bytes >= mtu));
}

#[test]
fn a_peer_that_never_acknowledges_holds_a_bounded_number_of_packets() {
    let mut s = Stepper::new(ms(50));
    s.send(ms(0), 1);
    for _ in 0..OUTSTANDING_MAX + 5 {
        s.send_other(ms(1), |packet| packet.ack_eliciting = false);
    }
    assert_eq!(s.recovery.timeout(), Some(Time::ZERO));
    assert_eq!(s.recovery.on_timeout(at(ms(2)), &mut s.out), TimeoutOutcome::Lost);
    assert_eq!(s.lost(), [0]);
    assert!(s.recovery.sent.len() <= OUTSIDE_WINDOW_MAX + 2 * 32);
    assert_eq!(s.recovery.timeout(), None);
    // Without an ack-eliciting packet, the oldest packets are dropped as new ones leave.
    for _ in 0..10_000 {
        s.send_other(ms(3), |packet| packet.ack_eliciting = false);
        assert!(s.recovery.sent.len() <= OUTSIDE_WINDOW_MAX + 2 * 32);
        assert_eq!(s.recovery.timeout(), None);
    }
}

#[test]
fn probes_that_nobody_answers_are_not_remembered_for_ever() {
    let mut s = Stepper::new(ms(50));
    s.send(ms(0), 1);
    let mut lost = 0;
    for _ in 0..10_000 {
        let due = s.recovery.timeout().expect("something is outstanding");
        s.recovery.on_timeout(due, &mut s.out);
        lost += s.lost().len();
        s.send(due - Time::ZERO, 2);
        assert!(s.recovery.sent.len() <= OUTSIDE_WINDOW_MAX + 2);
    }
    assert!(lost > 10_000);
}

#[test]
fn unacknowledged_packets_that_are_given_up_free_no_window() {
    let bbr = RecoveryConfig { congestion: Algorithm::Bbr.into(), ..config(ms(50)) };
    let mut s = Stepper { recovery: Recovery::new(Time::ZERO, &bbr), ..Stepper::new(ms(50)) };
    // So small that no window holds them back, and sent at once, so that abandoning some is not
    // persistent congestion.
    let send = |s: &mut Stepper, now: Time| s.send_other(now - Time::ZERO, |p| p.size = 2);
    (0..OUTSIDE_WINDOW_MAX).for_each(|_| send(&mut s, Time::ZERO));
    let (mut packets, mut probes, mut now, mut at_once) = (0, 0, Time::ZERO, 0);
    for _ in 0..200 {
        if let Budget::Bytes(_) = s.recovery.budget(now) {
            send(&mut s, now);
            packets += 1;
        }
        let due = s.recovery.timeout().expect("something is outstanding");
        at_once = if due <= now { at_once + 1 } else { 0 };
        assert!(at_once < 3, "one timeout after the other in the same moment");
        now = now.max(due);
        if s.recovery.on_timeout(now, &mut s.out) == TimeoutOutcome::Probe {
            (0..2).for_each(|_| send(&mut s, now));
            probes += 2;
        }
    }
    assert!(probes > 100 && packets < 50, "{packets} packets, {probes} probes");
}

#[test]
fn a_late_ack_of_an_abandoned_packet_still_gives_an_rtt_sample() {
    let mut s = Stepper::new(ms(1));
    s.send(ms(0), 1);
    s.ack(ms(1), &[0..=0]);
    s.send(ms(10), 1);
    let mut now = at(ms(10));
    while !s.lost().contains(&1) {
        now = now.max(s.recovery.timeout().expect("something is outstanding"));
        if s.recovery.on_timeout(now, &mut s.out) == TimeoutOutcome::Probe {
            s.send(now - Time::ZERO, 2);
        }
    }
    s.ack(now - Time::ZERO, &[1..=1]);
    assert_eq!(s.recovery.rtt().latest(), now - at(ms(10)));
}

#[test]
fn an_ack_that_names_a_skipped_number_later_is_a_violation() {
    let mut s = Stepper::new(ms(50));
    s.send(ms(0), 1);
    s.ack(ms(50), &[0..=0]);
    s.recovery.on_skipped(1);
    s.next += 1;
    s.send(ms(60), 1);
    s.ack(ms(110), &[2..=2, 0..=0]);
    s.send(ms(120), 1);
    assert!(!s.accepts(ms(170), 0..=3));
}

#[test]
fn a_measured_handshake_replaces_the_assumed_round_trip_until_the_first_sample() {
    let mut s = Stepper::new(ms(333));
    s.recovery.assume_rtt(Time::ZERO, ms(20));
    assert_eq!(s.recovery.rtt().smoothed(), ms(20));
    s.send(ms(0), 1);
    s.ack(ms(30), &[0..=0]);
    s.recovery.assume_rtt(at(ms(30)), ms(20));
    assert_eq!(s.recovery.rtt().smoothed(), ms(30));
}

#[test]
fn a_timer_that_an_ack_shortens_is_due_at_once_and_not_in_the_past() {
    let mut s = Stepper::new(ms(300));
    s.send(ms(0), 1);
    s.send(ms(900), 1);
    // 20 ms instead of 300: the probe that was due at 1.8 s is overdue by now.
    s.ack(ms(920), &[1..=1]);
    assert!(s.lost() == [0] && s.recovery.timeout().is_none());
    s.send(ms(930), 2);
    s.recovery.set_max_ack_delay(Duration::ZERO);
    s.ack(ms(1100), &[3..=3]);
    let due = s.recovery.timeout().expect("one is outstanding");
    assert!(due >= at(ms(1100)));
}

#[test]
fn an_ack_that_is_overdue_is_asked_for_soon_and_again_until_the_ordinary_timeout() {
    let mut stepper = Stepper::new(us(200));
    stepper.send(us(0), 1);
    stepper.ack(us(200), &[0..=0]);
    stepper.recovery.set_ack_request(4, ms(25));
    stepper.send(us(300), 20);
    let mut waits = Vec::new();
    let mut last = at(us(300));
    while waits.len() < 20 {
        let due = stepper.recovery.timeout().expect("packets are outstanding");
        waits.push(due.since(last));
        last = due;
        assert_eq!(stepper.recovery.on_timeout(due, &mut stepper.out), TimeoutOutcome::Probe);
    }
    assert_eq!(waits[0], ms(2), "no reason to wait for the peer's ACK delay");
    let patient = waits.iter().take_while(|wait| **wait == ms(2)).count();
    let ordinary = stepper.recovery.pto();
    assert!(ms(2) * patient as u32 <= ordinary + ms(4), "{patient} probes in {ordinary:?}");
    assert!(waits.windows(2).all(|pair| pair[1] >= pair[0]), "{waits:?}");
}

#[test]
fn a_peer_that_may_still_wait_with_its_ack_is_given_its_time() {
    let mut stepper = Stepper::new(us(200));
    stepper.send(us(0), 1);
    stepper.ack(us(200), &[0..=0]);
    stepper.recovery.set_ack_request(4, ms(25));
    stepper.send(us(300), 4);
    let due = stepper.recovery.timeout().expect("packets are outstanding");
    assert!(due.since(at(us(300))) > MAX_ACK_DELAY);
}
