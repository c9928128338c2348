//! A guest at a rendezvous server.

use std::net::IpAddr;
use std::thread;
use std::time::{Duration, Instant};

use super::client::Link;
use super::frame::{ClientFrame, No, ServerFrame};
use crate::meeting::{Asking, Met, NotMet, Place};
use crate::message::Message;
use crate::pake::Proven;

/// Between two questions for a holder that is not there yet; a server allows thirty at once and one each 2 s.
const ASK_AGAIN: Duration = Duration::from_millis(700);
/// How often this thread looks whether another place was first.
const GLANCE: Duration = Duration::from_millis(50);
/// How long the holder may take to judge the guess: one round trip over the server, generously.
const JUDGE_PATIENCE: Duration = Duration::from_secs(10);

/// Asks until the holder is met, or there is no hope.
pub(crate) fn ask(server: &str, asking: &Asking) -> Result<Met, NotMet> {
    let mut last = NotMet::Ahead;
    while !asking.is_over() {
        match Visit::new(server).and_then(|visit| visit.run(server, asking)) {
            Ok(met) => return Ok(met),
            // A server that is down may come back, and a holder may open the number in a moment.
            Err(why @ (NotMet::Unreachable(_) | NotMet::Nobody | NotMet::Busy)) => last = why,
            Err(why) => return Err(why),
        }
        let again = Instant::now() + ASK_AGAIN;
        while Instant::now() < again && !asking.is_over() {
            thread::sleep(GLANCE);
        }
    }
    Err(last)
}

struct Visit {
    link: Link,
    seen: Option<IpAddr>,
}

impl Visit {
    fn new(server: &str) -> Result<Self, NotMet> {
        let link = Link::connect(server).map_err(|e| NotMet::Unreachable(e.to_string()))?;
        Ok(Self { link, seen: None })
    }

    fn run(mut self, server: &str, asking: &Asking) -> Result<Met, NotMet> {
        let message = Message::Hello(asking.hello()).encode();
        self.send(&ClientFrame::Join { number: asking.number(), message })?;
        let answer = loop {
            if asking.is_over() {
                return Err(NotMet::Ahead);
            }
            match self.next(GLANCE)? {
                Some(Message::Answer(answer)) => break answer,
                Some(Message::Refused(why)) => return Err(why.into()),
                Some(_) | None => {}
            }
        };
        let proven = asking.take(&answer).ok_or(NotMet::Ahead)?.map_err(|_| NotMet::Wrong)?;
        self.prove(server, asking, &proven)
    }

    /// The guess is made here: from now on it succeeds here or nowhere.
    fn prove(mut self, server: &str, asking: &Asking, proven: &Proven) -> Result<Met, NotMet> {
        let silent = |_| NotMet::Silent;
        self.tell(&Message::Proof(proven.proof())).map_err(silent)?;
        let deadline = Instant::now() + JUDGE_PATIENCE;
        let welcome = loop {
            match self.await_message(asking, deadline)? {
                Message::Welcome(welcome) => break welcome,
                Message::Refused(why) => return Err(why.into()),
                _ => {}
            }
        };
        let ticket = proven.open(&welcome).map_err(|_| NotMet::Wrong)?;
        if let Some(gift) = asking.gift(proven, self.seen) {
            self.tell(&gift).map_err(silent)?;
            let deadline = Instant::now() + JUDGE_PATIENCE;
            while self.await_message(asking, deadline)? != Message::Thanks {}
        }
        Ok(Met { ticket, place: Place::Rendezvous(server.to_owned()), from: None })
    }

    /// The next message before a deadline, however many come that are none of the expected ones.
    fn await_message(&mut self, asking: &Asking, deadline: Instant) -> Result<Message, NotMet> {
        while Instant::now() < deadline {
            if asking.is_cancelled() {
                return Err(NotMet::Cancelled);
            }
            match self.next(GLANCE) {
                Ok(Some(message)) => return Ok(message),
                Ok(None) => {}
                Err(NotMet::Unreachable(_) | NotMet::Nobody) => return Err(NotMet::Silent),
                Err(why) => return Err(why),
            }
        }
        Err(NotMet::Silent)
    }

    /// The holder's next message, if one comes in time.
    fn next(&mut self, patience: Duration) -> Result<Option<Message>, NotMet> {
        let unreachable = |e: std::io::Error| NotMet::Unreachable(e.to_string());
        match self.link.next(patience).map_err(unreachable)? {
            Some(ServerFrame::Told { message, .. }) => Ok(Message::decode(&message)),
            Some(ServerFrame::Joined { seen }) => {
                self.seen = Some(seen.ip().to_canonical());
                Ok(None)
            }
            Some(ServerFrame::Left { .. }) => Err(NotMet::Nobody),
            Some(ServerFrame::No(why)) => Err(match why {
                No::Nobody | No::Taken => NotMet::Nobody,
                No::TooFast | No::Full => NotMet::Busy,
                No::Senseless => NotMet::Unreachable("it speaks another version".into()),
                No::Used => NotMet::Used,
                No::Burned => NotMet::Burned,
                No::Expired => NotMet::Expired,
            }),
            Some(_) => Err(NotMet::Unreachable("it is no rendezvous server".into())),
            None => Ok(None),
        }
    }

    fn tell(&mut self, message: &Message) -> Result<(), NotMet> {
        self.send(&ClientFrame::Tell { guest: 0, message: message.encode() })
    }

    fn send(&mut self, frame: &ClientFrame) -> Result<(), NotMet> {
        self.link.send(frame).map_err(|e| NotMet::Unreachable(e.to_string()))
    }
}
