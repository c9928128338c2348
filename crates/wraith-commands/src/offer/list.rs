//! Lists all names of an offer: for a person page by page, for a dry run on standard output.

use unicode_width::UnicodeWidthStr;
use wraith::{Conflicts, Preview};
use wraith_command_text::units::Bytes;
use wraith_transfer::{Action, Kind, Offer, Planned};

use super::Proposal;
use super::names::{RiskyEntries, top_level};

use crate::ask::Answers;
use crate::output::{Event, Reporter};

/// Formats one entry: the planned action, its size, its name, and its new name if that differs.
fn line(planned: &Planned<'_>) -> String {
    let entry = planned.entry;
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
    let other = other_name(planned).map_or(String::new(), |name| format!("  (as {name})"));
    format!("{:<9}  {size:>8}  {}{end}{other}", word(planned.action), entry.path.display())
}

/// Returns the target path, if it differs from the path in the offer.
fn other_name(planned: &Planned<'_>) -> Option<String> {
    (planned.path != planned.entry.path).then(|| planned.path.display().to_string())
}

/// Returns the planned action as one word, for people and scripts.
fn word(action: Action) -> &'static str {
    match action {
        Action::New => "new",
        Action::Continue => "continue",
        Action::Same => "same",
        Action::Compare => "compare",
        Action::Overwrite => "overwrite",
        Action::Rename => "rename",
        Action::Skip => "skip",
    }
}

/// Shows all names. At a terminal it shows one page at a time, until the end or until the user
/// stops.
pub async fn show(
    offer: &Offer,
    preview: &Preview,
    conflicts: &Conflicts,
    reporter: &Reporter,
    answers: &Answers,
) -> Option<()> {
    // Two rows are for the question.
    let screen = reporter.screen().map(|(columns, rows)| (columns, rows.saturating_sub(2)));
    let planned = preview.planned(conflicts);
    let total = planned.len();
    let mut shown = 0;
    while shown < total {
        let rest = planned[shown..].iter().map(line);
        let lines = page(rest, screen);
        reporter.show(lines.join("\n"));
        shown += lines.len();
        if shown < total {
            let question = format!("-- {shown} of {total}; Enter for more, q to stop -- ");
            let answer = answers.ask(&question).await?;
            if !answer.is_empty() {
                break;
            }
        }
    }
    if !preview.complete {
        let top = super::names(offer).collect::<Vec<_>>().join(", ");
        reporter.show(match top.as_str() {
            "" => "(there are more names, which were not checked)".to_owned(),
            top => {
                format!("(there are more names, which were not checked, all of them in {top})")
            }
        });
    }
    Some(())
}

/// Returns the lines that fit on a screen of this many columns and rows; at least one. A long line
/// takes several rows.
fn page(lines: impl Iterator<Item = String>, screen: Option<(usize, usize)>) -> Vec<String> {
    let Some((columns, rows)) = screen else { return lines.collect() };
    let mut left = rows;
    let mut page = Vec::new();
    for line in lines {
        let taken = line.width().div_ceil(columns.max(1)).max(1);
        if taken > left && !page.is_empty() {
            break;
        }
        left = left.saturating_sub(taken);
        page.push(line);
    }
    page
}

/// Reports the links that lead out of an offer, and the entries that others can write to, to
/// programs.
pub fn report_risky_entries(preview: &Preview, reporter: &Reporter) {
    let risky = RiskyEntries::of(preview.entries.iter().map(|previewed| &previewed.entry));
    reporter.event(&Event::RiskyEntries {
        leading_out: risky.leading_out.count(),
        leading_out_first: risky.leading_out.first(),
        writable: risky.writable.count(),
        writable_first: risky.writable.first(),
    });
}

/// Prints the planned actions of a transfer on standard output.
pub fn dry_run(proposal: &Proposal<'_>, conflicts: &Conflicts, reporter: &Reporter) {
    let Some(preview) = proposal.preview else { return };
    report_risky_entries(preview, reporter);
    let top = top_level(preview.entries.iter().map(|previewed| &previewed.entry));
    for planned in &preview.planned(conflicts) {
        let leads_out = planned.entry.leads_out(|name| top.contains(name));
        let writable = planned.entry.is_open_to_others();
        let path = planned.entry.path.display().to_string();
        let kind = match planned.entry.kind {
            Kind::File { .. } => "file",
            Kind::Dir => "folder",
            Kind::Symlink { .. } => "link",
        };
        let (bytes, action) = (planned.entry.size(), word(planned.action));
        let arrives_as = other_name(planned);
        let arrives_as = arrives_as.as_deref();
        reporter.event(&Event::WouldReceive {
            path: &path,
            kind,
            bytes,
            action,
            arrives_as,
            leads_out,
            writable,
        });
        reporter.print(line(planned));
    }
    if !preview.complete {
        reporter.warn("there are more names, which were not checked");
    }
    reporter.status("A dry run: nothing was written, and the sender is still waiting.");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_as_many_rows_as_the_screen() {
        let lines = || ["a".repeat(20), "b".repeat(21), "c".into(), "写".repeat(21)].into_iter();
        let count = |columns, rows| page(lines(), Some((columns, rows))).len();
        assert_eq!((count(80, 4), count(80, 3)), (4, 3));
        assert_eq!((count(20, 3), count(20, 4), count(20, 6), count(20, 7)), (2, 3, 3, 4));
        assert_eq!((count(1, 1), count(0, 0)), (1, 1));
        assert_eq!(page(lines(), None).len(), 4);
    }
}
