//! A client's connection to a rendezvous server: blocking, with deadlines.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use super::frame::{ClientFrame, MAX_FRAME_LEN, ServerFrame, split};

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
    pub fn connect(server: &str) -> io::Result<Self> {
        let mut last = io::Error::new(ErrorKind::NotFound, "the name has no address");
        for address in server.to_socket_addrs()? {
            match Self::connect_to(address) {
                Ok(link) => return Ok(link),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn connect_to(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, CONNECT_TIMEOUT)?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
        Ok(Self { stream, unread: Vec::new() })
    }

    pub fn send(&mut self, frame: &ClientFrame) -> io::Result<()> {
        self.stream.write_all(&frame.encode())
    }

    /// The next frame; None if none comes within `patience`.
    pub fn next(&mut self, patience: Duration) -> io::Result<Option<ServerFrame>> {
        let deadline = Instant::now() + patience;
        loop {
            let nonsense = || io::Error::new(ErrorKind::InvalidData, "it is no rendezvous server");
            if let Some(frame) = split(&mut self.unread).map_err(|_| nonsense())? {
                return ServerFrame::decode(&frame).map(Some).ok_or_else(nonsense);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            self.stream.set_read_timeout(Some(left))?;
            let mut bytes = [0; MAX_FRAME_LEN];
            match self.stream.read(&mut bytes) {
                Ok(0) => return Err(io::Error::new(ErrorKind::UnexpectedEof, "it hung up")),
                Ok(len) => self.unread.extend_from_slice(&bytes[..len]),
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {}
                    _ => return Err(error),
                },
            }
        }
    }

    /// Says the last word and waits until the server has it, so that the end of this process does not swallow it.
    pub fn finish(mut self, frame: &ClientFrame, patience: Duration) {
        if self.send(frame).is_err() || self.stream.shutdown(std::net::Shutdown::Write).is_err() {
            return;
        }
        let deadline = Instant::now() + patience;
        while let Ok(Some(_)) = self.next(deadline.saturating_duration_since(Instant::now())) {}
    }
}
