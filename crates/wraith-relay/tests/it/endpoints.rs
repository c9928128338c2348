//! Connections of real endpoints through a relay: both over UDP, both over TLS, and mixed.

use wraith_relay::{Refusal, RelayConfig, RelayError, RelayTransport};

use crate::support::{Relay, RelayedPair, access_key, send, until, wait_for_status, within};

const LEN: u64 = 8 << 20;

fn over_tls(config: RelayConfig) -> RelayConfig {
    RelayConfig { udp: false, ..config }
}

async fn both_ways(pair: &RelayedPair) {
    send(&pair.a, &pair.b, LEN).await;
    send(&pair.b, &pair.a, LEN).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_uses_udp() {
    let relay = Relay::start(|_| ()).await;
    let pair = relay.pair(RelayTransport::Udp).await;
    both_ways(&pair).await;
    assert!(relay.metrics.forwarded_bytes.get() > 2 * LEN);
    assert_eq!(relay.metrics.bindings.get(), 2);
    assert!(pair.waiting_client.owns(&pair.b.remote()));
    // The MTU equals that of a direct path on loopback.
    assert!(pair.a.stats().mtu > 60_000, "{}", pair.a.stats().mtu);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_uses_tls_at_a_relay_without_udp() {
    let relay = Relay::start(|options| options.udp = false).await;
    let pair = relay.pair(RelayTransport::Tls).await;
    both_ways(&pair).await;
    assert_eq!(relay.metrics.bindings.get(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_end_may_use_udp_and_the_other_tls() {
    let relay = Relay::start(|_| ()).await;
    let configs = [relay.config(), over_tls(relay.config())];
    let pair = RelayedPair::new(configs, [RelayTransport::Udp, RelayTransport::Tls]).await;
    both_ways(&pair).await;
    assert_eq!(relay.metrics.bindings.get(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_gets_its_observed_address_and_the_round_trip_time() {
    let relay = Relay::start(|_| ()).await;
    let pair = relay.pair(RelayTransport::Udp).await;
    let status = wait_for_status(&pair.a_client(), |status| status.rtt.is_some()).await;
    let observed = status.observed_udp.unwrap();
    assert!(observed.ip().is_loopback());
    assert_ne!(Some(observed.port()), status.observed_tcp.map(|address| address.port()));
    assert_eq!(pair.a_client().observed(), Some(observed));
    assert_eq!(*pair.a_client().pin(), relay.pin);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_empty_mailbox_and_a_closed_pair_are_reported() {
    let relay = Relay::start(|_| ()).await;
    let pair = relay.pair(RelayTransport::Udp).await;
    let nobody = within(pair.a_client().dial([9; 16])).await;
    assert!(matches!(nobody, Err(RelayError::Refused(Refusal::NoMailbox))), "{nobody:?}");
    pair.waiting_client.unregister(pair.mailbox).await;
    until(|| relay.metrics.mailboxes.get() == 0).await;
    let nobody = within(pair.a_client().dial(pair.mailbox)).await;
    assert!(matches!(nobody, Err(RelayError::Refused(Refusal::NoMailbox))), "{nobody:?}");
    pair.a_client().hang_up(&pair.address).await;
    let gone = within(pair.dialling.endpoint.connect(
        [&pair.address],
        pair.waiting.node_id,
        &access_key(pair.waiting.node_id),
    ))
    .await;
    assert!(matches!(gone, Err(wraith_transport::ConnectError::Unreachable(_))), "{gone:?}");
}

impl RelayedPair {
    fn a_client(&self) -> wraith_relay::RelayClient {
        self.dialling_client.clone()
    }
}
