//! Reports a peer that got no answer because the clocks of both sides differ.

use std::time::{SystemTime, UNIX_EPOCH};

use wraith::NodeId;

use super::names::name_of;
use crate::output::Reporter;

/// Returns the advice for a peer that may be silent because its clock differs from ours by more than
/// `limit`.
pub fn compare_clocks(limit: &str) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!(
        "Compare the clocks: this machine's shows {}. If the other one differs by more than \
         {limit}, set the wrong one",
        utc(now.as_secs())
    )
}

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
const YEAR: u64 = 365 * DAY;

/// Shows that a peer's clock was ahead of this machine's by `seconds`.
pub fn clocks_differ(peer: Option<NodeId>, seconds: i64, reporter: &Reporter) {
    let contact = peer.and_then(name_of);
    let contact = contact.as_ref().map(wraith::state::ContactName::as_str);
    reporter.warn(sentence(contact.unwrap_or("a peer"), seconds));
}

fn sentence(peer: &str, seconds: i64) -> String {
    let direction = if seconds < 0 { "behind" } else { "ahead of" };
    let difference = about(seconds.unsigned_abs());
    format!(
        "{peer} got no answer: the clock of that machine is about {difference} {direction} this \
         one. Set the wrong clock. If no machine of yours or of a contact calls now, a third party \
         repeated an old message, and there is nothing to do"
    )
}

/// Formats a time as `2026-11-22 06:30:00 UTC`.
pub fn utc(seconds: u64) -> String {
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

/// Formats a difference of clocks with one unit, rounded to the nearest.
pub fn about(seconds: u64) -> String {
    // With at least two of a unit, rounding changes the difference by less than a quarter.
    let (unit_seconds, unit) = match seconds {
        0..600 => (1, "s"),
        600..7200 => (MINUTE, "min"),
        7200..172_800 => (HOUR, "h"),
        172_800..63_072_000 => (DAY, "days"),
        _ => (YEAR, "years"),
    };
    format!("{} {unit}", seconds.saturating_add(unit_seconds / 2) / unit_seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(utc(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(utc(951_782_400), "2000-02-29 00:00:00 UTC");
        assert_eq!(utc(1_767_225_599), "2025-12-31 23:59:59 UTC");
        assert_eq!(utc(4_107_542_400), "2100-03-01 00:00:00 UTC");
    }

    #[test]
    fn a_difference_has_one_unit() {
        let cases = [(1, "1 s"), (91, "91 s"), (119 * MINUTE, "119 min"), (3 * HOUR - 5, "3 h")];
        let cases = cases.into_iter().chain([(DAY, "24 h"), (2 * DAY, "2 days")]);
        for (seconds, text) in
            cases.chain([(u64::MAX, "584942417355 years"), (10 * YEAR, "10 years")])
        {
            assert_eq!(about(seconds), text);
        }
    }

    #[test]
    fn the_sentence_names_the_clocks_and_the_direction() {
        let text = sentence("bob", -(3 * HOUR as i64));
        assert!(text.starts_with("bob got no answer: the clock"), "{text}");
        assert!(text.contains("about 3 h") && text.contains("behind this one"), "{text}");
    }
}
