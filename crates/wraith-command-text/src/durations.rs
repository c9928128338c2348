//! Durations on the command line: one grammar for all options.

use std::time::Duration;

/// Ten years: longer than any wait, and within the clock range of every system.
const SECONDS_MAX: u64 = 10 * 365 * 24 * 3600;

/// The names of each unit, and its length in milliseconds.
const UNITS: [(&[&str], u64); 6] = [
    (&["ms"], 1),
    (&["s", "sec", "secs", "second", "seconds"], 1000),
    (&["m", "min", "mins", "minute", "minutes"], 60 * 1000),
    (&["h", "hr", "hour", "hours"], 3600 * 1000),
    (&["d", "day", "days"], 24 * 3600 * 1000),
    (&["w", "week", "weeks"], 7 * 24 * 3600 * 1000),
];

/// The accepted forms, for errors.
const EXPECTED: &str =
    "expected a time such as 90, 90s, 15m, 1h30m or 2d; a number alone is a number of seconds";

/// Maximum number of digits behind the decimal point.
const DECIMALS_MAX: usize = 3;

/// Parses a duration: `90` and `1.5` are seconds; `500ms`, `90s`, `15m` or `15 minutes`, `1.5h`,
/// `2d` and `1w` have a unit; `1h30m` is a sum.
///
/// # Errors
/// Another form, or more than ten years.
pub fn duration(text: &str) -> Result<Duration, String> {
    let mut sum_ms = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, behind) = rest.split_at(end);
        let behind = behind.strip_prefix(' ').unwrap_or(behind);
        let end = behind.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(end);
        let unit = if number.len() == text.len() { "s" } else { unit };
        let factor_ms = UNITS.iter().find(|(names, _)| names.contains(&unit)).map(|(_, ms)| *ms);
        let part_ms = milliseconds(number, factor_ms.ok_or(EXPECTED)?).ok_or(EXPECTED)?;
        sum_ms = part_ms.saturating_add(sum_ms);
        rest = behind.strip_prefix(' ').filter(|rest| !rest.is_empty()).unwrap_or(behind);
    }
    match u64::try_from(sum_ms) {
        _ if text.is_empty() => Err(EXPECTED.to_owned()),
        Ok(ms) if ms <= SECONDS_MAX * 1000 => Ok(Duration::from_millis(ms)),
        _ => Err(format!("the maximum is {SECONDS_MAX} (ten years)")),
    }
}

/// Returns `number` units of `factor_ms` in milliseconds, rounded down. None if it is no decimal
/// number.
fn milliseconds(number: &str, factor_ms: u64) -> Option<u128> {
    let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
    let is_number =
        |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(decimals) || decimals.len() > DECIMALS_MAX {
        return None;
    }
    let factor_ms = u128::from(factor_ms);
    // A number beyond the range of u64 is beyond ten years too.
    let whole: u128 = whole.parse::<u64>().unwrap_or(u64::MAX).into();
    let part: u128 = decimals.parse().expect("at most three digits");
    Some(whole * factor_ms + part * factor_ms / 10u128.pow(decimals.len() as u32))
}

/// Parses a waiting time in whole seconds.
pub fn seconds(text: &str) -> Result<u64, String> {
    let time = duration(text)?;
    match time.subsec_nanos() {
        0 => Ok(time.as_secs()),
        _ => Err("expected a whole number of seconds".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_alone_is_in_seconds() {
        for (text, seconds) in [("0", 0), ("007", 7), ("90", 90), ("315360000", SECONDS_MAX)] {
            assert_eq!(duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        assert_eq!(duration("0.25"), Ok(Duration::from_millis(250)));
    }

    #[test]
    fn units_are_added_up() {
        for (text, ms) in [
            ("500ms", 500),
            ("90s", 90_000),
            ("15m", 900_000),
            ("15min", 900_000),
            ("15 minutes", 900_000),
            ("1h 30m", 5_400_000),
            ("1hour", 3_600_000),
            ("2 days", 172_800_000),
            ("1.5h", 5_400_000),
            ("1h30m", 5_400_000),
            ("1d12h", 129_600_000),
            ("2w", 1_209_600_000),
            ("3650d", SECONDS_MAX * 1000),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_millis(ms)), "{text}");
        }
    }

    #[test]
    fn an_error_shows_the_accepted_forms() {
        for wrong in [
            "",
            "soon",
            "5 minutes ago",
            "5  m",
            "-1",
            "+1",
            "1e9",
            "1h30",
            "1.2.3s",
            ".5s",
            "5.",
            "s",
            "5x",
            "5M",
            "1m-1s",
            "0x10",
            "1,5h",
            "1.0001s",
            "５s",
            "inf",
            "NaN",
            " 5",
            "1_000",
        ] {
            assert_eq!(duration(wrong), Err(EXPECTED.to_owned()), "{wrong}");
        }
    }

    #[test]
    fn more_than_ten_years_is_refused_with_the_maximum() {
        for large in [
            "315360001",
            "3651d",
            "99999999999999999999",
            "99999999999999999999w",
            "9999999999d9999999999d",
        ] {
            assert_eq!(
                duration(large),
                Err("the maximum is 315360000 (ten years)".to_owned()),
                "{large}"
            );
        }
    }

    #[test]
    fn waits_are_whole_seconds() {
        assert_eq!(seconds("1.5m"), Ok(90));
        assert!(seconds("1500ms").is_err());
    }
}
