//! An application's own meeting place, within the process. Codes and contacts meet there as at any
//! other place.

mod in_memory;

use std::sync::Arc;

use tokio::time::timeout;
use wraith_crypto::SecretIdentity;
use wraith_discovery::contact::{ContactPair, SearchEvent, listen, search};
use wraith_discovery::{
    Announcement, BoxFuture, CodeEvent, EndSignal, JoinErrorKind, MakeQuestion, MeetingPlace,
    PlaceCaps, PlaceError, PlaceName, Places, Query, Question, Reply, Responder, Topic,
};

use self::in_memory::InMemoryPlace;
use super::support::{PATIENCE, fetched, next, nowhere, offered, other_words};

fn in_memory_place() -> Places {
    Places { others: vec![Arc::new(InMemoryPlace::default())], ..nowhere() }
}

#[tokio::test]
async fn codes_meet_at_a_custom_place() {
    let places = in_memory_place();
    let mut sender = offered(&places, 2).await;
    assert_eq!(sender.places(), [PlaceName::Other("in memory".into())]);
    let met = fetched(sender.code(), &places).await.unwrap();
    assert_eq!(met.ticket.as_slice(), b"ticket");
    assert!(matches!(next(&mut sender).await, CodeEvent::Used { place: PlaceName::Other(_), .. }));
    let wrong = fetched(&other_words(sender.code()), &places).await.unwrap_err();
    assert_eq!(wrong.why, JoinErrorKind::Wrong);
    assert!(matches!(next(&mut sender).await, CodeEvent::WrongGuess(PlaceName::Other(_))));
}

#[tokio::test]
async fn contacts_meet_at_a_custom_place() {
    let places = in_memory_place();
    let [a, b] = [1, 2].map(|n| SecretIdentity::from_seed([n; 32]));
    let listener = listen(&places, Box::new(|_| vec!["192.0.2.1:9".parse().unwrap()].into())).await;
    listener.set_contacts(vec![ContactPair::new(&a, b.node_id()).unwrap()]);
    let mut search = search(&ContactPair::new(&b, a.node_id()).unwrap(), &places);
    let found = timeout(PATIENCE, search.next()).await.unwrap();
    assert!(matches!(found, Some(SearchEvent::Found(PlaceName::Other(_), ..))), "{found:?}");
}
