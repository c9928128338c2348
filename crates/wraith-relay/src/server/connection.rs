//! One client's TLS connection: handshake, HELLO, then frames until it ends.

use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, MutexGuard};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tracing::debug;
use wraith_discovery::{rates::Source, unix_seconds};

use super::handshake_slots::HandshakeSlot;
use super::other_port::OtherPort;
use super::shared::Shared;
use super::table::{Forwarded, Table};
use crate::frame::{ClientFrame, Malformed, Proof, Refusal, ServerFrame, VERSION};
use crate::frame_stream::FrameStream;
use crate::lock::lock;
use crate::outbox::Outbox;
use crate::proof::{EXPORTER_LABEL, Exporter};

/// Most bytes of datagrams queued for one client: 30 ms of the least rate that TLS should carry.
const OUTBOX_BYTES: usize = 4 << 20;
/// A connection ends if the client accepts no bytes for this long. Also the interval of that check.
const STALLED: Duration = Duration::from_secs(30);
/// Response to an HTTP client: a minimal web server.
const NOT_FOUND: &[u8] =
    b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
/// First two bytes of HTTP/1.1 requests. No first frame of a client has such a length.
const METHODS: [&[u8]; 3] = [b"GE", b"HE", b"PO"];

/// First frame of a client.
struct Hello {
    version: u8,
    resume: Option<(u64, [u8; 32])>,
    proof: Proof,
}

/// Serves a client from its first TLS byte to its end. `slot` is its slot among connections
/// without a session.
pub async fn serve_client(
    shared: Arc<Shared>,
    acceptor: TlsAcceptor,
    stream: TcpStream,
    from: SocketAddr,
    slot: HandshakeSlot,
) {
    let handshake = timeout(shared.timeouts.handshake, acceptor.accept(stream)).await;
    let Ok(Ok(stream)) = handshake else {
        shared.metrics.handshakes_failed.add(1);
        debug!(from = shared.logged(from.ip()), "a TLS handshake failed");
        return;
    };
    let mut exporter = Exporter::default();
    if stream.get_ref().1.export_keying_material(&mut exporter, EXPORTER_LABEL, None).is_err() {
        return;
    }
    let outbox = Arc::new(Outbox::new(OUTBOX_BYTES, Arc::clone(&shared.budget)));
    let mut frame_stream = FrameStream::new(stream, Arc::clone(&shared.budget));
    let hello = match timeout(shared.timeouts.hello, read_hello(&mut frame_stream)).await {
        Ok(Ok(hello)) => hello,
        Ok(Err(FirstBytes::Http)) => return answer_http(frame_stream).await,
        _ => {
            shared.metrics.malformed.add(1);
            return;
        }
    };
    match admit(&shared, from, &outbox, &hello, &exporter) {
        Ok(client) => {
            drop(slot);
            debug!(from = shared.logged(from.ip()), client, "client connected");
            let error = exchange_frames(&shared, client, &mut frame_stream, &outbox).await;
            lock(&shared.table).disconnected(Instant::now(), client, &outbox);
            debug!(client, %error, "client disconnected");
        }
        Err(refusal) => {
            shared.metrics.refused.add(1);
            debug!(from = shared.logged(from.ip()), %refusal, "a client is refused");
            outbox.push_control(|out| ServerFrame::Refused(refusal).encode(out));
            finish(&shared, &mut frame_stream, &outbox).await;
        }
    }
}

/// First bytes that are not a HELLO.
enum FirstBytes {
    Http,
    Nothing,
}

async fn read_hello(
    frame_stream: &mut FrameStream<TlsStream<TcpStream>>,
) -> Result<Hello, FirstBytes> {
    let mut hello = None;
    let read = poll_fn(|cx| {
        frame_stream.poll_read_first(cx, |frame| {
            hello = Some(match ClientFrame::decode(frame) {
                Ok(ClientFrame::Hello { version, resume, proof }) => {
                    Hello { version, resume, proof }
                }
                _ => return Err(io::Error::new(ErrorKind::InvalidData, Malformed)),
            });
            Ok(())
        })
    });
    match read.await {
        Ok(()) => {}
        Err(first) if METHODS.contains(&&first[..]) => return Err(FirstBytes::Http),
        Err(_) => return Err(FirstBytes::Nothing),
    }
    hello.ok_or(FirstBytes::Nothing)
}

async fn answer_http(frame_stream: FrameStream<TlsStream<TcpStream>>) {
    let mut stream = frame_stream.into_inner();
    let _ = stream.write_all(NOT_FOUND).await;
    let _ = stream.shutdown().await;
}

/// Admits a client, creates or resumes its session, and queues the WELCOME.
fn admit(
    shared: &Shared,
    from: SocketAddr,
    outbox: &Arc<Outbox>,
    hello: &Hello,
    exporter: &Exporter,
) -> Result<usize, Refusal> {
    if hello.version != VERSION {
        return Err(Refusal::Version);
    }
    let now = Instant::now();
    if matches!(hello.proof, Proof::Identity { .. }) {
        shared.metrics.identities_shown.add(1);
    }
    lock(&shared.admission_control).admit(now, from.ip(), &hello.proof, exporter)?;
    let mut table = lock(&shared.table);
    let source = Source::of(from.ip());
    let (client, mut welcome) = table.connect(now, source, outbox, hello.resume, exporter)?;
    welcome.udp_port = shared.udp_port;
    welcome.other_port = shared.other_port.as_ref().map_or(0, OtherPort::number);
    welcome.observe = shared.reflector.secret();
    welcome.observed = from;
    let missed = table.take_closed_while_disconnected(client);
    drop(table);
    outbox.push_control(|out| {
        ServerFrame::Welcome(welcome).encode(out);
        ServerFrame::Clock(unix_seconds()).encode(out);
        missed.iter().for_each(|id| ServerFrame::Closed(*id).encode(out));
    });
    Ok(client)
}

/// Moves frames in both directions. Returns the reason of the end: a connection error, a newer
/// connection of the client, or a peer that does not read for [`STALLED`].
async fn exchange_frames(
    shared: &Shared,
    client: usize,
    frame_stream: &mut FrameStream<TlsStream<TcpStream>>,
    outbox: &Outbox,
) -> io::Error {
    let mut last_received = Instant::now();
    // Bytes written so far, and the time from which on the client accepted no more.
    let (mut bytes_written, mut stalled) = (0, None);
    let longest = shared.timeouts.idle.min(STALLED);
    let mut silence = pin!(sleep(longest));
    poll_fn(|cx| {
        // Checked first: after the client has a newer connection, frames from this one must not be
        // handled.
        if outbox.poll_closed(cx).is_ready() {
            return Poll::Ready(ErrorKind::ConnectionAborted.into());
        }
        if let Poll::Ready(error) = frame_stream.poll_write(cx, outbox) {
            return Poll::Ready(error);
        }
        if frame_stream.is_drained() || frame_stream.bytes_written() != bytes_written {
            (bytes_written, stalled) = (frame_stream.bytes_written(), None);
        } else {
            stalled.get_or_insert_with(Instant::now);
        }
        loop {
            match frame_stream.poll_read(cx, |frame| on_frame(shared, client, outbox, frame)) {
                Poll::Ready(Ok(())) => last_received = Instant::now(),
                Poll::Ready(Err(error)) => return Poll::Ready(error),
                Poll::Pending => break,
            }
        }
        // The timer is reset only when it fires; resetting it on every frame would cost too much.
        while silence.as_mut().poll(cx).is_ready() {
            let left = shared.timeouts.idle.saturating_sub(last_received.elapsed());
            if left.is_zero() || stalled.is_some_and(|since| since.elapsed() >= longest) {
                return Poll::Ready(ErrorKind::TimedOut.into());
            }
            silence.as_mut().reset(tokio::time::Instant::now() + left.min(longest));
        }
        frame_stream.poll_write(cx, outbox)
    })
    .await
}

/// Locks the table for the connection of `outbox`. Fails if that connection is closed, because its
/// client number may be reused.
fn table_of<'a>(shared: &'a Shared, outbox: &Outbox) -> io::Result<MutexGuard<'a, Table>> {
    let table = lock(&shared.table);
    if outbox.is_closed() { Err(ErrorKind::ConnectionAborted.into()) } else { Ok(table) }
}

fn on_frame(shared: &Shared, client: usize, outbox: &Outbox, frame: &[u8]) -> io::Result<()> {
    let frame = ClientFrame::decode(frame).map_err(|malformed| {
        shared.metrics.malformed.add(1);
        io::Error::new(ErrorKind::InvalidData, malformed)
    })?;
    let now = Instant::now();
    match frame {
        ClientFrame::Datagram(id, datagram) => {
            let forwarded = table_of(shared, outbox)?.forward_frame(now, client, id, datagram);
            send_on(shared, forwarded);
        }
        ClientFrame::Hello { .. } => {
            return Err(io::Error::new(ErrorKind::InvalidData, Malformed));
        }
        ClientFrame::Register(secret) => {
            let (mailbox, result) = table_of(shared, outbox)?.register(client, &secret);
            outbox.push_control(|out| match result {
                Ok(()) => ServerFrame::Registered(mailbox).encode(out),
                Err(why) => ServerFrame::NotRegistered(mailbox, why).encode(out),
            });
        }
        ClientFrame::Unregister(mailbox) => table_of(shared, outbox)?.unregister(client, &mailbox),
        ClientFrame::Dial { request, mailbox } => {
            let result = table_of(shared, outbox)?.dial(now, client, &mailbox);
            outbox.push_control(|out| match result {
                Ok(id) => ServerFrame::Dialled(request, id).encode(out),
                Err(why) => ServerFrame::NotDialled(request, why).encode(out),
            });
        }
        ClientFrame::HangUp(id) => table_of(shared, outbox)?.hang_up(client, id),
        ClientFrame::Ping(number) => {
            outbox.push_control(|out| ServerFrame::Pong(number).encode(out));
        }
        ClientFrame::UseUdp(use_udp) => table_of(shared, outbox)?.use_udp(client, use_udp),
        ClientFrame::BindFrom(counter) => table_of(shared, outbox)?.bind_from(client, counter),
        ClientFrame::Leave => {
            table_of(shared, outbox)?.leave(now, client);
            return Err(ErrorKind::ConnectionAborted.into());
        }
    }
    Ok(())
}

fn send_on(shared: &Shared, forwarded: Forwarded) {
    if let Forwarded::ByUdp(to, datagram) = forwarded
        && !shared.udp_queue.send(to, datagram)
    {
        shared.metrics.overflowed.add(1);
    }
}

/// Writes the content of `outbox` and shuts the connection down.
async fn finish(
    shared: &Shared,
    frame_stream: &mut FrameStream<TlsStream<TcpStream>>,
    outbox: &Outbox,
) {
    let written = poll_fn(|cx: &mut Context<'_>| match frame_stream.poll_write(cx, outbox) {
        Poll::Ready(_) => Poll::Ready(()),
        Poll::Pending if frame_stream.is_drained() => Poll::Ready(()),
        Poll::Pending => Poll::Pending,
    });
    let _ = timeout(shared.timeouts.hello, written).await;
    let _ = timeout(shared.timeouts.hello, frame_stream.get_mut().shutdown()).await;
}
