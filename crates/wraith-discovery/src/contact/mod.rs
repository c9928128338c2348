//! Meeting a peer with a known NodeId (its public key), without a code (SPEC §12): the **caller**
//! looks for the **listener**. The caller's request is a *call*: a sealed message with the caller's
//! addresses.
//!
//! Two identities share a secret that no third party can compute: the X25519 of their static keys.
//! It seals all messages. With the hour it also yields the topics, the names under which the two
//! find each other at a place. An observer therefore sees no names and cannot link pairs, and a
//! listener answers only its contacts.
//!
//! At a live place, where the running peer answers, the exchange is one request and one response.
//! The result is only an address to dial; the handshake then authenticates the peer.

mod hour;
mod listen;
mod packet;
mod pair;
mod place_status;
mod replay;
mod responder;
mod search;
mod search_event;
mod stored;

use wraith_crypto::{NodeId, kdf};

pub use listen::{ContactEvents, ContactListener, listen};
pub use packet::{ContactMessage, open, seal};
pub use pair::ContactPair;
pub use responder::{ContactEvent, PUNCH_SECRET_LEN, PunchRequest, PunchSecret};
pub use search::{CallOptions, ContactSearch, SearchTarget, search, search_with_call};
pub use search_event::SearchEvent;

/// Most contacts of a listener. Each costs one trial decryption per packet from the local network.
pub const MAX_CONTACTS: usize = 256;

/// Lowest port that [`usual_port`] returns, above those of well-known services.
const FIRST_PORT: u16 = 10_240;
/// Number of such ports. They end below the ephemeral ports of operating systems (32768 on Linux).
const PORTS: u64 = 22_528;

/// Returns the preferred UDP port of an identity. A peer with the NodeId can compute it; the port
/// appears in no list of well-known ports.
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
    fn usual_ports_are_distinct_and_below_the_ephemeral_range() {
        let ports: Vec<u16> = (0..100).map(|n| usual_port(identity(n).node_id())).collect();
        assert!(ports.iter().all(|port| (10_240..32_768).contains(port)));
        let distinct: std::collections::HashSet<_> = ports.iter().collect();
        assert!(distinct.len() > 95, "{}", distinct.len());
    }
}
