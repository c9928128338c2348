//! Meeting on the local network, without any server (SPEC §11.6).
//!
//! Who looks sends the first message of a conversation to a multicast group on every interface until somebody answers. Who
//! waits only listens: nothing it has on the network shows that it waits, and it answers nobody who does not know what to
//! say. All packets have one length. Those about a nameplate are sealed under a key made of it and a salt, so a watcher sees
//! bytes without structure, and if it tries all nameplates it learns the nameplate and that somebody looks for it, but no
//! words, names or files. Those between contacts are sealed already.

mod announce;
mod envelope;
mod interface_watch;
mod interfaces;
mod packet;
mod probe;
mod query;
mod sockets;

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use crate::place::{
    Announcement, BoxFuture, MakeQuestion, MeetingPlace, Place, PlaceCaps, PlaceError, Query, Topic,
};

use announce::MulticastListener;
use envelope::Envelope;
pub use interfaces::Lan;
pub use packet::{OPENING_LEN, PACKET_LEN, open, seal};
pub use probe::{Heard, probe};
use query::LanQuery;

/// Link-local groups set aside for experiments, which no router forwards (RFC 4727 §2.4.2, §3.2).
pub const GROUP_V4: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 254);
/// The same for IPv6, in link-local scope.
pub const GROUP_V6: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x114);
/// The port that is listened on, from the range that is assigned to nobody (RFC 6335 §6).
pub const PORT: u16 = 49_737;

/// How long the other side may take to answer. On a local network that is a thousand round trips.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Contacts that are answered. Each costs a try to open what comes.
const MAX_CONTACTS: usize = 256;

/// The local network as a place to meet.
#[derive(Debug)]
pub(crate) struct LanPlace {
    lan: Lan,
}

impl LanPlace {
    /// None if it is off.
    pub fn new(lan: Lan) -> Option<Self> {
        (lan != Lan::Off).then_some(Self { lan })
    }
}

impl MeetingPlace for LanPlace {
    fn place(&self) -> Place {
        Place::Lan
    }

    fn caps(&self) -> PlaceCaps {
        PlaceCaps::default()
            .broadcast(MAX_CONTACTS)
            .contact_message_len(PACKET_LEN)
            .answer_timeout(ANSWER_TIMEOUT)
    }

    fn announce(
        &self,
        topic: Topic,
    ) -> BoxFuture<'static, Result<Box<dyn Announcement>, PlaceError>> {
        let lan = self.lan.clone();
        Box::pin(async move {
            let listener = MulticastListener::new(lan, Envelope::of(topic)?)?;
            Ok(Box::new(listener) as Box<dyn Announcement>)
        })
    }

    fn query(&self, topic: Topic, question: MakeQuestion) -> Box<dyn Query> {
        Box::new(LanQuery::new(self.lan.clone(), topic, question))
    }
}
