//! A holder at a rendezvous server: a thread that opens the number, keeps it open, and passes messages to the [`Board`].

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use super::client::Link;
use super::frame::{ClientFrame, No, ServerFrame};
use crate::holder::Refusal;
use crate::meeting::{Board, Happened, Place};
use crate::message::Message;
use crate::pake::HELLO_LEN;

/// The server answers an open within this time, or it counts as down.
const OPEN_PATIENCE: Duration = Duration::from_secs(5);
/// Between two attempts to reach a server that is down.
const RETRY: Duration = Duration::from_secs(3);
/// How often this thread looks whether the code is over.
const GLANCE: Duration = Duration::from_millis(200);
/// A third of the silence that servers bear, and less than NATs forget a connection in.
const PING: Duration = Duration::from_secs(30);
/// A server that does not answer pings for this long is down.
const SILENCE: Duration = Duration::from_secs(75);
/// How long the last word may take to reach the server.
const LAST_WORD: Duration = Duration::from_millis(500);
/// Guests whose hello is remembered: more than an honest server lets in at once. Beyond, all are forgotten.
const MAX_GUESTS: usize = 64;

/// A number that a server has opened for us.
#[derive(Debug)]
pub(crate) struct Opening {
    pub link: Link,
    number: u32,
    /// Our address, as it looks from there.
    pub seen: IpAddr,
}

impl Opening {
    pub fn new(server: &str, number: u32, exact: bool) -> Result<Self, String> {
        let plain = |error: std::io::Error| error.to_string();
        let mut link = Link::connect(server).map_err(plain)?;
        link.send(&ClientFrame::Open { number, exact }).map_err(plain)?;
        match link.next(OPEN_PATIENCE).map_err(plain)? {
            Some(ServerFrame::Opened { number: opened, seen })
                if opened == number || !exact && (1..=crate::MAX_NUMBER).contains(&opened) =>
            {
                Ok(Self { link, number: opened, seen: seen.ip().to_canonical() })
            }
            Some(ServerFrame::No(No::Taken)) => Err("somebody else waits at this number".into()),
            Some(ServerFrame::No(No::TooFast)) => Err("too many requests from here".into()),
            Some(ServerFrame::No(No::Full)) => Err("it is full".into()),
            Some(_) => Err("it does not do what it was asked for".into()),
            None => Err("it does not answer".into()),
        }
    }
}

/// Opens a number, tells which, and then, given the board and whether the user was told of this place, serves guests until
/// the code is over. The first number may be another than `wish`; if the code got another one meanwhile, because this took
/// too long, that one is opened.
pub(crate) fn hold(
    server: &str,
    wish: u32,
    opened: &Sender<Result<u32, String>>,
    board: &Receiver<(Arc<Board>, bool)>,
) {
    let mut opening = Opening::new(server, wish, false);
    let told = opening.as_ref().map(|o| o.number).map_err(Clone::clone);
    let _ = opened.send(told);
    let Ok((board, listed)) = board.recv() else { return };
    let number = board.number();
    let place = Place::Rendezvous(server.to_owned());
    // What was not there when the code was shown is lost until it is there.
    let (mut lost, mut told) = (!listed, false);
    if !matches!(&opening, Ok(opening) if opening.number == number) {
        drop(opening);
        opening = Opening::new(server, number, true);
    }
    loop {
        let why = match opening {
            Ok(opening) => {
                if std::mem::take(&mut lost) {
                    board.tell(Happened::Back(place.clone()));
                }
                match Serving::new(opening, &board, &place).run() {
                    Some(why) => why,
                    None => return,
                }
            }
            Err(why) => why,
        };
        if !std::mem::replace(&mut lost, true) || !told {
            board.tell(Happened::Lost(place.clone(), why));
        }
        told = true;
        let again = Instant::now() + RETRY;
        while Instant::now() < again {
            if board.is_stopped() || board.over().is_some() {
                return;
            }
            thread::sleep(GLANCE);
        }
        opening = Opening::new(server, number, true);
    }
}

struct Serving<'a> {
    link: Link,
    seen: IpAddr,
    board: &'a Board,
    place: &'a Place,
    guests: HashMap<u32, [u8; HELLO_LEN]>,
    heard: Instant,
    pinged: Instant,
}

impl<'a> Serving<'a> {
    fn new(opening: Opening, board: &'a Board, place: &'a Place) -> Self {
        let now = Instant::now();
        let Opening { link, seen, .. } = opening;
        Self { link, seen, board, place, guests: HashMap::new(), heard: now, pinged: now }
    }

    /// Until the code is over, or why the server is lost.
    fn run(mut self) -> Option<String> {
        loop {
            match self.board.over() {
                Some(Refusal::Used) if self.board.is_owed() && !self.board.is_stopped() => {}
                Some(why) => {
                    self.link.finish(&ClientFrame::Close(why), LAST_WORD);
                    return None;
                }
                None if self.board.is_stopped() => return None,
                None => {}
            }
            match self.link.next(GLANCE) {
                Ok(Some(frame)) => {
                    self.heard = Instant::now();
                    match self.take(frame) {
                        Ok(None) => {}
                        Ok(Some(wrong)) => {
                            self.link.finish(&ClientFrame::Close(Refusal::Burned), LAST_WORD);
                            self.board.tell(wrong);
                            return None;
                        }
                        Err(error) => return Some(error.to_string()),
                    }
                }
                Ok(None) if self.heard.elapsed() > SILENCE => {
                    return Some("it does not answer any more".into());
                }
                Ok(None) => {}
                Err(error) => return Some(error.to_string()),
            }
            if self.pinged.elapsed() >= PING {
                self.pinged = Instant::now();
                if let Err(error) = self.link.send(&ClientFrame::Ping) {
                    return Some(error.to_string());
                }
            }
        }
    }

    /// Answers one frame. Some if somebody guessed wrong, which is told only when the guest was.
    fn take(&mut self, frame: ServerFrame) -> std::io::Result<Option<Happened>> {
        let (guest, message) = match frame {
            ServerFrame::Guest { guest, message } => (guest, Message::decode(&message)),
            ServerFrame::Told { guest, message } => (guest, Message::decode(&message)),
            ServerFrame::Left { guest } => {
                self.guests.remove(&guest);
                return Ok(None);
            }
            ServerFrame::Pong => return Ok(None),
            _ => return Err(std::io::Error::other("it does not do what it was asked for")),
        };
        let Some(message) = message else { return Ok(None) };
        if let Message::Hello(hello) = &message {
            if self.guests.len() >= MAX_GUESTS {
                self.guests.clear();
            }
            self.guests.insert(guest, *hello);
        }
        let Some(hello) = self.guests.get(&guest) else { return Ok(None) };
        let reply = self.board.receive(self.place, hello, &message, Some(self.seen), None);
        if let Some(message) = reply.message {
            self.link.send(&ClientFrame::Tell { guest, message: message.encode() })?;
        }
        match reply.then {
            Some(wrong @ Happened::WrongGuess(_)) => Ok(Some(wrong)),
            Some(other) => {
                self.board.tell(other);
                Ok(None)
            }
            None => Ok(None),
        }
    }
}
