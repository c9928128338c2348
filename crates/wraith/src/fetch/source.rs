//! Parameters of a fetch: its source, its target, and how the offer is accepted.

use std::io::Write;
use std::path::PathBuf;

use tokio::io::AsyncWrite;
use wraith_crypto::from_variants;
use wraith_discovery::{Code, Ticket, TicketError};
use wraith_transfer::{Conflicts, OnConflict, StreamTarget};

use crate::blocking_io::Blocking;
use crate::error::{Cause, Error, ErrorKind};

/// The source of a fetch.
#[derive(Clone, Debug)]
pub enum Source {
    /// A code made by the sender. It delivers the ticket.
    Code(Code),
    /// A ticket.
    Ticket(Ticket),
    /// A ticket delivered by a code of this side
    /// ([`Invitation::ticket`](crate::Invitation::ticket)).
    Invited(Code, Ticket),
}

from_variants!(Source { Code => Code, Ticket => Ticket });

impl std::str::FromStr for Source {
    type Err = Error;

    /// Parses a code or a ticket, as typed or pasted by a user.
    fn from_str(text: &str) -> Result<Self, Error> {
        if Code::looks_like(text) {
            return Ok(Self::Code(text.parse()?));
        }
        text.parse().map(Self::Ticket).map_err(|error| match error {
            TicketError::OlderVersion(_) | TicketError::UnknownVersion(_) => {
                let message = format!("this ticket cannot be used: {error}");
                Error::because(ErrorKind::InvalidInput, message, Cause::TicketVersion)
            }
            _ => {
                let message = format!("this is neither a code nor a ticket: {error}");
                Error::new(ErrorKind::InvalidInput, message)
            }
        })
    }
}

/// Decodes the ticket that a code delivered. The code is already used up at this point.
pub(crate) fn decode_delivered_ticket(ticket: &[u8]) -> Result<Ticket, Error> {
    Ticket::decode(ticket).map_err(|error| match error {
        TicketError::OlderVersion(_) | TicketError::UnknownVersion(_) => {
            let message =
                format!("the sender's ticket cannot be used, and the code is used up: {error}");
            Error::because(ErrorKind::InvalidInput, message, Cause::TicketVersion)
        }
        _ => Error::new(ErrorKind::Verification, format!("the sender sent no ticket: {error}")),
    })
}

/// The target of a fetch.
#[derive(Clone, Debug)]
pub struct Target {
    pub(super) folder: PathBuf,
    pub(super) stream: StreamTarget,
}

impl Target {
    /// Writes into this folder, which is created when the offer is accepted. A stream becomes a
    /// file in it.
    pub fn folder(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), stream: StreamTarget::folder() }
    }

    /// Writes a stream or a single file to this writer. Each chunk is verified before it is
    /// written. The writer is flushed at the end, and dropped.
    ///
    /// The thread of the transfer calls `output`, which may block for any time; the sender then
    /// waits. If one side stops meanwhile, the other ends at once, and the fetch within 5 s. If
    /// `output` fails or panics, both sides end with [`ErrorKind::Stream`] or
    /// [`ErrorKind::Panicked`].
    pub fn writer(output: impl Write + Send + 'static) -> Self {
        Self { folder: PathBuf::from("."), stream: StreamTarget::output(output) }
    }

    /// Like [`writer`](Self::writer), for an asynchronous writer such as a socket of tokio. At the end
    /// it is shut down as well.
    ///
    /// # Panics
    /// Outside of a tokio runtime. The writer is polled in the runtime of this call.
    pub fn async_writer(output: impl AsyncWrite + Send + 'static) -> Self {
        Self::writer(Blocking::new(output))
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.stream.is_output() {
            return f.write_str("a pipe");
        }
        std::path::absolute(&self.folder).as_ref().unwrap_or(&self.folder).display().fmt(f)
    }
}

impl<P: Into<PathBuf>> From<P> for Target {
    fn from(folder: P) -> Self {
        Self::folder(folder)
    }
}

/// Options for accepting an offer.
#[non_exhaustive]
#[derive(Clone, Debug, Default)]
pub struct AcceptOptions {
    /// Policy for names that already exist in the target.
    pub conflicts: Conflicts,
    /// Also accepts a larger offer if the sender reconnects with one. Otherwise the fetch ends with
    /// [`ErrorKind::OfferChanged`].
    pub any_offer: bool,
    /// Declares that the caller fetches again after [`ErrorKind::OfferChanged`] and asks its user
    /// again. The ticket is then kept, and the sender keeps waiting.
    pub ask_again: bool,
}

impl AcceptOptions {
    /// Applies one policy to all names.
    pub fn on_conflict(policy: OnConflict) -> Self {
        Conflicts { otherwise: policy, ..Conflicts::default() }.into()
    }

    /// Also accepts a larger offer if the sender reconnects with one.
    pub fn any_offer(mut self) -> Self {
        self.any_offer = true;
        self
    }

    /// Declares that the caller fetches again, and asks its user again, if the offer has grown.
    pub fn ask_again(mut self) -> Self {
        self.ask_again = true;
        self
    }
}

impl From<Conflicts> for AcceptOptions {
    fn from(conflicts: Conflicts) -> Self {
        Self { conflicts, any_offer: false, ask_again: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_tickets_are_distinguished_by_their_form() {
        assert!(matches!("7-crater-lemon".parse(), Ok(Source::Code(_))));
        let error = "hello".parse::<Source>().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    }
}
