//! Operation of a relay: metrics, health check, draining without losses, and the rendezvous for
//! codes at the same port.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use wraith_discovery::rendezvous;
use wraith_relay::{Direct, Refusal, RelayError, RelayTransport, Relays};

use crate::support::{Relay, send, wait_for_status, within};

const LEN: u64 = 4 << 20;

async fn get(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    within(stream.read_to_string(&mut answer)).await.unwrap();
    answer
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_and_health_are_served_over_http() {
    let any = Some(([127, 0, 0, 1], 0).into());
    let mut relay = Relay::start(|options| options.metrics = any).await;
    let pair = relay.pair(RelayTransport::Udp).await;
    send(&pair.a, &pair.b, LEN).await;
    let address = relay.metrics_address.unwrap();
    let figures = get(address, "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(figures.starts_with("HTTP/1.1 200 OK\r\n"), "{figures}");
    assert!(figures.contains("\nwraith_relay_clients 2\n"), "{figures}");
    assert!(figures.contains("\nwraith_relay_pairs 1\n"), "{figures}");
    assert!(get(address, "GET /healthz HTTP/1.1\r\n\r\n").await.ends_with("\r\n\r\nok\n"));
    assert!(get(address, "GET / HTTP/1.1\r\n\r\n").await.starts_with("HTTP/1.1 404 "));
    assert!(get(address, "BREW / HTCPCP\r\n\r\n").await.starts_with("HTTP/1.1 404 "));
    relay.stop();
    wait_for_status(&pair.dialling_client, |status| status.draining).await;
    assert!(get(address, "GET /healthz HTTP/1.1\r\n\r\n").await.starts_with("HTTP/1.1 503 "));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_draining_relay_notifies_clients_refuses_pairs_and_keeps_existing_ones() {
    let mut relay = Relay::start(|_| ()).await;
    let pair = relay.pair(RelayTransport::Udp).await;
    relay.stop();
    for client in [&pair.dialling_client, &pair.waiting_client] {
        wait_for_status(client, |status| status.draining).await;
    }
    let more = within(pair.dialling_client.dial(pair.mailbox)).await;
    assert!(matches!(more, Err(RelayError::Refused(Refusal::Draining))), "{more:?}");
    let new = within(Relays::new().unwrap().connect(relay.config())).await;
    assert!(matches!(new, Err(RelayError::Refused(Refusal::Draining))), "{new:?}");
    send(&pair.a, &pair.b, LEN).await;
    pair.dialling_client.hang_up(&pair.address).await;
    relay.ended().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_draining_relay_stops_once_both_sides_of_the_last_pair_have_left() {
    for by_drop in [false, true] {
        let mut relay = Relay::start(|options| options.drain = Duration::from_secs(3600)).await;
        let pair = relay.pair(RelayTransport::Udp).await;
        relay.stop();
        wait_for_status(&pair.dialling_client, |status| status.draining).await;
        if by_drop {
            drop(pair);
        } else {
            within(pair.dialling_client.leave()).await;
            within(pair.waiting_client.leave()).await;
        }
        relay.ended().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_leaves_frees_its_mailbox_and_its_place() {
    let relay = Relay::start(|options| options.limits.clients_per_address = 2).await;
    let waiting = Relays::new().unwrap();
    for _ in 0..5 {
        let client = within(waiting.connect(relay.config())).await.unwrap();
        let mailbox = client.register([1; 32]).await.unwrap();
        within(client.leave()).await;
        let dialling = within(waiting.connect(relay.config())).await.unwrap();
        let dialled = within(dialling.dial(mailbox)).await;
        assert!(matches!(dialled, Err(RelayError::Refused(Refusal::NoMailbox))), "{dialled:?}");
        within(dialling.leave()).await;
        crate::support::until(|| relay.metrics.clients.get() == 0).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_draining_relay_stops_at_its_time_limit() {
    let mut relay = Relay::start(|options| options.drain = Duration::from_millis(10)).await;
    let pair = relay.pair(RelayTransport::Udp).await;
    relay.stop();
    relay.ended().await;
    wait_for_status(&pair.dialling_client, |status| status.transport == RelayTransport::Down).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn codes_meet_at_the_relay_port_unless_disabled() {
    let relay = Relay::start(|_| ()).await;
    within(rendezvous::probe(&relay.address.to_string(), &Direct)).await.unwrap();
    let relay = Relay::start(|options| options.rendezvous = false).await;
    within(rendezvous::probe(&relay.address.to_string(), &Direct)).await.unwrap_err();
}
