//! A code that the receiver makes, when it starts first: it waits with one, and the sender goes there and gives its ticket.

use std::time::Duration;

use wraith_discovery::{
    Code, CodeAnnouncement, CodeEvent, CodeOptions, JoinError, NotMet, Place, PlaceError, Ticket,
    TicketSide, announce,
};
use zeroize::Zeroizing;

use crate::addresses::nearest_first;
use crate::error::{Cause, Error, ErrorKind};
use crate::fetch::Source;
use crate::node::Node;

/// How long a code is good, unless something else is asked for.
pub(crate) const CODE_LIFE: Duration = Duration::from_secs(3600);

/// An invitation that is being prepared.
#[must_use = "there is no code before start()"]
#[derive(Debug)]
pub struct InvitationBuilder {
    node: Node,
    life: Duration,
}

impl InvitationBuilder {
    pub(crate) fn new(node: Node) -> Self {
        Self { node, life: CODE_LIFE }
    }

    /// How long the code is good: an hour, unless this says something else.
    pub fn expires(mut self, life: Duration) -> Self {
        self.life = life;
        self
    }

    /// Makes the code. It can be shown when this returns.
    ///
    /// # Errors
    /// There is no place to meet at, or the system has no randomness.
    pub async fn start(self) -> Result<Invitation, Error> {
        let options = CodeOptions::new(TicketSide::Joiner, self.life);
        let nothing = Box::new(|_| Zeroizing::default());
        let announcement = announce(self.node.places(), options, nothing).await.map_err(no_code)?;
        if announcement.places().is_empty() {
            return Err(no_place(&announcement));
        }
        Ok(Invitation { announcement })
    }
}

/// A code that waits for a sender. Dropped, it is withdrawn.
#[derive(Debug)]
pub struct Invitation {
    announcement: CodeAnnouncement,
}

impl Invitation {
    /// The code, for the sender.
    pub fn code(&self) -> &Code {
        self.announcement.code()
    }

    /// Where it is waited with.
    pub fn places(&self) -> &[Place] {
        self.announcement.places()
    }

    /// Where it is not, although it was to be, and why.
    pub fn missing(&self) -> &[(Place, PlaceError)] {
        self.announcement.missing()
    }

    /// Waits for the sender's ticket: what to fetch with. Dropping the future withdraws the code.
    ///
    /// # Errors
    /// Somebody tried wrong words, or the time is up.
    pub async fn ticket(mut self) -> Result<Source, Error> {
        self.announcement.begin();
        while let Some(event) = self.announcement.next_event().await {
            match event {
                CodeEvent::Ticket { ticket, from } => {
                    let ticket = Ticket::decode(&ticket).map_err(|error| {
                        let message = format!("the sender gave no ticket: {error}");
                        Error::new(ErrorKind::Verification, message)
                    })?;
                    let code = self.announcement.code().clone();
                    self.announcement.close().await;
                    return Ok(Source::Invited(code, nearest_first(&ticket, from)));
                }
                CodeEvent::WrongGuess(place) => return Err(burned(place, "")),
                CodeEvent::Expired => return Err(expired("")),
                _ => {}
            }
        }
        Err(Error::new(ErrorKind::NotFound, "nobody waits with the code any more"))
    }
}

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
