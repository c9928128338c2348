//! The engine of an attempt: find the other side, connect, transfer, and find it again after a lost
//! connection. One implementation serves senders and receivers, dialling or dialled.
//!
//! ```text
//!                  dialling side                              dialled side
//!  find            [`dial`]: addresses, names, meeting places   the endpoint accepts; [`rediscovery`] answers a lost peer
//!  one transfer    [`session`]: the blocking transfer on a thread of its own, its end awaited here
//!  lost            [`attempt`]: a loop over find and session    [`serving`]: one session a receiver, each may come back
//!                                                               listening (`crate::listen`): one turn at a time
//!  whether again   [`retry`]: which losses may recover, and the time limit
//! ```
//!
//! Invariant: nothing in this module polls a flag. Every wait is for a message, a connection, a
//! deadline, or cancellation.

pub(crate) mod attempt;
pub(crate) mod consent;
pub(crate) mod dial;
pub(crate) mod door_keys;
pub(crate) mod rediscovery;
pub(crate) mod retry;
pub(crate) mod serving;
pub(crate) mod session;
pub(crate) mod task;
