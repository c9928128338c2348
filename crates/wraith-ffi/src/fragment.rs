//! Fragmentation of messages longer than the transport's MTU.

use std::sync::{Arc, Mutex};

use wraith::session::fragment::{self as inner, ReassemblyLimits};
use wraith::session::system_rng;

use crate::content::locked;
use crate::error::WraithError;

/// Splits messages into pieces, before each piece is sealed. Use one for each direction of a
/// session. Thread-safe.
#[derive(Debug, uniffi::Object)]
pub struct Splitter(Mutex<inner::Splitter>);

#[uniffi::export]
impl Splitter {
    /// Creates a splitter.
    ///
    /// # Errors
    /// [`WraithError::NoRandomness`].
    #[uniffi::constructor]
    pub fn new() -> Result<Arc<Self>, WraithError> {
        let splitter = inner::Splitter::new(&mut system_rng()?);
        Ok(Arc::new(Self(Mutex::new(splitter))))
    }

    /// Splits `message` into pieces of at most `room` bytes each (18 or more), in order. A message
    /// of less than `room` bytes is one piece.
    ///
    /// # Errors
    /// [`WraithError::InvalidInput`] if `room` is too small, or the message would need more than
    /// 65,535 pieces.
    pub fn split(&self, message: Vec<u8>, room: u32) -> Result<Vec<Vec<u8>>, WraithError> {
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        Ok(locked(&self.0).split(&message, room)?)
    }
}

/// Resource limits of a [`Reassembler`].
#[derive(Clone, Debug, uniffi::Record)]
pub struct ReassemblerOptions {
    /// Maximum length of a message, in bytes.
    #[uniffi(default = 1048576)]
    pub message_bytes: u64,
    /// Maximum memory for incomplete messages, in bytes. Beyond it the oldest message is dropped.
    #[uniffi(default = 2097152)]
    pub held_bytes: u64,
    /// Maximum number of incomplete messages.
    #[uniffi(default = 16)]
    pub held_messages: u32,
}

/// Reassembles messages from the opened texts of a session, in any order. Thread-safe.
#[derive(Debug, uniffi::Object)]
pub struct Reassembler(Mutex<inner::Reassembler>);

#[uniffi::export]
impl Reassembler {
    /// Creates an empty reassembler with these limits.
    #[uniffi::constructor]
    pub fn new(options: ReassemblerOptions) -> Arc<Self> {
        let all = |bytes| usize::try_from(bytes).unwrap_or(usize::MAX);
        let limits = ReassemblyLimits {
            message_bytes: all(options.message_bytes),
            held_bytes: all(options.held_bytes),
            held_messages: all(u64::from(options.held_messages)),
        };
        Arc::new(Self(Mutex::new(inner::Reassembler::new(limits))))
    }

    /// Adds a piece. Returns the message once its last piece has arrived, otherwise null.
    ///
    /// # Errors
    /// [`WraithError::Protocol`] if the bytes are no piece, or contradict another piece.
    /// [`WraithError::Exhausted`] if the message is longer than allowed.
    pub fn push(&self, piece: Vec<u8>) -> Result<Option<Vec<u8>>, WraithError> {
        Ok(locked(&self.0).push(&piece)?)
    }

    /// Returns the bytes held for incomplete messages, with their overhead.
    pub fn held_bytes(&self) -> u64 {
        u64::try_from(locked(&self.0).held_bytes()).unwrap_or(u64::MAX)
    }
}
