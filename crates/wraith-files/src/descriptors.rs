//! Divides the file descriptors that a process may have.
//!
//! The usual limit is 1024, and some systems allow 256 or fewer. A cache or batch that holds
//! descriptors takes its share here, so that a tree of any size is received under any limit.

use rustix::process::{Resource, getrlimit};

/// Descriptors for all other uses: standard streams, sockets, locks, state files, open parts.
const RESERVED: u64 = 44;

/// Returns the number of descriptors for one use: the `divisor`th part of those that are not
/// reserved, at least 2 and at most `max`.
pub fn descriptor_share(divisor: u64, max: usize) -> usize {
    share_of(getrlimit(Resource::Nofile).current, divisor, max)
}

/// `limit` is `None` without a limit.
fn share_of(limit: Option<u64>, divisor: u64, max: usize) -> usize {
    let share = limit.map_or(u64::MAX, |limit| limit.saturating_sub(RESERVED) / divisor);
    usize::try_from(share).unwrap_or(usize::MAX).min(max).max(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_follows_the_limit_within_its_bounds() {
        assert_eq!(share_of(None, 4, 256), 256);
        assert_eq!(share_of(Some(1 << 20), 4, 256), 256);
        assert_eq!(share_of(Some(256), 4, 256), 53);
        assert_eq!(share_of(Some(64), 4, 256), 5);
        assert_eq!(share_of(Some(3), 4, 256), 2);
    }
}
