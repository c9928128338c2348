//! Waiting on the local network: a multicast listener answers whoever says the right thing.
//!
//! It is pure readiness: nothing runs until a packet comes, or an interface. Invariant: what one address, and all addresses
//! together, can make it do is bounded by [`RATE`].

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

/// Packets that one address may send. A joiner needs two, and repeats what is lost; a contact calls once a second. An exchange
/// costs a fifth of a millisecond, and trying every contact's key half of one, so all remembered addresses together cost less
/// than a fifth of a processor.
const RATE: Limit = Limit { burst: 20, refill: Duration::from_millis(200), addresses: 64 };
/// How often a response that ends the topic is sent: the process may end after it, so nobody could ask again.
const LAST_WORDS: u32 = 3;
const BETWEEN_LAST_WORDS: Duration = Duration::from_millis(30);
/// After a socket failed, which the network's own changes may cause.
const SOCKET_PAUSE: Duration = Duration::from_millis(100);

/// The sockets, which have joined the group.
#[derive(Debug)]
pub struct MulticastListener {
    lan: Lan,
    envelope: Envelope,
    /// Hears the group.
    shared: Sockets,
    /// Answers, and hears what is said to it after that.
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
        // What came between joining and watching.
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

    /// Goes on after `end`: to say why costs nothing here, and who did not get an answer asks again.
    fn serve(
        self: Box<Self>,
        responder: Arc<dyn Responder>,
        _end: End,
    ) -> BoxFuture<'static, Result<(), PlaceError>> {
        Box::pin(self.listen(responder))
    }
}
