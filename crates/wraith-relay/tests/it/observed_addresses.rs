//! The relay reports observed addresses at two ports, with the requested kind of answer; a client
//! uses this to classify its NAT.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use wraith_relay::{RelayClient, RelayTransport, Status};
use wraith_transport::{AnswerMode, Endpoint, ObserveError};

use crate::support::{HANG, Relay, TestEndpoint, until, wait_for_status, within};

/// Connects a client. Returns the secret for address requests, and the two ports.
async fn welcomed(relay: &Relay) -> (TestEndpoint, RelayClient, [u8; 32], [SocketAddr; 2]) {
    let end = TestEndpoint::new(1);
    let client = end.connect_to(relay.config(), RelayTransport::Udp).await;
    let status: Status = wait_for_status(&client, |status| status.observe.is_some()).await;
    let ports = [status.udp.unwrap(), status.udp_other.unwrap()];
    (end, client, status.observe.unwrap(), ports)
}

fn own(endpoint: &Endpoint) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, endpoint.local_addr().port()).into()
}

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.set_read_timeout(Some(HANG)).unwrap();
    socket
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_ports_report_the_observed_address_and_the_first_can_answer_from_the_other() {
    let relay = Relay::start(|_| ()).await;
    let (end, _client, secret, [first, other]) = welcomed(&relay).await;
    assert!(first == relay.address && other.ip() == first.ip() && other.port() != first.port());
    let endpoint = &end.endpoint;
    for port in [first, other] {
        assert_eq!(within(endpoint.observe(secret, port)).await, Ok(own(endpoint)));
    }
    let fresh = TestEndpoint::new(2).endpoint;
    let by_other = AnswerMode::Port(other.port());
    assert_eq!(within(fresh.observe_by(secret, first, by_other)).await, Ok(own(&fresh)));
    // The second port answers only from itself.
    let by_first = AnswerMode::Port(first.port());
    let silence = within(fresh.observe_by(secret, other, by_first)).await;
    assert_eq!(silence, Err(ObserveError::NoAnswer));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replayed_request_gets_one_answer_of_at_most_its_length() {
    let relay = Relay::start(|_| ()).await;
    let (end, _client, secret, [first, other]) = welcomed(&relay).await;
    // An on-path attacker captures the request.
    let tap = socket();
    let asking = end.endpoint.clone();
    let tapped = tap.local_addr().unwrap();
    let asked = tokio::spawn(async move {
        asking.observe_by(secret, tapped, AnswerMode::Port(other.port())).await
    });
    let mut question = [0; 200];
    let len = tokio::task::block_in_place(|| tap.recv(&mut question)).unwrap();
    let thief = socket();
    thief.send_to(&question[..len], first).unwrap();
    let mut answer = [0; 200];
    let (answer_len, from) = tokio::task::block_in_place(|| thief.recv_from(&mut answer)).unwrap();
    assert!(from == other && answer_len <= len, "{from} {answer_len} {len}");
    // Neither an answer nor a datagram of another sender is a request.
    let strangers = relay.metrics.unauthentic.get();
    thief.send_to(&answer[..answer_len], other).unwrap();
    thief.send_to(&[0x5a; 100], other).unwrap();
    until(|| relay.metrics.unauthentic.get() == strangers + 2).await;
    thief.set_nonblocking(true).unwrap();
    assert!(thief.recv(&mut answer).is_err());
    assert_eq!(within(asked).await.unwrap(), Err(ObserveError::NoAnswer));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delayed_answer_arrives_at_its_time() {
    let relay = Relay::start(|_| ()).await;
    let (_end, _client, secret, [first, _]) = welcomed(&relay).await;
    let fresh = TestEndpoint::new(2).endpoint;
    let begun = Instant::now();
    let pause = Duration::from_secs(8);
    let answer = within(fresh.observe_by(secret, first, AnswerMode::ItselfAfter(pause))).await;
    assert_eq!(answer, Ok(own(&fresh)));
    assert!(begun.elapsed() >= pause, "{:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relay_without_udp_has_no_other_port() {
    let relay = Relay::start(|options| options.udp = false).await;
    let end = TestEndpoint::new(1);
    let client = end.connect_to(relay.config(), RelayTransport::Tls).await;
    let status = wait_for_status(&client, |status| status.observe.is_some()).await;
    assert_eq!((status.udp, status.udp_other), (None, None));
}
