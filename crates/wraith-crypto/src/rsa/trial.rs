//! Trial division by all odd primes below [`LIMIT`]. The time depends only on the first block
//! of primes that contains a divisor.
//!
//! The primes are multiplied together to groups below 2^31. The remainder of a number modulo a
//! group is a sum of products: each digit of 32 bits times the remainder of its place, from a
//! table. Eight groups form a block, in a layout that compilers vectorize. The code has no division
//! instruction, because the time of a division depends on its operands.

use std::sync::OnceLock;

/// Upper bound of the primes.
const LIMIT: u32 = 1 << 13;
/// Number of groups in a block.
const LANES: usize = 8;
/// Maximum number of 32-bit digits of a number.
const DIGITS_MAX: usize = 64;

/// The blocks, the one with the smallest primes first.
static BLOCKS: OnceLock<Vec<Block>> = OnceLock::new();

/// A prime, in a form that tests 32-bit numbers for divisibility. A number is divisible if and only
/// if its product with `inverse` is at most `most` (Granlund, Montgomery: "Division by invariant
/// integers using multiplication", 1994).
struct Prime {
    lane: usize,
    inverse: u32,
    most: u32,
}

struct Block {
    groups: [u64; LANES],
    /// `floor(2^64 / group)`.
    reciprocals: [u64; LANES],
    /// `2^(32·place)` modulo each group.
    places: Vec<[u32; LANES]>,
    primes: Vec<Prime>,
}

impl Block {
    fn new(groups: &[Vec<u32>]) -> Self {
        let mut block = Self {
            groups: [1; LANES],
            reciprocals: [0; LANES],
            places: vec![[0; LANES]; DIGITS_MAX],
            primes: Vec::new(),
        };
        for (lane, primes) in groups.iter().enumerate() {
            let group: u64 = primes.iter().map(|prime| u64::from(*prime)).product();
            block.groups[lane] = group;
            block.reciprocals[lane] = u64::MAX / group;
            let mut place = 1;
            for places in &mut block.places {
                places[lane] = place as u32;
                place = (place << 32) % group;
            }
            block.primes.extend(primes.iter().map(|&prime| {
                let inverse = (0..5).fold(prime, |inverse, _| {
                    inverse.wrapping_mul(2_u32.wrapping_sub(prime.wrapping_mul(inverse)))
                });
                Prime { lane, inverse, most: u32::MAX / prime }
            }));
        }
        block
    }

    fn divides(&self, number: &[u64]) -> bool {
        // Each is a sum of at most 64 numbers of 32 bits.
        let [mut low, mut high] = [[0_u64; LANES]; 2];
        let digits = number.iter().flat_map(|limb| [*limb as u32, (*limb >> 32) as u32]);
        for (digit, places) in digits.zip(&self.places) {
            for lane in 0..LANES {
                let product = u64::from(digit) * u64::from(places[lane]);
                low[lane] += product & u64::from(u32::MAX);
                high[lane] += product >> 32;
            }
        }
        let mut rests = [0; LANES];
        for lane in 0..LANES {
            let rest = self.rest(lane, high[lane]) * u64::from(self.places[1][lane]);
            rests[lane] = self.rest(lane, rest + low[lane]) as u32;
        }
        let divides = |prime: &Prime| rests[prime.lane].wrapping_mul(prime.inverse) <= prime.most;
        self.primes.iter().fold(false, |found, prime| found | divides(prime))
    }

    /// Returns `number` modulo the group of `lane`, or that plus the group. Either is below 2^32.
    fn rest(&self, lane: usize, number: u64) -> u64 {
        let quotient = (u128::from(number) * u128::from(self.reciprocals[lane])) >> 64;
        number - quotient as u64 * self.groups[lane]
    }
}

/// Returns whether an odd prime below [`LIMIT`] divides `number`, of at most 32 limbs.
pub(super) fn has_small_divisor(number: &[u64]) -> bool {
    debug_assert!(2 * number.len() <= DIGITS_MAX);
    BLOCKS.get_or_init(blocks).iter().any(|block| block.divides(number))
}

fn blocks() -> Vec<Block> {
    let mut groups: Vec<Vec<u32>> = vec![Vec::new()];
    let mut product = 1;
    for prime in primes() {
        if product * u64::from(prime) >= 1 << 31 {
            groups.push(Vec::new());
            product = 1;
        }
        product *= u64::from(prime);
        groups.last_mut().expect("there is one").push(prime);
    }
    groups.chunks(LANES).map(Block::new).collect()
}

/// Returns the odd primes below [`LIMIT`] (sieve of Eratosthenes).
fn primes() -> Vec<u32> {
    let mut is_composite = vec![false; LIMIT as usize];
    let mut primes = Vec::new();
    for number in (3..LIMIT as usize).step_by(2) {
        if !is_composite[number] {
            primes.push(number as u32);
            (number * number..LIMIT as usize)
                .step_by(number)
                .for_each(|at| is_composite[at] = true);
        }
    }
    primes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a number times `factor`.
    fn multiple(number: &[u64], factor: u64) -> Vec<u64> {
        let mut carry = 0;
        let limbs = number.iter().map(|limb| {
            carry += u128::from(*limb) * u128::from(factor);
            let low = carry as u64;
            carry >>= 64;
            low
        });
        limbs.collect()
    }

    fn divides(prime: u32, number: &[u64]) -> bool {
        let rest = number
            .iter()
            .rev()
            .fold(0, |rest, limb| (rest << 64 | u128::from(*limb)) % u128::from(prime));
        rest == 0
    }

    #[test]
    fn divisors_are_found_as_division_finds_them() {
        let primes = primes();
        assert_eq!((primes.len(), primes[0], primes.last()), (1027, 3, Some(&8191)));
        let bytes = crate::kernels::tests::bytes(8 * 32 * 200);
        let (chunks, _) = bytes.as_chunks::<8>();
        let limbs: Vec<u64> = chunks.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
        let mut without = 0;
        for (index, number) in limbs.chunks(32).enumerate() {
            let number = &number[..1 + index % 32];
            let expected = primes.iter().any(|prime| divides(*prime, number));
            assert_eq!(has_small_divisor(number), expected, "{index}");
            without += usize::from(!expected);
        }
        assert!(without > 5);
        for len in [1, 16, 24, 32] {
            assert!(
                has_small_divisor(&vec![u64::MAX; len])
                    && !has_small_divisor(&[vec![0; len - 1], vec![1]].concat())
            );
        }
    }

    #[test]
    fn each_prime_is_found_in_its_multiples() {
        // 2^k for some k, times 1 or a prime above the limit.
        let mut number = vec![0; 31];
        number[28] = 1 << 40;
        for factor in [1, 65_537, 1_000_003] {
            let number = multiple(&number, factor);
            assert!(!has_small_divisor(&number));
            for prime in primes() {
                assert!(has_small_divisor(&multiple(&number, prime.into())), "{prime}");
            }
        }
    }
}
