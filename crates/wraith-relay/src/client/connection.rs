//! A relay connection is one TLS connection to a relay: its handshake, its first response, and the frames in
//! both directions until it ends. The session module defines the content of the frames.
//!
//! Invariant: the relay's key is checked before any frame is sent. If a pin (the hash of a relay's
//! key) is known, no other key is accepted.

use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Duration;

use rustls::pki_types::ServerName;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tracing::debug;
use wraith_discovery::{Connected, Stream};

use super::config::RelayConfig;
use crate::budget::Budget;
use crate::error::RelayError;
use crate::frame::{ClientFrame, ServerFrame, Welcome};
use crate::frame_stream::FrameStream;
use crate::outbox::Outbox;
use crate::proof::{EXPORTER_LABEL, Exporter};
use crate::tls::{self, Pin};

/// Time limit for the last frames to a relay.
const LEAVE_TIMEOUT: Duration = Duration::from_millis(500);
/// Most bytes of datagrams that wait to be written to TLS.
const OUTBOX_BYTES: usize = 1 << 20;
/// Memory for these datagrams and for incomplete frames. No queue may take more than an eighth of
/// this memory.
const BUDGET_BYTES: usize = 8 * OUTBOX_BYTES + (1 << 20);

/// Wait for TLS before the path is assumed to drop full TCP segments.
const NARROW_AFTER: Duration = Duration::from_secs(4);

/// Frames over TLS.
pub type TlsFrameStream = FrameStream<TlsStream<Box<dyn Stream>>>;

/// A connection after WELCOME.
pub struct RelayConnection {
    pub frame_stream: TlsFrameStream,
    pub outbox: Arc<Outbox>,
    pub welcome: Welcome,
    /// Frames that arrived together with WELCOME, without their lengths.
    pub early: Vec<Vec<u8>>,
    /// The relay's UDP port, if it may be used directly.
    pub udp: Option<SocketAddr>,
    /// Pin of the relay's certificate.
    pub pin: Pin,
}

/// Creates the outbox of a connection.
pub fn outbox() -> Arc<Outbox> {
    Arc::new(Outbox::new(OUTBOX_BYTES, Arc::new(Budget::new(BUDGET_BYTES))))
}

/// Runs both directions of a connection until it ends.
pub async fn drive_frames(
    frame_stream: &mut TlsFrameStream,
    outbox: &Outbox,
    mut take: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Error {
    poll_fn(|cx| {
        if let Poll::Ready(error) = frame_stream.poll_write(cx, outbox) {
            return Poll::Ready(error);
        }
        loop {
            match frame_stream.poll_read(cx, &mut take) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(error),
                Poll::Pending => break,
            }
        }
        frame_stream.poll_write(cx, outbox)
    })
    .await
}

/// Ends the session: writes the last frames, and closes the stream.
pub async fn leave(frame_stream: &mut TlsFrameStream, outbox: &Outbox) {
    outbox.push_control(|out| ClientFrame::Leave.encode(out));
    let closed = async {
        let written = poll_fn(|cx| match frame_stream.poll_write(cx, outbox) {
            Poll::Pending if !frame_stream.is_drained() => Poll::Pending,
            _ => Poll::Ready(()),
        });
        written.await;
        let _ = frame_stream.get_mut().shutdown().await;
    };
    // A relay that does not read finds out by itself.
    let _ = timeout(LEAVE_TIMEOUT, closed).await;
}

/// Connects to a relay by TLS. Returns the frame stream, the IP address for UDP, the relay's pin,
/// and the exporter, which only the two ends of the connection share.
pub async fn handshake(
    config: &RelayConfig,
) -> Result<(TlsFrameStream, Option<IpAddr>, Pin, Exporter), RelayError> {
    let name = ServerName::try_from(config.host.clone());
    let name = name.map_err(|error| RelayError::Unreachable(io::Error::other(error)))?;
    let tls = tls::client_config(config.pin).map_err(|_| RelayError::Protocol)?;
    let tls = TlsConnector::from(Arc::new(tls));
    let connected = config.connect.connect(&config.host, config.port).await;
    let Connected { stream, mut udp } = connected.map_err(RelayError::Unreachable)?;
    let mut stream = timeout(NARROW_AFTER, tls.connect(name.clone(), stream)).await;
    if stream.is_err() {
        // TCP connects and its full segments get lost: the path drops large packets.
        debug!("TLS got no answer: connecting with small TCP segments");
        let connected = config.connect.connect_narrow(&config.host, config.port).await;
        let narrow = connected.map_err(RelayError::Unreachable)?;
        udp = narrow.udp;
        stream = Ok(tls.connect(name, narrow.stream).await);
    }
    let stream = stream.unwrap_or_else(|elapsed| Err(elapsed.into()));
    let stream = stream.map_err(|error| match tls::pin_mismatch(&error) {
        Some(mismatch) => RelayError::Pin(mismatch),
        None if error.kind() == io::ErrorKind::InvalidData => RelayError::Protocol,
        None => RelayError::Unreachable(error),
    })?;
    let connection = stream.get_ref().1;
    let mut exporter = Exporter::default();
    connection
        .export_keying_material(&mut exporter, EXPORTER_LABEL, None)
        .map_err(|_| RelayError::Protocol)?;
    let certificate = connection.peer_certificates().and_then(|chain| chain.first());
    let pin = certificate.and_then(|certificate| tls::pin_of(certificate).ok());
    let pin = pin.ok_or(RelayError::Protocol)?;
    let frame_stream = FrameStream::new(stream, Arc::new(Budget::new(BUDGET_BYTES)));
    Ok((frame_stream, udp, pin, exporter))
}

/// Writes `outbox`, which holds a HELLO, and reads the response.
pub async fn read_welcome(
    frame_stream: &mut TlsFrameStream,
    outbox: &Outbox,
) -> Result<(Welcome, Vec<Vec<u8>>), RelayError> {
    let (mut answer, mut early) = (None, Vec::new());
    let read = poll_fn(|cx| {
        if let Poll::Ready(error) = frame_stream.poll_write(cx, outbox) {
            return Poll::Ready(Err(error));
        }
        while answer.is_none() {
            ready!(frame_stream.poll_read(cx, |frame| {
                match ServerFrame::decode(frame) {
                    Ok(Some(ServerFrame::Welcome(welcome))) if answer.is_none() => {
                        answer = Some(Ok(welcome));
                    }
                    Ok(Some(ServerFrame::Refused(why))) if answer.is_none() => {
                        answer = Some(Err(RelayError::Refused(why)));
                    }
                    // At most the bytes of one read.
                    _ if matches!(answer, Some(Ok(_))) => early.push(frame.to_vec()),
                    _ => return Err(io::ErrorKind::InvalidData.into()),
                }
                Ok(())
            }))?;
        }
        Poll::Ready(Ok(()))
    });
    let result = read.await;
    match (answer, result) {
        (Some(answer), _) => answer.map(|welcome| (welcome, early)),
        (None, Err(error)) if error.kind() == io::ErrorKind::InvalidData => {
            Err(RelayError::Protocol)
        }
        (None, Err(error)) => Err(RelayError::Unreachable(error)),
        (None, Ok(())) => Err(RelayError::Protocol),
    }
}
