//! The wraith transport protocol without I/O (docs/SPEC.md).
//!
//! The crate holds packets, frames, loss recovery, congestion control, streams and path changes. It
//! reads no clock and owns no socket: the caller passes in time and datagrams, and drains
//! datagrams, events and the next timeout. Start with [`Endpoint`] and [`Connection`].
#![forbid(unsafe_code)]

mod acks;
mod block;
mod config;
pub mod congestion;
mod connection;
mod door;
mod endpoint;
mod error;
mod event;
pub mod frame;
mod handshake_log;
pub mod measure;
pub mod mtud;
pub mod nat;
mod path;
mod path_addr;
pub mod punch;
pub mod qlog;
mod range_set;
pub mod recovery;
mod secret_rng;
mod source;
pub mod streams;
mod time;
mod token_bucket;
pub mod varint;
mod wall_clock;

pub use block::{BLOCK_BYTES, Block, BlockPool, RecvSlice};
pub use config::{EndpointConfig, TransportConfig};
pub use congestion::Algorithm;
pub use connection::{Connection, Exporter};
pub use door::{ClockDifference, Door, DoorId};
pub use endpoint::{ConnectError, Endpoint};
pub use error::{CloseReason, StreamError, Violation, code};
pub use event::{ConnectionHandle, ConnectionStats, Ecn, Event, Transmit};
pub use handshake_log::{HandshakeLog, LogResult, SharedHandshakeLog};
pub use path_addr::PathAddr;
pub use punch::{AnswerMode, PunchCounts, PunchError, PunchEvent, PunchId};
pub use range_set::RangeSet;
pub use secret_rng::Entropy;
pub use streams::{Read, Role, StreamConfig, StreamEvent, StreamId, Streams};
pub use time::Time;
pub use wall_clock::WallClock;
pub use wraith_crypto::{Policy, Suite};
pub use wraith_noise::{AccessKey, HANDSHAKE_VERSION, KEY_AGREEMENT};

/// Runs the example of the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
