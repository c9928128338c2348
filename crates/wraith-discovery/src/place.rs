//! What a place to meet is: [`MeetingPlace`], with two operations. Who waits **announces** a topic, who looks **queries** it.
//!
//! ```text
//!   code exchange   contact exchange          messages and authorization: `crate::code`, `crate::contact`
//!        └───────┬───────┘
//!           MeetingPlace                      opaque sealed messages: this file
//!        ┌───────┼──────────────┐
//!       lan  rendezvous  your own place       transport
//! ```
//!
//! A place moves bytes it cannot read and decides nothing: it puts an envelope of its own around them, repeats what may be
//! lost, and bounds what strangers can make it do. A new place is one file that implements the trait, and one line in
//! [`crate::Places::all`]; one that an application brings along goes into [`crate::Places::others`].
//!
//! Messages about a nameplate are at most [`MAX_MESSAGE_LEN`] bytes and differ in length, so the place pads them. Messages
//! between contacts have exactly [`PlaceCaps::contact_message_len`] bytes already.
//!
//! A place must be *live*: answers come from the other side while it runs. One that stores answers for anybody to fetch is a
//! [`crate::RecordStore`] instead, because a stored answer to a nameplate would let anybody try all words at leisure.
//!
//! Invariants: nothing outlives the futures and boxes returned here, so dropping them withdraws; no place starts a task or a
//! thread; at rest a place wakes up at its own timers only, which are 25 s apart or more.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::sync::watch;

/// The longest message about a nameplate, and the length of one between contacts unless a place says otherwise.
pub const MAX_MESSAGE_LEN: usize = 409;
/// The highest nameplate of a code: six digits are as long as anybody wants to type, and more than one server holds.
pub const MAX_NAMEPLATE: u32 = 999_999;

/// A future on the heap: what a trait object can return. There is one a minute, so it costs nothing.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Somewhere two sides can meet. See the module.
pub trait MeetingPlace: Send + Sync + fmt::Debug + 'static {
    /// What it is called.
    fn place(&self) -> Place;

    /// What is particular about it.
    fn caps(&self) -> PlaceCaps;

    /// Begins to wait at `topic`. Done when somebody who queries it can be heard; whoever comes is answered from
    /// [`Announcement::serve`] on, and waits until then.
    ///
    /// # Errors
    /// Why nobody can be waited for. Only after [`PlaceError::Unusable`] there is no point in trying again.
    fn announce(
        &self,
        topic: Topic,
    ) -> BoxFuture<'static, Result<Box<dyn Announcement>, PlaceError>>;

    /// Looks for who announced `topic`. Nothing happens before the first [`Query::next`]. `question` makes the first message of
    /// a conversation; a place that sends it several times calls it for each.
    fn query(&self, topic: Topic, question: MakeQuestion) -> Box<dyn Query>;
}

/// A topic that is waited at. Dropping it withdraws it.
pub trait Announcement: Send {
    /// The nameplate it is reached at; None if the place knows no nameplates.
    fn nameplate(&self) -> Option<u32>;

    /// Lets `responder` answer whoever comes. Dropping the future withdraws the topic.
    ///
    /// When `end` comes, nobody new needs to be let in. A place that can tell latecomers why says so there and returns
    /// `Ok`, within [`LAST_WORD_TIMEOUT`]; one where waiting costs nothing goes on answering until it is dropped.
    ///
    /// # Errors
    /// Nobody can come from there any more.
    fn serve(
        self: Box<Self>,
        responder: Arc<dyn Responder>,
        end: End,
    ) -> BoxFuture<'static, Result<(), PlaceError>>;
}

/// How long the last word of an announcement may take.
pub const LAST_WORD_TIMEOUT: Duration = Duration::from_millis(500);

/// One attempt to find who announced a topic. Dropping it ends it.
pub trait Query: Send {
    /// The next message for us: from anybody, and after [`Query::go_on`] from that one only. Cancel-safe.
    ///
    /// # Errors
    /// The attempt is over; another one may be made.
    fn next(&mut self) -> BoxFuture<'_, Result<Reply, PlaceError>>;

    /// Goes on with whoever sent the last reply, in the same conversation. What may be lost is repeated while
    /// [`Query::next`] is waited for.
    ///
    /// # Errors
    /// They cannot be reached any more.
    fn go_on(&mut self, message: Vec<u8>) -> BoxFuture<'_, Result<(), PlaceError>>;
}

/// Makes the first message of a conversation.
pub type MakeQuestion = Box<dyn FnMut() -> Result<Vec<u8>, PlaceError> + Send>;

/// Answers whoever comes to an announcement. One responder is shared by all places, so what is decided is decided once.
pub trait Responder: Send + Sync {
    /// The response to one message; None is silence. Quick, without waiting.
    fn respond(&self, question: &Question<'_>) -> Option<Response>;
}

/// A message to who announced a topic.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// Where it came in.
    pub place: &'a Place,
    /// The first message of the conversation, which names it; `message` itself if this is the first.
    pub opening: &'a [u8],
    /// What is said.
    pub message: &'a [u8],
    /// Where it came from, if it came straight from there.
    pub from: Option<SocketAddr>,
    /// Our own address, as the place sees it.
    pub seen: Option<IpAddr>,
}

/// What is said to a [`Question`]. A place drops it once it was sent, or could not be: what follows from it is told then and
/// not before, because the program may end upon it.
pub struct Response {
    /// What to send.
    pub message: Vec<u8>,
    /// The topic ends with this response. It is the last chance to say so, so it is worth repeating.
    pub ends: Option<Refusal>,
    then: Option<Box<dyn FnOnce() + Send>>,
}

impl Response {
    /// A response from which nothing follows.
    pub fn new(message: Vec<u8>) -> Self {
        Self { message, ends: None, then: None }
    }

    /// The same, and `then` follows once it was sent.
    pub fn then(mut self, then: impl FnOnce() + Send + 'static) -> Self {
        self.then = Some(Box::new(then));
        self
    }

    /// The same, and the topic ends with it.
    pub fn ending(mut self, why: Refusal) -> Self {
        self.ends = Some(why);
        self
    }
}

impl Drop for Response {
    fn drop(&mut self) {
        if let Some(then) = self.then.take() {
            then();
        }
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response").field("ends", &self.ends).finish_non_exhaustive()
    }
}

/// A message to who queries a topic.
#[derive(Clone, Debug)]
pub struct Reply {
    /// What is said.
    pub message: Vec<u8>,
    /// Where it came from, if it came straight from there.
    pub from: Option<SocketAddr>,
    /// Our own address, as the place sees it.
    pub seen: Option<IpAddr>,
}

/// What is announced and queried.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Topic {
    /// A code is waited with. Who announces takes another nameplate than this one if need be, unless it is `exact`.
    Nameplate {
        /// 1 to [`MAX_NAMEPLATE`].
        nameplate: u32,
        /// No other one will do.
        exact: bool,
    },
    /// One contact waits for another.
    Contact(ContactTag),
    /// Any contact waits for any other, at a place that everybody hears ([`PlaceCaps::broadcast`]).
    AnyContact,
}

/// What two contacts, and nobody else, compute for each other and this hour.
pub type ContactTag = [u8; 32];

impl fmt::Debug for Topic {
    /// Without what it says: it may stand in a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nameplate { .. } => "Nameplate",
            Self::Contact(_) => "Contact",
            Self::AnyContact => "AnyContact",
        })
    }
}

/// What is particular about a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlaceCaps {
    /// Everybody there hears everything: contacts need no topic of their own.
    pub broadcast: bool,
    /// Contacts that may be waited for there.
    pub contacts: usize,
    /// Bytes of every message between contacts there.
    pub contact_message_len: usize,
    /// How long the other side may take to answer once a conversation has begun.
    pub answer_timeout: Duration,
}

impl Default for PlaceCaps {
    /// A place with a mailbox for each topic, for few contacts.
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
    /// The same, where everybody hears everything.
    pub fn broadcast(mut self, contacts: usize) -> Self {
        (self.broadcast, self.contacts) = (true, contacts);
        self
    }

    /// The same, with messages between contacts of this length.
    pub fn contact_message_len(mut self, bytes: usize) -> Self {
        self.contact_message_len = bytes;
        self
    }

    /// The same, with this much time to answer.
    pub fn answer_timeout(mut self, timeout: Duration) -> Self {
        self.answer_timeout = timeout;
        self
    }
}

/// What a place is called.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Place {
    /// The local network.
    Lan,
    /// A rendezvous server, as `HOST:PORT`.
    Rendezvous(String),
    /// The Mainline DHT.
    Dht,
    /// A place that the application brought along, by its name.
    Other(String),
}

impl Place {
    /// For scripts.
    pub fn name(&self) -> &str {
        match self {
            Self::Lan => "lan",
            Self::Dht => "dht",
            Self::Rendezvous(name) | Self::Other(name) => name,
        }
    }
}

impl fmt::Display for Place {
    /// For people, as in "nobody waits …".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lan => f.write_str("on the local network"),
            Self::Dht => f.write_str("on the DHT"),
            Self::Rendezvous(name) | Self::Other(name) => write!(f, "at {name}"),
        }
    }
}

/// Why a place does not do it. The text is for people.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PlaceError {
    /// It cannot be used from here, and that will stay so.
    #[error("{0}")]
    Unusable(String),
    /// It cannot be reached now.
    #[error("{0}")]
    Unreachable(String),
    /// It does not answer.
    #[error("it does not answer")]
    Silent,
    /// It wants us to wait.
    #[error("too many requests from here")]
    TooFast,
    /// It has no room.
    #[error("it is full")]
    Full,
    /// Somebody else waits at this topic.
    #[error("somebody else waits at this nameplate")]
    Taken,
    /// Nobody waits at this topic.
    #[error("nobody waits there")]
    Nobody,
    /// Whoever waited at this topic waits no longer, because of this.
    #[error("whoever waited there waits no longer")]
    Closed(Refusal),
    /// It speaks another version.
    #[error("it speaks another version")]
    Version,
    /// It is no such place, or a broken one.
    #[error("it does not do what it was asked for")]
    Protocol,
}

impl PlaceError {
    /// There is no randomness, without which nothing can be said.
    pub(crate) fn no_randomness() -> Self {
        Self::Unusable("the system has no randomness".into())
    }
}

/// Why a joiner is not served. Told to the joiner in one byte, which proves nothing and is treated so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Refusal {
    /// Somebody else was served.
    Used = 1,
    /// Somebody guessed wrong before.
    Burned = 2,
    /// The time is up.
    Expired = 3,
    /// This guess was wrong, and with it the code is burned.
    Wrong = 4,
    /// The message is no hello of a joiner of this code: the other direction, or nonsense.
    Unfit = 5,
    /// The proof belongs to no run; the joiner may begin again with a new code only.
    Unknown = 6,
}

impl Refusal {
    /// The refusal that a byte names.
    pub const fn from_wire(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Used,
            2 => Self::Burned,
            3 => Self::Expired,
            4 => Self::Wrong,
            5 => Self::Unfit,
            6 => Self::Unknown,
            _ => return None,
        })
    }
}

/// Tells an announcement when, and why, nobody new is let in.
#[derive(Clone, Debug)]
pub struct End(watch::Receiver<Option<Refusal>>);

impl End {
    /// An end, and who brings it about.
    pub(crate) fn channel() -> (watch::Sender<Option<Refusal>>, Self) {
        let (sender, receiver) = watch::channel(None);
        (sender, Self(receiver))
    }

    /// Why it has come, if it has.
    pub fn reached(&self) -> Option<Refusal> {
        *self.0.borrow()
    }

    /// Waits for it; for ever if it does not come. Cancel-safe.
    pub async fn wait(&mut self) -> Refusal {
        // The guard goes before anything is waited for.
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
    fn what_follows_from_a_response_happens_once_it_was_sent() {
        let told = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&told);
        let response = Response::new(vec![1]).then(move || theirs.store(true, Relaxed));
        assert!(!told.load(Relaxed));
        drop(response);
        assert!(told.load(Relaxed));
    }

    #[test]
    fn refusals_survive_the_wire() {
        for byte in 0..=u8::MAX {
            if let Some(refusal) = Refusal::from_wire(byte) {
                assert_eq!(refusal as u8, byte);
            }
        }
        assert_eq!(Refusal::from_wire(Refusal::Wrong as u8), Some(Refusal::Wrong));
    }

    #[test]
    fn a_topic_in_a_log_says_nothing() {
        let topic = Topic::Nameplate { nameplate: 4711, exact: true };
        assert!(!format!("{topic:?} {:?}", Topic::Contact([7; 32])).contains('7'));
    }
}
