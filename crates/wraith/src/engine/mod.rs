//! The engine of an attempt: find the peer, connect, transfer, and find the peer again after a lost
//! connection. One implementation serves senders and receivers. Either of them may dial, and the
//! other one is dialled.
//!
//! ```text
//!                  dialling side                              dialled side
//!  find            [`dial`]: addresses, names, meeting places   the endpoint accepts; [`rediscovery`] answers the search of a lost peer
//!  one transfer    [`session`]: the blocking transfer on a thread of its own, its end awaited here
//!  lost            [`attempt`]: a loop over find and session    [`offer_server`]: a session per receiver; each may reconnect
//!                                                               `crate::listen`: one transfer at a time
//!  retry           [`retry`]: after which losses to try again, and until when
//! ```
//!
//! Invariant: nothing in this module polls a flag. Every wait is for a message, a connection, a
//! deadline, or cancellation.

pub(crate) mod access_keys;
pub(crate) mod attempt;
pub(crate) mod codes;
pub(crate) mod consent;
pub(crate) mod dial;
pub(crate) mod narrow_path;
pub(crate) mod offer_server;
pub(crate) mod rediscovery;
pub(crate) mod retry;
pub(crate) mod role;
pub(crate) mod session;
pub(crate) mod task;
