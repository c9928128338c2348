//! Services and raw connections between two nodes of this process, through the exported objects.

use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use wraith_ffi::{
    Callers, CloseCause, CloseReason, ConnectOptions, Connection, Contact, Content, Node,
    OfferOptions, Recipient, Service, ServiceAddress, ServiceOptions, TransportError, WraithError,
};

use crate::support::{node, within};

async fn serve(node: &Node, callers: Callers) -> Result<Arc<Service>, WraithError> {
    within(node.serve(callers, ServiceOptions::default())).await
}

async fn connect(node: &Node, to: ServiceAddress) -> Result<Arc<Connection>, WraithError> {
    within(
        node.connect(to, ConnectOptions { timeout: Some(Duration::from_secs(1)), shared: false }),
    )
    .await
}

/// Returns a service by ticket and both ends of a connection to it.
async fn connected() -> (Arc<Service>, Arc<Connection>, Arc<Connection>) {
    let service = serve(&node(), Callers::Ticket).await.unwrap();
    let caller = node();
    let to = ServiceAddress::Source { source: format!(" {}\n", service.ticket().unwrap()) };
    let (accepted, opened) = tokio::join!(within(service.accept()), connect(&caller, to));
    (service, accepted.unwrap().unwrap(), opened.unwrap())
}

#[tokio::test]
async fn an_echo_comes_back_to_a_contact_and_the_reason_of_the_end_arrives() {
    let (anna, bob) = (node(), node());
    let know = |of: &Node, name: &str, other: &Node, addresses| {
        of.add_contact(Contact { name: name.into(), node_id: other.node_id(), addresses })
    };
    know(&bob, "anna", &anna, Vec::new()).unwrap();
    let service = serve(&bob, Callers::Contacts { name: "echo".into() }).await.unwrap();
    assert!(service.code().is_none() && service.ticket().is_none());
    // It listens on all addresses.
    let address = format!("127.0.0.1:{}", service.address().rsplit(':').next().unwrap());
    know(&anna, "bob", &bob, vec![address.clone()]).unwrap();
    let to = ServiceAddress::Contact { contact: "bob".into(), service: "echo".into() };
    let (served, caller) = tokio::join!(within(service.accept()), connect(&anna, to));
    let (served, caller) = (served.unwrap().unwrap(), caller.unwrap());
    assert_eq!((served.peer(), caller.peer()), (anna.node_id(), bob.node_id()));
    assert_eq!((caller.route(), served.route()), ("loopback".into(), "loopback".into()));
    assert_eq!(caller.remote(), address);
    let asking = within(caller.open_stream()).await.unwrap();
    within(asking.write(b"hello".into())).await.unwrap();
    asking.finish().unwrap();
    let answering = within(served.accept_stream()).await.unwrap();
    let text = within(answering.read_to_end(5)).await.unwrap();
    within(answering.write(text)).await.unwrap();
    answering.finish().unwrap();
    assert_eq!(within(asking.read(3)).await.unwrap(), b"hel");
    assert_eq!(within(asking.read(3)).await.unwrap(), b"lo");
    assert_eq!(within(asking.read(0)).await.unwrap(), b"");
    within(answering.acked()).await.unwrap();
    caller.close_with(0x123, "enough".into());
    let reason =
        CloseReason { cause: CloseCause::ByPeer, code: Some(0x123), text: "enough".into() };
    assert_eq!(within(served.closed()).await, reason);
    assert_eq!(within(caller.closed()).await.cause, CloseCause::Here);
    let late = within(answering.write(b"more".into())).await;
    assert_eq!(late, Err(TransportError::Ended), "it was finished before");
    let late = within(served.accept_stream()).await.map(drop);
    assert_eq!(late, Err(TransportError::Closed { reason }));
}

#[tokio::test]
async fn every_failure_of_a_stream_has_a_type_and_its_code() {
    let (_service, accepted, opened) = connected().await;
    let one = within(opened.open_stream()).await.unwrap();
    within(one.write(b"0123".into())).await.unwrap();
    let other = within(accepted.accept_stream()).await.unwrap();
    let too_long = TransportError::TooLong { max: 16 << 20 };
    assert_eq!(within(one.write(vec![0; (16 << 20) + 1])).await, Err(too_long));
    assert_eq!(within(other.read(4)).await.unwrap(), b"0123");
    // A wait that is given up loses nothing.
    {
        let mut waiting = pin!(other.read_to_end(9));
        let poll = std::future::poll_fn(|cx| Poll::Ready(waiting.as_mut().poll(cx)));
        assert!(poll.await.is_pending());
        within(one.write(b"456789".into())).await.unwrap();
    }
    one.finish().unwrap();
    let too_long = within(other.read_to_end(5)).await;
    assert_eq!(too_long, Err(TransportError::TooLong { max: 5 }));
    assert_eq!(within(other.read_to_end(6)).await.unwrap(), b"456789");
    other.reset(0x155);
    assert_eq!(within(one.read(9)).await, Err(TransportError::Reset { code: 0x155 }));
    let one = within(opened.open_stream()).await.unwrap();
    within(one.write(b"x".into())).await.unwrap();
    within(accepted.accept_stream()).await.unwrap().stop(0x166);
    let failed = loop {
        if let Err(error) = within(one.write(vec![0; 1 << 20])).await {
            break error;
        }
    };
    assert_eq!(failed, TransportError::Stopped { code: 0x166 });
}

#[tokio::test]
async fn datagrams_have_a_limit() {
    let (_service, accepted, opened) = connected().await;
    let max = opened.max_datagram_len();
    assert!(max >= 627);
    let error = opened.send_datagram(vec![0; 100_000]).unwrap_err();
    assert!(matches!(error, TransportError::TooLong { max } if max < 100_000));
    let sending = async {
        // A datagram may be lost.
        loop {
            opened.send_datagram(vec![7; 600]).unwrap();
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let read = tokio::select! {
        read = within(accepted.read_datagram()) => read.unwrap(),
        () = sending => unreachable!("it goes on for ever"),
    };
    assert_eq!(read, [7; 600]);
}

#[tokio::test]
async fn a_shutdown_ends_the_waiting_call_and_delivers_finished_streams_first() {
    let (service, accepted, opened) = connected().await;
    let stream = within(accepted.open_stream()).await.unwrap();
    within(stream.write(b"last".into())).await.unwrap();
    stream.finish().unwrap();
    let (waiting, ()) = tokio::join!(within(service.accept()), within(service.shutdown()));
    assert!(waiting.unwrap().is_none());
    assert!(within(service.accept()).await.unwrap().is_none());
    let stream = within(opened.accept_stream()).await.unwrap();
    assert_eq!(within(stream.read_to_end(4)).await.unwrap(), b"last");
    assert_eq!(within(opened.closed()).await.cause, CloseCause::ByPeer);
    within(service.shutdown()).await;
}

#[tokio::test]
async fn a_service_ends_with_its_node_and_its_connections_stay() {
    let serving = node();
    let service = serve(&serving, Callers::Ticket).await.unwrap();
    let to = ServiceAddress::Source { source: service.ticket().unwrap() };
    let caller = node();
    let (accepted, opened) = tokio::join!(within(service.accept()), connect(&caller, to.clone()));
    let (accepted, opened) = (accepted.unwrap().unwrap(), opened.unwrap());
    within(serving.shutdown()).await;
    assert!(within(service.accept()).await.unwrap().is_none());
    assert!(matches!(serve(&serving, Callers::Ticket).await, Err(WraithError::Cancelled(_))));
    let writes = within(opened.open_stream()).await.unwrap();
    within(writes.write(b"x".into())).await.unwrap();
    let reads = within(accepted.accept_stream()).await.unwrap();
    assert_eq!(within(reads.read(9)).await.unwrap(), b"x");
    drop((service, accepted, reads));
    assert_eq!(within(opened.closed()).await.cause, CloseCause::ByPeer);
}

#[tokio::test]
async fn what_leads_to_no_service_is_an_error_with_its_kind() {
    let (one, other) = (node(), node());
    let source = |source: &str| ServiceAddress::Source { source: source.into() };
    let found = connect(&one, source("hello")).await;
    assert!(matches!(found, Err(WraithError::InvalidInput(_))));
    let contact = ServiceAddress::Contact { contact: "anna".into(), service: "echo".into() };
    assert!(matches!(connect(&one, contact).await, Err(WraithError::NotFound(_))));
    let nameless = serve(&one, Callers::Contacts { name: String::new() }).await;
    assert!(matches!(nameless, Err(WraithError::InvalidInput(_))));
    let content = Content::Bytes { name: "message".into(), bytes: b"text".into() };
    let offer = other.offer(content, Recipient::Ticket, OfferOptions::default());
    let ticket = within(offer).await.unwrap().ticket().unwrap();
    let found = connect(&one, source(&ticket)).await;
    assert!(matches!(found, Err(WraithError::InvalidInput(_))), "a ticket of an offer");
    let service = serve(&other, Callers::Ticket).await.unwrap();
    within(service.shutdown()).await;
    let found = connect(&one, source(&service.ticket().unwrap())).await;
    assert!(matches!(found, Err(WraithError::NotFound(_))));
}

#[tokio::test]
async fn callers_of_a_service_can_share_one_connection() {
    let (service, caller) = (serve(&node(), Callers::Ticket).await.unwrap(), node());
    let connect = || {
        let to = ServiceAddress::Source { source: service.ticket().unwrap() };
        let timeout = Some(Duration::from_secs(1));
        within(caller.connect(to, ConnectOptions { timeout, shared: true }))
    };
    let (accepted, first) = tokio::join!(within(service.accept()), connect());
    let (accepted, second) = (accepted.unwrap().unwrap(), connect().await.unwrap());
    for (connection, text) in [(first.unwrap(), "one"), (second, "two")] {
        let asking = within(connection.open_stream()).await.unwrap();
        within(asking.write(text.into())).await.unwrap();
        asking.finish().unwrap();
        let asked = within(accepted.accept_stream()).await.unwrap();
        assert_eq!(within(asked.read_to_end(3)).await.unwrap(), text.as_bytes());
    }
}
