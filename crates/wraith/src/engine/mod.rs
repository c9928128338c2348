//! The engine of an attempt: find the other side, connect, transfer, and when it is lost find it again. Written once, for
//! whoever sends or receives and whoever dials.
//!
//! ```text
//!                  who dials                                  who is dialled
//!  find            [`dial`]: addresses, names, meeting places   the endpoint accepts; [`rediscovery`] answers who was lost
//!  one transfer    [`session`]: the blocking transfer on a thread of its own, its end awaited here
//!  lost            [`attempt`]: a loop over find and session    [`serving`]: one session a receiver, each may come back
//!                                                               listening (`crate::listen`): one turn at a time
//!  whether again   [`retry`]: what may come back, and how long it is waited for
//! ```
//!
//! Invariant: nothing here wakes up to look at a flag. Everything waits for a message, a connection, a deadline, or its
//! cancellation.

pub(crate) mod attempt;
pub(crate) mod consent;
pub(crate) mod dial;
pub(crate) mod door_keys;
pub(crate) mod rediscovery;
pub(crate) mod retry;
pub(crate) mod serving;
pub(crate) mod session;
pub(crate) mod task;
