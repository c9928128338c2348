//! With which door keys a peer is called (SPEC §3.1).

use std::time::Duration;

use tokio::time::sleep;
use wraith_crypto::NodeId;
use wraith_discovery::Capability;
use wraith_discovery::contact::Pair;
use wraith_transport::{Addr, ConnectError, Connection, DoorKey, Endpoint};

/// How long nobody has answered at our own door when everybody's is tried.
const OPEN_DOOR_AFTER: Duration = Duration::from_secs(1);

/// By which doors the peer may let us in (SPEC §3.1).
#[derive(Clone, Debug)]
pub(crate) struct DoorKeys {
    ours: DoorKey,
    /// Tried where nobody answered at ours for a while: whoever knows the peer's NodeId can tell who knocks there.
    of_everybody: Option<DoorKey>,
}

impl DoorKeys {
    /// Who has a ticket.
    pub fn of_ticket(capability: &Capability, peer: NodeId) -> Self {
        Self { ours: DoorKey::of_ticket(capability.as_bytes(), peer), of_everybody: None }
    }

    /// Who calls a listener, which may have us among its contacts, or takes everybody.
    pub fn of_contact(pair: &Pair) -> Self {
        let peer = pair.peer();
        let of_everybody = Some(DoorKey::of_everybody(peer));
        Self { ours: DoorKey::of_pair(pair.secret(), peer), of_everybody }
    }

    /// Begins at our own door, and goes on at everybody's where that does not open.
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
