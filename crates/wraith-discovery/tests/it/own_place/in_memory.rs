//! An application's own meeting place, within the process. The parent module names the items of the
//! crate under test.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tokio::sync::{mpsc, oneshot};

use super::{
    Announcement, BoxFuture, EndSignal, MakeQuestion, MeetingPlace, PlaceCaps, PlaceError,
    PlaceName, Query, Question, Reply, Responder, Topic,
};

/// A message, the first message of its conversation, and the channel for the response.
type Call = (Vec<u8>, Vec<u8>, oneshot::Sender<Vec<u8>>);

/// Topics by name, with the waiting side's channel.
#[derive(Clone, Debug, Default)]
pub struct InMemoryPlace(Arc<Mutex<HashMap<Vec<u8>, mpsc::Sender<Call>>>>);

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
