//! Paths that move or break during a transfer: it continues, and no byte is lost.

use wraith_relay::{RelayConfig, Relays, Way};

use crate::network::Nat;
use crate::support::{Pair, Relay, connect, reach, send, until, within};

const LEN: usize = 8 << 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_nat_that_moves_a_client_costs_a_round_trip_and_no_byte() {
    let relay = Relay::start(|_| ()).await;
    let nat = Nat::new(relay.address, 11).await;
    let pair = Pair::new([nat.config(relay.config()), relay.config()], [Way::Udp, Way::Udp]).await;
    let before = pair.dialling_client.observed();
    for rebound in 1..=2 {
        nat.rebind().await;
        send(&pair.a, &pair.b, LEN).await;
        until(|| relay.metrics.bindings.get() == 2 + rebound).await;
    }
    reach(&pair.dialling_client, |status| status.observed_udp != before).await;
    assert_eq!(pair.dialling_client.status().borrow().way, Way::Udp);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_udp_never_gets_through_datagrams_go_over_tls() {
    let relay = Relay::start(|_| ()).await;
    let nat = Nat::new(relay.address, 12).await;
    nat.swallow();
    let configs = [nat.config(relay.config()), relay.config()];
    let pair = Pair::new(configs, [Way::Tls, Way::Udp]).await;
    send(&pair.a, &pair.b, LEN).await;
    send(&pair.b, &pair.a, LEN).await;
    assert_eq!(relay.metrics.bindings.get(), 1);
}

/// Takes three seconds: as long as a client waits for answers before it gives up UDP.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_udp_ceases_to_get_through_a_transfer_goes_on_over_tls() {
    let relay = Relay::start(|_| ()).await;
    let nat = Nat::new(relay.address, 13).await;
    let configs = [nat.config(relay.config()), relay.config()];
    let pair = Pair::new(configs, [Way::Udp, Way::Udp]).await;
    send(&pair.a, &pair.b, LEN).await;
    nat.swallow();
    send(&pair.a, &pair.b, LEN).await;
    assert_eq!(pair.dialling_client.status().borrow().way, Way::Tls);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transfer_outlives_the_control_connections_of_both_sides() {
    let relay = Relay::start(|_| ()).await;
    let (nat, other) = (Nat::new(relay.address, 14).await, Nat::new(relay.address, 15).await);
    let configs = [nat.config(relay.config()), other.config(relay.config())];
    let pair = Pair::new(configs, [Way::Udp, Way::Udp]).await;
    nat.cut();
    other.cut();
    send(&pair.a, &pair.b, LEN).await;
    until(|| relay.metrics.resumed.get() == 2).await;
    send(&pair.b, &pair.a, LEN).await;
    // Registered mailboxes are available again.
    reach(&pair.waiting_client, |status| status.way == Way::Udp).await;
    let address = within(pair.dialling_client.dial(pair.mailbox)).await.unwrap();
    within(connect(&pair.dialling, &pair.waiting, &address)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relay_that_was_killed_and_started_again_has_the_same_pin_and_mailboxes() {
    let relay = Relay::start(|_| ()).await;
    let (address, pin) = (relay.address, relay.pin);
    let pair = Pair::new([relay.config(), relay.config()], [Way::Udp, Way::Udp]).await;
    let folder = relay.kill().await;
    reach(&pair.waiting_client, |status| status.way == Way::Down).await;
    let relay = Relay::start_in(folder, address, |_| ()).await;
    assert_eq!(relay.pin, pin);
    // Both clients detect the lost session.
    within(pair.dialling_client.forgotten(0)).await;
    within(pair.waiting_client.forgotten(0)).await;
    reach(&pair.dialling_client, |status| status.way == Way::Udp).await;
    until(|| relay.metrics.mailboxes.get() == 1).await;
    let address = within(pair.dialling_client.dial(pair.mailbox)).await.unwrap();
    assert_ne!(address, pair.address);
    let (a, b) = within(connect(&pair.dialling, &pair.waiting, &address)).await;
    send(&a, &b, LEN).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_comes_back_with_another_key_gets_nothing_of_ours() {
    let relay = Relay::start(|_| ()).await;
    let address = relay.address;
    // Trust on first use.
    let config = RelayConfig { pin: None, ..relay.config() };
    let client = Relays::new().unwrap().connect(config).await.unwrap();
    client.register([7; 32]).await.unwrap();
    drop(relay.kill().await);
    let other = Relay::start_in(tempfile::tempdir().unwrap(), address, |_| ()).await;
    let is_told = |error: &String| error.contains("another key");
    reach(&client, |status| status.error.as_ref().is_some_and(is_told)).await;
    assert_eq!((other.metrics.sessions.get(), other.metrics.mailboxes.get()), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_without_an_endpoint_goes_over_tls() {
    let relay = Relay::start(|_| ()).await;
    let relays = Relays::new().unwrap();
    let client = within(relays.connect(relay.config())).await.unwrap();
    reach(&client, |status| status.way == Way::Tls && status.rtt.is_some()).await;
    client.register([1; 32]).await.unwrap();
}
