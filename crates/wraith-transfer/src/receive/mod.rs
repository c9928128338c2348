//! The receiver: fetches an offer into a directory over one connection (SPEC §10).
//!
//! Threads:
//!
//! - One thread reads the manifest, inspects the disk and sends Want messages (the requests for
//!   files).
//! - Each data stream has one thread, which parses, verifies and writes in place. A byte thus never
//!   changes threads after it has left the receive buffer.
//! - One thread detects stalls.
//! - The calling thread waits for the end and signs the receipt.
//!
//! The threads share the wanted files in [`OutstandingFiles`].

mod completed_files;
mod data;
mod decide;
mod delta;
mod delta_files;
mod delta_records;
mod earlier_names;
mod entries;
mod incoming;
mod manifest;
mod naming;
mod negotiate;
mod options;
mod outstanding;
mod parallel;
mod placement;
mod plan;
mod preview;
mod protected_objects;
mod pushes;
mod renamed_folders;
mod send_receipt;
mod shown;
mod stream;
mod stream_target;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use wraith_files::{
    Change, Committed, Error, Existing, Kind, OnConflict, Outcome, RelPath, Root, TargetDir,
};
use wraith_transport::{Connection, RecvStream};

use crate::content_digest::ContentDigest;
use crate::control::{ControlReader, ControlWriter};
use crate::error::TransferError;
use crate::events::{Event, Events, InPlace};
use crate::exception::{Exception, FileStatus};
use crate::limits::PUSH_BYTES_MAX;
use crate::local_folders::LocalFolders;
use crate::lock::lock;
use crate::message::{DiskBusy, Excepted, Message, Offer};
use crate::progress::Progress;
use crate::receipt::{Durability, Receipt};
use crate::role::Role;
use crate::session::Session;
use completed_files::CompletedFiles;
use delta_files::DeltaFiles;
use entries::{Entries, ManifestEnd};
use incoming::Incoming;
use naming::Naming;
use negotiate::{Negotiated, Tree, negotiate, part_key, wanted_connections};
pub use options::{Decide, Decision, ReceiveOptions, ReceiveReport};
use outstanding::OutstandingFiles;
use placement::Placed;
pub use plan::{Action, Planned};
pub use preview::{Conflicts, Preview, PreviewOutcome, Previewed, Proposal};
use protected_objects::ProtectedObjects;
use pushes::Pushes;
use renamed_folders::RenamedFolders;
use send_receipt::send_receipt;
pub use shown::Shown;
pub use stream_target::StreamTarget;

/// Number of repeated checks for a deletion of the target after a file has disappeared. They take a
/// third of a second in all.
const DELETION_LOOKS: u32 = 10;
const DELETION_PAUSE: Duration = Duration::from_millis(30);

/// State shared by the receiver's threads.
pub(crate) struct Receiving<'a> {
    session: &'a Session,
    events: &'a dyn Events,
    progress: &'a Progress,
    offer: &'a Offer,
    target: &'a TargetDir,
    conflicts: Conflicts,
    /// True if an object may be replaced.
    may_overwrite: bool,
    /// The accepted part of the offer, if it was not accepted completely.
    within: Option<Shown>,
    /// True if both sides wait for the disk.
    sync: bool,
    naming: Naming,
    /// True if both sides support deltas.
    delta: bool,
    deltas: DeltaFiles,
    /// Key of this transfer's part files. Parts of other transfers and senders must not be
    /// continued.
    part_key: [u8; 32],
    completed: CompletedFiles,
    renamed: RenamedFolders,
    table: OutstandingFiles<Incoming>,
    pushes: Pushes,
    /// Number of open part files.
    open_files: AtomicU64,
    /// Objects that no entry may replace.
    protected: Mutex<ProtectedObjects>,
    contents: Mutex<ContentDigest>,
    /// Entries that the sender sent but this side lacks; not yet reported.
    exceptions: Mutex<Vec<Excepted>>,
    manifest_end: OnceLock<ManifestEnd>,
    counts: Counts,
}

impl Receiving<'_> {
    /// Returns true if the sender owes data. Called when nothing has moved for a while. If this
    /// side is busy with its disk, reports that to the waiting sender.
    fn is_due(&self, writer: &Mutex<ControlWriter>) -> bool {
        // A thread that holds the writer is sending a message already. The stall check must not
        // wait for a peer that does not read.
        if self.session.is_not_reading()
            && let Ok(mut writer) = writer.try_lock()
        {
            let told = writer.send_if_room(self.session, &Message::DiskBusy(DiskBusy {}));
            self.session.run_or_fail(|| told);
        }
        self.table.is_due()
    }

    /// Flushes names and metadata to disk, if requested. Returns the durability reached.
    fn reached(&self) -> Result<Durability, TransferError> {
        if !self.sync {
            return Ok(Durability::NotAwaited);
        }
        let synced = self.progress.at_disk(|| self.target.sync());
        match synced.map_err(|error| self.disk(&error))? {
            true => Ok(Durability::OnDisk),
            false => Ok(Durability::CannotSync),
        }
    }

    /// Fails if the target folder was deleted. Writes would still succeed, but the files would be
    /// lost in the end.
    fn check_target(&self) -> Result<(), TransferError> {
        if self.target.is_deleted() { Err(self.is_deleted()) } else { Ok(()) }
    }

    fn is_being_deleted(&self) -> bool {
        (0..DELETION_LOOKS).any(|_| {
            thread::sleep(DELETION_PAUSE);
            self.target.is_deleted()
        })
    }

    fn is_deleted(&self) -> TransferError {
        self.session.disk("the target folder was deleted")
    }

    /// Converts a disk error to the error of the transfer.
    fn disk(&self, error: &Error) -> TransferError {
        match error {
            Error::UnsafeName(name) => name.into(),
            _ if self.target.is_deleted() => self.is_deleted(),
            // A user who deletes a folder deletes its contents first.
            error if error.is_not_found() && self.is_being_deleted() => self.is_deleted(),
            other => self.session.disk(other),
        }
    }

    /// Reports an error that concerns only the entry offered as `path`. Returns an error that would
    /// affect every other file too.
    fn record_unless_fatal(&self, path: &RelPath, error: Error) -> Result<(), TransferError> {
        let local = matches!(
            error,
            Error::Permission { .. }
                | Error::InTheWay { .. }
                | Error::Exists { .. }
                | Error::InUse { .. }
                | Error::Changed { .. }
        ) || error.is_entry_refused();
        if !local || self.target.is_deleted() {
            return Err(self.disk(&error));
        }
        let path = path.display().to_string();
        let mut what = error.about(&path);
        if error.is_entry_refused() {
            what.push_str(
                ". The target's file system does not allow this name, size or type: change it at \
                 the sender, or receive into another folder (-o)",
            );
        }
        self.events.event(Event::Note { path: &path, what: &what });
        Ok(())
    }

    /// Records an entry that this side lacks, with a reason known to the sender. `root` is the
    /// sender's root, if it has reported one.
    fn excepted(&self, number: u32, placed: &Placed, exception: Exception, root: Option<[u8; 32]>) {
        self.excepted_as(number, placed, (exception, None), root);
    }

    /// Like [`Self::excepted`], with the change at the sender, if it has reported one.
    fn excepted_as(
        &self,
        number: u32,
        placed: &Placed,
        (exception, change): (Exception, Option<Change>),
        root: Option<[u8; 32]>,
    ) {
        lock(&self.contents).except(number, exception);
        let counts = &self.counts;
        let count = if exception.is_failure() { &counts.failed } else { &counts.skipped };
        count.fetch_add(1, Relaxed);
        let bytes = placed.entry.size();
        let absent = InPlace::Absent { bytes, entry: number, exception, root };
        self.in_place(&placed.offered, absent);
        if matches!(placed.entry.kind, Kind::File { .. }) {
            self.resolved(placed, exception.status(), None, change);
        }
    }

    /// Like [`Self::excepted`], for an entry that the sender has sent or that is not a file. It is
    /// reported before the receipt.
    fn lacks(&self, number: u32, placed: &Placed, exception: Exception, root: Option<[u8; 32]>) {
        let (entry, reason) = (number.into(), exception.number().into());
        lock(&self.exceptions).push(Excepted { entry, reason });
        self.excepted(number, placed, exception, root);
    }

    /// Returns the conflict policy of an entry. Without a name of its own, an entry replaces nothing
    /// and is not skipped: the object there may be another entry.
    fn policy(&self, placed: &Placed) -> OnConflict {
        if placed.may_replace { self.conflicts.at(&placed.offered) } else { OnConflict::Rename }
    }

    /// Names an entry by its conflict policy, but never replaces an object of another entry.
    fn place(
        &self,
        placed: &Placed,
        name: impl FnOnce(OnConflict) -> Result<Committed, Error>,
    ) -> Result<Committed, Error> {
        if !self.may_overwrite {
            return name(self.policy(placed));
        }
        // Held during the naming: no other thread may replace the object before it is protected.
        let mut protected = lock(&self.protected);
        let policy = match self.policy(placed) {
            OnConflict::Overwrite if self.is_protected(&protected, &placed.entry.path) => {
                OnConflict::Rename
            }
            policy => policy,
        };
        let committed = name(policy)?;
        let is_own = committed.path == placed.entry.path
            && (placed.may_replace || committed.outcome != Outcome::AlreadyHere);
        if let Some(stamp) = committed.stamp.filter(|_| !is_own) {
            protected.protect(&stamp);
        }
        Ok(committed)
    }

    /// Returns true if an entry relies on the object at `path`.
    fn is_protected(&self, protected: &ProtectedObjects, path: &RelPath) -> bool {
        let is_protected = |there: Existing| protected.contains(&there.stamp);
        !protected.is_empty()
            && self.target.existing(path).is_ok_and(|there| there.is_some_and(is_protected))
    }

    /// Protects the object at `path`, which an entry may turn out to rely on.
    fn protect(&self, path: &RelPath) {
        if self.may_overwrite {
            // Held during the inspection: no other thread may replace the object meanwhile.
            let mut protected = lock(&self.protected);
            if let Ok(Some(there)) = self.target.existing(path) {
                protected.protect(&there.stamp);
            }
        }
    }

    /// Reports that the entry offered as `offered` got `name` instead of its own name.
    fn renamed(&self, placed: &Placed, name: &RelPath) {
        let offered = &placed.offered;
        let why = match (placed.may_replace, self.conflicts.at(offered)) {
            (true, OnConflict::Overwrite) => {
                "a folder that is not empty, or a file that this transfer needs, has this name"
            }
            (false, OnConflict::Overwrite | OnConflict::Skip) => {
                "the name is taken by an object that did not have exactly this name before"
            }
            _ => "the name is taken",
        };
        let what = format!("{why}; the new one is called {}", name.display());
        self.events.event(Event::Note { path: &offered.display(), what: &what });
    }

    /// Reports the final state of an entry in the target under `path`.
    fn in_place(&self, path: &RelPath, what: InPlace<'_>) {
        self.events.event(Event::InPlace { path, what });
    }

    fn resolved(
        &self,
        placed: &Placed,
        status: FileStatus,
        root: Option<Root>,
        change: Option<Change>,
    ) {
        self.progress.add_files(1);
        let (path, bytes) = (placed.offered.display(), placed.entry.size());
        let root = root.map(|root| (placed.entry.tree(), root));
        self.events.event(Event::File { path: &path, status, bytes, root, change });
    }
}

/// Counts of the results of files.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    moved: AtomicU64,
    identical: AtomicU64,
    skipped: AtomicU64,
    failed: AtomicU64,
    bytes_moved: AtomicU64,
    bytes_verified: AtomicU64,
}

/// Fetches the transfer named by `options.secret` and blocks until it is complete or has failed.
/// After that, the connection is closed, with the reason for the sender. [`ReceiveOptions::cancel`]
/// ends the transfer at any stage. It does not interrupt `decide`, the writer of a
/// [`StreamTarget::output`], or a single file system call.
pub fn receive(
    connection: Connection,
    mut options: ReceiveOptions<'_>,
) -> Result<ReceiveReport, TransferError> {
    let session = Session::new(
        connection,
        Role::Receiver,
        &options.cancel,
        LocalFolders::target(&options.target),
    );
    let result = session.catch_panic(|| match negotiate(&session, &mut options)? {
        Negotiated::Tree(tree) => run(&session, &options, *tree),
        Negotiated::Stream(stream) => stream::run(&session, &options, *stream),
    });
    session.conclude(result)
}

fn run(
    session: &Session,
    options: &ReceiveOptions<'_>,
    tree: Tree,
) -> Result<ReceiveReport, TransferError> {
    let Tree { reader, writer, delta, durability, offer, target, .. } = tree;
    let (conflicts, completed, data) = (tree.conflicts, tree.completed, tree.data);
    let part_key = part_key(session, options);
    let receiving = Receiving {
        session,
        events: &*options.events,
        progress: &options.progress,
        offer: &offer,
        target: &target,
        may_overwrite: conflicts.may(OnConflict::Overwrite),
        conflicts,
        within: tree.within,
        sync: options.sync && offer.no_sync != Some(true),
        naming: Naming::new(),
        delta,
        deltas: DeltaFiles::default(),
        part_key,
        completed,
        renamed: RenamedFolders::look(&target, &offer.transfer_id, &part_key),
        table: OutstandingFiles::new(),
        pushes: Pushes::new(if options.push { PUSH_BYTES_MAX } else { 0 }),
        open_files: AtomicU64::new(0),
        protected: Mutex::default(),
        contents: Mutex::default(),
        exceptions: Mutex::default(),
        manifest_end: OnceLock::new(),
        counts: Counts::default(),
    };
    let streams = Streams { reader, writer: Mutex::new(writer), manifest: tree.manifest, data };
    let end = work(&receiving, options, streams, durability);
    // This is done after a failure, too: completed files then need no comparison of content next
    // time.
    receiving.completed.close();
    session.outcome()?;
    let (receipt, confirmed) = end.expect("without an error there is a receipt")?;
    if receipt.failed == 0 {
        receiving.completed.remove();
        receiving.renamed.remove();
    }
    if let Some(now) = target.moved_from(&options.target) {
        let (path, now) = (options.target.display(), now.display().to_string());
        let what = format!("this folder was moved during the transfer; the files are in {now}");
        options.events.event(Event::Note { path: &path, what: &what });
    }
    options.events.event(Event::Done { receipt: &receipt });
    let counts = &receiving.counts;
    Ok(ReceiveReport {
        sender: session.connection.peer(),
        files: counts.moved.load(Relaxed),
        bytes_moved: counts.bytes_moved.load(Relaxed),
        wire_bytes: session.wire_bytes(),
        connections: session.used_connections(),
        already_here: counts.identical.load(Relaxed),
        skipped: counts.skipped.load(Relaxed),
        failed: counts.failed.load(Relaxed),
        // More may have been left out than at the time of the offer.
        left_out: receiving.manifest_end.get().expect("the manifest ended").left_out,
        receipt,
        confirmed,
        offer: offer.clone(),
    })
}

/// The streams of an accepted tree.
struct Streams {
    reader: ControlReader,
    writer: Mutex<ControlWriter>,
    manifest: Entries,
    data: Vec<RecvStream>,
}

/// Receives everything, with a thread for each stream and task, and sends the receipt. Returns the
/// result of sending the receipt, or `None` after an error recorded in the session.
fn work(
    receiving: &Receiving<'_>,
    options: &ReceiveOptions<'_>,
    streams: Streams,
    durability: bool,
) -> Option<Result<(Receipt, bool), TransferError>> {
    let session = receiving.session;
    let Streams { reader, writer, manifest, data } = streams;
    let mut end = None;
    // Kept even without parallel connections, so that the stream is not stopped.
    let mut reader = Some(reader);
    std::thread::scope(|scope| {
        let writer = &writer;
        let stop = || {
            receiving.table.stop();
            receiving.deltas.stop();
            receiving.naming.stop();
        };
        let naming = scope.spawn(move || session.run_or_fail(|| naming::work(receiving)));
        for stream in data {
            scope.spawn(move || session.run_or_fail(|| data::receive(receiving, stream)));
        }
        if wanted_connections(options).is_some() {
            let (reader, parallel) = (reader.take(), &options.parallel);
            scope.spawn(move || {
                let reader = reader.expect("nobody else takes it");
                session.run_or_fail(|| parallel::join(scope, receiving, reader, parallel));
            });
        }
        scope.spawn(move || {
            session.watch(|| receiving.is_due(writer), || receiving.check_target(), stop)
        });
        let reading = scope.spawn(move || {
            let mut links = Vec::new();
            session.run_or_fail(|| {
                links = manifest::receive(receiving, manifest, writer)?;
                Ok(())
            });
            links
        });
        if receiving.delta {
            scope.spawn(move || session.run_or_fail(|| delta::work(receiving, writer)));
        }
        session.run_or_fail(|| {
            let resolved = receiving.table.wait_until_resolved();
            let links = reading.join().expect("the manifest thread does not panic");
            receiving.deltas.stop();
            receiving.naming.end();
            naming.join().expect("the naming thread does not panic");
            if resolved && !session.is_over() {
                manifest::finish_tree(receiving, links, writer)?;
                let reached = receiving.reached()?;
                let said = durability.then_some(reached as u8);
                end = Some(send_receipt(receiving, options, said, &mut lock(writer)));
                session.close_parallel();
            }
            Ok(())
        });
    });
    end
}
