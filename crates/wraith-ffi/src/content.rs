//! Content, recipients and targets: values that are copied between Rust and the other language.

use std::io::{Cursor, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::WraithError;

/// Content of an offer.
#[derive(Clone, Debug, uniffi::Enum)]
pub enum Content {
    /// Files and folders. Each keeps the last component of its path as its name.
    Paths {
        /// Their paths.
        paths: Vec<String>,
    },
    /// A message from memory. A receiver that does not receive into memory stores it as a file of
    /// this name. The bytes are read once, so an interrupted offer cannot resume: it starts again
    /// as a new offer.
    Bytes {
        /// File name.
        name: String,
        /// The content.
        bytes: Vec<u8>,
    },
}

impl From<Content> for wraith::Payload {
    fn from(content: Content) -> Self {
        match content {
            Content::Paths { paths } => Self::paths(paths),
            Content::Bytes { name, bytes } => {
                let size = u64::try_from(bytes.len()).ok();
                Self::reader(name, size, Cursor::new(bytes))
            }
        }
    }
}

/// Recipient of an offer.
#[derive(Clone, Debug, uniffi::Enum)]
pub enum Recipient {
    /// Any receiver that enters the generated code.
    Code,
    /// Any receiver that has the generated ticket.
    Ticket,
    /// A contact that runs a listener.
    Contact {
        /// Local name of the contact.
        name: String,
    },
}

/// Destination of received content.
#[derive(Clone, Debug, uniffi::Enum)]
pub enum Target {
    /// A folder. It is created when the offer is accepted.
    Folder {
        /// Path of the folder.
        path: String,
    },
    /// Memory, for a message or a single file: see [`crate::Transfer::bytes`].
    Memory {
        /// Maximum number of bytes. If there are more, the transfer fails.
        bytes_max: u64,
    },
}

/// Content received into memory, shared by the writer and its later reader.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemoryContent(Arc<Mutex<Vec<u8>>>);

impl MemoryContent {
    pub fn take(&self) -> Vec<u8> {
        std::mem::take(&mut locked(&self.0))
    }
}

/// Writes into a [`MemoryContent`] up to a limit.
struct BoundedWriter {
    memory: MemoryContent,
    room: u64,
}

impl Write for BoundedWriter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let left = u64::try_from(bytes.len()).ok().and_then(|len| self.room.checked_sub(len));
        self.room =
            left.ok_or_else(|| std::io::Error::other("the content exceeds the memory limit"))?;
        locked(&self.memory.0).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Target {
    /// Returns the target, and its memory if it has one.
    pub(crate) fn open(self) -> (wraith::Target, Option<MemoryContent>) {
        match self {
            Self::Folder { path } => (wraith::Target::folder(path), None),
            Self::Memory { bytes_max } => {
                let memory = MemoryContent::default();
                let writer = BoundedWriter { memory: memory.clone(), room: bytes_max };
                (wraith::Target::writer(writer), Some(memory))
            }
        }
    }
}

/// Locks a state, in spite of a panic during an earlier call: each call changes it completely or
/// not at all.
pub(crate) fn locked<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sets an option of a builder, unless it has its default.
pub(crate) fn set<B, T>(builder: B, value: Option<T>, setter: impl FnMut(B, T) -> B) -> B {
    value.into_iter().fold(builder, setter)
}

/// Parses an IP address with a port.
pub(crate) fn address(text: &str) -> Result<std::net::SocketAddr, WraithError> {
    text.parse().map_err(|_| {
        WraithError::InvalidInput(format!(
            "{text:?} is not an address with a port, such as 127.0.0.1:0"
        ))
    })
}

/// Parses a NodeId in its text form.
pub(crate) fn node_id(text: &str) -> Result<wraith::NodeId, WraithError> {
    text.parse().map_err(WraithError::invalid)
}
