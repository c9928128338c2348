//! Threads of another language poll the futures of calls.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use wraith_ffi::{Content, Node, NodeOptions, OfferOptions, Recipient};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Polls a future on this thread, without any runtime.
fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

#[test]
fn a_future_polled_by_a_foreign_thread_finds_the_runtime() {
    let (lan, listen) = (Some("off".into()), Some("127.0.0.1:0".into()));
    let node = Node::new(NodeOptions { lan, listen, ..NodeOptions::default() }).unwrap();
    let message = Content::Bytes { name: "message".into(), bytes: b"text".to_vec() };
    let offer = block_on(node.offer(message, Recipient::Ticket, OfferOptions::default())).unwrap();
    assert!(offer.ticket().is_some());
}
