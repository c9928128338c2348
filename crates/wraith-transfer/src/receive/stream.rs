//! Receives a byte stream in order (SPEC §10.10): each piece is verified and written before the
//! next is read.
//!
//! The destination outlives a connection: a new one continues at the first byte that was not
//! written. While the consumer does not read, a write blocks, and the stream blocks with it. This
//! is the backpressure.

use std::io::{self, ErrorKind, Write};

use wraith_files::{CommitOptions, Committed, Outcome, RelPath, TargetDir, Tree, plain};
use wraith_transport::{RecvStream, block_on};

use super::negotiate::{Control, Stream, accept_stream, make_target};
use super::send_receipt::{conclude, unsigned};
use super::stream_target::{Sink, StreamOutput};
use super::{ReceiveOptions, ReceiveReport};
use crate::content_digest::ContentDigest;
use crate::control::ControlWriter;
use crate::error::{TransferError, shown};
use crate::events::{Event, InPlace};
use crate::exception::{Exception, FileStatus};
use crate::limits::TAKEN_BYTES;
use crate::lock::lock;
use crate::message::{Accept, Excepted, Exceptions, Message, Offer, Taken};
use crate::rate::Rate;
use crate::receipt::{Durability, Receipt, no_manifest_hash};
use crate::record::STREAM_PIECE_BYTES_MAX;
use crate::record_buffer::RecordBuffer;
use crate::role::Role;
use crate::session::Session;
use crate::stream_kind::StreamKind;

/// Length in bytes of the head of a piece: its length and hash.
const HEAD_BYTES: usize = 4 + 32;

/// Accepts the stream and receives it to its end.
pub(super) fn run(
    session: &Session,
    options: &ReceiveOptions<'_>,
    stream: Stream,
) -> Result<ReceiveReport, TransferError> {
    let Stream { control, commit_options } = stream;
    let Control { reader: _reader, mut writer, offer, features } = control;
    session.suspend_stall_check(true);
    let mut state = lock(&options.stream.0);
    state.open(session, options, &offer)?;
    options.progress.limited_by(&Rate::of(options.rate));
    options.progress.start(&offer);
    options.progress.add_found(state.written);
    options.progress.set_current(&offer.name);
    let (have, rate) = (Some(state.written), options.rate);
    writer.send(session, &Message::Accept(Accept { have, rate, parallel: None }))?;
    session.log_accept(state.written > 0);
    options.events.event(Event::Accepted);
    let stream = accept_stream(session)?;
    let before = state.written;
    let mut pieces = Pieces { session, stream, buffer: RecordBuffer::default() };
    receive(&mut pieces, &mut state, options, &mut writer)?;
    let root = *state.hasher.finalize().as_bytes();
    let (committed, reached) = state.finish(session, commit_options)?;
    let path = committed.as_ref().map(|committed| committed.path.display().to_string());
    let path = path.unwrap_or_else(|| offer.name.clone());
    let outcome = committed.as_ref().map_or(Outcome::Created, |committed| committed.outcome);
    if outcome == Outcome::Renamed {
        let what = format!("the name is taken; the received file is named {path}");
        options.events.event(Event::Note { path: &offer.name, what: &what });
    }
    let skipped = outcome == Outcome::Skipped;
    let status = if skipped { FileStatus::Skipped } else { FileStatus::Done };
    options.progress.add_files(1);
    let bytes = state.written;
    if let Some(committed) = committed {
        let what = match skipped {
            true => {
                InPlace::Absent { bytes, entry: 0, exception: Exception::Skipped, root: Some(root) }
            }
            false => InPlace::File { bytes, entry: 0, root: (Tree::Blake3, root) },
        };
        options.events.event(Event::InPlace { path: &committed.path, what });
    }
    options.events.event(Event::File {
        path: &path,
        status,
        bytes,
        root: Some((Tree::Blake3, root)),
        change: None,
    });
    let mut contents = ContentDigest::new();
    contents.add(0, &root);
    if skipped {
        // The whole stream arrived, and none of it was kept.
        let exception = Exception::Skipped;
        contents.except(0, exception);
        let entries = vec![Excepted { entry: 0, reason: exception.number().into() }];
        writer.send(session, &Message::Exceptions(Exceptions { entries }))?;
    }
    let receipt = Receipt {
        manifest: no_manifest_hash(),
        contents: contents.digest(),
        verified: u64::from(!skipped),
        kept: u64::from(skipped),
        bytes: if skipped { 0 } else { bytes },
        durability_number: features.durability.then_some(reached as u8),
        ..unsigned(session, &offer)
    };
    let (receipt, confirmed) = conclude(session, options, &mut writer, receipt)?;
    options.events.event(Event::Done { receipt: &receipt });
    Ok(ReceiveReport {
        offer,
        receipt,
        sender: session.connection.peer(),
        files: u64::from(!skipped),
        bytes_moved: bytes - before,
        wire_bytes: session.wire_bytes(),
        connections: 1,
        already_here: 0,
        skipped: u64::from(skipped),
        failed: 0,
        left_out: 0,
        confirmed,
    })
}

/// Reads, verifies and writes every piece.
fn receive(
    pieces: &mut Pieces<'_>,
    state: &mut StreamOutput,
    options: &ReceiveOptions<'_>,
    writer: &mut ControlWriter,
) -> Result<(), TransferError> {
    let session = pieces.session;
    pieces.fill(1)?;
    if pieces.buffer.first() != Some(StreamKind::Bytes.byte()) {
        return Err(session.protocol("a stream with the wrong type"));
    }
    pieces.buffer.advance(1);
    let mut told = state.written;
    while let Some((len, check)) = pieces.next_head(state.written)? {
        pieces.fill(len)?;
        for slice in pieces.buffer.slices(len) {
            state.hasher.update(slice);
        }
        if *state.hasher.finalize().as_bytes() != check {
            tracing::debug!(parent: &session.span, at = state.written, "a piece does not match its hash");
            let what = "the stream does not match the hash sent with it".into();
            return Err(TransferError::Verification { what });
        }
        for slice in pieces.buffer.slices(len) {
            state.write(session, slice)?;
        }
        pieces.buffer.advance(len);
        state.written += len as u64;
        options.progress.add_bytes(len as u64);
        // Often enough that the sender never waits for it, and at each pause of the stream.
        if state.written - told >= TAKEN_BYTES
            || pieces.buffer.len() == 0 && len < STREAM_PIECE_BYTES_MAX
        {
            told = state.written;
            writer.send(session, &Message::Taken(Taken { bytes: told }))?;
        }
    }
    state.flush()?;
    pieces.read_to_end()
}

struct Pieces<'a> {
    session: &'a Session,
    stream: RecvStream,
    buffer: RecordBuffer,
}

impl Pieces<'_> {
    fn fill(&mut self, n: usize) -> Result<(), TransferError> {
        while self.buffer.len() < n {
            self.stream.set_low_watermark(n - self.buffer.len());
            let read = block_on(self.stream.read_chunk());
            match read.map_err(|error| self.session.read_failed(error))? {
                Some(chunk) => self.buffer.push(chunk),
                None => return Err(self.session.protocol("it ended the stream too early")),
            }
        }
        Ok(())
    }

    /// Returns the length and hash of the next piece; `None` at the end, after `total` bytes.
    fn next_head(&mut self, total: u64) -> Result<Option<(usize, [u8; 32])>, TransferError> {
        self.fill(4)?;
        let mut len = [0; 4];
        self.buffer.copy_to(&mut len);
        let len = u32::from_be_bytes(len) as usize;
        if len == 0 {
            self.fill(12)?;
            let mut end = [0; 12];
            self.buffer.copy_to(&mut end);
            self.buffer.advance(12);
            if end[4..] != total.to_be_bytes() {
                return Err(self.session.protocol("the stream length differs from its trailer"));
            }
            return Ok(None);
        }
        if len > STREAM_PIECE_BYTES_MAX {
            return Err(self.session.protocol("a piece that is too large"));
        }
        self.fill(HEAD_BYTES)?;
        let mut head = [0; HEAD_BYTES];
        self.buffer.copy_to(&mut head);
        self.buffer.advance(HEAD_BYTES);
        Ok(Some((len, *head.last_chunk().expect("a head ends with 32 bytes"))))
    }

    fn read_to_end(&mut self) -> Result<(), TransferError> {
        let nothing_left = self.buffer.len() == 0;
        let read = block_on(self.stream.read_chunk());
        match read.map_err(|error| self.session.read_failed(error))? {
            None if nothing_left => Ok(()),
            _ => Err(self.session.protocol("trailing bytes after the stream")),
        }
    }
}

impl StreamOutput {
    /// Creates the file if the destination is a folder and it does not exist yet.
    fn open(
        &mut self,
        session: &Session,
        options: &ReceiveOptions<'_>,
        offer: &Offer,
    ) -> Result<(), TransferError> {
        let Sink::Folder(file @ None) = &mut self.sink else { return Ok(()) };
        let name = RelPath::parse(offer.name.as_bytes());
        let name = name.map_err(|name| TransferError::from(&name))?;
        if name.depth() != 1 {
            let what = format!("{}: the name of a stream with folders in it", shown(&offer.name));
            return Err(TransferError::UnsafeName { what });
        }
        let target: TargetDir = make_target(session, options)?;
        *file = Some(target.create_stream(&name).map_err(|error| session.disk(error))?);
        Ok(())
    }

    fn write(&mut self, session: &Session, bytes: &[u8]) -> Result<(), TransferError> {
        match &mut self.sink {
            Sink::Output(output) => {
                output.write_all(bytes).map_err(|error| output_failed(self.written, error))
            }
            Sink::Folder(file) => {
                let file = file.as_mut().expect("it was opened before anything is written");
                file.write(bytes).map_err(|error| session.disk(error))
            }
        }
    }

    fn flush(&mut self) -> Result<(), TransferError> {
        let Sink::Output(output) = &mut self.sink else { return Ok(()) };
        output.flush().map_err(|error| output_failed(self.written, error))
    }

    /// Gives the file its name, and returns its durability. No file for a writer.
    fn finish(
        &mut self,
        session: &Session,
        commit_options: CommitOptions,
    ) -> Result<(Option<Committed>, Durability), TransferError> {
        let Sink::Folder(file) = &mut self.sink else { return Ok((None, Durability::CannotSync)) };
        let file = file.take().expect("it was opened before anything is written");
        let root = *self.hasher.finalize().as_bytes();
        let target = file.target().clone();
        let committed = file.finish(&root, commit_options).map_err(|error| session.disk(error))?;
        if committed.outcome == Outcome::Skipped {
            // Verified, and thrown away.
            return Ok((Some(committed), Durability::CannotSync));
        }
        if !commit_options.sync {
            return Ok((Some(committed), Durability::NotAwaited));
        }
        if committed.outcome == Outcome::AlreadyHere {
            target.keep_existing(&committed.path);
        }
        let reached = match target.sync().map_err(|error| session.disk(error))? {
            true => Durability::OnDisk,
            false => Durability::CannotSync,
        };
        Ok((Some(committed), reached))
    }
}

fn output_failed(written: u64, error: io::Error) -> TransferError {
    let what = if error.kind() == ErrorKind::BrokenPipe {
        format!(
            "the program that reads the output ended after about {written} bytes; the rest was not written"
        )
    } else {
        format!("cannot write the received stream: {}", plain(&error))
    };
    TransferError::Stream { role: Role::Receiver, what, source: Some(error.into()) }
}
