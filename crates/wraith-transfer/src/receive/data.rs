//! A data stream at the receiver: parses, verifies and writes records in place, from the receive
//! buffers.

use wraith_core::RecvSlice;
use wraith_transport::{ReadError, RecvStream, block_on};

use super::Receiving;
use super::delta_records::{receive_patch, receive_proofs, receive_sketch};
use crate::error::TransferError;
use crate::limits::STALL_BYTES;
use crate::record::{HEADER_BYTES_MAX, Header};
use crate::record_buffer::RecordBuffer;
use crate::stream_kind::StreamKind;

/// Maximum low-water mark of a read, in bytes, while a long record arrives. Larger values would
/// hide the progress of a slow peer from stall detection ([`STALL_BYTES`]).
const WAKE_BYTES: usize = STALL_BYTES as usize;

/// Handles records until the connection ends.
pub(crate) fn receive(receiving: &Receiving<'_>, stream: RecvStream) -> Result<(), TransferError> {
    let mut records = Records { receiving, stream, buffer: RecordBuffer::default() };
    records.fill(1)?;
    if records.buffer.first() != Some(StreamKind::Data.byte()) {
        return Err(receiving.session.protocol("a data stream with the wrong type"));
    }
    records.buffer.advance(1);
    loop {
        // After a cancellation, buffered records are dropped.
        if receiving.session.is_over() {
            return Err(receiving.session.stopped());
        }
        let header = records.next_header()?;
        // While this thread verifies and writes, it does not read. This time is not a stall of the
        // peer.
        receiving.session.while_not_reading(|| records.handle(&header))?;
        records.buffer.advance(header.body_len());
    }
}

struct Records<'a> {
    receiving: &'a Receiving<'a>,
    stream: RecvStream,
    buffer: RecordBuffer,
}

impl Records<'_> {
    /// Reads until `n` bytes are buffered.
    fn fill(&mut self, n: usize) -> Result<(), TransferError> {
        let session = self.receiving.session;
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
        let session = self.receiving.session;
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
        let receiving = self.receiving;
        let entry = header.entry();
        let body = self.buffer.slices(header.body_len());
        if let Header::Whole { root, .. } = header {
            let file = receiving.table.take(entry).ok_or_else(|| self.never_asked(entry))?;
            file.receive_whole(receiving, &body, root)?;
            receiving.table.resolve();
            return Ok(());
        }
        if let Header::Pushed { root, .. } = header {
            return receiving.pushes.arrive(receiving, entry, root, &body);
        }
        let file = receiving.table.get(entry).ok_or_else(|| self.never_asked(entry))?;
        let resolved = match *header {
            Header::Whole { .. } | Header::Pushed { .. } => unreachable!("handled above"),
            Header::Chunk { index, cv, .. } => file.receive_chunk(receiving, index, &body, cv)?,
            Header::Hole { first, count, .. } => file.receive_hole(receiving, first, count)?,
            Header::End { ending, chunks, root, .. } => {
                file.receive_end(receiving, ending, chunks, root)?
            }
            Header::Sketch { at, .. } => {
                receive_sketch(receiving, &file, at, &body)?;
                false
            }
            Header::Proofs { first, .. } => {
                receive_proofs(receiving, &file, first, &body)?;
                false
            }
            Header::Patch { index, .. } => receive_patch(receiving, &file, index, &body)?,
            Header::Pulse { chunks, .. } => {
                file.receive_pulse(receiving, chunks)?;
                receiving.session.moved(STALL_BYTES);
                false
            }
        };
        if resolved {
            receiving.table.take(entry).ok_or_else(|| self.never_asked(entry))?;
            receiving.table.resolve();
        }
        Ok(())
    }

    fn never_asked(&self, entry: u32) -> TransferError {
        self.receiving
            .session
            .protocol(format!("a record for entry {entry} that was not requested"))
    }
}
