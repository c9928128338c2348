//! The start of a transfer at the sender (SPEC §10.2): the sender reads the receiver's Hello and
//! Fetch, then sends Hello and Offer.
//!
//! Fetch contains the capability secret, which the receiver has from a code, from a ticket, or from
//! a sender that dialled. The sender reveals nothing about the files before it has checked that
//! secret.

use minicbor::bytes::ByteVec;
use wraith_files::WalkSummary;

use super::options::SendOptions;
use super::serving::Terms;
use super::source::StreamSource;
use super::survey::summary_of;
use crate::control::{ControlReader, ControlWriter};
use crate::error::TransferError;
use crate::events::Event;
use crate::limits::{NAME_BYTES_MAX, NEGOTIATION_TIMEOUT, OFFER_NAMES_BYTES_MAX};
use crate::message::{FEATURE_POSITION_FREE, Fetch, Hello, Message, Offer, transfer_id};
use crate::role::Role;
use crate::session::Session;

/// Number of workers, each with its own data stream. One reads and hashes while the other waits for
/// room, and small files are opened on two cores at once. More workers only help disks that are
/// slow at one file and fast at many.
pub(super) const WORKERS: u64 = 2;

/// The control stream after Fetch and Offer.
pub(super) struct Negotiated {
    pub(super) reader: ControlReader,
    /// Kept in any case, so that the stream is not reset.
    pub(super) writer: ControlWriter,
    pub(super) offer: Offer,
    /// True if the receiver accepts files with a position-free tree.
    pub(super) position_free: bool,
    /// Bytes of records that the receiver accepts before it requests them.
    pub(super) push: Option<u64>,
    /// The source of a byte stream, if the transfer is one.
    pub(super) source: Option<StreamSource>,
}

/// Performs Hello, Fetch and Offer.
pub(super) fn negotiate(
    session: &Session,
    options: &SendOptions,
) -> Result<Negotiated, TransferError> {
    let accepted = session.wait_within(NEGOTIATION_TIMEOUT, session.connection.accept_stream());
    let Some(accepted) = accepted else {
        return Err(session.no_message(NEGOTIATION_TIMEOUT));
    };
    let (send, recv) = accepted.map_err(|reason| session.lost(&reason))?;
    let (mut reader, mut writer) = (ControlReader::new(recv), ControlWriter::new(send));
    let position_free = match reader.next_within(session, NEGOTIATION_TIMEOUT)? {
        Message::Hello(hello) if hello.role == Role::Receiver && hello.version >= 1 => {
            hello.has(FEATURE_POSITION_FREE)
        }
        other => return Err(session.protocol(format!("{} instead of Hello", other.name()))),
    };
    let peer = session.connection.peer();
    let admits = || options.admits.as_ref().is_none_or(|admits| admits(peer));
    let Fetch { instance, stream, push, .. } =
        match reader.next_within(session, NEGOTIATION_TIMEOUT)? {
            // Compared in constant time, so that a secret cannot be guessed byte by byte.
            Message::Fetch(fetch)
                if wraith_crypto::equal(&fetch.secret, &options.secret) && admits() =>
            {
                fetch
            }
            Message::Fetch(_) => return Err(TransferError::WrongSecret),
            other => return Err(session.protocol(format!("{} instead of Fetch", other.name()))),
        };
    writer.send(session, &Message::Hello(Hello::ours(Role::Sender, options.delta)))?;
    let remote = session.connection.remote();
    let suite = session.connection.suite();
    options.progress.connected(session.connection.path());
    options.events.event(Event::Connected { peer, remote, suite, instance });
    let source = match &options.stream {
        None if stream == Some(true) => only_file(options)?,
        source => source.clone(),
    };
    let offer = match &source {
        Some(source) => stream_offer(options, source),
        None => offer(options)?,
    };
    options.progress.limited_by(&options.rate);
    options.progress.start(&offer);
    writer.send(session, &Message::Offer(offer.clone()))?;
    session.log_offer(&offer);
    options.events.event(Event::Offer(&offer));
    Ok(Negotiated { reader, writer, offer, position_free, push, source })
}

/// Returns the terms of an offer that was sent.
pub(super) fn terms(session: &Session, options: &SendOptions, offer: &Offer) -> Terms {
    Terms {
        transfer_id: offer.transfer_id,
        receiver: session.connection.peer(),
        sender: options.node_id,
        delta: options.delta,
    }
}

fn offer(options: &SendOptions) -> Result<Offer, TransferError> {
    let summary = options.survey()?;
    let first =
        options.paths.first().and_then(|path| wraith_files::root_name(path)).unwrap_or_default();
    let mut name = first;
    while name.len() > NAME_BYTES_MAX {
        name.pop();
    }
    Ok(Offer {
        transfer_id: transfer_id(&options.secret),
        name,
        files: summary.files,
        dirs: summary.dirs,
        links: summary.symlinks,
        bytes: summary.bytes,
        largest: summary.largest,
        data_streams: WORKERS,
        stream: None,
        left_out: Some(summary.skipped).filter(|&count| count > 0),
        no_sync: (!options.sync).then_some(true),
        names: names(options),
    })
}

/// Returns the top-level names, if they are not too long in total.
fn names(options: &SendOptions) -> Option<Vec<ByteVec>> {
    let paths = options.paths.iter().map(|path| wraith_files::root_path(path));
    let names: Vec<ByteVec> =
        paths.map(|path| Some(path?.as_bytes().to_vec().into())).collect::<Option<_>>()?;
    let bytes: usize = names.iter().map(|name| name.len()).sum();
    (bytes <= OFFER_NAMES_BYTES_MAX).then_some(names)
}

fn stream_offer(options: &SendOptions, source: &StreamSource) -> Offer {
    let WalkSummary { files, bytes, largest, .. } = summary_of(source);
    Offer {
        transfer_id: transfer_id(&options.secret),
        name: source.offered_name().to_owned(),
        files,
        bytes,
        largest,
        data_streams: 1,
        stream: Some(true),
        no_sync: (!options.sync).then_some(true),
        ..Offer::default()
    }
}

/// Returns the only offered file as a byte stream; `None` unless the offer is a single file.
fn only_file(options: &SendOptions) -> Result<Option<StreamSource>, TransferError> {
    let [path] = options.paths.as_slice() else { return Ok(None) };
    if !path.symlink_metadata().is_ok_and(|meta| meta.is_file()) {
        return Ok(None);
    }
    StreamSource::of_file(path).map(Some).map_err(|error| TransferError::Disk {
        role: Role::Sender,
        what: format!("cannot read {}: {error}", path.display()),
    })
}
