//! A custom meeting place of an application. It exists only within the test process, and is built
//! with the public items of this crate.

#[path = "../../../wraith-discovery/tests/it/own_place/in_memory.rs"]
mod in_memory;

use std::sync::Arc;

use wraith::place::{
    BoxFuture, EndSignal, MakeQuestion, PlaceCaps, Question, Reply, Responder, Topic,
};
use wraith::{
    Announcement, Event, FoundAt, MeetingPlace, OnConflict, PlaceError, PlaceName, Query,
};

use self::in_memory::InMemoryPlace;
use crate::support::{event, file, nowhere, within};

#[tokio::test]
async fn codes_work_at_a_custom_meeting_place() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = file(&folder.path().join("film"), 1, 100_000);
    let place: Arc<dyn MeetingPlace> = Arc::new(InMemoryPlace::default());
    let [sending, receiving] =
        [(); 2].map(|()| nowhere().place(Arc::clone(&place)).build().unwrap());
    let offer = within(sending.offer(folder.path().join("film")).start()).await.unwrap();
    assert_eq!(offer.places(), [PlaceName::Other("in memory".into())]);
    let (code, to) = (offer.code().unwrap().clone(), folder.path().join("to"));
    let transfer = receiving.fetch(code, &to).accept_all(OnConflict::Rename);
    let mut events = transfer.events();
    let met = event(&mut events, |event| match event {
        Event::PeerFound(at) => Some(at.clone()),
        _ => None,
    });
    assert_eq!(met.await, FoundAt::Place(PlaceName::Other("in memory".into())));
    within(transfer.finished()).await.unwrap().complete().unwrap();
    within(offer.finished()).await.unwrap();
    assert_eq!(std::fs::read(to.join("film")).unwrap(), bytes);
}
