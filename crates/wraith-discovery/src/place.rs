//! [`MeetingPlace`]: the interface of a place where two peers find each other, such as the local
//! network or a server. The waiting side **announces** a topic, the searching side **queries** it.
//!
//! ```text
//!   code exchange   contact exchange          messages and authorization: `crate::code`, `crate::contact`
//!        └───────┬───────┘
//!           MeetingPlace                      opaque sealed messages: this file
//!        ┌───────┼──────────────┐
//!       lan  rendezvous  your own place       transport
//! ```
//!
//! A place moves sealed bytes and makes no decisions. It adds its own envelope, retransmits lost
//! messages, and bounds the work that unknown senders can cause. A new kind of place is one file
//! that implements the trait, and one line in [`crate::Places::all`]. A place of the application is
//! added to [`crate::Places::others`].
//!
//! Messages about a nameplate are at most [`MAX_MESSAGE_LEN`] bytes and vary in length, so the
//! place pads them. Messages between contacts have exactly [`PlaceCaps::contact_message_len`]
//! bytes.
//!
//! A place must be *live*: answers come from the running peer. A place with stored answers that
//! anyone can fetch is a [`crate::RecordStore`] instead. A stored answer to a nameplate would allow
//! an offline search for the words.
//!
//! Invariants:
//!
//! - Nothing outlives the returned futures and boxes, so dropping one withdraws its announcement or
//!   query.
//! - No place starts a task or a thread.
//! - An idle place wakes up only at its own timers, at least 25 s apart.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::sync::watch;
use wraith_crypto::wire_enum;

/// Longest message about a nameplate, and default length of contact messages, in bytes.
pub const MAX_MESSAGE_LEN: usize = 409;
/// Highest nameplate of a code. Six digits are the most that people want to type, and more than one
/// server holds.
pub const MAX_NAMEPLATE: u32 = 999_999;

/// A boxed future, as trait objects require. They are rare, so the allocation does not matter.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A place where two sides can meet; see the module documentation.
pub trait MeetingPlace: Send + Sync + fmt::Debug + 'static {
    /// Returns the place's name.
    fn place(&self) -> PlaceName;

    /// Returns the place's properties.
    fn caps(&self) -> PlaceCaps;

    /// Announces `topic`. Completes once queries can reach the announcement. Peers are answered
    /// from [`Announcement::serve_queries`] on, and wait until then.
    ///
    /// # Errors
    /// The reason of the failure. A retry is useless only after [`PlaceError::Unusable`].
    fn announce(
        &self,
        topic: Topic,
    ) -> BoxFuture<'static, Result<Box<dyn Announcement>, PlaceError>>;

    /// Looks for the announcer of `topic`. Nothing is sent before the first [`Query::next`].
    /// `question` makes the first message of a conversation; a place that sends it several times
    /// calls it for each.
    fn query(&self, topic: Topic, question: MakeQuestion) -> Box<dyn Query>;
}

/// An announced topic. Drop withdraws it.
pub trait Announcement: Send {
    /// Returns the nameplate in use; `None` if the place has no nameplates.
    fn nameplate(&self) -> Option<u32>;

    /// Keeps the topic before [`Self::serve_queries`]. Never completes; cancel-safe. A place where
    /// others can ask for the same nameplate answers them here.
    fn hold(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }

    /// Answers peers with `responder`. Drop of the future withdraws the topic.
    ///
    /// After `end`, no new peers need to be admitted. A place that can send the reason to late
    /// peers does so and returns `Ok` within [`CLOSE_MESSAGE_TIMEOUT`]. A place where waiting costs
    /// nothing keeps answering until drop.
    ///
    /// # Errors
    /// The place is lost.
    fn serve_queries(
        self: Box<Self>,
        responder: Arc<dyn Responder>,
        end: EndSignal,
    ) -> BoxFuture<'static, Result<(), PlaceError>>;
}

/// Time limit for the closing message of an announcement.
pub const CLOSE_MESSAGE_TIMEOUT: Duration = Duration::from_millis(500);

/// One attempt to find an announcer. Drop ends it.
pub trait Query: Send {
    /// Returns the next message: from any peer at first, and after [`Query::send`] only from that
    /// peer. Cancel-safe.
    ///
    /// # Errors
    /// The attempt is over; another one may be made.
    fn next(&mut self) -> BoxFuture<'_, Result<Reply, PlaceError>>;

    /// Continues the conversation with the sender of the last reply. Lost messages are
    /// retransmitted while [`Query::next`] is polled.
    ///
    /// # Errors
    /// The peer is no longer reachable.
    fn send(&mut self, message: Vec<u8>) -> BoxFuture<'_, Result<(), PlaceError>>;
}

/// Makes the first message of a conversation.
pub type MakeQuestion = Box<dyn FnMut() -> Result<Vec<u8>, PlaceError> + Send>;

/// Answers the peers of an announcement. All places share one responder, so each decision is made
/// once.
pub trait Responder: Send + Sync {
    /// Returns the response to a message; `None` to stay silent. Must be quick and must not block.
    fn respond(&self, question: &Question<'_>) -> Option<Response>;
}

/// A message to an announcer.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The place that received it.
    pub place: &'a PlaceName,
    /// First message of the conversation, which identifies it; equal to `message` if this is the
    /// first.
    pub opening: &'a [u8],
    /// The message.
    pub message: &'a [u8],
    /// Source address, if it came directly from the peer.
    pub from: Option<SocketAddr>,
    /// This machine's address as the place sees it.
    pub seen: Option<IpAddr>,
}

/// Response to a [`Question`]. The place drops it after sending it, or after a failure. The
/// consequences of the response are reported at the drop and not before, because the program may
/// end when it gets the report.
pub struct Response {
    /// Bytes to send.
    pub message: Vec<u8>,
    /// Set if the topic ends with this response. It is the last chance to send the reason, so it is
    /// worth retransmitting.
    pub ends: Option<Refusal>,
    on_sent: Option<Box<dyn FnOnce() + Send>>,
}

impl Response {
    /// Creates a response without consequences.
    pub fn new(message: Vec<u8>) -> Self {
        Self { message, ends: None, on_sent: None }
    }

    /// Adds an action to run after the response was sent.
    pub fn on_sent(mut self, on_sent: impl FnOnce() + Send + 'static) -> Self {
        self.on_sent = Some(Box::new(on_sent));
        self
    }

    /// Marks the response as the last one of the topic.
    pub fn ending(mut self, why: Refusal) -> Self {
        self.ends = Some(why);
        self
    }
}

impl Drop for Response {
    fn drop(&mut self) {
        if let Some(on_sent) = self.on_sent.take() {
            on_sent();
        }
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response").field("ends", &self.ends).finish_non_exhaustive()
    }
}

/// A message to a querier.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The message.
    pub message: Vec<u8>,
    /// Source address, if it came directly from the peer.
    pub from: Option<SocketAddr>,
    /// This machine's address as the place sees it.
    pub seen: Option<IpAddr>,
}

/// Subject of announcements and queries.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Topic {
    /// A waiting code. The place may select another nameplate unless `exact` is set.
    Nameplate {
        /// 1 to [`MAX_NAMEPLATE`].
        nameplate: u32,
        /// Whether only this nameplate is acceptable.
        exact: bool,
    },
    /// One contact waits for another.
    Contact(ContactTag),
    /// Any contact may answer any other, at a broadcast place ([`PlaceCaps::broadcast`]).
    AnyContact,
}

/// A tag that only two contacts can compute, for one direction and hour.
pub type ContactTag = [u8; 32];

impl fmt::Debug for Topic {
    /// Omits the content, since topics may be logged.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nameplate { .. } => "Nameplate",
            Self::Contact(_) => "Contact",
            Self::AnyContact => "AnyContact",
        })
    }
}

/// Properties of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlaceCaps {
    /// Whether all peers receive all messages, so that contacts need no separate topics.
    pub broadcast: bool,
    /// Most contacts that may be waited for.
    pub contacts: usize,
    /// Length of every message between contacts in bytes.
    pub contact_message_len: usize,
    /// Longest wait for an answer within a conversation.
    pub answer_timeout: Duration,
}

impl Default for PlaceCaps {
    /// Returns the properties of a place with one mailbox per topic, for few contacts.
    fn default() -> Self {
        Self {
            broadcast: false,
            contacts: 16,
            contact_message_len: MAX_MESSAGE_LEN,
            answer_timeout: Duration::from_secs(10),
        }
    }
}

impl PlaceCaps {
    /// Marks the place as broadcast, for this number of contacts.
    pub fn broadcast(mut self, contacts: usize) -> Self {
        (self.broadcast, self.contacts) = (true, contacts);
        self
    }

    /// Sets the length of messages between contacts.
    pub fn contact_message_len(mut self, bytes: usize) -> Self {
        self.contact_message_len = bytes;
        self
    }

    /// Sets the longest wait for an answer.
    pub fn answer_timeout(mut self, timeout: Duration) -> Self {
        self.answer_timeout = timeout;
        self
    }
}

/// Name of a place.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PlaceName {
    /// The local network.
    Lan,
    /// A rendezvous server, as `HOST:PORT`.
    Rendezvous(String),
    /// The Mainline DHT.
    Dht,
    /// A place of the application, by its name.
    Other(String),
}

impl PlaceName {
    /// Returns the name for scripts.
    pub fn name(&self) -> &str {
        match self {
            Self::Lan => "lan",
            Self::Dht => "dht",
            Self::Rendezvous(name) | Self::Other(name) => name,
        }
    }
}

impl fmt::Display for PlaceName {
    /// Formats the name for people, as in "nobody waits …".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lan => f.write_str("on the local network"),
            Self::Dht => f.write_str("on the DHT"),
            Self::Rendezvous(name) | Self::Other(name) => write!(f, "at {name}"),
        }
    }
}

/// Failure of a place. The text is for people.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PlaceError {
    /// The place is permanently unusable from this machine.
    #[error("{0}")]
    Unusable(String),
    /// The place is not reachable at present.
    #[error("{0}")]
    Unreachable(String),
    /// The place does not answer.
    #[error("it does not answer")]
    Silent,
    /// The place rate-limits this machine.
    #[error("too many requests from this address; try again later")]
    TooFast,
    /// The place has no room.
    #[error("it is full")]
    Full,
    /// Another peer waits at this topic.
    #[error("another peer already waits with this number")]
    Taken,
    /// No peer waits at this topic.
    #[error("no peer waits there")]
    Nobody,
    /// The peer at this topic no longer waits, for this reason.
    #[error("the peer no longer waits there")]
    Closed(Refusal),
    /// The place uses another version of the protocol.
    #[error("it speaks another version")]
    Version,
    /// The server is broken or not such a place.
    #[error("it does not follow the protocol")]
    Protocol,
}

impl PlaceError {
    /// Returns the error for missing randomness.
    pub(crate) fn no_randomness() -> Self {
        Self::Unusable("the system has no randomness".into())
    }
}

wire_enum! {
    /// Reason why a joiner is refused. It is sent in one unauthenticated byte and is treated as such.
    pub enum Refusal {
        /// Another joiner was served.
        Used = 1,
        /// An earlier guess was wrong.
        Burned = 2,
        /// The code has expired.
        Expired = 3,
        /// This guess was wrong, which burns the code.
        Wrong = 4,
        /// The message is not a valid hello for this code: it is of the other direction, or malformed.
        Unfit = 5,
        /// The proof belongs to no exchange. The joiner needs a new code.
        Unknown = 6,
    }
}

/// Notifies an announcement when and why new peers are refused.
#[derive(Clone, Debug)]
pub struct EndSignal(watch::Receiver<Option<Refusal>>);

impl EndSignal {
    /// Creates an end and its trigger.
    pub(crate) fn channel() -> (watch::Sender<Option<Refusal>>, Self) {
        let (sender, receiver) = watch::channel(None);
        (sender, Self(receiver))
    }

    /// Returns the reason if the end has come.
    pub fn reached(&self) -> Option<Refusal> {
        *self.0.borrow()
    }

    /// Waits for the end; pends forever if it does not come. Cancel-safe.
    pub async fn wait(&mut self) -> Refusal {
        // The guard is released before any wait.
        let reached = self.0.wait_for(Option::is_some).await.ok().and_then(|why| *why);
        match reached {
            Some(why) => why,
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    use super::*;

    #[test]
    fn the_on_sent_action_runs_when_the_response_is_dropped() {
        let told = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&told);
        let response = Response::new(vec![1]).on_sent(move || theirs.store(true, Relaxed));
        assert!(!told.load(Relaxed));
        drop(response);
        assert!(told.load(Relaxed));
    }

    #[test]
    fn refusals_survive_the_wire() {
        for byte in 0..=u8::MAX {
            if let Some(refusal) = Refusal::from_byte(byte) {
                assert_eq!(refusal as u8, byte);
            }
        }
        assert_eq!(Refusal::from_byte(Refusal::Wrong.byte()), Some(Refusal::Wrong));
    }

    #[test]
    fn debug_output_of_a_topic_omits_its_content() {
        let topic = Topic::Nameplate { nameplate: 4711, exact: true };
        assert!(!format!("{topic:?} {:?}", Topic::Contact([7; 32])).contains('7'));
    }
}
