//! Meeting on the local network, without a server (SPEC §11.6).
//!
//! The searching side sends its first message to a multicast group on every interface until a peer
//! answers. The waiting side claims its nameplate once, before the code is shown. After that it
//! only listens: it sends nothing by itself. It ignores invalid requests, and requests that were
//! not sent to the group: they may come from other networks.
//!
//! All packets have one length. Packets about a nameplate (the number in a code) are sealed with a
//! key derived from the nameplate and a salt, so an observer sees random bytes. By trying all
//! nameplates an observer can find the nameplate in use, but no words, names or files. Packets
//! between contacts are sealed already.

mod announce;
mod claim;
mod envelope;
mod interface_watch;
mod interfaces;
mod nameplate_lock;
mod packet;
mod probe;
mod query;
mod sockets;

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use crate::place::{
    Announcement, BoxFuture, MakeQuestion, MeetingPlace, PlaceCaps, PlaceError, PlaceName, Query,
    Topic,
};

use announce::MulticastListener;
use envelope::Envelope;
pub use interfaces::Lan;
pub use packet::{OPENING_LEN, PACKET_LEN, open, seal};
pub use probe::{ProbeResult, probe};
use query::LanQuery;

/// Link-local groups reserved for experiments, which routers do not forward (RFC 4727 §2.4.2,
/// §3.2).
pub const GROUP_V4: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 254);
/// Same for IPv6, in link-local scope.
pub const GROUP_V6: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x114);
/// UDP port of the group, from the dynamic range (RFC 6335 §6).
pub const PORT: u16 = 49_737;

/// Longest wait for an answer: a thousand round trips on a local network.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Most contacts to answer. Each costs one trial decryption per packet.
const MAX_CONTACTS: usize = 256;

/// The local network as a meeting place.
#[derive(Debug)]
pub(crate) struct LanPlace {
    lan: Lan,
}

impl LanPlace {
    /// Returns `None` if it is off.
    pub fn new(lan: Lan) -> Option<Self> {
        (lan != Lan::Off).then_some(Self { lan })
    }
}

impl MeetingPlace for LanPlace {
    fn place(&self) -> PlaceName {
        PlaceName::Lan
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
            let listener = match topic {
                Topic::Nameplate { nameplate, exact } => {
                    claim::listen(lan, nameplate, exact).await?
                }
                _ => MulticastListener::new(lan, Envelope::of(topic)?, None)?,
            };
            Ok(Box::new(listener) as Box<dyn Announcement>)
        })
    }

    fn query(&self, topic: Topic, question: MakeQuestion) -> Box<dyn Query> {
        Box::new(LanQuery::new(self.lan.clone(), topic, question))
    }
}
