//! `wraith verify --receipt`: checks a receiver's signature. It needs only the receipt file.
//!
//! Both forms are accepted: the sender's receipt and the receiver's list. Invariant: no content of
//! the file is used before its signature and its list match.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use wraith::Durability;
use wraith::json::durability_name;
use wraith::state::{
    ContactName, OmittedCounts, ProofError, ReceiptEntry, ReceiptHeader, ReceiptReader,
    ReceivedListReader, open_receipt, open_received_list,
};
use wraith_command_text::units::{Bytes, Files};
use wraith_files::TargetDir;

use super::check::{Checker, ComparisonCounts};
use super::{escaped, received_at};
use crate::args::{PeerName, VerifyArgs};
use crate::contacts;
use crate::failure::{Exit, Failure, plain};
use crate::home;
use crate::output::{Event, Reporter};
use crate::report::{self, Unlisted, name_of};
use crate::signals::{Signals, blocking};

/// The lines of a receipt or of a received list.
enum EntryReader {
    Receipt(ReceiptReader),
    Record(ReceivedListReader),
}

impl EntryReader {
    fn next_entry(&mut self) -> Result<Option<ReceiptEntry>, ProofError> {
        match self {
            Self::Receipt(lines) => lines.next_entry(),
            Self::Record(lines) => lines.next_entry(),
        }
    }

    fn rest(&self) -> OmittedCounts {
        match self {
            Self::Receipt(_) => OmittedCounts::default(),
            Self::Record(lines) => lines.rest(),
        }
    }
}

/// Checks the receipt in `file`, and compares it with the named folder.
pub async fn run(file: &Path, args: &VerifyArgs, reporter: &Arc<Reporter>) -> Result<(), Failure> {
    let folder = match &args.wanted[..] {
        [] => None,
        [folder] => Some(folder.clone()),
        _ => {
            let message = "--receipt allows one folder at most";
            return Err(Failure::new(Exit::Usage, message));
        }
    };
    let by = match &args.by {
        None => None,
        Some(PeerName::Node(node_id)) => Some(*node_id),
        Some(name) => Some(contacts::find(&home::open()?.contacts(), name)?.node_id),
    };
    let signals = Signals::catch(|| ()).map_err(|error| {
        Failure::new(Exit::Other, format!("cannot catch signals: {}", plain(&error)))
    })?;
    let (file, reporter) = (file.to_owned(), Arc::clone(reporter));
    blocking(move || {
        let shown = escaped(&file);
        let (head, lines) = open_verified(&file).map_err(|error| failure(&shown, &error))?;
        if let Some(wanted) = by.filter(|wanted| *wanted != head.by) {
            let signer = head.by;
            let what = format!("{shown}: signed by {signer}, not by {wanted}");
            return Err(Failure::new(Exit::Verification, what));
        }
        let (reporter, signals) = (&*reporter, &signals);
        let check = ReceiptCheck { reporter, signals, head: &head, rest: lines.rest() };
        check.run(lines, folder.as_deref().map(Path::new))
    })
    .await
}

fn open_verified(file: &Path) -> Result<(ReceiptHeader, EntryReader), ProofError> {
    let (head, lines) = match open_receipt(File::open(file)?) {
        Ok((head, lines)) => {
            let lines = lines.verify(&head)?;
            (head, EntryReader::Receipt(lines))
        }
        Err(ProofError::Edited(what)) => {
            // If the file is neither form, the first error is as good as the second.
            let opened = open_received_list(File::open(file)?);
            let (head, lines) = opened.map_err(|error| match error {
                ProofError::Edited(_) => ProofError::Edited(what),
                error => error,
            })?;
            let lines = lines.verify(&head)?;
            (head, EntryReader::Record(lines))
        }
        Err(error) => return Err(error),
    };
    Ok((head, lines))
}

fn failure(shown: &str, error: &ProofError) -> Failure {
    match error {
        ProofError::Unreadable(error) => {
            Failure::new(Exit::Disk, format!("{shown}: it cannot be read: {}", plain(error)))
        }
        ProofError::Newer(version) => {
            let what = format!("{shown}: it is from a newer wraith, with format {version}");
            Failure::new(Exit::Other, what).hint("check it with the newer wraith")
        }
        ProofError::Edited(what) => {
            let what = format!("{shown}: {what}; it proves nothing");
            Failure::new(Exit::Verification, what)
        }
    }
}

struct ReceiptCheck<'a> {
    reporter: &'a Reporter,
    signals: &'a Signals,
    head: &'a ReceiptHeader,
    rest: OmittedCounts,
}

impl ReceiptCheck<'_> {
    fn run(&self, lines: EntryReader, folder: Option<&Path>) -> Result<(), Failure> {
        let found = match folder {
            Some(folder) => Some(self.compare(lines, folder)?),
            None => {
                self.report_missing(lines)?;
                None
            }
        };
        self.report(found.as_ref(), folder);
        let differ = found.map_or(0, |found| found.differ);
        if differ > 0 {
            let what = format!("{differ} differ from the receipt");
            return Err(Failure::new(Exit::Verification, what)
                .hint("a receipt has the names as sent, below the folder that received them"));
        }
        match self.head.receipt.failed {
            0 => Ok(()),
            failed => {
                let what = format!("the receiver does not have everything: {failed} failed");
                Err(Failure::new(Exit::Partial, what))
            }
        }
    }

    fn compare(&self, mut lines: EntryReader, folder: &Path) -> Result<ComparisonCounts, Failure> {
        if self.head.is_stream() && matches!(lines, EntryReader::Receipt(_)) {
            let message = "the receipt is for a stream, which has no name in a folder";
            return Err(Failure::new(Exit::Usage, message).hint("leave the folder out"));
        }
        let failed = |what: String| Failure::new(Exit::Verification, what);
        let target = TargetDir::open(folder).map_err(|error| failed(error.to_string()))?;
        let checker = Checker { target: &target, reporter: self.reporter, signals: self.signals };
        let found = checker.run(|| lines.next_entry());
        if let Some(exit) = self.signals.caught() {
            return Err(Failure::new(exit, "stopped; not everything was compared"));
        }
        found.map_err(|error| failed(super::why(&error)))
    }

    fn report_missing(&self, mut lines: EntryReader) -> Result<(), Failure> {
        let checker = |path: &[u8], exception| {
            super::check::report_not_received(self.reporter, &wraith_files::shown(path), exception);
        };
        loop {
            match lines.next_entry() {
                Ok(None) => return Ok(()),
                Ok(Some(ReceiptEntry {
                    path,
                    kind: wraith::state::ReceiptEntryKind::Absent { exception, .. },
                })) => {
                    checker(&path, exception);
                }
                Ok(Some(_)) => {}
                Err(error) => return Err(Failure::new(Exit::Verification, super::why(&error))),
            }
        }
    }

    fn report(&self, found: Option<&ComparisonCounts>, folder: Option<&Path>) {
        let (head, receipt) = (self.head, &self.head.receipt);
        let (by, from, at) = (head.by.to_string(), head.from.to_string(), received_at(head));
        let contact = name_of(head.by);
        let durability = receipt.durability();
        self.reporter.event(&Event::Signed {
            by: &by,
            contact: contact.as_ref().map(ContactName::as_str),
            from: &from,
            signed_at: &at,
            files: receipt.verified,
            bytes: receipt.bytes,
            skipped: receipt.kept,
            failed: receipt.failed,
            durability: durability_name(durability),
            differ: found.map(|found| found.differ),
        });
        let (files, bytes) = (Files(receipt.verified), Bytes(receipt.bytes));
        let name = contact.as_ref().map(|name| format!(" ({})", name.as_str()));
        let name = name.unwrap_or_default();
        let disk = match durability {
            Some(Durability::OnDisk) => "on its disk",
            Some(Durability::CannotSync) => "on storage that cannot be synced",
            Some(Durability::NotAwaited) | None => "not yet on its disk",
        };
        self.reporter.status(format!(
            "{by}{name} has signed that it has {files}, {bytes} from {}, verified, {disk}, {at}.",
            report::shown(head.from)
        ));
        if let (Some(found), Some(folder)) = (found, folder) {
            let folder = escaped(folder);
            self.reporter.status(match found.differ {
                0 => format!("{} in {folder}: all as in the receipt.", Files(found.files)),
                1 => format!("In {folder}, 1 differs from the receipt."),
                n => format!("In {folder}, {n} differ from the receipt."),
            });
        }
        if receipt.kept + receipt.failed > 0 {
            let (kept, failed) = (receipt.kept, receipt.failed);
            self.reporter.warn(format!(
                "it does not have everything: {kept} left out because the name was taken there, {failed} failed"
            ));
        }
        if !self.rest.is_empty() {
            let rest = Unlisted(self.rest);
            self.reporter
                .warn(format!("{rest} are not in the list, which was full (--record-max)"));
        }
    }
}
