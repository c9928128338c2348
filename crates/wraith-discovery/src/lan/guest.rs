//! A guest on the local network: it asks the group until a holder answers, and goes on with that one.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::holder::packet;
use super::interfaces::Lan;
use super::packet::open;
use super::sockets::{Sockets, receive};
use crate::meeting::{Asking, Met, NotMet, Place};
use crate::message::Message;
use crate::pake::Proven;

/// First pause between two hellos; it doubles up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(60);
const LONGEST_PAUSE: Duration = Duration::from_millis(1000);
/// How often the thread looks whether another place was first.
const GLANCE: Duration = Duration::from_millis(50);
/// Between two repetitions of what was not answered.
const REPEAT: Duration = Duration::from_millis(200);
/// How long the holder may take to answer a proof or a gift. On a local network that is a thousand round trips.
const PATIENCE: Duration = Duration::from_secs(5);
/// A refusal proves nothing, so for this long another answer may come, from here or from another place.
const DOUBT: Duration = Duration::from_millis(700);

/// Asks until the holder is met, or there is no hope.
pub(crate) fn ask(lan: &Lan, asking: &Asking) -> Result<Met, NotMet> {
    let unreachable = |why: &str| NotMet::Unreachable(why.to_owned());
    let sockets = Sockets::own().map_err(|e| unreachable(&e.to_string()))?;
    if lan.interfaces().is_empty() {
        return Err(unreachable(&lan.missing()));
    }
    let hello = asking.hello();
    let mut refused: Option<(NotMet, Instant)> = None;
    let (mut pause, mut next) = (FIRST_PAUSE, Instant::now());
    while !asking.is_over() {
        if let Some((why, since)) = &refused
            && since.elapsed() >= DOUBT
        {
            return Err(why.clone());
        }
        if Instant::now() >= next {
            let packet = packet(asking.number(), &hello, &Message::Hello(hello));
            let packet = packet.ok_or_else(|| unreachable("the system has no randomness"))?;
            sockets.multicast(&lan.interfaces(), &packet);
            next = Instant::now() + pause;
            pause = (2 * pause).min(LONGEST_PAUSE);
        }
        let mut answered = None;
        receive(&[&sockets], GLANCE, |from, bytes| match open(asking.number(), bytes) {
            Some((theirs, Message::Answer(answer))) if theirs == hello => {
                answered.get_or_insert((from, answer));
            }
            Some((theirs, Message::Refused(why))) if theirs == hello => {
                refused.get_or_insert((why.into(), Instant::now()));
            }
            _ => {}
        });
        if let Some((from, answer)) = answered {
            let proven = asking.take(&answer).ok_or(NotMet::Ahead)?.map_err(|_| NotMet::Wrong)?;
            return prove(&sockets, from, asking, &proven);
        }
    }
    Err(refused.map_or(NotMet::Nobody, |(why, _)| why))
}

/// The guess is made here: from now on it succeeds here or nowhere.
fn prove(
    sockets: &Sockets,
    from: SocketAddr,
    asking: &Asking,
    proven: &Proven,
) -> Result<Met, NotMet> {
    let proof = Message::Proof(proven.proof());
    let welcome = exchange(sockets, from, asking, &proof, |message| match message {
        Message::Welcome(welcome) => Some(Ok(welcome)),
        Message::Refused(why) => Some(Err(NotMet::from(why))),
        _ => None,
    })?;
    let ticket = proven.open(&welcome).map_err(|_| NotMet::Wrong)?;
    if let Some(gift) = asking.gift(proven, None) {
        exchange(sockets, from, asking, &gift, |message| {
            (message == Message::Thanks).then_some(Ok(()))
        })?;
    }
    Ok(Met { ticket, place: Place::Lan, from: Some(from) })
}

/// Repeats a message until something comes that `take` takes.
fn exchange<T>(
    sockets: &Sockets,
    to: SocketAddr,
    asking: &Asking,
    message: &Message,
    mut take: impl FnMut(Message) -> Option<Result<T, NotMet>>,
) -> Result<T, NotMet> {
    let hello = asking.hello();
    let deadline = Instant::now() + PATIENCE;
    let mut next = Instant::now();
    while Instant::now() < deadline {
        if asking.is_cancelled() {
            return Err(NotMet::Cancelled);
        }
        if Instant::now() >= next {
            if let Some(packet) = packet(asking.number(), &hello, message) {
                sockets.send(to, &packet);
            }
            next = Instant::now() + REPEAT;
        }
        let mut taken = None;
        receive(&[sockets], GLANCE, |from, bytes| {
            if let Some((theirs, message)) = open(asking.number(), bytes)
                && theirs == hello
                && from == to
                && taken.is_none()
            {
                taken = take(message);
            }
        });
        if let Some(taken) = taken {
            return taken;
        }
    }
    Err(NotMet::Silent)
}
