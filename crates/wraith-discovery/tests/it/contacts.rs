//! Contacts find each other at the places of this crate; other identities find nothing.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;
use wraith_crypto::SecretIdentity;
use wraith_discovery::Places;
use wraith_discovery::contact::{
    CallOptions, ContactEvent, ContactPair, SearchEvent, listen, search, search_with_call,
};

use super::support::{PATIENCE, at, loopback, own_network, server};

/// Returns the two ends of a contact pair.
fn pairs(a: u8, b: u8) -> [ContactPair; 2] {
    let [a, b] = [a, b].map(|n| SecretIdentity::from_seed([n; 32]));
    [ContactPair::new(&a, b.node_id()).unwrap(), ContactPair::new(&b, a.node_id()).unwrap()]
}

fn address() -> SocketAddr {
    "192.0.2.1:4711".parse().unwrap()
}

/// Returns the first result with the contact.
async fn found(pair: &ContactPair, places: &Places) -> SearchEvent {
    let mut search = search(pair, places);
    let looking = async {
        loop {
            match search.next().await.unwrap() {
                // The listener is not ready yet, or the server rate-limits.
                SearchEvent::PlaceFailed(..) => {}
                found => return found,
            }
        }
    };
    timeout(PATIENCE, looking).await.unwrap()
}

async fn a_contact_is_found_and_a_stranger_finds_nobody(places: &Places) {
    let [ours, theirs] = pairs(1, 2);
    let mut listener = listen(places, Box::new(|_| vec![address()].into())).await;
    assert_eq!((listener.places(), listener.missing()), (&*places.names(), &[][..]));
    listener.set_contacts(vec![ours.clone()]);
    let SearchEvent::Found(place, reach, _) = found(&theirs, places).await else { panic!() };
    assert_eq!(place, places.names()[0]);
    assert!(reach.addresses().contains(&address()), "{reach:?}");
    let event = timeout(PATIENCE, listener.next_event()).await.unwrap();
    assert_eq!(event, Some(ContactEvent::Called(ours.peer())));

    let [_, stranger] = pairs(1, 3);
    let mut search = search(&stranger, places);
    let nobody = timeout(Duration::from_millis(1500), search.next()).await;
    assert!(nobody.is_err(), "{nobody:?}");
}

#[tokio::test]
async fn contacts_meet_on_the_local_network() {
    let _network = own_network();
    a_contact_is_found_and_a_stranger_finds_nobody(&loopback()).await;
}

#[tokio::test]
async fn contacts_meet_at_a_server() {
    let mut tasks = JoinSet::new();
    a_contact_is_found_and_a_stranger_finds_nobody(&at(server(&mut tasks).await)).await;
}

#[tokio::test]
async fn a_removed_contact_gets_no_answer() {
    let mut tasks = JoinSet::new();
    let places = at(server(&mut tasks).await);
    let [ours, theirs] = pairs(1, 2);
    let listener = listen(&places, Box::new(|_| vec![address()].into())).await;
    listener.set_contacts(vec![ours]);
    assert!(matches!(found(&theirs, &places).await, SearchEvent::Found(..)));
    listener.set_contacts(Vec::new());
    let mut search = search(&theirs, &places);
    assert!(timeout(Duration::from_millis(1000), search.next()).await.is_err());
}

#[tokio::test]
async fn a_lost_server_is_reported_once_for_all_contacts() {
    let mut tasks = JoinSet::new();
    let places = at(server(&mut tasks).await);
    let mut listener = listen(&places, Box::new(|_| vec![address()].into())).await;
    let all = [2, 3, 4].map(|peer| pairs(1, peer));
    listener.set_contacts(all.iter().map(|[ours, _]| ours.clone()).collect());
    for [_, theirs] in &all {
        assert!(matches!(found(theirs, &places).await, SearchEvent::Found(..)));
    }
    tasks.shutdown().await;
    let mut lost = 0;
    while let Ok(Some(event)) = timeout(Duration::from_secs(1), listener.next_event()).await {
        lost += u32::from(matches!(event, ContactEvent::Lost(..)));
    }
    assert_eq!(lost, 1);
}

/// A server hides both sides' addresses from each other, so each sends its own.
#[tokio::test]
async fn a_caller_that_sends_its_addresses_shares_a_secret_with_the_listener() {
    let mut tasks = JoinSet::new();
    let [ours, theirs] = pairs(1, 2);
    let places = at(server(&mut tasks).await);
    let mut listener = listen(&places, Box::new(|_| vec![address()].into())).await;
    listener.set_contacts(vec![ours]);
    let own: SocketAddr = "192.0.2.7:7".parse().unwrap();
    let reach = Box::new(move |_| vec![own].into());
    let mut search =
        search_with_call(&theirs, &places, Some(CallOptions { reach, punch_secret: [1; 32] }));
    let (reach, secret) = loop {
        match timeout(PATIENCE, search.next()).await.unwrap() {
            Some(SearchEvent::Found(_, reach, secret)) => break (reach, secret.unwrap()),
            // The listener is not ready yet.
            other => assert!(matches!(other, Some(SearchEvent::PlaceFailed(..)))),
        }
    };
    assert_eq!(reach, vec![address()].into());
    let event = timeout(PATIENCE, listener.next_event()).await.unwrap();
    let Some(ContactEvent::PunchRequest(_, call)) = event else { panic!("{event:?}") };
    assert_eq!((call.peer, call.reach), (theirs.own(), vec![own].into()));
    assert_eq!(call.punch_secret, secret.0);
}
