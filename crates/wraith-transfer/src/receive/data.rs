//! A data stream at the receiver: parses, verifies and writes records in place, from the receive
//! buffers.

use std::sync::Arc;

use wraith_core::RecvSlice;
use wraith_files::Root;
use wraith_transport::{ReadError, RecvStream, block_on};

use super::assembly::Assembly;
use super::delta_files::Description;
use super::delta_records::receive_patch;
use super::incoming::Incoming;
use super::peer::Peer;
use crate::error::TransferError;
use crate::limits::STALL_BYTES;
use crate::record::{HEADER_BYTES_MAX, Header};
use crate::record_buffer::RecordBuffer;
use crate::stream_kind::StreamKind;

/// Maximum low-water mark of a read, in bytes, while a long record arrives. Larger values would
/// hide the progress of a slow peer from stall detection ([`STALL_BYTES`]).
const WAKE_BYTES: usize = STALL_BYTES as usize;

/// Handles records until the connection ends.
pub(super) fn receive(
    peer: &Peer<'_>,
    assembly: &Assembly<'_>,
    stream: RecvStream,
) -> Result<(), TransferError> {
    let session = peer.session;
    let mut records = Records { peer, assembly, stream, buffer: RecordBuffer::default() };
    records.fill(1)?;
    if records.buffer.first() != Some(StreamKind::Data.byte()) {
        return Err(session.protocol("a data stream with the wrong type"));
    }
    records.buffer.advance(1);
    loop {
        // After a cancellation, buffered records are dropped.
        if session.is_over() {
            return Err(session.stopped());
        }
        let header = records.next_header()?;
        // While this thread verifies and writes, it does not read. This time is not a stall of the
        // peer.
        session.while_not_reading(|| records.handle(&header))?;
        records.buffer.advance(header.body_len());
    }
}

/// Handles the whole content of a file that was taken out of the table.
pub(super) fn receive_whole(
    peer: &Peer<'_>,
    assembly: &Assembly<'_>,
    file: &Arc<Incoming>,
    root: &Root,
    body: &[&[u8]],
) -> Result<(), TransferError> {
    file.receive_whole(assembly, body, root)?;
    peer.owed.resolve();
    Ok(())
}

struct Records<'a> {
    peer: &'a Peer<'a>,
    assembly: &'a Assembly<'a>,
    stream: RecvStream,
    buffer: RecordBuffer,
}

impl Records<'_> {
    /// Reads until `n` bytes are buffered.
    fn fill(&mut self, n: usize) -> Result<(), TransferError> {
        let session = self.peer.session;
        while self.buffer.len() < n {
            self.stream.set_low_watermark((n - self.buffer.len()).min(WAKE_BYTES));
            let read: Result<Option<RecvSlice>, ReadError> = block_on(self.stream.read_chunk());
            match read.map_err(|error| session.read_failed(error))? {
                Some(chunk) => {
                    session.moved(chunk.len() as u64);
                    self.buffer.push(chunk);
                }
                None => return Err(session.protocol("it ended a data stream")),
            }
        }
        Ok(())
    }

    /// Parses the next header and buffers the body after it.
    fn next_header(&mut self) -> Result<Header, TransferError> {
        let session = self.peer.session;
        let malformed = |error: crate::message::Malformed| session.protocol(error.to_string());
        self.fill(1)?;
        let kind = self.buffer.first().expect("a byte is buffered");
        let len = Header::len_of(kind).map_err(malformed)?;
        self.fill(len)?;
        let mut bytes = [0; HEADER_BYTES_MAX];
        self.buffer.copy_to(&mut bytes[..len]);
        let header = Header::parse(&bytes[..len]).map_err(malformed)?;
        self.buffer.advance(len);
        self.fill(header.body_len())?;
        Ok(header)
    }

    fn handle(&mut self, header: &Header) -> Result<(), TransferError> {
        let (peer, assembly, id) = (self.peer, self.assembly, self.peer.id);
        let entry = header.entry();
        let body = self.buffer.slices(header.body_len());
        if let Header::Whole { root, .. } = header {
            let file = peer.owed.take(entry).ok_or_else(|| self.never_asked(entry))?;
            return receive_whole(peer, assembly, &file, root, &body);
        }
        if let Header::Pushed { root, .. } = header {
            let arrived = peer.pushes.arrive(&peer.owed, (entry, root), &body);
            return match arrived.map_err(|what| peer.session.protocol(what))? {
                Some(file) => receive_whole(peer, assembly, &file, root, &body),
                None => Ok(()),
            };
        }
        let file = peer.owed.get(entry).ok_or_else(|| self.never_asked(entry))?;
        let resolved = match *header {
            Header::Whole { .. } | Header::Pushed { .. } => unreachable!("handled above"),
            Header::Chunk { index, cv, .. } => {
                file.receive_chunk(assembly, id, index, &body, cv)?
            }
            Header::Hole { first, count, .. } => {
                let resolved = file.receive_hole(assembly, id, first, count)?;
                // A record of 21 bytes represents a hole of a GiB or more. If only the record's
                // bytes counted as progress, a long hole would look like a stall.
                peer.session.moved(STALL_BYTES);
                resolved
            }
            Header::End { ending, chunks, root, .. } => {
                file.receive_end(assembly, id, (ending, chunks, root))?
            }
            Header::Sketch { at, .. } => {
                self.describe(&file, Description::Pieces { at }, &body)?;
                false
            }
            Header::Proofs { first, .. } => {
                self.describe(&file, Description::Proofs { first }, &body)?;
                false
            }
            Header::Patch { index, .. } => receive_patch(assembly, id, &file, index, &body)?,
            Header::Pulse { chunks, .. } => {
                file.receive_pulse(chunks)?;
                peer.session.moved(STALL_BYTES);
                false
            }
        };
        if resolved {
            peer.owed.take(entry).ok_or_else(|| self.never_asked(entry))?;
            peer.owed.resolve();
        }
        Ok(())
    }

    /// Handles pieces or chaining values of a file with a local old copy.
    fn describe(
        &self,
        file: &Arc<Incoming>,
        description: Description,
        body: &[&[u8]],
    ) -> Result<(), TransferError> {
        if file.old().is_none() || file.has_ended(self.peer.id) {
            return Err(file.violation("pieces that were not asked for"));
        }
        let added = self.assembly.deltas.add(file, description, &body.concat());
        added.map_err(|what| file.violation(what))
    }

    fn never_asked(&self, entry: u32) -> TransferError {
        self.peer.session.protocol(format!("a record for entry {entry} that was not requested"))
    }
}
