//! The end of a transfer at the receiver: the list of missing entries, the receipt, and the
//! sender's CLOSE (SPEC §10.7).

use std::sync::atomic::Ordering::Relaxed;
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
    let counts = &books.counts;
    peer.send_exceptions(&books.take_exceptions(0))?;
    let receipt = Receipt {
        manifest,
        contents: books.contents_digest(),
        verified: counts.moved.load(Relaxed) + counts.identical.load(Relaxed),
        kept: counts.skipped.load(Relaxed),
        failed: counts.failed.load(Relaxed),
        bytes: counts.bytes_verified.load(Relaxed),
        durability_number,
        ..unsigned(peer.session, peer.offer)
    };
    conclude(peer.session, options, &mut lock(&peer.writer), receipt)
}

/// Returns an unsigned receipt for `offer` with the current time and no entries.
pub(super) fn unsigned(session: &Session, offer: &Offer) -> Receipt {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    Receipt {
        transfer_id: offer.transfer_id,
        sender: session.connection.peer(),
        manifest: [0; 32],
        contents: [0; 32],
        verified: 0,
        kept: 0,
        failed: 0,
        bytes: 0,
        unix_seconds: since_epoch.map_or(0, |elapsed| elapsed.as_secs()),
        durability_number: None,
        signature: [0; 64],
    }
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
