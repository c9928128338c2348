//! Checks the processor, the clock and the disk.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use wraith_command_text::units::Bytes;
use wraith_crypto::aes_hardware;

use super::Check;
use crate::args::version;
use crate::report::utc;

/// Earliest plausible time: this version was built after 1 November 2026.
const EARLIEST: Duration = Duration::from_secs(1_793_491_200);
/// With less free space, most transfers do not fit.
const LITTLE_SPACE: u64 = 1 << 30;

pub fn check(report: &mut impl FnMut(Check)) {
    report(processor());
    report(kernels());
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

/// Runs the self-test of every kernel, those of other algorithms included.
fn kernels() -> Check {
    let found = version::kernels();
    if version::failed_kernels().is_empty() {
        let meaning = match found.starts_with("none") {
            true => "libraries and portable code compute",
            false => "their results in a self-test are right",
        };
        return Check::ok("kernels", found, meaning);
    }
    let meaning = "a library or portable code computes instead; transfers are correct, but slower";
    Check::warn("kernels", found, meaning)
        .next("check this machine's memory and processor, and report this output")
}

fn clock(now: SystemTime) -> Check {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let found = utc(since.as_secs());
    if since < EARLIEST {
        let found = format!("{found}, before this program was built");
        let meaning = "the clock is wrong. New tickets and codes work, but codes of six words and \
                       contacts may not find the other machine";
        return Check::fail("clock", found, meaning)
            .next("set the clock: timedatectl set-ntp true");
    }
    Check::ok("clock", found, "later than the date of this program; that proves nothing more")
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
    fn a_clock_that_was_never_set_is_a_failure() {
        assert_eq!(clock(UNIX_EPOCH + Duration::from_secs(60)).status, Status::Fail);
        assert_eq!(clock(UNIX_EPOCH + EARLIEST).status, Status::Ok);
    }
}
