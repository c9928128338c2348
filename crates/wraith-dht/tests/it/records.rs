//! Records are found by their key in a network that runs another implementation of the DHT.

use std::net::{Ipv4Addr, SocketAddrV4};

use wraith_dht::{Dht, DhtConfig};
use wraith_discovery::{PlaceName, RecordSeed, RecordStore};

use super::support::{client, client_of, get, put, record, testnet};

#[tokio::test]
async fn a_record_is_found_by_another_client_and_replaced_by_a_newer_one() {
    let (writer, reader, seed) = (client(), client(), RecordSeed::new([1; 32]));
    assert_eq!(writer.place(), PlaceName::Dht);
    put(&writer, &seed, record(5, 1)).await.unwrap();
    assert_eq!(get(&reader, &seed).await.unwrap(), [record(5, 1)]);
    put(&writer, &seed, record(6, 2)).await.unwrap();
    assert_eq!(get(&reader, &seed).await.unwrap().last(), Some(&record(6, 2)));
}

#[tokio::test]
async fn a_writer_can_write_again_after_its_clock_was_set_back() {
    let (dht, seed) = (client(), RecordSeed::new([2; 32]));
    put(&dht, &seed, record(1_000, 1)).await.unwrap();
    put(&dht, &seed, record(10, 2)).await.unwrap();
    assert_eq!(get(&dht, &seed).await.unwrap().last(), Some(&record(1_001, 2)));
}

#[tokio::test]
async fn a_missing_record_is_no_error() {
    assert_eq!(get(&client(), &RecordSeed::new([3; 32])).await, Ok(Vec::new()));
    client().probe().await.unwrap();
}

#[tokio::test]
async fn remembered_nodes_suffice_for_the_next_run() {
    let (first, seed) = (client(), RecordSeed::new([4; 32]));
    put(&first, &seed, record(1, 1)).await.unwrap();
    let remembered = first.good_nodes();
    assert!(remembered.len() >= 4, "{}", remembered.len());
    let config = DhtConfig { bootstrap: Vec::new(), remembered, bind: Ipv4Addr::LOCALHOST };
    let second = Dht::new(config);
    assert_eq!(get(&second, &seed).await.unwrap(), [record(1, 1)]);
}

#[tokio::test]
async fn bootstrap_nodes_are_not_asked_when_others_answer() {
    let first = client();
    first.probe().await.unwrap();
    get(&first, &RecordSeed::new([5; 32])).await.unwrap();
    let silent = tokio::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let config = DhtConfig {
        bootstrap: vec![silent.local_addr().unwrap().to_string()],
        remembered: first.good_nodes(),
        bind: Ipv4Addr::LOCALHOST,
    };
    get(&Dht::new(config), &RecordSeed::new([5; 32])).await.unwrap();
    assert!(silent.try_recv(&mut [0; 10]).is_err());
}

#[tokio::test]
async fn a_client_sends_nothing_at_rest_and_few_datagrams_per_operation() {
    let (dht, seed) = (client(), RecordSeed::new([6; 32]));
    assert_eq!(dht.traffic().sent, 0, "nothing before it is used");
    put(&dht, &seed, record(1, 1)).await.unwrap();
    let put = dht.traffic();
    get(&dht, &seed).await.unwrap();
    let both = dht.traffic();
    // Eighty queries, and sixteen nodes that store, each asked twice if they are slow.
    assert!(put.sent <= 112 && both.sent - put.sent <= 80, "{put:?} {both:?}");
    // An operation owns a socket while it runs, and drop closes it: later answers are not received.
    let node = tokio::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let impatient = client_of(vec![node.local_addr().unwrap().to_string()]);
    let mut look = impatient.get(seed.key());
    let mut question = [0; 2000];
    let (_, from) = tokio::select! {
        asked = node.recv_from(&mut question) => asked.unwrap(),
        found = look.next() => panic!("{found:?}"),
    };
    drop(look);
    let sent = impatient.traffic();
    node.send_to(b"d1:q4:pinge", from).await.unwrap();
    dht.probe().await.unwrap();
    assert_eq!(impatient.traffic(), sent);
}

#[tokio::test]
async fn after_a_full_lookup_a_cheap_one_sends_four_queries_and_finds_updates() {
    let (reader, writer, seed) = (client(), client(), RecordSeed::new([7; 32]));
    assert_eq!(get(&reader, &seed).await, Ok(Vec::new()));
    put(&writer, &seed, record(1, 1)).await.unwrap();
    let before = reader.traffic().sent;
    let mut glance = reader.get_from_known_nodes(seed.key());
    assert_eq!(glance.next().await, Ok(Some(record(1, 1))));
    while let Ok(Some(_)) = glance.next().await {}
    assert!(reader.traffic().sent - before <= 4, "{}", reader.traffic().sent - before);

    // A client without known nodes runs a full lookup.
    let stranger = client();
    assert_eq!(stranger.get_from_known_nodes(seed.key()).next().await, Ok(Some(record(1, 1))));
}

#[tokio::test]
async fn the_bootstrap_nodes_are_queried_before_any_answer() {
    let bootstrap = testnet().bootstrap[..2].to_vec();
    let expected: Vec<SocketAddrV4> = bootstrap.iter().map(|at| at.parse().unwrap()).collect();
    let dht = client_of(bootstrap);
    assert!(dht.good_nodes().is_empty());
    assert_eq!(dht.nodes_to_query(3).await, expected);
    assert_eq!(dht.nodes_to_query(1).await, expected[..1]);
}
