//! Futures that are dropped while they wait: documented cancel safety holds, without loss or
//! duplication.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use wraith_transport::{Bytes, block_on_timeout};

use crate::support::{Pattern, V4, access_key, dead_address, endpoint, node_id, pair, run};

/// Polls a future until it has been pending `left` more times, then drops it.
struct DropAfterPolls<F> {
    future: Option<F>,
    left: usize,
}

fn drop_after_polls<F: Future + Unpin>(left: usize, future: F) -> DropAfterPolls<F> {
    DropAfterPolls { future: Some(future), left }
}

impl<F: Future + Unpin> Future for DropAfterPolls<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let future = self.future.as_mut().expect("polled after its end");
        match Pin::new(future).poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if self.left == 0 => {
                self.future = None;
                Poll::Ready(None)
            }
            Poll::Pending => {
                self.left -= 1;
                Poll::Pending
            }
        }
    }
}

/// Repeats the future of `make`, each time with different patience, until one completes. `dropped`
/// counts the futures that were dropped.
async fn retry_until_complete<'a, T>(
    dropped: &mut usize,
    mut make: impl AsyncFnMut() -> T + 'a,
) -> T {
    for patience in [0, 1, 0, 2].into_iter().cycle() {
        let future = Box::pin(make());
        match drop_after_polls(patience, future).await {
            Some(output) => return output,
            None => *dropped += 1,
        }
    }
    unreachable!("the cycle has no end")
}

const LEN: usize = 12_000_000;

/// Checks `bytes` at `offset` of the pattern.
fn check(pattern: &Pattern, offset: usize, bytes: &[u8]) {
    for (i, piece) in bytes.chunks(100_000).enumerate() {
        let at = offset + i * 100_000;
        assert!(pattern.slice(at as u64, piece.len()) == piece, "wrong bytes near {at}");
    }
}

/// Sends the pattern and reads it with futures that are dropped again and again.
macro_rules! stream_test {
    ($name:ident, |$send:ident, $piece:ident| $write:expr, |$recv:ident| $read:expr) => {
        #[test]
        fn $name() {
            let pair = pair(V4);
            let server = pair.server.clone();
            let reader = std::thread::spawn(move || {
                run(async {
                    let mut dropped = 0;
                    let (_send, mut recv) =
                        retry_until_complete(&mut dropped, async || server.accept_stream().await)
                            .await
                            .unwrap();
                    let (pattern, mut offset) = (Pattern::new(9), 0);
                    loop {
                        let $recv = &mut recv;
                        let bytes = retry_until_complete(&mut dropped, async || $read).await;
                        if bytes.is_empty() {
                            break;
                        }
                        check(&pattern, offset, &bytes);
                        offset += bytes.len();
                    }
                    (offset, dropped)
                })
            });
            let dropped = run(async {
                let (pattern, mut offset, mut dropped) = (Pattern::new(9), 0, 0);
                let (mut send, _recv) =
                    retry_until_complete(&mut dropped, async || pair.client.open_stream().await)
                        .await
                        .unwrap();
                while offset < LEN {
                    let $piece = pattern.slice(offset as u64, 60_000.min(LEN - offset));
                    let $send = &mut send;
                    offset += retry_until_complete(&mut dropped, async || $write).await;
                }
                send.finish().unwrap();
                retry_until_complete(&mut dropped, async || send.acked().await).await.unwrap();
                dropped
            });
            let (received, reads_dropped) = reader.join().unwrap();
            assert_eq!(received, LEN);
            assert!(dropped > 0 && reads_dropped > 0, "{dropped} and {reads_dropped} were dropped");
        }
    };
}

stream_test!(
    chunks_of_dropped_futures_are_neither_lost_nor_doubled,
    |send, piece| {
        send.write_chunks([piece.slice(..1), piece.slice(1..)]).await.unwrap();
        piece.len()
    },
    |recv| recv.read_chunk().await.unwrap().map_or_else(Vec::new, |chunk| chunk.to_vec())
);

stream_test!(
    bytes_of_dropped_futures_are_neither_lost_nor_doubled,
    |send, piece| send.write(&piece).await.unwrap(),
    |recv| {
        let mut buffer = vec![0; 10_000];
        let len = recv.read(&mut buffer).await.unwrap();
        buffer.truncate(len);
        buffer
    }
);

stream_test!(
    the_same_through_the_traits_of_tokio,
    |send, piece| AsyncWriteExt::write(send, &piece).await.unwrap(),
    |recv| {
        let mut buffer = vec![0; 10_000];
        let len = AsyncReadExt::read(recv, &mut buffer).await.unwrap();
        buffer.truncate(len);
        buffer
    }
);

#[test]
fn streams_of_dropped_futures_are_not_lost() {
    let pair = pair(V4);
    run(async {
        let mut dropped = 0;
        for i in 0..500_u32 {
            let (mut send, _recv) =
                retry_until_complete(&mut dropped, async || pair.client.open_stream().await)
                    .await
                    .unwrap();
            send.write_all(&i.to_be_bytes()).await.unwrap();
            send.finish().unwrap();
            let (_send, mut recv) =
                retry_until_complete(&mut dropped, async || pair.server.accept_stream().await)
                    .await
                    .unwrap();
            let mut number = [0; 4];
            recv.read_exact(&mut number).await.unwrap();
            assert_eq!(u32::from_be_bytes(number), i);
        }
        assert!(dropped > 0);
    });
}

#[test]
fn datagrams_and_connections_of_dropped_futures_are_not_lost() {
    let server = endpoint(2, V4);
    let client = endpoint(1, V4);
    run(async {
        let mut dropped = 0;
        for i in 0..20_u8 {
            let to_server =
                client.connect([server.local_addr()], node_id(2), &access_key(2)).await.unwrap();
            let to_client =
                retry_until_complete(&mut dropped, async || server.accept().await).await.unwrap();
            to_server.send_datagram(Bytes::from(vec![i])).unwrap();
            let got = retry_until_complete(&mut dropped, async || to_client.read_datagram().await)
                .await
                .unwrap();
            assert_eq!(*got, [i]);
            to_server.close(0, "");
            retry_until_complete(&mut dropped, async || to_client.closed().await).await;
        }
        assert!(dropped > 0);
    });
}

#[test]
fn a_dropped_connect_ends_its_attempts_at_once() {
    let client = endpoint(1, V4);
    for patience in [0, 1, 2] {
        let access_key = access_key(2);
        let connect = Box::pin(client.connect([dead_address()], node_id(2), &access_key));
        let outcome =
            block_on_timeout(drop_after_polls(patience, connect), Duration::from_millis(20));
        assert!(matches!(outcome, None | Some(None)));
    }
    // A running attempt would block the endpoint for ten seconds, and its close for three.
    let begun = std::time::Instant::now();
    client.start_close();
    run(client.closed());
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
}
