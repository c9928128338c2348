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

use super::envelope::{Envelope, Opened};
use super::interface_watch::InterfaceWatch;
use super::interfaces::Lan;
use super::sockets::{Buffer, Sockets};
use crate::place::{Announcement, BoxFuture, End, Place, PlaceError, Question, Responder};
use crate::rates::{Limit, Rates, Source};

/// Rate limit of packets per address. A joiner needs two packets plus retransmissions; a contact
/// calls once a second. An exchange costs a fifth of a millisecond, and trial decryption with all
/// contacts' keys half of one. All remembered addresses together therefore cost less than a fifth
/// of a processor.
const RATE: Limit = Limit { burst: 20, refill: Duration::from_millis(200), addresses: 64 };
/// Number of transmissions of a response that ends the topic. The process may end after it and
/// cannot answer again.
const LAST_WORDS: u32 = 3;
const BETWEEN_LAST_WORDS: Duration = Duration::from_millis(30);
/// Pause after a socket error, which a network change may cause.
const SOCKET_PAUSE: Duration = Duration::from_millis(100);

/// Sockets that have joined the multicast group.
#[derive(Debug)]
pub struct MulticastListener {
    lan: Lan,
    envelope: Envelope,
    /// Receives from the group.
    shared: Sockets,
    /// Sends responses and receives the following messages.
    own: Sockets,
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
        let shared = Sockets::shared().map_err(unusable)?;
        let own = Sockets::own().map_err(unusable)?;
        if shared.join(&interfaces) == 0 {
            return Err(PlaceError::Unusable("no network interface takes multicast".into()));
        }
        Ok(Self { lan, envelope, shared, own })
    }

    async fn listen(self, responder: Arc<dyn Responder>) -> Result<(), PlaceError> {
        let mut rates = Rates::new(RATE);
        let mut interfaces = InterfaceWatch::new();
        let mut buffer = Buffer::new();
        // Covers changes between the first join and the start of the watch.
        self.shared.join(&self.lan.interfaces());
        loop {
            let received = select! {
                received = self.shared.receive_either(&self.own, &mut buffer) => received,
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

    async fn respond(&self, responder: &dyn Responder, from: SocketAddr, opened: &Opened) {
        let Opened { opening, message } = opened;
        let (place, from) = (&Place::Lan, Some(from));
        let question = Question { place, opening, message, from, seen: None };
        let Some(response) = responder.respond(&question) else { return };
        let times = if response.ends.is_some() { LAST_WORDS } else { 1 };
        for again in 0..times {
            if again > 0 {
                sleep(BETWEEN_LAST_WORDS).await;
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
    fn serve(
        self: Box<Self>,
        responder: Arc<dyn Responder>,
        _end: End,
    ) -> BoxFuture<'static, Result<(), PlaceError>> {
        Box::pin(self.listen(responder))
    }
}
