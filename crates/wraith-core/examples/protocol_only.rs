//! Cost of the protocol without sockets: both endpoints in one thread, with datagrams passed in
//! memory.
//!
//! `cargo run --release -p wraith-core --example protocol_only -- [MiB] [MTU]` checks every byte,
//! and prints nanoseconds per byte for both sides together.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use wraith_core::{AccessKey, Endpoint, EndpointConfig, Event, Read, Time, TransportConfig};
use wraith_crypto::identity::SecretIdentity;

fn endpoint(seed: u8, mtu: u16) -> Endpoint {
    let identity = SecretIdentity::from_seed([seed; 32]);
    let transport = TransportConfig { max_mtu: mtu, initial_mtu: mtu, ..Default::default() };
    Endpoint::new(EndpointConfig { transport, ..EndpointConfig::open(identity) }, [seed; 32])
}

fn main() {
    let mut args = std::env::args().skip(1);
    let mib: usize = args.next().map_or(1024, |a| a.parse().expect("MiB"));
    let mtu: u16 = args.next().map_or(1452, |a| a.parse().expect("MTU"));
    let addresses = [1, 2].map(|n| SocketAddr::from(([127, 0, 0, n], 1)));
    let mut sides = [endpoint(1, mtu), endpoint(2, mtu)];
    let peer = SecretIdentity::from_seed([2; 32]).node_id();
    let began = Instant::now();
    let now = || Time::from_nanos(began.elapsed().as_nanos() as u64);
    let sender = sides[0]
        .connect(now(), addresses[1], peer, &AccessKey::public(peer))
        .expect("a valid peer");
    let chunk = Bytes::from((0..256 * 1024).map(|i: u32| (i % 251) as u8).collect::<Vec<_>>());
    let total = mib << 20;
    let (mut stream, mut receiver) = (None, None);
    let (mut written, mut read) = (0, 0);
    let mut buf = vec![0; 65536];
    let mut start = Instant::now();
    while read < total {
        for i in 0..2 {
            while let Some(t) = sides[i].poll_transmit(now(), &mut buf) {
                for datagram in buf[..t.len].chunks_mut(t.segment) {
                    sides[1 - i].handle_datagram(now(), addresses[i], None, datagram);
                }
            }
        }
        while let Some((handle, event)) = sides[0].poll_event() {
            if event == Event::Connected {
                stream = sides[0].connection(handle).expect("live").open_stream();
                start = Instant::now();
            }
        }
        while let Some((handle, event)) = sides[1].poll_event() {
            if let Event::StreamOpened(id) = event {
                receiver = Some((handle, id));
            }
        }
        if let Some(id) = stream {
            let connection = sides[0].connection(sender).expect("live");
            while written < total && connection.send_capacity(id) > 0 {
                connection.write(id, chunk.clone()).expect("open");
                written += chunk.len();
            }
        }
        if let Some((handle, id)) = receiver {
            let connection = sides[1].connection(handle).expect("live");
            while let Ok(Read::Slice(bytes)) = connection.read(now(), id) {
                let at = read % chunk.len();
                let first = (chunk.len() - at).min(bytes.len());
                assert_eq!(bytes[..first], chunk[at..at + first], "at {read}");
                assert_eq!(bytes[first..], chunk[..bytes.len() - first], "at {read}");
                read += bytes.len();
            }
        }
        for side in &mut sides {
            if let Some(at) = side.poll_timeout() {
                let wait = at.since(now()).min(Duration::from_millis(1));
                if read == 0 {
                    std::thread::sleep(wait);
                }
                side.handle_timeout(now());
            }
        }
    }
    let elapsed = start.elapsed();
    let stats = sides[0].connection(sender).expect("live").stats();
    println!(
        "{:.3} ns/byte, {:.2} Gbit/s, mtu {mtu}, {stats:?}",
        elapsed.as_nanos() as f64 / total as f64,
        total as f64 * 8.0 / elapsed.as_nanos() as f64,
    );
}
