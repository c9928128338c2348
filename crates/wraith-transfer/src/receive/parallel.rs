//! The receiver's side of parallel connections: dials the sender's ports and reads the data
//! streams.

use std::thread::Scope;

use wraith_transport::{Connection, RecvStream};

use super::assembly::Assembly;
use super::data;
use super::peer::Peer;
use crate::control::ControlReader;
use crate::error::TransferError;
use crate::limits::PARALLEL_TIMEOUT;
use crate::message::Message;
use crate::parallel::{ParallelConnections, access_key};
use crate::session::Session;

/// Waits for the sender's ports and makes the connections. If the sender names no ports, ends with
/// the transfer.
pub(super) fn join<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    peer: &'scope Peer<'_>,
    assembly: &'scope Assembly<'_>,
    mut reader: ControlReader,
    parallel: &'scope ParallelConnections,
) -> Result<(), TransferError> {
    let session = peer.session;
    let ports = match reader.next(session)? {
        Message::ParallelPorts(offered) => offered.ports,
        other => return Err(session.protocol(format!("an unexpected {}", other.name()))),
    };
    if ports.len() > parallel.most() {
        return Err(session.protocol("more connections than were asked for"));
    }
    for port in ports {
        scope.spawn(move || {
            session.run_or_fail(|| match dial(session, parallel, port)? {
                Some(stream) => data::receive(peer, assembly, stream),
                None => Ok(()),
            });
        });
    }
    // Later messages are not for this side; the read ends with the connection.
    let _ = reader.next(session);
    Ok(())
}

/// Establishes one parallel connection with its data stream. Returns `None` if that fails.
fn dial(
    session: &Session,
    parallel: &ParallelConnections,
    port: u16,
) -> Result<Option<RecvStream>, TransferError> {
    // The sender has proved this path to be its own. A scope (of a link-local address) is kept.
    let Some(mut remote) = session.connection.remote().ip() else { return Ok(None) };
    remote.set_port(port);
    let Ok(endpoint) = parallel.bind() else { return Ok(None) };
    let peer = session.connection.peer();
    let access_key = access_key(&session.connection);
    let dialled = endpoint.connect([remote], peer, &access_key);
    let Some(Ok(connection)) = session.wait_meanwhile(PARALLEL_TIMEOUT, dialled) else {
        return Ok(None);
    };
    let stream = accept_stream(session, &connection);
    Ok(stream.filter(|_| session.add_connection(endpoint, connection)))
}

fn accept_stream(session: &Session, connection: &Connection) -> Option<RecvStream> {
    let accepted = session.wait_meanwhile(PARALLEL_TIMEOUT, connection.accept_stream());
    match accepted {
        Some(Ok((_unused, stream))) => Some(stream),
        // The connection came too late for the sender. Nothing was sent on it.
        Some(Err(_)) | None => {
            connection.close(crate::close::DONE, "");
            None
        }
    }
}
