//! Waits at a rendezvous server: opens a nameplate (the number in a code), keeps it open, and
//! answers joiners with a responder.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::select;
use tokio::time::{Instant, sleep_until, timeout};

use super::frame::{ClientFrame, ServerFrame};
use super::link::ServerLink;
use crate::connect::Connect;
use crate::place::{
    Announcement, BoxFuture, CLOSE_MESSAGE_TIMEOUT, EndSignal, MAX_NAMEPLATE, PlaceError,
    PlaceName, Question, Refusal, Responder, Response,
};

/// Time limit of the server's response to an open request.
const OPEN_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval of pings: a third of the silence that servers tolerate, and below the timeout of NAT
/// bindings.
const PING_INTERVAL: Duration = Duration::from_secs(30);
/// Silence after which a server is considered down: it has not answered the pings.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(75);
/// Most joiners whose first message is remembered: more than an honest server admits at once.
/// Beyond this number, all of them are dropped.
const MAX_JOINERS: usize = 64;

/// A nameplate opened at a server.
#[derive(Debug)]
pub struct OpenedNameplate {
    place: PlaceName,
    link: ServerLink,
    nameplate: u32,
    /// This machine's address as the server observes it; `None` if the server observes a proxy's
    /// address.
    seen: Option<IpAddr>,
}

impl OpenedNameplate {
    /// Opens `nameplate`, or another one unless `exact` is set.
    pub async fn new(
        place: PlaceName,
        connect: &dyn Connect,
        nameplate: u32,
        exact: bool,
    ) -> Result<Self, PlaceError> {
        let mut link = ServerLink::connect(place.name(), connect).await?;
        link.send(&ClientFrame::Open { nameplate, exact }).await?;
        let answer = timeout(OPEN_TIMEOUT, link.next()).await.map_err(|_| PlaceError::Silent)?;
        match answer? {
            ServerFrame::Opened { nameplate: opened, seen }
                if opened == nameplate || !exact && (1..=MAX_NAMEPLATE).contains(&opened) =>
            {
                let seen = link.own_address(seen);
                Ok(Self { place, link, nameplate: opened, seen })
            }
            ServerFrame::Refused(why) => Err(why.into()),
            _ => Err(PlaceError::Protocol),
        }
    }

    async fn serve_joiners(
        mut self,
        responder: Arc<dyn Responder>,
        mut end: EndSignal,
    ) -> Result<(), PlaceError> {
        let mut joiners = HashMap::new();
        let mut last_received = Instant::now();
        let mut ping = last_received + PING_INTERVAL;
        loop {
            // Only waits are cancelled by another branch, never a send in progress.
            let frame = select! {
                biased;
                why = end.wait() => return self.close(why).await,
                () = sleep_until(last_received + SILENCE_TIMEOUT) => return Err(PlaceError::Silent),
                () = sleep_until(ping) => {
                    ping = Instant::now() + PING_INTERVAL;
                    self.link.send(&ClientFrame::Ping).await?;
                    continue;
                }
                frame = self.link.next() => frame?,
            };
            last_received = Instant::now();
            if let Some((why, last)) = self.handle_frame(frame, &mut joiners, &*responder).await? {
                let closed = self.close(why).await;
                drop(last);
                return closed;
            }
        }
    }

    /// Handles one frame. Returns the response if it ended the topic. The joiner already has it,
    /// and the server must get the reason before the event is reported.
    async fn handle_frame(
        &mut self,
        frame: ServerFrame,
        joiners: &mut HashMap<u32, Vec<u8>>,
        responder: &dyn Responder,
    ) -> Result<Option<(Refusal, Response)>, PlaceError> {
        let (joiner, message) = match frame {
            ServerFrame::Arrived { joiner, message } => {
                if joiners.len() >= MAX_JOINERS {
                    joiners.clear();
                }
                joiners.insert(joiner, message.clone());
                (joiner, message)
            }
            ServerFrame::Message { joiner, message } => (joiner, message),
            ServerFrame::Left { joiner } => {
                joiners.remove(&joiner);
                return Ok(None);
            }
            ServerFrame::Pong => return Ok(None),
            _ => return Err(PlaceError::Protocol),
        };
        let Some(opening) = joiners.get(&joiner) else { return Ok(None) };
        let (place, seen) = (&self.place, self.seen);
        let question = Question { place, opening, message: &message, from: None, seen };
        let Some(mut response) = responder.respond(&question) else { return Ok(None) };
        let message = std::mem::take(&mut response.message);
        self.link.send(&ClientFrame::Send { joiner, message }).await?;
        Ok(response.ends.map(|why| (why, response)))
    }

    /// Sends the server the reason of the end.
    async fn close(self, why: Refusal) -> Result<(), PlaceError> {
        self.link.finish(&ClientFrame::Close(why), CLOSE_MESSAGE_TIMEOUT).await;
        Ok(())
    }
}

impl Announcement for OpenedNameplate {
    fn nameplate(&self) -> Option<u32> {
        Some(self.nameplate)
    }

    fn serve_queries(
        self: Box<Self>,
        responder: Arc<dyn Responder>,
        end: EndSignal,
    ) -> BoxFuture<'static, Result<(), PlaceError>> {
        Box::pin(self.serve_joiners(responder, end))
    }
}
