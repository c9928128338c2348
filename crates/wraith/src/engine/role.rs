//! The roles of a node: what it does for peers that dial (offers, listeners, services).
//!
//! A role has a door of a socket ([`SocketPaths`]), so it never sees a peer that was invited by
//! another role. [`run`] is the loop of every role. It reports the peers at the door, and what
//! happens to the socket, in turn with the role's own events.
//!
//! Invariant: a role runs in a task of its own. If it panics, its door closes, and the other roles
//! go on.

use std::ops::ControlFlow;

use tokio_util::sync::CancellationToken;
use wraith_transport::{ClockDifference, Connection};

use crate::error::{Error, ErrorKind};
use crate::paths::SocketPaths;

/// One role (see the module docs).
pub(crate) trait Role: Send {
    /// What wakes the role, besides its peers and its socket.
    type Event: Send;
    /// The result of the role.
    type Output: Send;

    /// Returns the paths to the role's door.
    fn paths(&self) -> &SocketPaths;

    /// Waits for the next event of the role. Cancel safe.
    fn next_event(&mut self) -> impl Future<Output = Self::Event> + Send;

    /// Handles an event. `Break` ends the role.
    fn on_event(
        &mut self,
        event: Self::Event,
    ) -> impl Future<Output = ControlFlow<Self::Output>> + Send;

    /// Handles a peer that came through the door and has proven its NodeId, and nothing else.
    fn on_connection(&mut self, connection: Connection);

    /// Handles a handshake at the door that was refused because the clocks of both sides differ.
    fn on_clock_difference(&mut self, refused: ClockDifference);

    /// Handles a change of the addresses at which the socket can be reached.
    fn on_addresses_changed(&mut self);

    /// Ends the role because its handle was dropped, or the node was closed.
    fn on_stop(&mut self) -> impl Future<Output = Self::Output> + Send;
}

/// Runs a role until it ends, or is stopped by the token.
///
/// # Errors
/// The socket is gone.
pub(crate) async fn run<R: Role>(
    role: &mut R,
    stop: &CancellationToken,
) -> Result<R::Output, Error> {
    let endpoint = role.paths().endpoint().clone();
    let mut changes = role.paths().changes();
    loop {
        tokio::select! {
            connection = endpoint.accept() => match connection {
                Some(connection) => role.on_connection(connection),
                None => return Err(Error::new(ErrorKind::Other, "the socket is gone")),
            },
            refused = endpoint.clock_difference() => role.on_clock_difference(refused),
            Ok(()) = changes.changed() => role.on_addresses_changed(),
            event = role.next_event() => match role.on_event(event).await {
                ControlFlow::Continue(()) => {}
                ControlFlow::Break(output) => return Ok(output),
            },
            () = stop.cancelled() => return Ok(role.on_stop().await),
        }
    }
}
