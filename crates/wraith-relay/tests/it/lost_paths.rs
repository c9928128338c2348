//! Paths that move or break during a transfer: it continues, and no byte is lost.

use wraith_relay::{RelayConfig, RelayTransport, Relays};

use crate::network::Nat;
use crate::support::{Relay, RelayedPair, connect, send, until, wait_for_status, within};

const LEN: u64 = 8 << 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_nat_rebinding_loses_no_byte() {
    let relay = Relay::start(|_| ()).await;
    let nat = Nat::new(relay.address, 11).await;
    let pair =
        RelayedPair::new([nat.config(relay.config()), relay.config()], [RelayTransport::Udp; 2])
            .await;
    let before = pair.dialling_client.observed();
    for rebound in 1..=2 {
        nat.rebind().await;
        send(&pair.a, &pair.b, LEN).await;
        until(|| relay.metrics.bindings.get() == 2 + rebound).await;
    }
    wait_for_status(&pair.dialling_client, |status| status.observed_udp != before).await;
    assert_eq!(pair.dialling_client.status().borrow().transport, RelayTransport::Udp);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datagrams_use_tls_if_udp_is_blocked() {
    let relay = Relay::start(|_| ()).await;
    let nat = Nat::new(relay.address, 12).await;
    nat.drop_udp();
    let configs = [nat.config(relay.config()), relay.config()];
    let pair = RelayedPair::new(configs, [RelayTransport::Tls, RelayTransport::Udp]).await;
    send(&pair.a, &pair.b, LEN).await;
    send(&pair.b, &pair.a, LEN).await;
    assert_eq!(relay.metrics.bindings.get(), 1);
}

/// Takes three seconds: as long as a client waits for answers before it gives up UDP.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transfer_continues_over_tls_when_udp_becomes_blocked() {
    let relay = Relay::start(|_| ()).await;
    let nat = Nat::new(relay.address, 13).await;
    let configs = [nat.config(relay.config()), relay.config()];
    let pair = RelayedPair::new(configs, [RelayTransport::Udp, RelayTransport::Udp]).await;
    send(&pair.a, &pair.b, LEN).await;
    nat.drop_udp();
    send(&pair.a, &pair.b, LEN).await;
    assert_eq!(pair.dialling_client.status().borrow().transport, RelayTransport::Tls);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transfer_outlives_the_control_connections_of_both_sides() {
    let relay = Relay::start(|_| ()).await;
    let (nat, other) = (Nat::new(relay.address, 14).await, Nat::new(relay.address, 15).await);
    let configs = [nat.config(relay.config()), other.config(relay.config())];
    let pair = RelayedPair::new(configs, [RelayTransport::Udp, RelayTransport::Udp]).await;
    nat.cut();
    other.cut();
    send(&pair.a, &pair.b, LEN).await;
    until(|| relay.metrics.resumed.get() == 2).await;
    send(&pair.b, &pair.a, LEN).await;
    // Registered mailboxes are available again.
    wait_for_status(&pair.waiting_client, |status| status.transport == RelayTransport::Udp).await;
    let address = within(pair.dialling_client.dial(pair.mailbox)).await.unwrap();
    within(connect(&pair.dialling, &pair.waiting, &address)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restarted_relay_has_the_same_pin_and_mailboxes() {
    let relay = Relay::start(|_| ()).await;
    let (address, pin) = (relay.address, relay.pin);
    let pair = relay.pair(RelayTransport::Udp).await;
    let folder = relay.kill().await;
    wait_for_status(&pair.waiting_client, |status| status.transport == RelayTransport::Down).await;
    let relay = Relay::start_in(folder, address, |_| ()).await;
    assert_eq!(relay.pin, pin);
    // Both clients detect the lost session.
    within(pair.dialling_client.wait_for_session_loss(0)).await;
    within(pair.waiting_client.wait_for_session_loss(0)).await;
    wait_for_status(&pair.dialling_client, |status| status.transport == RelayTransport::Udp).await;
    until(|| relay.metrics.mailboxes.get() == 1).await;
    let address = within(pair.dialling_client.dial(pair.mailbox)).await.unwrap();
    assert_ne!(address, pair.address);
    let (a, b) = within(connect(&pair.dialling, &pair.waiting, &address)).await;
    send(&a, &b, LEN).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relay_that_returns_with_another_key_gets_no_data() {
    let relay = Relay::start(|_| ()).await;
    let address = relay.address;
    // Trust on first use.
    let config = RelayConfig { pin: None, ..relay.config() };
    let client = Relays::new().unwrap().connect(config).await.unwrap();
    client.register([7; 32]).await.unwrap();
    drop(relay.kill().await);
    let other = Relay::start_in(tempfile::tempdir().unwrap(), address, |_| ()).await;
    let is_told = |error: &String| error.contains("another key");
    wait_for_status(&client, |status| status.error.as_ref().is_some_and(is_told)).await;
    assert_eq!((other.metrics.sessions.get(), other.metrics.mailboxes.get()), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_without_an_endpoint_uses_tls() {
    let relay = Relay::start(|_| ()).await;
    let relays = Relays::new().unwrap();
    let client = within(relays.connect(relay.config())).await.unwrap();
    wait_for_status(&client, |status| {
        status.transport == RelayTransport::Tls && status.rtt.is_some()
    })
    .await;
    client.register([1; 32]).await.unwrap();
}
