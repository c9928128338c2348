//! Waits on the local network: a multicast listener answers valid requests.
//!
//! The listener runs only after a packet or an interface change. Invariants:
//!
//! - Its work per source address, and for all addresses together, is bounded by [`RATE`].
//! - A conversation begins with a packet to the group, which no router forwards. So a host on
//!   another network gets no answer and changes no state.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::select;
use tokio::time::sleep;
use tracing::debug;

use super::envelope::{Envelope, OpenedPacket};
use super::interface_watch::InterfaceWatch;
use super::interfaces::Lan;
use super::nameplate_lock::NameplateLock;
use super::packet::{CLAIM, TAKEN};
use super::sockets::{DualStackSockets, RecvBuffer};
use crate::place::{
    Announcement, BoxFuture, EndSignal, PlaceError, PlaceName, Question, Responder,
};
use crate::rates::{RateLimit, RateLimiter, Source};

/// Rate limit of packets per address. A joiner needs two packets plus retransmissions; a contact
/// calls once a second. An exchange costs a fifth of a millisecond, and trial decryption with all
/// contacts' keys half of one. All remembered addresses together therefore cost less than a fifth
/// of a processor.
const RATE: RateLimit = RateLimit { burst: 20, refill: Duration::from_millis(200), addresses: 64 };
/// Number of transmissions of a response that ends the topic. The process may end after it and
/// cannot answer again.
const FINAL_TRANSMISSIONS: u32 = 3;
const FINAL_TRANSMISSION_INTERVAL: Duration = Duration::from_millis(30);
/// Most conversations remembered; as many as a creator has exchanges.
const MAX_OPENINGS: usize = 512;
/// Pause after a socket error, which a network change may cause.
const SOCKET_PAUSE: Duration = Duration::from_millis(100);

/// Sockets that have joined the multicast group.
#[derive(Debug)]
pub struct MulticastListener {
    lan: Lan,
    pub(super) envelope: Envelope,
    /// Receives from the group.
    shared: DualStackSockets,
    /// Sends claims and responses, and receives the following messages.
    pub(super) own: DualStackSockets,
    /// First messages that came to the group, oldest first. Nobody else can name one: it is random.
    openings: VecDeque<Vec<u8>>,
    /// Token of our claim; answers to it carry the token.
    pub(super) claim_token: Vec<u8>,
    rates: RateLimiter,
    /// Keeps other processes of this machine from the nameplate.
    _lock: Option<NameplateLock>,
}

impl MulticastListener {
    /// # Errors
    /// There is no local network to listen on.
    pub fn new(
        lan: Lan,
        envelope: Envelope,
        lock: Option<NameplateLock>,
    ) -> Result<Self, PlaceError> {
        let unusable = |error: std::io::Error| PlaceError::Unusable(error.to_string());
        let interfaces = lan.interfaces();
        if interfaces.is_empty() {
            return Err(PlaceError::Unusable(lan.missing()));
        }
        let shared = DualStackSockets::on_group_port().map_err(unusable)?;
        let own = DualStackSockets::ephemeral().map_err(unusable)?;
        if shared.join(&interfaces) == 0 {
            return Err(PlaceError::Unusable("no network interface takes multicast".into()));
        }
        let (openings, claim_token) = (VecDeque::new(), Vec::new());
        let rates = RateLimiter::new(RATE);
        Ok(Self { lan, envelope, shared, own, openings, claim_token, rates, _lock: lock })
    }

    /// Returns the next packet, or `None` if it is to be ignored. Cancel-safe.
    pub(super) async fn receive(
        &mut self,
        buffer: &mut RecvBuffer,
    ) -> Option<(OpenedPacket, SocketAddr)> {
        let Ok(datagram) = self.shared.receive_from_any(&self.own, buffer).await else {
            sleep(SOCKET_PAUSE).await;
            return None;
        };
        let opened = self.envelope.unwrap(&buffer.bytes()[..datagram.len])?;
        let begins = opened.message == opened.opening || opened.message == CLAIM;
        let is_known =
            self.openings.contains(&opened.opening) || self.claim_token == opened.opening;
        let is_wanted = if begins { datagram.is_for_group() } else { is_known };
        let source = Source::of(datagram.from.ip());
        if !is_wanted || !self.rates.allow(source, Instant::now()) {
            return None;
        }
        let is_hello = self.nameplate().is_some() && opened.message == opened.opening;
        if is_hello && !is_known {
            if self.openings.len() == MAX_OPENINGS {
                self.openings.pop_front();
            }
            self.openings.push_back(opened.opening.clone());
        }
        Some((opened, datagram.from))
    }

    /// Tells the creator with this claim that the nameplate is taken.
    pub(super) fn refuse_claim(&self, token: &[u8], to: SocketAddr) {
        if let Ok(packet) = self.envelope.wrap(token, TAKEN) {
            self.own.send(to, &packet);
        }
    }

    /// Answers claims while no joiner is served yet. Cancel-safe.
    async fn defend_nameplate(&mut self) {
        let mut buffer = RecvBuffer::new();
        loop {
            if let Some((opened, from)) = self.receive(&mut buffer).await
                && opened.message == CLAIM
            {
                self.refuse_claim(&opened.opening, from);
            }
        }
    }

    async fn serve_requests(mut self, responder: Arc<dyn Responder>) -> Result<(), PlaceError> {
        let mut interfaces = InterfaceWatch::new();
        let mut buffer = RecvBuffer::new();
        // Covers changes between the first join and the start of the watch.
        self.shared.join(&self.lan.interfaces());
        loop {
            let received = select! {
                received = self.receive(&mut buffer) => received,
                () = interfaces.changed() => {
                    let interfaces = self.lan.interfaces();
                    let joined = self.shared.join(&interfaces);
                    debug!(interfaces = interfaces.len(), joined, "the network has changed");
                    continue;
                }
            };
            match received {
                Some((opened, from)) if opened.message == CLAIM => {
                    self.refuse_claim(&opened.opening, from);
                }
                Some((opened, from)) => self.respond(&*responder, from, &opened).await,
                None => {}
            }
        }
    }

    async fn respond(&self, responder: &dyn Responder, from: SocketAddr, opened: &OpenedPacket) {
        let OpenedPacket { opening, message } = opened;
        let (place, from) = (&PlaceName::Lan, Some(from));
        let question = Question { place, opening, message, from, seen: None };
        let Some(response) = responder.respond(&question) else { return };
        let times = if response.ends.is_some() { FINAL_TRANSMISSIONS } else { 1 };
        for again in 0..times {
            if again > 0 {
                sleep(FINAL_TRANSMISSION_INTERVAL).await;
            }
            if let (Ok(packet), Some(to)) = (self.envelope.wrap(opening, &response.message), from) {
                self.own.send(to, &packet);
            }
        }
    }
}

impl Announcement for MulticastListener {
    fn nameplate(&self) -> Option<u32> {
        self.envelope.nameplate()
    }

    fn hold(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(self.defend_nameplate())
    }

    /// Keeps answering after `end`: a refusal costs nothing on this network, and an unanswered
    /// joiner asks again.
    fn serve_queries(
        self: Box<Self>,
        responder: Arc<dyn Responder>,
        _end: EndSignal,
    ) -> BoxFuture<'static, Result<(), PlaceError>> {
        Box::pin(self.serve_requests(responder))
    }
}
