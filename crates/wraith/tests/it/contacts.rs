//! Offers to a listening contact, without a code.

use std::fs;

use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;
use wraith::state::{Contact, StateError};
use wraith::{
    AcceptFilter, AcceptOptions, Cause, ErrorKind, Event, Listener, Node, OfferBuilder, OnConflict,
    Role, TransferError,
};

use crate::support::{
    LOOPBACK, event, file, know, lan_node, network_with_server, node, node_at, soon, within,
};

async fn listening(node: &Node, into: &Path) -> Listener {
    within(node.listen(into).bind_to(LOOPBACK).start()).await.unwrap()
}

/// An offer of a file to a contact, without a wait for reconnects.
fn to_contact(node: &Node, folder: &Path, contact: Contact) -> OfferBuilder {
    file(&folder.join("film"), 1, 400_000);
    node.offer(folder.join("film")).to_contact(contact).reconnect(Duration::ZERO)
}

/// Bob listens for Anna, whose contact he is. Returns a folder, both, the listener and the contact.
async fn bob_listens() -> (TempDir, Node, Node, Listener, Contact) {
    let folder = tempfile::tempdir().unwrap();
    let (anna, bob) = (node(), node());
    know(&bob, "anna", anna.id(), None);
    let listener = listening(&bob, &folder.path().join("to")).await;
    let contact = know(&anna, "bob", bob.id(), Some(listener.address()));
    (folder, anna, bob, listener, contact)
}

#[tokio::test]
async fn offers_come_one_after_the_other_and_each_is_answered() {
    let (folder, anna, bob, mut listener, contact) = bob_listens().await;
    assert_eq!(listener.contacts(), 1);
    for round in ["yes", "no", "yes again"] {
        let offer =
            within(to_contact(&anna, folder.path(), contact.clone()).start()).await.unwrap();
        assert!(offer.code().is_none() && offer.ticket().is_none());
        let incoming = within(listener.next()).await.unwrap();
        assert_eq!(incoming.sender(), anna.id());
        if round == "no" {
            assert_eq!(soon(incoming.refuse("no room")).await.kind(), ErrorKind::Refused);
            let error = soon(offer.finished()).await.unwrap_err();
            assert_eq!(error.transfer(), Some(&TransferError::Refused { why: "no room".into() }));
            continue;
        }
        let transfer = incoming.accept(AcceptOptions::on_conflict(OnConflict::Overwrite));
        within(transfer.finished()).await.unwrap().complete().unwrap();
        within(offer.finished()).await.unwrap().complete().unwrap();
        assert_eq!(fs::read(folder.path().join("to/film")).unwrap().len(), 400_000);
    }
    let met = bob.contacts().load().unwrap().with(anna.id()).unwrap().last_met;
    assert!(met.is_some(), "a meeting is remembered");
}

#[tokio::test]
async fn a_contact_is_found_on_the_local_network_and_at_a_server() {
    let (_network, _tasks, server) = network_with_server().await;
    for make in [&lan_node as &dyn Fn() -> Node, &|| node_at(server)] {
        let folder = tempfile::tempdir().unwrap();
        let (anna, bob) = (make(), make());
        know(&bob, "anna", anna.id(), None);
        let mut listener = listening(&bob, &folder.path().join("to")).await;
        assert_eq!(listener.places().len(), 1);
        let contact = know(&anna, "bob", bob.id(), None);
        let offer = within(to_contact(&anna, folder.path(), contact).start()).await.unwrap();
        let transfer = within(listener.next()).await.unwrap().accept(AcceptOptions::default());
        within(transfer.finished()).await.unwrap().complete().unwrap();
        within(offer.finished()).await.unwrap().complete().unwrap();
    }
}

#[tokio::test]
async fn a_stranger_gets_no_answer_unless_any_peer_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let (anna, bob) = (node(), node());
    let listener = listening(&bob, &folder.path().join("to")).await;
    let contact = know(&anna, "bob", bob.id(), Some(listener.address()));
    let builder = to_contact(&anna, folder.path(), contact).timeout(Duration::from_secs(1));
    let error = within(within(builder.start()).await.unwrap().finished()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    assert!(matches!(error.cause(), Some(Cause::ContactNotFound(_))), "{error:?}");
    within(listener.close()).await;

    let builder =
        bob.listen(folder.path().join("to")).bind_to(LOOPBACK).accept_filter(AcceptFilter::AnyPeer);
    let mut listener = within(builder.start()).await.unwrap();
    let contact = know(&anna, "bob", bob.id(), Some(listener.address()));
    let offer = within(to_contact(&anna, folder.path(), contact).start()).await.unwrap();
    let transfer = within(listener.next()).await.unwrap().accept(AcceptOptions::default());
    within(transfer.finished()).await.unwrap();
    within(offer.finished()).await.unwrap();
}

#[tokio::test]
async fn a_contact_without_an_address_is_not_found() {
    let folder = tempfile::tempdir().unwrap();
    let (anna, bob) = (node(), node());
    let contact = know(&anna, "bob", bob.id(), None);
    let offer = within(to_contact(&anna, folder.path(), contact).start()).await.unwrap();
    let error = soon(offer.finished()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    assert!(matches!(error.cause(), Some(Cause::ContactNotFound(_))), "{error:?}");
}

#[tokio::test]
async fn a_closed_listener_withdraws_its_waiting_offers() {
    for close in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let (anna, bob) = (node(), node());
        know(&bob, "anna", anna.id(), None);
        let mut listener = listening(&bob, &folder.path().join("to")).await;
        let contact = know(&anna, "bob", bob.id(), Some(listener.address()));
        let offer = within(to_contact(&anna, folder.path(), contact).start()).await.unwrap();
        let incoming = within(listener.next()).await.unwrap();
        if close {
            soon(listener.close()).await;
        } else {
            drop(listener);
        }
        soon(incoming.withdrawn()).await;
        let error = soon(offer.finished()).await.unwrap_err();
        assert_eq!(error.transfer(), Some(&TransferError::Cancelled { role: Role::Receiver }));
    }
}

#[tokio::test]
async fn a_stopped_listener_has_no_next_offer() {
    let folder = tempfile::tempdir().unwrap();
    let mut listener = listening(&node(), folder.path()).await;
    let mut events = listener.events();
    listener.stop();
    assert!(soon(listener.next()).await.is_none());
    crate::support::event(&mut events, |event| {
        matches!(event, wraith::Event::Failed(_)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_contact_that_is_removed_while_it_waits_gets_no_turn() {
    let folder = tempfile::tempdir().unwrap();
    let (anna, cleo, bob) = (node(), node(), node());
    know(&bob, "anna", anna.id(), None);
    know(&bob, "cleo", cleo.id(), None);
    let to = folder.path().join("to");
    let mut listener = listening(&bob, &to).await;
    let at = Some(listener.address());
    let (of_anna, of_cleo) = (folder.path().join("anna"), folder.path().join("cleo"));
    for own in [&of_anna, &of_cleo] {
        fs::create_dir(own).unwrap();
    }
    let first = to_contact(&anna, &of_anna, know(&anna, "bob", bob.id(), at)).start();
    let first = within(first).await.unwrap();
    let incoming = within(listener.next()).await.unwrap();
    let second = to_contact(&cleo, &of_cleo, know(&cleo, "bob", bob.id(), at)).start();
    let second = within(second).await.unwrap();
    let mut events = second.events();
    event(&mut events, |event| matches!(event, Event::Offered(_)).then_some(())).await;
    let removed = bob
        .contacts()
        .change(|book| -> Result<_, StateError> { Ok(book.remove(&"cleo".parse().unwrap())?) });
    removed.unwrap();
    let transfer = incoming.accept(AcceptOptions::on_conflict(OnConflict::Rename));
    within(transfer.finished()).await.unwrap().complete().unwrap();
    within(first.finished()).await.unwrap();
    within(second.finished()).await.unwrap_err();
    assert_eq!(fs::read_dir(&to).unwrap().count(), 1, "only what the contact sent is there");
}

#[tokio::test]
async fn a_transfer_of_a_listener_that_is_dropped_ends_alone() {
    let (folder, anna, _bob, mut listener, contact) = bob_listens().await;
    let builder = || to_contact(&anna, folder.path(), contact.clone());
    // Slow enough to be in the middle of the transfer for a while.
    let offer = within(builder().rate(50_000).start()).await.unwrap();
    drop(within(listener.next()).await.unwrap().accept(AcceptOptions::default()));
    let error = soon(offer.finished()).await.unwrap_err();
    assert_eq!(error.transfer(), Some(&TransferError::Cancelled { role: Role::Receiver }));

    // The listener continues, and the sender of a postponed offer is notified.
    let offer = within(builder().start()).await.unwrap();
    drop(within(listener.next()).await.unwrap());
    assert_eq!(soon(offer.finished()).await.unwrap_err().kind(), ErrorKind::Postponed);
    let offer = within(builder().start()).await.unwrap();
    let transfer = within(listener.next()).await.unwrap().accept(AcceptOptions::default());
    within(transfer.finished()).await.unwrap().complete().unwrap();
    within(offer.finished()).await.unwrap();
}

#[tokio::test]
async fn a_contact_that_is_added_meanwhile_may_come() {
    let folder = tempfile::tempdir().unwrap();
    let state = tempfile::tempdir().unwrap();
    let (anna, bob) = (node(), crate::support::node_in(state.path()));
    let mut listener = listening(&bob, &folder.path().join("to")).await;
    let mut events = listener.events();
    know(&bob, "anna", anna.id(), None);
    let changed = crate::support::event(&mut events, |event| match event {
        wraith::Event::ContactsChanged(count) => Some(*count),
        _ => None,
    });
    assert_eq!(changed.await, 1);
    let contact = know(&anna, "bob", bob.id(), Some(listener.address()));
    let offer = within(to_contact(&anna, folder.path(), contact).start()).await.unwrap();
    let transfer = within(listener.next()).await.unwrap().accept(AcceptOptions::default());
    within(transfer.finished()).await.unwrap();
    within(offer.finished()).await.unwrap();
}
