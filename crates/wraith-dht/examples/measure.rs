//! Measures lookups in a test network on loopback: time (p50, p95), datagrams, memory, threads, and
//! idle traffic.
//!
//!     cargo run --release -p wraith-dht --example measure -- [RUNS] [NODES]

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mainline::Testnet;
use wraith_crypto::NodeId;
use wraith_dht::{Dht, DhtConfig};
use wraith_discovery::Reach;
use wraith_discovery::{
    CodeOptions, Lan, Places, RecordSeed, RecordStore, StoredRecord, TicketSide, TimeLimit,
    announce_long, join,
};
use zeroize::Zeroizing;

fn main() {
    let mut numbers = std::env::args().skip(1).map(|arg| arg.parse().expect("a number"));
    let (runs, nodes) = (numbers.next().unwrap_or(50), numbers.next().unwrap_or(50));
    let begun = Instant::now();
    let testnet = Testnet::builder(nodes).build().expect("sockets on loopback");
    println!("{nodes} nodes started in {:?}", begun.elapsed());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(measure(runs, &testnet));
}

async fn measure(runs: usize, testnet: &Testnet) {
    let client = || {
        let bootstrap = testnet.bootstrap[..1].to_vec();
        Dht::new(DhtConfig { bootstrap, bind: Ipv4Addr::LOCALHOST, ..DhtConfig::default() })
    };
    let before = status();
    let [mut puts, mut firsts, mut gets, mut again] = [const { Vec::new() }; 4];
    let (mut put_cost, mut get_cost) = (0, 0);
    let mut kept = Vec::new();
    for run in 0..runs {
        let (writer, reader) = (client(), client());
        let seed = RecordSeed::new([run as u8; 32]);
        let record = StoredRecord { seq: 1, value: vec![1; 900] };
        let begun = Instant::now();
        writer.put(seed.clone(), record).await.expect("stored");
        puts.push(begun.elapsed());
        put_cost += writer.traffic().sent;
        for into in [&mut gets, &mut again] {
            let begun = Instant::now();
            let mut lookup = reader.get(seed.key());
            lookup.next().await.expect("asked").expect("found");
            if reader.traffic().sent < 40 {
                firsts.push(begun.elapsed());
            }
            while lookup.next().await.expect("asked").is_some() {}
            into.push(begun.elapsed());
        }
        get_cost += reader.traffic().sent;
        kept.push((writer, reader));
    }
    print("put, cold", &mut puts);
    print("get, first value", &mut firsts);
    print("get, whole, cold", &mut gets);
    print("get, whole, again", &mut again);
    println!(
        "sent: {} datagrams a put, {} a get",
        put_cost / runs as u64,
        get_cost / (2 * runs as u64)
    );
    let sum = || kept.iter().map(|(a, b)| a.traffic().sent + b.traffic().sent).sum::<u64>();
    let at_rest = sum();
    tokio::time::sleep(Duration::from_secs(10)).await;
    println!("sent by {} clients in 10 s at rest: {}", 2 * runs, sum() - at_rest);
    println!("before {before}; after, with {} clients {}", 2 * runs, status());

    let mut codes = Vec::new();
    for _ in 0..runs {
        let places =
            || Places { lan: Lan::Off, stores: vec![Arc::new(client())], ..Places::default() };
        let options = CodeOptions::new(TicketSide::Creator, Duration::from_secs(600));
        let ticket = Box::new(|_, _| Some(Zeroizing::new(b"ticket".to_vec())));
        let [own, joiner] = [1, 2].map(|n| NodeId([n; 32]));
        let reach = Box::new(|_| Reach::default());
        let sender =
            announce_long(&places(), options, own, ticket, reach).await.expect("randomness");
        // Typing takes longer than publishing.
        tokio::time::sleep(Duration::from_millis(1500)).await;
        let begun = Instant::now();
        let limit = TimeLimit::new(Duration::from_secs(60));
        join(sender.code(), joiner, None, &places(), limit, Box::new(|| true), None)
            .await
            .expect("met");
        codes.push(begun.elapsed());
    }
    print("code, from typed to ticket", &mut codes);
}

fn print(what: &str, times: &mut [Duration]) {
    times.sort_unstable();
    let at = |share: usize| times[(times.len() * share / 100).min(times.len() - 1)];
    println!("{what}: p50 {:.1?}, p95 {:.1?}, of {}", at(50), at(95), times.len());
}

/// Returns the memory and thread count of this process, where the system reports them.
fn status() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let wanted = |line: &&str| line.starts_with("VmRSS") || line.starts_with("Threads");
    status.lines().filter(wanted).collect::<Vec<_>>().join(", ").replace('\t', " ")
}
