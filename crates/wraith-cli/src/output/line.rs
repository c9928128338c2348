//! A snapshot as one line of text.

use super::Snapshot;
use crate::size::{Bytes, Clock, Files};

const BAR_WIDTH: usize = 24;
/// Narrower than this there is no room for a name.
const MIN_NAME_WIDTH: usize = 12;

/// The line that is redrawn on a terminal: bar, share, bytes, rate, time left, and the name as far as it fits.
pub fn bar(snapshot: &Snapshot, width: usize, color: bool) -> String {
    let figures = figures(snapshot);
    let mut line = match share(snapshot) {
        Some(share) => {
            let filled = (share * BAR_WIDTH as f64) as usize;
            let (full, rest) = ("█".repeat(filled), "░".repeat(BAR_WIDTH - filled));
            let percent = (share * 100.0) as u32;
            if color {
                format!("\x1b[36m{full}\x1b[2m{rest}\x1b[0m {percent:3}%  {figures}")
            } else {
                format!("{full}{rest} {percent:3}%  {figures}")
            }
        }
        None => figures.clone(),
    };
    let shown = figures.chars().count() + share(snapshot).map_or(0, |_| BAR_WIDTH + 7);
    // The last column stays free: writing it makes some terminals wrap.
    let room = width.saturating_sub(shown + 3);
    if shown >= width {
        return figures.chars().take(width.saturating_sub(1)).collect();
    }
    if room >= MIN_NAME_WIDTH && !snapshot.current.is_empty() {
        line.push_str("  ");
        line.push_str(&shortened(&snapshot.current, room));
    }
    line
}

/// The line for a log.
pub fn plain(snapshot: &Snapshot) -> String {
    match share(snapshot) {
        Some(share) => format!("{}%  {}", (share * 100.0) as u32, figures(snapshot)),
        None => figures(snapshot),
    }
}

fn figures(s: &Snapshot) -> String {
    let mut text = match s.total {
        Some(total) => format!("{} of {}", Bytes(s.bytes), Bytes(total)),
        None => Bytes(s.bytes).to_string(),
    };
    if s.files > 0 {
        text.push_str(&format!("  {}", Files(s.files)));
    }
    text.push_str(&format!("  {}/s", Bytes(s.bytes_per_second)));
    if let Some(seconds) = s.eta_seconds() {
        text.push_str(&format!("  {} left", Clock(seconds)));
    }
    text
}

/// From 0 to 1; None while the total is unknown.
fn share(s: &Snapshot) -> Option<f64> {
    match s.total? {
        0 => Some(1.0),
        total => Some((s.bytes as f64 / total as f64).min(1.0)),
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
            total: Some(1_000_000_000),
            bytes_per_second: 250_000_000,
            files: 0,
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
            assert!(line.chars().count() < width.max(1), "{width}: {line}");
        }
        assert!(bar(&half(), 120, false).ends_with("film.mov"));
    }

    #[test]
    fn nothing_to_do_is_everything_done() {
        let empty = Snapshot { total: Some(0), ..Snapshot::default() };
        assert!(plain(&empty).starts_with("100%"));
    }
}
