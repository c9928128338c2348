//! The sockets of a rendezvous server: one thread, one `poll`, a bounded buffer in each direction for each connection.
//!
//! Invariant: memory is bounded by [`MAX_CONNECTIONS`] × ([`MAX_UNREAD`] + [`MAX_UNSENT`]) and what
//! [`Mailboxes`] keeps. A client that does not read loses its connection, not our memory.

use std::collections::HashMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Resource, getrlimit};

use super::frame::{ClientFrame, MAX_FRAME_LEN, NoFrame, ServerFrame, split};
use super::mailboxes::{Action, Id, Mailboxes};

/// Connections at once; further ones are closed as they come. A holder needs one for as long as it waits.
const MAX_CONNECTIONS: usize = 4096;
/// Files this process needs besides connections.
const OTHER_FILES: usize = 24;
/// Bytes kept of a frame that is not whole yet, and read at a time.
const MAX_UNREAD: usize = 2 + MAX_FRAME_LEN;
/// Bytes that wait for a client to read them: several times what anyone is ever owed.
const MAX_UNSENT: usize = 8 * 1024;
/// How often time limits are looked at, and whether to stop.
const TICK: Duration = Duration::from_millis(500);

/// Pause when the system gives no more files.
const PAUSE_WITHOUT_FILES: Duration = Duration::from_millis(20);

/// A listening server.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    mailboxes: Mailboxes,
    connections: HashMap<Id, Connection>,
    next_id: Id,
    most: usize,
}

#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    unread: Vec<u8>,
    unsent: Vec<u8>,
    /// Goes once everything is sent.
    closing: bool,
}

impl Server {
    /// Listens on `address`.
    ///
    /// # Errors
    /// The address cannot be had, or the system has no randomness.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let mut seed = [0; 4];
        getrandom::fill(&mut seed).map_err(io::Error::other)?;
        let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let files = usize::try_from(files).unwrap_or(usize::MAX).saturating_sub(OTHER_FILES);
        Ok(Self {
            listener,
            mailboxes: Mailboxes::new(u32::from_be_bytes(seed)),
            connections: HashMap::new(),
            next_id: 0,
            most: MAX_CONNECTIONS.min(files),
        })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// Of the system.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `stop` is set.
    ///
    /// # Errors
    /// The system cannot wait for sockets any more.
    pub fn run(mut self, stop: &AtomicBool) -> io::Result<()> {
        let mut ticked = Instant::now();
        while !stop.load(Relaxed) {
            let (listener_ready, ready) = self.wait()?;
            let now = Instant::now();
            for id in ready {
                self.serve(now, id);
            }
            if listener_ready {
                self.accept(now);
            }
            if now.duration_since(ticked) >= TICK {
                ticked = now;
                let actions = self.mailboxes.tick(now);
                self.perform(now, actions);
            }
        }
        Ok(())
    }

    /// Waits until something can be read or written, or a tick is over.
    fn wait(&self) -> io::Result<(bool, Vec<Id>)> {
        let mut ids = Vec::with_capacity(self.connections.len());
        let mut fds = vec![PollFd::new(&self.listener, PollFlags::IN)];
        for (id, connection) in &self.connections {
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::IN, !connection.closing);
            flags.set(PollFlags::OUT, !connection.unsent.is_empty());
            ids.push(*id);
            fds.push(PollFd::new(&connection.stream, flags));
        }
        let tick = Timespec { tv_sec: 0, tv_nsec: TICK.subsec_nanos().into() };
        match poll(&mut fds, Some(&tick)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let is_ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
        let listener_ready = is_ready(&fds[0]);
        let ready = ids.into_iter().zip(&fds[1..]).filter(|(_, fd)| is_ready(fd));
        Ok((listener_ready, ready.map(|(id, _)| id).collect()))
    }

    /// Takes the connections that wait, a few at a time so that those that are here are served too.
    fn accept(&mut self, now: Instant) {
        const AT_A_TIME: usize = 64;
        for _ in 0..AT_A_TIME {
            let (stream, seen) = match self.listener.accept() {
                Ok(accepted) => accepted,
                Err(error) => {
                    // None is left; or this one is gone already; or the system has no more files, which takes a while to
                    // change, and until then the listener would be ready all the time.
                    if !is_later(&error) && error.kind() != ErrorKind::ConnectionAborted {
                        std::thread::sleep(PAUSE_WITHOUT_FILES);
                    }
                    return;
                }
            };
            let full = self.connections.len() >= self.most;
            let prepared = stream.set_nonblocking(true).and(stream.set_nodelay(true));
            if full || prepared.is_err() {
                continue;
            }
            let id = self.next_id;
            self.next_id += 1;
            if self.mailboxes.connected(now, id, seen) {
                let connection =
                    Connection { stream, unread: Vec::new(), unsent: Vec::new(), closing: false };
                self.connections.insert(id, connection);
            }
        }
    }

    /// Reads and writes what one connection is ready for.
    fn serve(&mut self, now: Instant, id: Id) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if connection.flush().is_err() {
            return self.drop_connection(now, id);
        }
        if connection.closing {
            return;
        }
        let mut bytes = [0; MAX_UNREAD];
        match connection.stream.read(&mut bytes) {
            Ok(0) => return self.drop_connection(now, id),
            Ok(len) => connection.unread.extend_from_slice(&bytes[..len]),
            Err(error) if is_later(&error) => return,
            Err(_) => return self.drop_connection(now, id),
        }
        loop {
            let Some(connection) = self.connections.get_mut(&id) else { return };
            if connection.closing {
                return;
            }
            let frame = match split(&mut connection.unread) {
                Ok(Some(frame)) => ClientFrame::decode(&frame),
                Ok(None) => return,
                Err(NoFrame) => None,
            };
            let actions = self.mailboxes.frame(now, id, frame);
            self.perform(now, actions);
        }
    }

    fn perform(&mut self, now: Instant, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Send(id, frame) => self.send(now, id, &frame),
                Action::Close(id) => self.close(now, id),
            }
        }
    }

    fn send(&mut self, now: Instant, id: Id, frame: &ServerFrame) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let bytes = frame.encode();
        let fits = connection.unsent.len() + bytes.len() <= MAX_UNSENT;
        connection.unsent.extend_from_slice(if fits { &bytes } else { &[] });
        if !fits || connection.flush().is_err() {
            self.drop_connection(now, id);
        }
    }

    /// Ends a connection after what it was sent.
    fn close(&mut self, now: Instant, id: Id) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if connection.unsent.is_empty() || connection.closing {
            return self.drop_connection(now, id);
        }
        // It gets until the next tick that finds it late, which closes it for good.
        connection.closing = true;
    }

    fn drop_connection(&mut self, now: Instant, id: Id) {
        if let Some(connection) = self.connections.remove(&id) {
            let _ = connection.stream.shutdown(std::net::Shutdown::Both);
            let actions = self.mailboxes.disconnected(now, id);
            self.perform(now, actions);
        }
    }
}

impl Connection {
    /// Writes what the socket takes. A connection that was to end after that is an error then.
    fn flush(&mut self) -> io::Result<()> {
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(len) => drop(self.unsent.drain(..len)),
                Err(error) if is_later(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        if self.closing { Err(ErrorKind::ConnectionAborted.into()) } else { Ok(()) }
    }
}

fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
