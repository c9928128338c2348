//! `wraith verify`: checks that all received files are still there and unchanged.
//!
//! The signature of the received list is checked first. An edited list proves nothing, so no file
//! is compared with such a list.

mod check;
mod receipt;

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{self, Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use wraith::state::{
    ContactName, OmittedCounts, ProofError, ReceiptHeader, ReceivedList, ReceivedListReader,
    ReceivedStore, StateDir,
};
use wraith_command_text::units::{Bytes, Files};
use wraith_files::{TargetDir, shown};

use crate::args::VerifyArgs;
use crate::failure::{Exit, Failure, plain};
use crate::home;
use crate::output::{Event, Reporter};
use crate::report::{self, Unlisted, name_of};
use crate::signals::{Signals, blocking};
use check::{Checker, ComparisonCounts};

/// Lists the transfers, or checks one after the other. A difference does not stop the checks.
pub async fn run(args: &VerifyArgs, reporter: &Arc<Reporter>) -> Result<(), Failure> {
    if let Some(file) = &args.receipt {
        return receipt::run(file, args, reporter).await;
    }
    let home = home::open()?;
    let store = ReceivedStore::of(&home)?;
    if args.list {
        return list(&store, reporter);
    }
    let signals = Signals::catch(|| ()).map_err(|error| {
        Failure::new(Exit::Other, format!("cannot catch signals: {}", plain(&error)))
    })?;
    let (args, reporter) = (args.clone(), Arc::clone(reporter));
    blocking(move || {
        let here = [".".into()];
        let wanted = if args.wanted.is_empty() { &here[..] } else { &args.wanted[..] };
        let chosen: Result<Vec<_>, _> = wanted.iter().map(|word| choose(&store, word)).collect();
        let verify = Verify { args: &args, state: &home, reporter: &reporter, signals: &signals };
        verify.all(&chosen?)
    })
    .await
}

/// Returns the list of a transfer. An existing folder is taken as a folder, any other word as an
/// id.
fn choose(store: &ReceivedStore, word: &OsStr) -> Result<ReceivedList, Failure> {
    let path = Path::new(word);
    let is_id = word.to_str().is_some_and(|id| id.bytes().all(|byte| byte.is_ascii_hexdigit()));
    if !path.is_dir() && is_id {
        let hint = "wraith verify --list shows the transfers that can be checked";
        return store.find(&word.to_string_lossy()).map_err(|e| Failure::from(e).hint(hint));
    }
    let name = escaped(path);
    let folder = resolved(path)
        .map_err(|error| Failure::new(Exit::Other, format!("{name}: {}", plain(&error))))?;
    let all = store.all()?;
    let is_there = |list: &ReceivedList| list.open().is_ok_and(|(head, _)| head.folder == folder);
    all.into_iter().find(is_there).ok_or_else(|| {
        let what = format!("no transfer into {} was recorded", escaped(&folder));
        Failure::new(Exit::Other, what).hint(
            "if the folder was moved there: wraith verify OLD --moved-to NEW; wraith verify --list shows the transfers that can be checked",
        )
    })
}

/// Returns the absolute path with its links resolved as far as it exists. A folder that was moved
/// is named by its former path.
fn resolved(path: &Path) -> io::Result<PathBuf> {
    let path = path::absolute(path)?;
    let there = path.ancestors().find_map(|there| Some((there, fs::canonicalize(there).ok()?)));
    match there {
        Some((there, real)) if there == path => Ok(real),
        Some((there, real)) => Ok(real.join(path.strip_prefix(there).expect("it is an ancestor"))),
        None => Ok(path),
    }
}

fn list(store: &ReceivedStore, reporter: &Reporter) -> Result<(), Failure> {
    let all = store.all()?;
    if all.is_empty() {
        reporter.status("There is no received transfer to check yet.");
    }
    for list in all {
        let head = match list.open() {
            Ok((head, _)) => head,
            Err(error) => {
                reporter.warn(format!("{}: {}", list.id, why(&error)));
                continue;
            }
        };
        let (from, folder, at) = (head.from.to_string(), escaped(&head.folder), received_at(&head));
        let contact = name_of(head.from);
        let contact = contact.as_ref().map(ContactName::as_str);
        let (files, bytes) = (head.receipt.verified, head.receipt.bytes);
        reporter.event(&Event::Received {
            id: &list.id,
            folder: &folder,
            from: &from,
            contact,
            received_at: &at,
            files,
        });
        let (who, files, bytes) = (report::shown(head.from), Files(files), Bytes(bytes));
        reporter.print(format!("{}  {at}  {who}  {files}, {bytes}  {folder}", list.id));
    }
    Ok(())
}

fn escaped(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    shown(path.as_os_str().as_bytes())
}

fn received_at(head: &ReceiptHeader) -> String {
    let seconds = i64::try_from(head.receipt.unix_seconds).ok();
    let time = seconds.and_then(|seconds| Timestamp::from_second(seconds).ok());
    time.map_or_else(|| "?".into(), |time| format!("{time:.0}"))
}

fn why(error: &ProofError) -> String {
    match error {
        ProofError::Unreadable(error) => format!("the list cannot be read: {}", plain(error)),
        ProofError::Newer(version) => {
            format!("the list is from a newer wraith, with format {version}")
        }
        ProofError::Edited(what) => format!("the list was changed after it was signed: {what}"),
    }
}

/// The result of checking a transfer.
enum VerifyOutcome {
    /// All received entries are unchanged.
    Whole,
    /// All received entries are unchanged, but part of the offer failed.
    Lacking,
    Differs,
}

struct Verify<'a> {
    args: &'a VerifyArgs,
    state: &'a StateDir,
    reporter: &'a Arc<Reporter>,
    signals: &'a Signals,
}

impl Verify<'_> {
    fn all(&self, lists: &[ReceivedList]) -> Result<(), Failure> {
        let (mut differ, mut lacking) = (Vec::new(), Vec::new());
        for list in lists {
            match self.one(list)? {
                VerifyOutcome::Whole => {}
                VerifyOutcome::Lacking => lacking.push(list.id.as_str()),
                VerifyOutcome::Differs => differ.push(list.id.as_str()),
            }
        }
        if !differ.is_empty() {
            let what = format!("changed since it was received: {}", differ.join(", "));
            return Err(Failure::new(Exit::Verification, what));
        }
        if !lacking.is_empty() {
            let what = format!("some entries were not received: {}", lacking.join(", "));
            return Err(Failure::new(Exit::Partial, what));
        }
        Ok(())
    }

    fn one(&self, list: &ReceivedList) -> Result<VerifyOutcome, Failure> {
        let opened = list.open().and_then(|(head, lines)| {
            let lines = lines.verify(&head)?;
            Ok((head, lines))
        });
        let (head, lines) = match opened {
            Ok(opened) => opened,
            Err(error @ ProofError::Unreadable(_)) => {
                return Err(Failure::new(Exit::Disk, format!("{}: {}", list.id, why(&error))));
            }
            Err(error @ ProofError::Newer(_)) => {
                let what = format!("{}: {}", list.id, why(&error));
                return Err(Failure::new(Exit::Other, what).hint("check it with the newer wraith"));
            }
            Err(error @ ProofError::Edited(_)) => {
                let what = format!("{}: {}; it proves nothing", list.id, why(&error));
                return Err(Failure::new(Exit::Verification, what));
            }
        };
        if self.state.identity()?.node_id() != head.by {
            let by = head.by;
            self.reporter.warn(format!("{}: signed by another identity, {by}", list.id));
        }
        let folder = self.args.moved_to.as_deref().unwrap_or(&head.folder);
        let rest = lines.rest();
        let found = self.compare(lines, folder)?;
        self.report(list, &head, folder, &found, rest);
        Ok(match (found.differ, head.receipt.failed) {
            (0, 0) => VerifyOutcome::Whole,
            (0, _) => VerifyOutcome::Lacking,
            _ => VerifyOutcome::Differs,
        })
    }

    fn compare(
        &self,
        mut lines: ReceivedListReader,
        folder: &Path,
    ) -> Result<ComparisonCounts, Failure> {
        let target = TargetDir::open(folder).map_err(|error| {
            let hint = "if the folder was moved: wraith verify OLD --moved-to NEW, where OLD is the former folder or the id";
            Failure::new(Exit::Verification, error.to_string()).hint(hint)
        })?;
        let checker = Checker { target: &target, reporter: self.reporter, signals: self.signals };
        let found = checker.run(|| lines.next_entry());
        if let Some(exit) = self.signals.caught() {
            return Err(Failure::new(exit, "stopped; not everything was compared"));
        }
        found.map_err(|error| Failure::new(Exit::Verification, why(&error)))
    }

    fn report(
        &self,
        list: &ReceivedList,
        head: &ReceiptHeader,
        folder: &Path,
        found: &ComparisonCounts,
        rest: OmittedCounts,
    ) {
        let (from, folder, at) = (head.from.to_string(), escaped(folder), received_at(head));
        self.reporter.event(&Event::Verified {
            id: &list.id,
            folder: &folder,
            from: &from,
            received_at: &at,
            files: found.files,
            bytes: found.bytes,
            differ: found.differ,
            not_received: found.lacking,
            unlisted: rest.files,
        });
        let (files, bytes, who) =
            (Files(found.files), Bytes(found.bytes), report::shown(head.from));
        let what = format!("{files}, {bytes} from {who}, received {at} into {folder}");
        let result = match found.differ {
            0 if found.lacking > 0 => format!("unchanged; {} not received", found.lacking),
            0 if rest.is_empty() => "all unchanged".to_owned(),
            0 => "unchanged".to_owned(),
            1 => "1 has changed".to_owned(),
            n => format!("{n} have changed"),
        };
        self.reporter.status(format!("{}: {what}: {result}.", list.id));
        if !rest.is_empty() {
            let rest = Unlisted(rest);
            self.reporter.warn(format!(
                "{rest} are not in the list, which was full (--record-max), and were not compared"
            ));
        }
    }
}
