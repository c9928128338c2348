//! Which of a sender's permissions arrive: those that the receiver's umask leaves, or all of them where its user says so.
//!
//! Invariant: set-uid, set-gid and sticky never come from a peer. A program that runs as its owner is the owner's decision.

use std::sync::OnceLock;

use rustix::fs::Mode;

use crate::write::PERMISSION_BITS;

/// The mask of this process where the system does not say it in `/proc`; asked for once.
static ASKED: OnceLock<u32> = OnceLock::new();

/// Which permissions a target takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeptModes(u32);

impl KeptModes {
    /// What the umask of this process leaves.
    pub(crate) fn by_umask() -> Self {
        Self(PERMISSION_BITS & !umask())
    }

    /// All of them.
    pub(crate) fn all() -> Self {
        Self(PERMISSION_BITS)
    }

    /// What arrives of `mode`.
    pub(crate) fn of(self, mode: u32) -> u32 {
        mode & self.0
    }
}

fn umask() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let said = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    let said = said.and_then(|said| u32::from_str_radix(said.trim(), 8).ok());
    // It can be asked for only by setting it. What another thread makes in between is for the user alone.
    said.unwrap_or_else(|| {
        *ASKED.get_or_init(|| {
            let umask = rustix::process::umask(Mode::RWXG | Mode::RWXO);
            rustix::process::umask(umask);
            umask.bits()
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_bits_never_arrive_and_the_mask_takes_the_rest() {
        assert_eq!(KeptModes::all().of(0o7777), 0o777);
        assert_eq!(KeptModes(0o777 & !0o027).of(0o6777), 0o750);
        assert_eq!(KeptModes::by_umask().of(0o7777), 0o777 & !umask());
    }
}
