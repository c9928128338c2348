//! Sockets for the wraith core: connections and streams over UDP, at the full datagram rate of the
//! kernel.
//!
//! ```text
//!  application threads                     I/O thread (one per endpoint)
//!  SendStream ── queue of Bytes ──▶  core: cut, seal in place ──▶ one 64 KiB buffer ──▶ sendmsg (GSO)
//!  RecvStream ◀── queue of slices  ─  core: open in place, one copy ◀── 64 KiB buffers ◀── recvmmsg (GRO)
//! ```
//!
//! The I/O thread owns the socket and the protocol state, so nothing is locked per packet.
//! Application threads share only the stream queues with it: one lock per buffer, and a system call
//! only when a side sleeps. Flow control spans queue and core. The I/O thread reads from the core
//! only as much as the receive queue can hold. It takes from a send queue only as much as the core
//! can hold.
//!
//! Futures use plain [`std::task::Waker`]s and run on any executor, or with [`block_on`]. Streams
//! also implement tokio's `AsyncRead` and `AsyncWrite`, which need no runtime either. An
//! application can supply a transport other than UDP as a [`mover`].
//!
//! ```no_run
//! use std::net::SocketAddr;
//!
//! use wraith_transport::{AccessKey, Config, Endpoint, EndpointConfig, SecretIdentity, block_on};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Endpoint::bind(Config::new(EndpointConfig::open(SecretIdentity::from_seed([1; 32]))))?;
//! let client = Endpoint::bind(Config::new(EndpointConfig::new(SecretIdentity::from_seed([2; 32]))))?;
//! let peer = SecretIdentity::from_seed([1; 32]).node_id();
//! let address = SocketAddr::from(([127, 0, 0, 1], server.local_addr().port()));
//! block_on(async {
//!     let connection = client.connect([address], peer, &AccessKey::public(peer)).await?;
//!     let (mut send, _recv) = connection.open_stream().await?;
//!     send.write_all(b"hello").await?;
//!     send.finish()?;
//!     send.acked().await?;
//!     Ok::<_, Box<dyn std::error::Error>>(())
//! })?;
//! client.close();
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod addr;
mod block_on;
mod clock;
mod connection;
mod endpoint;
mod error;
mod io;
mod lock;
pub mod mover;
mod path;
mod path_log;
mod punch;
mod punch_request;
mod qlog_writer;
mod queue;
mod shared;
mod socket_capabilities;
mod spare;
mod stream;
mod wake;
mod wake_relay;

pub use addr::Addr;
pub use block_on::{block_on, block_on_timeout};
pub use bytes::Bytes;
pub use connection::Connection;
pub use endpoint::{Config, Endpoint};
pub use error::{ConnectError, DatagramError, ReadError, ReadExactError, WriteError};
pub use path::{MigrationError, PathEvents, PathHandle};
pub use path_log::PathEvent;
pub use punch::{ObserveError, Punch};
pub use punch_request::PortGuessing;
pub use qlog_writer::QlogWriter;
pub use socket_capabilities::SocketCapabilities;
pub use stream::{RecvStream, SendStream};
pub use wraith_core::punch::{PORT_GUESSES_MAX, PeerStart, is_target};
pub use wraith_core::{
    AccessKey, Algorithm, AnswerMode, ClockDifference, CloseReason, ConnectionStats, Door, DoorId,
    Ecn, EndpointConfig, HANDSHAKE_VERSION, HandshakeLog, KEY_AGREEMENT, LogResult, PathAddr,
    Policy, PunchCounts, PunchError, PunchEvent, RecvSlice, Role, SharedHandshakeLog, StreamId,
    Suite, TransportConfig,
};
pub use wraith_core::{congestion, nat, qlog};
pub use wraith_crypto::identity::{NodeId, SecretIdentity};

/// Compiles the README's example as a doctest.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
