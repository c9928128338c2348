//! The side that typed the code (the joiner): looks for the creator of the code at all meeting
//! places at once.
//!
//! The places share one [`Guess`]. The first place whose creator answers makes the guess; from then
//! on the search succeeds there or fails. Right before the guess is sent, [`MarkSpent`] is called
//! and may hold it back. The answering peer can check the guessed words, so a code must not be
//! guessed twice. There is no background task: drop ends everything.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::select;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};
use wraith_crypto::NodeId;
use zeroize::Zeroizing;

use super::MakeTicket;
use super::attempts::{
    Attempt, JoinError, JoinErrorKind, JoinSuccess, PlaceFailure, first_success,
};
use super::long::join_long;
use super::message::Message;
use super::pake::{ANSWER_LEN, HELLO_LEN, Joiner, JoinerKeys, TicketSide, WrongWords};
use super::text::Code;
use crate::place::{MeetingPlace, PlaceError, Query, Refusal, Topic};
use crate::places::Places;
use crate::reach::MakeReach;
use crate::suspension::TimeLimit;

/// Interval between attempts at a place without the creator. A server allows a burst of thirty
/// attempts, then one every 2 s.
const RETRY_INTERVAL: Duration = Duration::from_millis(700);
/// Time to wait for another answer after a refusal, which is unauthenticated.
const REFUSAL_DOUBT: Duration = Duration::from_millis(700);

/// Called right before the only guess is sent, to record that the code is spent. Returns false if
/// the code was spent before; in that case, nothing is sent.
pub type MarkSpent = Box<dyn Fn() -> bool + Send + Sync>;

/// Looks for the creator of `code` within `limit`, as the identity `own`. If the joiner has the
/// ticket, `ticket` makes it for the creator's identity. `spend` is called before the guess is
/// sent; a long code involves no guess. `reach` makes the joiner's addresses for the creator of a
/// long code: both sides may have to start sending. Drop ends the search.
///
/// # Errors
/// The most informative reason of all places.
pub async fn join(
    code: &Code,
    own: NodeId,
    ticket: Option<MakeTicket>,
    places: &Places,
    limit: TimeLimit,
    spend: MarkSpent,
    reach: Option<MakeReach>,
) -> Result<JoinSuccess, JoinError> {
    if code.is_long() {
        return join_long(code, own, ticket, places, limit, reach).await;
    }
    let guess = Arc::new(Guess::new(code, own, ticket, limit, spend));
    let mut attempts: Vec<Attempt> = Vec::new();
    for place in places.all() {
        let guess = Arc::clone(&guess);
        attempts.push((place.place(), Box::pin(async move { attempt(&*place, &guess).await })));
    }
    let success = first_success(attempts).await;
    success.map_err(|failed| JoinError { is_spent: guess.was_sent.load(Relaxed), ..failed })
}

/// State shared by the places. It holds the only guess, so one place can make it.
struct Guess {
    own: NodeId,
    nameplate: u32,
    hello: [u8; HELLO_LEN],
    joiner: Mutex<Option<Joiner>>,
    is_made: watch::Sender<bool>,
    /// Makes the joiner's ticket, if it has one.
    ticket: Option<MakeTicket>,
    limit: TimeLimit,
    spend: MarkSpent,
    /// Whether the guess has been sent.
    was_sent: AtomicBool,
}

impl Guess {
    fn new(
        code: &Code,
        own: NodeId,
        ticket: Option<MakeTicket>,
        limit: TimeLimit,
        spend: MarkSpent,
    ) -> Self {
        let side = if ticket.is_some() { TicketSide::Joiner } else { TicketSide::Creator };
        let joiner = Joiner::new(code, side);
        let (hello, is_made) = (joiner.hello(), watch::Sender::new(false));
        let (nameplate, joiner) = (code.nameplate(), Mutex::new(Some(joiner)));
        let was_sent = AtomicBool::new(false);
        Self { own, nameplate, hello, joiner, is_made, ticket, limit, spend, was_sent }
    }

    /// Makes the guess for this answer. `None` if another place has made it.
    fn try_make(&self, answer: &[u8; ANSWER_LEN]) -> Option<Result<JoinerKeys, WrongWords>> {
        let joiner = self.joiner.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        self.is_made.send_replace(true);
        Some(joiner.process_answer(answer))
    }

    /// Waits until a place has made the guess.
    async fn wait_until_made(&self) {
        // The sender is owned by `self`, so it exists.
        let _ = self.is_made.subscribe().wait_for(|is_made| *is_made).await;
    }
}

impl fmt::Debug for Guess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guess").finish_non_exhaustive()
    }
}

/// A conversation in which the guess is made.
struct Conversation {
    query: Box<dyn Query>,
    proven: JoinerKeys,
    from: Option<SocketAddr>,
    seen: Option<IpAddr>,
}

/// Runs the search at one place until the creator is met or success is impossible.
async fn attempt(place: &dyn MeetingPlace, guess: &Guess) -> Result<JoinSuccess, PlaceFailure> {
    let mut last = PlaceFailure::from(JoinErrorKind::Nobody);
    let mut limit = guess.limit.clone();
    let conversation = select! {
        // Biased: the place that makes the guess must not be cancelled by it.
        biased;
        conversation = find_creator(place, guess, &mut last) => conversation?,
        () = guess.wait_until_made() => return Err(last),
        () = limit.reached() => return Err(last),
    };
    // The guess is made at this place: the search now succeeds here or fails.
    Ok(send_proof(place, guess, conversation).await?)
}

/// Retries until a creator answers. `last` receives the reason of the latest failure.
async fn find_creator(
    place: &dyn MeetingPlace,
    guess: &Guess,
    last: &mut PlaceFailure,
) -> Result<Conversation, PlaceFailure> {
    loop {
        match query_once(place, guess, last).await {
            Ok(conversation) => return Ok(conversation),
            Err(missed) if missed.is_retryable() => *last = missed,
            Err(missed) => return Err(missed),
        }
        sleep(RETRY_INTERVAL).await;
    }
}

/// Makes one attempt, up to the guess.
async fn query_once(
    place: &dyn MeetingPlace,
    guess: &Guess,
    last: &mut PlaceFailure,
) -> Result<Conversation, PlaceFailure> {
    let hello = Message::Hello(guess.hello).encode();
    let topic = Topic::Nameplate { nameplate: guess.nameplate, exact: true };
    let mut query = place.query(topic, Box::new(move || Ok(hello.clone())));
    let mut refused: Option<(PlaceFailure, Instant)> = None;
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
                let proven = guess.try_make(&answer).ok_or(JoinErrorKind::Nobody)?;
                let proven = proven.map_err(|_| JoinErrorKind::InvalidAnswer)?;
                return Ok(Conversation { query, proven, from: reply.from, seen: reply.seen });
            }
            Some(Message::Refused(why)) if refused.is_none() => {
                *last = JoinErrorKind::from(why).into();
                refused = Some((last.clone(), Instant::now() + REFUSAL_DOUBT));
            }
            _ => {}
        }
    }
}

/// Runs the exchange from the guess to the ticket.
async fn send_proof(
    place: &dyn MeetingPlace,
    guess: &Guess,
    conversation: Conversation,
) -> Result<JoinSuccess, JoinErrorKind> {
    let Conversation { mut query, proven, from, seen } = conversation;
    if !(guess.spend)() {
        return Err(JoinErrorKind::Spent);
    }
    guess.was_sent.store(true, Relaxed);
    let time_limit = place.caps().answer_timeout;
    let proof = Message::Proof(proven.proof(guess.own));
    let welcome = exchange(&mut *query, &proof, time_limit, |message| match message {
        Message::Welcome(welcome) => Some(Ok(welcome)),
        // These refusals are impossible after a guess.
        Message::Refused(Refusal::Unfit | Refusal::Unknown) => Some(Err(JoinErrorKind::Silent)),
        Message::Refused(why) => Some(Err(why.into())),
        _ => None,
    });
    let given = proven.open_welcome(&*welcome.await?).map_err(|_| JoinErrorKind::Wrong)?;
    let Some(make) = &guess.ticket else {
        return Ok(JoinSuccess {
            ticket: given,
            creator: None,
            place: place.place(),
            from,
            punch_request: None,
        });
    };
    let creator = given.as_slice().try_into().map(NodeId).map_err(|_| JoinErrorKind::Wrong)?;
    let ticket = make(creator, seen).ok_or(JoinErrorKind::Used)?;
    let ticket = Message::Ticket(Box::new(proven.seal_ticket(&ticket)));
    let is_ack = |message| (message == Message::Ack).then_some(Ok(()));
    exchange(&mut *query, &ticket, time_limit, is_ack).await?;
    let (ticket, creator) = (Zeroizing::default(), Some(creator));
    Ok(JoinSuccess { ticket, creator, place: place.place(), from, punch_request: None })
}

/// Sends a message and waits for one that `take` accepts, ignoring all others.
async fn exchange<T>(
    query: &mut dyn Query,
    message: &Message,
    time_limit: Duration,
    take: impl Fn(Message) -> Option<Result<T, JoinErrorKind>>,
) -> Result<T, JoinErrorKind> {
    let conversation = async {
        query.send(message.encode()).await?;
        loop {
            let reply = query.next().await?;
            if let Some(taken) = Message::decode(&reply.message).and_then(&take) {
                return Ok(taken);
            }
        }
    };
    // A creator answers a repeated message again, also after a suspension of this machine.
    let mut limit = TimeLimit::new(time_limit);
    let taken = select! {
        biased;
        taken = conversation => taken,
        () = limit.reached() => return Err(JoinErrorKind::Silent),
    };
    match taken {
        Ok(taken) => taken,
        Err(PlaceError::Closed(why)) => Err(why.into()),
        Err(_) => Err(JoinErrorKind::Silent),
    }
}
