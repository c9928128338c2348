//! The rendezvous server: `wraith rendezvous`, and the same service on the port of a relay (SPEC
//! §11.5). Its client and the frames of the protocol are in [`wraith_discovery::rendezvous`].
//!
//! [`mailboxes`] decides, without sockets and clock. [`server`] has a task for each connection.

mod mailboxes;
mod server;

pub use server::{Connections, Server};
