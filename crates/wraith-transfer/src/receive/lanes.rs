//! The receiver's side of lanes: dials where the sender says, and reads what comes.

use std::thread::Scope;

use wraith_transport::{Connection, RecvStream};

use super::{Receiving, data};
use crate::control::ControlReader;
use crate::error::TransferError;
use crate::lanes::Lanes;
use crate::limits::LANE_TIMEOUT;
use crate::message::Message;

/// Waits for the sender's word on lanes and makes them. Ends with the transfer if it never says one.
pub(super) fn join<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    receiving: &'scope Receiving<'_>,
    mut reader: ControlReader,
    lanes: &'scope Lanes,
) -> Result<(), TransferError> {
    let session = receiving.session;
    let ports = match reader.next(session)? {
        Message::Lanes(lanes) => lanes.ports,
        other => return Err(session.protocol(format!("an unexpected {}", other.name()))),
    };
    if ports.len() > lanes.most() {
        return Err(session.protocol("more lanes than were asked for"));
    }
    for port in ports {
        scope.spawn(move || {
            session.attend(|| match dial(receiving, lanes, port)? {
                Some(stream) => data::receive(receiving, stream),
                None => Ok(()),
            });
        });
    }
    // What follows on this stream is not for us, and it ends with the connection.
    let _ = reader.next(session);
    Ok(())
}

/// One lane, and the data stream on it; None if it does not come about.
fn dial(
    receiving: &Receiving<'_>,
    lanes: &Lanes,
    port: u16,
) -> Result<Option<RecvStream>, TransferError> {
    let session = receiving.session;
    // The path is one that the sender has shown to be its own; a scope (of a link-local address) is kept.
    let mut remote = session.connection.remote();
    remote.set_port(port);
    let Ok(endpoint) = lanes.bind() else { return Ok(None) };
    let remote = [remote];
    let dialled = endpoint.connect(&remote, session.connection.peer());
    let Some(Ok(connection)) = session.wait_meanwhile(LANE_TIMEOUT, dialled) else {
        return Ok(None);
    };
    let stream = accept_stream(receiving, &connection);
    Ok(stream.filter(|_| session.add_lane(endpoint, connection)))
}

fn accept_stream(receiving: &Receiving<'_>, connection: &Connection) -> Option<RecvStream> {
    let accepted = receiving.session.wait_meanwhile(LANE_TIMEOUT, connection.accept_stream());
    match accepted {
        Some(Ok((_unused, stream))) => Some(stream),
        // It stood too late for the sender. Nothing was sent on it.
        Some(Err(_)) | None => {
            connection.close(crate::close::OTHER, "");
            None
        }
    }
}
