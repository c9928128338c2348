//! Unknown senders that flood the socket with datagrams do not disturb a transfer, and get no
//! answer.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::support::{Pattern, V4, pair, run};

#[test]
fn garbage_does_not_disturb_a_transfer_and_gets_no_answer() {
    const LEN: u64 = 64 << 20;
    let pair = pair(V4);
    let targets = [pair.server_endpoint.local_addr(), pair.client_endpoint.local_addr()];
    let done = Arc::new(AtomicBool::new(false));
    let stop = Arc::clone(&done);
    let stranger = thread::spawn(move || {
        let socket = UdpSocket::bind((V4, 0)).unwrap();
        socket.set_nonblocking(true).unwrap();
        let pattern = Pattern::new(99);
        let mut answers = 0;
        for i in 0_u64.. {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            // Every length from zero to more than any handshake, and sometimes a huge one.
            let len = if i % 64 == 0 { 60_000 } else { i as usize * 37 % 1600 };
            for target in targets {
                // A full socket buffer at the receiver is not an error in this test.
                let _ = socket.send_to(&pattern.slice(i * 7919, len), target);
            }
            answers += usize::from(socket.recv_from(&mut [0; 2048]).is_ok());
            thread::yield_now();
        }
        answers
    });
    let server = pair.server.clone();
    let reader = thread::spawn(move || {
        run(async {
            let (_send, mut recv) = server.accept_stream().await.unwrap();
            Pattern::new(8).verify(&mut recv).await
        })
    });
    run(async {
        let (mut send, _recv) = pair.client.open_stream().await.unwrap();
        Pattern::new(8).write(&mut send, LEN).await.unwrap();
        send.finish().unwrap();
        send.acked().await.unwrap();
    });
    assert_eq!(reader.join().unwrap(), LEN);
    done.store(true, Ordering::Relaxed);
    assert_eq!(stranger.join().unwrap(), 0, "a stranger was answered");
}

#[test]
fn unaccepted_streams_that_were_reset_are_freed() {
    const STREAMS: usize = 1000;
    let pair = pair(V4);
    run(async {
        for _ in 0..STREAMS {
            let (mut send, mut recv) = pair.client.open_stream().await.unwrap();
            send.write_all(b"never mind").await.unwrap();
            send.reset(1);
            recv.stop(1);
        }
        let (mut send, _recv) = pair.client.open_stream().await.unwrap();
        send.write_all(b"last").await.unwrap();
        let mut before = 0;
        loop {
            let (_send, mut recv) = pair.server.accept_stream().await.unwrap();
            let mut got = [0; 4];
            if recv.read_exact(&mut got).await.is_ok() && &got == b"last" {
                break;
            }
            before += 1;
        }
        assert!(before <= 128, "{before} dead streams were kept");
    });
}
