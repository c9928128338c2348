//! Datagrams over a transport other than UDP: a pair of Unix sockets, with non-IP addresses.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use wraith_transport::mover::{
    AddressTable, DatagramMover, MoverFactory, MoverLimits, Readiness, Received, RecvSlots,
    SendBatch, SendResult,
};
use wraith_transport::{
    Addr, Bytes, Config, ConnectError, Connection, Endpoint, PathAddr, block_on,
};

use crate::support::{Pattern, V4, access_key, config, endpoint, node_id, run};

const KIND: u64 = 0x7075;
const MTU: u16 = 8000;
const LEN: u64 = 16 << 20;

/// Behaviour of a mover, set and observed by the test.
#[derive(Debug, Default)]
struct MoverBehaviour {
    /// Every second call takes only half of its datagrams.
    stutters: bool,
    /// The mover takes nothing.
    stuck: AtomicBool,
    /// Datagrams taken, and calls that did not take all.
    taken: AtomicU64,
    refusals: AtomicU64,
    /// Calls on another thread than the I/O thread.
    calls_of_callers: AtomicU64,
}

/// One end of a line with a single peer, named `peer`.
#[derive(Debug)]
struct UdpLink {
    socket: Mutex<Option<UnixDatagram>>,
    peer: &'static [u8],
    behaviour: Arc<MoverBehaviour>,
}

#[derive(Debug)]
struct UdpLinkMover {
    socket: UnixDatagram,
    names: AddressTable,
    peer: PathAddr,
    behaviour: Arc<MoverBehaviour>,
    calls: u64,
}

impl MoverFactory for UdpLink {
    fn kind(&self) -> u64 {
        KIND
    }

    fn bind(&self, names: AddressTable) -> io::Result<Box<dyn DatagramMover>> {
        let socket = self.socket.lock().unwrap().take().expect("bound once");
        socket.set_nonblocking(true)?;
        let (peer, behaviour) = (names.path(self.peer), Arc::clone(&self.behaviour));
        Ok(Box::new(UdpLinkMover { socket, names, peer, behaviour, calls: 0 }))
    }
}

impl DatagramMover for UdpLinkMover {
    fn caps(&self) -> MoverLimits {
        MoverLimits { mtu_max: MTU, segments_max: 5 }
    }

    fn readiness(&self) -> Readiness<'_> {
        Readiness { fd: self.socket.as_fd(), room_is_writable: true }
    }

    fn send(&mut self, batch: SendBatch<'_>) -> SendResult {
        let SendBatch { to, datagrams, segment, .. } = batch;
        assert!(segment <= usize::from(MTU) && datagrams.len() <= 5 * segment);
        assert!(self.names.name(to).is_some(), "an address of somebody else");
        self.calls += 1;
        if thread::current().name() != Some("wraith-io") {
            self.behaviour.calls_of_callers.fetch_add(1, Ordering::Relaxed);
        }
        let count = datagrams.len().div_ceil(segment);
        let stutters = self.behaviour.stutters && self.calls.is_multiple_of(2);
        let stuck = self.behaviour.stuck.load(Ordering::Relaxed);
        let room = if stuck {
            0
        } else if stutters {
            count / 2
        } else {
            count
        };
        for (i, datagram) in datagrams.chunks(segment).enumerate() {
            if i >= room || self.socket.send(datagram).is_err_and(|error| is_full(&error)) {
                self.behaviour.refusals.fetch_add(1, Ordering::Relaxed);
                return SendResult::Blocked(i * segment);
            }
            self.behaviour.taken.fetch_add(1, Ordering::Relaxed);
        }
        SendResult::All
    }

    fn receive(&mut self, slots: &mut RecvSlots) -> io::Result<usize> {
        for slot in 0..slots.len() {
            match self.socket.recv(slots.buffer(slot)) {
                Ok(len) => {
                    slots.set(slot, Received { from: self.peer, ecn: None, len, stride: len });
                }
                // The other end may be gone, as with UDP.
                Err(_) => return Ok(slot),
            }
        }
        Ok(slots.len())
    }
}

/// Only a full socket blocks; a peer that is gone does not.
fn is_full(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

fn custom(name: &[u8]) -> Addr {
    Addr::Custom { kind: KIND, bytes: name.into() }
}

/// Returns two endpoints, 1 and 2, on the same line and on UDP.
fn connected_endpoints(behaviours: [&Arc<MoverBehaviour>; 2]) -> [Endpoint; 2] {
    let (a, b) = UnixDatagram::pair().unwrap();
    let ends = [(1, a, &b"second"[..], behaviours[0]), (2, b, &b"first"[..], behaviours[1])];
    ends.map(|(seed, socket, peer, behaviour)| {
        let mut core = config(seed);
        core.transport.max_mtu = MTU;
        let socket = Mutex::new(Some(socket));
        let line = UdpLink { socket, peer, behaviour: Arc::clone(behaviour) };
        let mut config = Config::new(core).bind((V4, 0));
        config.movers.push(Arc::new(line));
        Endpoint::bind(config).unwrap()
    })
}

/// Connects `client` to `server` at `address`. Returns both ends.
fn connect(client: &Endpoint, server: &Endpoint, address: Addr) -> (Connection, Connection) {
    let ends = crate::support::connect(client, server, address.clone());
    assert_eq!(ends.0.remote(), address);
    ends
}

/// Runs several streams at once in each direction, with every byte checked.
fn exchange(a: &Connection, b: &Connection) {
    let sides = [(a.clone(), b.clone()), (b.clone(), a.clone())];
    let threads: Vec<_> = (0..6)
        .flat_map(|i: u64| {
            let (from, to) = sides[i as usize % 2].clone();
            let writer = thread::spawn(move || {
                run(async {
                    let (mut send, _recv) = from.open_stream().await.unwrap();
                    send.write_all(&i.to_be_bytes()).await.unwrap();
                    Pattern::new(i).write(&mut send, LEN / 6).await.unwrap();
                    send.finish().unwrap();
                    send.acked().await.unwrap();
                });
            });
            let reader = thread::spawn(move || {
                run(async {
                    let (_send, mut recv) = to.accept_stream().await.unwrap();
                    let mut seed = [0; 8];
                    recv.read_exact(&mut seed).await.unwrap();
                    let pattern = Pattern::new(u64::from_be_bytes(seed));
                    assert_eq!(pattern.verify(&mut recv).await, LEN / 6);
                });
            });
            [writer, reader]
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn a_connection_works_over_a_custom_mover() {
    let behaviours = [Arc::default(), Arc::default()];
    let [client, server] = connected_endpoints(behaviours.each_ref());
    let (a, b) = connect(&client, &server, custom(b"second"));
    assert_eq!(b.remote(), custom(b"first"));
    exchange(&a, &b);
    assert!(
        behaviours
            .iter()
            .all(|behaviour: &Arc<MoverBehaviour>| behaviour.taken.load(Ordering::Relaxed) > 100)
    );
}

#[test]
fn a_mover_with_partial_sends_loses_nothing_and_does_not_block_udp() {
    let stuttering = || Arc::new(MoverBehaviour { stutters: true, ..MoverBehaviour::default() });
    let behaviours = [stuttering(), stuttering()];
    let [client, server] = connected_endpoints(behaviours.each_ref());
    let (a, b) = connect(&client, &server, custom(b"second"));
    let (over_udp, accepted) = connect(&client, &server, server.local_addr().into());
    let beside = thread::spawn(move || exchange(&over_udp, &accepted));
    exchange(&a, &b);
    beside.join().unwrap();
    a.close(0, "");
    run(a.closed());
    run(b.closed());
    for endpoint in [&client, &server] {
        endpoint.start_close();
        run(endpoint.closed());
    }
    for (connection, behaviour) in [(&a, &behaviours[0]), (&b, &behaviours[1])] {
        let (sealed, taken) =
            (connection.stats().packets_sent, behaviour.taken.load(Ordering::Relaxed));
        // Packets, and the few datagrams of the handshake.
        assert!((sealed..sealed + 20).contains(&taken), "{taken} taken of {sealed} packets");
        assert!(behaviour.refusals.load(Ordering::Relaxed) > 50);
    }
}

#[test]
fn a_blocked_mover_does_not_block_udp_and_resumes_later() {
    let behaviours: [Arc<MoverBehaviour>; 2] = [Arc::default(), Arc::default()];
    let [client, server] = connected_endpoints(behaviours.each_ref());
    let (a, b) = connect(&client, &server, custom(b"second"));
    let (over_udp, accepted) = connect(&client, &server, server.local_addr().into());
    behaviours[0].stuck.store(true, Ordering::Relaxed);
    let (mut send, _recv) = run(a.open_stream()).unwrap();
    run(send.write_all(b"late")).unwrap();
    send.finish().unwrap();
    exchange(&over_udp, &accepted);
    assert!(behaviours[0].refusals.load(Ordering::Relaxed) > 0, "it was asked in the meantime");
    behaviours[0].stuck.store(false, Ordering::Relaxed);
    block_on(async {
        let (_send, mut recv) = b.accept_stream().await.unwrap();
        let mut got = [0; 4];
        recv.read_exact(&mut got).await.unwrap();
        assert_eq!(&got, b"late");
        send.acked().await.unwrap();
    });
}

/// The I/O thread sleeps on both movers without the lock of its state.
#[test]
fn a_small_message_leaves_on_its_callers_thread_whatever_the_number_of_movers() {
    let behaviours: [Arc<MoverBehaviour>; 2] = [Arc::default(), Arc::default()];
    let [client, server] = connected_endpoints(behaviours.each_ref());
    let (a, b) = connect(&client, &server, custom(b"second"));
    // The I/O thread may be awake at any one message.
    for _ in 0..1000 {
        run(async {
            let (mut send, _recv) = a.open_stream().await.unwrap();
            send.finish_with([Bytes::from_static(b"small")]).await.unwrap();
            let (_send, mut recv) = b.accept_stream().await.unwrap();
            while recv.read_chunk().await.unwrap().is_some() {}
            send.acked().await.unwrap();
        });
        if behaviours[0].calls_of_callers.load(Ordering::Relaxed) > 0 {
            return;
        }
    }
    panic!("every message left from the I/O thread");
}

#[test]
fn an_address_that_no_mover_serves_cannot_be_reached() {
    let client = endpoint(1, V4);
    let error = run(client.connect([custom(b"nowhere")], node_id(2), &access_key(2))).unwrap_err();
    assert!(matches!(error, ConnectError::Unreachable(_)), "{error:?}");
}

#[test]
fn the_first_answering_address_wins_whatever_its_kind() {
    let behaviours: [Arc<MoverBehaviour>; 2] = [Arc::default(), Arc::default()];
    behaviours[0].stuck.store(true, Ordering::Relaxed);
    let [client, server] = connected_endpoints(behaviours.each_ref());
    let addresses = [custom(b"second"), server.local_addr().into()];
    let connection = run(client.connect(&addresses, node_id(2), &access_key(2))).unwrap();
    assert_eq!(connection.remote(), server.local_addr());
}
