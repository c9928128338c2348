//! The closing line of a transfer: the received files, the rate, and the files that did not have to
//! move.
//!
//! Invariant: the line counts only files that are verified and have their names at the receiver.
//! Failed files are reported by the error that follows the line.

use wraith_command_text::units::{Bytes, Clock, Files};
use wraith_transfer::Role;

/// The figures of the closing line.
#[derive(Clone, Copy, Debug)]
pub struct Summary {
    pub role: Role,
    /// Files that moved, whole or in part.
    pub moved: u64,
    /// Files that were there before.
    pub already_here: u64,
    /// Bytes of both.
    pub bytes: u64,
    /// Entries that the receiver skipped, because something else has their names.
    pub kept: u64,
    pub failed: u64,
    /// Bytes of file content that moved over the connection.
    pub bytes_moved: u64,
    /// Whether a power cut can still lose data although syncing was possible.
    pub not_yet_on_disk: bool,
    pub seconds: f64,
}

impl Summary {
    /// Returns `bytes_moved` divided by `seconds`.
    pub fn rate(&self) -> u64 {
        wraith::json::rate(self.bytes_moved, self.seconds)
    }

    pub fn line(&self) -> String {
        let others = self.already_here + self.kept + self.failed;
        let files = Files(self.moved + self.already_here);
        if self.moved == 0 && self.already_here == others && others > 0 {
            return format!("Already up to date: {files}, {}.", Bytes(self.bytes));
        }
        let verb = match self.role {
            Role::Sender => "Sent",
            Role::Receiver => "Received",
        };
        let mut line = if self.moved == 0 && others > 0 {
            format!("{verb} nothing.")
        } else {
            let (bytes, now) = (Bytes(self.bytes), Bytes(self.bytes_moved));
            let took = match self.rate() {
                0 => format!("in {}", self.took()),
                rate => format!("in {} ({}/s)", self.took(), Bytes(rate)),
            };
            let disk = if self.not_yet_on_disk { ", not yet on disk" } else { "" };
            // An earlier connection moved the rest, or it was there before.
            match self.bytes_moved < self.bytes {
                false => format!("{verb} {files}, {bytes} {took}, verified{disk}."),
                true => format!("{verb} {files}, {bytes}, verified{disk}; now {now} {took}."),
            }
        };
        let kept = ["was kept unchanged", "were kept unchanged"];
        let here = ["was there already", "were there already"];
        for (count, [one, several]) in [(self.already_here, here), (self.kept, kept)] {
            if count > 0 {
                let what = if count == 1 { one } else { several };
                line.push_str(&format!(" {} {what}.", Files(count)));
            }
        }
        line
    }

    fn took(&self) -> String {
        match self.seconds {
            s if s < 10.0 => format!("{s:.2} s"),
            s => Clock(s as u64).to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Summary = Summary {
        role: Role::Receiver,
        moved: 0,
        already_here: 0,
        bytes: 0,
        kept: 0,
        failed: 0,
        bytes_moved: 0,
        not_yet_on_disk: false,
        seconds: 2.0,
    };

    #[test]
    fn a_summary_counts_moved_and_present_files() {
        let all = Summary { moved: 2, bytes: 4_000_000, bytes_moved: 4_000_000, ..NOTHING };
        assert_eq!(all.line(), "Received 2 files, 4.00 MB in 2.00 s (2.00 MB/s), verified.");
        let kernel = Summary { not_yet_on_disk: true, ..all };
        assert!(kernel.line().ends_with("(2.00 MB/s), verified, not yet on disk."));
        let some = Summary { moved: 1, already_here: 1, bytes_moved: 1_000_000, ..all };
        assert_eq!(
            some.line(),
            "Received 2 files, 4.00 MB, verified; now 1.00 MB in 2.00 s (500 kB/s). 1 file was there already."
        );
        let sent = Summary { role: Role::Sender, already_here: 0, ..some };
        assert_eq!(
            sent.line(),
            "Sent 1 file, 4.00 MB, verified; now 1.00 MB in 2.00 s (500 kB/s)."
        );
        assert_eq!(NOTHING.line(), "Received 0 files, 0 B in 2.00 s, verified.", "only folders");
    }

    #[test]
    fn nothing_passes_for_sent_that_was_not() {
        for role in [Role::Sender, Role::Receiver] {
            let same = Summary { role, already_here: 3, bytes: 52_400_000, ..NOTHING };
            assert_eq!(same.line(), "Already up to date: 3 files, 52.4 MB.");
        }
        let failed = Summary { failed: 1, bytes_moved: 7, ..NOTHING };
        assert_eq!(failed.line(), "Received nothing.");
        let left = Summary { kept: 1, failed: 1, ..NOTHING };
        assert_eq!(left.line(), "Received nothing. 1 file was kept unchanged.");
        let sent = Summary { role: Role::Sender, kept: 2, ..NOTHING };
        assert_eq!(sent.line(), "Sent nothing. 2 files were kept unchanged.");
    }
}
