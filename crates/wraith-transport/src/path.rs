//! Path events and migration of a connection, for the application. A [`PathEvents`] reads the
//! connection's [log](crate::path_log) at its own pace.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;

use thiserror::Error;
use wraith_core::{CloseReason, ConnectionStats};
use wraith_crypto::identity::NodeId;

use crate::addr::Addr;
use crate::connection::Connection;
use crate::lock::lock;
use crate::path_log::PathEvent;
use crate::shared::ConnectionShared;

/// Why a connection did not move.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MigrationError {
    /// The peer did not answer at the address, or another move replaced this one.
    #[error("the peer does not answer at the other address")]
    NoAnswer,
    /// The connection ended.
    #[error("{0}")]
    ConnectionLost(#[from] CloseReason),
}

/// The path events of a connection, from the call of [`PathHandle::events`] on. Does not keep the
/// connection open.
#[derive(Debug)]
pub struct PathEvents {
    shared: Arc<ConnectionShared>,
    position: u64,
}

impl PathEvents {
    /// Waits for the next event. If more than 32 are unread, the oldest are lost. Cancel safe.
    pub async fn next(&mut self) -> Result<PathEvent, CloseReason> {
        poll_fn(|cx| {
            let position = &mut self.position;
            self.shared.poll_next(
                cx,
                |state| state.path_log.next(position),
                |state| &mut state.wakers,
            )
        })
        .await
    }
}

/// Control over a connection's path. Does not keep the connection open.
#[derive(Clone, Debug)]
pub struct PathHandle {
    shared: Arc<ConnectionShared>,
}

impl Connection {
    /// Returns a handle of this connection's path.
    pub fn path(&self) -> PathHandle {
        PathHandle { shared: Arc::clone(self.shared()) }
    }
}

impl PathHandle {
    /// Returns the current address of the peer.
    pub fn remote(&self) -> Addr {
        let remote = lock(&self.shared.state).remote.clone();
        remote.expect("a connection is handed out after it was made, and that sets the address")
    }

    /// Returns the authenticated peer.
    pub fn peer(&self) -> NodeId {
        lock(&self.shared.state).peer
    }

    /// Returns counters and estimates of the connection. See [`Connection::stats`].
    pub fn stats(&self) -> ConnectionStats {
        self.shared.stats()
    }

    /// Returns the path events from now on.
    pub fn events(&self) -> PathEvents {
        let position = lock(&self.shared.state).path_log.end();
        PathEvents { shared: Arc::clone(&self.shared), position }
    }

    /// Migrates to another address of the peer after path validation, and returns once the path is
    /// validated. Streams continue meanwhile. Before validation, `to` gets at most eleven datagrams
    /// of 1200 bytes: use addresses known to be the peer's, for example from a punch.
    ///
    /// # Errors
    /// The peer did not answer within some seconds; the connection stays on its old path.
    pub async fn migrate_to(&self, to: impl Into<Addr>) -> Result<(), MigrationError> {
        let to = to.into();
        let mut events = self.events();
        lock(&self.shared.state).migrate_to = Some(to.clone());
        self.shared.notify_io();
        loop {
            match events.next().await? {
                PathEvent::Changed(at) if at.as_ref() == Some(&to) => return Ok(()),
                PathEvent::MigrationFailed(at) if at.is_none() || at.as_ref() == Some(&to) => {
                    return Err(MigrationError::NoAnswer);
                }
                _ => {}
            }
        }
    }

    /// Ends the connection now, as its idle timeout would. For a caller that carries the path and
    /// knows that it is dead.
    pub fn declare_dead(&self) {
        lock(&self.shared.state).path_given_up = true;
        self.shared.notify_io();
    }

    /// Sends the first 16 of `addresses` to the peer as further addresses of this side. Replaces
    /// earlier ones.
    pub fn set_candidates(&self, addresses: impl IntoIterator<Item = SocketAddr>) {
        let addresses = addresses.into_iter().collect();
        lock(&self.shared.state).candidates = Some(addresses);
        self.shared.notify_io();
    }

    /// Returns the further addresses that the peer has reported so far.
    pub fn peer_candidates(&self) -> Vec<SocketAddr> {
        lock(&self.shared.state).peer_candidates.clone()
    }

    /// Derives 32 secret bytes from `context`. Both sides of this connection get the same bytes,
    /// and no other party can compute them.
    pub fn export_secret(&self, context: &[u8]) -> [u8; 32] {
        let state = lock(&self.shared.state);
        let exporter = state.exporter.as_ref();
        exporter
            .expect("a connection is handed out after it was made, and that sets it")
            .secret(context)
    }
}
