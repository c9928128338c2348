//! The offer before anything is written: who, how much, what is in the way, and what in it deserves a second look.
//!
//! Figures and names are a stranger's: figures may be anything, names are escaped and only the first few are shown; `l` at
//! the question lists them all, page by page.

mod ask;
mod list;
mod names;

use std::path::Path;

use wraith_transfer::{Fate, Kind, Preview, Proposal};

pub use ask::{Answer, Question};
pub use list::dry_run;

use crate::addresses::path_kind;
use crate::contacts;
use crate::size::{Bytes, Files};
use names::Names;

/// The lines that put an offer to a person.
pub fn text(proposal: &Proposal<'_>, out: &Path) -> String {
    let offer = proposal.offer;
    let (address, path) = (proposal.remote, path_kind(proposal.remote));
    let who = contacts::shown(proposal.sender);
    // Figures of a stranger: they may be anything.
    let things = offer.files.saturating_add(offer.dirs).saturating_add(offer.links);
    let name = if things > 1 { format!("{} …", offer.name) } else { offer.name.clone() };
    let mut lines = vec![format!("{who} at {address} ({path}) offers {name}")];
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
    match offer.left_out.unwrap_or(0) {
        0 => {}
        1 => lines.push("  1 file or folder more cannot be sent and is left out".into()),
        n => lines.push(format!("  {n} files or folders more cannot be sent and are left out")),
    }
    lines.push(place(offer.bytes, proposal.preview, out));
    if let Some(preview) = proposal.preview {
        lines.extend(remarks(preview));
    }
    lines.join("\n")
}

/// Where it goes, and whether there is room.
fn place(bytes: u64, preview: Option<&Preview>, out: &Path) -> String {
    if out.as_os_str() == "-" {
        return "  into standard output".into();
    }
    let mut line = format!("  into {}", wraith_files::shown(out.as_os_str().as_encoded_bytes()));
    let here = preview.map_or(0, bytes_here);
    let Some(free) = free_space(out) else { return line };
    line.push_str(&format!(", {} free", Bytes(free)));
    let needed = bytes.saturating_sub(here);
    if needed > free {
        line.push_str(&format!("; {} MORE ARE NEEDED", Bytes(needed - free)));
    }
    line
}

/// Bytes that an earlier connection brought.
fn bytes_here(preview: &Preview) -> u64 {
    preview.entries.iter().fold(0, |sum, previewed| match previewed.fate {
        Fate::Continues(bytes) => sum + bytes,
        _ => sum,
    })
}

/// What is in the way, and what deserves a look.
fn remarks(preview: &Preview) -> Vec<String> {
    let mut differs = Names::default();
    let (mut same, mut parts) = (0u64, 0u64);
    for previewed in &preview.entries {
        match previewed.fate {
            Fate::Differs => differs.add(previewed.entry.path.display()),
            Fate::Same if !matches!(previewed.entry.kind, Kind::Dir) => same += 1,
            Fate::Continues(_) => parts += 1,
            Fate::Same | Fate::New => {}
        }
    }
    let mut lines = Vec::new();
    if parts > 0 {
        let here = Bytes(bytes_here(preview));
        lines.push(format!("  continues: {here} of {} are here", Files(parts)));
    }
    if same > 0 {
        lines.push(format!(
            "  {} with the same size and time are here; they are compared",
            Files(same)
        ));
    }
    lines.extend(differs.line("taken by something else"));
    lines.extend(names::remarks(preview.entries.iter().map(|previewed| &previewed.entry)));
    if !preview.complete {
        let seen = preview.entries.len();
        lines.push(format!("  (only the first {seen} names were looked at)"));
    }
    lines
}

/// Bytes that this user may still write there, or where the folder would be made.
fn free_space(folder: &Path) -> Option<u64> {
    let stat = existing_ancestor(folder).and_then(|there| rustix::fs::statvfs(there).ok())?;
    Some(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// The folder, or the nearest above it that exists.
pub fn existing_ancestor(folder: &Path) -> Option<&Path> {
    folder
        .ancestors()
        .map(|path| if path.as_os_str().is_empty() { Path::new(".") } else { path })
        .find(|path| path.exists())
}
