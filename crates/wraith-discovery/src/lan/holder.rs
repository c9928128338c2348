//! A holder on the local network: it listens to the group and answers who knows its number.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::interfaces::Lan;
use super::packet::{PACKET_LEN, open, seal};
use super::sockets::{Sockets, receive};
use crate::meeting::{Board, Happened, Place};
use crate::message::Message;
use crate::pake::HELLO_LEN;
use crate::rates::{Limit, Rates, Source};

/// How often the thread looks whether it is to stop, and whether the code is over.
const GLANCE: Duration = Duration::from_millis(250);
/// How often new interfaces are looked for: a person who just plugged a cable in waits this long.
const RESCAN: Duration = Duration::from_secs(5);
/// Packets with the right number that one address may send. A guest needs two, and repeats what is lost. An exchange costs a
/// fifth of a millisecond, so all remembered addresses together cost less than a tenth of a processor.
const RATE: Limit = Limit { burst: 20, refill: Duration::from_millis(200), addresses: 64 };
/// How often a refusal that ends the code is sent: the process may end after it, so nobody could ask again.
const LAST_WORDS: u32 = 3;
const BETWEEN_LAST_WORDS: Duration = Duration::from_millis(30);

/// The sockets of a holder, before it has a code to wait for.
#[derive(Debug)]
pub(crate) struct Listener {
    lan: Lan,
    shared: Sockets,
    own: Sockets,
}

impl Listener {
    /// Joins the group; why it cannot.
    pub fn new(lan: Lan) -> Result<Self, String> {
        let interfaces = lan.interfaces();
        if interfaces.is_empty() {
            return Err(lan.missing());
        }
        let plain = |error: std::io::Error| error.to_string();
        let (shared, own) = (Sockets::shared().map_err(plain)?, Sockets::own().map_err(plain)?);
        if shared.join(&interfaces) == 0 {
            return Err("no network interface takes multicast".into());
        }
        Ok(Self { lan, shared, own })
    }

    /// Serves guests until the board is stopped.
    pub fn serve(self, board: &Arc<Board>) {
        let number = board.number();
        let mut rates = Rates::new(RATE);
        let mut scanned = Instant::now();
        while !board.is_stopped() {
            let mut came = Vec::new();
            receive(&[&self.shared, &self.own], GLANCE, |from, bytes| {
                if let Some((hello, message)) = open(number, bytes)
                    && rates.allow(Source::of(from.ip()), Instant::now())
                {
                    came.push((from, hello, message));
                }
            });
            for (from, hello, message) in came {
                self.answer(board, from, &hello, &message);
            }
            board.over();
            if scanned.elapsed() >= RESCAN {
                scanned = Instant::now();
                self.shared.join(&self.lan.interfaces());
            }
        }
    }

    fn answer(&self, board: &Board, from: SocketAddr, hello: &[u8; HELLO_LEN], message: &Message) {
        let reply = board.receive(&Place::Lan, hello, message, None, Some(from));
        if let Some(message) = reply.message {
            let ends = matches!(reply.then, Some(Happened::WrongGuess(_)));
            for again in 0..if ends { LAST_WORDS } else { 1 } {
                if again > 0 {
                    thread::sleep(BETWEEN_LAST_WORDS);
                }
                if let Some(packet) = packet(board.number(), hello, &message) {
                    self.own.send(from, &packet);
                }
            }
        }
        if let Some(happened) = reply.then {
            board.tell(happened);
        }
    }
}

/// None if the system has no randomness; nothing can be sent then.
pub(super) fn packet(
    number: u32,
    hello: &[u8; HELLO_LEN],
    message: &Message,
) -> Option<[u8; PACKET_LEN]> {
    let mut salt = [0; 16];
    getrandom::fill(&mut salt).ok()?;
    Some(seal(number, salt, hello, message))
}
