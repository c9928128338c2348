//! What all meeting places share: the holder's [`Board`], the guest's [`Asking`], and how both end.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use zeroize::Zeroizing;

use crate::holder::{Holder, Judged, Refusal};
use crate::message::Message;
use crate::pake::{ANSWER_LEN, Giver, Guest, HELLO_LEN, Proven, WrongWords};

/// Where two sides may meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The local network.
    Lan,
    /// A rendezvous server, as `HOST:PORT`.
    Rendezvous(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lan => f.write_str("on the local network"),
            Self::Rendezvous(server) => write!(f, "at {server}"),
        }
    }
}

/// What a holder is told while it waits.
#[derive(Debug)]
pub enum Happened {
    /// Somebody guessed wrong, and the code is burned.
    WrongGuess(Place),
    /// Somebody proved to know the words; the ticket is theirs, or their gift comes next.
    Used(Place),
    /// The guest's ticket, and where it came from, on a local network: its sender can be reached there, even by an address
    /// that means nothing elsewhere.
    Given(Zeroizing<Vec<u8>>, Option<SocketAddr>),
    /// The time is up, nobody came.
    Expired,
    /// Nobody can come from there at present.
    Lost(Place, String),
    /// Somebody can again.
    Back(Place),
}

/// Makes the bytes of the ticket; it is told the address that a rendezvous server saw.
pub(crate) type MakeTicket = Box<dyn Fn(Option<IpAddr>) -> Zeroizing<Vec<u8>> + Send + Sync>;

/// The one state of a code that a holder's meeting places share.
pub(crate) struct Board {
    holder: Mutex<Holder>,
    giver: Giver,
    ticket: MakeTicket,
    tell: Box<dyn Fn(Happened) + Send + Sync>,
    stop: AtomicBool,
    given: AtomicBool,
    expiry_told: AtomicBool,
}

/// An answer to a guest, and what to tell once it is on its way.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    pub message: Option<Message>,
    pub then: Option<Happened>,
}

impl Board {
    pub fn new(
        holder: Holder,
        giver: Giver,
        ticket: MakeTicket,
        tell: Box<dyn Fn(Happened) + Send + Sync>,
    ) -> Self {
        let holder = Mutex::new(holder);
        let [stop, given, expiry_told] = [const { AtomicBool::new(false) }; 3];
        Self { holder, giver, ticket, tell, stop, given, expiry_told }
    }

    pub fn number(&self) -> u32 {
        self.lock().code().number()
    }

    pub fn tell(&self, happened: Happened) {
        (self.tell)(happened);
    }

    /// Makes every place stop within a fraction of a second.
    pub fn stop(&self) {
        self.stop.store(true, Relaxed);
    }

    pub fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }

    /// Why nobody needs to wait for new guests; tells of the end of the code's time when it comes.
    pub fn over(&self) -> Option<Refusal> {
        let over = self.lock().over(Instant::now());
        if over == Some(Refusal::Expired) && !self.expiry_told.swap(true, Relaxed) {
            self.tell(Happened::Expired);
        }
        over
    }

    /// Whether the guest that was welcomed still owes its ticket.
    pub fn is_owed(&self) -> bool {
        self.giver == Giver::Guest && !self.given.load(Relaxed)
    }

    /// Takes a message of the guest that began with `hello`. `seen`: our address, as the place saw it. `from`: the guest's, on
    /// a local network.
    pub fn receive(
        &self,
        place: &Place,
        hello: &[u8; HELLO_LEN],
        message: &Message,
        seen: Option<IpAddr>,
        from: Option<SocketAddr>,
    ) -> Reply {
        let now = Instant::now();
        let refuse = |why| Reply { message: Some(Message::Refused(why)), then: None };
        let mut holder = self.lock();
        match message {
            Message::Hello(_) => match holder.hello(now, hello) {
                Ok(answer) => Reply { message: Some(Message::Answer(answer)), then: None },
                Err(why) => refuse(why),
            },
            Message::Proof(proof) => {
                match holder.judge(now, hello, proof, || (self.ticket)(seen)) {
                    Judged::Right { welcome, first } => Reply {
                        message: Some(Message::Welcome(welcome)),
                        then: first.then(|| Happened::Used(place.clone())),
                    },
                    Judged::Refused(Refusal::Wrong) => Reply {
                        message: Some(Message::Refused(Refusal::Wrong)),
                        then: Some(Happened::WrongGuess(place.clone())),
                    },
                    Judged::Refused(why) => refuse(why),
                }
            }
            Message::Gift(gift) if self.giver == Giver::Guest => match holder.gift(hello, gift) {
                Ok(ticket) => {
                    let first = !self.given.swap(true, Relaxed);
                    let then = first.then_some(Happened::Given(ticket, from));
                    Reply { message: Some(Message::Thanks), then }
                }
                Err(why) => refuse(why),
            },
            _ => Reply::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Holder> {
        self.holder.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Board {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Board").field("holder", &self.holder).finish_non_exhaustive()
    }
}

/// What a guest's meeting places share. The one guess is in it, so only one place can make it.
pub(crate) struct Asking {
    number: u32,
    hello: [u8; HELLO_LEN],
    guess: Mutex<Option<Guest>>,
    /// What the guest gives, if it is the one that gives.
    gift: Option<MakeTicket>,
    deadline: Instant,
    cancel: AtomicBool,
}

impl Asking {
    pub fn new(number: u32, guest: Guest, gift: Option<MakeTicket>, deadline: Instant) -> Self {
        let (hello, guess) = (guest.hello(), Mutex::new(Some(guest)));
        Self { number, hello, guess, gift, deadline, cancel: AtomicBool::new(false) }
    }

    pub fn number(&self) -> u32 {
        self.number
    }

    pub fn hello(&self) -> [u8; HELLO_LEN] {
        self.hello
    }

    /// Makes the guess on this answer; None if another place has made it.
    pub fn take(&self, answer: &[u8; ANSWER_LEN]) -> Option<Result<Proven, WrongWords>> {
        let guest = self.guess.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        Some(guest.take(answer))
    }

    /// Whether there is nothing left to do for a place that has not made the guess.
    pub fn is_over(&self) -> bool {
        let guessed = || self.guess.lock().unwrap_or_else(PoisonError::into_inner).is_none();
        self.cancel.load(Relaxed) || Instant::now() >= self.deadline || guessed()
    }

    pub fn is_cancelled(&self) -> bool {
        self.cancel.load(Relaxed)
    }

    pub fn cancel(&self) {
        self.cancel.store(true, Relaxed);
    }

    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// The last message of a guest that gives.
    pub fn gift(&self, proven: &Proven, seen: Option<IpAddr>) -> Option<Message> {
        let gift = self.gift.as_ref()?;
        Some(Message::Gift(Box::new(proven.gift(&gift(seen)))))
    }
}

impl fmt::Debug for Asking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asking").field("number", &self.number).finish_non_exhaustive()
    }
}

/// A guest and a holder have met.
#[derive(Debug)]
pub struct Met {
    /// What the holder gave; empty if the guest gave.
    pub ticket: Zeroizing<Vec<u8>>,
    /// Where.
    pub place: Place,
    /// Where the holder's packets came from, if they came straight from it.
    pub from: Option<std::net::SocketAddr>,
}

/// A search that met nobody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmet {
    /// The most telling reason of all places.
    pub why: NotMet,
    /// Places where nobody could be looked for, and why.
    pub unusable: Vec<(Place, String)>,
}

/// Why a guest met nobody, the least telling first: of several places the most telling reason counts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NotMet {
    /// There is no place to look at.
    NoPlace,
    /// Another place made the guess.
    Ahead,
    /// The user stopped it.
    Cancelled,
    /// A place cannot be used.
    Unreachable(String),
    /// Nobody is there with this number.
    Nobody,
    /// The place has no room, or wants us to wait.
    Busy,
    /// Somebody was there, took the guess, and fell silent.
    Silent,
    /// The code was used by somebody else.
    Used,
    /// The time of the code is up.
    Expired,
    /// Somebody guessed wrong before.
    Burned,
    /// The guess was wrong, or who answered does not know the words.
    Wrong,
}

impl From<Refusal> for NotMet {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Used => Self::Used,
            Refusal::Burned => Self::Burned,
            Refusal::Expired => Self::Expired,
            Refusal::Wrong => Self::Wrong,
            Refusal::Unfit | Refusal::Unknown => Self::Nobody,
        }
    }
}
