//! The operations of a [`Node`]; each returns a builder.

use std::path::PathBuf;

use crate::fetch::{FetchBuilder, Source, Target};
use crate::invite::InvitationBuilder;
use crate::listen::ListenBuilder;
use crate::node::Node;
use crate::offer::OfferBuilder;
use crate::payload::Payload;
use crate::service::{ConnectBuilder, ServiceAddress, ServiceBuilder};

impl Node {
    /// Offers files, folders or a stream, either by code or ticket or to a contact.
    pub fn offer(&self, what: impl Into<Payload>) -> OfferBuilder {
        OfferBuilder::new(self.clone(), what.into())
    }

    /// Fetches the offer behind a code or ticket.
    ///
    /// This example inspects the offer before it accepts, then follows the events:
    ///
    /// ```no_run
    /// # use wraith::{AcceptOptions, Code, Error, Event, Node, OnConflict};
    /// # async fn example(node: Node, code: Code) -> Result<(), Error> {
    /// let incoming = node.fetch(code, "Downloads").wait_for_offer().await?;
    /// let offer = incoming.offer();
    /// println!("{} offers {} files, {} bytes", incoming.sender(), offer.files, offer.bytes);
    /// if offer.bytes > 1_000_000_000 {
    ///     return Err(incoming.refuse("too much for this disk").await);
    /// }
    /// let transfer = incoming.accept(AcceptOptions::on_conflict(OnConflict::Rename));
    /// let (mut events, mut progress) = (transfer.events(), transfer.progress());
    /// while let Some(event) = events.next().await {
    ///     match event {
    ///         Event::File { path, status, .. } => println!("{path}: {status:?}"),
    ///         Event::ConnectionLost { why, seconds_left } => {
    ///             println!("{why}; {seconds_left} s to come back");
    ///         }
    ///         _ => {}
    ///     }
    ///     if let Some(progress) = progress.read() {
    ///         println!("{} of {} bytes", progress.bytes, progress.bytes_total);
    ///     }
    /// }
    /// transfer.finished().await?.complete()
    /// # }
    /// ```
    pub fn fetch(&self, from: impl Into<Source>, into: impl Into<Target>) -> FetchBuilder {
        FetchBuilder::new(self.clone(), from.into(), into.into())
    }

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
        InvitationBuilder::new(self.clone())
    }

    /// Accepts offers without a code, from contacts or from any peer that has the NodeId.
    ///
    /// ```no_run
    /// # use wraith::{AcceptOptions, Error, Node, OnConflict};
    /// # async fn example(node: Node) -> Result<(), Error> {
    /// let mut listener = node.listen("Downloads").start().await?;
    /// while let Some(incoming) = listener.next().await {
    ///     let transfer = incoming.accept(AcceptOptions::on_conflict(OnConflict::Rename));
    ///     // One moves at a time; the next waits for its turn.
    ///     if let Err(error) = transfer.finished().await {
    ///         eprintln!("{error}");
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn listen(&self, into: impl Into<PathBuf>) -> ListenBuilder {
        ListenBuilder::new(self.clone(), into.into())
    }

    /// Accepts raw connections from peers that have the ticket or code, or from contacts.
    pub fn serve(&self) -> ServiceBuilder {
        ServiceBuilder::new(self.clone())
    }

    /// Connects to a [`Service`](crate::Service) by its ticket or code, or to one of a contact.
    pub fn connect(&self, to: impl Into<ServiceAddress>) -> ConnectBuilder {
        ConnectBuilder::new(self.clone(), to.into())
    }
}
