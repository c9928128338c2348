//! Each failure has the right kind, on both sides.

use std::net::SocketAddr;
use std::time::Duration;

use tempfile::TempDir;
use tokio::task::JoinSet;
use wraith::{Capability, Cause, Code, ErrorKind, Node, OnConflict, Payload, Source, Ticket};

use crate::support::{
    LOOPBACK, file, film_offered, lan_node, network_with_server, node, node_at, offered, server,
    soon, within,
};

/// Returns a code with the same nameplate and other words.
fn other_words(code: &Code) -> Code {
    let mut others = (0..2).map(|n| Code::new(code.nameplate(), [n; 4]));
    others.find(|other| other != code).unwrap()
}

async fn error_of(node: &Node, source: impl Into<Source>) -> wraith::Error {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("to");
    let builder = node.fetch(source, &to).timeout(Duration::from_secs(2));
    let error = within(builder.accept_all(OnConflict::Rename).finished()).await.unwrap_err();
    // The answer was given in advance, so the folder may exist.
    let is_empty = std::fs::read_dir(&to).map_or(true, |mut entries| entries.next().is_none());
    let entries: Vec<_> = std::fs::read_dir(&to).into_iter().flatten().flatten().collect();
    assert!(is_empty, "something was written: {entries:?}");
    error
}

#[tokio::test]
async fn wrong_words_burn_the_code_on_both_sides() {
    let (_network, _tasks, server) = network_with_server().await;
    let folder = tempfile::tempdir().unwrap();
    file(&folder.path().join("film"), 1, 1000);
    for make in [&lan_node as &dyn Fn() -> Node, &|| node_at(server)] {
        let offer = within(make().offer(folder.path().join("film")).start()).await.unwrap();
        let code = offer.code().unwrap().clone();
        let theirs = error_of(&make(), other_words(&code)).await;
        assert_eq!(theirs.kind(), ErrorKind::WrongCode, "{theirs}");
        assert!(matches!(theirs.cause(), Some(Cause::NotMet(_))), "{theirs:?}");
        let own = soon(offer.finished()).await.unwrap_err();
        assert_eq!(own.kind(), ErrorKind::WrongCode, "{own}");
        assert!(matches!(own.cause(), Some(Cause::CodeBurned(_))), "{own:?}");
        // The right words come too late.
        error_of(&make(), code).await;
    }
}

/// Starts a rendezvous server, and makes a folder with a film.
async fn server_and_film() -> (JoinSet<()>, SocketAddr, TempDir) {
    let mut tasks = JoinSet::new();
    let server = server(&mut tasks).await;
    let folder = tempfile::tempdir().unwrap();
    file(&folder.path().join("film"), 1, 1000);
    (tasks, server, folder)
}

#[tokio::test]
async fn wrong_words_burn_an_invitation() {
    let (_tasks, server, folder) = server_and_film().await;
    let invitation = within(node_at(server).invite().start()).await.unwrap();
    let code = other_words(invitation.code());
    let waiting = tokio::spawn(invitation.ticket());
    let builder = node_at(server).offer(folder.path().join("film")).to_invitation(code);
    let theirs = within(builder.start()).await.unwrap_err();
    assert_eq!(theirs.kind(), ErrorKind::WrongCode, "{theirs}");
    assert_eq!(soon(waiting).await.unwrap().unwrap_err().kind(), ErrorKind::WrongCode);
}

#[tokio::test]
async fn a_code_works_once() {
    let (_tasks, server, folder) = server_and_film().await;
    let offer = within(node_at(server).offer(folder.path().join("film")).start()).await.unwrap();
    let code = offer.code().unwrap().clone();
    let asking = node_at(server).fetch(code.clone(), folder.path().join("to")).wait_for_offer();
    let incoming = within(asking).await.unwrap();
    let error = error_of(&node_at(server), code).await;
    assert_eq!(error.kind(), ErrorKind::WrongCode, "{error}");
    drop(incoming);
}

#[tokio::test]
async fn an_unreachable_sender_is_not_found() {
    let (_network, _tasks, server) = network_with_server().await;
    for node in [lan_node(), node_at(server)] {
        let error = error_of(&node, Code::new(123, [1; 4])).await;
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        assert!(matches!(error.cause(), Some(Cause::NotMet(_))), "{error:?}");
    }
    let (_folder, offer, ticket) = film_offered(1000).await;
    within(offer.cancel()).await.unwrap_err();
    let error = error_of(&node(), ticket.clone()).await;
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    let Some(Cause::Unreachable(addresses)) = error.cause() else { panic!("{error:?}") };
    assert_eq!(*addresses, ticket.addresses());
}

#[tokio::test]
async fn an_offer_without_receivers_times_out() {
    let (_tasks, server, folder) = server_and_film().await;
    let builder = || node_at(server).offer(folder.path().join("film"));
    let offer = within(builder().timeout(Duration::from_millis(50)).start()).await.unwrap();
    let error = soon(offer.finished()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(matches!(error.cause(), Some(Cause::NoReceiver)), "{error:?}");

    let offer = within(builder().expires(Duration::from_millis(50)).start()).await.unwrap();
    let error = soon(offer.finished()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(matches!(error.cause(), Some(Cause::CodeExpired)), "{error:?}");

    let invitation = node_at(server).invite().expires(Duration::from_millis(50)).start();
    let error = soon(within(invitation).await.unwrap().ticket()).await.unwrap_err();
    assert!(matches!(error.cause(), Some(Cause::CodeExpired)), "{error:?}");
}

#[tokio::test]
async fn without_a_place_to_meet_there_is_no_code_but_a_ticket() {
    let folder = tempfile::tempdir().unwrap();
    file(&folder.path().join("film"), 1, 1000);
    let offer = within(node().offer(folder.path().join("film")).start()).await.unwrap();
    assert!(offer.code().is_none() && offer.places().is_empty());
    let why = offer.no_code().unwrap();
    assert_eq!(why.kind(), ErrorKind::NotFound);
    assert!(matches!(why.cause(), Some(Cause::NoPlace(_))), "{why:?}");
    let ticket = offer.ticket().unwrap().clone();
    let transfer = node().fetch(ticket, folder.path().join("to")).accept_all(OnConflict::Rename);
    within(transfer.finished()).await.unwrap();

    let error = within(node().invite().start()).await.unwrap_err();
    assert!(matches!(error.cause(), Some(Cause::NoPlace(_))), "{error:?}");
    let error = error_of(&node(), Code::new(7, [1; 4])).await;
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named() {
    let closed = std::net::TcpListener::bind(LOOPBACK).unwrap().local_addr().unwrap();
    let folder = tempfile::tempdir().unwrap();
    file(&folder.path().join("film"), 1, 1000);
    let offer = within(node_at(closed).offer(folder.path().join("film")).start()).await.unwrap();
    let Some(Cause::NoPlace(missing)) = offer.no_code().unwrap().cause() else { panic!("a code") };
    assert_eq!(missing[0].0, wraith::PlaceName::Rendezvous(closed.to_string()));
    let error = error_of(&node_at(closed), Code::new(7, [1; 4])).await;
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
}

#[tokio::test]
async fn a_ticket_for_an_unknown_offer_gets_no_answer() {
    let (folder, offer, ticket) = film_offered(1000).await;
    let other = Capability::from_bytes([7; Capability::LEN]);
    let wrong = Ticket::new(ticket.node_id(), other, ticket.reach().clone());
    let error = error_of(&node(), wrong).await;
    // Without a valid access key, the sender is silent and gives no reason.
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    // A receiver with the right ticket is still served.
    let transfer = node().fetch(ticket, folder.path().join("to")).accept_all(OnConflict::Rename);
    within(transfer.finished()).await.unwrap();
    within(offer.finished()).await.unwrap();
}

#[tokio::test]
async fn a_ticket_in_use_by_another_receiver_is_refused() {
    let (folder, _offer, ticket) = film_offered(1000).await;
    let incoming = within(node().fetch(ticket.clone(), folder.path().join("a")).wait_for_offer())
        .await
        .unwrap();
    let error = error_of(&node(), ticket).await;
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    drop(incoming);
}

#[tokio::test]
async fn unsendable_paths_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("nothing");
    let error = within(node().offer(missing.as_path()).start()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    assert!(error.to_string().contains("nothing"), "{error}");

    let error = within(node().offer("/dev/null").start()).await.unwrap_err();
    assert!(matches!(error.cause(), Some(Cause::NoContent)), "{error:?}");
    let stream = Payload::reader("a/b", None, std::io::empty());
    let error = within(node().offer(stream).start()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    let nothing = Payload::paths(Vec::<std::path::PathBuf>::new());
    let error = within(node().offer(nothing).start()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
}

#[tokio::test]
async fn an_unavailable_bind_address_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    file(&folder.path().join("film"), 1, 1000);
    // Documentation addresses belong to no host.
    let nobodys = "192.0.2.1:0".parse().unwrap();
    let builder = node().offer(folder.path().join("film")).by_ticket().bind_to(nobodys);
    let error = within(builder.start()).await.unwrap_err();
    assert!(matches!(error.cause(), Some(Cause::CannotBind(_))), "{error:?}");
    let error = within(node().listen(folder.path()).bind_to(nobodys).start()).await.unwrap_err();
    assert!(matches!(error.cause(), Some(Cause::CannotBind(_))), "{error:?}");
}

#[test]
fn a_text_that_is_neither_code_nor_ticket_is_refused() {
    for text in ["", "hello", "wraith", "7-"] {
        let error = text.parse::<Source>().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{text:?}");
    }
}

#[test]
fn without_a_runtime_there_is_no_node() {
    assert_eq!(Node::builder().build().unwrap_err().kind(), ErrorKind::Other);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    Node::builder().runtime(runtime.handle().clone()).build().unwrap();
}

#[tokio::test]
async fn a_folder_that_cannot_be_written() {
    let folder = tempfile::tempdir().unwrap();
    file(&folder.path().join("film"), 1, 1000);
    file(&folder.path().join("in the way"), 1, 1);
    let (offer, ticket) = offered(&node(), folder.path().join("film")).await;
    let transfer =
        node().fetch(ticket, folder.path().join("in the way/to")).accept_all(OnConflict::Rename);
    assert_eq!(within(transfer.finished()).await.unwrap_err().kind(), ErrorKind::Disk);
    assert_eq!(soon(offer.finished()).await.unwrap_err().kind(), ErrorKind::Disk);
}
