//! All the names of an offer: for a person page by page, for a dry run on standard output.

use wraith_transfer::{Conflicts, Fate, Kind, OnConflict, Preview, Previewed, Proposal};

use crate::output::{Event, Reporter};
use crate::size::Bytes;

/// One line for one entry: what would happen, how large it is, its name.
fn line(previewed: &Previewed, conflicts: &Conflicts) -> String {
    let entry = &previewed.entry;
    let size = match &entry.kind {
        Kind::File { size, .. } => Bytes(*size).to_string(),
        Kind::Dir => "folder".into(),
        Kind::Symlink { .. } => "link".into(),
    };
    let end = match &entry.kind {
        Kind::Dir => "/".to_owned(),
        Kind::Symlink { target } => format!(" -> {}", wraith_files::shown(target)),
        Kind::File { .. } => String::new(),
    };
    let word = fate_word(previewed, conflicts);
    format!("{word:<9}  {size:>8}  {}{end}", entry.path.display())
}

/// What would happen to an entry, in one word for people and scripts.
fn fate_word(previewed: &Previewed, conflicts: &Conflicts) -> &'static str {
    match previewed.fate {
        Fate::New => "new",
        Fate::Continues(_) => "continue",
        Fate::Same => "same",
        Fate::Differs | Fate::SameSize => {
            match conflicts.of.get(&previewed.entry.path).copied().unwrap_or(conflicts.otherwise) {
                OnConflict::Skip => "skip",
                _ if previewed.fate == Fate::SameSize => "compare",
                OnConflict::Overwrite => "overwrite",
                OnConflict::Rename => "rename",
            }
        }
    }
}

/// Shows all names. At a terminal a page at a time, until the end or until the person has seen enough; `ask` asks.
pub fn show(
    preview: &Preview,
    conflicts: &Conflicts,
    reporter: &Reporter,
    mut ask: impl FnMut(String) -> Option<String>,
) -> Option<()> {
    let rows = reporter.screen().map(|(_, rows)| rows.saturating_sub(2).max(1));
    let page = rows.unwrap_or(usize::MAX);
    let total = preview.entries.len();
    let mut shown = 0;
    while shown < total {
        let end = total.min(shown.saturating_add(page));
        let lines: Vec<_> =
            preview.entries[shown..end].iter().map(|entry| line(entry, conflicts)).collect();
        reporter.show(lines.join("\n"));
        shown = end;
        if shown < total {
            let answer = ask(format!("-- {shown} of {total}; Enter for more, q to stop -- "))?;
            if !answer.is_empty() {
                break;
            }
        }
    }
    if !preview.complete {
        reporter.show("(there are more names, which were not looked at)");
    }
    Some(())
}

/// What a transfer would do, on standard output.
pub fn dry_run(proposal: &Proposal<'_>, conflicts: &Conflicts, reporter: &Reporter) {
    let Some(preview) = proposal.preview else { return };
    for previewed in &preview.entries {
        let path = previewed.entry.path.display().to_string();
        let kind = match previewed.entry.kind {
            Kind::File { .. } => "file",
            Kind::Dir => "folder",
            Kind::Symlink { .. } => "link",
        };
        let (bytes, action) = (previewed.entry.size(), fate_word(previewed, conflicts));
        reporter.event(&Event::WouldReceive { path: &path, kind, bytes, action });
        reporter.answer(line(previewed, conflicts));
    }
    if !preview.complete {
        reporter.warn("there are more names, which were not looked at");
    }
    reporter.say("A dry run: nothing was written, and the sender is still waiting.");
}
