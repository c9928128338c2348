//! A carrier of the application: UDP between two ports of loopback, with a byte of its own before
//! each datagram. It is registered by the builder only.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use wraith::carrier::{
    Addr, AddressTable, BoxFuture, Carrier, CarrierFactory, CustomWay, DatagramMover, MoverFactory,
    MoverLimits, OpenCarrier, Reach, Readiness, Received, RecvSlots, ResolveError, SendBatch,
    SendResult, Way, WaysChanged,
};
use wraith::{ErrorKind, Node, OnConflict, PathKind, Service, Ticket};

use crate::support::{LOOPBACK, carries, file, node, nowhere, offered, within};

const KIND: u16 = 300;
const MOVER: u64 = 0x6c69_6e65;
const MARK: u8 = 0xc7;
const MTU: usize = 1400;

/// Makes lines, and counts the datagrams on all of them.
#[derive(Clone, Debug, Default)]
struct Lines(Arc<AtomicU64>);

/// One end of lines to others. Its way is its port.
#[derive(Debug)]
struct Line {
    socket: UdpSocket,
    port: u16,
    moved: Arc<AtomicU64>,
}

#[derive(Clone, Debug)]
struct SharedLine(Arc<Line>);

#[derive(Debug)]
struct LineMover {
    line: Arc<Line>,
    names: AddressTable,
}

impl CarrierFactory for Lines {
    fn open(&self, _: WaysChanged) -> io::Result<OpenCarrier> {
        let socket = UdpSocket::bind((LOOPBACK.ip(), 0))?;
        socket.set_nonblocking(true)?;
        let port = socket.local_addr()?.port();
        let line = SharedLine(Arc::new(Line { socket, port, moved: Arc::clone(&self.0) }));
        Ok(OpenCarrier { carrier: Arc::new(line.clone()), mover: Arc::new(line) })
    }
}

impl Carrier for SharedLine {
    fn kind(&self) -> u16 {
        KIND
    }

    fn own_ways(&self, _: Option<IpAddr>) -> Vec<Way> {
        vec![way(&self.0.port.to_be_bytes())]
    }

    fn resolve<'a>(&'a self, way: &'a Way) -> BoxFuture<'a, Result<Addr, ResolveError>> {
        let bytes = way.custom().map(CustomWay::bytes).filter(|bytes| bytes.len() == 2);
        let resolved = bytes.map(|bytes| Addr::Custom { kind: MOVER, bytes: bytes.into() });
        let no_port = || ResolveError::Final("that is no port".to_owned());
        Box::pin(std::future::ready(resolved.ok_or_else(no_port)))
    }
}

impl MoverFactory for SharedLine {
    fn kind(&self) -> u64 {
        MOVER
    }

    fn bind(&self, names: AddressTable) -> io::Result<Box<dyn DatagramMover>> {
        Ok(Box::new(LineMover { line: Arc::clone(&self.0), names }))
    }
}

impl DatagramMover for LineMover {
    fn caps(&self) -> MoverLimits {
        MoverLimits { mtu_max: MTU as u16, segments_max: 8 }
    }

    fn readiness(&self) -> Readiness<'_> {
        Readiness { fd: self.line.socket.as_fd(), room_is_writable: true }
    }

    fn send(&mut self, batch: SendBatch<'_>) -> SendResult {
        let SendBatch { to, datagrams, segment, .. } = batch;
        let name = self.names.name(to).expect("an address of this mover");
        let to = SocketAddr::new(LOOPBACK.ip(), u16::from_be_bytes([name[0], name[1]]));
        for (i, datagram) in datagrams.chunks(segment).enumerate() {
            match self.line.socket.send_to(&[&[MARK], datagram].concat(), to) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return SendResult::Blocked(i * segment);
                }
                // Lost, as in any network.
                _ => drop(self.line.moved.fetch_add(1, Ordering::Relaxed)),
            }
        }
        SendResult::All
    }

    fn receive(&mut self, slots: &mut RecvSlots) -> io::Result<usize> {
        let mut framed = [0; MTU + 1];
        for slot in 0..slots.len() {
            let (len, from) = loop {
                match self.line.socket.recv_from(&mut framed) {
                    Ok((len, from)) if len > 1 && framed[0] == MARK => break (len - 1, from),
                    Ok(_) => {}
                    Err(_) => return Ok(slot),
                }
            };
            slots.buffer(slot)[..len].copy_from_slice(&framed[1..=len]);
            let from = self.names.path(&from.port().to_be_bytes());
            slots.set(slot, Received { from, ecn: None, len, stride: len });
        }
        Ok(slots.len())
    }
}

fn way(bytes: &[u8]) -> Way {
    CustomWay::new(KIND, bytes).unwrap().into()
}

fn node_with(lines: &Lines) -> Node {
    nowhere().carrier(Arc::new(lines.clone())).build().unwrap()
}

/// Returns the ticket with its custom ways only.
fn by_carrier_only(ticket: &Ticket) -> Ticket {
    let ways: Vec<_> = ticket.reach().custom().cloned().collect();
    assert_eq!(ways.iter().map(CustomWay::kind).collect::<Vec<_>>(), [KIND]);
    ticket.at(Reach::default().with(ways))
}

async fn served(lines: &Lines) -> (Service, Ticket) {
    let service = node_with(lines).serve().start().await.unwrap();
    // As a person passes it on.
    let ticket = service.ticket().unwrap().to_string().parse().unwrap();
    (service, ticket)
}

#[tokio::test]
async fn a_service_is_called_over_the_carrier() {
    let lines = Lines::default();
    let (service, ticket) = served(&lines).await;
    let calling = node_with(&lines);
    let open = calling.connect(by_carrier_only(&ticket)).open();
    let (accepted, opened) = within(async { tokio::join!(service.accept(), open) }).await;
    let (accepted, opened) = (accepted.unwrap(), opened.unwrap());
    for connection in [&accepted, &opened] {
        assert!(matches!(connection.remote(), Addr::Custom { kind: MOVER, .. }));
        assert_eq!(calling.route(&connection.remote()).kind, PathKind::Custom);
    }
    carries(&opened, &accepted).await;
    assert!(lines.0.load(Ordering::Relaxed) > 4, "other datagrams carried it");
}

#[tokio::test]
async fn files_are_transferred_over_the_carrier() {
    let (lines, folder) = (Lines::default(), tempfile::tempdir().unwrap());
    let (source, target) = (folder.path().join("film"), folder.path().join("got"));
    file(&source, 1, 3_000_000);
    let (offer, ticket) = offered(&node_with(&lines), source.clone()).await;
    let fetch = node_with(&lines).fetch(by_carrier_only(&ticket), target.clone());
    within(fetch.accept_all(OnConflict::Rename).finished()).await.unwrap();
    within(offer.finished()).await.unwrap();
    assert!(std::fs::read(source).unwrap() == std::fs::read(target.join("film")).unwrap());
    assert!(lines.0.load(Ordering::Relaxed) > 3_000_000 / MTU as u64, "it went elsewhere");
}

#[tokio::test]
async fn a_peer_without_the_carrier_passes_its_ways_over() {
    let (service, ticket) = served(&Lines::default()).await;
    let only = by_carrier_only(&ticket);
    let error = within(node().connect(only).open()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    let calling = node();
    let open = calling.connect(ticket).open();
    let (accepted, opened) = within(async { tokio::join!(service.accept(), open) }).await;
    assert_eq!(accepted.unwrap().peer(), calling.id());
    assert_ne!(calling.route(&opened.unwrap().remote()).kind, PathKind::Custom);
}

#[tokio::test]
async fn hostile_ways_do_not_cost_the_peer_its_good_one() {
    let lines = Lines::default();
    let (service, ticket) = served(&lines).await;
    let good = by_carrier_only(&ticket).reach().ways()[0].clone();
    let unknown = (1000..2000).map(|kind| CustomWay::new(kind, [1; 20]).unwrap());
    let lies = Reach::default().with([way(b""), way(&[9; 255]), good]).with(unknown);
    let calling = node_with(&lines);
    let open = calling.connect(ticket.at(lies)).open();
    let (accepted, opened) = within(async { tokio::join!(service.accept(), open) }).await;
    drop((accepted.unwrap(), opened.unwrap()));
    let lie = ticket.at(Reach::default().with([way(b"lie")]));
    let calling = calling.connect(lie).timeout(Duration::from_secs(5)).open();
    let error = within(calling).await.unwrap_err();
    assert!(error.to_string().contains("carrier 300: that is no port"), "{error}");
}

#[tokio::test]
async fn with_relays_only_no_other_carrier_is_used() {
    let lines = Lines::default();
    let hidden = nowhere().carrier(Arc::new(lines.clone())).relay_only().build().unwrap();
    let service = hidden.serve().start().await.unwrap();
    assert!(service.ticket().unwrap().reach().is_empty());
}

#[tokio::test]
async fn two_carriers_of_one_kind_are_refused() {
    let lines = Arc::new(Lines::default());
    let twice = nowhere().carrier(Arc::clone(&lines) as _).carrier(lines).build().unwrap();
    let error = twice.serve().start().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    assert!(error.to_string().contains("same kind"), "{error}");
}
