//! The initiator's address changes under its feet.

use std::time::Duration;

use wraith_sim::link::{Delay, Loss, Rate};
use wraith_sim::{Exchange, Scenario, hops};

const REBINDINGS: [Duration; 3] =
    [Duration::from_millis(300), Duration::from_millis(700), Duration::from_millis(1_100)];

#[test]
fn an_upload_survives_rebindings() {
    Scenario::new()
        .both(hops![Rate::mbit(20), Delay::ms(10)])
        .nat_rebinding(&REBINDINGS)
        .upload(4_000_000)
        .within(Duration::from_secs(8))
        .run();
}

#[test]
fn a_download_survives_rebindings_because_its_acknowledgements_or_probes_show_the_new_address() {
    Scenario::new()
        .both(hops![Rate::mbit(20), Delay::ms(10)])
        .nat_rebinding(&REBINDINGS)
        .download(4_000_000)
        .within(Duration::from_secs(15))
        .run();
}

#[test]
fn a_rebinding_with_loss_survives_too() {
    Scenario::new()
        .both(hops![Rate::mbit(20), Delay::ms(10), Loss::percent(5.0)])
        .nat_rebinding(&REBINDINGS)
        .exchange(Exchange::streams(2, 500_000, 500_000).eager())
        .within(Duration::from_secs(30))
        .run();
}
