//! Formats a progress snapshot: on a terminal, a line for each large active file and one for the
//! total; in a log, one line.
//!
//! Invariant: no line reaches the last column of the terminal, because a wrapped line cannot be
//! redrawn. This holds for any width of the terminal and any names. Parts that do not fit are left
//! out, the least important first.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};
use wraith_command_text::units::{Bytes, Clock, Files};

use wraith::{Bottleneck, Progress};

/// Minimum and maximum width of the bar, in columns.
const BAR_MIN: usize = 8;
const BAR_MAX: usize = 24;
/// Minimum width for a name, in columns. With less room the name is left out.
const NAME_MIN: usize = 12;
/// Maximum number of lines for single files. More would push earlier output off the screen.
const FILES_MAX: usize = 3;
/// Columns between two figures.
const GAP: usize = 2;

/// Returns the lines to redraw on a terminal of this size.
pub fn lines(snapshot: &Progress, columns: usize, rows: usize, color: bool) -> Vec<String> {
    let mut lines = Vec::new();
    // A single file needs no line of its own beside the total.
    if snapshot.files_total > 1 {
        // Two rows stay for earlier output.
        let room = rows.saturating_sub(3).min(FILES_MAX);
        let files = snapshot.active.iter().take(room);
        lines
            .extend(files.map(|file| file_line(&file.name, file.bytes, file.size, columns, color)));
    }
    lines.push(total(snapshot, columns, color));
    lines
}

/// Returns the width of a line in columns, without its colour sequences.
pub fn columns(line: &str) -> usize {
    let mut parts = line.split("\x1b[");
    let first = parts.next().unwrap_or_default().width();
    let behind = |part: &str| part.split_once('m').map_or(0, |(_, text)| text.width());
    first + parts.map(behind).sum::<usize>()
}

/// Returns the line for a log.
pub fn plain(snapshot: &Progress) -> String {
    let figures: Vec<_> = figures(snapshot).into_iter().map(|figure| figure.text).collect();
    figures.join("  ")
}

/// A part of the total line. Figures with a higher rank are left out first.
struct Figure {
    text: String,
    rank: u8,
}

/// Returns the figures in display order.
fn figures(s: &Progress) -> Vec<Figure> {
    let mut figures = Vec::new();
    let mut add = |rank, text: String| figures.push(Figure { text, rank });
    if let Some(checked) = s.checked.filter(|_| s.is_checking()) {
        add(0, format!("{}%", percent(checked.bytes, checked.bytes_total)));
        add(1, "checking what is here".into());
        add(2, format!("{} of {}", Bytes(checked.bytes), Bytes(checked.bytes_total)));
        return figures;
    }
    if is_endless(s) {
        add(0, Bytes(s.bytes).to_string());
    } else {
        add(0, format!("{}%", percent(s.bytes, s.bytes_total)));
        add(3, format!("{} of {}", Bytes(s.bytes), Bytes(s.bytes_total)));
    }
    if s.files_total > 1 {
        add(6, format!("{} of {}", s.files, Files(s.files_total)));
    }
    if s.is_waiting {
        add(1, "not connected".into());
        return figures;
    }
    let is_complete = !is_endless(s) && s.bytes == s.bytes_total;
    // Nothing moves any more while the receiver writes the last bytes to its disk.
    if s.bytes_per_second > 0 || !is_complete {
        add(1, format!("{}/s", Bytes(s.bytes_per_second)));
    }
    if let Some(seconds) = s.eta_seconds() {
        add(2, format!("{} left", Clock(seconds)));
    }
    if let Some(path) = s.path {
        add(4, format!("over {}", path.name()));
    }
    if let Some(bottleneck) = s.bottleneck {
        add(
            5,
            match bottleneck {
                Bottleneck::Rate => "at the rate limit".to_owned(),
                other => format!("{}-bound", other.name()),
            },
        );
    }
    figures
}

/// Returns whether more bytes came than the offer announced: a stream of unknown length.
fn is_endless(s: &Progress) -> bool {
    s.bytes > s.bytes_total
}

/// Formats the total line: bar, figures, and the name of a single file, as far as they fit.
fn total(s: &Progress, columns: usize, color: bool) -> String {
    // The last column stays free, because some terminals wrap when it is written.
    let room = columns.saturating_sub(1);
    let mut figures = figures(s);
    let width = |figures: &[Figure]| -> usize {
        figures.iter().map(|figure| figure.text.width() + GAP).sum::<usize>().saturating_sub(GAP)
    };
    // The bar is more useful than the figures behind the bytes.
    const BAR_RANK: u8 = 3;
    while let Some(least) = figures.iter().map(|figure| figure.rank).max() {
        let bar = if least > BAR_RANK { BAR_MIN + GAP } else { 0 };
        if width(&figures) + bar <= room {
            break;
        }
        if least == 0 {
            return shortened(&figures[0].text, room);
        }
        figures.retain(|figure| figure.rank != least);
    }
    let left = room - width(&figures);
    let text = figures.iter().map(|figure| figure.text.as_str()).collect::<Vec<_>>().join("  ");
    if left < BAR_MIN + GAP || is_endless(s) {
        return text;
    }
    let bar = (left - GAP).min(BAR_MAX);
    let (bytes, bytes_total) = match s.checked.filter(|_| s.is_checking()) {
        Some(checked) => (checked.bytes, checked.bytes_total),
        None => (s.bytes, s.bytes_total),
    };
    let mut line = format!("{}  {text}", drawn(bytes, bytes_total, bar, color));
    let rest = (left - GAP - bar).saturating_sub(GAP);
    if s.files_total <= 1 && rest >= NAME_MIN && !s.current_file.is_empty() {
        line.push_str("  ");
        line.push_str(&shortened(&s.current_file, rest));
    }
    line
}

/// Formats the line of one file: name, bar, share and size. The figures are aligned to the right.
fn file_line(name: &str, bytes: u64, size: u64, columns: usize, color: bool) -> String {
    const INDENT: usize = 2;
    // In a wider line, the figures would be far from the name.
    const WIDEST: usize = 100;
    let room = columns.saturating_sub(1).min(WIDEST);
    let share = format!("{:>4}", format!("{}%", percent(bytes, size)));
    let full = format!("{share}  {:>8}", Bytes(size).to_string());
    let with_name = |figures: usize| INDENT + NAME_MIN + GAP + figures <= room;
    let (figures, width) = if with_name(BAR_MIN + GAP + full.width() + NAME_MIN) {
        let width = BAR_MIN + GAP + full.width();
        (format!("{}  {full}", drawn(bytes, size, BAR_MIN, color)), width)
    } else if with_name(full.width()) {
        let width = full.width();
        (full, width)
    } else {
        let width = share.width();
        (share, width)
    };
    let for_name = room.saturating_sub(INDENT + GAP + width);
    if for_name == 0 {
        return shortened(figures.trim_start(), room);
    }
    let name = shortened(name, for_name);
    let pad = for_name - name.width();
    format!("{:INDENT$}{name}{:pad$}  {figures}", "", "")
}

fn drawn(done: u64, total: u64, width: usize, color: bool) -> String {
    let filled = (share(done, total) * width as f64) as usize;
    let (full, rest) = ("█".repeat(filled), "░".repeat(width - filled));
    if color { format!("\x1b[36m{full}\x1b[2m{rest}\x1b[0m") } else { full + &rest }
}

fn percent(done: u64, total: u64) -> u32 {
    (share(done, total) * 100.0) as u32
}

/// Returns the share from 0 to 1.
fn share(done: u64, total: u64) -> f64 {
    match total {
        0 => 1.0,
        total => (done as f64 / total as f64).min(1.0),
    }
}

/// Shortens a name to at most `room` columns. It keeps the end, which identifies a path better than
/// the beginning.
fn shortened(name: &str, room: usize) -> String {
    if name.width() <= room {
        return name.to_owned();
    }
    let mut tail = Vec::new();
    let mut width = 1;
    for c in name.chars().rev() {
        width += c.width().unwrap_or(0);
        if width > room {
            break;
        }
        tail.push(c);
    }
    if room == 0 { String::new() } else { format!("…{}", tail.iter().rev().collect::<String>()) }
}

#[cfg(test)]
mod tests {
    use wraith_transfer::ActiveFile;

    use super::*;
    use wraith::PathKind;

    fn half() -> Progress {
        let mut progress = Progress::default();
        progress.bytes = 500_000_000;
        progress.bytes_total = 1_000_000_000;
        progress.bytes_per_second = 250_000_000;
        progress.files_total = 1;
        progress.current_file = "holiday/a long name of a film.mov".into();
        progress.path = Some(PathKind::Lan);
        progress.bottleneck = Some(Bottleneck::Disk);
        progress
    }

    #[test]
    fn a_check_is_shown_instead_of_a_transfer_that_does_not_move() {
        let mut progress = half();
        let (bytes, bytes_total) = (3_200_000_000, 40_000_000_000);
        progress.checked = Some(wraith::Checked { bytes, bytes_total });
        assert!(!plain(&progress).contains("checking"), "data moves as well");
        progress.bytes_per_second = 0;
        assert_eq!(plain(&progress), "8%  checking what is here  3.20 GB of 40.0 GB");
        let line = total(&progress, 80, false);
        assert!(line.starts_with("█░░"), "{line}");
        assert!(!line.contains("bound") && !line.contains("/s"), "{line}");
    }

    fn several(names: &[&str]) -> Progress {
        let active = |name: &&str| ActiveFile {
            name: (*name).to_owned(),
            bytes: 45_000_000,
            size: 100_000_000,
        };
        let active = names.iter().map(active).collect();
        let mut progress = half();
        (progress.files, progress.files_total, progress.active) = (3, 20_000, active);
        progress
    }

    #[test]
    fn a_log_line_has_all_figures() {
        let line = "50%  500 MB of 1.00 GB  250 MB/s  2 s left  over lan  disk-bound";
        assert_eq!(plain(&half()), line);
    }

    #[test]
    fn a_stream_without_a_known_end_has_neither_share_nor_time_left() {
        let mut stream = half();
        stream.bytes_total = 0;
        assert_eq!(plain(&stream), "500 MB  250 MB/s  over lan  disk-bound");
        assert_eq!(lines(&stream, 80, 24, false).last().unwrap(), &plain(&stream));
    }

    #[test]
    fn the_progress_line_fits_the_width() {
        let at = |columns| lines(&several(&["holiday/film.mov"]), columns, 24, false);
        assert_eq!(at(20)[1], "50%  250 MB/s");
        assert_eq!(at(40)[0], "  holiday/film.mov        45%    100 MB");
        assert_eq!(at(40)[1], "███████░░░░░░░  50%  250 MB/s  2 s left");
        let wide =
            "██████░░░░░░░  50%  500 MB of 1.00 GB  250 MB/s  2 s left  over lan  disk-bound";
        assert_eq!(at(80)[1], wide);
        let file = format!("  holiday/film.mov{:37}███░░░░░   45%    100 MB", "");
        assert_eq!(at(80)[0], file);
        let widest = "████████████░░░░░░░░░░░░  50%  500 MB of 1.00 GB  3 of 20000 files  250 MB/s  \
                      2 s left  over lan  disk-bound";
        assert_eq!(at(200)[1], widest);
    }

    #[test]
    fn a_progress_line_never_reaches_the_last_column() {
        let names = [
            "holiday/film.mov",
            "写真/とても長い名前の動画ファイル.mov",
            "\u{1f600}\u{1f600}\u{1f600}\u{1f600}\u{1f600}\u{1f600}\u{1f600}\u{1f600}\u{1f600}\u{1f600}",
            "e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}",
            "\\x1b[31mred\\x0a",
            "",
        ];
        let mut single = half();
        for columns in 0..220 {
            for name in names {
                single.current_file = name.to_owned();
                let mut all = lines(&several(&[name; 5]), columns, 24, false);
                all.extend(lines(&single, columns, 24, false));
                for line in all {
                    let width = line.width();
                    assert!(width <= columns.saturating_sub(1), "{columns}: {width} {line:?}");
                }
            }
        }
        assert!(total(&half(), 120, false).ends_with("film.mov"));
    }

    #[test]
    fn at_20_40_80_and_200_columns_the_share_and_the_rate_are_there() {
        for columns in [20, 40, 80, 200] {
            for name in ["写真/とても長い名前の動画ファイル.mov", "a\\x07b"] {
                let all = lines(&several(&[name]), columns, 24, false);
                assert!(all[1].contains("50%") && all[1].contains("250 MB/s"), "{all:?}");
                assert!(
                    all[0].contains("45%") && all[0].contains(&name[name.len() - 1..]),
                    "{all:?}"
                );
            }
        }
    }

    #[test]
    fn a_low_terminal_keeps_its_rows_for_messages() {
        let many = several(&["a", "b", "c", "d", "e"]);
        assert_eq!(lines(&many, 80, 24, false).len(), FILES_MAX + 1);
        assert_eq!(lines(&many, 80, 4, false).len(), 2);
        assert_eq!(lines(&many, 80, 3, false).len(), 1);
        assert_eq!(lines(&half(), 80, 24, false).len(), 1, "one file is all of it");
    }

    #[test]
    fn colors_take_no_room() {
        let colored = total(&half(), 80, true);
        assert!(colored.contains("\x1b[36m") && colored.contains("\x1b[0m"));
        let bare: String =
            colored.replace("\x1b[36m", "").replace("\x1b[2m", "").replace("\x1b[0m", "");
        assert_eq!(bare, total(&half(), 80, false));
    }

    #[test]
    fn without_a_connection_there_is_no_rate() {
        let mut waiting = half();
        waiting.is_waiting = true;
        assert_eq!(plain(&waiting), "50%  500 MB of 1.00 GB  not connected");
    }

    #[test]
    fn nothing_to_do_is_everything_done() {
        let empty = Progress::default();
        assert_eq!(plain(&empty), "100%  0 B of 0 B");
        let mut complete = half();
        (complete.bytes, complete.bytes_per_second) = (complete.bytes_total, 0);
        assert!(!plain(&complete).contains("0 B/s"), "{}", plain(&complete));
        let mut stalled = half();
        stalled.bytes_per_second = 0;
        assert!(plain(&stalled).contains("  0 B/s"), "{}", plain(&stalled));
    }

    #[test]
    fn colours_take_no_columns() {
        assert_eq!(columns("abc"), 3);
        assert_eq!(columns("\x1b[36m██\x1b[2m░\x1b[0m  10%"), 8);
        for line in lines(&half(), 80, 24, true) {
            assert!(columns(&line) < 80 && line.contains('\x1b'), "{line}");
        }
    }
}
