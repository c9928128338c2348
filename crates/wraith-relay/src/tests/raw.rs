//! A handmade client: frames and datagrams as a test needs them.

use std::future::poll_fn;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Duration;

use rustls::pki_types::ServerName;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use wraith_crypto::MaskKey;

use crate::binding::{Binding, BindingKeys};
use crate::budget::Budget;
use crate::frame::{ClientFrame, Mailbox, Proof, ServerFrame, Welcome, mailbox_of};
use crate::frame_stream::FrameStream;
use crate::header::{self, Direction, HEADER_BYTES, TagKey, WireId, down_mask, up_mask};
use crate::outbox::Outbox;
use crate::proof::{EXPORTER_LABEL, Exporter};
use crate::random::Random;
use crate::server::{Metrics, Options, Server, Timeouts};
use crate::tls;

/// Timeout of a test that hangs.
const HANG: Duration = Duration::from_secs(30);

/// Runs a future that must complete.
pub async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(HANG, future).await.expect("hangs")
}

/// A test relay; it stops on drop.
pub struct Relay {
    pub address: SocketAddr,
    pub metrics: Arc<Metrics>,
    task: JoinHandle<()>,
    _folder: TempDir,
}

impl Relay {
    pub async fn start(timeouts: Timeouts, change: impl FnOnce(&mut Options)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut options = Options::new((Ipv4Addr::LOCALHOST, 0).into(), folder.path());
        change(&mut options);
        let server = Server::bind_with(options, timeouts).await.unwrap();
        let (address, metrics) = (server.local_addr().unwrap(), server.metrics());
        let task = tokio::spawn(async move {
            server.run_until(std::future::pending()).await.unwrap();
        });
        Self { address, metrics, task, _folder: folder }
    }

    pub async fn usual() -> Self {
        Self::start(Timeouts::default(), |_| ()).await
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// TLS side of a client.
pub struct RawClient {
    frame_stream: FrameStream<TlsStream<TcpStream>>,
    outbox: Outbox,
    pub exporter: Exporter,
}

/// Opens a TLS stream.
pub async fn tls_stream(relay: SocketAddr) -> TlsStream<TcpStream> {
    let stream = TcpStream::connect(relay).await.unwrap();
    let connector = TlsConnector::from(Arc::new(tls::client_config(None).unwrap()));
    let name = ServerName::from(relay.ip());
    within(connector.connect(name, stream)).await.unwrap()
}

impl RawClient {
    /// Connects without sending a frame.
    pub async fn connect(relay: SocketAddr) -> Self {
        let stream = tls_stream(relay).await;
        let mut exporter = Exporter::default();
        stream.get_ref().1.export_keying_material(&mut exporter, EXPORTER_LABEL, None).unwrap();
        let budget = Arc::new(Budget::new(1 << 24));
        let frame_stream = FrameStream::new(stream, Arc::clone(&budget));
        Self { frame_stream, outbox: Outbox::new(1 << 20, budget), exporter }
    }

    /// Connects and waits for the WELCOME.
    pub async fn welcome(relay: SocketAddr) -> (Self, Welcome) {
        let mut client = Self::connect(relay).await;
        let welcome = client.hello(None).await;
        (client, welcome)
    }

    pub async fn hello(&mut self, resume: Option<(u64, [u8; 32])>) -> Welcome {
        self.send(&ClientFrame::Hello { version: 1, resume, proof: Proof::None });
        let answer = self.receive().await.unwrap();
        match ServerFrame::decode(&answer).unwrap() {
            Some(ServerFrame::Welcome(welcome)) => welcome,
            _ => panic!("not welcome"),
        }
    }

    pub fn send(&self, frame: &ClientFrame<'_>) {
        self.outbox.push_control(|out| frame.encode(out));
    }

    /// Writes without reading. Fails once the relay has closed the connection.
    pub async fn write_only(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.frame_stream.get_mut().write_all(bytes).await
    }

    pub fn send_bytes(&self, bytes: &[u8]) {
        self.outbox.push_control(|out| out.extend_from_slice(bytes));
    }

    /// Returns the next frame. Fails once the relay has closed the connection.
    pub async fn receive(&mut self) -> io::Result<Vec<u8>> {
        let Self { frame_stream, outbox, .. } = self;
        let mut frame = None;
        let read = poll_fn(|cx| {
            if let Poll::Ready(error) = frame_stream.poll_write(cx, outbox) {
                return Poll::Ready(Err(error));
            }
            // Frames arrive one by one: the relay answers each before the test sends the next.
            while frame.is_none() {
                ready!(frame_stream.poll_read(cx, |bytes| {
                    frame.get_or_insert_with(|| bytes.to_vec());
                    Ok(())
                }))?;
            }
            Poll::Ready(Ok(()))
        });
        within(read).await?;
        Ok(frame.expect("a frame ends the loop"))
    }

    /// Checks that the relay has handled all earlier frames and sent no other response.
    pub async fn ping(&mut self) {
        self.send(&ClientFrame::Ping(77));
        let answer = self.receive().await.unwrap();
        assert!(ServerFrame::decode(&answer) == Ok(Some(ServerFrame::Pong(77))));
    }

    pub async fn register(&mut self, secret: [u8; 32]) -> Mailbox {
        self.send(&ClientFrame::Register(secret));
        let answer = self.receive().await.unwrap();
        let mailbox = mailbox_of(&secret);
        assert!(ServerFrame::decode(&answer) == Ok(Some(ServerFrame::Registered(mailbox))));
        mailbox
    }

    pub async fn dial(&mut self, mailbox: Mailbox) -> WireId {
        self.send(&ClientFrame::Dial { request: 1, mailbox });
        let answer = self.receive().await.unwrap();
        match ServerFrame::decode(&answer).unwrap() {
            Some(ServerFrame::Dialled(1, id)) => id,
            _ => panic!("not dialled"),
        }
    }

    pub async fn incoming(&mut self) -> WireId {
        let frame = self.receive().await.unwrap();
        match ServerFrame::decode(&frame).unwrap() {
            Some(ServerFrame::Incoming(id, _)) => id,
            _ => panic!("nobody dialled"),
        }
    }
}

/// UDP side of a client.
pub struct RawUdp {
    pub socket: UdpSocket,
    relay: SocketAddr,
    up_mask: MaskKey,
    down_mask: MaskKey,
    secret: [u8; 32],
    keys: BindingKeys,
    random: Random,
}

impl RawUdp {
    pub fn new(relay: SocketAddr, welcome: &Welcome) -> Self {
        Self {
            socket: socket(),
            relay,
            up_mask: up_mask(&welcome.secret),
            down_mask: down_mask(&welcome.secret),
            secret: welcome.secret,
            keys: BindingKeys::new(&welcome.secret, welcome.binding),
            random: Random::new().unwrap(),
        }
    }

    pub fn bind_message(&mut self, counter: u64, challenge: Option<(u64, [u8; 16])>) -> Vec<u8> {
        let (answers, cookie) = challenge.unwrap_or_default();
        let message = Binding::Bind { counter, answers, cookie };
        let len = BindingKeys::draw_len(false, &mut self.random);
        self.keys.seal_up(&message, len, &mut self.random)
    }

    /// Returns a datagram of the end `id`.
    pub fn datagram(&self, id: WireId, inner: &[u8]) -> Vec<u8> {
        let mut datagram = [&[0; HEADER_BYTES], inner].concat();
        let tag = TagKey::new(&self.secret, id, Direction::Up);
        header::write(&self.up_mask, &tag, id, &mut datagram);
        datagram
    }

    pub fn send(&self, datagram: &[u8]) {
        self.socket.send_to(datagram, self.relay).unwrap();
    }

    /// Returns the next binding received at `socket`, and its length on the wire.
    pub fn receive_at(&self, socket: &UdpSocket) -> (Binding, usize) {
        let mut bytes = receive(socket);
        let len = bytes.len();
        assert!(header::read_id(&self.down_mask, &bytes).is_some());
        (self.keys.open(Direction::Down, &mut bytes).expect("it is authentic"), len)
    }

    pub fn receive(&self) -> Binding {
        self.receive_at(&self.socket).0
    }

    /// Returns the next datagram without its header. It must be for the end `id`.
    pub fn receive_datagram(&self, id: WireId) -> Vec<u8> {
        let bytes = receive(&self.socket);
        assert_eq!(header::read_id(&self.down_mask, &bytes), Some(id));
        assert!(TagKey::new(&self.secret, id, Direction::Down).matches(&bytes));
        bytes[HEADER_BYTES..].to_vec()
    }

    /// Binds this socket, with counters from `counter` on.
    pub fn bind(&mut self, counter: u64) {
        let message = self.bind_message(counter, None);
        self.send(&message);
        let Binding::Challenge { counter: of, cookie } = self.receive() else {
            panic!("a challenge is expected")
        };
        let message = self.bind_message(counter + 1, Some((of, cookie)));
        self.send(&message);
        let observed = self.socket.local_addr().unwrap();
        assert_eq!(self.receive(), Binding::Bound { counter: counter + 1, observed });
    }
}

/// Opens a socket on loopback with a read timeout.
pub fn socket() -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.set_read_timeout(Some(HANG)).unwrap();
    socket
}

pub fn receive(socket: &UdpSocket) -> Vec<u8> {
    let mut bytes = vec![0; 65_536];
    let len = socket.recv(&mut bytes).expect("hangs");
    bytes.truncate(len);
    bytes
}

/// Reports whether no datagram has arrived at `socket`.
pub fn is_silent(socket: &UdpSocket) -> bool {
    socket.set_nonblocking(true).unwrap();
    let result = socket.recv(&mut [0; 100]);
    socket.set_nonblocking(false).unwrap();
    result.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}
