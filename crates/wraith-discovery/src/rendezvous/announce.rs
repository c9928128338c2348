//! Waits at a rendezvous server: opens a nameplate (the number in a code), keeps it open, and
//! answers joiners with a responder.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::select;
use tokio::time::{Instant, sleep_until, timeout};

use super::frame::{ClientFrame, ServerFrame};
use super::link::Link;
use crate::connect::Connect;
use crate::place::{
    Announcement, BoxFuture, End, LAST_WORD_TIMEOUT, MAX_NAMEPLATE, Place, PlaceError, Question,
    Refusal, Responder, Response,
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
pub struct Opening {
    place: Place,
    link: Link,
    nameplate: u32,
    /// This machine's address as the server observes it; `None` if the server observes a proxy's
    /// address.
    seen: Option<IpAddr>,
}

impl Opening {
    /// Opens `nameplate`, or another one unless `exact` is set.
    pub async fn new(
        place: Place,
        connect: &dyn Connect,
        nameplate: u32,
        exact: bool,
    ) -> Result<Self, PlaceError> {
        let mut link = Link::connect(place.name(), connect).await?;
        link.send(&ClientFrame::Open { nameplate, exact }).await?;
        let answer = timeout(OPEN_TIMEOUT, link.next()).await.map_err(|_| PlaceError::Silent)?;
        match answer? {
            ServerFrame::Opened { nameplate: opened, seen }
                if opened == nameplate || !exact && (1..=MAX_NAMEPLATE).contains(&opened) =>
            {
                let seen = link.own_address(seen);
                Ok(Self { place, link, nameplate: opened, seen })
            }
            ServerFrame::No(why) => Err(why.into()),
            _ => Err(PlaceError::Protocol),
        }
    }

    async fn answer(
        mut self,
        responder: Arc<dyn Responder>,
        mut end: End,
    ) -> Result<(), PlaceError> {
        let mut joiners = HashMap::new();
        let mut heard = Instant::now();
        let mut ping = heard + PING_INTERVAL;
        loop {
            // Only waits are cancelled by another branch, never a send in progress.
            let frame = select! {
                biased;
                why = end.wait() => return self.close(why).await,
                () = sleep_until(heard + SILENCE_TIMEOUT) => return Err(PlaceError::Silent),
                () = sleep_until(ping) => {
                    ping = Instant::now() + PING_INTERVAL;
                    self.link.send(&ClientFrame::Ping).await?;
                    continue;
                }
                frame = self.link.next() => frame?,
            };
            heard = Instant::now();
            if let Some((why, last)) = self.take(frame, &mut joiners, &*responder).await? {
                let closed = self.close(why).await;
                drop(last);
                return closed;
            }
        }
    }

    /// Handles one frame. Returns the response if it ended the topic. The joiner already has it,
    /// and the server must get the reason before the event is reported.
    async fn take(
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
            ServerFrame::Told { joiner, message } => (joiner, message),
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
        self.link.send(&ClientFrame::Tell { joiner, message }).await?;
        Ok(response.ends.map(|why| (why, response)))
    }

    /// Tells the server the reason of the end.
    async fn close(self, why: Refusal) -> Result<(), PlaceError> {
        self.link.finish(&ClientFrame::Close(why), LAST_WORD_TIMEOUT).await;
        Ok(())
    }
}

impl Announcement for Opening {
    fn nameplate(&self) -> Option<u32> {
        Some(self.nameplate)
    }

    fn serve(
        self: Box<Self>,
        responder: Arc<dyn Responder>,
        end: End,
    ) -> BoxFuture<'static, Result<(), PlaceError>> {
        Box::pin(self.answer(responder, end))
    }
}
