#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod addresses;
mod engine;
mod error;
mod event;
mod fetch;
mod invite;
mod listen;
mod node;
mod offer;
mod payload;
mod progress;
mod service;
pub mod place;
pub mod state;

pub use addresses::{PathKind, path_kind};
pub use error::{Cause, Error, ErrorKind};
pub use event::{Event, Events, FoundAt, Observer, OfferInfo};
pub use fetch::{AcceptOptions, Asking, FetchBuilder, Incoming, Received, Source, Target, Transfer};
pub use invite::{Invitation, InvitationBuilder};
pub use listen::{Admit, ListenBuilder, Listener};
pub use node::{CONNECTIONS_MAX, Congestion, Node, NodeBuilder, rendezvous_address};
pub use offer::{Offer, OfferBuilder, Sent};
pub use payload::Payload;
pub use progress::{Bottleneck, Progress, ProgressReader};
pub use service::{ConnectBuilder, Service};
pub use wraith_crypto::{NodeId, SecretIdentity};
pub use wraith_discovery::Capability;
pub use wraith_discovery::{
    Announcement, Code, CodeError, JoinError, Lan, MeetingPlace, NotMet, Place, PlaceError, Places,
    Query, Ticket, TicketError,
};
pub use wraith_files::{Entry, RelPath};
pub use wraith_transfer::{
    ActiveFile, Conflicts, FileStatus, OnConflict, Preview, PreviewOutcome, Previewed, Receipt,
    ReceiveReport, Role, SendReport, TransferError,
};
pub use wraith_transport::{
    Bytes, CloseReason, ConnectionStats, DatagramError, ReadError, ReadExactError, WriteError,
};
pub use wraith_transport::{Addr, Connection, RecvStream, SendStream};
