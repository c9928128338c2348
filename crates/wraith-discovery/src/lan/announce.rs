//! Waits on the local network: a multicast listener answers valid requests.
//!
//! The listener runs only after a packet or an interface change. Invariant: its work per source
//! address, and for all addresses together, is bounded by [`RATE`].

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::select;
use tokio::time::sleep;
use tracing::debug;

use super::envelope::{Envelope, OpenedPacket};
use super::interface_watch::InterfaceWatch;
use super::interfaces::Lan;
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
/// Pause after a socket error, which a network change may cause.
const SOCKET_PAUSE: Duration = Duration::from_millis(100);

/// Sockets that have joined the multicast group.
#[derive(Debug)]
pub struct MulticastListener {
    lan: Lan,
    envelope: Envelope,
    /// Receives from the group.
    shared: DualStackSockets,
    /// Sends responses and receives the following messages.
    own: DualStackSockets,
}

impl MulticastListener {
    /// # Errors
    /// There is no local network to listen on.
    pub fn new(lan: Lan, envelope: Envelope) -> Result<Self, PlaceError> {
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
        Ok(Self { lan, envelope, shared, own })
    }

    async fn serve_requests(self, responder: Arc<dyn Responder>) -> Result<(), PlaceError> {
        let mut rates = RateLimiter::new(RATE);
        let mut interfaces = InterfaceWatch::new();
        let mut buffer = RecvBuffer::new();
        // Covers changes between the first join and the start of the watch.
        self.shared.join(&self.lan.interfaces());
        loop {
            let received = select! {
                received = self.shared.receive_from_any(&self.own, &mut buffer) => received,
                () = interfaces.changed() => {
                    let interfaces = self.lan.interfaces();
                    let joined = self.shared.join(&interfaces);
                    debug!(interfaces = interfaces.len(), joined, "the network has changed");
                    continue;
                }
            };
            let Ok((len, from)) = received else {
                sleep(SOCKET_PAUSE).await;
                continue;
            };
            if let Some(opened) = self.envelope.unwrap(&buffer.bytes()[..len])
                && rates.allow(Source::of(from.ip()), Instant::now())
            {
                self.respond(&*responder, from, &opened).await;
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
