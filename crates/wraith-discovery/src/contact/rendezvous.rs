//! Contacts at a rendezvous server (SPEC §12.3): the listener waits at the number of the pair and the hour, the caller joins
//! it. The server passes two sealed messages on and learns no more than that two addresses know a number.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use super::call::{Found, Search};
use super::listen::Board;
use super::packet::{RENDEZVOUS_LEN, SALT_LEN, Said, open, seal};
use super::{Pair, hour, hours_to_try, unix_seconds};
use crate::meeting::Place;
use crate::rendezvous::{ClientFrame, Link, No, Opening, ServerFrame};

/// How often the threads look whether they are to stop.
const GLANCE: Duration = Duration::from_millis(100);
/// Between two questions of a caller; a server allows thirty at once and one each 2 s.
const ASK_AGAIN: Duration = Duration::from_millis(700);
/// How long a caller waits for the listener's answer: one round trip over the server, generously.
const ANSWER_PATIENCE: Duration = Duration::from_secs(5);
/// First pause before a listener tries again to open its number; it doubles up to the longest, so that many contacts stay
/// within what a server allows.
const FIRST_RETRY: Duration = Duration::from_secs(3);
const LONGEST_RETRY: Duration = Duration::from_secs(60);
/// As for codes: a third of the silence that servers bear.
const PING: Duration = Duration::from_secs(30);
/// A server that does not answer pings for this long is down.
const SILENCE: Duration = Duration::from_secs(75);

/// Asks until the search is over.
pub(super) fn call(server: &str, mut search: Search) {
    let place = Place::Rendezvous(server.to_owned());
    while !search.is_over() {
        for hour in hours_to_try(unix_seconds()) {
            if search.is_over() {
                return;
            }
            match ask(server, &search, hour) {
                Ok(Some(addresses)) => search.tell(Found::At(place.clone(), addresses)),
                Ok(None) => {}
                Err(why) => search.tell(Found::Not(place.clone(), why)),
            }
        }
        let again = Instant::now() + ASK_AGAIN;
        while Instant::now() < again && !search.is_over() {
            thread::sleep(GLANCE);
        }
    }
}

/// One visit; None if nobody is there.
fn ask(server: &str, search: &Search, hour: u64) -> Result<Option<super::Addresses>, String> {
    let plain = |error: std::io::Error| error.to_string();
    let pair = &search.pair;
    let mut salt = [0; SALT_LEN];
    getrandom::fill(&mut salt).map_err(|_| "the system has no randomness".to_owned())?;
    let said = Said::Call { unix_seconds: unix_seconds() };
    let message = seal(pair, salt, &said, RENDEZVOUS_LEN);
    let mut link = Link::connect(server).map_err(plain)?;
    link.send(&ClientFrame::Join { number: pair.number(pair.peer(), hour), message })
        .map_err(plain)?;
    let deadline = Instant::now() + ANSWER_PATIENCE;
    while Instant::now() < deadline && !search.is_over() {
        match link.next(GLANCE).map_err(plain)? {
            Some(ServerFrame::Told { message, .. }) => match open(pair, &message) {
                Some((_, Said::Answer { call, addresses })) if call == salt => {
                    return Ok(Some(addresses));
                }
                _ => {}
            },
            Some(ServerFrame::Joined { .. } | ServerFrame::Pong) | None => {}
            Some(ServerFrame::No(No::TooFast | No::Full)) => {
                return Err("there is no room for us now".into());
            }
            Some(ServerFrame::No(No::Senseless)) => {
                return Err("it speaks another version".into());
            }
            Some(_) => return Ok(None),
        }
    }
    Ok(None)
}

/// Waits for one contact until told to stop.
pub(super) fn wait(server: &str, pair: &Pair, board: &Arc<Board>, stop: &AtomicBool) {
    let place = Place::Rendezvous(server.to_owned());
    let is_over = || board.is_stopped() || stop.load(Relaxed);
    let mut pause = FIRST_RETRY;
    while !is_over() {
        let now = hour();
        let why = match Opening::new(server, pair.number(pair.own(), now), true) {
            Ok(opening) => {
                pause = FIRST_RETRY;
                board.back(&place);
                match serve(opening, board, || is_over() || hour() != now) {
                    Some(why) => why,
                    // The next hour has another number.
                    None => continue,
                }
            }
            Err(why) => why,
        };
        board.lost(&place, why);
        let again = Instant::now() + pause;
        pause = (2 * pause).min(LONGEST_RETRY);
        while Instant::now() < again && !is_over() {
            thread::sleep(GLANCE);
        }
    }
}

/// Answers until `is_over`, or why the server is lost.
fn serve(opening: Opening, board: &Board, is_over: impl Fn() -> bool) -> Option<String> {
    let Opening { mut link, seen, .. } = opening;
    let (mut heard, mut pinged) = (Instant::now(), Instant::now());
    while !is_over() {
        match link.next(GLANCE) {
            Ok(Some(frame)) => {
                heard = Instant::now();
                let (ServerFrame::Guest { guest, message } | ServerFrame::Told { guest, message }) =
                    frame
                else {
                    continue;
                };
                let answer = board.answer(&message, Some(seen));
                let told = answer.map(|message| ClientFrame::Tell { guest, message });
                if let Some(Err(error)) = told.map(|told| link.send(&told)) {
                    return Some(error.to_string());
                }
            }
            Ok(None) if heard.elapsed() > SILENCE => {
                return Some("it does not answer any more".into());
            }
            Ok(None) => {}
            Err(error) => return Some(error.to_string()),
        }
        if pinged.elapsed() >= PING {
            pinged = Instant::now();
            if let Err(error) = link.send(&ClientFrame::Ping) {
                return Some(error.to_string());
            }
        }
    }
    None
}
