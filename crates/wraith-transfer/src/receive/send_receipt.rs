//! The end of a transfer at the receiver: the list of missing entries, the receipt, and the
//! sender's CLOSE (SPEC §10.7).

use std::time::{SystemTime, UNIX_EPOCH};

use wraith_core::CloseReason;
use wraith_transport::block_on_timeout;

use super::ReceiveOptions;
use super::books::Books;
use super::peer::Peer;
use crate::control::ControlWriter;
use crate::error::{TransferError, close};
use crate::limits::RECEIPT_TIMEOUT;
use crate::lock::lock;
use crate::message::{Message, Offer};
use crate::receipt::Receipt;
use crate::session::Session;

/// Signs and sends the receipt and waits for the sender to close. `durability_number` is the
/// durability in the receipt ([`crate::Durability`]), for a sender that understands it. All files
/// are in place by now: if the sender disappears here, only the confirmation of the receipt is
/// missing.
pub(super) fn send_receipt(
    peer: &Peer<'_>,
    books: &Books<'_>,
    options: &ReceiveOptions<'_>,
    manifest: [u8; 32],
    durability_number: Option<u8>,
) -> Result<(Receipt, bool), TransferError> {
    peer.send_exceptions(&books.take_exceptions(0))?;
    let unsigned = unsigned(peer.session, peer.offer);
    let receipt = books.receipt(Receipt { manifest, durability_number, ..unsigned });
    conclude(peer.session, options, &mut lock(&peer.writer), receipt)
}

/// Returns an unsigned receipt for `offer` with the current time and no entries.
pub(super) fn unsigned(session: &Session, offer: &Offer) -> Receipt {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    let unix_seconds = since_epoch.map_or(0, |elapsed| elapsed.as_secs());
    Receipt::unsigned(offer.transfer_id, session.connection.peer(), unix_seconds)
}

/// Signs and sends `receipt`, and waits for the sender's CLOSE.
pub(super) fn conclude(
    session: &Session,
    options: &ReceiveOptions<'_>,
    writer: &mut ControlWriter,
    receipt: Receipt,
) -> Result<(Receipt, bool), TransferError> {
    let receipt = receipt.signed(&options.identity);
    // From here on a broken stream means that the sender has closed.
    session.complete();
    // If the connection is lost now, the receipt stays unconfirmed; closed() reports that.
    let _ = writer.send(session, &Message::Receipt(receipt.to_body()));
    let closed = block_on_timeout(session.connection.closed(), RECEIPT_TIMEOUT);
    let confirmed = match closed {
        Some(CloseReason::Peer { code: close::DONE, .. }) => true,
        Some(reason @ CloseReason::Peer { .. }) => return Err(session.lost(&reason)),
        _ => false,
    };
    session.connection.close(close::DONE, "");
    Ok((receipt, confirmed))
}
