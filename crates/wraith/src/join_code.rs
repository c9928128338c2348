//! Joins with a code. This machine tries each code at most once, also after a restart: it records
//! the code as spent before the attempt.
//!
//! Also maps the ways in which a code can end without a meeting of the two sides to errors of this
//! crate: for the joiner, whose user typed the code, and for the creator.

use std::sync::Arc;
use std::time::Duration;

use wraith_discovery::{
    Code, CodeAnnouncement, JoinError, JoinErrorKind, JoinSuccess, MakeTicket, PlaceName,
    TimeLimit, join,
};

use crate::error::{Cause, Error, ErrorKind};
use crate::event::Event;
use crate::event_publisher::EventPublisher;
use crate::node::Node;
use crate::paths::SocketPaths;
use crate::settings::time_to_find;
use crate::state::TriedBefore;

/// Default lifetime of a code.
pub(crate) const CODE_LIFE: Duration = Duration::from_secs(3600);

/// Joins with a code. Each code is tried at most once.
pub(crate) async fn join_once(
    node: &Node,
    code: &Code,
    ticket: Option<MakeTicket>,
    timeout: Option<Duration>,
    publisher: &EventPublisher,
    paths: &SocketPaths,
) -> Result<JoinSuccess, Error> {
    if let Some(before) = node.spent_codes().tried(code) {
        return Err(already_tried(before));
    }
    let limit = TimeLimit::new(time_to_find(timeout, code.is_long()));
    let (codes, spending) = (Arc::clone(node.spent_codes()), code.clone());
    let spend = Box::new(move || codes.spend(&spending).is_ok());
    let reach = if code.is_long() {
        // The creator may have to dial too, so it needs our addresses.
        paths.observe().await;
        Some(paths.make_reach())
    } else {
        None
    };
    let joined = join(code, node.id(), ticket, node.places(), limit, spend, reach).await;
    if let Some(error) = node.spent_codes().take_unwritten() {
        let what = format!("{error}; the attempt with this code was not recorded");
        publisher.publish(Event::Note { path: String::new(), what });
    }
    joined.map_err(|error| {
        match node.spent_codes().tried(code).filter(|_| error.why == JoinErrorKind::Spent) {
            // Another process tried the code a moment ago.
            Some(before) => already_tried(before),
            None => Error::because(kind_of(&error), error.to_string(), Cause::NotMet(error)),
        }
    })
}

fn already_tried(before: TriedBefore) -> Error {
    let message = "this machine already tried the code, and a code can be tried only once";
    Error::because(ErrorKind::WrongCode, message, Cause::CodeSpent(before.at))
}

/// Returns the error for a burned code. `who` ends the sentence: it names who had the code before.
pub(crate) fn burned(place: PlaceName, who: &str) -> Error {
    let message =
        format!("a peer {place} tried the code with wrong words, so the code is burned{who}");
    Error::because(ErrorKind::WrongCode, message, Cause::CodeBurned(place))
}

pub(crate) fn expired(who: &str) -> Error {
    let message = match who {
        "" => "the code expired before a peer used it".to_owned(),
        who => format!("the code has expired{who}"),
    };
    Error::because(ErrorKind::NotFound, message, Cause::CodeExpired)
}

pub(crate) fn no_code(error: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Other, format!("cannot make a code: {error}"))
}

pub(crate) fn no_place(announcement: &CodeAnnouncement) -> Error {
    let missing = announcement.missing().to_vec();
    let why: Vec<_> = missing.iter().map(|(place, why)| format!("{place}: {why}")).collect();
    let why = match why.is_empty() {
        true => "no local network is allowed, and no server is named".to_owned(),
        false => why.join("; "),
    };
    let message = format!("no meeting place is available for a code ({why})");
    Error::because(ErrorKind::NotFound, message, Cause::NoPlace(missing))
}

/// Maps a failed join to an error kind.
fn kind_of(error: &JoinError) -> ErrorKind {
    match error.why {
        JoinErrorKind::NoPlace => ErrorKind::InvalidInput,
        JoinErrorKind::Used
        | JoinErrorKind::Expired
        | JoinErrorKind::Burned
        | JoinErrorKind::Wrong
        | JoinErrorKind::Spent => ErrorKind::WrongCode,
        _ => ErrorKind::NotFound,
    }
}
