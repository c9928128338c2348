//! An application's own meeting place, within the process. Codes and contacts meet there as at any
//! other place.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use wraith_crypto::SecretIdentity;
use wraith_discovery::contact::{ContactPair, SearchEvent, listen, search};
use wraith_discovery::{
    Announcement, BoxFuture, CodeEvent, EndSignal, JoinErrorKind, MakeQuestion, MeetingPlace,
    PlaceCaps, PlaceError, PlaceName, Places, Query, Question, Reply, Responder, Topic,
};

use super::support::{PATIENCE, fetched, next, nowhere, offered, other_words};

/// A message, the first message of its conversation, and the channel for the response.
type Call = (Vec<u8>, Vec<u8>, oneshot::Sender<Vec<u8>>);

/// Topics by name, with the waiting side's channel.
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
        Box::new(InMemoryQuery { place: self.clone(), topic, question, opening: None, said: None })
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
    said: Option<oneshot::Receiver<Vec<u8>>>,
}

impl InMemoryQuery {
    async fn say(&mut self, message: Vec<u8>) -> Result<(), PlaceError> {
        let caller = self.place.0.lock().unwrap().get(&name(self.topic)).cloned();
        let caller = caller.ok_or(PlaceError::Nobody)?;
        let (reply, said) = oneshot::channel();
        let opening = self.opening.get_or_insert_with(|| message.clone()).clone();
        caller.send((opening, message, reply)).await.map_err(|_| PlaceError::Nobody)?;
        self.said = Some(said);
        Ok(())
    }
}

impl Query for InMemoryQuery {
    fn next(&mut self) -> BoxFuture<'_, Result<Reply, PlaceError>> {
        Box::pin(async move {
            if self.opening.is_none() {
                let question = (self.question)()?;
                self.say(question).await?;
            }
            let said = self.said.as_mut().ok_or(PlaceError::Nobody)?;
            let message = said.await.map_err(|_| PlaceError::Nobody)?;
            self.said = None;
            Ok(Reply { message, from: None, seen: None })
        })
    }

    fn send(&mut self, message: Vec<u8>) -> BoxFuture<'_, Result<(), PlaceError>> {
        Box::pin(self.say(message))
    }
}

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
