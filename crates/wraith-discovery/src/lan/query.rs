//! A search on the local network: asks the group until a peer answers, then continues with that
//! peer.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::select;
use tokio::time::{Instant, sleep_until};

use super::PACKET_LEN;
use super::envelope::Envelope;
use super::interfaces::Lan;
use super::sockets::{Datagram, DualStackSockets, RecvBuffer};
use crate::place::{BoxFuture, MakeQuestion, PlaceError, Query, Reply, Topic};

/// First pause between two requests; it doubles up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(60);
const LONGEST_PAUSE: Duration = Duration::from_millis(1000);
/// Interval between retransmissions.
const REPEAT_INTERVAL: Duration = Duration::from_millis(200);

/// State of a search; see the module documentation.
pub struct LanQuery {
    lan: Lan,
    topic: Topic,
    question: MakeQuestion,
    state: QueryState,
    last_from: Option<SocketAddr>,
}

enum QueryState {
    New,
    Querying(GroupQuery),
    Conversing(Box<Conversation>),
}

/// Asking the group.
struct GroupQuery {
    sockets: DualStackSockets,
    envelope: Envelope,
    buffer: RecvBuffer,
    /// The latest request.
    opening: Vec<u8>,
    pause: Duration,
    next: Instant,
}

/// Talking to one peer.
struct Conversation {
    sockets: DualStackSockets,
    envelope: Envelope,
    buffer: RecvBuffer,
    opening: Vec<u8>,
    peer: SocketAddr,
    packet: [u8; PACKET_LEN],
    next: Instant,
}

impl LanQuery {
    pub fn new(lan: Lan, topic: Topic, question: MakeQuestion) -> Self {
        Self { lan, topic, question, state: QueryState::New, last_from: None }
    }

    async fn receive(&mut self) -> Result<Reply, PlaceError> {
        if matches!(self.state, QueryState::New) {
            self.state = QueryState::Querying(GroupQuery::new(Envelope::of(self.topic)?)?);
        }
        let (message, from) = match &mut self.state {
            QueryState::Querying(group_query) => {
                group_query.receive(&self.lan, &mut self.question).await?
            }
            QueryState::Conversing(conversation) => conversation.receive().await?,
            QueryState::New => return Err(PlaceError::Protocol),
        };
        self.last_from = Some(from);
        Ok(Reply { message, from: Some(from), seen: None })
    }

    /// Sends a message now, and retransmits it until the next one.
    fn send_message(&mut self, message: &[u8]) -> Result<(), PlaceError> {
        let state = std::mem::replace(&mut self.state, QueryState::New);
        let mut conversation = match (state, self.last_from) {
            (QueryState::Conversing(conversation), _) => conversation,
            (QueryState::Querying(group_query), Some(peer)) => {
                let GroupQuery { sockets, envelope, buffer, opening, .. } = group_query;
                let (packet, next) = ([0; PACKET_LEN], Instant::now());
                Box::new(Conversation { sockets, envelope, buffer, opening, peer, packet, next })
            }
            // No peer has answered yet.
            _ => return Err(PlaceError::Protocol),
        };
        conversation.packet = conversation.envelope.wrap(&conversation.opening, message)?;
        conversation.next = Instant::now();
        self.state = QueryState::Conversing(conversation);
        Ok(())
    }
}

impl GroupQuery {
    fn new(envelope: Envelope) -> Result<Self, PlaceError> {
        let unusable = |error: std::io::Error| PlaceError::Unusable(error.to_string());
        let sockets = DualStackSockets::ephemeral().map_err(unusable)?;
        let (buffer, opening, next) = (RecvBuffer::new(), Vec::new(), Instant::now());
        Ok(Self { sockets, envelope, buffer, opening, pause: FIRST_PAUSE, next })
    }

    async fn receive(
        &mut self,
        lan: &Lan,
        question: &mut MakeQuestion,
    ) -> Result<(Vec<u8>, SocketAddr), PlaceError> {
        loop {
            let received = select! {
                biased;
                // First, so that a flood of packets does not delay the request.
                () = sleep_until(self.next) => {
                    self.send_query(lan, question)?;
                    continue;
                }
                received = self.sockets.receive(&mut self.buffer) => received,
            };
            // A failed socket is used again at the next request.
            let Ok(Datagram { len, from, .. }) = received else {
                sleep_until(self.next).await;
                continue;
            };
            if let Some(opened) = self.envelope.unwrap(&self.buffer.bytes()[..len])
                && (self.envelope.nameplate().is_none() || opened.opening == self.opening)
            {
                return Ok((opened.message, from));
            }
        }
    }

    fn send_query(&mut self, lan: &Lan, question: &mut MakeQuestion) -> Result<(), PlaceError> {
        let interfaces = lan.interfaces();
        if interfaces.is_empty() {
            return Err(PlaceError::Unusable(lan.missing()));
        }
        self.opening = question()?;
        let packet = self.envelope.wrap(&self.opening, &self.opening)?;
        self.sockets.multicast(&interfaces, &packet);
        self.next = Instant::now() + self.pause;
        self.pause = (2 * self.pause).min(LONGEST_PAUSE);
        Ok(())
    }
}

impl Conversation {
    async fn receive(&mut self) -> Result<(Vec<u8>, SocketAddr), PlaceError> {
        loop {
            let received = select! {
                biased;
                () = sleep_until(self.next) => {
                    self.sockets.send(self.peer, &self.packet);
                    self.next = Instant::now() + REPEAT_INTERVAL;
                    continue;
                }
                received = self.sockets.receive(&mut self.buffer) => received,
            };
            let Ok(Datagram { len, from, .. }) = received else {
                sleep_until(self.next).await;
                continue;
            };
            if let Some(opened) = self.envelope.unwrap(&self.buffer.bytes()[..len])
                && from == self.peer
                && opened.opening == self.opening
            {
                return Ok((opened.message, from));
            }
        }
    }
}

impl Query for LanQuery {
    fn next(&mut self) -> BoxFuture<'_, Result<Reply, PlaceError>> {
        Box::pin(self.receive())
    }

    fn send(&mut self, message: Vec<u8>) -> BoxFuture<'_, Result<(), PlaceError>> {
        Box::pin(std::future::ready(self.send_message(&message)))
    }
}
