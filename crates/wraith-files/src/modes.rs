//! Selects which of a sender's permissions are applied: those that the receiver's umask allows, or
//! all of them if the receiver's user asks for that.
//!
//! Invariant: the set-uid, set-gid and sticky bits never come from a peer. Only the owner of a
//! program may decide that it runs as its owner.

use std::sync::OnceLock;

use rustix::fs::Mode;

use crate::write::PERMISSION_BITS;

/// The umask of this process, queried once, on systems whose `/proc` does not show it.
static ASKED: OnceLock<u32> = OnceLock::new();

/// Permissions that a target accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeptModes(u32);

impl KeptModes {
    /// Accepts the permissions allowed by the umask of this process.
    pub(crate) fn by_umask() -> Self {
        Self(PERMISSION_BITS & !umask())
    }

    /// Accepts all permissions.
    pub(crate) fn all() -> Self {
        Self(PERMISSION_BITS)
    }

    /// Returns the accepted part of `mode`.
    pub(crate) fn of(self, mode: u32) -> u32 {
        mode & self.0
    }
}

fn umask() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let said = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    let said = said.and_then(|said| u32::from_str_radix(said.trim(), 8).ok());
    // The call can read the umask only by setting it. Only this user can access files that another
    // thread creates in between.
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
