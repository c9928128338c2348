//! A custom meeting place of an application. It exists only within the test process, and is built
//! with the public items of this crate.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tokio::sync::{mpsc, oneshot};
use wraith::place::{
    BoxFuture, EndSignal, MakeQuestion, PlaceCaps, Question, Reply, Responder, Topic,
};
use wraith::{
    Announcement, Event, FoundAt, MeetingPlace, OnConflict, PlaceError, PlaceName, Query,
};

use crate::support::{event, file, nowhere, within};

/// A message, the first message of its conversation, and the channel for the response.
type Call = (Vec<u8>, Vec<u8>, oneshot::Sender<Vec<u8>>);

/// The waiting sides, by the names of their topics.
#[derive(Clone, Debug, Default)]
struct InMemoryPlace(Arc<Mutex<HashMap<Vec<u8>, mpsc::Sender<Call>>>>);

fn name(topic: Topic) -> Vec<u8> {
    match topic {
        Topic::Nameplate { nameplate, .. } => nameplate.to_be_bytes().to_vec(),
        Topic::Contact(tag) => tag.to_vec(),
        Topic::AnyContact => Vec::new(),
    }
}

impl MeetingPlace for InMemoryPlace {
    fn place(&self) -> PlaceName {
        PlaceName::Other("in memory".into())
    }

    fn caps(&self) -> PlaceCaps {
        PlaceCaps::default()
    }

    fn announce(
        &self,
        topic: Topic,
    ) -> BoxFuture<'static, Result<Box<dyn Announcement>, PlaceError>> {
        let (caller, calls) = mpsc::channel(8);
        self.0.lock().unwrap().insert(name(topic), caller);
        let place = self.place();
        Box::pin(async move {
            Ok(Box::new(InMemoryAnnouncement { place, calls }) as Box<dyn Announcement>)
        })
    }

    fn query(&self, topic: Topic, question: MakeQuestion) -> Box<dyn Query> {
        Box::new(InMemoryQuery {
            place: self.clone(),
            topic,
            question,
            opening: None,
            answer: None,
        })
    }
}

struct InMemoryAnnouncement {
    place: PlaceName,
    calls: mpsc::Receiver<Call>,
}

impl Announcement for InMemoryAnnouncement {
    fn nameplate(&self) -> Option<u32> {
        None
    }

    fn serve_queries(
        mut self: Box<Self>,
        responder: Arc<dyn Responder>,
        _end: EndSignal,
    ) -> BoxFuture<'static, Result<(), PlaceError>> {
        Box::pin(async move {
            while let Some((opening, message, reply)) = self.calls.recv().await {
                let (place, opening, message) = (&self.place, &*opening, &*message);
                let question = Question { place, opening, message, from: None, seen: None };
                if let Some(response) = responder.respond(&question) {
                    let _ = reply.send(response.message.clone());
                }
            }
            Err(PlaceError::Nobody)
        })
    }
}

struct InMemoryQuery {
    place: InMemoryPlace,
    topic: Topic,
    question: MakeQuestion,
    opening: Option<Vec<u8>>,
    answer: Option<oneshot::Receiver<Vec<u8>>>,
}

impl InMemoryQuery {
    async fn send_message(&mut self, message: Vec<u8>) -> Result<(), PlaceError> {
        let caller = self.place.0.lock().unwrap().get(&name(self.topic)).cloned();
        let caller = caller.ok_or(PlaceError::Nobody)?;
        let (reply, answer) = oneshot::channel();
        let opening = self.opening.get_or_insert_with(|| message.clone()).clone();
        caller.send((opening, message, reply)).await.map_err(|_| PlaceError::Nobody)?;
        self.answer = Some(answer);
        Ok(())
    }
}

impl Query for InMemoryQuery {
    fn next(&mut self) -> BoxFuture<'_, Result<Reply, PlaceError>> {
        Box::pin(async move {
            if self.opening.is_none() {
                let question = (self.question)()?;
                self.send_message(question).await?;
            }
            let answer = self.answer.as_mut().ok_or(PlaceError::Nobody)?;
            let message = answer.await.map_err(|_| PlaceError::Nobody)?;
            self.answer = None;
            Ok(Reply { message, from: None, seen: None })
        })
    }

    fn send(&mut self, message: Vec<u8>) -> BoxFuture<'_, Result<(), PlaceError>> {
        Box::pin(self.send_message(message))
    }
}

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
