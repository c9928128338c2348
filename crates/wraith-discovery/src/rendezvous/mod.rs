//! The client of a rendezvous server, a meeting place that anyone can run (SPEC §11.5), and the
//! frames of the protocol. The server itself is in `wraith-relay`.
//!
//! The server is blind. The server assigns nameplates (the numbers in codes) and forwards sealed
//! messages between a creator and its joiners. It observes the nameplate, both addresses and the
//! time. It can prevent a meeting, but can neither read nor forge messages.
//!
//! The protocol uses TCP, for these reasons:
//!
//! - The traffic is a few hundred bytes per minute, so speed does not matter.
//! - Source addresses cannot be forged, which per-address limits require.
//! - The server never sends to a host that did not connect.
//! - TCP passes firewalls that block UDP.
//! - The code stays simple.

mod announce;
mod frame;
mod link;
mod probe;
mod query;

use std::sync::Arc;

use crate::connect::Connect;
use crate::place::{
    Announcement, BoxFuture, MakeQuestion, MeetingPlace, PlaceCaps, PlaceError, PlaceName, Query,
    Topic,
};

use announce::OpenedNameplate;
pub use frame::{
    ClientFrame, InvalidFrameLength, MAX_FRAME_LEN, ServerFrame, ServerRefusal, VERSION, split,
};
pub use probe::probe;
use query::RendezvousQuery;

/// Default TCP port of a server: the number of the local network's UDP port.
pub const DEFAULT_PORT: u16 = 49_737;
/// First nameplate of contacts; lower ones belong to codes.
pub const FIRST_CONTACT_NAMEPLATE: u32 = 1 << 31;

/// A server as a meeting place, with the default properties: half of the connections that a server
/// allows per address are for contacts.
#[derive(Debug)]
pub(crate) struct RendezvousPlace {
    server: String,
    connect: Arc<dyn Connect>,
}

impl RendezvousPlace {
    /// Creates the place for a server at `HOST:PORT`.
    pub fn new(server: String, connect: Arc<dyn Connect>) -> Self {
        Self { server, connect }
    }
}

impl MeetingPlace for RendezvousPlace {
    fn place(&self) -> PlaceName {
        PlaceName::Rendezvous(self.server.clone())
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
            let opening = OpenedNameplate::new(place, &*connect, nameplate, exact).await?;
            Ok(Box::new(opening) as Box<dyn Announcement>)
        })
    }

    fn query(&self, topic: Topic, question: MakeQuestion) -> Box<dyn Query> {
        let connect = Arc::clone(&self.connect);
        Box::new(RendezvousQuery::new(self.server.clone(), connect, topic, question))
    }
}

/// Returns the nameplate of a topic, and whether it is the only acceptable one.
fn nameplate(topic: Topic) -> Result<(u32, bool), PlaceError> {
    match topic {
        Topic::Nameplate { nameplate, exact } => Ok((nameplate, exact)),
        Topic::Contact([a, b, c, d, ..]) => {
            Ok((FIRST_CONTACT_NAMEPLATE | u32::from_be_bytes([a, b, c, d]), true))
        }
        Topic::AnyContact => Err(PlaceError::Protocol),
    }
}
