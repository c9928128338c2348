//! The scenario grid: goodput of one stream over typical links, as a share of the link, in simulated time.
//!
//! `cargo run --release -p wraith-sim --example grid`. The same boxes as in the tests; what a congestion controller or
//! a change of recovery is judged by before it is tried on real sockets.

use std::time::Duration;

use wraith_core::TransportConfig;
use wraith_sim::link::{Aggregate, BurstLoss, Delay, Hops, Jitter, Loss, Rate, Reorder};
use wraith_sim::{Scenario, hops};

/// A transfer lasts about this long at the rate of the link.
const SECONDS: u64 = 10;
/// IPv4, UDP and our own overhead, of a 1500-byte packet.
const PAYLOAD_SHARE: f64 = (1500.0 - 28.0 - 28.0 - 8.0) / 1500.0;

struct Case {
    name: &'static str,
    mbit: u64,
    up: Hops,
    down: Hops,
}

fn case(name: &'static str, mbit: u64, rtt_ms: u64, more: Hops) -> Case {
    let ends = |rate: u64| hops![Rate::mbit(rate), Delay::new(Duration::from_millis(rtt_ms) / 2)];
    let up = ends(mbit).into_iter().chain(more).collect();
    Case { name, mbit, up, down: ends(mbit) }
}

fn cases() -> Vec<Case> {
    let ms = Duration::from_millis;
    vec![
        case("1000 Mbit/s, 1 ms", 1000, 1, hops![]),
        case("500 Mbit/s, 50 ms", 500, 50, hops![]),
        case("500 Mbit/s, 50 ms, 0.5 % loss", 500, 50, hops![Loss::percent(0.5)]),
        case("100 Mbit/s, 100 ms", 100, 100, hops![]),
        case("100 Mbit/s, 100 ms, 0.1 % loss", 100, 100, hops![Loss::percent(0.1)]),
        case("100 Mbit/s, 20 ms, 1 % loss", 100, 20, hops![Loss::percent(1.0)]),
        case("100 Mbit/s, 20 ms, bursts", 100, 20, hops![BurstLoss::percent(0.5, 10.0)]),
        case("100 Mbit/s, 20 ms, 5 ms jitter", 100, 20, hops![Jitter::ms(5)]),
        case("100 Mbit/s, 20 ms, reordering", 100, 20, hops![Jitter::ms(5).reordering()]),
        case("100 Mbit/s, 20 ms, 5 % held 8 ms", 100, 20, hops![Reorder::percent(5.0, ms(8))]),
        case("100 Mbit/s, 20 ms, batches of 10 ms", 100, 20, hops![Aggregate::every(ms(10))]),
        case("100 Mbit/s, 100 ms, queue 10 ms", 100, 100, hops![Rate::mbit(90).queue(112_500)]),
        case("20 Mbit/s, 600 ms", 20, 600, hops![]),
        case("1 Mbit/s, 40 ms", 1, 40, hops![]),
    ]
}

fn main() {
    println!(
        "{:36} {:>9} {:>7} {:>8} {:>9}",
        "link (rate, RTT)", "Mbit/s", "share", "lost", "spurious"
    );
    for Case { name, mbit, up, down } in cases() {
        let bytes = mbit * 1_000_000 / 8 * SECONDS;
        let windows = |config: &mut TransportConfig| {
            config.connection_window_max = 64 << 20;
            config.stream_window_max = 64 << 20;
            config.send_buffer_max = 64 << 20;
        };
        let ceiling = Duration::from_secs(20 * SECONDS);
        let scenario = Scenario::new().up(up).down(down).configure(windows).upload(bytes);
        let outcome = scenario.within(ceiling).run_seed(1);
        let stats = outcome.initiator_stats;
        let seconds =
            outcome.completed.map_or(ceiling.as_secs_f64(), |at| at.as_nanos() as f64 / 1e9);
        let goodput = outcome.bytes_read[1] as f64 * 8.0 / 1e6 / seconds;
        let share = 100.0 * goodput / (mbit as f64 * PAYLOAD_SHARE);
        println!(
            "{name:36} {goodput:9.1} {share:6.1}% {:8} {:9}",
            stats.packets_lost, stats.spurious_losses
        );
    }
}
