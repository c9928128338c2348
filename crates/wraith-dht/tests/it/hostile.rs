//! Nodes that lie, flood, or stay silent. Each node is a socket, and a closure makes its answers.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::task::JoinSet;
use tokio::time::Instant;
use wraith_crypto::SecretIdentity;
use wraith_dht::Dht;
use wraith_discovery::{PlaceError, RecordSeed};

use super::support::{client_of, get, put, record};

/// Every error must be reported within this time, whatever the nodes do.
const IN_TIME: Duration = Duration::from_secs(12);

/// Encodes a bencode string.
fn text(bytes: &[u8]) -> Vec<u8> {
    [format!("{}:", bytes.len()).as_bytes(), bytes].concat()
}

/// Returns the transaction ID of a query: the string after the key `t`, near its end.
fn transaction(question: &[u8]) -> [u8; 4] {
    let at = question.windows(5).rposition(|it| it == b"1:t4:").unwrap() + 5;
    question[at..at + 4].try_into().unwrap()
}

/// Encodes an answer with these entries, which are sorted.
fn answer(question: &[u8], entries: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut found = b"d".to_vec();
    for (key, value) in entries {
        found.extend(text(key.as_bytes()));
        found.extend(value);
    }
    found.push(b'e');
    [b"d1:r", &found[..], b"1:t4:", &transaction(question), b"1:y1:re"].concat()
}

/// Answers every query with all datagrams that `lie` returns.
async fn node(
    tasks: &mut JoinSet<()>,
    lie: impl Fn(&[u8], SocketAddr) -> Vec<Vec<u8>> + Send + 'static,
) -> String {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = socket.local_addr().unwrap();
    tasks.spawn(async move {
        let mut buffer = [0; 2048];
        loop {
            let (len, from) = socket.recv_from(&mut buffer).await.unwrap();
            for answer in lie(&buffer[..len], from) {
                let _ = socket.send_to(&answer, from).await;
            }
        }
    });
    address.to_string()
}

fn seed() -> RecordSeed {
    RecordSeed::new([9; 32])
}

fn signed(seed: &RecordSeed, seq: i64, value: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let signer: SecretIdentity = seed.signer();
    let signature = signer.sign(&[format!("3:seqi{seq}e1:v").as_bytes(), &text(value)].concat());
    vec![
        ("id", text(&[1; 20])),
        ("k", text(&seed.key())),
        ("seq", format!("i{seq}e").into_bytes()),
        ("sig", text(&signature)),
        ("token", text(b"token")),
        ("v", text(value)),
    ]
}

async fn client_at(
    tasks: &mut JoinSet<()>,
    lie: impl Fn(&[u8], SocketAddr) -> Vec<Vec<u8>> + Send + 'static,
) -> Dht {
    client_of(vec![node(tasks, lie).await])
}

#[tokio::test]
async fn an_unreachable_network_is_reported_in_time() {
    let silent = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let dht = client_of(vec![silent.local_addr().unwrap().to_string(), "not a host".into()]);
    let begun = Instant::now();
    let seed = seed();
    let (put, got) = tokio::join!(put(&dht, &seed, record(1, 1)), get(&dht, &seed));
    assert!(matches!(put, Err(PlaceError::Unreachable(_))), "{put:?}");
    assert!(matches!(got, Err(PlaceError::Unreachable(_))), "{got:?}");
    assert!(begun.elapsed() < IN_TIME);
    assert!(matches!(get(&client_of(Vec::new()), &seed).await, Err(PlaceError::Unreachable(_))));
}

#[tokio::test]
async fn foreign_forged_and_oversized_records_are_ignored() {
    let mut tasks = JoinSet::new();
    for case in 0..4 {
        let dht = client_at(&mut tasks, move |question, _| {
            let mut entries = match case {
                0 => signed(&RecordSeed::new([8; 32]), 1, &[1; 900]),
                1 => signed(&seed(), 1, &[1; 1001]),
                _ => signed(&seed(), 1, &[1; 900]),
            };
            match case {
                2 => entries[2].1 = b"i2e".to_vec(),
                3 => entries[5].1 = text(&[2; 900]),
                _ => {}
            }
            vec![answer(question, &entries)]
        });
        assert_eq!(get(&dht.await, &seed()).await, Ok(Vec::new()), "case {case}");
    }
}

#[tokio::test]
async fn a_replayed_old_record_does_not_follow_a_newer_one() {
    let mut tasks = JoinSet::new();
    let old = node(&mut tasks, |question, _| vec![answer(question, &signed(&seed(), 1, b"old"))]);
    let old: SocketAddr = old.await.parse().unwrap();
    let new = move |question: &[u8], _| {
        let mut entries = signed(&seed(), 2, b"new");
        let SocketAddr::V4(old) = old else { panic!() };
        let mut node = vec![2; 20];
        node.extend(old.ip().octets());
        node.extend(old.port().to_be_bytes());
        entries.insert(2, ("nodes", text(&node)));
        vec![answer(question, &entries)]
    };
    let dht = client_at(&mut tasks, new).await;
    let found = get(&dht, &seed()).await.unwrap();
    assert_eq!(found.iter().map(|it| &it.value[..]).collect::<Vec<_>>(), [b"new"]);
}

#[tokio::test]
async fn unrequested_and_malformed_answers_are_ignored() {
    let mut tasks = JoinSet::new();
    let dht = client_at(&mut tasks, |question, _| {
        let mut forged = answer(question, &signed(&seed(), 1, &[1; 900]));
        let at = forged.len() - 8;
        forged[at] ^= 1;
        vec![forged, vec![b'l'; 2000], vec![b'd'; 2000], Vec::new(), vec![0xff; 1400]]
    });
    let got = get(&dht.await, &seed()).await;
    assert!(matches!(got, Err(PlaceError::Unreachable(_))), "{got:?}");
}

#[tokio::test]
async fn a_flooding_node_causes_a_bounded_number_of_queries() {
    let mut tasks = JoinSet::new();
    // Twenty absent nodes, each closer than all before, and every answer a hundred times.
    let victim = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let SocketAddr::V4(at) = victim.local_addr().unwrap() else { panic!() };
    let dht = client_at(&mut tasks, move |question, _| {
        let target = question.windows(11).position(|it| it == b"6:target20:").unwrap() + 11;
        let mut nodes = Vec::new();
        for n in 0..20_u16 {
            let mut id = question[target..target + 20].to_vec();
            id[19] ^= n as u8 + 1;
            nodes.extend(id);
            nodes.extend(at.ip().octets());
            nodes.extend(if n == 0 { at.port() } else { 20_000 + n }.to_be_bytes());
        }
        let entries = [("id", text(&[1; 20])), ("nodes", text(&nodes)), ("token", text(b"t"))];
        vec![answer(question, &entries); 100]
    })
    .await;
    let begun = Instant::now();
    get(&dht, &seed()).await.unwrap();
    assert!(begun.elapsed() < IN_TIME);
    assert!(dht.traffic().sent <= 80, "{:?}", dht.traffic());
    let mut asked = 0;
    while victim.try_recv(&mut [0; 1000]).is_ok() {
        asked += 1;
    }
    assert!(asked <= 2, "a third party got {asked} datagrams");
}

#[tokio::test]
async fn a_refused_put_is_reported() {
    let mut tasks = JoinSet::new();
    let dht = client_at(&mut tasks, |question, _| {
        if question.windows(5).any(|it| it == b"3:put") {
            let error = [b"d1:eli205e3:fule1:t4:", &transaction(question)[..], b"1:y1:ee"].concat();
            return vec![error];
        }
        vec![answer(question, &[("id", text(&[1; 20])), ("token", text(b"t"))])]
    });
    let refused = put(&dht.await, &seed(), record(1, 1)).await.unwrap_err();
    assert_eq!(refused.to_string(), "0 of 1 DHT nodes stored the record");
}
