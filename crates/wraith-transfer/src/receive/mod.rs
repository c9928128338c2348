//! The receiver: fetches an offer into a directory over one connection (SPEC §10).
//!
//! Threads: one reads the manifest, looks at the disk and sends Wants; each data stream has one that parses, verifies and
//! writes in place, so a byte never changes threads after it left the receive buffer; one watches for a stall; this one
//! waits for the end and signs the receipt. They share the [`Table`] of wanted files.

mod data;
mod decide;
mod delta;
mod deltas;
mod entries;
mod incoming;
mod lanes;
mod manifest;
mod marks;
mod preview;
mod stream;
mod table;
mod wants;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use wraith_core::CloseReason;
use wraith_crypto::{NodeId, SecretIdentity};
use wraith_files::{Entry, Error, OnConflict, Placing, RelPath, TargetDir};
use wraith_transport::{Connection, RecvStream, block_on_timeout};

use crate::contents::Contents;
use crate::control::{ControlReader, ControlWriter};
use crate::error::{Role, TransferError, close};
use crate::events::{Cancel, Event, Events, FileStatus, InPlace};
use crate::lanes::Lanes;
use crate::limits::{
    DATA_STREAMS_MAX, GREETING_TIMEOUT, NAME_BYTES_MAX, OFFER_TIMEOUT, RECEIPT_TIMEOUT, VERSION,
};
use crate::message::{Accept, FEATURE_DELTA, Fetch, Hello, Message, Offer};
use crate::progress::Progress;
use crate::receipt::Receipt;
use crate::session::{Session, lock};
use deltas::Deltas;
use entries::Entries;
use incoming::Incoming;
use marks::{Marks, MarksError};
pub use preview::{Conflicts, Fate, Preview, Previewed, Proposal};
pub use stream::StreamTarget;
use table::Table;

/// The answer to an offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Fetch it.
    Accept,
    /// Fetch it, and do this about names that are taken, whatever [`ReceiveOptions::on_conflict`] says.
    AcceptWith(Conflicts),
    /// Do not; the sender is told why (may be empty).
    Refuse(String),
    /// Not now: this was only a look. The sender goes on waiting.
    Later,
}

/// Asked once, with the offer, before anything is fetched; may take as long as a person needs.
pub type Decide<'a> = dyn FnMut(&Proposal<'_>) -> Decision + Send + 'a;

/// What to fetch, where to, and who wants to know.
pub struct ReceiveOptions<'a> {
    /// The directory that everything is created in; made, with its parents, when the offer is accepted.
    pub target: PathBuf,
    /// The capability secret of the ticket.
    pub secret: [u8; 16],
    /// The same on every connection of one run of the program, another in every run.
    pub instance: Option<u64>,
    /// Signs the receipt; must be the identity the connection was made with.
    pub identity: SecretIdentity,
    /// What to do where a different file is in the way.
    pub on_conflict: OnConflict,
    /// Where it goes if it is one stream of bytes.
    pub stream: StreamTarget,
    /// Ask the sender to send no more than this many bytes a second.
    pub rate: Option<u64>,
    /// Look at the names before the offer is decided, so that [`Proposal::preview`] has them.
    pub preview: bool,
    /// Accepts or refuses the offer.
    pub decide: Box<Decide<'a>>,
    /// Further connections, if the sender makes them too.
    pub lanes: Lanes,
    /// Of files of which an old copy is in the way, fetch only what differs, if the sender can tell.
    pub delta: bool,
    /// Write every file through to the disk before it gets its name (slower; survives a power cut at any moment).
    pub sync: bool,
    /// Live counters.
    pub progress: Arc<Progress>,
    /// Told what happens.
    pub events: Arc<dyn Events>,
    /// Stops it from another thread.
    pub cancel: Cancel,
}

impl<'a> ReceiveOptions<'a> {
    /// Options that accept everything, rename on conflict, and tell nobody anything.
    pub fn new(target: PathBuf, secret: [u8; 16], identity: SecretIdentity) -> Self {
        Self {
            target,
            secret,
            instance: None,
            identity,
            on_conflict: OnConflict::Rename,
            stream: StreamTarget::folder(),
            rate: None,
            lanes: Lanes::default(),
            preview: false,
            decide: Box::new(|_| Decision::Accept),
            delta: true,
            sync: false,
            progress: Arc::default(),
            events: Arc::new(()),
            cancel: Cancel::default(),
        }
    }
}

impl std::fmt::Debug for ReceiveOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReceiveOptions").field("target", &self.target).finish_non_exhaustive()
    }
}

/// How a transfer ended at the receiver: every file that is not counted as failed is here, verified, under its name.
#[derive(Clone, Debug)]
pub struct ReceiveReport {
    /// What was offered.
    pub offer: Offer,
    /// What this side signed.
    pub receipt: Receipt,
    /// Who sent it.
    pub sender: NodeId,
    /// Files that were moved, whole or in part.
    pub files: u64,
    /// Bytes of file content that came over the connection.
    pub bytes_moved: u64,
    /// Bytes of all its datagrams, both ways.
    pub wire_bytes: u64,
    /// Connections that carried the data.
    pub lanes: u64,
    /// Files that were here already.
    pub already_here: u64,
    /// Files left alone because a different one is in the way ([`OnConflict::Skip`]).
    pub skipped: u64,
    /// Files that did not arrive.
    pub failed: u64,
    /// False if the sender vanished before it could confirm that it has the receipt.
    pub confirmed: bool,
}

impl ReceiveReport {
    /// Files, folders and links that the sender could not offer, as it says.
    pub fn left_out(&self) -> u64 {
        self.offer.left_out.unwrap_or(0)
    }

    /// [`TransferError::Partial`] if anything is missing.
    pub fn outcome(&self) -> Result<(), TransferError> {
        TransferError::partial(Role::Receiver, self.failed, self.offer.files, self.left_out())
    }
}

/// What the receiver's threads share.
pub(crate) struct Receiving<'a> {
    session: &'a Session,
    events: &'a dyn Events,
    progress: &'a Progress,
    offer: &'a Offer,
    target: &'a TargetDir,
    conflicts: Conflicts,
    sync: bool,
    /// Both sides want old copies to be used.
    delta: bool,
    deltas: Deltas,
    /// Part files of other transfers and senders are not ours to continue.
    part_key: [u8; 32],
    marks: Marks,
    table: Table<Incoming>,
    /// Part files open now.
    open_files: AtomicU64,
    contents: Mutex<Contents>,
    manifest_hash: OnceLock<[u8; 32]>,
    counts: Counts,
}

impl Receiving<'_> {
    /// How a file with this path gets its name.
    fn placing(&self, path: &RelPath) -> Placing {
        Placing { on_conflict: self.conflicts.at(path), sync: self.sync }
    }

    /// What a disk error means for the transfer.
    fn disk(&self, error: &Error) -> TransferError {
        match error {
            Error::UnsafeName(name) => TransferError::UnsafeName { what: name.to_string() },
            other => self.session.disk(other),
        }
    }

    /// Tells the user about an error that concerns only `entry`; gives back one that would meet every other file too.
    fn note_unless_fatal(&self, entry: &Entry, error: Error) -> Result<(), TransferError> {
        let local = matches!(
            error,
            Error::Permission { .. }
                | Error::InTheWay { .. }
                | Error::Exists { .. }
                | Error::InUse { .. }
                | Error::Changed { .. }
        ) || error.is_name_refused();
        if !local {
            return Err(self.disk(&error));
        }
        let path = entry.path.display().to_string();
        self.events.event(Event::Note { path: &path, what: &error.about(&path) });
        Ok(())
    }

    /// A file that is not wanted.
    fn passed(&self, entry: &Entry, status: FileStatus) {
        let counts = &self.counts;
        let count = match status {
            FileStatus::Skipped => &counts.skipped,
            FileStatus::Blocked => &counts.failed,
            _ => &counts.kept,
        };
        count.fetch_add(1, Relaxed);
        self.settled(entry, status, None);
    }

    /// An entry stands in the target under `path`.
    fn in_place(&self, path: &RelPath, what: InPlace<'_>) {
        self.events.event(Event::InPlace { path, what });
    }

    fn settled(&self, entry: &Entry, status: FileStatus, root: Option<[u8; 32]>) {
        self.progress.add_files(1);
        let (path, bytes) = (entry.path.display(), entry.size());
        self.events.event(Event::File { path: &path, status, bytes, root });
    }
}

/// What became of the files.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    moved: AtomicU64,
    identical: AtomicU64,
    kept: AtomicU64,
    skipped: AtomicU64,
    failed: AtomicU64,
    bytes_moved: AtomicU64,
    bytes_verified: AtomicU64,
}

/// Fetches what `options.secret` names and blocks until it is complete or the transfer failed. The connection is closed
/// then, and the sender told why.
pub fn receive(
    connection: Connection,
    mut options: ReceiveOptions<'_>,
) -> Result<ReceiveReport, TransferError> {
    let session = Session::new(connection, Role::Receiver, options.cancel.clone());
    let result = greet(&session, &mut options).and_then(|greeting| match greeting {
        Greeting::Tree(tree) => run(&session, &options, *tree),
        Greeting::Stream { offer, placing, control } => {
            stream::run(&session, &options, &offer, placing, control)
        }
    });
    match &result {
        Ok(_) => session.connection.close(close::DONE, ""),
        Err(error) => session.fail(error.clone()),
    }
    result
}

/// An offer that was accepted.
enum Greeting {
    Tree(Box<Tree>),
    /// One stream of bytes, whose Accept is not sent yet.
    Stream {
        offer: Offer,
        placing: Placing,
        control: (ControlReader, ControlWriter),
    },
}

/// The streams after the Offer of a tree was accepted.
struct Tree {
    /// Kept in any case, so that the stream is not stopped.
    reader: ControlReader,
    writer: ControlWriter,
    delta: bool,
    offer: Offer,
    target: TargetDir,
    conflicts: Conflicts,
    marks: Marks,
    manifest: Entries,
    data: Vec<RecvStream>,
}

/// Hello, Fetch, Offer, Accept.
fn greet(session: &Session, options: &mut ReceiveOptions<'_>) -> Result<Greeting, TransferError> {
    let opened = session.wait(session.connection.open_stream());
    let (send, recv) = opened.map_err(|reason| session.lost(&reason))?;
    let (mut reader, mut writer) = (ControlReader::new(recv), ControlWriter::new(send));
    let features = options.delta.then_some(FEATURE_DELTA);
    writer.send(session, &Message::Hello(Hello { version: VERSION, role: 2, features }))?;
    writer.send(
        session,
        &Message::Fetch(Fetch {
            secret: options.secret,
            instance: options.instance,
            stream: options.stream.is_output().then_some(true),
        }),
    )?;
    let delta = match reader.next_within(session, GREETING_TIMEOUT)? {
        Message::Hello(hello) if hello.role == 1 && hello.version >= 1 => {
            options.delta && hello.has(FEATURE_DELTA)
        }
        other => return Err(session.protocol(format!("{} instead of Hello", other.name()))),
    };
    let (peer, remote) = (session.connection.peer(), session.connection.remote());
    options.progress.connected(remote);
    options.events.event(Event::Connected { peer, remote, instance: options.instance });
    let offer = match reader.next_within(session, OFFER_TIMEOUT)? {
        Message::Offer(offer) => check_offer(session, options, offer)?,
        other => return Err(session.protocol(format!("{} instead of Offer", other.name()))),
    };
    options.events.event(Event::Offer(&offer));
    if offer.stream == Some(true) {
        let (conflicts, _) = propose(session, options, &offer)?;
        let placing = Placing { on_conflict: conflicts.otherwise, sync: options.sync };
        return Ok(Greeting::Stream { offer, placing, control: (reader, writer) });
    }
    if options.stream.is_output() {
        return Err(TransferError::NoStream);
    }
    let (conflicts, ahead) = propose(session, options, &offer)?;
    // The target is not touched before the user accepted.
    let target = make_target(session, options)?;
    let marks = open_marks(session, options, &target)?;
    options.progress.start(&offer);
    let lanes = wanted_lanes(options);
    writer.send(session, &Message::Accept(Accept { have: None, rate: options.rate, lanes }))?;
    options.events.event(Event::Accepted);
    let manifest = match ahead {
        Some(entries) => entries,
        None => Entries::new(accept_stream(session)?, &offer),
    };
    let data: Result<_, _> = (0..offer.data_streams).map(|_| accept_stream(session)).collect();
    let data = data?;
    let tree = Tree { reader, writer, delta, offer, target, conflicts, marks, manifest, data };
    Ok(Greeting::Tree(Box::new(tree)))
}

/// Lanes that the sender may open; none where the rate is limited.
fn wanted_lanes(options: &ReceiveOptions<'_>) -> Option<u64> {
    let most = options.lanes.most() as u64;
    (most > 0 && options.rate.is_none()).then_some(most)
}

/// Puts the offer to the user, with the names if they are wished for. Returns the conflict policy, and the manifest as far
/// as it was read.
fn propose(
    session: &Session,
    options: &mut ReceiveOptions<'_>,
    offer: &Offer,
) -> Result<(Conflicts, Option<Entries>), TransferError> {
    let (mut ahead, mut seen) = (None, None);
    if options.preview && offer.stream != Some(true) {
        let stream =
            session.wait_within(preview::patience(), session.connection.accept_stream())?;
        let mut complete = false;
        if let Some(stream) = stream {
            let (_unused, stream) = stream.map_err(|reason| session.lost(&reason))?;
            complete = preview::read_ahead(session, ahead.insert(Entries::new(stream, offer)))?;
        }
        // What is not there yet would be made; other errors are told when it is made.
        let target = TargetDir::open(&options.target).ok();
        let key = part_key(session, options);
        let look = |entries| preview::preview(entries, complete, target.as_ref(), &key);
        seen = Some(ahead.as_ref().map(look).unwrap_or_default());
    }
    let (sender, remote) = (session.connection.peer(), session.connection.remote());
    let proposal = Proposal { offer, sender, remote, preview: seen.as_ref() };
    match (options.decide)(&proposal) {
        Decision::Accept => {
            let otherwise = options.on_conflict;
            Ok((Conflicts { otherwise, ..Conflicts::default() }, ahead))
        }
        Decision::AcceptWith(conflicts) => Ok((conflicts, ahead)),
        Decision::Refuse(why) => Err(TransferError::Refused { why }),
        Decision::Later => Err(TransferError::Later),
    }
}

fn make_target(
    session: &Session,
    options: &ReceiveOptions<'_>,
) -> Result<TargetDir, TransferError> {
    let shown = options.target.display();
    std::fs::create_dir_all(&options.target)
        .map_err(|error| session.disk(format!("cannot make the folder {shown}: {error}")))?;
    TargetDir::open(&options.target).map_err(|error| session.disk(format!("{shown}: {error}")))
}

fn check_offer(
    session: &Session,
    options: &ReceiveOptions<'_>,
    mut offer: Offer,
) -> Result<Offer, TransferError> {
    let sane = offer.transfer_id == crate::transfer_id(&options.secret)
        && (1..=DATA_STREAMS_MAX).contains(&offer.data_streams)
        && offer.name.len() <= NAME_BYTES_MAX;
    if !sane {
        return Err(session.protocol("an Offer that makes no sense"));
    }
    offer.name = crate::error::shown(&offer.name);
    Ok(offer)
}

fn open_marks(
    session: &Session,
    options: &ReceiveOptions<'_>,
    target: &TargetDir,
) -> Result<Marks, TransferError> {
    // Another sender's NodeId makes another key: it cannot claim files that this one has finished.
    let key = part_key(session, options);
    let id = crate::transfer_id(&options.secret);
    Marks::open(target, &id, &key, &boot_id()).map_err(|error| match error {
        MarksError::InUse => TransferError::Other {
            what: format!(
                "another wraith is already receiving this into {}. Wait for it, or choose another folder",
                options.target.display()
            ),
        },
        MarksError::Disk(error) => session.disk(format!("{}: {error}", options.target.display())),
        MarksError::Io(error) => session.disk(format!("{}: {error}", options.target.display())),
    })
}

/// Identifies the run of this machine. Where the system does not tell, something that never comes again, so that marks
/// never count.
fn boot_id() -> Vec<u8> {
    std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_else(|_| {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
        since_epoch.unwrap_or_default().as_nanos().to_be_bytes().to_vec()
    })
}

/// Binds what is left behind in the target to the secret and the sender.
fn part_key(session: &Session, options: &ReceiveOptions<'_>) -> [u8; 32] {
    let material = [&options.secret[..], &session.connection.peer().0].concat();
    wraith_crypto::kdf::derive("wraith/1 part key", &material)
}

fn accept_stream(session: &Session) -> Result<RecvStream, TransferError> {
    let accepted = session.wait_within(GREETING_TIMEOUT, session.connection.accept_stream())?;
    let Some(accepted) = accepted else {
        return Err(session.protocol("it does not open its streams"));
    };
    let (_unused, recv) = accepted.map_err(|reason| session.lost(&reason))?;
    Ok(recv)
}

fn run(
    session: &Session,
    options: &ReceiveOptions<'_>,
    tree: Tree,
) -> Result<ReceiveReport, TransferError> {
    let Tree { reader, writer, delta, offer, target, conflicts, marks, manifest, data } = tree;
    let receiving = Receiving {
        session,
        events: &*options.events,
        progress: &options.progress,
        offer: &offer,
        target: &target,
        conflicts,
        sync: options.sync,
        delta,
        deltas: Deltas::default(),
        part_key: part_key(session, options),
        marks,
        table: Table::new(),
        open_files: AtomicU64::new(0),
        contents: Mutex::default(),
        manifest_hash: OnceLock::new(),
        counts: Counts::default(),
    };
    let mut end = None;
    let writer = Mutex::new(writer);
    // Also without lanes it is kept, so that the stream is not stopped.
    let mut reader = Some(reader);
    std::thread::scope(|scope| {
        let (receiving, writer) = (&receiving, &writer);
        let stop = || {
            receiving.table.stop();
            receiving.deltas.stop();
        };
        for stream in data {
            scope.spawn(move || session.attend(stop, || data::receive(receiving, stream)));
        }
        if wanted_lanes(options).is_some() {
            let (reader, lanes) = (reader.take(), &options.lanes);
            scope.spawn(move || {
                let reader = reader.expect("nobody else takes it");
                session.attend(stop, || lanes::join(scope, receiving, reader, lanes, stop));
            });
        }
        scope.spawn(move || session.watch(|| receiving.table.is_due(), stop));
        let reading = scope.spawn(move || {
            let mut links = Vec::new();
            session.attend(stop, || {
                links = manifest::receive(receiving, manifest, writer)?;
                Ok(())
            });
            links
        });
        if delta {
            scope.spawn(move || session.attend(stop, || delta::work(receiving, writer)));
        }
        session.attend(stop, || {
            let settled = receiving.table.wait_until_settled();
            let links = reading.join().expect("the manifest thread does not panic");
            receiving.deltas.stop();
            if settled {
                manifest::finish_tree(receiving, links)?;
                end = Some(sign_off(receiving, options, &mut lock(writer)));
                session.close_lanes();
            }
            Ok(())
        });
    });
    // Also after a failure: what is finished need not be compared by content next time.
    receiving.marks.close();
    session.outcome()?;
    let (receipt, confirmed) = end.expect("without an error there is a receipt")?;
    if receipt.failed == 0 {
        receiving.marks.remove();
    }
    if let Some(now) = target.moved_from(&options.target) {
        let (path, now) = (options.target.display(), now.display().to_string());
        let what = format!("this folder was moved meanwhile; everything is in {now}");
        options.events.event(Event::Note { path: &path, what: &what });
    }
    options.events.event(Event::Done { receipt: &receipt });
    let counts = &receiving.counts;
    Ok(ReceiveReport {
        sender: session.connection.peer(),
        files: counts.moved.load(Relaxed),
        bytes_moved: counts.bytes_moved.load(Relaxed),
        wire_bytes: session.wire_bytes(),
        lanes: session.used_lanes(),
        already_here: counts.identical.load(Relaxed) + counts.kept.load(Relaxed),
        skipped: counts.skipped.load(Relaxed),
        failed: counts.failed.load(Relaxed),
        receipt,
        confirmed,
        offer: offer.clone(),
    })
}

/// Signs and sends the receipt and waits for the sender to close. Everything is on disk by now: a sender that vanishes
/// here leaves the receipt unconfirmed and nothing else.
fn sign_off(
    receiving: &Receiving<'_>,
    options: &ReceiveOptions<'_>,
    writer: &mut ControlWriter,
) -> Result<(Receipt, bool), TransferError> {
    let (session, counts) = (receiving.session, &receiving.counts);
    let receipt = Receipt {
        manifest: *receiving.manifest_hash.get().expect("the manifest ended, so its hash is known"),
        contents: lock(&receiving.contents).digest(),
        verified: counts.moved.load(Relaxed) + counts.identical.load(Relaxed),
        kept: counts.kept.load(Relaxed) + counts.skipped.load(Relaxed),
        failed: counts.failed.load(Relaxed),
        bytes: counts.bytes_verified.load(Relaxed),
        ..unsigned(receiving.offer)
    };
    conclude(session, options, writer, receipt)
}

/// A receipt of now for `offer`, of nothing yet.
fn unsigned(offer: &Offer) -> Receipt {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    Receipt {
        transfer_id: offer.transfer_id,
        manifest: [0; 32],
        contents: [0; 32],
        verified: 0,
        kept: 0,
        failed: 0,
        bytes: 0,
        unix_seconds: since_epoch.map_or(0, |elapsed| elapsed.as_secs()),
        signature: [0; 64],
    }
}

/// Signs and sends `receipt`, and waits for the sender's goodbye.
fn conclude(
    session: &Session,
    options: &ReceiveOptions<'_>,
    writer: &mut ControlWriter,
    receipt: Receipt,
) -> Result<(Receipt, bool), TransferError> {
    let receipt = receipt.signed(&options.identity);
    // From here on a broken stream is the sender's goodbye.
    session.complete();
    // A connection that is lost now leaves the receipt unconfirmed; closed() tells.
    let _ = writer.send(session, &Message::Receipt(receipt.to_body()));
    let closed = block_on_timeout(session.connection.closed(), RECEIPT_TIMEOUT);
    let confirmed = match closed {
        Some(CloseReason::Peer { code: close::DONE, .. }) => true,
        Some(reason @ CloseReason::Peer { .. }) => return Err(session.lost(&reason)),
        _ => false,
    };
    session.connection.close(close::DONE, "");
    Ok((receipt, confirmed))
}
