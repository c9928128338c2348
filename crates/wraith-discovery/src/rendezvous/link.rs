//! A client's connection to a rendezvous server.

use std::fmt;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::select;
use tokio::time::timeout;

use super::frame::{ClientFrame, MAX_FRAME_LEN, ServerFrame, ServerRefusal, split};
use crate::connect::{Connect, Connected, Stream};
use crate::place::PlaceError;
use crate::suspension::SuspensionWatch;

/// Time limit of connecting, including a proxy: two unreachable addresses and a reachable one.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// Time limit of sending a frame.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection to a server.
pub struct ServerLink {
    stream: Box<dyn Stream>,
    /// Whether the server observes this machine's address, not that of a proxy.
    is_direct: bool,
    unread: Vec<u8>,
    suspension: SuspensionWatch,
}

impl ServerLink {
    /// Connects to `HOST:PORT`.
    pub async fn connect(server: &str, connect: &dyn Connect) -> Result<Self, PlaceError> {
        let (host, port) = host_and_port(server).ok_or_else(|| {
            unreachable(io::Error::new(ErrorKind::InvalidInput, "it is no HOST:PORT"))
        })?;
        let connected = in_time(CONNECT_TIMEOUT, connect.connect(host, port)).await;
        let Connected { stream, udp } = connected.map_err(unreachable)?;
        let (is_direct, unread) = (udp.is_some(), Vec::new());
        Ok(Self { stream, is_direct, unread, suspension: SuspensionWatch::new() })
    }

    /// Returns this machine's address, if the address that the server observes is not that of a
    /// proxy.
    pub fn own_address(&self, seen: SocketAddr) -> Option<IpAddr> {
        self.is_direct.then(|| seen.ip().to_canonical())
    }

    /// Sends a frame. Not cancel-safe: after a cancelled send the connection is unusable.
    pub async fn send(&mut self, frame: &ClientFrame) -> Result<(), PlaceError> {
        let bytes = frame.encode();
        in_time(WRITE_TIMEOUT, self.stream.write_all(&bytes)).await.map_err(unreachable)
    }

    /// Returns the next frame. Cancel-safe.
    pub async fn next(&mut self) -> Result<ServerFrame, PlaceError> {
        loop {
            if let Some(frame) = split(&mut self.unread).map_err(|_| PlaceError::Protocol)? {
                return ServerFrame::decode(&frame).ok_or(PlaceError::Protocol);
            }
            let mut bytes = [0; MAX_FRAME_LEN];
            let read = select! {
                read = self.stream.read(&mut bytes) => read,
                () = self.suspension.woken() => {
                    let why = "the machine was suspended";
                    return Err(PlaceError::Unreachable(why.into()));
                }
            };
            match read {
                Ok(0) => {
                    return Err(PlaceError::Unreachable("the server closed the connection".into()));
                }
                Ok(len) => self.unread.extend_from_slice(&bytes[..len]),
                Err(error) => return Err(unreachable(error)),
            }
        }
    }

    /// Sends the closing frame and waits until the server has received it, so that the end of this
    /// process does not lose it.
    pub async fn finish(mut self, frame: &ClientFrame, patience: Duration) {
        let said = async {
            self.send(frame).await?;
            self.stream.shutdown().await.map_err(unreachable)?;
            while self.next().await.is_ok() {}
            Ok::<(), PlaceError>(())
        };
        // If the frame is not delivered in time, the server detects the end of the connection.
        let _ = timeout(patience, said).await;
    }
}

impl fmt::Debug for ServerLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("is_direct", &self.is_direct).finish_non_exhaustive()
    }
}

/// Splits `HOST:PORT` and removes the brackets of an IPv6 address.
fn host_and_port(server: &str) -> Option<(&str, u16)> {
    let (host, port) = server.rsplit_once(':')?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    Some((host, port.parse().ok()?)).filter(|_| !host.is_empty())
}

impl From<ServerRefusal> for PlaceError {
    fn from(no: ServerRefusal) -> Self {
        use crate::place::Refusal;
        match no {
            ServerRefusal::Nobody => Self::Nobody,
            ServerRefusal::Taken => Self::Taken,
            ServerRefusal::TooFast => Self::TooFast,
            ServerRefusal::Full => Self::Full,
            ServerRefusal::Malformed => Self::Version,
            ServerRefusal::Used => Self::Closed(Refusal::Used),
            ServerRefusal::Burned => Self::Closed(Refusal::Burned),
            ServerRefusal::Expired => Self::Closed(Refusal::Expired),
        }
    }
}

async fn in_time<T>(
    patience: Duration,
    operation: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    timeout(patience, operation).await.unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()))
}

fn unreachable(error: io::Error) -> PlaceError {
    PlaceError::Unreachable(error.to_string())
}
