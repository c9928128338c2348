//! What is sent, to whom, and where it is put: values that cross the border whole.

use std::io::{Cursor, Write};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::WraithError;

/// What is offered.
#[derive(Clone, Debug, uniffi::Enum)]
pub enum Content {
    /// Files and folders; each keeps its own last name.
    Paths {
        /// Where they are.
        paths: Vec<String>,
    },
    /// A message: bytes that become a file of this name where they are not received into memory. They are read once, so a run that
    /// is cut off begins again with a new offer.
    Bytes {
        /// The name of one file.
        name: String,
        /// Its content.
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

/// To whom an offer goes.
#[derive(Clone, Debug, uniffi::Enum)]
pub enum Recipient {
    /// Whoever says the code that is made for it.
    Code,
    /// Whoever has the ticket that is made for it.
    Ticket,
    /// A contact that listens.
    Contact {
        /// What it is called here.
        name: String,
    },
}

/// Where to put what is received.
#[derive(Clone, Debug, uniffi::Enum)]
pub enum Target {
    /// Into this folder, which is made when the offer is accepted.
    Folder {
        /// Where it is.
        path: String,
    },
    /// Into memory, for a message or a single file: see [`crate::Transfer::bytes`].
    Memory {
        /// The most that is taken; of more, the transfer fails.
        bytes_max: u64,
    },
}

/// What was received into memory, shared by the writer and whoever reads it at the end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory(Arc<Mutex<Vec<u8>>>);

impl Memory {
    pub fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Writes into a [`Memory`] up to a limit.
struct Bounded {
    memory: Memory,
    room: u64,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let left = u64::try_from(bytes.len()).ok().and_then(|len| self.room.checked_sub(len));
        self.room = left.ok_or_else(|| std::io::Error::other("more than the limit in memory"))?;
        self.memory.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Target {
    /// The target, and the memory behind it if there is one.
    pub(crate) fn open(self) -> (wraith::Target, Option<Memory>) {
        match self {
            Self::Folder { path } => (wraith::Target::folder(path), None),
            Self::Memory { bytes_max } => {
                let memory = Memory::default();
                let writer = Bounded { memory: memory.clone(), room: bytes_max };
                (wraith::Target::writer(writer), Some(memory))
            }
        }
    }
}

/// An IP address and port, as text.
pub(crate) fn address(text: &str) -> Result<std::net::SocketAddr, WraithError> {
    text.parse().map_err(|_| {
        WraithError::InvalidInput(format!("{text:?} is no address and port, such as 127.0.0.1:0"))
    })
}

/// A NodeId in its text form.
pub(crate) fn node_id(text: &str) -> Result<wraith::NodeId, WraithError> {
    text.parse().map_err(WraithError::invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_takes_no_byte_more_than_its_limit() {
        let memory = Memory::default();
        let mut writer = Bounded { memory: memory.clone(), room: 3 };
        writer.write_all(b"ab").unwrap();
        assert!(writer.write_all(b"cd").is_err());
        assert_eq!(memory.take(), b"ab");
    }
}
