//! Packet number encoding (SPEC §4.1): four bytes hold the key phase and the low 31 bits of a
//! 62-bit packet number.

const PHASE_BIT: u32 = 1 << 31;
/// Number of packet numbers that the low 31 bits distinguish.
const WINDOW: u64 = 1 << 31;
/// One more than the largest packet number.
const LIMIT: u64 = 1 << 62;

/// Encodes phase and packet number as the four bytes of the header.
pub(crate) const fn truncate(pn: u64, phase: bool) -> [u8; 4] {
    let low = (pn % WINDOW) as u32;
    (if phase { low | PHASE_BIT } else { low }).to_be_bytes()
}

/// Decodes the four bytes. Returns the packet number with these low bits that is nearest to
/// `expected`, the largest received plus one (RFC 9000 Appendix A.3), and the phase.
pub(crate) const fn expand(bytes: [u8; 4], expected: u64) -> (u64, bool) {
    let wire = u32::from_be_bytes(bytes);
    let low = (wire & !PHASE_BIT) as u64;
    let candidate = (expected & !(WINDOW - 1)) | low;
    let pn = if candidate + WINDOW / 2 <= expected && candidate < LIMIT - WINDOW {
        candidate + WINDOW
    } else if candidate > expected + WINDOW / 2 && candidate >= WINDOW {
        candidate - WINDOW
    } else {
        candidate
    };
    (pn, wire & PHASE_BIT != 0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reference implementation: tries the three windows around `expected`.
    fn nearest(low: u64, expected: u64) -> u64 {
        let base = expected & !(WINDOW - 1) | low;
        [base.checked_sub(WINDOW), Some(base), Some(base + WINDOW)]
            .into_iter()
            .flatten()
            .filter(|&pn| pn < LIMIT)
            // Of two candidates at the same distance, the RFC takes the larger one.
            .min_by_key(|&pn| (pn.abs_diff(expected), std::cmp::Reverse(pn)))
            .unwrap()
    }

    #[test]
    fn the_first_packets_expand_to_themselves() {
        for pn in 0..1000 {
            assert_eq!(expand(truncate(pn, pn % 2 == 0), 0), (pn, pn % 2 == 0));
        }
    }

    #[test]
    fn expansion_crosses_the_boundaries_of_the_window_in_both_directions() {
        for boundary in [WINDOW, 5 * WINDOW, LIMIT - WINDOW] {
            for distance in [1, 2, 1000, WINDOW / 2 - 1] {
                let (below, above) = (boundary - distance, boundary + distance);
                assert_eq!(expand(truncate(boundary, true), below), (boundary, true));
                assert_eq!(expand(truncate(below, false), boundary), (below, false));
                assert_eq!(expand(truncate(above, false), boundary), (above, false));
            }
        }
    }

    proptest! {
        #[test]
        fn a_number_within_half_a_window_is_recovered(
            expected in WINDOW / 2..LIMIT - WINDOW / 2, offset in 0..WINDOW - 1, phase: bool,
        ) {
            let pn = expected - (WINDOW / 2 - 1) + offset;
            prop_assert_eq!(expand(truncate(pn, phase), expected), (pn, phase));
        }

        #[test]
        fn expansion_takes_the_nearest_number(wire: u32, expected in 0..LIMIT) {
            let (pn, phase) = expand(wire.to_be_bytes(), expected);
            prop_assert_eq!(pn, nearest(u64::from(wire & !PHASE_BIT), expected));
            prop_assert_eq!(phase, wire & PHASE_BIT != 0);
        }
    }
}
