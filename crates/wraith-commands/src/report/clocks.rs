//! Reports a peer that got no answer because the clocks of both sides differ.

use std::time::{SystemTime, UNIX_EPOCH};

use wraith::NodeId;

use super::names::name_of;
use crate::output::{Event, Reporter};

/// Returns the advice for a peer that may be silent because of its clock or ours.
pub fn compare_clocks() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!(
        "Does that machine's clock agree with this one ({})? If not, set the wrong clock",
        utc(now.as_secs())
    )
}

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
const YEAR: u64 = 365 * DAY;

/// Reports that a peer's clock was ahead of this machine's by `seconds`.
pub fn clocks_differ(peer: Option<NodeId>, seconds: i64, reporter: &Reporter) {
    let contact = peer.and_then(name_of);
    let contact = contact.as_ref().map(wraith::state::ContactName::as_str);
    let node_id = peer.map(|peer| peer.to_string());
    reporter.event(&Event::ClocksDiffer { peer: node_id.as_deref(), contact, seconds });
    reporter.warn(sentence(contact.unwrap_or("a peer"), seconds));
}

fn sentence(peer: &str, seconds: i64) -> String {
    let direction = if seconds < 0 { "behind" } else { "ahead of" };
    let difference = about(seconds.unsigned_abs());
    format!(
        "{peer} got no answer: the clocks of the two machines differ by about {difference}. By its \
         message, that machine is {direction} this one. Set the wrong clock. If {peer} is not \
         trying now, an old message was repeated, and there is nothing to do"
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

/// Formats a difference of clocks with one unit, rounded down.
pub fn about(seconds: u64) -> String {
    let (number, unit) = match seconds {
        0..MINUTE => (seconds, "s"),
        MINUTE..HOUR => (seconds / MINUTE, "min"),
        HOUR..DAY => (seconds / HOUR, "h"),
        DAY..YEAR => (seconds / DAY, "days"),
        _ => (seconds / YEAR, "years"),
    };
    match (number, unit) {
        (1, "days" | "years") => format!("1 {}", unit.trim_end_matches('s')),
        _ => format!("{number} {unit}"),
    }
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
        let cases = [(1, "1 s"), (91, "1 min"), (3 * HOUR + 5, "3 h"), (DAY, "1 day")];
        for (seconds, text) in cases.into_iter().chain([(10 * YEAR, "10 years")]) {
            assert_eq!(about(seconds), text);
        }
    }

    #[test]
    fn the_sentence_names_the_clocks_and_the_direction() {
        let text = sentence("bob", -(3 * HOUR as i64));
        assert!(text.starts_with("bob got no answer: the clocks"), "{text}");
        assert!(text.contains("about 3 h") && text.contains("behind this one"), "{text}");
    }
}
