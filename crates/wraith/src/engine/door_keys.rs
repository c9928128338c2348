//! Door keys for dialling a peer (SPEC §3.1).

use std::time::Duration;

use tokio::time::sleep;
use wraith_crypto::NodeId;
use wraith_discovery::Capability;
use wraith_discovery::contact::Pair;
use wraith_transport::{Addr, ConnectError, Connection, DoorKey, Endpoint};

/// How long our own door key gets no answer before the public one is tried.
const OPEN_DOOR_AFTER: Duration = Duration::from_secs(1);

/// The door keys under which the peer may answer us (SPEC §3.1).
#[derive(Clone, Debug)]
pub(crate) struct DoorKeys {
    ours: DoorKey,
    /// Tried if our own key got no answer for a while. Any host with the peer's NodeId can identify
    /// packets under this key.
    of_everybody: Option<DoorKey>,
}

impl DoorKeys {
    /// Returns the keys for the holder of a ticket.
    pub fn of_ticket(capability: &Capability, peer: NodeId) -> Self {
        Self { ours: DoorKey::of_ticket(capability.as_bytes(), peer), of_everybody: None }
    }

    /// Returns the keys for calling a listener, which may have us among its contacts, or admit all
    /// peers.
    pub fn of_contact(pair: &Pair) -> Self {
        let peer = pair.peer();
        let of_everybody = Some(DoorKey::of_everybody(peer));
        Self { ours: DoorKey::of_pair(pair.secret(), peer), of_everybody }
    }

    /// Connects with our own key first, and with the public key if that gets no answer.
    pub async fn connect<A: Clone + Into<Addr>>(
        &self,
        endpoint: &Endpoint,
        addresses: &[A],
        peer: NodeId,
    ) -> Result<Connection, ConnectError> {
        let ours = endpoint.connect(addresses.iter().cloned(), peer, &self.ours);
        let Some(door) = &self.of_everybody else { return ours.await };
        let theirs = async {
            sleep(OPEN_DOOR_AFTER).await;
            endpoint.connect(addresses.iter().cloned(), peer, door).await
        };
        tokio::pin!(ours, theirs);
        tokio::select! {
            connected = &mut ours => match connected {
                Ok(connection) => Ok(connection),
                Err(_) => theirs.await,
            },
            connected = &mut theirs => match connected {
                Ok(connection) => Ok(connection),
                Err(_) => ours.await,
            },
        }
    }
}
