//! Whether an ML-KEM-768 encapsulation key is visible: 768 numbers of 12 bits, two in three bytes
//! (FIPS 203 §4.2.1), each below 3329 of 4096.
//!
//! All handshake bytes of one side are examined as one string, so that a key split over datagrams
//! is detected, too.

use super::CheckFigure;
use crate::distributions::normal;
use crate::finding::Figure;

/// Bytes of the numbers of a key.
pub const KEY_BYTES: usize = 1152;
/// The modulus.
pub const Q: u16 = 3329;
/// Probability that random 12 bits are below the modulus.
const CHANCE: f64 = 3329.0 / 4096.0;
/// Maximum deviation of the share of small numbers in windows at one offset, in standard
/// deviations.
const SIGMAS_MAX: f64 = 4.9;

/// Unpacks two numbers from three bytes.
fn pair(bytes: &[u8]) -> [u16; 2] {
    let [a, b, c] = [0, 1, 2].map(|i| u16::from(bytes[i]));
    [a | (b & 0xf) << 8, b >> 4 | c << 4]
}

/// Packs two numbers into three bytes.
pub fn packed([x, y]: [u16; 2]) -> [u8; 3] {
    [x as u8, (x >> 8 | y << 4) as u8, (y >> 4) as u8]
}

/// Returns the figures; `flights` are the bytes that one side sent in each handshake.
pub fn figures(flights: &[Vec<u8>]) -> Vec<CheckFigure> {
    let longest = flights.iter().map(Vec::len).max().unwrap_or(0);
    let offsets = (longest + 1).saturating_sub(KEY_BYTES);
    let (mut small, mut windows) = (vec![0; offsets], vec![0_u64; offsets]);
    let (mut longest_run, mut numbers) = (0, 0_u64);
    for flight in flights {
        let smalls = |at: usize| pair(&flight[at..]).map(|number| number < Q);
        for phase in 0..3 {
            let mut run = 0;
            for is_small in
                (phase..(flight.len() + 1).saturating_sub(3)).step_by(3).flat_map(smalls)
            {
                run = if is_small { run + 1 } else { 0 };
                longest_run = longest_run.max(run);
                numbers += 1;
            }
        }
        let count = |at: usize| smalls(at).map(u64::from).iter().sum::<u64>();
        let ends = (flight.len() + 1).saturating_sub(KEY_BYTES);
        let mut sums: Vec<u64> = Vec::with_capacity(ends);
        for at in 0..ends {
            // The sum of the window three bytes before, without its first numbers and with the next
            // ones.
            let sum = match at.checked_sub(3) {
                None => (at..at + KEY_BYTES).step_by(3).map(count).sum(),
                Some(before) => sums[before] - count(before) + count(before + KEY_BYTES),
            };
            sums.push(sum);
            small[at] += sum;
            windows[at] += 1;
        }
    }
    let mut figures = Vec::new();
    // Offsets that only a few long handshakes reach are left out: each would be a sample of its
    // own, and chance would have many more tries.
    let reached =
        windows.iter().take_while(|windows| **windows * 2 >= flights.len() as u64).count();
    for (offset, (small, windows)) in small.into_iter().zip(windows).take(reached).enumerate() {
        let n = (windows * KEY_BYTES as u64 / 3 * 2) as f64;
        let z = (small as f64 - n * CHANCE) / (n * CHANCE * (1.0 - CHANCE)).sqrt();
        let figure = Figure::Within { p: normal(z), sigmas: SIGMAS_MAX };
        figures.push(CheckFigure::new("share below 3329", format!("window from {offset}"), figure));
    }
    // Expected number of runs of this length, by the probability that one ends at a given number.
    let expected = numbers as f64 * (1.0 - CHANCE) * CHANCE.powi(longest_run);
    let run = Figure::Chance(-(-expected).exp_m1());
    figures.push(CheckFigure::new("run below 3329", format!("{longest_run} numbers"), run));
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_packed_and_read() {
        for numbers in [[0, 0], [3328, 1], [1, 3328], [0xabc, 0x123]] {
            assert_eq!(pair(&packed(numbers)), numbers);
        }
    }
}
