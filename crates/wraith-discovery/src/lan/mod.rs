//! Meeting on the local network, without any server (SPEC §11.6).
//!
//! The guest sends its hello to a multicast group on every interface until somebody answers. The holder only listens:
//! nothing it has on the network shows that it waits, and it answers nobody who does not know its number. Every packet is
//! sealed under a key made of the number and a salt, padded to one length. So a watcher sees bytes without structure, and
//! if it tries all numbers it learns the number and that somebody looks for it, but no words, names or files.

mod guest;
mod holder;
mod interfaces;
mod packet;
mod probe;
pub(crate) mod sockets;

use std::net::{Ipv4Addr, Ipv6Addr};

pub(crate) use guest::ask;
pub(crate) use holder::Listener;
pub use interfaces::Lan;
pub use packet::{PACKET_LEN, open, seal};
pub use probe::{Heard, probe};

/// Link-local groups set aside for experiments, which no router forwards (RFC 4727 §2.4.2, §3.2).
pub const GROUP_V4: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 254);
/// The same for IPv6, in link-local scope.
pub const GROUP_V6: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x114);
/// The port that holders listen on, from the range that is assigned to nobody (RFC 6335 §6).
pub const PORT: u16 = 49_737;
