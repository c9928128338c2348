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
    exchange: Exchange,
    pause: Duration,
}

/// Talking to one peer.
struct Conversation {
    exchange: Exchange,
    peer: SocketAddr,
    packet: [u8; PACKET_LEN],
}

/// Receives answers until it is time to send again.
struct Exchange {
    sockets: DualStackSockets,
    envelope: Envelope,
    buffer: RecvBuffer,
    /// The latest request.
    opening: Vec<u8>,
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
            QueryState::Conversing(conversation) => conversation.receive().await,
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
                let (exchange, packet) = (group_query.exchange, [0; PACKET_LEN]);
                Box::new(Conversation { exchange, peer, packet })
            }
            // No peer has answered yet.
            _ => return Err(PlaceError::Protocol),
        };
        let exchange = &mut conversation.exchange;
        conversation.packet = exchange.envelope.wrap(&exchange.opening, message)?;
        exchange.next = Instant::now();
        self.state = QueryState::Conversing(conversation);
        Ok(())
    }
}

impl GroupQuery {
    fn new(envelope: Envelope) -> Result<Self, PlaceError> {
        let unusable = |error: std::io::Error| PlaceError::Unusable(error.to_string());
        let sockets = DualStackSockets::ephemeral().map_err(unusable)?;
        let (buffer, opening, next) = (RecvBuffer::new(), Vec::new(), Instant::now());
        let exchange = Exchange { sockets, envelope, buffer, opening, next };
        Ok(Self { exchange, pause: FIRST_PAUSE })
    }

    async fn receive(
        &mut self,
        lan: &Lan,
        question: &mut MakeQuestion,
    ) -> Result<(Vec<u8>, SocketAddr), PlaceError> {
        loop {
            if let Some(answer) = self.exchange.receive(None).await {
                return Ok(answer);
            }
            self.send_query(lan, question)?;
        }
    }

    fn send_query(&mut self, lan: &Lan, question: &mut MakeQuestion) -> Result<(), PlaceError> {
        let interfaces = lan.interfaces();
        if interfaces.is_empty() {
            return Err(PlaceError::Unusable(lan.missing()));
        }
        let exchange = &mut self.exchange;
        exchange.opening = question()?;
        let packet = exchange.envelope.wrap(&exchange.opening, &exchange.opening)?;
        exchange.sockets.multicast(&interfaces, &packet);
        exchange.next = Instant::now() + self.pause;
        self.pause = (2 * self.pause).min(LONGEST_PAUSE);
        Ok(())
    }
}

impl Conversation {
    async fn receive(&mut self) -> (Vec<u8>, SocketAddr) {
        loop {
            if let Some(answer) = self.exchange.receive(Some(self.peer)).await {
                return answer;
            }
            self.exchange.sockets.send(self.peer, &self.packet);
            self.exchange.next = Instant::now() + REPEAT_INTERVAL;
        }
    }
}

impl Exchange {
    /// Returns the next answer of this peer, or of any, and `None` when it is time to send.
    async fn receive(&mut self, peer: Option<SocketAddr>) -> Option<(Vec<u8>, SocketAddr)> {
        loop {
            let received = select! {
                biased;
                // First, so that a flood of packets does not delay the next request.
                () = sleep_until(self.next) => return None,
                received = self.sockets.receive(&mut self.buffer) => received,
            };
            // A failed socket is used again at the next request.
            let Ok(Datagram { len, from, .. }) = received else {
                sleep_until(self.next).await;
                return None;
            };
            let opened = self.envelope.unwrap(&self.buffer.bytes()[..len]);
            let is_wanted = |opening: &[u8]| match peer {
                Some(peer) => from == peer && opening == self.opening,
                None => self.envelope.nameplate().is_none() || opening == self.opening,
            };
            if let Some(opened) = opened.filter(|opened| is_wanted(&opened.opening)) {
                return Some((opened.message, from));
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
