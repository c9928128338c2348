//! ACKs in batches, and windows below one packet.

use super::*;

/// A link with ACKs every ten milliseconds only.
fn aggregated(mbit: u64, round_trip: Duration) -> Link {
    Link { ack_tick: ms(10), ..Link::clean(mbit * MBIT, round_trip) }
}

#[test]
fn achieving_expected_startup_bandwidth_on_a_link_with_aggregation() {
    let mut run = Run::new(aggregated(100, ms(20)));
    run.until_state(BbrState::Drain);
    assert_close(run.bbr().max_bw.get(), 100 * MBIT, 15);
    assert!(run.bbr().extra_acked.get() > 0);
    assert!(run.flow.recovery.window() > run.bbr().bdp_multiple(2.0) * 9 / 10);
}

#[test]
fn achieving_expected_cruise_bandwidth_on_a_link_with_aggregation() {
    let mut run = Run::clean(100, ms(20));
    run.until_phase(Phase::Cruise);
    run.flow.link.ack_tick = ms(30);
    run.run(ms(1000));
    // Thirty milliseconds of data are acknowledged at once.
    assert!(
        run.bbr().extra_acked.get() > 15 * MBIT / 1000 * 100,
        "{}",
        run.bbr().extra_acked.get()
    );
    run.until("widened", ms(3000), |run| run.flow.recovery.window() > run.bbr().bdp_multiple(2.0));
    run.expect_goodput(ms(10_000), 85);
}

#[test]
fn correctly_managing_sub_packet_bdps() {
    // 64 kbit/s and 20 ms: a seventh of a packet.
    let mut link = Link::clean(8_000, ms(20));
    link.queue_bytes = 12_000;
    let mut run = Run::new(link);
    run.until("ProbeBW", Duration::from_secs(60), |run| {
        matches!(run.state(), BbrState::ProbeBw(_))
    });
    run.run(Duration::from_secs(20));
    assert!(run.flow.recovery.window() >= 4 * 1200);
    let goodput = run.goodput(Duration::from_secs(60));
    assert!(goodput > 7_000 && goodput <= 8_200, "{goodput} bytes per second");
    assert!(run.flow.recovery.pacing_rate() < 16_000);
}
