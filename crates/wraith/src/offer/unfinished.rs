//! Persistent state of an offer. With it, the same offer resumes after a crash.

use crate::engine::task::TaskState;
use crate::error::Error;
use crate::event::Event;
use crate::node::Node;
use crate::payload::Payload;
use crate::state::{Recipient, StateError, StateErrorKind, UnfinishedSend};

/// Opens the persistent state of an offer to this recipient. A stream has none, because it cannot
/// be sent twice. A failure to write the state is reported as an event and does not stop the offer.
pub(super) fn unfinished_send(
    node: &Node,
    payload: &Payload,
    recipient: &Recipient,
    anew: bool,
    shared: &TaskState,
) -> Result<UnfinishedSend, Error> {
    let opened = match payload.is_stream() {
        true => UnfinishedSend::in_memory(recipient),
        false => UnfinishedSend::open(node.state(), &payload.paths, recipient),
    };
    let is_left = || {
        let paths = &payload.paths;
        !payload.is_stream() && UnfinishedSend::may_exist(node.state(), paths, recipient)
    };
    let mut unfinished = match opened {
        Err(error) if error.kind() == StateErrorKind::Disk && !(anew && is_left()) => {
            report_not_stored(&error, !is_left(), shared);
            UnfinishedSend::in_memory(recipient)?
        }
        opened => opened?,
    };
    if anew {
        unfinished.renew()?;
    }
    Ok(unfinished)
}

/// Stores the offer with this port. A disk error is reported as an event.
pub(super) fn store_offer(unfinished: &UnfinishedSend, port: u16, shared: &TaskState) {
    if let Err(error) = unfinished.remember(port) {
        let is_gone = unfinished.forget();
        report_not_stored(&error, is_gone, shared);
    }
}

fn report_not_stored(error: &StateError, is_gone: bool, shared: &TaskState) {
    let next = match is_gone {
        true => "and the next one has another ticket",
        false => "and the next one may have the ticket of an earlier one",
    };
    let why = format!("{error}; this run was not saved, {next}");
    shared.publisher.publish(Event::StateNotStored(why));
}
