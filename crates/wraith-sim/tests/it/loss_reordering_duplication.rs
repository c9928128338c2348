//! Loss, reordering and duplication at once.

use std::time::Duration;

use wraith_sim::link::{BurstLoss, Delay, Duplicate, Loss, Rate, Reorder};
use wraith_sim::{Exchange, Scenario, hops};

#[test]
fn every_byte_arrives_despite_loss_reordering_and_duplication() {
    let by = Duration::from_millis(8);
    Scenario::new()
        .both(hops![
            Rate::mbit(50),
            Delay::ms(15),
            Loss::percent(5.0),
            Reorder::percent(5.0, by),
            Duplicate::percent(5.0, by),
        ])
        .exchange(Exchange::streams(4, 4_000_000, 4_000_000).eager())
        .within(Duration::from_secs(15))
        .goodput_at_least(0.52)
        .run();
}

#[test]
fn every_byte_arrives_despite_losses_in_bursts() {
    Scenario::new()
        .both(hops![Rate::mbit(20), Delay::ms(10), BurstLoss::percent(5.0, 10.0)])
        .upload(8_000_000)
        .within(Duration::from_secs(15))
        .goodput_at_least(0.6)
        .run();
}

#[test]
fn reordering_alone_costs_little() {
    Scenario::new()
        .both(hops![
            Rate::mbit(100),
            Delay::ms(10),
            Reorder::percent(10.0, Duration::from_millis(4)),
        ])
        .upload(10_000_000)
        .within(Duration::from_secs(3))
        .goodput_at_least(0.82)
        .run();
}
