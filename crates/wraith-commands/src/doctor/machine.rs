//! Checks the processor, the clock and the disk.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use wraith_crypto::aes_hardware;

use super::Check;
use crate::args::units::Bytes;
use crate::args::version;

/// Earliest plausible time: 1 January 2026.
const EARLIEST: Duration = Duration::from_secs(1_767_225_600);
/// With less free space, most transfers do not fit.
const LITTLE_SPACE: u64 = 1 << 30;

pub fn check(report: &mut impl FnMut(Check)) {
    report(processor());
    report(clock(SystemTime::now()));
    report(space(Path::new(".")));
}

fn processor() -> Check {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let found = format!("{cores} cores, {}, BLAKE3 ({})", version::cipher(), version::hash());
    if aes_hardware() {
        return Check::ok(
            "processor",
            found,
            "ciphers and hashes use dedicated processor instructions",
        );
    }
    Check::warn(
        "processor",
        found,
        "no AES instructions: ChaCha20 is used, at several Gbit/s a core",
    )
}

fn clock(now: SystemTime) -> Check {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let found = utc(since.as_secs());
    if since < EARLIEST {
        let meaning = "the clock is wrong. New tickets and codes work, but contacts and resumed \
                       sends refuse a difference of more than 90 s";
        return Check::fail("clock", found, meaning)
            .next("set the clock: timedatectl set-ntp true");
    }
    let meaning = "contacts and resumed sends refuse a difference of more than 90 s; compare this \
                   clock with the other machine's";
    Check::ok("clock", found, meaning)
}

/// Formats a time as `2026-11-22 06:30:00 UTC`.
fn utc(seconds: u64) -> String {
    let (days, time) = (seconds / 86_400, seconds % 86_400);
    // Howard Hinnant's days-to-date algorithm: years that start in March have their leap day at the
    // end.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (time / 3_600, time / 60 % 60, time % 60);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

fn space(folder: &Path) -> Check {
    let shown = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let Ok(stat) = rustix::fs::statvfs(folder) else {
        return Check::warn(
            "free space",
            "unknown",
            "the file system of this folder does not report it",
        );
    };
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    let found = format!("{} in {}", Bytes(free), shown.display());
    if stat.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY) {
        let meaning = "this folder is read-only, so no file can be received into it";
        return Check::warn("free space", found, meaning).next("receive elsewhere: -o DIR");
    }
    match free {
        0..LITTLE_SPACE => {
            let meaning = "larger transfers end with \"disk full\", and resume when there is space";
            Check::warn("free space", found, meaning)
                .next("free some space, or receive elsewhere: -o DIR")
        }
        _ => Check::ok(
            "free space",
            found,
            "a transfer that does not fit is reported before it begins",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(utc(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(utc(951_782_400), "2000-02-29 00:00:00 UTC");
        assert_eq!(utc(1_767_225_599), "2025-12-31 23:59:59 UTC");
        assert_eq!(utc(4_107_542_400), "2100-03-01 00:00:00 UTC");
    }

    #[test]
    fn a_clock_that_was_never_set_is_a_failure() {
        assert_eq!(clock(UNIX_EPOCH + Duration::from_secs(60)).status, Status::Fail);
        assert_eq!(clock(UNIX_EPOCH + EARLIEST).status, Status::Ok);
    }
}
