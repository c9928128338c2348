//! A meeting place that anyone can run: `wraith rendezvous` (SPEC §11.5).
//!
//! The server is blind. It hands out nameplates and passes messages between the one who opened a nameplate and those who join
//! it; the messages are sealed, so it learns the nameplate, the two addresses and the time, and can make a meeting fail, but
//! neither read nor forge what is said.
//!
//! It is TCP. Everything it does fits in a few hundred bytes a minute, so speed is no reason for anything else; TCP brings
//! addresses that cannot be forged, which is what limits per address rest on, and a server that never sends to somebody
//! who did not ask; it passes the firewalls that stop UDP; and a reader of this code needs to know nothing more.

mod announce;
mod frame;
mod link;
mod mailboxes;
mod probe;
mod query;
mod server;

use std::sync::Arc;

use crate::connect::Connect;
use crate::place::{
    Announcement, BoxFuture, MakeQuestion, MeetingPlace, Place, PlaceCaps, PlaceError, Query, Topic,
};

use announce::Opening;
pub use frame::{ClientFrame, No, NoFrame, ServerFrame, VERSION, split};
pub use probe::probe;
use query::RendezvousQuery;
pub use server::{Connections, Server};

/// The TCP port that a server listens on when none is named: that of the local network's packets, which are UDP.
pub const DEFAULT_PORT: u16 = 49_737;
/// Nameplates from here on belong to contacts; codes have the others.
const FIRST_CONTACT_NAMEPLATE: u32 = 1 << 31;

/// A server as a place to meet. Its defaults suit it: half of the connections that a server allows one address are for
/// contacts.
#[derive(Debug)]
pub(crate) struct RendezvousPlace {
    server: String,
    connect: Arc<dyn Connect>,
}

impl RendezvousPlace {
    /// At `HOST:PORT`.
    pub fn new(server: String, connect: Arc<dyn Connect>) -> Self {
        Self { server, connect }
    }
}

impl MeetingPlace for RendezvousPlace {
    fn place(&self) -> Place {
        Place::Rendezvous(self.server.clone())
    }

    fn caps(&self) -> PlaceCaps {
        PlaceCaps::default()
    }

    fn announce(
        &self,
        topic: Topic,
    ) -> BoxFuture<'static, Result<Box<dyn Announcement>, PlaceError>> {
        let (place, connect) = (self.place(), Arc::clone(&self.connect));
        Box::pin(async move {
            let (nameplate, exact) = nameplate(topic)?;
            let opening = Opening::new(place, &*connect, nameplate, exact).await?;
            Ok(Box::new(opening) as Box<dyn Announcement>)
        })
    }

    fn query(&self, topic: Topic, question: MakeQuestion) -> Box<dyn Query> {
        let connect = Arc::clone(&self.connect);
        Box::new(RendezvousQuery::new(self.server.clone(), connect, topic, question))
    }
}

/// The nameplate of a topic, and whether it is the only one that will do.
fn nameplate(topic: Topic) -> Result<(u32, bool), PlaceError> {
    match topic {
        Topic::Nameplate { nameplate, exact } => Ok((nameplate, exact)),
        Topic::Contact([a, b, c, d, ..]) => {
            Ok((FIRST_CONTACT_NAMEPLATE | u32::from_be_bytes([a, b, c, d]), true))
        }
        Topic::AnyContact => Err(PlaceError::Protocol),
    }
}
