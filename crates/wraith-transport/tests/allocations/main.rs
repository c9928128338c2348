//! The memory of small streams, at the client and the server together, on the threads of the
//! applications and on the I/O threads: what a request allocates, and what unread streams hold. The
//! tests count the allocations of all threads, so they run in turn.

use std::alloc::{GlobalAlloc, Layout, System};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use wraith_transport::{
    AccessKey, Bytes, Config, Connection, Endpoint, EndpointConfig, RecvStream, SecretIdentity,
    block_on,
};

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static HELD: AtomicI64 = AtomicI64::new(0);
/// Held by the running test.
static TURN: Mutex<()> = Mutex::new(());

struct Counting;

// SAFETY: every call goes to `System` unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        HELD.fetch_add(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller's guarantees are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller's guarantees are passed on.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const WARM_UP: u64 = 2000;
const COUNTED: u64 = 5000;

fn endpoint(seed: u8, streams_max: u64) -> Endpoint {
    let mut config = EndpointConfig::open(SecretIdentity::from_seed([seed; 32]));
    config.transport.streams_max = streams_max;
    Endpoint::bind(Config::new(config).bind((IpAddr::V4(Ipv4Addr::LOCALHOST), 0))).unwrap()
}

/// Compares the stream with `message` up to its end.
async fn verify(recv: &mut RecvStream, message: &[u8]) {
    let mut rest = message;
    while let Some(chunk) = recv.read_chunk().await.unwrap() {
        assert_eq!(chunk[..], rest[..chunk.len()]);
        rest = &rest[chunk.len()..];
    }
    assert!(rest.is_empty());
}

async fn ask(connection: &Connection, message: &Bytes) {
    let (mut send, mut recv) = connection.open_stream().await.unwrap();
    send.finish_with([message.clone()]).await.unwrap();
    verify(&mut recv, message).await;
}

#[test]
fn a_small_request_allocates_nothing_but_its_messages() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let (client, server) = (endpoint(1, 128), endpoint(2, 128));
    let peer = SecretIdentity::from_seed([2; 32]).node_id();
    let message = Bytes::from(vec![7; 64]);
    let expected = message.clone();
    let address = server.local_addr();
    let answers = thread::spawn(move || {
        block_on(async {
            let connection = server.accept().await.unwrap();
            while let Ok((mut send, mut recv)) = connection.accept_stream().await {
                verify(&mut recv, &expected).await;
                send.finish_with([expected.clone()]).await.unwrap();
            }
        });
    });
    let allocations = block_on(async {
        let connection = client.connect([address], peer, &AccessKey::public(peer)).await.unwrap();
        for _ in 0..WARM_UP {
            ask(&connection, &message).await;
        }
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        for _ in 0..COUNTED {
            ask(&connection, &message).await;
        }
        let allocations = ALLOCATIONS.load(Ordering::Relaxed) - before;
        connection.close(0, "");
        allocations
    });
    answers.join().unwrap();
    // One for each received message. The rest is for packet numbers that grow, and the like.
    let per_request = allocations as f64 / COUNTED as f64;
    assert!(per_request <= 2.05, "{per_request} allocations per request");
}

#[test]
fn a_thousand_unread_small_streams_hold_little_memory() {
    const STREAMS: u64 = 1000;
    /// Bytes of both sides together.
    const HELD_MAX: i64 = 8 << 20;
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let (client, server) = (endpoint(1, STREAMS), endpoint(2, STREAMS));
    let peer = SecretIdentity::from_seed([2; 32]).node_id();
    let address = server.local_addr();
    let accepted = thread::spawn(move || {
        let accepted = block_on(server.accept()).unwrap();
        (server, accepted)
    });
    let opened = block_on(client.connect([address], peer, &AccessKey::public(peer))).unwrap();
    let (_server, accepted) = accepted.join().unwrap();
    let before = HELD.load(Ordering::Relaxed);
    let _streams = block_on(async {
        let mut streams = Vec::new();
        for _ in 0..STREAMS {
            let (mut send, recv) = opened.open_stream().await.unwrap();
            send.write_all(b"half").await.unwrap();
            streams.push((send, recv, accepted.accept_stream().await.unwrap()));
        }
        streams
    });
    let held = HELD.load(Ordering::Relaxed) - before;
    assert!(held <= HELD_MAX, "{held} bytes");
    println!("{held} bytes");
}
