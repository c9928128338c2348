//! One transfer over one connection. The blocking engine of `wraith-transfer` runs on its own
//! thread; its end is awaited asynchronously.
//!
//! Invariant: dropping the future that waits for the end stops the transfer. A cancelled transfer
//! notifies the peer and keeps the received data.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use tokio::sync::{Notify, oneshot};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use wraith_transfer::{
    Cancel, Event as TransferEvent, Progress, ReceiveOptions, ReceiveReport, Role, SendOptions,
    SendReport, TransferError, close, receive, serve,
};
use wraith_transport::Connection;

use crate::event_publisher::EventPublisher;
use crate::node_core::CANCEL_WAIT;
use crate::state::ReceiptWriter;

/// Stops a transfer at any point and notifies the peer. Before its streams are open, only closing
/// the connection reaches the engine.
#[derive(Debug)]
pub(crate) struct TransferStop {
    cancel: Cancel,
    connection: Connection,
}

impl TransferStop {
    pub fn now(&self) {
        self.cancel.cancel();
        self.connection.close(stop_code(), "");
    }
}

/// Returns the close code for a transfer that this side stops, or whose task panicked.
pub(crate) fn stop_code() -> u64 {
    if thread::panicking() { close::PANICKED } else { close::CANCELLED }
}

/// Stops the transfer if it is dropped before it is disarmed.
struct CancelOnDrop(Option<TransferStop>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.iter().for_each(TransferStop::now);
    }
}

/// Sends over `connection` until its receiver has confirmed, the transfer failed, or `token` is
/// cancelled.
pub(crate) async fn send(
    connection: Connection,
    options: Arc<SendOptions>,
    token: &CancellationToken,
) -> Result<SendReport, TransferError> {
    let (cancel, theirs) = (options.cancel.clone(), connection.clone());
    let stop = TransferStop { cancel, connection };
    run(Role::Sender, stop, token, move || serve(theirs, &options)).await
}

/// Receives over `connection` until everything has arrived, the transfer failed, or `token` is
/// cancelled.
pub(crate) async fn fetch(
    connection: Connection,
    options: ReceiveOptions<'static>,
    token: &CancellationToken,
) -> Result<ReceiveReport, TransferError> {
    let (cancel, theirs) = (options.cancel.clone(), connection.clone());
    let stop = TransferStop { cancel, connection };
    run(Role::Receiver, stop, token, move || receive(theirs, options)).await
}

async fn run<R: Send + 'static>(
    role: Role,
    stop: TransferStop,
    token: &CancellationToken,
    work: impl FnOnce() -> Result<R, TransferError> + Send + 'static,
) -> Result<R, TransferError> {
    let (result_tx, mut ended) = oneshot::channel();
    let name = match role {
        Role::Sender => "wraith-send",
        Role::Receiver => "wraith-receive",
    };
    let thread =
        thread::Builder::new().name(name.into()).spawn(move || drop(result_tx.send(work())));
    if let Err(error) = thread {
        stop.now();
        return Err(TransferError::Other { what: format!("cannot start a thread: {error}") });
    }
    let connection = stop.connection.clone();
    let mut guard = CancelOnDrop(Some(stop));
    let result = tokio::select! {
        result = &mut ended => result,
        error = ended_by_peer(&connection, role) => match timeout(CANCEL_WAIT, &mut ended).await {
            Ok(result) => result,
            Err(_) => Ok(Err(error)),
        },
        () = token.cancelled() => {
            guard.0.iter().for_each(TransferStop::now);
            // A writer of the application may block for ever.
            match timeout(CANCEL_WAIT, &mut ended).await {
                Ok(result) => result,
                Err(_) => Ok(Err(TransferError::Cancelled { role })),
            }
        }
    };
    guard.0 = None;
    // The engine catches panics, so a thread that ends has sent its result.
    result.unwrap_or_else(|_| Err(TransferError::Other { what: "a transfer thread died".into() }))
}

/// Waits until the peer has ended the transfer for good. A lost network is no end: a writer that
/// blocks meanwhile may continue over another connection.
async fn ended_by_peer(connection: &Connection, role: Role) -> TransferError {
    match TransferError::from_close(&connection.closed().await, role) {
        TransferError::NetworkLost { .. } => std::future::pending().await,
        error => error,
    }
}

/// Whether the peer has sent Hello, with a way to wait for it.
#[derive(Debug, Default)]
pub(crate) struct HelloReceived {
    is: AtomicBool,
    changed: Notify,
}

impl HelloReceived {
    pub fn set(&self) {
        self.is.store(true, Relaxed);
        self.changed.notify_waiters();
    }

    pub fn get(&self) -> bool {
        self.is.load(Relaxed)
    }

    pub async fn wait(&self) {
        let mut changed = std::pin::pin!(self.changed.notified());
        changed.as_mut().enable();
        if !self.get() {
            changed.await;
        }
    }
}

/// Returns the event handler of a transfer: it forwards events to the publisher and records that
/// the peer answered.
pub(crate) fn events(
    publisher: &Arc<EventPublisher>,
    receiver: Option<u64>,
    answered: &Arc<HelloReceived>,
    receipt_writer: Option<ReceiptWriter>,
) -> Arc<dyn wraith_transfer::Events> {
    let (publisher, answered) = (Arc::clone(publisher), Arc::clone(answered));
    Arc::new(move |event: TransferEvent<'_>| {
        if matches!(event, TransferEvent::Connected { .. }) {
            answered.set();
        }
        publisher.publish_transfer(receiver, &event);
        publisher.record_receipt(&receipt_writer, receiver, &event);
    })
}

/// Result of one transfer over one connection.
#[derive(Debug)]
pub(crate) struct SessionResult<R> {
    pub result: Result<R, TransferError>,
    /// The peer sent Hello on this connection.
    pub answered: bool,
    /// Counters of this connection.
    pub progress: Arc<Progress>,
}
