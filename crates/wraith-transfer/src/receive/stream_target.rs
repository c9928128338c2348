//! The destination of a byte stream.

use std::io::Write;
use std::sync::{Arc, Mutex};

use wraith_files::StreamFile;

use crate::lock::lock;

/// Destination of a byte stream, over all connections of one transfer. Cheap to clone.
#[derive(Clone)]
pub struct StreamTarget(pub(super) Arc<Mutex<StreamOutput>>);

pub(super) struct StreamOutput {
    pub(super) sink: Sink,
    /// Hash of all written bytes.
    pub(super) hasher: blake3::Hasher,
    pub(super) written: u64,
}

pub(super) enum Sink {
    Output(Box<dyn Write + Send>),
    /// A file in the target folder, once it is created.
    Folder(Option<StreamFile>),
}

impl StreamTarget {
    /// Writes to `output`. The sender is asked for a byte stream even if it offers a file.
    pub fn output(output: impl Write + Send + 'static) -> Self {
        Self::new(Sink::Output(Box::new(output)))
    }

    /// Writes to a file in the target folder, under the sender's name of the stream.
    pub fn folder() -> Self {
        Self::new(Sink::Folder(None))
    }

    fn new(sink: Sink) -> Self {
        Self(Arc::new(Mutex::new(StreamOutput { sink, hasher: blake3::Hasher::new(), written: 0 })))
    }

    /// Returns true if the destination is a writer of the caller.
    pub fn is_output(&self) -> bool {
        matches!(lock(&self.0).sink, Sink::Output(_))
    }
}

impl std::fmt::Debug for StreamTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamTarget").field("written", &lock(&self.0).written).finish()
    }
}
