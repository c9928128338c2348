//! Services are found as offers are: by code, by contacts, through a relay; and they share the
//! node's socket with its other roles.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::AsyncReadExt;
use tokio::task::JoinSet;
use wraith::state::StateError;
use wraith::{
    Connection, ErrorKind, Event, Node, NodeBuilder, NodeId, PathKind, RelayServer, Service,
    ServiceAddress,
};
use wraith_relay::{Options, Server};

use crate::support::{
    LOOPBACK, carries, event, file, know, lan_node, network_with_server, node, node_at, node_in,
    nowhere, own_network, server, soon, within,
};

/// Accepts a connection, answers its only stream with what came, and returns the peer.
async fn echo_once(service: &Service) -> NodeId {
    let connection = within(service.accept()).await.unwrap();
    let (mut send, mut receive) = within(connection.accept_stream()).await.unwrap();
    let mut got = Vec::new();
    within(receive.read_to_end(&mut got)).await.unwrap();
    within(send.write_all(&got)).await.unwrap();
    send.finish().unwrap();
    within(connection.closed()).await;
    connection.peer()
}

/// Sends some bytes and checks that they come back.
async fn checked_echo(connection: Connection) {
    let (mut send, mut receive) = within(connection.open_stream()).await.unwrap();
    within(send.write_all(b"are you there?")).await.unwrap();
    send.finish().unwrap();
    let mut got = String::new();
    within(receive.read_to_string(&mut got)).await.unwrap();
    assert_eq!(got, "are you there?");
    connection.close(0x100, "");
}

async fn relay(folder: &tempfile::TempDir, tasks: &mut JoinSet<()>) -> SocketAddr {
    let options = Options::new(LOOPBACK, folder.path());
    let server = Server::bind(options).await.unwrap();
    let address = server.local_addr().unwrap();
    tasks.spawn(async move { server.run_until(std::future::pending()).await.unwrap() });
    address
}

fn at_relay(address: SocketAddr) -> NodeBuilder {
    let (host, port) = (address.ip().to_string(), address.port());
    nowhere().relay(RelayServer { host, port, token: None }).peer_relays(wraith::PeerRelays::Any)
}

#[tokio::test]
async fn a_code_leads_to_a_service_on_the_local_network_and_at_a_server() {
    let (_network, _tasks, server) = network_with_server().await;
    for make in [&lan_node as &dyn Fn() -> Node, &|| node_at(server)] {
        let (anna, bob) = (make(), make());
        let service = within(bob.serve().by_code().start()).await.unwrap();
        assert!(service.ticket().is_none() && service.places().len() == 1);
        let code = service.code().unwrap().clone();
        let calling = async {
            let connection = within(anna.connect(code.clone()).open()).await.unwrap();
            assert_eq!(connection.peer(), bob.id());
            checked_echo(connection).await;
        };
        let (peer, ()) = tokio::join!(echo_once(&service), calling);
        assert_eq!(peer, anna.id());
        let spent = within(anna.connect(code).open()).await.unwrap_err();
        assert_eq!(spent.kind(), ErrorKind::WrongCode, "{spent}");
    }
}

#[tokio::test]
async fn a_wrong_code_burns_the_code_and_ends_the_service() {
    let _network = own_network();
    let (anna, bob) = (lan_node(), lan_node());
    let service = within(bob.serve().by_code().start()).await.unwrap();
    let mut events = service.events();
    let right = service.code().unwrap().to_string();
    let (nameplate, _) = right.split_once('-').unwrap();
    let wrong: wraith::Code = format!("{nameplate}-acid-accent").parse().unwrap();
    assert_ne!(wrong.to_string(), right, "one code in a million");
    let error = within(anna.connect(wrong).open()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WrongCode, "{error}");
    event(&mut events, |event| matches!(event, Event::CodeBurned(_)).then_some(())).await;
    assert!(soon(service.accept()).await.is_none());
    assert_eq!(soon(service.finished()).await.unwrap_err().kind(), ErrorKind::WrongCode);
}

#[tokio::test]
async fn only_the_peer_with_the_code_reaches_the_service() {
    let _network = own_network();
    let (anna, bob) = (lan_node(), lan_node());
    let service = within(bob.serve().by_code().start()).await.unwrap();
    // Without the ticket there is no access key, so even the right address gets no answer.
    let other = within(bob.serve().start()).await.unwrap();
    let stolen = other.ticket().unwrap().clone();
    let code = service.code().unwrap().clone();
    let calling = async { checked_echo(within(anna.connect(code).open()).await.unwrap()).await };
    let ((), peer) = tokio::join!(calling, echo_once(&service));
    assert_eq!(peer, anna.id());
    // The ticket of one service does not open another.
    let connection = within(anna.connect(stolen).open()).await.unwrap();
    assert!(tokio::time::timeout(Duration::from_millis(300), service.accept()).await.is_err());
    drop(connection);
}

#[tokio::test]
async fn a_contact_is_reached_by_name_at_its_address_and_at_meeting_places() {
    let (_network, _tasks, server) = network_with_server().await;
    for make in [&node as &dyn Fn() -> Node, &lan_node, &|| node_at(server)] {
        let (anna, bob) = (make(), make());
        know(&bob, "anna", anna.id(), None);
        let start = bob.serve().for_contacts("echo").start();
        let service = within(start).await.unwrap();
        let has_place = !service.places().is_empty();
        let at = (!has_place).then(|| SocketAddr::new(LOOPBACK.ip(), service.address().port()));
        let contact = know(&anna, "bob", bob.id(), at);
        let address = ServiceAddress::of_contact(contact.clone(), "echo");
        let calling = async {
            checked_echo(within(anna.connect(address).open()).await.unwrap()).await;
        };
        let (peer, ()) = tokio::join!(echo_once(&service), calling);
        assert_eq!(peer, anna.id());
        let limit = Duration::from_millis(700);
        let other = ServiceAddress::of_contact(contact, "time");
        let error = within(anna.connect(other).timeout(limit).open()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "no service of that name: {error}");
    }
}

#[tokio::test]
async fn a_contact_is_admitted_and_removed_without_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    for bob in [node_in(folder.path()), node()] {
        admit_and_remove(&bob).await;
    }
}

/// Adds a contact to a running service, and removes it again.
async fn admit_and_remove(bob: &Node) {
    let anna = node();
    let service = within(bob.serve().for_contacts("echo").start()).await.unwrap();
    let at = SocketAddr::new(LOOPBACK.ip(), service.address().port());
    let contact = know(&anna, "bob", bob.id(), Some(at));
    let address = || ServiceAddress::of_contact(contact.clone(), "echo");
    let limit = Duration::from_millis(700);
    let stranger = within(anna.connect(address()).timeout(limit).open()).await.unwrap_err();
    assert_eq!(stranger.kind(), ErrorKind::NotFound);
    know(bob, "anna", anna.id(), None);
    let calling = async {
        checked_echo(within(anna.connect(address()).open()).await.unwrap()).await;
    };
    tokio::join!(echo_once(&service), calling);
    // It waits for the user when the contact is removed.
    let queued = within(anna.connect(address()).open()).await.unwrap();
    let (mut send, _receive) = within(queued.open_stream()).await.unwrap();
    send.write_all(b"is anybody there?").await.unwrap();
    send.finish().unwrap();
    within(send.acked()).await.unwrap();
    let removed = bob.contacts().change(|book| -> Result<_, StateError> {
        book.remove(&"anna".parse().unwrap())?;
        Ok(())
    });
    removed.unwrap();
    // The service reads the list in a moment. Until then it admits her, and closes the connection.
    let refused = async {
        loop {
            let connected = anna.connect(address()).timeout(limit).open().await;
            if connected.is_err_and(|error| error.kind() == ErrorKind::NotFound) {
                break;
            }
        }
    };
    within(refused).await;
    let accepting = tokio::time::timeout(Duration::from_millis(300), service.accept());
    assert!(accepting.await.is_err(), "a removed contact was handed out");
    soon(queued.closed()).await;
}

#[tokio::test]
async fn a_service_for_contacts_has_no_socket_of_its_own() {
    for builder in [node().serve().isolated(), node().serve().bind_to(LOOPBACK)] {
        let error = within(builder.for_contacts("echo").start()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    }
}

#[tokio::test]
async fn one_peer_leaves_room_for_others_in_the_queue() {
    let (greedy, other) = (node(), node());
    let service = within(node().serve().start()).await.unwrap();
    let ticket = service.ticket().unwrap().clone();
    let mut held = Vec::new();
    for _ in 0..70 {
        held.push(within(greedy.connect(ticket.clone()).open()).await.unwrap());
    }
    let is_refused = |held: &[Connection]| held.iter().any(|c| c.close_reason().is_some());
    within(crate::support::until(|| is_refused(&held))).await;
    let calling = async {
        let connection = within(other.connect(ticket.clone()).open()).await.unwrap();
        checked_echo(connection).await;
    };
    let accepting = async {
        loop {
            let connection = within(service.accept()).await.unwrap();
            if connection.peer() == other.id() {
                let (mut send, mut receive) = within(connection.accept_stream()).await.unwrap();
                tokio::io::copy(&mut receive, &mut send).await.unwrap();
                send.finish().unwrap();
                connection.closed().await;
                return;
            }
        }
    };
    tokio::join!(accepting, calling);
}

#[tokio::test]
async fn a_service_is_reached_through_a_relay_by_ticket_and_by_contact() {
    let folder = tempfile::tempdir().unwrap();
    let mut tasks = JoinSet::new();
    let relay = relay(&folder, &mut tasks).await;
    let server = server(&mut tasks).await.to_string();
    let make = || at_relay(relay).rendezvous(&server).relay_only().build().unwrap();
    let (anna, bob) = (make(), make());
    know(&bob, "anna", anna.id(), None);
    let contact = know(&anna, "bob", bob.id(), None);
    let by_ticket = within(bob.serve().start()).await.unwrap();
    let by_contact = within(bob.serve().for_contacts("echo").start()).await.unwrap();
    let ticket = by_ticket.ticket().unwrap().clone();
    assert_eq!((ticket.addresses().len(), ticket.reach().relays().count()), (0, 1));
    for (service, to) in [
        (&by_ticket, ServiceAddress::Ticket(ticket)),
        (&by_contact, ServiceAddress::of_contact(contact, "echo")),
    ] {
        let calling = async {
            let connection = within(anna.connect(to).open()).await.unwrap();
            assert_eq!(anna.route(&connection.remote()).kind, PathKind::Relay);
            checked_echo(connection).await;
        };
        let (peer, ()) = tokio::join!(echo_once(service), calling);
        assert_eq!(peer, anna.id());
    }
}

#[tokio::test]
async fn a_relayed_connection_outlives_its_service_and_its_dialler() {
    let folder = tempfile::tempdir().unwrap();
    let mut tasks = JoinSet::new();
    let relay = relay(&folder, &mut tasks).await;
    let make = || at_relay(relay).relay_only().build().unwrap();
    let (anna, bob) = (make(), make());
    let service = within(bob.serve().start()).await.unwrap();
    let ticket = service.ticket().unwrap().clone();
    let open = anna.connect(ticket).open();
    let (accepted, opened) = within(async { tokio::join!(service.accept(), open) }).await;
    let (accepted, opened) = (accepted.unwrap(), opened.unwrap());
    drop(service);
    carries(&opened, &accepted).await;
}

/// Accepts connections and counts them, until the service ends. Keeps all of them.
fn counted(service: Service) -> (Arc<AtomicUsize>, tokio::task::JoinHandle<()>) {
    let count = Arc::<AtomicUsize>::default();
    let counter = Arc::clone(&count);
    let accepting = tokio::spawn(async move {
        let mut kept = Vec::new();
        while let Some(connection) = service.accept().await {
            counter.fetch_add(1, Ordering::Relaxed);
            kept.push(connection);
        }
    });
    (count, accepting)
}

#[tokio::test]
async fn many_callers_share_one_connection_until_it_is_idle_or_lost() {
    let idle = Duration::from_millis(300);
    let anna = nowhere().idle_connections(idle).build().unwrap();
    let service = within(node().serve().start()).await.unwrap();
    let ticket = service.ticket().unwrap().clone();
    let (accepted, accepting) = counted(service);
    let mut calls = JoinSet::new();
    for _ in 0..50 {
        calls.spawn(anna.connect(ticket.clone()).shared());
    }
    let mut connections = within(calls.join_all()).await;
    let first = connections.pop().unwrap().unwrap();
    assert!(
        connections.iter().all(|connection| connection.as_ref().unwrap().peer() == first.peer())
    );
    within(crate::support::until(|| accepted.load(Ordering::Relaxed) == 1)).await;
    drop(connections);
    // It is kept while one caller has it, however long that is.
    tokio::time::sleep(3 * idle).await;
    assert!(first.close_reason().is_none());
    drop(first);
    let again = within(anna.connect(ticket.clone()).shared()).await.unwrap();
    assert!(again.close_reason().is_none());
    assert_eq!(accepted.load(Ordering::Relaxed), 1, "it was kept");
    // A lost one is made anew.
    again.close(0x100, "");
    within(again.closed()).await;
    let anew = within(anna.connect(ticket.clone()).shared()).await.unwrap();
    within(crate::support::until(|| accepted.load(Ordering::Relaxed) == 2)).await;
    // Watches the connection without keeping it.
    let path = anew.path();
    drop((anew, again));
    let mut events = path.events();
    within(async { while events.next().await.is_ok() {} }).await;
    let third = within(anna.connect(ticket.clone()).shared()).await.unwrap();
    within(crate::support::until(|| accepted.load(Ordering::Relaxed) == 3)).await;
    drop(third);
    accepting.abort();
}

#[tokio::test]
async fn a_caller_that_gives_up_leaves_the_dialling_to_the_next() {
    let anna = node();
    let service = within(node().serve().start()).await.unwrap();
    let ticket = service.ticket().unwrap().clone();
    let (_accepted, accepting) = counted(service);
    let mut calls = JoinSet::new();
    for limit in [Duration::ZERO, crate::support::PATIENCE] {
        let call = anna.connect(ticket.clone()).shared();
        calls.spawn(async move { tokio::time::timeout(limit, call).await });
    }
    let ended: Vec<_> = within(calls.join_all()).await;
    assert_eq!(ended.iter().filter(|ended| matches!(ended, Ok(Ok(_)))).count(), 1);
    accepting.abort();
}

#[tokio::test]
async fn waiting_callers_share_a_failure_instead_of_dialling_in_turn() {
    let silent = std::net::UdpSocket::bind(LOOPBACK).unwrap();
    silent.set_nonblocking(true).unwrap();
    let ticket = wraith::Ticket::new(
        node().id(),
        wraith::Capability::from_bytes([7; 16]),
        vec![silent.local_addr().unwrap()],
    );
    let (anna, ticket) = (node(), ticket.of_service());
    let mut calls = JoinSet::new();
    for _ in 0..20 {
        let call = anna.connect(ticket.clone()).timeout(Duration::from_millis(200)).shared();
        calls.spawn(call);
    }
    for ended in within(calls.join_all()).await {
        assert_eq!(ended.unwrap_err().kind(), ErrorKind::NotFound);
    }
    let datagrams = std::iter::from_fn(|| silent.recv_from(&mut [0; 2048]).ok()).count();
    assert!((2..20).contains(&datagrams), "{datagrams}: an attempt has two or four");
}

#[tokio::test]
async fn a_closed_node_leaves_no_task_of_its_shared_connections() {
    let metrics = tokio::runtime::Handle::current().metrics();
    let service = within(node().serve().start()).await.unwrap();
    let before = metrics.num_alive_tasks();
    let anna = node();
    let shared = anna.connect(service.ticket().unwrap().clone()).shared();
    let shared = within(shared).await.unwrap();
    within(anna.close()).await;
    shared.close(0x100, "");
    drop(shared);
    within(crate::support::until(|| metrics.num_alive_tasks() <= before + 1)).await;
}

/// Runs a test in a process of its own, with a relay and a folder with a film.
fn alone_at_a_relay(name: &str, test: impl AsyncFnOnce(&TempDir, SocketAddr)) {
    crate::support::alone_in_a_process(name, || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let mut tasks = JoinSet::new();
            let relay = relay(&folder, &mut tasks).await;
            file(&folder.path().join("film"), 1, 1000);
            test(&folder, relay).await;
        });
    });
}

#[test]
fn an_offer_that_is_cancelled_at_its_start_leaves_no_thread() {
    const NAME: &str = "services::an_offer_that_is_cancelled_at_its_start_leaves_no_thread";
    alone_at_a_relay(NAME, async |folder, relay| {
        for round in 0..60 {
            let node = at_relay(relay).build().unwrap();
            let mut start = Box::pin(node.offer(folder.path().join("film")).start());
            for _ in 0..round % 6 {
                let polled = std::future::poll_fn(|cx| {
                    std::task::Poll::Ready(start.as_mut().poll(cx).is_ready())
                });
                if polled.await {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(round / 6)).await;
            }
            drop(start);
        }
        within(crate::support::until(|| crate::support::threads().is_empty())).await;
    });
}

#[tokio::test]
async fn roles_share_one_port_and_an_isolated_one_has_its_own() {
    let folder = tempfile::tempdir().unwrap();
    file(&folder.path().join("film"), 1, 1000);
    let node = node();
    let offer = || node.offer(folder.path().join("film")).by_ticket();
    let shared = within(offer().start()).await.unwrap();
    let isolated = within(offer().isolated().start()).await.unwrap();
    let listener = within(node.listen(folder.path().join("to")).start()).await.unwrap();
    let service = within(node.serve().start()).await.unwrap();
    let apart = within(node.serve().isolated().start()).await.unwrap();
    let port = listener.address().port();
    let port_of = |offer: &wraith::Offer| offer.addresses()[0].port();
    assert_eq!((port_of(&shared), service.address().port()), (port, port));
    assert!(port_of(&isolated) != port && apart.address().port() != port);
    assert_ne!(port_of(&isolated), apart.address().port());
    assert!(listener.usual_taken().is_none(), "the roles that accept use the usual port");
    // The end of one role leaves the others, also at a shared socket.
    soon(shared.cancel()).await.unwrap_err();
    drop(listener);
    let caller = crate::support::node();
    let open = caller.connect(service.ticket().unwrap().clone()).open();
    within(open).await.unwrap();
}

#[tokio::test]
async fn a_panic_in_one_role_leaves_the_others() {
    #[derive(Debug)]
    struct Panics;
    impl wraith::Observer for Panics {
        fn event(&self, _: Option<u64>, _: &Event) {
            panic!("an observer of this test panics");
        }
    }
    let folder = tempfile::tempdir().unwrap();
    file(&folder.path().join("film"), 1, 1000);
    let (anna, bob) = (node(), node());
    let offering = bob.offer(folder.path().join("film")).by_ticket();
    let offer = within(offering.observer(Arc::new(Panics)).start()).await.unwrap();
    let service = within(bob.serve().start()).await.unwrap();
    let fetch = anna.fetch(offer.ticket().unwrap().clone(), folder.path().join("to"));
    let fetched = within(fetch.accept_all(wraith::OnConflict::Rename).finished()).await;
    assert_eq!(fetched.unwrap_err().kind(), ErrorKind::Panicked);
    assert_eq!(within(offer.finished()).await.unwrap_err().kind(), ErrorKind::Panicked);
    let ticket = service.ticket().unwrap().clone();
    let calling = async { checked_echo(within(anna.connect(ticket).open()).await.unwrap()).await };
    tokio::join!(echo_once(&service), calling);
}

/// Returns the sockets of this process.
fn sockets() -> HashSet<PathBuf> {
    let descriptors = std::fs::read_dir("/proc/self/fd").unwrap();
    let target = |entry: std::fs::DirEntry| std::fs::read_link(entry.path()).ok();
    let targets = descriptors.flatten().filter_map(target);
    targets.filter(|target| target.to_string_lossy().starts_with("socket:")).collect()
}

#[test]
fn six_roles_and_a_relay_need_two_sockets_one_io_thread_and_one_relay_session() {
    const NAME: &str = "services::\
        six_roles_and_a_relay_need_two_sockets_one_io_thread_and_one_relay_session";
    alone_at_a_relay(NAME, async |folder, relay| {
        let node = at_relay(relay).build().unwrap();
        let before = sockets();
        let mut offers = Vec::new();
        for _ in 0..3 {
            let offer = node.offer(folder.path().join("film")).by_ticket().anew();
            offers.push(within(offer.start()).await.unwrap());
        }
        let listener = within(node.listen(folder.path().join("to")).start()).await.unwrap();
        let by_ticket = within(node.serve().start()).await.unwrap();
        let by_contact = within(node.serve().for_contacts("echo").start()).await.unwrap();
        // The walks of the offered trees end soon.
        within(crate::support::until(|| crate::support::threads() == ["wraith-io"])).await;
        // The UDP sockets for peers and for relays, and both ends of the TLS session with the
        // relay, which runs here, too.
        assert_eq!(sockets().difference(&before).count(), 4);
        let relays = |ticket: &wraith::Ticket| ticket.reach().relays().cloned().collect::<Vec<_>>();
        let mailbox = relays(by_ticket.ticket().unwrap());
        assert_eq!(mailbox.len(), 1);
        for offer in &offers {
            assert_eq!(relays(offer.ticket().unwrap()), mailbox);
        }
        drop((offers, listener, by_ticket, by_contact));
        within(crate::support::until(|| crate::support::threads().is_empty())).await;
    });
}

#[tokio::test]
async fn closing_a_service_ends_every_call_that_accepts() {
    let service = Arc::new(within(node().serve().start()).await.unwrap());
    let calls = [(); 2].map(|()| {
        let service = Arc::clone(&service);
        tokio::spawn(async move { service.try_accept().await })
    });
    within(service.close()).await;
    for call in calls {
        assert!(within(call).await.unwrap().unwrap().is_none());
    }
    assert!(within(service.accept()).await.is_none());
}

#[tokio::test]
async fn a_contact_is_found_by_its_name() {
    let (anna, bob) = (node(), node());
    let known = know(&anna, "bob", bob.id(), None);
    assert_eq!(anna.contact("bob").unwrap().node_id, known.node_id);
    assert_eq!(anna.contact("cleo").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(anna.contact("").unwrap_err().kind(), ErrorKind::InvalidInput);
}
