//! Sends a byte stream of possibly unknown length in order (SPEC §10.10).
//!
//! One thread reads the source as long as the source exists; for each connection, one thread writes
//! and one reads messages. A user may pause the consuming program at the other end for any time, so
//! no pause is treated as a stall. A dead connection ends by its own timeout.

use std::sync::OnceLock;

use bytes::Bytes;
use wraith_files::Tree;
use wraith_transport::{SendStream, block_on};

use super::ledger::EntryLedger;
use super::negotiate::{Negotiated, terms};
use super::options::{SendOptions, SendReport};
use super::source::{NextPiece, StreamSource};
use crate::error::{TransferError, close};
use crate::events::Event;
use crate::exception::FileStatus;
use crate::message::{Accept, Excepted, Message, Offer};
use crate::receipt::{Receipt, no_manifest_hash};
use crate::session::Session;
use crate::stream_kind::StreamKind;

/// State shared by the threads.
struct Sending<'a> {
    session: &'a Session,
    options: &'a SendOptions,
    source: &'a StreamSource,
    offer: &'a Offer,
    /// Length and root, once the whole stream is written.
    ended: OnceLock<(u64, [u8; 32])>,
}

/// Serves `source` and blocks until the receipt arrives or the transfer fails.
pub(super) fn run(
    session: &Session,
    options: &SendOptions,
    mut negotiated: Negotiated,
    source: &StreamSource,
) -> Result<SendReport, TransferError> {
    session.suspend_stall_check(true);
    let offer = &negotiated.offer;
    let at = match negotiated.reader.next(session)? {
        Message::Accept(Accept { have, rate, .. }) => {
            options.rate.ask(rate);
            have.unwrap_or(0)
        }
        other => return Err(session.protocol(format!("an unexpected {}", other.name()))),
    };
    session.log_accept(at > 0);
    options.events.event(Event::Accepted);
    source.resume_at(at).map_err(|what| TransferError::Other { what: what.into() })?;
    options.progress.add_found(at);
    options.progress.set_current(&source.name());
    let stream = session.open_stream(&session.connection, StreamKind::Bytes)?;
    let sending = Sending { session, options, source, offer, ended: OnceLock::new() };
    let (sending, reader) = (&sending, &mut negotiated.reader);
    let mut receipt = None;
    std::thread::scope(|scope| {
        scope.spawn(|| session.watch(|| false, || Ok(()), || source.wake()));
        scope.spawn(move || session.run_or_fail(|| write(sending, stream, at)));
        session.run_or_fail(|| {
            receipt = Some(read_control(sending, reader)?);
            session.complete();
            // Before the stream is dropped: the receiver must see this close and not a broken
            // stream.
            session.connection.close(close::DONE, "");
            Ok(())
        });
    });
    session.outcome()?;
    let receipt = receipt.expect("without an error there is a receipt");
    options.events.event(Event::Done { receipt: &receipt });
    Ok(SendReport {
        offer: offer.clone(),
        receiver: session.connection.peer(),
        files: 1,
        bytes: sending.ended.get().map_or(0, |ended| ended.0),
        bytes_moved: sending.ended.get().map_or(0, |ended| ended.0.saturating_sub(at)),
        wire_bytes: session.wire_bytes(),
        connections: 1,
        failed: receipt.failed,
        left_out: 0,
        special: 0,
        receipt,
    })
}

/// Writes pieces from byte `at` on, as they become available.
fn write(sending: &Sending<'_>, mut stream: SendStream, mut at: u64) -> Result<(), TransferError> {
    let session = sending.session;
    let mut send = |chunks: [Bytes; 2]| {
        block_on(stream.write_chunks(chunks)).map_err(|error| session.write_failed(error))
    };
    loop {
        match sending.source.next(at, || session.is_over()) {
            NextPiece::Piece { bytes, check } => {
                let len = bytes.len() as u64;
                let head = [&(bytes.len() as u32).to_be_bytes()[..], &check].concat();
                send([head.into(), bytes])?;
                at += len;
                sending.options.progress.add_bytes(len);
            }
            NextPiece::End { total, root } => {
                // Set before the end is written: the receipt may arrive right after it.
                let known = sending.ended.set((total, root));
                debug_assert!(known.is_ok(), "a stream ends once");
                let end = [&[0; 4][..], &total.to_be_bytes()].concat();
                send([end.into(), Bytes::new()])?;
                return stream.finish().map_err(|error| session.write_failed(error));
            }
            NextPiece::Failed(error) => return Err(error),
            NextPiece::Stopped => return Err(session.stopped()),
        }
    }
}

/// Drops the bytes that the receiver has taken, up to its receipt.
fn read_control(
    sending: &Sending<'_>,
    reader: &mut crate::control::ControlReader,
) -> Result<Receipt, TransferError> {
    let session = sending.session;
    let mut exceptions = Vec::new();
    loop {
        match reader.next(session)? {
            // The stream is a single entry.
            Message::Exceptions(told) if exceptions.is_empty() && told.entries.len() == 1 => {
                exceptions = told.entries;
            }
            Message::Taken(taken) => {
                sending.source.confirm(taken.bytes).map_err(|what| session.protocol(what))?
            }
            Message::Receipt(body) => {
                let receipt = Receipt::from_body(&body);
                check(sending, &receipt, &exceptions)?;
                return Ok(receipt);
            }
            other => return Err(session.protocol(format!("an unexpected {}", other.name()))),
        }
    }
}

/// Checks the receipt against the data sent.
fn check(
    sending: &Sending<'_>,
    receipt: &Receipt,
    exceptions: &[Excepted],
) -> Result<(), TransferError> {
    let session = sending.session;
    terms(session, sending.options, sending.offer).check(receipt)?;
    let Some(&(total, root)) = sending.ended.get() else {
        return Err(session.protocol("an early receipt"));
    };
    if receipt.manifest != no_manifest_hash() {
        return Err(session.protocol("a receipt for something else"));
    }
    let mut ledger = EntryLedger::new();
    ledger.resolved(0, &root, total);
    let events = &sending.options.events;
    events.event(Event::Root { number: 0, root });
    let mut status = FileStatus::Done;
    for excepted in exceptions {
        let (number, exception) = ledger.except(excepted).map_err(|what| session.protocol(what))?;
        status = exception.status();
        events.event(Event::Excepted { number, exception });
    }
    if ledger.check(receipt).is_err() {
        let what = "the receiver's content is not what was sent".into();
        return Err(TransferError::Verification { what });
    }
    let path = sending.source.name();
    sending.options.progress.add_files(1);
    sending.options.events.event(Event::File {
        path: &path,
        status,
        bytes: total,
        root: Some((Tree::Blake3, root)),
        change: None,
    });
    Ok(())
}
