//! Access keys for dialling a peer (SPEC §3.1).

use std::time::Duration;

use tokio::time::sleep;
use wraith_crypto::NodeId;
use wraith_discovery::Capability;
use wraith_discovery::contact::ContactPair;
use wraith_transport::{AccessKey, Addr, ConnectError, Connection, Endpoint};

/// Time without an answer to our own access key before the public access key is tried.
const PUBLIC_ACCESS_KEY_AFTER: Duration = Duration::from_secs(1);

/// The access keys under which the peer may answer us (SPEC §3.1).
#[derive(Clone, Debug)]
pub(crate) struct AccessKeys {
    ours: AccessKey,
    /// Tried if our own key got no answer for a while. Any host with the peer's NodeId can identify
    /// packets under this key.
    public: Option<AccessKey>,
}

impl AccessKeys {
    /// Returns the keys for the holder of a ticket.
    pub fn of_ticket(capability: &Capability, peer: NodeId) -> Self {
        Self::only(AccessKey::of_ticket(capability.as_bytes(), peer))
    }

    /// Returns the only key under which the peer may answer.
    pub fn only(access_key: AccessKey) -> Self {
        Self { ours: access_key, public: None }
    }

    /// Returns the keys for calling a listener, which may have us among its contacts, or admit all
    /// peers.
    pub fn of_contact(pair: &ContactPair) -> Self {
        let peer = pair.peer();
        let public = Some(AccessKey::public(peer));
        Self { ours: AccessKey::of_pair(pair.secret(), peer), public }
    }

    /// Connects with our own key first, and with the public access key if that gets no answer.
    pub async fn connect<A: Clone + Into<Addr>>(
        &self,
        endpoint: &Endpoint,
        addresses: &[A],
        peer: NodeId,
    ) -> Result<Connection, ConnectError> {
        let ours = endpoint.connect(addresses.iter().cloned(), peer, &self.ours);
        let Some(access_key) = &self.public else { return ours.await };
        let theirs = async {
            sleep(PUBLIC_ACCESS_KEY_AFTER).await;
            endpoint.connect(addresses.iter().cloned(), peer, access_key).await
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
