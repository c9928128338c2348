//! Bulk transfer: one long stream, many at once, and a slow reader.

use std::thread;

use crate::support::{Pattern, V4, pair, run};
use wraith_transport::{Bytes, block_on};

/// Enough to wrap every window and buffer on the way, and most counters that are too small.
const BULK: u64 = 1 << 30;

#[test]
fn a_long_stream_arrives_unchanged() {
    let pair = pair(V4);
    let server = pair.server;
    let reader = thread::spawn(move || {
        block_on(async {
            let (mut send, mut recv) = server.accept_stream().await.unwrap();
            let len = Pattern::new(7).verify(&mut recv).await;
            send.write_all(&len.to_be_bytes()).await.unwrap();
            send.finish().unwrap();
            send.acked().await.unwrap();
        });
    });
    run(async {
        let (mut send, mut recv) = pair.client.open_stream().await.unwrap();
        Pattern::new(7).write(&mut send, BULK).await.unwrap();
        send.finish().unwrap();
        let mut len = [0; 8];
        recv.read_exact(&mut len).await.unwrap();
        assert_eq!(u64::from_be_bytes(len), BULK);
        assert!(recv.read_chunk().await.unwrap().is_none());
        send.acked().await.unwrap();
    });
    reader.join().unwrap();
    pair.client.close(0, "");
    run(pair.client.closed());
    assert!(pair.client.stats().bytes_sent >= BULK);
}

#[test]
fn many_streams_at_once_in_both_directions_do_not_mix() {
    const STREAMS: u64 = 40;
    const LEN: u64 = 2 << 20;
    let pair = pair(V4);
    let server = pair.server.clone();
    let acceptor = thread::spawn(move || {
        let workers: Vec<_> = (0..STREAMS)
            .map(|_| {
                let (mut send, mut recv) = run(server.accept_stream()).unwrap();
                thread::spawn(move || {
                    block_on(async {
                        let mut seed = [0; 8];
                        recv.read_exact(&mut seed).await.unwrap();
                        let seed = u64::from_be_bytes(seed);
                        assert_eq!(Pattern::new(seed).verify(&mut recv).await, LEN);
                        Pattern::new(seed + 1000).write(&mut send, LEN).await.unwrap();
                        send.finish().unwrap();
                        send.acked().await.unwrap();
                    });
                })
            })
            .collect();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
    });
    let workers: Vec<_> = (0..STREAMS)
        .map(|seed| {
            let client = pair.client.clone();
            thread::spawn(move || {
                block_on(async {
                    let (mut send, mut recv) = client.open_stream().await.unwrap();
                    send.write_all(&seed.to_be_bytes()).await.unwrap();
                    Pattern::new(seed).write(&mut send, LEN).await.unwrap();
                    send.finish().unwrap();
                    assert_eq!(Pattern::new(seed + 1000).verify(&mut recv).await, LEN);
                });
            })
        })
        .collect();
    workers.into_iter().for_each(|worker| worker.join().unwrap());
    acceptor.join().unwrap();
}

#[test]
fn streams_beyond_the_limit_wait_for_credit() {
    const STREAMS: usize = 400;
    let pair = pair(V4);
    let server = crate::support::echo(pair.server);
    let workers: Vec<_> = (0..4)
        .map(|_| {
            let client = pair.client.clone();
            thread::spawn(move || {
                for i in 0..STREAMS / 4 {
                    run(async {
                        let (mut send, mut recv) = client.open_stream().await.unwrap();
                        send.write_all(&i.to_be_bytes()).await.unwrap();
                        send.finish().unwrap();
                        let mut back = [0; size_of::<usize>()];
                        recv.read_exact(&mut back).await.unwrap();
                        assert_eq!(usize::from_be_bytes(back), i);
                        assert!(recv.read_chunk().await.unwrap().is_none());
                    });
                }
            })
        })
        .collect();
    workers.into_iter().for_each(|worker| worker.join().unwrap());
    drop(pair.client);
    server.join().unwrap();
}

#[test]
fn a_stalled_reader_blocks_the_writer_and_loses_no_bytes() {
    // More than all queues, windows and buffers on the way together.
    const LEN: u64 = 128 << 20;
    let pair = pair(V4);
    let client = pair.client.clone();
    let writer = thread::spawn(move || {
        run(async {
            let (mut send, _recv) = client.open_stream().await.unwrap();
            Pattern::new(3).write(&mut send, LEN).await.unwrap();
            send.finish().unwrap();
            send.acked().await.unwrap();
        });
    });
    run(async {
        let (_send, mut recv) = pair.server.accept_stream().await.unwrap();
        // Other streams progress while this one is blocked.
        for _ in 0..50 {
            let (mut ping, _recv) = pair.server.open_stream().await.unwrap();
            ping.write_chunks([Bytes::from_static(b"ping")]).await.unwrap();
            ping.finish().unwrap();
            ping.acked().await.unwrap();
        }
        assert!(!writer.is_finished(), "nothing held the writer back");
        assert_eq!(Pattern::new(3).verify(&mut recv).await, LEN);
    });
    writer.join().unwrap();
}
