//! How a code ends without having brought the two sides together, as errors of this crate; the same for whoever made it.

use std::time::Duration;

use wraith_discovery::{CodeAnnouncement, JoinError, NotMet, Place};

use crate::error::{Cause, Error, ErrorKind};

/// How long a code is good, unless something else is asked for.
pub(crate) const CODE_LIFE: Duration = Duration::from_secs(3600);

/// `who` had it before, as the end of the sentence.
pub(crate) fn burned(place: Place, who: &str) -> Error {
    let message = format!("somebody {place} tried the code with wrong words; it is burned{who}");
    Error::because(ErrorKind::WrongCode, message, Cause::CodeBurned(place))
}

pub(crate) fn expired(who: &str) -> Error {
    let message = match who {
        "" => "the code has expired, nobody used it in time".to_owned(),
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
    let message = format!("there is no place to meet by code ({why})");
    Error::because(ErrorKind::NotFound, message, Cause::NoPlace(missing))
}

/// What it means that nobody was met with a code.
pub(crate) fn kind_of(error: &JoinError) -> ErrorKind {
    match error.why {
        NotMet::NoPlace => ErrorKind::InvalidInput,
        NotMet::Used | NotMet::Expired | NotMet::Burned | NotMet::Wrong => ErrorKind::WrongCode,
        _ => ErrorKind::NotFound,
    }
}
