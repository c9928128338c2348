//! Hours of records: storage keys change every hour.

pub const HOUR_SECONDS: u64 = 3600;
/// Largest clock difference between both sides. It exceeds that of the handshake: a record proves
/// nothing, so an old one only wastes a connection attempt.
pub const CLOCK_SKEW_SECONDS: u64 = 600;

pub const fn hour_of(unix_seconds: u64) -> u64 {
    unix_seconds / HOUR_SECONDS
}

/// Returns the hours that the writer's clock may show, likeliest first: at most two, because clocks
/// differ by less than half an hour.
pub fn hours_to_search(now: u64) -> Vec<u64> {
    let other = [now.saturating_sub(CLOCK_SKEW_SECONDS), now.saturating_add(CLOCK_SKEW_SECONDS)];
    let mut hours = vec![hour_of(now)];
    hours.extend(other.map(hour_of).into_iter().filter(|hour| *hour != hour_of(now)));
    hours
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_around_the_full_hour_is_a_neighbour_looked_in() {
        assert_eq!(hours_to_search(10 * 3600 + 1800), [10]);
        assert_eq!(hours_to_search(10 * 3600 + 599), [10, 9]);
        assert_eq!(hours_to_search(11 * 3600 - 600), [10, 11]);
        assert_eq!(hours_to_search(0), [0]);
    }

    #[test]
    fn a_clock_that_is_ten_minutes_off_looks_in_the_writers_hour() {
        for writer in (7_200..14_400).step_by(60) {
            for reader in [writer - 600, writer, writer + 600] {
                assert!(hours_to_search(reader).contains(&hour_of(writer)), "{writer} {reader}");
            }
        }
    }
}
