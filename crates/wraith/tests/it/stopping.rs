//! A deliberate stop ends both sides at once, with a typed reason: by `stop`, `cancel`, drop, or a
//! panic of the application's reader or writer, at any moment of the transfer.

use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use wraith::{
    Error, ErrorKind, Event, IoFailure, Offer, OnConflict, Payload, Role, Target, Ticket, Transfer,
    TransferError,
};

use crate::support::{
    LOOPBACK, Written, alone_in_a_process, event, file, film_offered, node, noise, nowhere,
    offered, soon, threads, until, within,
};

const BYTES: usize = 4_000_000;
/// The transfer takes about 200 ms.
const RATE: u64 = 20_000_000;
const MOMENTS: usize = 20;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Stop,
    Cancel,
    Drop,
    Panic,
}

/// Passes bytes on, and panics once it has passed this many.
struct PanicsAfter<T>(T, usize);

impl<T> PanicsAfter<T> {
    fn count(&mut self, bytes: usize) {
        match self.1.checked_sub(bytes) {
            Some(left) => self.1 = left,
            None => panic!("boom"),
        }
    }
}

impl<T: Read> Read for PanicsAfter<T> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let len = out.len().min(50_000);
        self.count(len);
        self.0.read(&mut out[..len])
    }
}

impl<T: Write> Write for PanicsAfter<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.count(bytes.len());
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Starts an offer of `what` and a fetch of it.
async fn started(what: impl Into<Payload>, to: impl Into<Target>) -> (Offer, Transfer) {
    let builder = node().offer(what).by_ticket().bind_to(LOOPBACK).rate(RATE);
    let offer = within(builder.start()).await.unwrap();
    let ticket = offer.ticket().unwrap().clone();
    let transfer = node().fetch(ticket, to).accept_all(OnConflict::Rename);
    (offer, transfer)
}

/// Checks that both errors say that `by` stopped, or that its program panicked.
fn check_reason(error: &Error, way: Way, by: Role) {
    match (way, error.transfer()) {
        (Way::Panic, Some(TransferError::Panicked { role, .. })) => {
            assert_eq!((*role, error.kind()), (by, ErrorKind::Panicked));
        }
        (_, Some(TransferError::Cancelled { role })) if way != Way::Panic => {
            assert_eq!((*role, error.kind()), (by, ErrorKind::Cancelled));
        }
        other => panic!("{way:?} by the {by}: {other:?}"),
    }
}

/// Ends a transfer after `moment` of [`MOMENTS`] parts of its bytes. Returns how long the other side
/// took to notice; `None` if the transfer was complete before.
async fn ended(way: Way, by: Role, moment: usize, folder: &Path) -> Option<Duration> {
    let goal = BYTES * moment / MOMENTS;
    let film = folder.join("film");
    let (offer, transfer) = match (way, by) {
        (Way::Panic, Role::Sender) => {
            let reader = PanicsAfter(io::Cursor::new(noise(1, BYTES)), goal);
            started(Payload::reader("film", None, reader), Target::writer(Written::default())).await
        }
        (Way::Panic, Role::Receiver) => {
            let target = Target::writer(PanicsAfter(Written::default(), goal));
            started(film.as_path(), target).await
        }
        _ => started(film.as_path(), folder.join("to")).await,
    };
    let mut events = match by {
        Role::Sender => transfer.events(),
        Role::Receiver => offer.events(),
    };
    let mut progress = transfer.progress();
    event(&mut events, |event| matches!(event, Event::Accepted).then_some(())).await;
    if way != Way::Panic {
        let mut has_arrived = || progress.read().is_some_and(|now| now.bytes >= goal as u64);
        within(until(|| goal == 0 || has_arrived())).await;
    }
    let start = Instant::now();
    let (own, other): (Option<Error>, Option<Error>) = match (way, by) {
        (Way::Stop, Role::Sender) => {
            offer.stop();
            (soon(offer.finished()).await.err(), soon(transfer.finished()).await.err())
        }
        (Way::Stop, Role::Receiver) => {
            transfer.stop();
            (soon(transfer.finished()).await.err(), soon(offer.finished()).await.err())
        }
        (Way::Cancel, Role::Sender) => {
            (soon(offer.cancel()).await.err(), soon(transfer.finished()).await.err())
        }
        (Way::Cancel, Role::Receiver) => {
            (soon(transfer.cancel()).await.err(), soon(offer.finished()).await.err())
        }
        (Way::Drop, Role::Sender) => {
            drop(offer);
            (None, soon(transfer.finished()).await.err())
        }
        (Way::Drop, Role::Receiver) => {
            drop(transfer);
            (None, soon(offer.finished()).await.err())
        }
        (Way::Panic, Role::Sender) => {
            (within(offer.finished()).await.err(), soon(transfer.finished()).await.err())
        }
        (Way::Panic, Role::Receiver) => {
            (within(transfer.finished()).await.err(), soon(offer.finished()).await.err())
        }
    };
    let took = start.elapsed();
    let other = other?;
    check_reason(&other, way, by);
    if let Some(own) = own {
        check_reason(&own, way, by);
        if let Some(TransferError::Panicked { what, .. }) = own.transfer() {
            assert_eq!(what, "boom");
        }
    } else {
        assert_eq!(way, Way::Drop);
    }
    if way != Way::Panic {
        let stopped = |event: &Event| match event {
            Event::Stopped { by, seconds_left: None } => Some(*by),
            _ => None,
        };
        assert_eq!(event(&mut events, stopped).await, by);
    }
    event(&mut events, |event| matches!(event, Event::Failed(_)).then_some(())).await;
    Some(took)
}

#[test]
fn both_sides_end_at_once_whenever_one_stops_or_panics() {
    let name = "stopping::both_sides_end_at_once_whenever_one_stops_or_panics";
    alone_in_a_process(name, || {
        let runtime = Runtime::new().unwrap();
        runtime.block_on(async {
            let (mut longest, mut too_late) = (Duration::ZERO, 0);
            for moment in 0..MOMENTS {
                for way in [Way::Stop, Way::Cancel, Way::Drop, Way::Panic] {
                    for by in [Role::Sender, Role::Receiver] {
                        let folder = tempfile::tempdir().unwrap();
                        file(&folder.path().join("film"), 1, BYTES);
                        match ended(way, by, moment, folder.path()).await {
                            Some(took) => longest = longest.max(took),
                            None => too_late += 1,
                        }
                    }
                }
            }
            eprintln!("both sides ended within {longest:?}; {too_late} were complete before");
            assert!(too_late < MOMENTS, "{too_late} of {} were complete before", 8 * MOMENTS);
            let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
            within(until(|| threads().is_empty() && tasks() == 0)).await;
        });
    });
}

/// A reader or writer that fails after some bytes.
struct Fails(usize);

impl Fails {
    fn io(&mut self, bytes: usize) -> io::Result<usize> {
        if self.0 == 0 {
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, "no more of this"));
        }
        let bytes = bytes.min(self.0);
        self.0 -= bytes;
        Ok(bytes)
    }
}

impl Read for Fails {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.io(out.len())
    }
}

impl Write for Fails {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.io(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Checks that `own` has the application's error, and `other` the same kind without it.
fn check_stream_failure(own: &Error, other: &Error, by: Role) {
    assert_eq!((own.kind(), other.kind()), (ErrorKind::Stream, ErrorKind::Stream));
    let source = std::error::Error::source(own).unwrap();
    let source = source.downcast_ref::<io::Error>().unwrap();
    assert_eq!(source.kind(), io::ErrorKind::QuotaExceeded);
    let of = |error: &Error| match error.transfer() {
        Some(TransferError::Stream { role, what, source }) => {
            assert!(what.contains("no more of this"), "{what}");
            assert!(!what.contains("standard output"), "{what}");
            (*role, source.as_ref().map(IoFailure::error).map(io::Error::kind))
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(of(own), (by, Some(io::ErrorKind::QuotaExceeded)));
    assert_eq!(of(other), (by, None));
}

#[tokio::test]
async fn the_applications_own_error_is_the_source() {
    for bytes in [0, 1_000_000, BYTES - 1] {
        let reader = Payload::reader("film", None, Fails(bytes));
        let (offer, transfer) = started(reader, Target::writer(Written::default())).await;
        let own = within(offer.finished()).await.unwrap_err();
        check_stream_failure(&own, &soon(transfer.finished()).await.unwrap_err(), Role::Sender);

        let content = Payload::reader("film", None, io::Cursor::new(noise(1, BYTES)));
        let (offer, transfer) = started(content, Target::writer(Fails(bytes))).await;
        let own = within(transfer.finished()).await.unwrap_err();
        check_stream_failure(&own, &soon(offer.finished()).await.unwrap_err(), Role::Receiver);
    }
}

/// A reader or writer that blocks until its channel is closed.
struct Blocks(std::sync::mpsc::Receiver<()>);

impl Read for Blocks {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        let _ = self.0.recv();
        Ok(0)
    }
}

impl Write for Blocks {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = self.0.recv();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Starts a transfer to a writer that blocks until the channel is dropped, and waits until it is
/// accepted.
async fn to_a_blocked_writer() -> (Sender<()>, Offer, Transfer) {
    let (running, blocked) = std::sync::mpsc::channel();
    let content = Payload::reader("film", None, io::Cursor::new(noise(1, BYTES)));
    let (offer, transfer) = started(content, Target::writer(Blocks(blocked))).await;
    let mut events = offer.events();
    event(&mut events, |event| matches!(event, Event::Accepted).then_some(())).await;
    (running, offer, transfer)
}

#[tokio::test]
async fn a_reader_or_writer_that_blocks_for_ever_can_be_stopped() {
    let (_running, blocked) = std::sync::mpsc::channel();
    let reader = Payload::reader("film", None, Blocks(blocked));
    let (offer, transfer) = started(reader, Target::writer(Written::default())).await;
    let mut events = offer.events();
    event(&mut events, |event| matches!(event, Event::Accepted).then_some(())).await;
    offer.stop();
    check_reason(&soon(offer.finished()).await.unwrap_err(), Way::Stop, Role::Sender);
    check_reason(&soon(transfer.finished()).await.unwrap_err(), Way::Stop, Role::Sender);

    let (_running, offer, transfer) = to_a_blocked_writer().await;
    transfer.stop();
    check_reason(&soon(offer.finished()).await.unwrap_err(), Way::Stop, Role::Receiver);
    // The writer gets some seconds, because its thread may be about to store data.
    check_reason(&within(transfer.finished()).await.unwrap_err(), Way::Stop, Role::Receiver);

    // Also if the other side stops.
    let (_running, offer, transfer) = to_a_blocked_writer().await;
    check_reason(&soon(offer.cancel()).await.unwrap_err(), Way::Stop, Role::Sender);
    check_reason(&within(transfer.finished()).await.unwrap_err(), Way::Stop, Role::Sender);
}

#[tokio::test]
async fn a_folder_for_a_writer_fails_on_both_sides_at_once() {
    let folder = tempfile::tempdir().unwrap();
    file(&folder.path().join("films/a"), 1, 1000);
    let (offer, transfer) =
        started(folder.path().join("films"), Target::writer(Written::default())).await;
    for error in
        [soon(offer.finished()).await.unwrap_err(), soon(transfer.finished()).await.unwrap_err()]
    {
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert_eq!(error.transfer(), Some(&TransferError::NoStream));
    }
}

#[tokio::test]
async fn a_ticket_of_the_other_kind_is_refused_at_once() {
    let (folder, _offer, of_offer) = film_offered(1000).await;
    let service = node().serve().start().await.unwrap();
    // The kind survives the text form.
    let [of_offer, of_service] = [&of_offer, service.ticket().unwrap()]
        .map(|ticket| ticket.to_string().parse::<Ticket>().unwrap());
    let error = soon(node().connect(of_offer).open()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    let fetch = node().fetch(of_service, folder.path().join("to")).accept_all(OnConflict::Rename);
    let error = soon(fetch.finished()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
}

#[tokio::test]
async fn both_ends_of_a_transfer_can_be_joined_in_one_task() {
    let folder = tempfile::tempdir().unwrap();
    file(&folder.path().join("film"), 1, BYTES);
    let (offer, transfer) = started(folder.path().join("film"), folder.path().join("to")).await;
    let (sent, received) =
        within(async { tokio::join!(offer.finished(), transfer.finished()) }).await;
    sent.unwrap().complete().unwrap();
    received.unwrap().complete().unwrap();
}

/// Panics at the first event that fits.
struct PanickingObserver(fn(&Event) -> bool);

impl wraith::Observer for PanickingObserver {
    fn event(&self, _: Option<u64>, event: &Event) {
        assert!(!(self.0)(event), "boom");
    }
}

#[tokio::test]
async fn an_observer_that_panics_ends_the_transfer_on_both_sides() {
    let folder = tempfile::tempdir().unwrap();
    file(&folder.path().join("film"), 1, BYTES);
    let kinds: [fn(&Event) -> bool; 4] = [
        |event| matches!(event, Event::PeerFound(_)),
        |event| matches!(event, Event::Connected { .. }),
        |event| matches!(event, Event::Accepted),
        |event| matches!(event, Event::File { .. }),
    ];
    for (n, panics_at) in kinds.into_iter().enumerate() {
        let to = folder.path().join(format!("to{n}"));
        let (offer, ticket) = offered(&node(), folder.path().join("film")).await;
        let observer = std::sync::Arc::new(PanickingObserver(panics_at));
        let builder = node().fetch(ticket, to).observer(observer);
        let transfer = builder.accept_all(OnConflict::Rename);
        let error = within(transfer.finished()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Panicked, "{error}");
        match n {
            // The sender does not know of a receiver yet, and waits for one.
            0 => drop(offer),
            _ => {
                let error = soon(offer.finished()).await.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Panicked, "{error}");
            }
        }
    }
}

#[tokio::test]
async fn a_closed_node_ends_everything_and_starts_nothing() {
    let folder = tempfile::tempdir().unwrap();
    file(&folder.path().join("film"), 1, BYTES);
    let (sending, receiving) = (node(), node());
    let offer = sending.offer(folder.path().join("film")).by_ticket().bind_to(LOOPBACK);
    let offer = within(offer.rate(RATE / 10).start()).await.unwrap();
    let (idle, ticket) = offered(&sending, folder.path().join("film")).await;
    let service = sending.serve().start().await.unwrap();
    let listener = within(sending.listen(folder.path().join("in")).bind_to(LOOPBACK).start());
    let mut listener = listener.await.unwrap();
    let to = folder.path().join("to");
    let transfer = receiving.fetch(offer.ticket().unwrap().clone(), to);
    let transfer = transfer.accept_all(OnConflict::Rename);
    let mut events = transfer.events();
    event(&mut events, |event| matches!(event, Event::Accepted).then_some(())).await;
    // Also what has no handle any more.
    let mut detached = idle.events();
    idle.detach();

    soon(sending.close()).await;
    check_reason(&soon(transfer.finished()).await.unwrap_err(), Way::Stop, Role::Sender);
    assert_eq!(soon(offer.finished()).await.unwrap_err().kind(), ErrorKind::Cancelled);
    event(&mut detached, |event| matches!(event, Event::Failed(_)).then_some(())).await;
    assert!(soon(service.accept()).await.is_none());
    assert!(soon(listener.next()).await.is_none());
    let error = soon(sending.offer(folder.path().join("film")).by_ticket().start()).await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Cancelled);
    assert_eq!(sending.serve().start().await.unwrap_err().kind(), ErrorKind::Cancelled);
    let error = soon(sending.connect(service.ticket().unwrap().clone()).open()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    let fetch = sending.fetch(ticket, folder.path().join("to")).accept_all(OnConflict::Rename);
    assert_eq!(soon(fetch.finished()).await.unwrap_err().kind(), ErrorKind::Cancelled);
}

#[tokio::test]
async fn a_group_of_nodes_is_closed_with_the_offers_of_dropped_nodes() {
    let folder = tempfile::tempdir().unwrap();
    file(&folder.path().join("film"), 1, BYTES);
    let group = wraith::NodeGroup::default();
    let member = || nowhere().group(&group).build().unwrap();
    let offer = member().offer(folder.path().join("film")).by_ticket().bind_to(LOOPBACK);
    let offer = within(offer.rate(RATE / 10).start()).await.unwrap();
    let (idle, _) = offered(&member(), folder.path().join("film")).await;
    let to = folder.path().join("to");
    let transfer = node().fetch(offer.ticket().unwrap().clone(), to);
    let transfer = transfer.accept_all(OnConflict::Rename);
    let mut events = transfer.events();
    event(&mut events, |event| matches!(event, Event::Accepted).then_some(())).await;
    // The node and the handle are gone, but the receiver is not notified yet.
    drop(offer);

    soon(group.close()).await;
    check_reason(&soon(transfer.finished()).await.unwrap_err(), Way::Stop, Role::Sender);
    assert_eq!(soon(idle.finished()).await.unwrap_err().kind(), ErrorKind::Cancelled);
    let error = soon(member().offer(folder.path().join("film")).by_ticket().start()).await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Cancelled);
}

#[tokio::test]
async fn a_service_that_is_closed_delivers_what_was_finished() {
    use tokio::io::AsyncReadExt;

    let service = node().serve().start().await.unwrap();
    let open = node().connect(service.ticket().unwrap().clone());
    let (accepted, opened) = within(async { tokio::join!(service.accept(), open.open()) }).await;
    let (accepted, opened) = (accepted.unwrap(), opened.unwrap());
    let answer = noise(1, 300_000);
    let (mut send, _) = within(accepted.open_stream()).await.unwrap();
    within(send.write_all(&answer)).await.unwrap();
    send.finish().unwrap();
    let reading = async {
        let (_, mut receive) = opened.accept_stream().await.unwrap();
        let mut got = Vec::new();
        receive.read_to_end(&mut got).await.unwrap();
        got
    };
    let ((), got) = within(async { tokio::join!(service.close(), reading) }).await;
    assert!(got == answer, "other bytes");
    soon(opened.closed()).await;
}

#[tokio::test]
async fn an_observer_that_panics_at_the_stop_keeps_no_result_back() {
    let folder = tempfile::tempdir().unwrap();
    file(&folder.path().join("film"), 1, BYTES);
    let (_offer, ticket) = offered(&node(), folder.path().join("film")).await;
    let observer = PanickingObserver(|event| matches!(event, Event::Stopped { .. }));
    let builder = node().fetch(ticket, folder.path().join("to"));
    let transfer = builder.observer(std::sync::Arc::new(observer)).accept_all(OnConflict::Rename);
    let mut events = transfer.events();
    transfer.stop();
    assert_eq!(soon(transfer.finished()).await.unwrap_err().kind(), ErrorKind::Cancelled);
    event(&mut events, |event| matches!(event, Event::Failed(_)).then_some(())).await;
}

#[tokio::test]
async fn an_observer_that_panics_beside_the_transfer_ends_it() {
    let folder = tempfile::tempdir().unwrap();
    file(&folder.path().join("film"), 1, 1000);
    // The relay is not there, and a task beside the offer reports that.
    let closed = std::net::TcpListener::bind(LOOPBACK).unwrap().local_addr().unwrap();
    let (host, port) = (closed.ip().to_string(), closed.port());
    let relay = wraith::RelayServer { host, port, token: None };
    let sending = nowhere().relay(relay).build().unwrap();
    let observer = PanickingObserver(|event| matches!(event, Event::Note { .. }));
    let builder = sending.offer(folder.path().join("film")).by_ticket();
    let offer = within(builder.observer(std::sync::Arc::new(observer)).start()).await.unwrap();
    let error = within(offer.finished()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Panicked, "{error}");
}
