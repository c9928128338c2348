//! A client's connection to a rendezvous server.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

use super::frame::{ClientFrame, MAX_FRAME_LEN, No, ServerFrame, split};
use crate::place::PlaceError;

/// How long one address of the server may take to accept.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the server may take to take what it is sent.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// One connection.
#[derive(Debug)]
pub struct Link {
    stream: TcpStream,
    unread: Vec<u8>,
}

impl Link {
    /// Connects to `HOST:PORT`, its addresses one after the other.
    pub async fn connect(server: &str) -> Result<Self, PlaceError> {
        let mut last = io::Error::new(ErrorKind::NotFound, "the name has no address");
        for address in lookup_host(server).await.map_err(unreachable)? {
            match Self::connect_to(address).await {
                Ok(link) => return Ok(link),
                Err(error) => last = error,
            }
        }
        Err(unreachable(last))
    }

    async fn connect_to(address: SocketAddr) -> io::Result<Self> {
        let stream = in_time(CONNECT_TIMEOUT, TcpStream::connect(address)).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, unread: Vec::new() })
    }

    /// Not cancel-safe: a connection on which this was dropped is of no use.
    pub async fn send(&mut self, frame: &ClientFrame) -> Result<(), PlaceError> {
        let bytes = frame.encode();
        in_time(WRITE_TIMEOUT, self.stream.write_all(&bytes)).await.map_err(unreachable)
    }

    /// The next frame. Cancel-safe.
    pub async fn next(&mut self) -> Result<ServerFrame, PlaceError> {
        loop {
            if let Some(frame) = split(&mut self.unread).map_err(|_| PlaceError::Protocol)? {
                return ServerFrame::decode(&frame).ok_or(PlaceError::Protocol);
            }
            let mut bytes = [0; MAX_FRAME_LEN];
            match self.stream.read(&mut bytes).await {
                Ok(0) => return Err(PlaceError::Unreachable("it hung up".into())),
                Ok(len) => self.unread.extend_from_slice(&bytes[..len]),
                Err(error) => return Err(unreachable(error)),
            }
        }
    }

    /// Says the last word and waits until the server has it, so that the end of this process does not swallow it.
    pub async fn finish(mut self, frame: &ClientFrame, patience: Duration) {
        let said = async {
            self.send(frame).await?;
            self.stream.shutdown().await.map_err(unreachable)?;
            while self.next().await.is_ok() {}
            Ok::<(), PlaceError>(())
        };
        // Either it is said now or the server finds out when the connection ends.
        let _ = timeout(patience, said).await;
    }
}

impl From<No> for PlaceError {
    fn from(no: No) -> Self {
        use crate::place::Refusal;
        match no {
            No::Nobody => Self::Nobody,
            No::Taken => Self::Taken,
            No::TooFast => Self::TooFast,
            No::Full => Self::Full,
            No::Senseless => Self::Version,
            No::Used => Self::Closed(Refusal::Used),
            No::Burned => Self::Closed(Refusal::Burned),
            No::Expired => Self::Closed(Refusal::Expired),
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
