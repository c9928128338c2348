//! Compares the lines of a received list with the disk, on several threads.
//!
//! Invariant: it reads nothing outside the folder. Every path is parsed like a path from a peer,
//! and opened beneath the folder without following links.

use std::num::NonZero;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use wraith::state::{ProofError, ReceiptEntry, ReceiptEntryKind};
use wraith_files::{Error, Existing, ExistingKind, RelPath, TargetDir, Tree, shown};
use wraith_transfer::Exception;

use crate::output::{Event, Reporter};
use crate::signals::Signals;

/// Maximum number of threads. More do not read faster from any disk.
const THREADS_MAX: usize = 16;
/// Maximum number of queued lines.
const WAITING_MAX: usize = 1024;

/// The counts of a comparison.
#[derive(Clone, Copy, Debug, Default)]
pub struct ComparisonCounts {
    pub files: u64,
    pub bytes: u64,
    /// Files, folders and links that differ from the received ones.
    pub differ: u64,
    /// Entries of the offer that were not received.
    pub lacking: u64,
}

pub struct Checker<'a> {
    pub target: &'a TargetDir,
    pub reporter: &'a Reporter,
    pub signals: &'a Signals,
}

/// A difference: a word for programs, and a text for people.
struct Difference(&'static str, String);

impl Checker<'_> {
    /// Compares all lines, or those before a signal.
    pub fn run(
        &self,
        mut next_entry: impl FnMut() -> Result<Option<ReceiptEntry>, ProofError>,
    ) -> Result<ComparisonCounts, ProofError> {
        let threads = thread::available_parallelism().map_or(1, NonZero::get).min(THREADS_MAX);
        let (sender, waiting) = sync_channel(WAITING_MAX);
        let waiting = Mutex::new(waiting);
        thread::scope(|scope| {
            let workers: Vec<_> =
                (0..threads).map(|_| scope.spawn(|| self.work(&waiting))).collect();
            let (mut read, mut lacking) = (Ok(()), 0);
            while self.signals.caught().is_none() {
                match next_entry() {
                    Ok(Some(ReceiptEntry {
                        path,
                        kind: ReceiptEntryKind::Absent { exception, .. },
                    })) => {
                        lacking += 1;
                        report_not_received(self.reporter, &shown(&path), exception);
                    }
                    Ok(Some(line)) => {
                        if sender.send(line).is_err() {
                            break;
                        }
                    }
                    Ok(None) => break,
                    Err(error) => {
                        read = Err(error);
                        break;
                    }
                }
            }
            drop(sender);
            let mut sum = ComparisonCounts { lacking, ..ComparisonCounts::default() };
            for worker in workers {
                let found = worker.join().expect("comparing does not panic");
                sum.files += found.files;
                sum.bytes = sum.bytes.saturating_add(found.bytes);
                sum.differ += found.differ;
            }
            read.map(|()| sum)
        })
    }

    fn work(&self, waiting: &Mutex<Receiver<ReceiptEntry>>) -> ComparisonCounts {
        let mut found = ComparisonCounts::default();
        loop {
            let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(line) = next else { return found };
            if self.signals.caught().is_some() {
                continue;
            }
            if let ReceiptEntryKind::File { bytes, .. } = line.kind {
                found.files += 1;
                found.bytes = found.bytes.saturating_add(bytes);
            }
            let Err(Difference(status, message)) = self.compare(&line) else {
                continue;
            };
            if self.signals.caught().is_none() {
                found.differ += 1;
                let path = shown(&line.path);
                self.reporter.event(&Event::Differs { path: &path, status, message: &message });
                self.reporter.print(format!("{path}: {message}"));
            }
        }
    }

    fn compare(&self, line: &ReceiptEntry) -> Result<(), Difference> {
        let path = RelPath::parse(&line.path)
            .map_err(|error| Difference("unreadable", error.to_string()))?;
        let existing = self.target.existing(&path).map_err(|error| unreadable(&error))?;
        let existing = existing.ok_or_else(missing)?;
        let kind = match line.kind {
            ReceiptEntryKind::File { .. } => ExistingKind::File,
            ReceiptEntryKind::Absent { .. } => return Ok(()),
            ReceiptEntryKind::Folder => ExistingKind::Dir,
            ReceiptEntryKind::Link { .. } => ExistingKind::Symlink,
        };
        if existing.kind != kind {
            let (now, then) = (name(existing.kind), name(kind));
            return Err(Difference("kind", format!("it is {now}, and was {then}")));
        }
        match &line.kind {
            ReceiptEntryKind::Folder | ReceiptEntryKind::Absent { .. } => Ok(()),
            ReceiptEntryKind::Link { target } => {
                let now = self.target.link_target(&path).map_err(|error| unreadable(&error))?;
                if now == *target {
                    return Ok(());
                }
                let (now, then) = (shown(&now), shown(target));
                Err(changed(format!("it points to {now}, and pointed to {then}")))
            }
            ReceiptEntryKind::File { bytes, tree, root, .. } => {
                let now = existing.stamp.size;
                if now != *bytes {
                    return Err(changed(format!("it has {now} bytes, and had {bytes}")));
                }
                match self.root(&path, &existing, *tree)? {
                    Some(now) if now != *root => Err(changed("its content has changed".into())),
                    _ => Ok(()),
                }
            }
        }
    }

    /// Returns the root hash of a file; None after a signal.
    fn root(
        &self,
        path: &RelPath,
        existing: &Existing,
        tree: Tree,
    ) -> Result<Option<[u8; 32]>, Difference> {
        let source =
            self.target.open_existing(path, existing).map_err(|error| unreadable(&error))?;
        let go_on = || self.signals.caught().is_none();
        source.root(tree, go_on).map_err(|error| unreadable(&error))
    }
}

/// Reports an entry that the receiver never had.
pub fn report_not_received(reporter: &Reporter, path: &str, exception: Exception) {
    reporter.event(&Event::NotReceived { path, reason: exception.name() });
    reporter.print(format!("{path}: not received, {}", why(exception)));
}

const fn why(exception: Exception) -> &'static str {
    match exception {
        Exception::Skipped => "its name was taken there, and the existing entry was kept",
        Exception::Changed => "it changed while it was sent",
        Exception::Unreadable => "the sender could not read it",
        Exception::Stale => "an earlier part belonged to another file",
        Exception::Blocked => "the receiver could not put it in place",
    }
}

fn missing() -> Difference {
    Difference("missing", "it is missing".into())
}

fn changed(what: String) -> Difference {
    Difference("changed", what)
}

fn unreadable(error: &Error) -> Difference {
    match error {
        _ if error.is_not_found() => missing(),
        Error::Changed { .. } => changed("it changed while it was read".into()),
        Error::InTheWay { .. } => {
            Difference("kind", "a link or a file has replaced a folder above it".into())
        }
        Error::Permission { .. } => Difference("unreadable", "no permission to read it".into()),
        other => Difference("unreadable", other.to_string()),
    }
}

const fn name(kind: ExistingKind) -> &'static str {
    match kind {
        ExistingKind::File => "a file",
        ExistingKind::Dir => "a folder",
        ExistingKind::Symlink => "a link",
        ExistingKind::Other => "a socket, pipe or device",
    }
}
