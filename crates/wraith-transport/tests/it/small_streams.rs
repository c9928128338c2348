//! Streams of few bytes: opened by their callers, complete when they are accepted, and gone without
//! a trace when their handles are dropped.

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use wraith_transport::{
    Bytes, CloseReason, Connection, ReadError, RecvStream, SendStream, WriteError, block_on_timeout,
};

use crate::support::{V4, pair, run};

/// Number of streams that a peer may have open at once, by default.
const STREAMS_MAX: u64 = 128;

type Streams = (SendStream, RecvStream);

/// Opens a stream if that needs no wait.
fn open_at_once(connection: &Connection) -> Option<Streams> {
    let mut future = pin!(connection.open_stream());
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(opened) => Some(opened.unwrap()),
        Poll::Pending => None,
    }
}

async fn read_to_end(recv: &mut RecvStream) -> Result<Vec<u8>, ReadError> {
    let mut bytes = Vec::new();
    while let Some(chunk) = recv.read_chunk().await? {
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

#[test]
fn the_caller_opens_streams_up_to_the_limit_without_the_io_thread() {
    let pair = pair(V4);
    let held: Vec<_> = (0..STREAMS_MAX).map(|_| open_at_once(&pair.client).unwrap()).collect();
    for (i, (send, recv)) in held.iter().enumerate() {
        assert_eq!((send.id().0, recv.id()), (2 * i as u64, send.id()));
    }
    assert!(open_at_once(&pair.client).is_none());
}

#[test]
fn a_stream_beyond_the_limit_opens_once_another_is_over() {
    let pair = pair(V4);
    let mut held: Vec<_> = (0..STREAMS_MAX).map(|_| open_at_once(&pair.client).unwrap()).collect();
    let client = pair.client.clone();
    let waiter = thread::spawn(move || run(client.open_stream()).unwrap().0.id());
    // The peer announces a new limit when half of the streams are left.
    held.truncate(STREAMS_MAX as usize / 4);
    assert_eq!(waiter.join().unwrap().0, 2 * STREAMS_MAX);
}

#[test]
fn the_peer_gets_streams_in_order_whichever_is_used_first() {
    let pair = pair(V4);
    run(async {
        let (first, _first_recv) = pair.client.open_stream().await.unwrap();
        let (mut second, _second_recv) = pair.client.open_stream().await.unwrap();
        let (mut third, _third_recv) = pair.client.open_stream().await.unwrap();
        third.finish_with([Bytes::from_static(b"third")]).await.unwrap();
        let mut accepted = Vec::new();
        for _ in 0..3 {
            accepted.push(pair.server.accept_stream().await.unwrap());
        }
        let ids: Vec<_> = accepted.iter().map(|(send, _)| send.id().0).collect();
        assert_eq!(ids, [0, 2, 4]);
        assert_eq!(read_to_end(&mut accepted[2].1).await.unwrap(), b"third");
        second.finish_with([Bytes::from_static(b"second")]).await.unwrap();
        assert_eq!(read_to_end(&mut accepted[1].1).await.unwrap(), b"second");
        drop(first);
        assert_eq!(read_to_end(&mut accepted[0].1).await.unwrap_err(), ReadError::Reset(0));
    });
}

#[test]
fn the_peer_may_answer_on_a_stream_that_its_opener_has_not_used() {
    let pair = pair(V4);
    run(async {
        let (_first, mut answer) = pair.client.open_stream().await.unwrap();
        let (mut second, _) = pair.client.open_stream().await.unwrap();
        second.finish().unwrap();
        let (mut send, _recv) = pair.server.accept_stream().await.unwrap();
        send.finish_with([Bytes::from_static(b"unasked")]).await.unwrap();
        assert_eq!(read_to_end(&mut answer).await.unwrap(), b"unasked");
    });
}

#[test]
fn a_reset_and_a_stop_before_the_first_byte_arrive() {
    let pair = pair(V4);
    run(async {
        let (mut send, _recv) = pair.client.open_stream().await.unwrap();
        send.reset(0x123);
        let (_back, mut theirs) = pair.server.accept_stream().await.unwrap();
        assert_eq!(theirs.read_chunk().await.unwrap_err(), ReadError::Reset(0x123));

        let (_send, mut recv) = pair.client.open_stream().await.unwrap();
        recv.stop(0x456);
        let (mut back, _theirs) = pair.server.accept_stream().await.unwrap();
        assert_eq!(back.acked().await.unwrap_err(), WriteError::Stopped(0x456));
    });
}

#[test]
fn unused_streams_that_are_dropped_leave_room_for_others_without_being_accepted() {
    let pair = pair(V4);
    run(async {
        for _ in 0..10 * STREAMS_MAX {
            drop(pair.client.open_stream().await.unwrap());
        }
        let (mut send, _recv) = pair.client.open_stream().await.unwrap();
        send.finish_with([Bytes::from_static(b"used")]).await.unwrap();
        // Those that were reset before they could be accepted are skipped.
        loop {
            let (_, mut recv) = pair.server.accept_stream().await.unwrap();
            match read_to_end(&mut recv).await {
                Ok(bytes) => break assert_eq!(bytes, b"used"),
                Err(error) => assert_eq!(error, ReadError::Reset(0)),
            }
        }
    });
}

#[test]
fn a_close_ends_streams_that_were_opened_and_not_used() {
    let pair = pair(V4);
    run(async {
        let (mut send, mut recv) = pair.client.open_stream().await.unwrap();
        pair.client.close(0, "");
        assert_eq!(pair.client.closed().await, CloseReason::Local);
        let lost = WriteError::ConnectionLost(CloseReason::Local);
        assert_eq!(send.write(b"late").await.unwrap_err(), lost);
        let lost = ReadError::ConnectionLost(CloseReason::Local);
        assert_eq!(recv.read_chunk().await.unwrap_err(), lost);
        assert_eq!(pair.client.open_stream().await.unwrap_err(), CloseReason::Local);
    });
}

#[test]
fn a_message_whose_sender_wants_no_answer_can_be_accepted_later() {
    let pair = pair(V4);
    run(async {
        let (mut send, recv) = pair.client.open_stream().await.unwrap();
        drop(recv);
        send.finish_with([Bytes::from_static(b"one way")]).await.unwrap();
        send.acked().await.unwrap();
        // A later message, so that the end of the first one has been handled.
        let (mut send, _recv) = pair.client.open_stream().await.unwrap();
        send.finish().unwrap();
        send.acked().await.unwrap();
        let (_, mut recv) = pair.server.accept_stream().await.unwrap();
        assert_eq!(read_to_end(&mut recv).await.unwrap(), b"one way");
    });
}

#[test]
fn messages_that_nobody_accepts_do_not_pile_up_and_none_is_lost() {
    let pair = pair(V4);
    let mut sent = 0_u64;
    while let Some(opened) = block_on_timeout(pair.client.open_stream(), Duration::from_millis(100))
    {
        let (mut send, _) = opened.unwrap();
        run(send.finish_with([Bytes::copy_from_slice(&sent.to_be_bytes())])).unwrap();
        sent += 1;
        assert!(sent <= 2 * STREAMS_MAX, "the peer holds any number of messages");
    }
    run(async {
        for number in 0..sent {
            let (_, mut recv) = pair.server.accept_stream().await.unwrap();
            assert_eq!(read_to_end(&mut recv).await.unwrap(), number.to_be_bytes());
        }
    });
}

#[test]
fn a_small_message_is_complete_when_its_stream_is_accepted() {
    let pair = pair(V4);
    run(async {
        let (mut send, _recv) = pair.client.open_stream().await.unwrap();
        send.finish_with([Bytes::from_static(b"whole")]).await.unwrap();
        send.acked().await.unwrap();
        let (_, mut recv) = pair.server.accept_stream().await.unwrap();
        let mut cx = Context::from_waker(Waker::noop());
        let Poll::Ready(Ok(Some(chunk))) = recv.poll_chunk(&mut cx) else { panic!("not there") };
        assert_eq!(&chunk[..], b"whole");
        assert!(matches!(recv.poll_chunk(&mut cx), Poll::Ready(Ok(None))));
    });
}
