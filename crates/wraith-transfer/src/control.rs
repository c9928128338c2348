//! The control stream: reads and writes whole messages (SPEC §10.2).

use std::time::{Duration, Instant};

use bytes::Bytes;
use wraith_crypto::from_variants;
use wraith_transport::{ReadExactError, RecvStream, SendStream, block_on};

use crate::error::TransferError;
use crate::message::{MESSAGE_BYTES_MAX, Malformed, Message};
use crate::session::Session;

/// Maximum number of skipped messages of unknown type; more are treated as flooding.
const UNKNOWN_MESSAGES_MAX: u32 = 1000;

/// Reads messages from the control stream.
pub(crate) struct ControlReader {
    stream: RecvStream,
    unknown: u32,
}

impl ControlReader {
    pub(crate) fn new(stream: RecvStream) -> Self {
        Self { stream, unknown: 0 }
    }

    /// Returns the next message of a known type, without a time limit.
    pub(crate) fn next(&mut self, session: &Session) -> Result<Message, TransferError> {
        loop {
            let message = block_on(self.read()).map_err(|fault| fault.explain(session))?;
            if let Some(known) = self.skip_unknown(session, message)? {
                return Ok(known);
            }
        }
    }

    /// Returns the next message if it arrives within `limit`.
    pub(crate) fn next_within(
        &mut self,
        session: &Session,
        limit: Duration,
    ) -> Result<Message, TransferError> {
        let deadline = Instant::now() + limit;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Some(read) = session.wait_within(left, self.read()) else {
                return Err(session.no_message(limit));
            };
            let message = read.map_err(|fault| fault.explain(session))?;
            if let Some(known) = self.skip_unknown(session, message)? {
                return Ok(known);
            }
        }
    }

    fn skip_unknown(
        &mut self,
        session: &Session,
        message: Message,
    ) -> Result<Option<Message>, TransferError> {
        if !matches!(message, Message::Unknown(_)) {
            return Ok(Some(message));
        }
        self.unknown += 1;
        if self.unknown > UNKNOWN_MESSAGES_MAX {
            return Err(session.protocol("too many unknown messages on the control stream"));
        }
        Ok(None)
    }

    async fn read(&mut self) -> Result<Message, Fault> {
        let mut prefix = [0; 4];
        self.stream.read_exact(&mut prefix).await?;
        let len = u32::from_be_bytes(prefix) as usize;
        if len > MESSAGE_BYTES_MAX {
            return Err(Malformed("message length").into());
        }
        let mut body = vec![0; len];
        self.stream.read_exact(&mut body).await?;
        Ok(Message::from_bytes(&body)?)
    }
}

/// Reason for a failed read.
enum Fault {
    Stream(ReadExactError),
    Malformed(Malformed),
}

impl Fault {
    fn explain(self, session: &Session) -> TransferError {
        match self {
            Self::Stream(error) => session.read_exact_failed(error),
            Self::Malformed(error) => session.protocol(error.to_string()),
        }
    }
}

from_variants!(Fault { ReadExactError => Stream, Malformed => Malformed });

/// Writes messages to the control stream.
pub(crate) struct ControlWriter {
    stream: SendStream,
}

impl ControlWriter {
    pub(crate) fn new(stream: SendStream) -> Self {
        Self { stream }
    }

    /// Queues a message; waits while the peer does not read.
    pub(crate) fn send(
        &mut self,
        session: &Session,
        message: &Message,
    ) -> Result<(), TransferError> {
        let bytes = Bytes::from(message.to_bytes());
        let written = session.wait(self.stream.write_chunks([bytes]));
        written.map_err(|error| session.write_failed(error))
    }

    /// Queues a message if there is room for it now, otherwise drops it. For callers that must not
    /// wait for the peer.
    pub(crate) fn send_if_room(
        &mut self,
        session: &Session,
        message: &Message,
    ) -> Result<(), TransferError> {
        let bytes = Bytes::from(message.to_bytes());
        let written = session.wait_within(Duration::ZERO, self.stream.write_chunks([bytes]));
        written.unwrap_or(Ok(())).map_err(|error| session.write_failed(error))
    }
}
