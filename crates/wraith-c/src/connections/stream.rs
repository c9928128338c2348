//! A stream of a raw connection: bytes in both directions.

use std::cell::Cell;
use std::sync::{Arc, OnceLock};

use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use wraith::{Bytes, ReadError, ReadToEndError, SharedStream, WriteError};

use super::ended;
use crate::border::{export, write_wanted};
use crate::files::node::NodeRuntime;
use crate::status::wraith_status_t::{
    WRAITH_EXHAUSTED, WRAITH_INVALID_STATE, WRAITH_NOT_FOUND, WRAITH_STREAM_RESET,
    WRAITH_STREAM_STOPPED,
};
use crate::status::{Failure, Outcome};
use crate::table::{Kind, Table};
use crate::waiting::wait;

/// Maximum number of bytes that are copied and queued at a time.
const PIECE_BYTES: usize = 256 * 1024;

/// A stream of a raw connection, in both directions.
pub type wraith_stream_t = u64;

static wraith_stream_t: Table<StreamEntry> = Table::new(Kind::Stream);

pub(super) struct StreamEntry {
    stream: SharedStream,
    /// Held by a write until all of its pieces are queued.
    writing: Mutex<()>,
    /// The code with which the peer has reset its half, once a read has failed by it.
    reset_code: OnceLock<u64>,
    /// The code with which the peer has stopped our half, once a write has failed by it.
    stop_code: OnceLock<u64>,
    /// Cancelled when the handle is freed.
    freed: CancellationToken,
    /// Keeps the node and its threads alive.
    _node: Arc<NodeRuntime>,
}

impl StreamEntry {
    pub fn new(stream: SharedStream, node: &Arc<NodeRuntime>) -> Self {
        Self {
            stream,
            writing: Mutex::new(()),
            reset_code: OnceLock::new(),
            stop_code: OnceLock::new(),
            freed: CancellationToken::new(),
            _node: Arc::clone(node),
        }
    }

    pub fn insert(self) -> Outcome<wraith_stream_t> {
        wraith_stream_t.insert(self)
    }

    fn write_failed(&self, error: &WriteError) -> Failure {
        match error {
            WriteError::Stopped(code) => {
                let _ = self.stop_code.set(*code);
                Failure::new(WRAITH_STREAM_STOPPED, error.to_string())
            }
            WriteError::Finished => Failure::new(WRAITH_INVALID_STATE, error.to_string()),
            WriteError::ConnectionLost(reason) => ended(reason),
        }
    }

    fn read_failed(&self, error: &ReadError) -> Failure {
        match error {
            ReadError::Reset(code) => {
                let _ = self.reset_code.set(*code);
                Failure::new(WRAITH_STREAM_RESET, error.to_string())
            }
            ReadError::Stopped => Failure::new(WRAITH_INVALID_STATE, error.to_string()),
            ReadError::ConnectionLost(reason) => ended(reason),
        }
    }
}

export!(
    /// Queues all of `data` for sending. Waits while more than 1 MiB is queued, for at most
    /// `timeout_ms` milliseconds (or `WRAITH_FOREVER`). `*written` becomes the number of queued
    /// bytes, also if the call fails; it may be NULL.
    ///
    /// `WRAITH_STREAM_STOPPED` if the peer reads no more, `WRAITH_CONNECTION_CLOSED` if the
    /// connection has ended, `WRAITH_INVALID_STATE` after `wraith_stream_finish` or
    /// `wraith_stream_reset`.
    pub fn wraith_stream_write(
        stream: Object<wraith_stream_t>,
        data: Bytes,
        timeout_ms: u64,
        written: OutOrNull<usize>,
    ) -> Outcome {
        let queued = Cell::new(0);
        let result = wait(timeout_ms, &stream.freed, async {
            let _turn = stream.writing.lock().await;
            for piece in data.chunks(PIECE_BYTES) {
                let ended = stream.stream.write(Bytes::copy_from_slice(piece)).await;
                ended.map_err(|error| stream.write_failed(&error))?;
                queued.set(queued.get() + piece.len());
            }
            Ok(())
        });
        write_wanted(written.as_ref(), queued.get());
        result
    }

    /// Ends the sending direction after the written bytes. The peer can still send. Fails as
    /// `wraith_stream_write` does.
    pub fn wraith_stream_finish(stream: Object<wraith_stream_t>) -> Outcome {
        stream.stream.finish().map_err(|error| stream.write_failed(&error))
    }

    /// Waits until the peer has acknowledged all bytes and the end of a finished stream, for at
    /// most `timeout_ms` milliseconds (or `WRAITH_FOREVER`). Fails as `wraith_stream_write` does.
    pub fn wraith_stream_acked(stream: Object<wraith_stream_t>, timeout_ms: u64) -> Outcome {
        wait(timeout_ms, &stream.freed, async {
            stream.stream.acked().await.map_err(|error| stream.write_failed(&error))
        })
    }

    /// Resets the sending direction: drops its queued bytes and sends `code` to the peer (at most
    /// 2^62 - 1; a larger one becomes that). Also ends a write that waits on another thread.
    pub fn wraith_stream_reset(stream: Object<wraith_stream_t>, code: u64) -> Outcome {
        stream.stream.reset(code);
        Ok(())
    }

    /// Returns the next bytes of the peer, at least one and as many as are available and fit. Waits
    /// for them, for at most `timeout_ms` milliseconds (or `WRAITH_FOREVER`). `WRAITH_OK` with
    /// `*out_len` 0 is the end of the stream; `out_cap` must not be 0.
    ///
    /// `WRAITH_STREAM_RESET` if the peer has reset the stream, `WRAITH_CONNECTION_CLOSED` if the
    /// connection has ended, `WRAITH_INVALID_STATE` after `wraith_stream_stop`.
    pub fn wraith_stream_read(
        stream: Object<wraith_stream_t>,
        timeout_ms: u64,
        out: Buffer,
    ) -> Outcome {
        if out.cap() == 0 {
            return Err(Failure::input("the buffer has no room, so no bytes would be the end"));
        }
        let bytes = wait(timeout_ms, &stream.freed, async {
            stream.stream.read(out.cap()).await.map_err(|error| stream.read_failed(&error))
        })?;
        out.write(&bytes)
    }

    /// Returns all bytes of the peer up to the end of the stream. Waits for them, for at most
    /// `timeout_ms` milliseconds (or `WRAITH_FOREVER`). `WRAITH_EXHAUSTED` if there are more than
    /// `out_cap` bytes. Otherwise fails as `wraith_stream_read` does. Bytes that a failed call has
    /// received stay available to later calls.
    pub fn wraith_stream_read_to_end(
        stream: Object<wraith_stream_t>,
        timeout_ms: u64,
        out: Buffer,
    ) -> Outcome {
        let bytes = wait(timeout_ms, &stream.freed, async {
            stream.stream.read_to_end(out.cap()).await.map_err(|error| match &error {
                ReadToEndError::TooLong { .. } => Failure::new(WRAITH_EXHAUSTED, error.to_string()),
                ReadToEndError::Failed(error) => stream.read_failed(error),
            })
        })?;
        out.write(&bytes)
    }

    /// Stops reading: drops received bytes and sends `code` to the peer (at most 2^62 - 1; a larger
    /// one becomes that), whose writes then fail. Also ends a read that waits on another thread.
    pub fn wraith_stream_stop(stream: Object<wraith_stream_t>, code: u64) -> Outcome {
        stream.stream.stop(code);
        Ok(())
    }

    /// Returns the code of the peer's reset, after a read has returned `WRAITH_STREAM_RESET`;
    /// `WRAITH_NOT_FOUND` before.
    pub fn wraith_stream_reset_code(stream: Object<wraith_stream_t>) -> Outcome<u64> {
        stream.reset_code.get().copied().ok_or_else(|| no_code("reset"))
    }

    /// Returns the code with which the peer stopped reading, after a call has returned
    /// `WRAITH_STREAM_STOPPED`; `WRAITH_NOT_FOUND` before.
    pub fn wraith_stream_stop_code(stream: Object<wraith_stream_t>) -> Outcome<u64> {
        stream.stop_code.get().copied().ok_or_else(|| no_code("stop"))
    }

    /// Frees the stream. A sending direction that was not finished is reset, and a receiving one
    /// whose end was not read is stopped, each with code 0. Finished bytes are still delivered.
    pub fn wraith_stream_free(stream: wraith_stream_t) -> Outcome {
        wraith_stream_t.remove(stream).map(|entry| entry.freed.cancel())
    }
);

fn no_code(what: &str) -> Failure {
    Failure::new(WRAITH_NOT_FOUND, format!("no call has met a {what} of the peer"))
}
