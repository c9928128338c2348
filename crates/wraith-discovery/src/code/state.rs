//! What becomes of a code that is announced: the one state of its creator that all places share, and what it tells.
//!
//! Invariant: messages are judged one at a time, wherever they come in, so two places cannot both take a guess.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::{mpsc, watch};
use wraith_crypto::NodeId;
use zeroize::Zeroizing;

use super::MakeTicket;
use super::creator::{Creator, Judged};
use super::message::Message;
use super::pake::{HELLO_LEN, TicketSide};
use crate::contact::LeftCall;
use crate::place::{Place, PlaceError, Question, Refusal, Responder, Response};

/// What the creator of a code is told while it waits.
#[derive(Debug)]
#[non_exhaustive]
pub enum CodeEvent {
    /// Somebody guessed wrong there, and the code is burned.
    WrongGuess(Place),
    /// Somebody proved to know the words; the ticket is theirs, or theirs comes next.
    Used {
        /// Where.
        place: Place,
        /// Who it says it is. A ticket that it got is for this identity.
        joiner: NodeId,
    },
    /// Somebody who knows the words of a long code can be reached there. [`Self::Used`] follows once the joiner can see that it was
    /// let in.
    LeftCall(Place, LeftCall),
    /// The joiner's ticket.
    Ticket {
        /// Its bytes.
        ticket: Zeroizing<Vec<u8>>,
        /// Where it came from, on a local network: its sender can be reached there, even by an address that means nothing
        /// elsewhere.
        from: Option<SocketAddr>,
    },
    /// The time is up, nobody came.
    Expired,
    /// Nobody can come from there at present.
    Lost(Place, PlaceError),
    /// Somebody can again.
    Back(Place),
}

/// Takes events.
pub type Events = mpsc::UnboundedSender<CodeEvent>;

/// See the module.
pub struct CreatorState {
    judge: Mutex<Judge>,
    /// The identity of the creator.
    own: NodeId,
    side: TicketSide,
    ticket: MakeTicket,
    /// One for each right proof and each change of a place: few, so they need no bound.
    events: Events,
    end: watch::Sender<Option<Refusal>>,
}

/// What is behind the lock.
struct Judge {
    creator: Creator,
    /// The joiner has the ticket, and has not given it yet.
    is_owed: bool,
}

impl CreatorState {
    /// The state of `creator`. `end` is told when nobody new is let in.
    pub fn new(
        creator: Creator,
        own: NodeId,
        side: TicketSide,
        ticket: MakeTicket,
        events: Events,
        end: watch::Sender<Option<Refusal>>,
    ) -> Self {
        let judge = Mutex::new(Judge { creator, is_owed: side == TicketSide::Joiner });
        Self { judge, own, side, ticket, events, end }
    }

    pub fn tell(&self, event: CodeEvent) {
        // Without a handle there is nobody to tell.
        let _ = self.events.send(event);
    }

    /// When the code ends if nobody uses it.
    pub fn expires(&self) -> Instant {
        self.lock().creator.expires()
    }

    /// The time is up: unless something else has ended the code, this does.
    pub fn expire(&self) {
        if self.lock().creator.over(Instant::now()) == Some(Refusal::Expired) {
            self.tell(CodeEvent::Expired);
            self.end.send_replace(Some(Refusal::Expired));
        }
    }

    fn judge(
        &self,
        hello: &[u8; HELLO_LEN],
        message: Message,
        asked: &Question<'_>,
    ) -> Option<Response> {
        let now = Instant::now();
        let mut judge = self.lock();
        Some(match message {
            Message::Hello(_) => say(&match judge.creator.hello(now, hello) {
                Ok(answer) => Message::Answer(answer),
                Err(why) => Message::Refused(why),
            }),
            Message::Proof(proof) => {
                let given = |joiner| match self.side {
                    TicketSide::Creator => (self.ticket)(joiner, asked.seen),
                    TicketSide::Joiner => Zeroizing::new(self.own.as_bytes().to_vec()),
                };
                let judged = judge.creator.judge(now, hello, &proof, given);
                let end = judge.creator.over(now).filter(|_| !judge.is_owed);
                self.judged(judged, end, asked.place)
            }
            Message::Ticket(ticket) if self.side == TicketSide::Joiner => {
                match judge.creator.ticket(hello, &ticket) {
                    // One that is said again is acknowledged again, and told once.
                    Ok(ticket) if std::mem::take(&mut judge.is_owed) => {
                        let event = CodeEvent::Ticket { ticket, from: asked.from };
                        self.telling(&Message::Ack, event, judge.creator.over(now))
                    }
                    Ok(_) => say(&Message::Ack),
                    Err(why) => say(&Message::Refused(why)),
                }
            }
            _ => return None,
        })
    }

    /// The response to a proof; `end` if the code is over with it.
    fn judged(&self, judged: Judged, end: Option<Refusal>, place: &Place) -> Response {
        match judged {
            Judged::Right { welcome, joiner, first: true } => {
                let event = CodeEvent::Used { place: place.clone(), joiner };
                self.telling(&Message::Welcome(welcome), event, end)
            }
            Judged::Right { welcome, first: false, .. } => say(&Message::Welcome(welcome)),
            Judged::Refused(Refusal::Wrong) => {
                let event = CodeEvent::WrongGuess(place.clone());
                self.telling(&Message::Refused(Refusal::Wrong), event, Some(Refusal::Burned))
                    .ending(Refusal::Burned)
            }
            Judged::Refused(why) => say(&Message::Refused(why)),
        }
    }

    /// A response after which `event` is told, and the end if it has come.
    fn telling(&self, message: &Message, event: CodeEvent, end: Option<Refusal>) -> Response {
        let (events, ended) = (self.events.clone(), self.end.clone());
        say(message).then(move || {
            let _ = events.send(event);
            if end.is_some() {
                ended.send_replace(end);
            }
        })
    }

    fn lock(&self) -> MutexGuard<'_, Judge> {
        // A creator is left whole by whatever may panic in it.
        self.judge.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn say(message: &Message) -> Response {
    Response::new(message.encode())
}

impl Responder for CreatorState {
    fn respond(&self, question: &Question<'_>) -> Option<Response> {
        let Message::Hello(hello) = Message::decode(question.opening)? else { return None };
        let message = Message::decode(question.message)?;
        self.judge(&hello, message, question)
    }
}

impl fmt::Debug for CreatorState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CreatorState").finish_non_exhaustive()
    }
}
