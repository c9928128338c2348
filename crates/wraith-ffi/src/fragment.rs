//! Messages that are longer than what a transport carries, in pieces.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wraith::session::fragment::{self as inner, FragmentError, ReassemblyLimits};

use crate::error::WraithError;

/// Cuts messages into pieces, before each is sealed. One for each direction of a session. Threads take turns.
#[derive(Debug, uniffi::Object)]
pub struct Splitter(Mutex<inner::Splitter>);

#[uniffi::export]
impl Splitter {
    /// One that has cut nothing yet.
    ///
    /// # Errors
    /// [`WraithError::NoRandomness`].
    #[uniffi::constructor]
    pub fn new() -> Result<Arc<Self>, WraithError> {
        let splitter = inner::Splitter::new(&mut crate::random::generator()?);
        Ok(Arc::new(Self(Mutex::new(splitter))))
    }

    /// Cuts `message` into pieces of at most `room` bytes each (18 or more), in order. A message of less than `room` bytes is one piece.
    ///
    /// # Errors
    /// [`WraithError::InvalidInput`] if there is too little room, or it would take more than 65,535 pieces.
    pub fn split(&self, message: Vec<u8>, room: u32) -> Result<Vec<Vec<u8>>, WraithError> {
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        Ok(held(&self.0).split(&message, room)?)
    }
}

/// What a [`Reassembler`] may hold.
#[derive(Clone, Debug, uniffi::Record)]
pub struct ReassemblerOptions {
    /// The longest message, in bytes.
    #[uniffi(default = 1048576)]
    pub message_bytes: u64,
    /// All that is kept of messages that are not whole yet, in bytes. The oldest gives way.
    #[uniffi(default = 2097152)]
    pub held_bytes: u64,
    /// Messages that are not whole yet.
    #[uniffi(default = 16)]
    pub held_messages: u32,
}

/// Puts messages together, from the texts that a session has opened, in whatever order. Threads take turns.
#[derive(Debug, uniffi::Object)]
pub struct Reassembler(Mutex<inner::Reassembler>);

#[uniffi::export]
impl Reassembler {
    /// One that holds nothing yet, and never more than this.
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

    /// Takes a piece; gives the message that it was the last one of.
    ///
    /// # Errors
    /// [`WraithError::Protocol`] if it is no piece, or contradicts another; [`WraithError::Exhausted`] if the message is longer than allowed.
    pub fn push(&self, piece: Vec<u8>) -> Result<Option<Vec<u8>>, WraithError> {
        Ok(held(&self.0).push(&piece)?)
    }

    /// Bytes of messages that are not whole yet, with what keeping them takes.
    pub fn held_bytes(&self) -> u64 {
        u64::try_from(held(&self.0).held_bytes()).unwrap_or(u64::MAX)
    }
}

/// A panic elsewhere leaves a message that is not whole.
fn held<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl From<FragmentError> for WraithError {
    fn from(error: FragmentError) -> Self {
        let text = error.to_string();
        match error {
            FragmentError::Room { .. } => Self::InvalidInput(text),
            FragmentError::Malformed => Self::Protocol(text),
            FragmentError::TooLong(_) => Self::Exhausted(text),
        }
    }
}
