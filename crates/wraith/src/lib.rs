#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod blocking_io;
pub mod carrier;
mod clock_reports;
mod engine;
mod error;
mod event;
mod event_publisher;
mod exit;
mod fetch;
mod invite;
mod join_code;
#[cfg(feature = "serde")]
pub mod json;
mod listen;
mod node;
mod node_core;
mod offer;
mod paths;
mod payload;
pub mod place;
mod progress;
mod report;
mod route;
mod service;
mod settings;
pub mod state;

pub use error::{Cause, Error, ErrorKind};
pub use event::{Event, FoundAt, Observer, OfferInfo};
pub use event_publisher::Events;
pub use exit::Exit;
pub use fetch::{AcceptOptions, FetchBuilder, Incoming, OfferRequest, Source, Target, Transfer};
pub use invite::{Invitation, InvitationBuilder};
pub use listen::{AcceptFilter, ListenBuilder, Listener};
pub use node::{
    CONNECTIONS_MAX, Congestion, Node, NodeBuilder, NodeGroup, SharedConnection, rendezvous_address,
};
pub use node_core::{PeerRelays, Proxies, RelayServer, UnknownPeerRelays};
pub use offer::{Offer, OfferBuilder};
pub use payload::Payload;
pub use progress::{Bottleneck, Progress, ProgressReader};
pub use report::{FetchSummary, OfferSummary};
pub use route::{PathKind, PathOrigin, Route, path_kind};
pub use service::{
    ConnectBuilder, ReadToEndError, Service, ServiceAddress, ServiceBuilder, SharedStream,
};
pub use settings::TransferOptions;
pub use wraith_crypto::{Backends, NodeId, SecretIdentity, UnknownBackends, implementation};
pub use wraith_discovery::{
    Announcement, Capability, Code, CodeError, JoinError, JoinErrorKind, Lan, MeetingPlace,
    PlaceError, PlaceName, Places, Query, Ticket, TicketError, TicketKind,
};
pub use wraith_files::{Change, Entry, RelPath, Tree};
/// Encrypted sessions over any transport, without a node: handshakes, messages, ratchets and sealed
/// boxes.
#[cfg(feature = "session")]
pub use wraith_session as session;
/// A vault for sessions in a folder ([`session::FileVault`]).
#[cfg(feature = "session")]
pub use wraith_session::FileVault;
/// An event of a running transfer, as an [`Observer`] receives it.
pub use wraith_transfer::Event as TransferEvent;
/// An offer in its wire form.
pub use wraith_transfer::Offer as OfferMessage;
pub use wraith_transfer::{
    ActiveFile, Checked, Conflicts, Durability, FileStatus, IoFailure, LostReason, OnConflict,
    Preview, PreviewOutcome, Previewed, Receipt, ReceiveReport, Role, SendReport, TransferError,
    close,
};
pub use wraith_transport::{
    Addr, Bytes, CloseReason, Connection, ConnectionStats, DatagramError, KEY_AGREEMENT, Policy,
    QlogWriter, ReadError, ReadExactError, RecvStream, SendStream, Suite, WriteError, congestion,
    qlog,
};
