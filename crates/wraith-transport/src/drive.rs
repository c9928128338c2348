//! An endpoint's I/O on the runtime of its application.
//!
//! [`Endpoint::drive`] is a future that runs the rounds of the I/O thread, which sleeps meanwhile.
//! A datagram then reaches the task that waits for it without a change of threads, as in transports
//! that are part of a runtime. The price is theirs, too: while the runtime is busy, nothing is sent
//! or received, and timers are exact to a millisecond.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio::time::{Instant, Sleep, sleep};

use crate::endpoint::Endpoint;
use crate::shared::IoInbox;
use crate::wake::{InlineRound, Step};

/// Maximum number of rounds in one poll, so that other tasks of the runtime get their turns.
const ROUNDS_MAX: usize = 8;
/// Deadline of a timer that is not needed.
const NEVER: Duration = Duration::from_secs(3600);

impl Endpoint {
    /// Runs the endpoint's I/O on the current runtime of tokio for as long as the future is polled,
    /// until the endpoint is closed, or released and idle. Spawn it for an endpoint of many small
    /// requests. Without it, and after its drop, the I/O thread does the same work; bulk transfers
    /// are faster there. The future does not keep the endpoint open.
    ///
    /// Cancel safe.
    ///
    /// # Errors
    /// Another such future is running, the endpoint has further movers, or the runtime refuses the
    /// socket.
    ///
    /// # Panics
    /// The future panics if it is polled outside of a runtime of tokio with I/O and time.
    pub fn drive(&self) -> impl Future<Output = io::Result<()>> + Send + use<> {
        let inbox = Arc::clone(&self.shared().endpoint.inbox);
        async move {
            let Some(state) = inbox.inline() else { return Ok(()) };
            let Some(socket) = state.only_socket() else {
                return Err(io::ErrorKind::Unsupported.into());
            };
            // The runtime waits on a second descriptor of the socket, and never receives from it.
            let socket = UdpSocket::from_std(socket.try_clone()?)?;
            if !inbox.start_driver() {
                return Err(io::ErrorKind::ResourceBusy.into());
            }
            let turn = Turn(inbox);
            let mut timer = pin!(sleep(NEVER));
            poll_fn(|cx| poll_rounds(cx, &turn.0, &*state, &socket, timer.as_mut())).await
        }
    }
}

/// Hands the I/O back to the thread when dropped.
struct Turn(Arc<IoInbox>);

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.stop_driver();
    }
}

fn poll_rounds(
    cx: &mut Context<'_>,
    inbox: &IoInbox,
    state: &dyn InlineRound,
    socket: &UdpSocket,
    mut timer: Pin<&mut Sleep>,
) -> Poll<io::Result<()>> {
    inbox.set_driver(cx);
    inbox.wake_up(false);
    for _ in 0..ROUNDS_MAX {
        let readable = match socket.poll_recv_ready(cx) {
            Poll::Ready(result) => result.map(|()| true)?,
            Poll::Pending => false,
        };
        let step = state.drive_round(readable);
        let Step::Next { busy, more, yields, timeout } = step else { return Poll::Ready(Ok(())) };
        if readable && !more {
            // A datagram that has arrived since makes the socket ready again.
            let empty = || Err::<(), _>(io::ErrorKind::WouldBlock.into());
            let _ = socket.try_io(Interest::READABLE, empty);
        }
        if yields {
            break;
        }
        if busy || more || readable || !inbox.fall_asleep() {
            continue;
        }
        // A timer that fires early costs one round.
        let deadline = Instant::now() + timeout.unwrap_or(NEVER);
        if deadline < timer.deadline() || timer.is_elapsed() {
            timer.as_mut().reset(deadline);
        }
        ready!(timer.as_mut().poll(cx));
        inbox.wake_up(false);
    }
    cx.waker().wake_by_ref();
    Poll::Pending
}
