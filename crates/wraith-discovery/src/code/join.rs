//! Looking for the creator of a code at every place at once, for who typed it.
//!
//! The places share one [`Guess`]: the first whose creator answers makes it, and from then on the code is met there or
//! nowhere. Whoever searches is told right before the guess leaves, and may keep it ([`Spend`]): who answers learns from it whether
//! the words that it guessed were right, so a code must not be guessed with twice. Nothing runs on its own, so dropping the future ends everything.

use std::fmt;
use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use thiserror::Error;
use tokio::select;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};
use tracing::debug;
use wraith_crypto::NodeId;
use zeroize::Zeroizing;

use super::MakeTicket;
use super::long::join_long;
use super::message::Message;
use super::pake::{ANSWER_LEN, HELLO_LEN, Joiner, Proven, TicketSide, WrongWords};
use super::text::Code;
use crate::contact::LeftCall;
use crate::place::{BoxFuture, MeetingPlace, Place, PlaceError, Query, Refusal, Topic};
use crate::places::Places;
use crate::reach::MakeReach;

/// Between two attempts at a place where nobody is yet; a server allows thirty at once and one each 2 s.
const RETRY_INTERVAL: Duration = Duration::from_millis(700);
/// A refusal proves nothing, so for this long another answer may come, from there or from another place.
const REFUSAL_DOUBT: Duration = Duration::from_millis(700);

/// Called right before the one guess leaves, to remember that the code is spent; false: it was spent before, and nothing leaves.
pub type Spend = Box<dyn Fn() -> bool + Send + Sync>;

/// A joiner and a creator have met.
#[derive(Debug)]
pub struct Met {
    /// The ticket that the creator gave to the joiner's identity; empty if the joiner gave.
    pub ticket: Zeroizing<Vec<u8>>,
    /// Who the creator says it is, if the joiner gave: its ticket is for this identity.
    pub creator: Option<NodeId>,
    /// Where.
    pub place: Place,
    /// Where the creator's messages came from, if they came straight from it.
    pub from: Option<SocketAddr>,
    /// Where the creator can be reached and a secret of the two, if they met where records are stored.
    pub left: Option<LeftCall>,
}

/// An attempt that met nobody.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{why}")]
pub struct JoinError {
    /// The most telling reason of all places.
    pub why: NotMet,
    /// The guess has left: whoever got it has had one try at the words. The code must not be tried again.
    pub is_spent: bool,
    /// Places where nobody could be looked for, and why.
    pub unusable: Vec<(Place, PlaceError)>,
}

/// Why a joiner met nobody, the least telling first: of several places the most telling reason counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Error)]
#[non_exhaustive]
pub enum NotMet {
    /// There is no place to look at.
    #[error("there is no place to look at")]
    NoPlace,
    /// No place can be used.
    #[error("no place can be used")]
    Unreachable,
    /// Nobody is there with this nameplate.
    #[error("nobody waits with this nameplate")]
    Nobody,
    /// Who waits there with this nameplate waits for another kind of code: of another direction, or with another number of words.
    #[error("another kind of code is waited with there")]
    OtherKind,
    /// The place has no room, or wants us to wait.
    #[error("there is no room")]
    Busy,
    /// Who answered said nothing that the maker of a code says. No guess was made.
    #[error("who answered did not make this code")]
    Nonsense,
    /// Somebody was there, took the guess, and fell silent.
    #[error("somebody answered and then fell silent")]
    Silent,
    /// The code was used by somebody else.
    #[error("the code was used by somebody else")]
    Used,
    /// The time of the code is up.
    #[error("the code has expired")]
    Expired,
    /// Somebody guessed wrong before.
    #[error("somebody guessed wrong before, so the code is burned")]
    Burned,
    /// The guess was wrong, or who answered does not know the words.
    #[error("the words are wrong, and the code is burned")]
    Wrong,
    /// The guess was kept back: the code was spent before.
    #[error("the code was tried before")]
    Spent,
}

impl From<Refusal> for NotMet {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Used => Self::Used,
            Refusal::Burned => Self::Burned,
            Refusal::Expired => Self::Expired,
            Refusal::Wrong => Self::Wrong,
            Refusal::Unfit => Self::OtherKind,
            Refusal::Unknown => Self::Nobody,
        }
    }
}

/// Why one place met nobody.
#[derive(Clone, Debug)]
pub(super) struct Missed {
    why: NotMet,
    /// If nobody could be looked for there.
    error: Option<PlaceError>,
}

impl From<NotMet> for Missed {
    fn from(why: NotMet) -> Self {
        Self { why, error: None }
    }
}

impl From<PlaceError> for Missed {
    fn from(error: PlaceError) -> Self {
        match error {
            PlaceError::Nobody => NotMet::Nobody.into(),
            PlaceError::TooFast | PlaceError::Full => NotMet::Busy.into(),
            PlaceError::Closed(why) => NotMet::from(why).into(),
            error => Self { why: NotMet::Unreachable, error: Some(error) },
        }
    }
}

impl Missed {
    /// Whether it may be otherwise in a moment: a server that is down may come back, and a creator may only begin to wait.
    fn may_change(&self) -> bool {
        let may = matches!(
            self.why,
            NotMet::Unreachable | NotMet::Nobody | NotMet::OtherKind | NotMet::Busy
        );
        may && !matches!(self.error, Some(PlaceError::Unusable(_)))
    }
}

/// Looks for the creator of `code` until `deadline`, as the identity `own`. `ticket` makes the joiner's ticket for the creator's
/// identity, if the joiner has it. `spend` is called before the guess leaves; a long code is no guess. Dropping the future ends the
/// search.
///
/// # Errors
/// The most telling reason of all places.
pub async fn join(
    code: &Code,
    own: NodeId,
    ticket: Option<MakeTicket>,
    places: &Places,
    deadline: Instant,
    spend: Spend,
) -> Result<Met, JoinError> {
    join_reachable(code, own, ticket, places, deadline, spend, None).await
}

/// The same; `reach` says where we can be reached, which the creator of a long code is told: both sides may have to begin.
///
/// # Errors
/// The most telling reason of all places.
pub async fn join_reachable(
    code: &Code,
    own: NodeId,
    ticket: Option<MakeTicket>,
    places: &Places,
    deadline: Instant,
    spend: Spend,
    reach: Option<MakeReach>,
) -> Result<Met, JoinError> {
    if code.is_long() {
        return join_long(code, own, ticket, places, deadline, reach).await;
    }
    let guess = Arc::new(Guess::new(code, own, ticket, deadline, spend));
    let mut attempts: Vec<Attempt> = Vec::new();
    for place in places.all() {
        let guess = Arc::clone(&guess);
        attempts.push((place.place(), Box::pin(async move { attempt(&*place, &guess).await })));
    }
    let met = first_met(attempts).await;
    met.map_err(|failed| JoinError { is_spent: guess.has_left.load(Relaxed), ..failed })
}

/// What the first attempt brings that meets the creator, or why none does.
pub(super) async fn first_met(mut attempts: Vec<Attempt>) -> Result<Met, JoinError> {
    let mut failed = JoinError { why: NotMet::NoPlace, is_spent: false, unusable: Vec::new() };
    while let Some((place, ended)) = first_ended(&mut attempts).await {
        match ended {
            Ok(met) => {
                debug!(place = place.name(), "a code was met");
                return Ok(met);
            }
            Err(Missed { why, error }) => {
                debug!(place = place.name(), %why, "a code was not met");
                failed.why = failed.why.max(why);
                failed.unusable.extend(error.map(|error| (place, error)));
            }
        }
    }
    Err(failed)
}

/// One place's part of a search.
pub(super) type Attempt = (Place, BoxFuture<'static, Result<Met, Missed>>);

/// Takes out the first attempt that ends; None if there is none.
async fn first_ended(attempts: &mut Vec<Attempt>) -> Option<(Place, Result<Met, Missed>)> {
    poll_fn(|cx| {
        for index in 0..attempts.len() {
            if let Poll::Ready(ended) = attempts[index].1.as_mut().poll(cx) {
                let (place, _) = attempts.swap_remove(index);
                return Poll::Ready(Some((place, ended)));
            }
        }
        if attempts.is_empty() { Poll::Ready(None) } else { Poll::Pending }
    })
    .await
}

/// What the places share. The one guess is in it, so only one place can make it.
struct Guess {
    own: NodeId,
    nameplate: u32,
    hello: [u8; HELLO_LEN],
    joiner: Mutex<Option<Joiner>>,
    is_made: watch::Sender<bool>,
    /// What the joiner gives, if it is the one that gives.
    ticket: Option<MakeTicket>,
    deadline: Instant,
    spend: Spend,
    /// The guess is on its way to somebody.
    has_left: AtomicBool,
}

impl Guess {
    fn new(
        code: &Code,
        own: NodeId,
        ticket: Option<MakeTicket>,
        deadline: Instant,
        spend: Spend,
    ) -> Self {
        let side = if ticket.is_some() { TicketSide::Joiner } else { TicketSide::Creator };
        let joiner = Joiner::new(code, side);
        let (hello, is_made) = (joiner.hello(), watch::Sender::new(false));
        let (nameplate, joiner) = (code.nameplate(), Mutex::new(Some(joiner)));
        let has_left = AtomicBool::new(false);
        Self { own, nameplate, hello, joiner, is_made, ticket, deadline, spend, has_left }
    }

    /// Makes the guess on this answer; None if another place has made it.
    fn make(&self, answer: &[u8; ANSWER_LEN]) -> Option<Result<Proven, WrongWords>> {
        let joiner = self.joiner.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        self.is_made.send_replace(true);
        Some(joiner.take(answer))
    }

    /// Waits until some place has made it.
    async fn made(&self) {
        // The sender is `self`, so it is there.
        let _ = self.is_made.subscribe().wait_for(|is_made| *is_made).await;
    }
}

impl fmt::Debug for Guess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guess").finish_non_exhaustive()
    }
}

/// A conversation in which the guess is made.
struct Guessed {
    query: Box<dyn Query>,
    proven: Proven,
    from: Option<SocketAddr>,
    seen: Option<IpAddr>,
}

/// One place's part: until the creator is met, or there is no hope.
async fn attempt(place: &dyn MeetingPlace, guess: &Guess) -> Result<Met, Missed> {
    let mut last = Missed::from(NotMet::Nobody);
    let guessed = select! {
        // Whoever makes the guess is not stopped by its having been made.
        biased;
        guessed = look(place, guess, &mut last) => guessed?,
        () = guess.made() => return Err(last),
        () = sleep_until(guess.deadline) => return Err(last),
    };
    // The guess is made here: from now on it succeeds here or nowhere.
    Ok(prove(place, guess, guessed).await?)
}

/// Asks again and again until a creator answers. `last` is why none has.
async fn look(
    place: &dyn MeetingPlace,
    guess: &Guess,
    last: &mut Missed,
) -> Result<Guessed, Missed> {
    loop {
        match ask(place, guess, last).await {
            Ok(guessed) => return Ok(guessed),
            Err(missed) if missed.may_change() => *last = missed,
            Err(missed) => return Err(missed),
        }
        sleep(RETRY_INTERVAL).await;
    }
}

/// One attempt, up to the guess.
async fn ask(
    place: &dyn MeetingPlace,
    guess: &Guess,
    last: &mut Missed,
) -> Result<Guessed, Missed> {
    let hello = Message::Hello(guess.hello).encode();
    let topic = Topic::Nameplate { nameplate: guess.nameplate, exact: true };
    let mut query = place.query(topic, Box::new(move || Ok(hello.clone())));
    let mut refused: Option<(Missed, Instant)> = None;
    loop {
        let reply = match &refused {
            None => query.next().await?,
            Some((why, until)) => match timeout_at(*until, query.next()).await {
                Ok(Ok(reply)) => reply,
                Ok(Err(_)) | Err(_) => return Err(why.clone()),
            },
        };
        match Message::decode(&reply.message) {
            Some(Message::Answer(answer)) => {
                let proven = guess.make(&answer).ok_or(NotMet::Nobody)?;
                let proven = proven.map_err(|_| NotMet::Nonsense)?;
                return Ok(Guessed { query, proven, from: reply.from, seen: reply.seen });
            }
            Some(Message::Refused(why)) if refused.is_none() => {
                *last = NotMet::from(why).into();
                refused = Some((last.clone(), Instant::now() + REFUSAL_DOUBT));
            }
            _ => {}
        }
    }
}

/// From the guess to the ticket.
async fn prove(place: &dyn MeetingPlace, guess: &Guess, guessed: Guessed) -> Result<Met, NotMet> {
    let Guessed { mut query, proven, from, seen } = guessed;
    if !(guess.spend)() {
        return Err(NotMet::Spent);
    }
    guess.has_left.store(true, Relaxed);
    let patience = place.caps().answer_timeout;
    let proof = Message::Proof(proven.proof(guess.own));
    let welcome = exchange(&mut *query, &proof, patience, |message| match message {
        Message::Welcome(welcome) => Some(Ok(welcome)),
        // To one that has had the guess.
        Message::Refused(Refusal::Unfit | Refusal::Unknown) => Some(Err(NotMet::Silent)),
        Message::Refused(why) => Some(Err(why.into())),
        _ => None,
    });
    let given = proven.open(&*welcome.await?).map_err(|_| NotMet::Wrong)?;
    let Some(make) = &guess.ticket else {
        return Ok(Met { ticket: given, creator: None, place: place.place(), from, left: None });
    };
    let creator = given.as_slice().try_into().map(NodeId).map_err(|_| NotMet::Wrong)?;
    let ticket = Message::Ticket(Box::new(proven.ticket(&make(creator, seen))));
    let is_ack = |message| (message == Message::Ack).then_some(Ok(()));
    exchange(&mut *query, &ticket, patience, is_ack).await?;
    let (ticket, creator) = (Zeroizing::default(), Some(creator));
    Ok(Met { ticket, creator, place: place.place(), from, left: None })
}

/// Says something and waits for what `take` takes, however many messages come that are none of the expected ones.
async fn exchange<T>(
    query: &mut dyn Query,
    message: &Message,
    patience: Duration,
    take: impl Fn(Message) -> Option<Result<T, NotMet>>,
) -> Result<T, NotMet> {
    let spoken = async {
        query.go_on(message.encode()).await?;
        loop {
            let reply = query.next().await?;
            if let Some(taken) = Message::decode(&reply.message).and_then(&take) {
                return Ok(taken);
            }
        }
    };
    match timeout(patience, spoken).await {
        Ok(Ok(taken)) => taken,
        Ok(Err(PlaceError::Closed(why))) => Err(why.into()),
        Ok(Err(_)) | Err(_) => Err(NotMet::Silent),
    }
}
