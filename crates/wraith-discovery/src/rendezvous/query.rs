//! A search at a rendezvous server: one connection, which joins a nameplate and exchanges messages
//! with its creator.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::frame::{ClientFrame, ServerFrame};
use super::link::ServerLink;
use super::nameplate;
use crate::connect::Connect;
use crate::place::{BoxFuture, MakeQuestion, PlaceError, Query, Reply, Topic};

/// Longest wait for the creator's first message: one round trip over the server with a large
/// margin.
const FIRST_MESSAGE_TIMEOUT: Duration = Duration::from_secs(5);

/// State of a search; see the module documentation.
pub struct RendezvousQuery {
    server: String,
    connect: Arc<dyn Connect>,
    topic: Topic,
    question: MakeQuestion,
    connection: Option<JoinConnection>,
}

/// A connection with a sent join request.
struct JoinConnection {
    link: ServerLink,
    /// Whether the server has forwarded the joiner's message.
    is_joined: bool,
    seen: Option<IpAddr>,
    /// Deadline of the first message; `None` once it arrived.
    first_message_deadline: Option<Instant>,
}

impl RendezvousQuery {
    pub fn new(
        server: String,
        connect: Arc<dyn Connect>,
        topic: Topic,
        question: MakeQuestion,
    ) -> Self {
        Self { server, connect, topic, question, connection: None }
    }

    async fn receive(&mut self) -> Result<Reply, PlaceError> {
        if self.connection.is_none() {
            let (nameplate, _) = nameplate(self.topic)?;
            let mut link = ServerLink::connect(&self.server, &*self.connect).await?;
            let message = (self.question)()?;
            link.send(&ClientFrame::Join { nameplate, message }).await?;
            let first_message_deadline = Some(Instant::now() + FIRST_MESSAGE_TIMEOUT);
            self.connection =
                Some(JoinConnection { link, is_joined: false, seen: None, first_message_deadline });
        }
        let connection = self.connection.as_mut().ok_or(PlaceError::Protocol)?;
        connection.receive().await
    }

    async fn send_message(&mut self, message: Vec<u8>) -> Result<(), PlaceError> {
        // Without an earlier reply there is no conversation to continue.
        let connection = self.connection.as_mut().ok_or(PlaceError::Protocol)?;
        connection.link.send(&ClientFrame::Send { joiner: 0, message }).await
    }
}

impl JoinConnection {
    async fn receive(&mut self) -> Result<Reply, PlaceError> {
        loop {
            let frame = match self.first_message_deadline {
                None => self.link.next().await?,
                Some(until) => match timeout_at(until, self.link.next()).await {
                    Ok(frame) => frame?,
                    Err(_) if self.is_joined => return Err(PlaceError::Nobody),
                    Err(_) => return Err(PlaceError::Silent),
                },
            };
            match frame {
                ServerFrame::Message { message, .. } => {
                    self.first_message_deadline = None;
                    return Ok(Reply { message, from: None, seen: self.seen });
                }
                ServerFrame::Joined { seen } => {
                    self.is_joined = true;
                    self.seen = self.link.own_address(seen);
                }
                ServerFrame::Pong => {}
                ServerFrame::Left { .. } => return Err(PlaceError::Nobody),
                ServerFrame::Refused(why) => return Err(why.into()),
                ServerFrame::Opened { .. } | ServerFrame::Arrived { .. } => {
                    return Err(PlaceError::Protocol);
                }
            }
        }
    }
}

impl Query for RendezvousQuery {
    fn next(&mut self) -> BoxFuture<'_, Result<Reply, PlaceError>> {
        Box::pin(self.receive())
    }

    fn send(&mut self, message: Vec<u8>) -> BoxFuture<'_, Result<(), PlaceError>> {
        Box::pin(self.send_message(message))
    }
}
