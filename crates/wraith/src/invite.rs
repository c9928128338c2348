//! Invitations: codes made by the receiver, for a receiver that starts first. The sender joins with
//! the code and hands over its ticket (the text with its address and its capability to fetch).

use std::time::Duration;

use wraith_discovery::{
    Code, CodeAnnouncement, CodeEvent, CodeOptions, PlaceError, PlaceName, TicketSide, announce,
};
use zeroize::Zeroizing;

use crate::error::{Error, ErrorKind};
use crate::fetch::{Source, decode_delivered_ticket};
use crate::join_code::{CODE_LIFE, burned, expired, no_code, no_place};
use crate::node::Node;

/// Configures an [`Invitation`].
#[must_use = "there is no code before start()"]
#[derive(Debug)]
pub struct InvitationBuilder {
    node: Node,
    life: Duration,
}

impl Node {
    /// Makes a code for a receiver that starts first. A sender uses the code to hand over its
    /// ticket.
    ///
    /// ```no_run
    /// # use wraith::{Error, Node, OnConflict};
    /// # async fn example(node: Node) -> Result<(), Error> {
    /// let invitation = node.invite().start().await?;
    /// println!("on the other machine: wraith send FILE --code {}", invitation.code());
    /// let source = invitation.ticket().await?;
    /// node.fetch(source, "Downloads").accept_all(OnConflict::Rename).finished().await?.complete()
    /// # }
    /// ```
    pub fn invite(&self) -> InvitationBuilder {
        InvitationBuilder { node: self.clone(), life: CODE_LIFE }
    }
}

impl InvitationBuilder {
    /// Sets the lifetime of the code. Default: one hour.
    pub fn expires(mut self, life: Duration) -> Self {
        self.life = life;
        self
    }

    /// Makes the code. It is ready to be shown when this returns.
    ///
    /// # Errors
    /// No meeting place is available, or the system has no randomness.
    pub async fn start(self) -> Result<Invitation, Error> {
        self.node.check_open()?;
        let options = CodeOptions::new(TicketSide::Joiner, self.life);
        // The sender hands over the ticket; this side has none to give.
        let nothing = Box::new(|_, _| Some(Zeroizing::default()));
        let (own, places) = (self.node.id(), self.node.places());
        let announcement = announce(places, options, own, nothing).await.map_err(no_code)?;
        if announcement.places().is_empty() {
            return Err(no_place(&announcement));
        }
        Ok(Invitation { announcement })
    }
}

/// A code that waits for a sender. Drop withdraws the code.
#[derive(Debug)]
pub struct Invitation {
    announcement: CodeAnnouncement,
}

impl Invitation {
    /// Returns the code, for the sender.
    pub fn code(&self) -> &Code {
        self.announcement.code()
    }

    /// Returns the meeting places at which the code waits.
    pub fn places(&self) -> &[PlaceName] {
        self.announcement.places()
    }

    /// Returns the configured places at which the code does not wait, and why.
    pub fn missing(&self) -> &[(PlaceName, PlaceError)] {
        self.announcement.missing()
    }

    /// Waits for the sender's ticket and returns it as a source for a fetch. Dropping the future
    /// withdraws the code.
    ///
    /// # Errors
    /// A peer tried wrong words, or the code expired.
    pub async fn ticket(mut self) -> Result<Source, Error> {
        self.announcement.start_serving();
        while let Some(event) = self.announcement.next_event().await {
            match event {
                CodeEvent::Ticket { ticket, from } => {
                    let ticket = decode_delivered_ticket(&ticket)?;
                    let code = self.announcement.code().clone();
                    self.announcement.close().await;
                    return Ok(Source::Invited(code, ticket.met_at(from)));
                }
                CodeEvent::WrongGuess(place) => return Err(burned(place, "")),
                CodeEvent::Expired => return Err(expired("")),
                _ => {}
            }
        }
        Err(Error::new(ErrorKind::NotFound, "the code is no longer waiting at any place"))
    }
}
