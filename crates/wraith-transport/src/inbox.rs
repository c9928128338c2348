//! What stands in the I/O thread's list: a connection or a stream that wants to be looked at.

use std::sync::Arc;

use crate::connection::ConnectionShared;
use crate::stream::StreamShared;
use crate::wake::Inbox;

/// An object with work for the I/O thread.
#[derive(Debug)]
pub(crate) enum Ready {
    /// A connection's state holds a request, or its last handle is gone.
    Connection(Arc<ConnectionShared>),
    /// A stream's queue has bytes, room, or an end.
    Stream(Arc<StreamShared>),
    /// The endpoint closes or was released.
    Endpoint,
}

/// The inbox of an endpoint.
pub(crate) type IoInbox = Inbox<Ready>;
