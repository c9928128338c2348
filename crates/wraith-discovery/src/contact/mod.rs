//! Meeting somebody whose NodeId is known, without a code (SPEC §12): the **caller** looks for the **listener**.
//!
//! Two identities share a secret that nobody else can compute, the X25519 of their static keys. Everything that is said on
//! the way is sealed under it, and what is waited at is named by it and the hour. So a watcher sees no names and cannot tell
//! one pair from another, and a listener answers its contacts and nobody else.
//!
//! At a live place the exchange is one question with one answer, the same at every place. What is found is only where to dial; that the right
//! one answers is shown by the handshake.

mod hour;
mod listen;
mod packet;
mod pair;
mod replay;
mod responder;
mod search;
mod stored;

use std::net::SocketAddr;

use wraith_crypto::{NodeId, kdf};

pub use listen::{ContactEvents, ContactListener, listen};
pub(crate) use packet::{ADDRESS_LEN, decode_address, encode_address};
pub use packet::{Said, open, seal};
pub use pair::Pair;
pub use responder::{ContactEvent, LeftCall, PUNCH_SECRET_LEN, PunchSecret};
pub use search::{Calling, ContactSearch, Found, search, search_calling};

/// Contacts that a listener knows at most. Each costs a try to open what comes over the local network.
pub const MAX_CONTACTS: usize = 256;

/// The first port that [`usual_port`] gives: above those of well-known services.
const FIRST_PORT: u16 = 10_240;
/// How many there are: they end below those that systems hand out by themselves (32768 on Linux).
const PORTS: u64 = 22_528;

/// Where a listener can be dialled, the most useful first.
pub type Addresses = Vec<SocketAddr>;

/// The UDP port where this identity listens if it can: whoever knows the NodeId knows it, and nobody else finds it in a list.
pub fn usual_port(node_id: NodeId) -> u16 {
    let hash = kdf::derive("wraith/1 usual port", node_id.as_bytes());
    let number = u64::from_be_bytes(*hash.first_chunk().expect("a key has 32 bytes"));
    FIRST_PORT + (number % PORTS) as u16
}

#[cfg(test)]
mod tests {
    use wraith_crypto::SecretIdentity;

    use super::*;

    fn identity(n: u8) -> SecretIdentity {
        SecretIdentity::from_seed([n; 32])
    }

    #[test]
    fn usual_ports_lie_where_nobody_else_listens_and_differ() {
        let ports: Vec<u16> = (0..100).map(|n| usual_port(identity(n).node_id())).collect();
        assert!(ports.iter().all(|port| (10_240..32_768).contains(port)));
        let distinct: std::collections::HashSet<_> = ports.iter().collect();
        assert!(distinct.len() > 95, "{}", distinct.len());
    }
}
