//! What happens while something is sent or received, pulled one at a time.

use tokio::sync::Mutex;
use wraith::Event as Told;

/// What became of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, uniffi::Enum)]
pub enum FileStatus {
    /// Moved now, whole or the part that was missing, and verified.
    Done,
    /// The receiver had exactly this file already.
    AlreadyHere,
    /// A different file was in its place and the policy said to leave it.
    Skipped,
    /// It changed at the sender while it was being read. Send it again.
    Changed,
    /// The sender could not read it.
    Unreadable,
    /// An earlier part of it did not belong to it any more. Receive it again.
    Stale,
    /// The receiver could not put it in place.
    Blocked,
}

impl From<wraith::FileStatus> for FileStatus {
    fn from(status: wraith::FileStatus) -> Self {
        use wraith::FileStatus as Told;
        match status {
            Told::Done => Self::Done,
            Told::AlreadyHere => Self::AlreadyHere,
            Told::Skipped => Self::Skipped,
            Told::Changed => Self::Changed,
            Told::Unreadable => Self::Unreadable,
            Told::Stale => Self::Stale,
            Told::Blocked => Self::Blocked,
        }
    }
}

/// Something that happened. Kinds get added: whoever reads has a branch for others.
#[derive(Clone, Debug, uniffi::Enum)]
#[non_exhaustive]
pub enum Event {
    /// Somebody proved the words of the code; the ticket is theirs.
    CodeUsed {
        /// Where.
        place: String,
        /// The NodeId of who has it.
        peer: String,
    },
    /// Somebody tried the code with wrong words: it is burned.
    CodeBurned {
        /// Where.
        place: String,
    },
    /// There is a long code beside the short one, or in its place.
    LongCode {
        /// The code.
        code: String,
    },
    /// The code's time is up, and nobody came.
    CodeExpired,
    /// Nobody can come from this place at present; it is tried again.
    PlaceLost {
        /// The place.
        place: String,
        /// Why.
        why: String,
    },
    /// Somebody can come from this place again.
    PlaceBack {
        /// The place.
        place: String,
    },
    /// The code was used before, by this side; it goes on with what it brought.
    Resumed,
    /// The other side was found.
    Met {
        /// At this meeting place; none: at an address that was known.
        place: Option<String>,
    },
    /// Both sides have authenticated each other.
    Connected {
        /// The other side's NodeId.
        peer: String,
        /// Where it is.
        address: String,
    },
    /// The session goes another way from now on.
    Path {
        /// Where the other side is now.
        address: String,
        /// What leads there: loopback, lan, direct, relay or custom.
        path: String,
    },
    /// What is offered.
    Offered {
        /// The first name.
        name: String,
        /// Files.
        files: u64,
        /// Their bytes.
        bytes: u64,
    },
    /// The receiver accepted.
    Accepted,
    /// A file is settled.
    File {
        /// Its path in the offer, escaped for a terminal.
        path: String,
        /// What became of it.
        status: FileStatus,
        /// Its bytes.
        bytes: u64,
        /// The BLAKE3 of its content, where it is known.
        hash: Option<Vec<u8>>,
    },
    /// Something to know that stops nothing.
    Note {
        /// The path it is about, if it is about one.
        path: String,
        /// What, in words.
        what: String,
    },
    /// The connection was lost; the other side is looked for again, or waited for.
    Lost {
        /// How, in words.
        why: String,
        /// How long this side goes on trying.
        seconds_left: u64,
    },
    /// The receiver has only looked at the offer, which stays good.
    OnlyLooked,
    /// Nobody new can come with the code; who is being served still is.
    NobodyNew {
        /// Why.
        why: String,
    },
    /// A receiver has confirmed everything it could be sent.
    Sent {
        /// Its NodeId.
        receiver: String,
        /// Bytes settled on its last connection.
        bytes: u64,
    },
    /// One of several receivers has everything; the next is waited for.
    Served {
        /// Receivers that have everything.
        done: u32,
        /// How many are wanted, if there is an end.
        wanted: Option<u32>,
    },
    /// One of several receivers did not get everything; the others are served all the same.
    ReceiverFailed {
        /// Why.
        why: String,
    },
    /// This reader was too slow for so many events.
    Lagged {
        /// How many.
        events: u64,
    },
    /// Something that has no kind of its own here.
    Other {
        /// What, in words.
        what: String,
    },
    /// The end: everything is done and confirmed. Nothing follows.
    Done,
    /// The end: it failed, and `finished()` says with which error. Nothing follows.
    Failed {
        /// Why.
        why: String,
    },
}

impl From<Told> for Event {
    fn from(event: Told) -> Self {
        let text = |text: &dyn ToString| text.to_string();
        let place = |at| match at {
            wraith::FoundAt::Address => None,
            wraith::FoundAt::Place(place) => Some(place.to_string()),
        };
        match event {
            Told::CodeUsed { place, peer } => {
                Self::CodeUsed { place: text(&place), peer: text(&peer) }
            }
            Told::CodeBurned(place) => Self::CodeBurned { place: text(&place) },
            Told::LongCode(code) => Self::LongCode { code: text(&code) },
            Told::CodeExpired => Self::CodeExpired,
            Told::PlaceLost { place, why } => {
                Self::PlaceLost { place: text(&place), why: text(&why) }
            }
            Told::PlaceBack(place) => Self::PlaceBack { place: text(&place) },
            Told::Resumed => Self::Resumed,
            Told::Met(at) => Self::Met { place: place(at) },
            Told::Connected { peer, remote, .. } => {
                Self::Connected { peer: text(&peer), address: text(&remote) }
            }
            Told::Path { remote, route, .. } => {
                Self::Path { address: text(&remote), path: route.kind.name().to_owned() }
            }
            Told::Offered(offer) => {
                Self::Offered { name: offer.name, files: offer.files, bytes: offer.bytes }
            }
            Told::Accepted => Self::Accepted,
            Told::File { path, status, bytes, root, .. } => {
                Self::File { path, status: status.into(), bytes, hash: root.map(Vec::from) }
            }
            Told::Note { path, what } => Self::Note { path, what },
            Told::Unremembered(what) => Self::Note { path: String::new(), what },
            Told::Lost { why, seconds_left } => Self::Lost { why, seconds_left },
            Told::OnlyLooked => Self::OnlyLooked,
            Told::NobodyNew(error) => Self::NobodyNew { why: text(&error) },
            Told::Sent { report, bytes } => Self::Sent { receiver: text(&report.receiver), bytes },
            Told::Served { done, of } => Self::Served { done, wanted: of },
            Told::ReceiverFailed(error) => Self::ReceiverFailed { why: text(&error) },
            Told::Lagged(events) => Self::Lagged { events },
            Told::Done => Self::Done,
            Told::Failed(error) => Self::Failed { why: text(&error) },
            other => Self::Other { what: format!("{other:?}") },
        }
    }
}

/// A stream of events that several readers may pull from: each event goes to one of them.
#[derive(Debug)]
pub(crate) struct Pull(Mutex<wraith::Events>);

impl Pull {
    pub fn new(events: wraith::Events) -> Self {
        Self(Mutex::new(events))
    }

    /// None after the end.
    pub async fn next(&self) -> Option<Event> {
        self.0.lock().await.next().await.map(Event::from)
    }
}
