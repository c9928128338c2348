//! A search at a rendezvous server: one connection, which joins a nameplate and exchanges messages
//! with its creator.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::frame::{ClientFrame, ServerFrame};
use super::link::Link;
use super::nameplate;
use crate::connect::Connect;
use crate::place::{BoxFuture, MakeQuestion, PlaceError, Query, Reply, Topic};

/// Longest wait for the creator's first message: one round trip over the server with a large
/// margin.
const FIRST_WORD_TIMEOUT: Duration = Duration::from_secs(5);

/// State of a search; see the module documentation.
pub struct RendezvousQuery {
    server: String,
    connect: Arc<dyn Connect>,
    topic: Topic,
    question: MakeQuestion,
    visit: Option<Visit>,
}

/// A connection with a sent join request.
struct Visit {
    link: Link,
    /// Whether the server has forwarded the joiner's message.
    is_joined: bool,
    seen: Option<IpAddr>,
    /// Deadline of the first message; `None` once it arrived.
    first_word: Option<Instant>,
}

impl RendezvousQuery {
    pub fn new(
        server: String,
        connect: Arc<dyn Connect>,
        topic: Topic,
        question: MakeQuestion,
    ) -> Self {
        Self { server, connect, topic, question, visit: None }
    }

    async fn hear(&mut self) -> Result<Reply, PlaceError> {
        if self.visit.is_none() {
            let (nameplate, _) = nameplate(self.topic)?;
            let mut link = Link::connect(&self.server, &*self.connect).await?;
            let message = (self.question)()?;
            link.send(&ClientFrame::Join { nameplate, message }).await?;
            let first_word = Some(Instant::now() + FIRST_WORD_TIMEOUT);
            self.visit = Some(Visit { link, is_joined: false, seen: None, first_word });
        }
        let visit = self.visit.as_mut().ok_or(PlaceError::Protocol)?;
        visit.hear().await
    }

    async fn say(&mut self, message: Vec<u8>) -> Result<(), PlaceError> {
        // Without an earlier reply there is no conversation to continue.
        let visit = self.visit.as_mut().ok_or(PlaceError::Protocol)?;
        visit.link.send(&ClientFrame::Tell { joiner: 0, message }).await
    }
}

impl Visit {
    async fn hear(&mut self) -> Result<Reply, PlaceError> {
        loop {
            let frame = match self.first_word {
                None => self.link.next().await?,
                Some(until) => match timeout_at(until, self.link.next()).await {
                    Ok(frame) => frame?,
                    Err(_) if self.is_joined => return Err(PlaceError::Nobody),
                    Err(_) => return Err(PlaceError::Silent),
                },
            };
            match frame {
                ServerFrame::Told { message, .. } => {
                    self.first_word = None;
                    return Ok(Reply { message, from: None, seen: self.seen });
                }
                ServerFrame::Joined { seen } => {
                    self.is_joined = true;
                    self.seen = self.link.own_address(seen);
                }
                ServerFrame::Pong => {}
                ServerFrame::Left { .. } => return Err(PlaceError::Nobody),
                ServerFrame::No(why) => return Err(why.into()),
                ServerFrame::Opened { .. } | ServerFrame::Arrived { .. } => {
                    return Err(PlaceError::Protocol);
                }
            }
        }
    }
}

impl Query for RendezvousQuery {
    fn next(&mut self) -> BoxFuture<'_, Result<Reply, PlaceError>> {
        Box::pin(self.hear())
    }

    fn go_on(&mut self, message: Vec<u8>) -> BoxFuture<'_, Result<(), PlaceError>> {
        Box::pin(self.say(message))
    }
}
