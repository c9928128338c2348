//! Streams as tokio's `AsyncRead` and `AsyncWrite`, without a runtime of tokio.

use std::io::ErrorKind;

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};

use crate::support::{Pattern, V4, pair, run};

const LEN: usize = 5_000_000;

#[test]
fn bytes_are_copied_through_and_shutdown_is_the_end() {
    let pair = pair(V4);
    let echo = std::thread::spawn(move || {
        run(async {
            let (mut send, mut recv) = pair.server.accept_stream().await.unwrap();
            let copied = copy(&mut recv, &mut send).await.unwrap();
            send.shutdown().await.unwrap();
            send.shutdown().await.expect("the second time there is nothing left to do");
            send.acked().await.unwrap();
            copied
        })
    });
    let (mut send, mut recv) = run(pair.client.open_stream()).unwrap();
    let pattern = Pattern::new(5);
    let writer = std::thread::spawn(move || {
        run(async {
            for offset in (0..LEN).step_by(1000) {
                let piece = pattern.slice(offset as u64, 1000);
                AsyncWriteExt::write_all(&mut send, &piece).await.unwrap();
            }
            send.flush().await.unwrap();
            send.shutdown().await.unwrap();
            let late = AsyncWriteExt::write(&mut send, b"late").await.unwrap_err();
            assert_eq!(late.kind(), ErrorKind::NotConnected);
            send.acked().await.unwrap();
        });
    });
    let mut got = Vec::new();
    run(recv.read_to_end(&mut got)).unwrap();
    assert_eq!(got.len(), LEN);
    let pattern = Pattern::new(5);
    for (i, piece) in got.chunks(1000).enumerate() {
        assert!(pattern.slice(i as u64 * 1000, 1000) == piece, "piece {i}");
    }
    writer.join().unwrap();
    assert_eq!(echo.join().unwrap(), LEN as u64);
}

#[test]
fn errors_keep_their_kind() {
    let pair = pair(V4);
    run(async {
        let (mut send, mut recv) = pair.client.open_stream().await.unwrap();
        AsyncWriteExt::write_all(&mut send, b"x").await.unwrap();
        let (mut back, mut theirs) = pair.server.accept_stream().await.unwrap();
        send.reset(7);
        let error = theirs.read_to_end(&mut Vec::new()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        recv.stop(8);
        let error = loop {
            if let Err(error) = AsyncWriteExt::write(&mut back, &[0; 1000]).await {
                break error;
            }
        };
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
        pair.client.close(0, "");
        let error = recv.read_u8().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotConnected);
    });
}
