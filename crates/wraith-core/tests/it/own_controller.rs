//! Tests the example of an application's own controller.

use std::sync::Arc;
use std::time::Duration;

use wraith_core::Algorithm;

#[path = "../../examples/own_controller.rs"]
mod example;

#[test]
fn a_controller_from_outside_moves_everything_over_a_lossy_line() {
    let bytes = 4_000_000;
    let (stats, time) = example::transfer(Arc::new(example::NewRenoFactory), bytes);
    assert!(stats.bytes_sent > bytes as u64 && stats.packets_lost > 2, "{stats:?}");
    // RFC 9002's window after losses: about 1.2 packets over the root of the loss rate in a round
    // trip of 20 ms.
    let reno = 1.2 * 1200.0 / 0.020 / (1.0f64 / 500.0).sqrt();
    let goodput = bytes as f64 / time.as_secs_f64();
    assert!((0.7 * reno..4.0 * reno).contains(&goodput), "{goodput} against {reno}");
    assert!(stats.congestion_window < 200_000, "a loss halves the window: {stats:?}");
}

#[test]
fn the_custom_controller_decides() {
    let bytes = 4_000_000;
    let (_, reno) = example::transfer(Arc::new(example::NewRenoFactory), bytes);
    let (_, bbr) = example::transfer(Arc::new(Algorithm::Bbr), bytes);
    assert!(bbr < reno, "BBR does not take a loss in 500 for congestion: {bbr:?} and {reno:?}");
    assert!(reno < Duration::from_secs(60));
}
