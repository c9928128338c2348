//! Compares this machine's clock with those of the relays.

use super::Check;
use crate::report::about;

const NAME: &str = "clock difference";
/// Clocks closer than this work everywhere (SPEC §3.4).
const TOLERANCE_SECONDS: u64 = 90;

/// A relay and its clock minus this machine's, in seconds.
pub type RelayClock = (String, i64);

/// Returns the result for the relays that have sent their time.
pub fn compare(relays: &[RelayClock]) -> Check {
    let Some((relay, difference)) = relays.iter().max_by_key(|(_, by)| by.unsigned_abs()) else {
        let meaning = "no relay has sent its time. Name one with --relay, or compare this clock with \
                       the other machine's: beyond 90 s, contacts may not find each other";
        return Check::none(NAME, "nothing to compare with", meaning);
    };
    let apart = difference.unsigned_abs();
    if apart <= TOLERANCE_SECONDS {
        let found = format!("{} to {relay}", about(apart));
        let meaning = "this clock agrees with the relay's. Test the other machine, too, with the same \
                       relay";
        return Check::ok(NAME, found, meaning);
    }
    let direction = if *difference < 0 { "ahead of" } else { "behind" };
    let found = format!("this machine is {} {direction} {relay}", about(apart));
    let meaning = "one of the two clocks is wrong. New tickets and codes work, but codes of six \
                   words and contacts may not find the other machine";
    let next =
        "if this clock is wrong: timedatectl set-ntp true; if not, tell the relay's operator";
    Check::warn(NAME, found, meaning).next(next)
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;

    fn of(differences: &[i64]) -> Check {
        let relays: Vec<_> = differences.iter().map(|by| ("relay.example".into(), *by)).collect();
        compare(&relays)
    }

    #[test]
    fn without_a_clock_to_compare_with_the_check_says_so() {
        let check = of(&[]);
        assert_eq!(check.status, Status::None);
        assert!(check.found.contains("nothing to compare with"));
    }

    #[test]
    fn the_largest_difference_counts_and_has_its_direction() {
        assert_eq!(of(&[0, 90, -90]).status, Status::Ok);
        let check = of(&[1, 10_800]);
        assert_eq!(check.status, Status::Warn);
        assert_eq!(check.found, "this machine is 3 h behind relay.example");
        assert_eq!(of(&[i64::MIN]).status, Status::Warn);
        assert!(of(&[-91]).found.contains("91 s ahead of"));
    }
}
