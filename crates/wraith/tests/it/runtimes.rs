//! Every handle is `Send + Sync`, every future is `Send`, and both kinds of tokio runtime work.

use std::fs;
use std::path::PathBuf;

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use wraith::state::StateDir;
use wraith::{
    Code, ConnectBuilder, Connection, Error, Event, Events, FetchBuilder, FetchSummary, Incoming,
    Invitation, InvitationBuilder, ListenBuilder, Listener, Node, NodeBuilder, Offer, OfferBuilder,
    OfferRequest, OfferSummary, OnConflict, Payload, ProgressReader, RecvStream, SendStream,
    Service, ServiceBuilder, Source, Target, Ticket, Transfer,
};

use crate::support::{file, node, node_at, offered, server, within};

fn is_free<T: Send + Sync + 'static>() {}

fn is_send<F: Future + Send>(_: impl FnOnce() -> F) {}

#[test]
fn every_handle_can_be_sent_and_shared() {
    is_free::<(Node, NodeBuilder, StateDir)>();
    is_free::<(OfferBuilder, Offer, OfferSummary, Payload)>();
    is_free::<(FetchBuilder, OfferRequest, Incoming, Transfer, FetchSummary, Source, Target)>();
    is_free::<(InvitationBuilder, Invitation, ListenBuilder, Listener)>();
    is_free::<(ServiceBuilder, Service, ConnectBuilder, Connection, SendStream, RecvStream)>();
    is_free::<(Events, Event, ProgressReader, Error, Code, Ticket)>();
}

/// Never called: the test is that it compiles.
#[allow(dead_code, reason = "compiling it is the test")]
#[allow(clippy::too_many_arguments, reason = "one of each")]
fn every_future_can_be_sent(
    node: Node,
    offer: Offer,
    mut asking: OfferRequest,
    incoming: Incoming,
    transfer: Transfer,
    invitation: Invitation,
    mut listener: Listener,
    service: Service,
    connection: Connection,
    mut events: Events,
    ticket: Ticket,
) {
    is_send(|| node.offer("film").start());
    is_send(|| node.fetch(ticket.clone(), PathBuf::new()).wait_for_offer());
    is_send(|| node.invite().start());
    is_send(|| node.listen("to").start());
    is_send(|| node.connect(ticket.clone()).open());
    is_send(|| offer.finished());
    is_send(|| transfer.finished());
    is_send(|| incoming.withdrawn());
    is_send(|| connection.closed());
    is_send(|| connection.open_stream());
    is_send(|| connection.accept_stream());
    is_send(|| connection.read_datagram());
    is_send(|| async { asking.incoming().await });
    is_send(|| async { listener.next().await });
    is_send(|| async { service.accept().await });
    is_send(|| async { events.next().await });
    is_send(|| offer.cancel());
    is_send(|| transfer.cancel());
    is_send(|| asking.cancel());
    is_send(|| invitation.ticket());
    is_send(|| listener.close());
}

#[allow(dead_code, reason = "compiling it is the test")]
fn every_answer_can_be_sent(one: Incoming, other: Incoming, third: Incoming) {
    is_send(|| one.refuse("no"));
    is_send(|| other.postpone());
    is_send(|| third.cancel());
}

fn both() -> [Runtime; 2] {
    let one = Builder::new_current_thread().enable_all().build().unwrap();
    let several = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    [one, several]
}

#[test]
fn a_transfer_by_code_works_on_either_runtime() {
    for runtime in both() {
        runtime.block_on(async {
            let mut tasks = JoinSet::new();
            let server = server(&mut tasks).await;
            let folder = tempfile::tempdir().unwrap();
            let bytes = file(&folder.path().join("film"), 1, 5_000_000);
            let offer =
                within(node_at(server).offer(folder.path().join("film")).start()).await.unwrap();
            let code = offer.code().unwrap().clone();
            let incoming =
                within(node_at(server).fetch(code, folder.path().join("to")).wait_for_offer())
                    .await
                    .unwrap();
            let transfer = incoming.accept(wraith::AcceptOptions::default());
            within(transfer.finished()).await.unwrap().complete().unwrap();
            within(offer.finished()).await.unwrap().complete().unwrap();
            assert!(fs::read(folder.path().join("to/film")).unwrap() == bytes, "other bytes");
        });
    }
}

#[test]
fn raw_connections_work_on_either_runtime() {
    for runtime in both() {
        runtime.block_on(async {
            let service = node().serve().start().await.unwrap();
            let opened =
                within(node().connect(service.ticket().unwrap().clone()).open()).await.unwrap();
            let accepted = within(service.accept()).await.unwrap();
            let (mut send, _) = within(opened.open_stream()).await.unwrap();
            within(send.write_all(b"hello")).await.unwrap();
            let (_, mut receive) = within(accepted.accept_stream()).await.unwrap();
            let mut got = [0; 5];
            within(receive.read_exact(&mut got)).await.unwrap();
            assert_eq!(&got, b"hello");
        });
    }
}

/// Each side of a transfer has its own runtime, and a third awaits the handles.
#[test]
fn a_node_works_on_the_runtime_that_it_was_given() {
    let ([one, several], third) = (both(), Runtime::new().unwrap());
    let folder = tempfile::tempdir().unwrap();
    file(&folder.path().join("film"), 1, 1_000_000);
    // A current-thread runtime makes progress only while it is driven.
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let handle = one.handle().clone();
    let driving = std::thread::spawn(move || one.block_on(async { drop(stopped.await) }));
    let on = |handle| crate::support::nowhere().runtime(handle).build().unwrap();
    let (sending, receiving) = (on(handle), on(several.handle().clone()));
    third.block_on(async {
        let (offer, ticket) = offered(&sending, folder.path().join("film")).await;
        let transfer =
            receiving.fetch(ticket, folder.path().join("to")).accept_all(OnConflict::Rename);
        within(transfer.finished()).await.unwrap().complete().unwrap();
        within(offer.finished()).await.unwrap().complete().unwrap();
    });
    stop.send(()).unwrap();
    driving.join().unwrap();
}
