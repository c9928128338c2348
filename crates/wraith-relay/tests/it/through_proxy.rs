//! UDP through a proxy that grants an association, refuses it, ends it, or forges datagrams.

use wraith_relay::RelayTransport;

use crate::proxy::{Proxy, ProxyBehaviour};
use crate::support::{Relay, RelayedPair, send, until, wait_for_status, within};

const LEN: u64 = 8 << 20;

/// Returns a relay, and a pair of which one client is behind a proxy.
async fn behind(behaviour: ProxyBehaviour) -> (Relay, Proxy, RelayedPair) {
    let relay = Relay::start(|_| ()).await;
    let proxy = Proxy::new(relay.address, behaviour);
    let pair = proxy.pair(&relay).await;
    (relay, proxy, pair)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_a_proxy_association_all_datagrams_use_it() {
    let relay = Relay::start(|_| ()).await;
    let (one, other) = (
        Proxy::new(relay.address, ProxyBehaviour::Udp),
        Proxy::new(relay.address, ProxyBehaviour::Udp),
    );
    // One client uses the relay's name, the other its address.
    let configs = [one.config_by_name(relay.config()), other.config(relay.config())];
    let pair = RelayedPair::new(configs, [RelayTransport::Udp, RelayTransport::Udp]).await;
    send(&pair.a, &pair.b, LEN).await;
    send(&pair.b, &pair.a, LEN).await;
    // The MTU equals that of a direct path on loopback; the header comes on top.
    assert!(pair.a.stats().mtu > 60_000, "{}", pair.a.stats().mtu);
    assert!(relay.metrics.forwarded_bytes.get() > 2 * LEN);
    for (proxy, client) in [(&one, &pair.dialling_client), (&other, &pair.waiting_client)] {
        let bytes = proxy.bytes();
        assert!(bytes.iter().all(|bytes| *bytes > LEN), "{bytes:?}");
        let status = client.status().borrow().clone();
        assert_eq!(status.observed_udp.map(|seen| seen.ip()), Some(proxy.outer().ip()));
        assert_eq!((status.udp, status.udp_other), (None, None), "nobody is to send there");
        assert!(proxy.nothing_came_directly());
    }
    assert!(one.names_up() > 0 && other.names_up() == 0);
    // Only the first requests carry the name.
    assert!(one.names_up() < 8, "{}", one.names_up());
}

/// MTU discovery works as on any path: a datagram that is too long is lost. Shorter runs arrive
/// merged, each datagram with its header.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datagrams_too_long_for_the_network_behind_a_proxy_are_lost() {
    let (_relay, proxy, pair) = behind(ProxyBehaviour::UdpUpTo(1400)).await;
    send(&pair.a, &pair.b, LEN).await;
    send(&pair.b, &pair.a, LEN).await;
    let mtu = pair.a.stats().mtu;
    assert!((1200..=1384).contains(&mtu), "{mtu}");
    assert!(proxy.merged_down() > 100, "runs are sent whole, so they come merged");
    assert_eq!(pair.dialling_client.status().borrow().transport, RelayTransport::Udp);
    assert!(proxy.nothing_came_directly());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datagrams_through_the_proxy_from_other_senders_are_dropped() {
    let (_relay, liar, pair) = behind(ProxyBehaviour::UdpAndLies).await;
    send(&pair.a, &pair.b, LEN).await;
    send(&pair.b, &pair.a, LEN).await;
    assert!(liar.forged_datagrams() > 100, "{}", liar.forged_datagrams());
    assert_eq!(pair.dialling_client.status().borrow().transport, RelayTransport::Udp);
    // Forged datagrams are ignored, as if nothing arrived.
    liar.withhold();
    send(&pair.b, &pair.a, LEN).await;
    wait_for_status(&pair.dialling_client, |status| status.transport == RelayTransport::Tls).await;
    assert!(liar.nothing_came_directly());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transfer_continues_over_tls_when_the_proxy_closes_the_association() {
    let (relay, proxy, pair) = behind(ProxyBehaviour::Udp).await;
    let cut = async {
        let half = LEN / 2;
        until(|| proxy.bytes()[0] > half).await;
        proxy.end_associations();
        wait_for_status(&pair.dialling_client, |status| status.transport == RelayTransport::Tls)
            .await;
    };
    within(async { tokio::join!(send(&pair.a, &pair.b, LEN), cut) }).await;
    send(&pair.b, &pair.a, LEN).await;
    assert!(proxy.bytes()[0] < 3 * LEN / 2, "{:?}", proxy.bytes());
    assert_eq!(relay.metrics.resumed.get(), 0, "the connection to the relay is the first");
    assert!(proxy.nothing_came_directly());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_association_outlives_the_connection_to_the_relay() {
    let relay = Relay::start(|_| ()).await;
    let proxy = Proxy::new(relay.address, ProxyBehaviour::Udp);
    let configs = [proxy.config_by_name(relay.config()), relay.config()];
    let pair = RelayedPair::new(configs, [RelayTransport::Udp; 2]).await;
    let names = proxy.names_up();
    proxy.cut_streams();
    send(&pair.a, &pair.b, LEN).await;
    until(|| relay.metrics.resumed.get() == 1).await;
    wait_for_status(&pair.dialling_client, |status| status.transport == RelayTransport::Udp).await;
    send(&pair.b, &pair.a, LEN).await;
    assert_eq!(proxy.asked_for_udp(), 1);
    assert_eq!(proxy.names_up(), names, "where it is, is known");
    assert!(proxy.nothing_came_directly());
}

/// Takes as long as a client waits for answers before it gives up UDP.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transfer_continues_over_tls_when_the_association_is_silent() {
    let (_relay, proxy, pair) = behind(ProxyBehaviour::Udp).await;
    send(&pair.a, &pair.b, LEN).await;
    proxy.drop_udp();
    send(&pair.a, &pair.b, LEN).await;
    assert_eq!(pair.dialling_client.status().borrow().transport, RelayTransport::Tls);
    assert!(proxy.nothing_came_directly());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datagrams_use_tls_if_the_proxy_refuses_or_drops_udp() {
    let relay = Relay::start(|_| ()).await;
    let refusing = Proxy::new(relay.address, ProxyBehaviour::TcpAlone);
    let silent = Proxy::new(relay.address, ProxyBehaviour::Udp);
    silent.drop_udp();
    let configs = [refusing.config(relay.config()), silent.config_by_name(relay.config())];
    let pair = RelayedPair::new(configs, [RelayTransport::Tls, RelayTransport::Tls]).await;
    send(&pair.a, &pair.b, LEN).await;
    send(&pair.b, &pair.a, LEN).await;
    assert_eq!(refusing.asked_for_udp(), 1, "once for each connection");
    assert_eq!(relay.metrics.bindings.get(), 0);
    assert!(refusing.nothing_came_directly() && silent.nothing_came_directly());
}
