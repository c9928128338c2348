//! Parallel connections carry chunks of large files too (SPEC §10.13).

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::*;
use wraith_transfer::message::{Accept, Fetch, Hello, Message, Offer, ParallelPorts};
use wraith_transfer::{
    Event, FileStatus, ParallelConnections, ReceiveOptions, Role, SendOptions, TransferError,
    close, receive, serve,
};
use wraith_transport::{AccessKey, Config, Endpoint, EndpointConfig, block_on, block_on_timeout};

/// Large enough that every parallel connection gets a share, unless the machine is very busy.
const LARGE: usize = 400 * CHUNK + 123;

fn senders(most: usize) -> ParallelConnections {
    ParallelConnections::new(most, || endpoint(sender_identity(), true)).at_once()
}

fn receivers(most: usize) -> ParallelConnections {
    ParallelConnections::new(most, || endpoint(receiver_identity(), false))
}

/// A large file, one of a few chunks, and small ones.
fn folders() -> Folders {
    let folders = Folders::new();
    folders.file("tree/large", &noise(1, LARGE));
    folders.file("tree/middle", &noise(2, 5 * CHUNK));
    (0..20).for_each(|n| drop(folders.file(&format!("tree/small/{n}"), &noise(n, 1000))));
    folders
}

fn send_options(folders: &Folders, parallel: ParallelConnections) -> SendOptions {
    let mut options = SendOptions::new(roots(&folders.from()), SECRET);
    options.parallel = parallel;
    options
}

/// Runs a transfer, which must succeed.
fn run(folders: &Folders, theirs: ParallelConnections, ours: ParallelConnections) -> (u64, u64) {
    let send = send_options(folders, theirs);
    let options = ReceiveOptions { parallel: ours, ..receive_options(&folders.to()) };
    let (sent, received) = transfer(&send, options);
    let (sent, received) = (sent.unwrap(), received.unwrap());
    assert_eq!(tree(&folders.to()), tree(&folders.from()));
    let total = (LARGE + 5 * CHUNK + 20 * 1000) as u64;
    assert_eq!((sent.bytes_moved, received.bytes_moved), (total, total));
    (sent.connections, received.connections)
}

/// On a busy machine a transfer may be over before the last connection has carried anything, but
/// not each time.
const ATTEMPTS: usize = 6;

/// Repeats transfers until one has used `wanted` connections; none may use more. Otherwise fails
/// with the highest number used.
fn reaches(wanted: u64, theirs: usize, ours: usize) {
    let mut most = (0, 0);
    for _ in 0..ATTEMPTS {
        let used = run(&folders(), senders(theirs), receivers(ours));
        assert!(used.0 <= wanted && used.1 <= wanted, "{used:?} of {wanted}");
        most = most.max(used);
        if most == (wanted, wanted) {
            return;
        }
    }
    panic!("{most:?} of {wanted} in {ATTEMPTS} transfers");
}

#[test]
fn the_chunks_of_a_large_file_are_spread_over_all_connections() {
    reaches(4, 3, 3);
}

#[test]
fn the_side_that_wants_fewer_decides() {
    reaches(2, 1, 3);
    reaches(2, 3, 1);
    assert_eq!(run(&folders(), senders(3), ParallelConnections::default()), (1, 1));
    assert_eq!(run(&folders(), ParallelConnections::default(), receivers(3)), (1, 1));
}

#[test]
fn no_more_than_three_are_made_whatever_is_asked_for() {
    reaches(4, 100, 100);
}

#[test]
fn connections_that_do_not_come_about_are_done_without() {
    let deaf = || {
        let core = EndpointConfig { connections_max: 0, ..EndpointConfig::new(sender_identity()) };
        Endpoint::bind(Config::new(core).bind(([127, 0, 0, 1], 0)))
    };
    let deaf = ParallelConnections::new(3, deaf).at_once();
    assert_eq!(run(&folders(), deaf, receivers(3)), (1, 1));
    let none = || ParallelConnections::new(3, || Err(std::io::ErrorKind::AddrInUse.into()));
    assert_eq!(run(&folders(), none().at_once(), receivers(3)), (1, 1));
    assert_eq!(run(&folders(), senders(3), none()), (1, 1));
}

#[test]
fn a_slow_or_short_transfer_opens_none() {
    let parallel =
        ParallelConnections::new(3, || panic!("nothing of this needs a further connection"));
    assert_eq!(run(&folders(), parallel.clone(), receivers(3)), (1, 1));
}

#[test]
fn a_stranger_at_the_port_of_a_parallel_connection_does_not_take_the_place_of_the_receiver() {
    let met = (0..ATTEMPTS).any(|_| run_beside_a_stranger() == (2, 2));
    assert!(met, "the receiver was kept out");
}

/// Parallel connections of a sender, and their endpoints once they are made.
fn recorded(most: usize, accept: bool) -> (ParallelConnections, Arc<Mutex<Vec<Endpoint>>>) {
    let made: Arc<Mutex<Vec<Endpoint>>> = Arc::default();
    let theirs = Arc::clone(&made);
    let parallel = ParallelConnections::new(most, move || {
        let endpoint = endpoint(sender_identity(), accept)?;
        theirs.lock().unwrap().push(endpoint.clone());
        Ok(endpoint)
    });
    (parallel, made)
}

fn run_beside_a_stranger() -> (u64, u64) {
    let folders = folders();
    // As the program does: without an access key before the transfer sets one.
    let (parallel, made) = recorded(1, false);
    // A stranger with the sender's NodeId dials first, once the receiver has the port.
    let late = ParallelConnections::new(1, move || {
        let address = [made.lock().unwrap()[0].local_addr()];
        let stranger = endpoint(identity(9), false)?;
        let peer = sender_identity().node_id();
        for access_key in [AccessKey::public(peer), AccessKey::of_ticket(&SECRET, peer)] {
            let dialled = stranger.connect(&address, peer, &access_key);
            assert!(block_on_timeout(dialled, Duration::from_millis(50)).is_none(), "answered");
        }
        endpoint(receiver_identity(), false)
    });
    run(&folders, parallel.at_once(), late)
}

#[test]
fn a_parallel_connection_that_is_lost_ends_the_transfer_which_is_resumed() {
    let folders = folders();
    let (parallel, made) = recorded(2, true);
    let send = send_options(&folders, parallel.at_once());
    let mut options = ReceiveOptions { parallel: receivers(2), ..receive_options(&folders.to()) };
    // All small files are resolved: the large one is in progress.
    let settled = AtomicUsize::new(0);
    options.events = Arc::new(move |event: Event<'_>| {
        if matches!(event, Event::File { status: FileStatus::Done, .. })
            && settled.fetch_add(1, Relaxed) == 5
        {
            made.lock().unwrap().iter().for_each(Endpoint::start_close);
        }
    });
    let (sent, received) = transfer(&send, options);
    if let (Err(sent), Err(received)) = (&sent, &received) {
        assert!(matches!(sent, TransferError::NetworkLost { .. }), "{sent}");
        assert!(matches!(received, TransferError::NetworkLost { .. }), "{received}");
        let moved = transfer_all(&folders).1.bytes_moved;
        assert!(moved < LARGE as u64, "nothing was kept: {moved}");
    } else {
        // The transfer was over before the parallel connections were lost.
        assert!(sent.is_ok() && received.is_ok(), "{sent:?} {received:?}");
    }
    assert_eq!(tree(&folders.to()), tree(&folders.from()));
}

#[test]
fn a_parallel_connection_on_which_the_receiver_permits_no_stream_ends_with_the_transfer() {
    const LIMIT: Duration = Duration::from_secs(10);
    let folders = folders();
    let send = send_options(&folders, senders(1));
    let mut core = EndpointConfig::new(receiver_identity());
    core.transport.streams_max = 0;
    let strict = Endpoint::bind(Config::new(core).bind(([127, 0, 0, 1], 0))).unwrap();
    let link = link();
    let (ended_tx, ended) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let (sender, send) = (link.sender.clone(), &send);
        scope.spawn(move || ended_tx.send(serve(sender, send).is_err()));
        let first = &link.receiver;
        let (mut out, mut recv) = block_on(first.open_stream()).unwrap();
        for message in [
            Message::Hello(Hello { version: 1, role: Role::Receiver, features: None }),
            Message::Fetch(Fetch { secret: SECRET, instance: None, stream: None, push: None }),
            Message::Accept(Accept { parallel: Some(1), ..Accept::default() }),
        ] {
            block_on(out.write_all(&message.to_bytes())).unwrap();
        }
        assert!(matches!(read_message(&mut recv), Message::Hello(_)));
        assert!(matches!(read_message(&mut recv), Message::Offer(_)));
        let Message::ParallelPorts(named) = read_message(&mut recv) else { panic!("no ports") };
        let secret = first.path().export_secret(b"wraith/2 parallel connections");
        let (peer, access_key) = (sender_identity().node_id(), AccessKey::of_connection(&secret));
        let address = std::net::SocketAddr::from(([127, 0, 0, 1], named.ports[0]));
        let dialled = block_on_timeout(strict.connect([address], peer, &access_key), LIMIT);
        let _parallel = dialled.unwrap().unwrap();
        // Enough to accept the connection and to wait for a stream of it.
        std::thread::sleep(Duration::from_millis(300));
        first.close(close::CANCELLED, "");
        assert_eq!(ended.recv_timeout(LIMIT), Ok(true), "the sender waits for a stream");
    });
}

#[test]
fn a_sender_that_names_more_ports_than_were_asked_for_is_cut_off() {
    let folders = Folders::new();
    let link = link();
    let connection = link.sender.clone();
    let liar = std::thread::spawn(move || {
        block_on(async {
            let (mut send, mut recv) = connection.accept_stream().await.unwrap();
            let hello = Message::Hello(Hello { version: 1, role: Role::Sender, features: None });
            send.write_all(&hello.to_bytes()).await.unwrap();
            let id = wraith_crypto::kdf::derive("wraith/1 transfer id", &SECRET);
            let offer = Offer {
                transfer_id: *id.first_chunk().unwrap(),
                data_streams: 1,
                ..Offer::default()
            };
            send.write_all(&Message::Offer(offer).to_bytes()).await.unwrap();
            let (mut manifest, _) = connection.open_stream().await.unwrap();
            manifest.write_all(&[1]).await.unwrap();
            let (mut data, _) = connection.open_stream().await.unwrap();
            data.write_all(&[2]).await.unwrap();
            let parallel = Message::ParallelPorts(ParallelPorts { ports: vec![1, 2, 3] });
            send.write_all(&parallel.to_bytes()).await.unwrap();
            let mut rest = vec![0; 1000];
            while recv.read(&mut rest).await.is_ok_and(|read| read > 0) {}
            connection.closed().await
        })
    });
    let parallel = ParallelConnections::new(2, || panic!("it must not dial"));
    let options = ReceiveOptions { parallel, ..receive_options(&folders.to()) };
    let error = receive(link.receiver.clone(), options).unwrap_err();
    assert!(
        matches!(&error, TransferError::Protocol { peer: Role::Sender, what } if what.contains("connections")),
        "{error}"
    );
    liar.join().unwrap();
}
