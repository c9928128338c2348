//! Parses the manifest as it arrives: entries are checked one by one, and may be read ahead before
//! the offer is accepted.
//!
//! Invariant: every returned entry has passed the checks of order and limits and is in the manifest
//! hash, in wire order. The invariant also holds for entries read ahead. The caller bounds the
//! number of entries read ahead ([`Entries::ahead`]).

use std::collections::VecDeque;

use wraith_core::RecvSlice;
use wraith_files::{BadEntry, Entry, Kind};
use wraith_transport::RecvStream;

use crate::error::TransferError;
use crate::limits::{ENTRIES_MAX, ENTRY_BYTES_MAX};
use crate::manifest_order::ManifestOrder;
use crate::message::Offer;
use crate::offer_limits::OfferLimits;
use crate::record_buffer::RecordBuffer;
use crate::session::Session;
use crate::stream_kind::StreamKind;

/// Length in bytes of the trailer after the last entry: count, hash, and objects left out.
const TRAILER_BYTES: usize = 8 + 32 + 8;

/// The parser of one manifest stream.
pub(crate) struct Entries {
    stream: RecvStream,
    buffer: RecordBuffer,
    hasher: blake3::Hasher,
    order: ManifestOrder,
    limits: OfferLimits,
    started: bool,
    parsed: u64,
    ended: Option<ManifestEnd>,
    ahead: VecDeque<Entry>,
}

/// Content of the trailer.
#[derive(Clone, Copy)]
pub(crate) struct ManifestEnd {
    /// The hash of all entries.
    pub(crate) hash: [u8; 32],
    /// Number of files, folders and links that the sender could not list.
    pub(crate) left_out: u64,
}

/// Result of a parsing step.
pub(crate) enum ParseResult {
    Entry(Entry),
    End(ManifestEnd),
    /// More bytes must be read first.
    NeedsMoreBytes,
}

impl Entries {
    pub(crate) fn new(stream: RecvStream, offer: &Offer) -> Self {
        Self {
            stream,
            buffer: RecordBuffer::default(),
            hasher: blake3::Hasher::new(),
            order: ManifestOrder::default(),
            limits: OfferLimits::of(offer),
            started: false,
            parsed: 0,
            ended: None,
            ahead: VecDeque::new(),
        }
    }

    /// Returns the entries that were read ahead and not taken.
    pub(crate) fn ahead(&self) -> &VecDeque<Entry> {
        &self.ahead
    }

    /// Keeps an entry returned by [`Self::parse`], for [`Self::next`] to return again.
    pub(crate) fn push_ahead(&mut self, entry: Entry) {
        self.ahead.push_back(entry);
    }

    /// Returns the stream, to read more bytes for [`Self::push`].
    pub(crate) fn stream(&mut self) -> &mut RecvStream {
        &mut self.stream
    }

    /// Adds a slice from the stream. `None` is its end, which comes too early here.
    pub(crate) fn push(
        &mut self,
        session: &Session,
        chunk: Option<RecvSlice>,
    ) -> Result<(), TransferError> {
        let chunk = chunk.ok_or_else(|| session.protocol("it ended the manifest too early"))?;
        session.moved(chunk.len() as u64);
        self.buffer.push(chunk);
        Ok(())
    }

    /// Returns the next entry, those that were read ahead first.
    pub(crate) fn next(&mut self, session: &Session) -> Result<ParseResult, TransferError> {
        match self.ahead.pop_front() {
            Some(entry) => Ok(ParseResult::Entry(entry)),
            None => self.parse(session),
        }
    }

    /// Returns the next entry that was not read ahead.
    pub(crate) fn parse(&mut self, session: &Session) -> Result<ParseResult, TransferError> {
        if let Some(end) = self.ended {
            return Ok(ParseResult::End(end));
        }
        if !self.started {
            match self.buffer.first() {
                None => return Ok(ParseResult::NeedsMoreBytes),
                Some(byte) if byte == StreamKind::Manifest.byte() => self.buffer.advance(1),
                Some(_) => return Err(session.protocol("a manifest stream of another kind")),
            }
            self.started = true;
        }
        if self.buffer.len() < 4 {
            return Ok(ParseResult::NeedsMoreBytes);
        }
        let mut prefix = [0; 4];
        self.buffer.copy_to(&mut prefix);
        let len = u32::from_be_bytes(prefix) as usize;
        if len == 0 {
            return self.parse_trailer(session);
        }
        if len > ENTRY_BYTES_MAX || self.parsed >= ENTRIES_MAX {
            return Err(session.protocol("a manifest that is too large"));
        }
        if self.buffer.len() < 4 + len {
            return Ok(ParseResult::NeedsMoreBytes);
        }
        let mut bytes = vec![0; 4 + len];
        self.buffer.copy_to(&mut bytes);
        self.buffer.advance(4 + len);
        self.hasher.update(&bytes);
        let (entry, used) = Entry::decode(&bytes[4..]).map_err(|error| match error {
            BadEntry::Name(name) => (&name).into(),
            other => session.protocol(other.to_string()),
        })?;
        if used != len {
            return Err(session.protocol("trailing bytes after a manifest entry"));
        }
        self.check_entry(session, &entry)?;
        self.parsed += 1;
        Ok(ParseResult::Entry(entry))
    }

    fn parse_trailer(&mut self, session: &Session) -> Result<ParseResult, TransferError> {
        if self.buffer.len() < 4 + TRAILER_BYTES {
            return Ok(ParseResult::NeedsMoreBytes);
        }
        let mut trailer = [0; 4 + TRAILER_BYTES];
        self.buffer.copy_to(&mut trailer);
        let hash = *self.hasher.finalize().as_bytes();
        if trailer[4..12] != self.parsed.to_be_bytes() || trailer[12..44] != hash {
            return Err(session.protocol("a manifest that does not match its hash"));
        }
        self.buffer.advance(4 + TRAILER_BYTES);
        let left_out = u64::from_be_bytes(*trailer[44..].first_chunk().expect("8 bytes"));
        let end = ManifestEnd { hash, left_out };
        self.ended = Some(end);
        Ok(ParseResult::End(end))
    }

    /// Waits for the end of the stream behind the trailer. Dropping a stream before its end stops
    /// it; a sender about to finish it would see that as a refusal to read.
    pub(crate) fn read_to_end(&mut self, session: &Session) -> Result<(), TransferError> {
        let nothing_left = self.buffer.len() == 0;
        let read = session.wait(self.stream.read_chunk());
        match read.map_err(|error| session.read_failed(error))? {
            None if nothing_left => Ok(()),
            _ => Err(session.protocol("trailing bytes after the manifest")),
        }
    }

    /// Rejects entries that no honest sender lists.
    fn check_entry(&mut self, session: &Session, entry: &Entry) -> Result<(), TransferError> {
        let shown = entry.path.display();
        if let Err(error) = self.order.check(entry.path.as_bytes(), entry.kind == Kind::Dir) {
            return Err(TransferError::UnsafeName { what: format!("{shown}: {error}") });
        }
        if !self.limits.admit(entry.size()) {
            return Err(session.protocol(format!("{shown}: exceeds the offer")));
        }
        Ok(())
    }
}
