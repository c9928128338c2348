//! UDP through a proxy that grants an association, refuses it, ends it, or forges datagrams.

use wraith_relay::Way;

use crate::proxy::{Proxy, Speaks};
use crate::support::{Pair, Relay, reach, send, until, within};

const LEN: usize = 8 << 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_the_proxy_grants_an_association_datagrams_go_through_it_and_past_it_none() {
    let relay = Relay::start(|_| ()).await;
    let (one, other) =
        (Proxy::new(relay.address, Speaks::Udp), Proxy::new(relay.address, Speaks::Udp));
    // One client uses the relay's name, the other its address.
    let configs = [one.config_by_name(relay.config()), other.config(relay.config())];
    let pair = Pair::new(configs, [Way::Udp, Way::Udp]).await;
    send(&pair.a, &pair.b, LEN).await;
    send(&pair.b, &pair.a, LEN).await;
    // The MTU equals that of a direct path on loopback; the header comes on top.
    assert!(pair.a.stats().mtu > 60_000, "{}", pair.a.stats().mtu);
    assert!(relay.metrics.forwarded_bytes.get() > 2 * LEN as u64);
    for (proxy, client) in [(&one, &pair.dialling_client), (&other, &pair.waiting_client)] {
        let bytes = proxy.bytes();
        assert!(bytes.iter().all(|bytes| *bytes > LEN as u64), "{bytes:?}");
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
async fn by_a_proxy_behind_which_the_network_is_narrow_what_is_too_long_is_a_loss() {
    let relay = Relay::start(|_| ()).await;
    let proxy = Proxy::new(relay.address, Speaks::UdpUpTo(1400));
    let pair = Pair::new([proxy.config(relay.config()), relay.config()], [Way::Udp; 2]).await;
    send(&pair.a, &pair.b, LEN).await;
    send(&pair.b, &pair.a, LEN).await;
    let mtu = pair.a.stats().mtu;
    assert!((1200..=1384).contains(&mtu), "{mtu}");
    assert!(proxy.merged_down() > 100, "runs are sent whole, so they come merged");
    assert_eq!(pair.dialling_client.status().borrow().way, Way::Udp);
    assert!(proxy.nothing_came_directly());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_from_the_relay_by_the_proxy_is_dropped() {
    let relay = Relay::start(|_| ()).await;
    let liar = Proxy::new(relay.address, Speaks::UdpAndLies);
    let pair = Pair::new([liar.config(relay.config()), relay.config()], [Way::Udp; 2]).await;
    send(&pair.a, &pair.b, LEN).await;
    send(&pair.b, &pair.a, LEN).await;
    assert!(liar.lies() > 100, "{}", liar.lies());
    assert_eq!(pair.dialling_client.status().borrow().way, Way::Udp);
    // Forged datagrams are ignored, as if nothing arrived.
    liar.withhold();
    send(&pair.b, &pair.a, LEN).await;
    reach(&pair.dialling_client, |status| status.way == Way::Tls).await;
    assert!(liar.nothing_came_directly());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_the_proxy_ends_the_association_a_transfer_goes_on_over_tls() {
    let relay = Relay::start(|_| ()).await;
    let proxy = Proxy::new(relay.address, Speaks::Udp);
    let pair = Pair::new([proxy.config(relay.config()), relay.config()], [Way::Udp; 2]).await;
    let cut = async {
        let half = LEN as u64 / 2;
        until(|| proxy.bytes()[0] > half).await;
        proxy.end_associations();
        reach(&pair.dialling_client, |status| status.way == Way::Tls).await;
    };
    within(async { tokio::join!(send(&pair.a, &pair.b, LEN), cut) }).await;
    send(&pair.b, &pair.a, LEN).await;
    assert!(proxy.bytes()[0] < 3 * LEN as u64 / 2, "{:?}", proxy.bytes());
    assert_eq!(relay.metrics.resumed.get(), 0, "the connection to the relay is the first");
    assert!(proxy.nothing_came_directly());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_association_outlives_the_connection_to_the_relay() {
    let relay = Relay::start(|_| ()).await;
    let proxy = Proxy::new(relay.address, Speaks::Udp);
    let configs = [proxy.config_by_name(relay.config()), relay.config()];
    let pair = Pair::new(configs, [Way::Udp; 2]).await;
    let names = proxy.names_up();
    proxy.cut_streams();
    send(&pair.a, &pair.b, LEN).await;
    until(|| relay.metrics.resumed.get() == 1).await;
    reach(&pair.dialling_client, |status| status.way == Way::Udp).await;
    send(&pair.b, &pair.a, LEN).await;
    assert_eq!(proxy.asked_for_udp(), 1);
    assert_eq!(proxy.names_up(), names, "where it is, is known");
    assert!(proxy.nothing_came_directly());
}

/// Takes as long as a client waits for answers before it gives up UDP.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_nothing_comes_by_the_association_any_more_a_transfer_goes_on_over_tls() {
    let relay = Relay::start(|_| ()).await;
    let proxy = Proxy::new(relay.address, Speaks::Udp);
    let pair = Pair::new([proxy.config(relay.config()), relay.config()], [Way::Udp; 2]).await;
    send(&pair.a, &pair.b, LEN).await;
    proxy.swallow();
    send(&pair.a, &pair.b, LEN).await;
    assert_eq!(pair.dialling_client.status().borrow().way, Way::Tls);
    assert!(proxy.nothing_came_directly());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_the_proxy_refuses_or_swallows_datagrams_go_over_tls() {
    let relay = Relay::start(|_| ()).await;
    let refusing = Proxy::new(relay.address, Speaks::TcpAlone);
    let silent = Proxy::new(relay.address, Speaks::Udp);
    silent.swallow();
    let configs = [refusing.config(relay.config()), silent.config_by_name(relay.config())];
    let pair = Pair::new(configs, [Way::Tls, Way::Tls]).await;
    send(&pair.a, &pair.b, LEN).await;
    send(&pair.b, &pair.a, LEN).await;
    assert_eq!(refusing.asked_for_udp(), 1, "once for each connection");
    assert_eq!(relay.metrics.bindings.get(), 0);
    assert!(refusing.nothing_came_directly() && silent.nothing_came_directly());
}
