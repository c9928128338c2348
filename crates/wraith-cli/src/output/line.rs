//! A snapshot as one line of text.

use super::Snapshot;
use crate::size::{Bytes, Clock, Files};

const BAR_WIDTH: usize = 24;
/// Narrower than this there is no room for a name.
const MIN_NAME_WIDTH: usize = 12;

/// The line that is redrawn on a terminal: bar, share, bytes, rate, time left, and the name as far as it fits.
pub fn bar(snapshot: &Snapshot, width: usize, color: bool) -> String {
    let figures = figures(snapshot);
    let share = share(snapshot);
    let filled = (share * BAR_WIDTH as f64) as usize;
    let (full, rest) = ("█".repeat(filled), "░".repeat(BAR_WIDTH - filled));
    let percent = (share * 100.0) as u32;
    let shown = figures.chars().count() + BAR_WIDTH + "  100%  ".len();
    // The last column stays free: writing it makes some terminals wrap.
    if shown >= width {
        return figures.chars().take(width.saturating_sub(1)).collect();
    }
    let mut line = if color {
        format!("\x1b[36m{full}\x1b[2m{rest}\x1b[0m {percent:3}%  {figures}")
    } else {
        format!("{full}{rest} {percent:3}%  {figures}")
    };
    let room = (width - shown - 1).saturating_sub("  ".len());
    if room >= MIN_NAME_WIDTH && !snapshot.current.is_empty() {
        line.push_str("  ");
        line.push_str(&shortened(&snapshot.current, room));
    }
    line
}

/// The line for a log.
pub fn plain(snapshot: &Snapshot) -> String {
    format!("{}%  {}", (share(snapshot) * 100.0) as u32, figures(snapshot))
}

fn figures(s: &Snapshot) -> String {
    let mut text = format!("{} of {}", Bytes(s.bytes), Bytes(s.total));
    if s.total_files > 1 {
        text.push_str(&format!("  {} of {}", s.files, Files(s.total_files)));
    }
    text.push_str(&format!("  {}/s", Bytes(s.bytes_per_second)));
    if let Some(seconds) = s.eta_seconds() {
        text.push_str(&format!("  {} left", Clock(seconds)));
    }
    text
}

/// From 0 to 1.
fn share(s: &Snapshot) -> f64 {
    match s.total {
        0 => 1.0,
        total => (s.bytes as f64 / total as f64).min(1.0),
    }
}

/// The end of a path says more than its beginning.
fn shortened(name: &str, room: usize) -> String {
    let length = name.chars().count();
    if length <= room {
        return name.to_owned();
    }
    let tail: String = name.chars().skip(length + 1 - room).collect();
    format!("…{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn half() -> Snapshot {
        Snapshot {
            bytes: 500_000_000,
            total: 1_000_000_000,
            bytes_per_second: 250_000_000,
            files: 0,
            total_files: 1,
            current: "holiday/a long name of a film.mov".into(),
        }
    }

    #[test]
    fn a_log_line_says_it_all() {
        assert_eq!(plain(&half()), "50%  500 MB of 1.00 GB  250 MB/s  2 s left");
    }

    #[test]
    fn a_bar_never_reaches_the_last_column() {
        for width in 0..200 {
            let line = bar(&half(), width, false);
            assert!(line.chars().count() <= width.saturating_sub(1), "{width}: {line}");
        }
        assert!(bar(&half(), 120, false).ends_with("film.mov"));
    }

    #[test]
    fn nothing_to_do_is_everything_done() {
        let empty = Snapshot::default();
        assert!(plain(&empty).starts_with("100%"));
    }
}
