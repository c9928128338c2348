//! Meeting by code, at every place at once: [`wait`] for who made it, [`Search`] for who typed it.
//!
//! Each place is a thread. They share one state ([`crate::meeting`]), so a code is one guess however many places there are,
//! and what works first wins.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{Duration, Instant};

use zeroize::Zeroizing;

use crate::Code;
use crate::holder::Holder;
use crate::lan::{self, Lan};
use crate::meeting::{Asking, Board, Happened, MakeTicket, Met, NotMet, Place, Unmet};
use crate::pake::{Giver, Guest};
use crate::rendezvous::{ask, hold};

/// How long the code may be held back for a rendezvous server to name a number. The code is on the screen within 300 ms.
const NUMBER_PATIENCE: Duration = Duration::from_millis(200);
/// The same when there is nowhere else to wait, so that without the server there is no point in a code.
const ONLY_PLACE_PATIENCE: Duration = Duration::from_secs(3);
/// Numbers that are wished for: three digits at most are quick to say, and on one local network two people rarely pick
/// the same.
const SHORT_NUMBERS: u32 = 999;

/// The places to use.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// On the local network.
    pub lan: Lan,
    /// At this server, as `HOST:PORT`.
    pub rendezvous: Option<String>,
}

/// A code that is waited with, until this is dropped.
#[derive(Debug)]
pub struct Waiting {
    board: Arc<Board>,
    code: Code,
    places: Vec<Place>,
    not: Vec<(Place, String)>,
    /// Until [`Self::begin`].
    listener: Option<lan::Listener>,
    /// Takes the board, and whether the server is among the places.
    rendezvous: Sender<(Arc<Board>, bool)>,
}

impl Waiting {
    /// The code to say.
    pub const fn code(&self) -> &Code {
        &self.code
    }

    /// Where it is waited. Empty if there is no such place: then the code is good for nothing.
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// Where it is not although it was to be, and why. What is missing now may come: that is told as [`Happened::Back`].
    pub fn missing(&self) -> &[(Place, String)] {
        &self.not
    }

    /// Begins to serve guests, and to tell. Until then they wait: so the code is shown first.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn begin(&mut self) -> io::Result<()> {
        let listed = self.places.iter().any(|place| *place != Place::Lan);
        // Without a server nobody listens.
        let _ = self.rendezvous.send((Arc::clone(&self.board), listed));
        if let Some(listener) = self.listener.take() {
            let board = Arc::clone(&self.board);
            thread::Builder::new().name("lan".into()).spawn(move || listener.serve(&board))?;
        }
        Ok(())
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.board.stop();
    }
}

/// Makes a code that is good for `life` and for `uses` guests (`u32::MAX`: any number) and prepares to wait for a guest at all places. `ticket` makes what a guest with the
/// right words gets, given our address as a rendezvous server saw it; `tell` is called from other threads.
///
/// # Errors
/// The system has no randomness.
pub fn wait(
    places: &Places,
    giver: Giver,
    life: Duration,
    uses: u32,
    ticket: impl Fn(Option<IpAddr>) -> Zeroizing<Vec<u8>> + Send + Sync + 'static,
    tell: impl Fn(Happened) + Send + Sync + 'static,
) -> io::Result<Waiting> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let [a, b, c, d, words @ ..] = random;
    let wish = 1 + u32::from_be_bytes([a, b, c, d]) % SHORT_NUMBERS;

    let (opened, number) = mpsc::channel();
    let (rendezvous, board) = mpsc::channel();
    if let Some(server) = places.rendezvous.clone() {
        thread::Builder::new()
            .name("rendezvous".into())
            .spawn(move || hold(&server, wish, &opened, &board))?;
    } else {
        drop(opened);
    }
    let (mut at, mut not) = (Vec::new(), Vec::new());
    let listener = match (places.lan != Lan::Off).then(|| lan::Listener::new(places.lan.clone())) {
        None => None,
        Some(Ok(listener)) => {
            at.push(Place::Lan);
            Some(listener)
        }
        Some(Err(why)) => {
            not.push((Place::Lan, why));
            None
        }
    };
    let patience = if listener.is_some() { NUMBER_PATIENCE } else { ONLY_PLACE_PATIENCE };
    let mut chosen = wish;
    if let Some(server) = places.rendezvous.clone().map(Place::Rendezvous) {
        match number.recv_timeout(patience) {
            Ok(Ok(number)) => {
                chosen = number;
                at.push(server);
            }
            Ok(Err(why)) => not.push((server, why)),
            Err(_) => not.push((server, "it has not answered yet".into())),
        }
    }
    let code = Code::new(chosen, words);
    let holder = Holder::new(code.clone(), giver, Instant::now() + life).with_uses(uses);
    let board = Arc::new(Board::new(holder, giver, Box::new(ticket), Box::new(tell)));
    Ok(Waiting { board, code, places: at, not, listener, rendezvous })
}

/// A guest's search for the holder of a code.
#[derive(Debug)]
pub struct Search {
    asking: Arc<Asking>,
}

impl Search {
    /// A search that ends at `deadline`. `gift` makes the guest's ticket, if the guest gives.
    pub fn new(code: &Code, gift: Option<MakeTicket>, deadline: Instant) -> Self {
        let giver = if gift.is_some() { Giver::Guest } else { Giver::Holder };
        let guest = Guest::new(code, giver);
        Self { asking: Arc::new(Asking::new(code.number(), guest, gift, deadline)) }
    }

    /// Ends the search when called.
    pub fn canceller(&self) -> impl Fn() + Send + Sync + 'static {
        let asking = Arc::clone(&self.asking);
        move || asking.cancel()
    }

    /// Looks at all places at the same time. Called once: there is only one guess.
    ///
    /// # Errors
    /// The most telling reason of all places.
    pub fn run(self, places: &Places) -> Result<Met, Unmet> {
        let (tell, results) = mpsc::channel();
        if places.lan != Lan::Off {
            let (tell, lan, asking) = (tell.clone(), places.lan.clone(), self.asking.clone());
            thread::spawn(move || tell.send((Place::Lan, lan::ask(&lan, &asking))));
        }
        if let Some(server) = places.rendezvous.clone() {
            let (tell, asking) = (tell.clone(), self.asking.clone());
            thread::spawn(move || {
                let result = ask(&server, &asking);
                tell.send((Place::Rendezvous(server), result))
            });
        }
        drop(tell);
        let (mut why, mut unusable) = (NotMet::NoPlace, Vec::new());
        // A server that takes long to connect to is not waited for: whoever makes the guess reports within its patience.
        loop {
            let past = self.asking.deadline() + GUESS_PATIENCE;
            let left = past.saturating_duration_since(Instant::now());
            match results.recv_timeout(left) {
                Ok((_, Ok(met))) => return Ok(met),
                Ok((place, Err(reason))) => {
                    if let NotMet::Unreachable(why) = &reason {
                        unusable.push((place, why.clone()));
                    }
                    why = why.max(reason);
                }
                Err(_) if self.asking.is_cancelled() => break,
                Err(_) => return Err(Unmet { why, unusable }),
            }
            if self.asking.is_cancelled() {
                break;
            }
        }
        Err(Unmet { why: NotMet::Cancelled, unusable })
    }
}

/// Longer than any place takes from the guess on.
const GUESS_PATIENCE: Duration = Duration::from_secs(25);
