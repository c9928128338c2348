//! The receiver's side of parallel connections: dials the sender's ports and reads the data
//! streams.

use std::thread::Scope;

use wraith_transport::{Connection, RecvStream};

use super::{Receiving, data};
use crate::control::ControlReader;
use crate::error::TransferError;
use crate::limits::PARALLEL_TIMEOUT;
use crate::message::Message;
use crate::parallel::{ParallelConnections, access_key};

/// Waits for the sender's ports and makes the connections. If the sender names no ports, ends with
/// the transfer.
pub(super) fn join<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    receiving: &'scope Receiving<'_>,
    mut reader: ControlReader,
    parallel: &'scope ParallelConnections,
) -> Result<(), TransferError> {
    let session = receiving.session;
    let ports = match reader.next(session)? {
        Message::ParallelPorts(offered) => offered.ports,
        other => return Err(session.protocol(format!("an unexpected {}", other.name()))),
    };
    if ports.len() > parallel.most() {
        return Err(session.protocol("more connections than were asked for"));
    }
    for port in ports {
        scope.spawn(move || {
            session.run_or_fail(|| match dial(receiving, parallel, port)? {
                Some(stream) => data::receive(receiving, stream),
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
    receiving: &Receiving<'_>,
    parallel: &ParallelConnections,
    port: u16,
) -> Result<Option<RecvStream>, TransferError> {
    let session = receiving.session;
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
    let stream = accept_stream(receiving, &connection);
    Ok(stream.filter(|_| session.add_connection(endpoint, connection)))
}

fn accept_stream(receiving: &Receiving<'_>, connection: &Connection) -> Option<RecvStream> {
    let accepted = receiving.session.wait_meanwhile(PARALLEL_TIMEOUT, connection.accept_stream());
    match accepted {
        Some(Ok((_unused, stream))) => Some(stream),
        // The connection came too late for the sender. Nothing was sent on it.
        Some(Err(_)) | None => {
            connection.close(crate::close::DONE, "");
            None
        }
    }
}
