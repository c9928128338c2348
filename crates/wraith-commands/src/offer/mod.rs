//! Presents an offer before anything is written: the sender, the size, the names that are taken,
//! and risky entries.
//!
//! Invariant: all numbers and names come from an untrusted peer. Any number can be false. Names are
//! escaped, and only the first few are shown; the answer `l` to the question lists all names, page
//! by page.

mod ask;
mod list;
mod names;

use std::path::Path;

use wraith::{Addr, Incoming, NodeId, Preview, PreviewOutcome, path_kind};
use wraith_command_text::units::{Bytes, Files};
use wraith_transfer::{Kind, Offer};

pub use ask::{Answer, Question};
pub use list::dry_run;

use crate::report;
use names::NameSample;

/// An offer, as presented to a person.
#[derive(Clone, Copy, Debug)]
pub struct Proposal<'a> {
    pub offer: &'a Offer,
    pub sender: NodeId,
    pub remote: &'a Addr,
    /// The names, if they were checked.
    pub preview: Option<&'a Preview>,
}

/// Returns the offer that waits for an answer.
pub fn proposal(incoming: &Incoming) -> Proposal<'_> {
    Proposal {
        offer: incoming.offer_message(),
        sender: incoming.sender(),
        remote: incoming.remote(),
        preview: incoming.preview(),
    }
}

/// Returns the lines that present an offer. `is_known`: the sender's address was shown when it
/// connected.
pub fn text(proposal: &Proposal<'_>, out: &Path, is_known: bool) -> String {
    let offer = proposal.offer;
    let mut who = report::shown(proposal.sender);
    if !is_known {
        let (address, path) = (proposal.remote, path_kind(proposal.remote).name());
        who.push_str(&format!(" at {address} ({path})"));
    }
    // The figures come from an untrusted peer, so the sum may overflow.
    let things = offer.files.saturating_add(offer.dirs).saturating_add(offer.links);
    let name = if things > 1 { format!("{} …", offer.name) } else { offer.name.clone() };
    let mut lines = vec![format!("{who} offers {name}")];
    let mut size = match (offer.stream, offer.bytes) {
        (Some(true), 0) => "a stream of unknown length".to_owned(),
        _ => format!("{}, {}", Files(offer.files), Bytes(offer.bytes)),
    };
    if offer.files > 1 {
        size.push_str(&format!(", the largest {}", Bytes(offer.largest)));
    }
    for (count, what) in [(offer.dirs, "folder"), (offer.links, "link")] {
        if count > 0 {
            size.push_str(&format!(", {count} {what}{}", if count == 1 { "" } else { "s" }));
        }
    }
    lines.push(format!("  {size}"));
    lines.extend(growth(offer));
    match offer.left_out.unwrap_or(0) {
        0 => {}
        1 => lines.push("  1 more file or folder cannot be sent and is left out".into()),
        n => lines.push(format!("  {n} more files or folders cannot be sent and are left out")),
    }
    lines.push(place(offer.bytes, proposal.preview, out));
    // Names that were not checked lie below one of these, or are left out.
    if proposal.preview.is_none_or(|preview| !preview.complete) && names(offer).len() > 1 {
        let mut top = NameSample::default();
        names(offer).for_each(|name| top.add(name));
        lines.extend(top.line("in total at the top level"));
    }
    if offer.names.is_none() && proposal.preview.is_some_and(|preview| !preview.complete) {
        lines.push(
            "  MORE NAMES WILL COME, which the sender has not listed: they can be anything".into(),
        );
    }
    if let Some(preview) = proposal.preview {
        lines.extend(remarks(preview));
    }
    lines.join("\n")
}

/// Describes how far an offer of several entries may grow before it is sent.
fn growth(offer: &Offer) -> Option<String> {
    let things = offer.files.saturating_add(offer.dirs).saturating_add(offer.links);
    let (entries, bytes) = offer.growth_limits();
    (things > 1)
        .then(|| format!("  at most {entries} entries, {} if it grows meanwhile", Bytes(bytes)))
}

/// Returns the top-level names of the offer, escaped.
fn names(offer: &Offer) -> impl ExactSizeIterator<Item = String> {
    offer.names.as_deref().unwrap_or_default().iter().map(|name| wraith_files::shown(name))
}

/// Describes the target and its free space.
fn place(bytes: u64, preview: Option<&Preview>, out: &Path) -> String {
    if out.as_os_str() == "-" {
        return "  into standard output".into();
    }
    let line = format!("  into {}", wraith_files::shown(out.as_os_str().as_encoded_bytes()));
    match free_space(out) {
        Some(free) => line + &room(free, bytes, preview),
        None => line,
    }
}

/// Describes the free space, and whether it is enough. Existing data needs no room; without a
/// preview its amount is unknown.
fn room(free: u64, bytes: u64, preview: Option<&Preview>) -> String {
    let needed = bytes.saturating_sub(preview.map_or(0, bytes_here));
    let mut text = format!(", {} free", Bytes(free));
    if needed > free {
        let more = Bytes(needed - free);
        text.push_str(&if preview.is_some_and(|preview| preview.complete) {
            format!("; {more} MORE NEEDED")
        } else {
            format!("; up to {more} more needed, less the files that are already here")
        });
    }
    text
}

/// Returns the bytes of the offer that are here already.
fn bytes_here(preview: &Preview) -> u64 {
    preview.entries.iter().fold(0, |sum, previewed| match previewed.outcome {
        PreviewOutcome::Continues(bytes) => sum + bytes,
        // It is compared before any of it is fetched.
        PreviewOutcome::Same | PreviewOutcome::SameSize => {
            sum.saturating_add(previewed.entry.size())
        }
        PreviewOutcome::New | PreviewOutcome::Differs | PreviewOutcome::Irreplaceable => sum,
    })
}

/// Returns the bytes of partial files from an earlier connection.
fn bytes_of_parts(preview: &Preview) -> u64 {
    preview.entries.iter().fold(0, |sum, previewed| match previewed.outcome {
        PreviewOutcome::Continues(bytes) => sum + bytes,
        _ => sum,
    })
}

/// Returns the lines about taken names and risky entries.
fn remarks(preview: &Preview) -> Vec<String> {
    let [mut differs, mut same_size]: [NameSample; 2] = Default::default();
    let (mut same, mut parts) = (0u64, 0u64);
    for previewed in &preview.entries {
        match previewed.outcome {
            PreviewOutcome::Differs | PreviewOutcome::Irreplaceable => {
                differs.add(previewed.entry.path.display());
            }
            PreviewOutcome::SameSize => same_size.add(previewed.entry.path.display()),
            PreviewOutcome::Same if !matches!(previewed.entry.kind, Kind::Dir) => same += 1,
            PreviewOutcome::Continues(_) => parts += 1,
            PreviewOutcome::Same | PreviewOutcome::New => {}
        }
    }
    let mut lines = Vec::new();
    if parts > 0 {
        let here = Bytes(bytes_of_parts(preview));
        lines.push(format!("  continues: {here} of {} are here", Files(parts)));
    }
    if same > 0 {
        lines.push(format!(
            "  {} already here with the same size and time, to be compared",
            Files(same)
        ));
    }
    lines
        .extend(same_size.line("already here with the same size and another time, to be compared"));
    lines.extend(differs.line("taken by another entry"));
    lines.extend(names::remarks(preview.entries.iter().map(|previewed| &previewed.entry)));
    if !preview.complete {
        let seen = preview.entries.len();
        lines.push(format!("  (only the first {seen} names were checked)"));
    }
    lines
}

/// Returns the bytes that this user can still write in the folder, or in its nearest existing
/// ancestor.
fn free_space(folder: &Path) -> Option<u64> {
    let stat = existing_ancestor(folder).and_then(|there| rustix::fs::statvfs(there).ok())?;
    Some(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Returns the folder, or its nearest existing ancestor.
pub fn existing_ancestor(folder: &Path) -> Option<&Path> {
    folder
        .ancestors()
        .map(|path| if path.as_os_str().is_empty() { Path::new(".") } else { path })
        .find(|path| path.exists())
}

#[cfg(test)]
mod tests {
    use wraith::Previewed;
    use wraith_files::{Entry, Mtime, RelPath};

    use super::*;

    #[test]
    fn the_growth_of_a_folder_is_shown_and_that_of_one_file_is_not() {
        let offer = Offer { files: 15, dirs: 1, bytes: 16_000_000, ..Offer::default() };
        let text = growth(&offer).unwrap();
        assert_eq!(text, "  at most 33 entries, 18.0 MB if it grows meanwhile");
        assert_eq!(growth(&Offer { files: 1, bytes: 5, ..Offer::default() }), None);
    }

    #[test]
    fn present_files_need_no_free_space() {
        let previewed = |path: &str, outcome| Previewed {
            entry: Entry {
                path: RelPath::parse(path.as_bytes()).unwrap(),
                kind: Kind::File { size: 10_000_000, sparse: None },
                mode: 0o644,
                mtime: Mtime::default(),
            },
            outcome,
            copy: None,
        };
        let entries = vec![
            previewed("a", PreviewOutcome::Continues(6_000_000)),
            previewed("b", PreviewOutcome::SameSize),
            previewed("c", PreviewOutcome::Differs),
        ];
        let preview = Preview { entries, complete: true };
        assert_eq!(room(14_000_000, 30_000_000, Some(&preview)), ", 14.0 MB free");
        let text = room(13_000_000, 30_000_000, Some(&preview));
        assert_eq!(text, ", 13.0 MB free; 1.00 MB MORE NEEDED");
        let text = room(13_000_000, 30_000_000, None);
        assert_eq!(
            text,
            ", 13.0 MB free; up to 17.0 MB more needed, less the files that are already here"
        );
    }
}
