//! The events of a transfer as JSON (feature `serde`): the lines of `wraith --json`, for every
//! program that prints or stores them.
//!
//! | event | made by |
//! |---|---|
//! | `progress` | `Event::from` of a [`Progress`] |
//! | `done` at a receiver | [`EventConverter::received`], from the report of the [`FetchSummary`](crate::FetchSummary) |
//! | every other | [`EventConverter::event`], from an [`Event`](crate::Event) of the library |
//!
//! The program adds `receiver`, and the events of its commands, such as `ready` and `error`. The
//! code and number of an error are those of [`Error::exit`](crate::Error::exit).
//!
//! ```no_run
//! use wraith::json::EventConverter;
//! use wraith::{Node, OnConflict, Ticket};
//!
//! # async fn example(node: Node, ticket: Ticket) -> Result<(), Box<dyn std::error::Error>> {
//! let transfer = node.fetch(ticket, "Downloads").accept_all(OnConflict::Rename);
//! let (converter, mut events) = (EventConverter::new(&node), transfer.events());
//! while let Some(event) = events.next().await {
//!     if let Some(event) = converter.event(&event) {
//!         println!("{}", serde_json::to_string(&event)?);
//!     }
//! }
//! let done = converter.received(&transfer.finished().await?.report);
//! println!("{}", serde_json::to_string(&done)?);
//! # Ok(())
//! # }
//! ```
//!
//! Scripts rely on the names and fields: add new ones, and list every rename in `RENAMED` of
//! `wraith-commands/src/output/schema.rs`.
//!
//! The comments in this file are the documentation: `docs/events.schema.json` and the tables of
//! `docs/json.md` are made from these types (feature `schema`), and a test fails when they differ.

mod convert;

use std::borrow::Cow;

use serde::Serialize;

use crate::progress::Progress;

pub use self::convert::{EventConverter, durability_name, rate};

/// A text of an event.
pub type Text = Cow<'static, str>;

/// One event of a transfer.
#[non_exhaustive]
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A long code for the offer of `ready` is valid too; it needs no common network and no server.
    LongCode {
        /// The code.
        code: Text,
        /// Command for the other machine.
        command: Text,
    },
    /// The state of the code, or of one of its meeting places, has changed.
    Code {
        /// `used`, `wrong_guess` or `expired`; `lost` or `back` for a meeting place, also that of a
        /// listener.
        state: Text,
        /// The meeting place: `lan`, or a rendezvous server.
        place: Option<Text>,
        /// The reason, as text for people.
        message: Option<Text>,
        /// With `used`: NodeId of the peer that proved the words and gets the ticket.
        peer: Option<Text>,
        /// Name of the contact; null if the peer is no contact.
        contact: Option<Text>,
    },
    /// The two sides of a code have met.
    Met {
        /// The meeting place: `lan`, or a rendezvous server; for a contact also `address`, a known
        /// address.
        place: Text,
    },
    /// The contacts of a listener have changed; it uses the new list from now on.
    ContactsChanged {
        /// Number of contacts.
        contacts: u64,
    },
    /// A listener with `--accept ask` has refused offers of unknown senders without asking, because
    /// there were too many. Reported at most once a minute, and at the end.
    RefusedUnread {
        /// Number of offers refused since the last report.
        offers: u64,
    },
    /// A handshake or call was refused, because its time differs too much from this machine's clock.
    /// A replay also causes this event. Reported at most once an hour per contact, and once an hour
    /// for all other peers together.
    ClocksDiffer {
        /// NodeId of the contact; null if the peer has not shown its identity.
        peer: Option<Text>,
        /// Name of the contact; null if the peer has not shown its identity.
        contact: Option<Text>,
        /// The time of the message minus that of this machine.
        seconds: i64,
    },
    /// A session with the other side is established.
    Connected {
        /// The other side's NodeId.
        peer: Text,
        /// IP address and port of the other side, or of the relay; else the carrier's address.
        address: Text,
        /// `loopback`, `lan`, `direct` or `relay`; `custom` over a carrier of the application.
        path: Text,
        /// How the path came about: `same-machine`, `same-network`, `ipv6`, `address` (a directly
        /// reachable address), `punched` (hole punching: both sides opened their NATs for each
        /// other), `relay` or `custom`.
        how: Text,
        /// Name of the contact; null if the peer is no contact.
        contact: Option<Text>,
        /// Key agreement and packet cipher: `X25519+ML-KEM-768, AES-256-GCM`, `X25519+ML-KEM-768,
        /// ChaCha20-Poly1305` or `X25519+ML-KEM-768, SM4-GCM`.
        suite: Text,
        /// Implementation of the packet cipher on this machine, such as `own (AVX-512, VAES,
        /// VPCLMULQDQ)` or `AWS-LC, AES instructions`.
        backend: Text,
    },
    /// The session uses another path from now on; or it still uses a relay, and `message` gives the
    /// reason.
    Path {
        /// The other side's NodeId.
        peer: Text,
        /// IP address and port of the other side, or of the relay; else the carrier's address.
        address: Text,
        /// As in `connected`.
        path: Text,
        /// As in `connected`.
        how: Text,
        /// Why no better path was found, as text for people; null if the path has changed.
        message: Option<Text>,
    },
    /// The offer, by a first look at the tree.
    Offer {
        /// The first name, escaped so that it is safe to show.
        name: Text,
        /// Number of files.
        files: u64,
        /// Number of folders.
        folders: u64,
        /// Number of symbolic links.
        links: u64,
        /// Bytes of all files.
        bytes: u64,
        /// Bytes of the largest file.
        largest: u64,
        /// Number of files, folders and links that the sender cannot send: a name that no receiver
        /// accepts, or a folder that it may not list. The other numbers do not include them.
        left_out: u64,
    },
    /// The offer was accepted.
    Accept {
        /// Number of files.
        files: u64,
        /// Bytes of all files.
        bytes: u64,
    },
    /// Progress of the transfer; several a second from the first offer on, and once at the end.
    Progress {
        /// Bytes settled: transferred, already there, or of failed files.
        bytes: u64,
        /// Bytes of all files.
        total: u64,
        /// Rate over the last five seconds; 0 without a connection.
        bytes_per_second: u64,
        /// Time left at this rate; null while no data moves.
        eta_seconds: Option<u64>,
        /// Files settled.
        files: u64,
        /// Number of files.
        total_files: u64,
        /// The current file, escaped; empty before the first.
        file: Text,
        /// Bytes of content on this machine's disk that were read and hashed, before the rest is
        /// requested; null while nothing is checked.
        checked: Option<u64>,
        /// Bytes of all content to check; null while nothing is checked.
        to_check: Option<u64>,
        /// As in `connected`; null without a connection.
        path: Option<Text>,
        /// The limiting factor: `net` (or the other side), `disk`, `cpu`, or `rate` (the `--rate`
        /// of this side or, at a sender, of its receiver); null in the first second and without a
        /// connection.
        bottleneck: Option<Text>,
    },
    /// The result for one file.
    File {
        /// Path in the offer, escaped.
        path: Text,
        /// `done`, `already-here`, `skipped`, `changed`, `unreadable`, `stale` or `blocked`; the
        /// last four are failures. At the sender, `done` means that the file was sent; `failed` at
        /// the end counts files that the receiver could not put in place.
        status: Text,
        /// Size in bytes.
        bytes: u64,
        /// BLAKE3 hash of the content in hexadecimal, as `b3sum` prints it; null if unknown.
        root: Option<Text>,
        /// Root of the position-free tree in hexadecimal, in place of `root`, for files with 16 GiB
        /// of holes or more by the sender's account. It differs from the output of `b3sum`. Null
        /// for every other file, and for every file below 16 GiB.
        position_free_root: Option<Text>,
        /// Change of the file at the sender, if it is known as the reason why the file did not
        /// arrive: `missing`, `replaced`, `grew` or `shrank`.
        change: Option<Text>,
    },
    /// A notice that does not stop the transfer.
    Note {
        /// The path concerned, escaped.
        path: Text,
        /// The notice, as text for people.
        message: Text,
    },
    /// The connection was lost; this side tries to reconnect.
    Reconnecting {
        /// How it was lost, as text for people.
        message: Text,
        /// Time until this side gives up.
        seconds_left: u64,
    },
    /// One of several receivers did not get everything; the sender continues with the others.
    ReceiverFailed {
        /// Kind of failure, as in `error`.
        code: Text,
        /// The failure and its reason.
        message: Text,
    },
    /// The transfer is complete and confirmed. Also reported if some files failed: then an `error`
    /// follows.
    Done {
        /// Files that the receiver has now.
        files: u64,
        /// Bytes of the files that the receiver has now.
        bytes: u64,
        /// Bytes that moved on the last connection; the others were there already.
        bytes_moved: u64,
        /// Bytes of the datagrams of the last connection, in both directions.
        wire_bytes: u64,
        /// Number of parallel connections (`--connections`).
        connections: u64,
        /// Earlier name of `connections`, with the same value.
        lanes: u64,
        /// Files that were there already.
        already_here: u64,
        /// Files, folders and links left out because something else has their names (`--on-conflict
        /// skip`).
        skipped: u64,
        /// Files that could not be transferred.
        failed: u64,
        /// Files, folders and links that the sender could not offer; a `note` at the sender names
        /// each.
        left_out: u64,
        /// Duration of the last connection in seconds, from the acceptance of the offer on it. It
        /// is the same on both sides, whichever started first.
        seconds: f64,
        /// `bytes_moved` divided by `seconds`.
        bytes_per_second: u64,
        /// The receipt that the receiver signed, in base32.
        receipt: Text,
        /// Whether all files survive a power cut, as the receipt states: `on-disk`, `not-awaited`
        /// (`--no-sync`), `cannot-sync` (a pipe, a file system in memory), or `unknown` for an
        /// earlier version.
        durability: Text,
    },
    /// The signed receipt of the receiver was written to a file (`wraith send --receipt`).
    Receipt {
        /// The file, escaped.
        path: Text,
    },
}

impl From<&Progress> for Event {
    fn from(progress: &Progress) -> Self {
        Self::Progress {
            bytes: progress.bytes,
            total: progress.bytes_total,
            bytes_per_second: progress.bytes_per_second,
            eta_seconds: progress.eta_seconds(),
            files: progress.files,
            total_files: progress.files_total,
            file: progress.current_file.clone().into(),
            checked: progress.checked.map(|checked| checked.bytes),
            to_check: progress.checked.map(|checked| checked.bytes_total),
            path: progress.path.map(|path| path.name().into()),
            bottleneck: progress.bottleneck.map(|bottleneck| bottleneck.name().into()),
        }
    }
}
