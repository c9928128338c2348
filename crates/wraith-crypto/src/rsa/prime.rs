//! Random primes for keys (FIPS 186-5, appendix A.1.3).
//!
//! Each candidate is a fresh odd number, uniform between `√2 · 2^(bits - 1)` and `2^bits`, so all
//! primes in that range are equally likely. (A search upwards from one random number would need
//! fewer candidates, but would prefer primes after long gaps. OpenSSL steps to the next number
//! without small divisors; BoringSSL draws fresh numbers as this module does.)
//!
//! Candidates pass three tests:
//!
//! 1. [Trial division](super::trial) rejects most of them.
//! 2. The Euler test to base 2: modulo a prime p, 2^((p - 1) / 2) is 1 or -1. This test rejects
//!    almost all other composite numbers.
//! 3. Miller–Rabin with random bases.
//!
//! The time may reveal that a candidate was rejected. It reveals neither the rejected candidates
//! nor anything about the accepted one.

use zeroize::Zeroizing;

use super::trial;
use crate::bignum::product;
use crate::kernels::montgomery::{Modulus, eight};

/// The first 64 bits of √2.
const SQRT_2: u64 = 0xb504_f333_f9de_6484;
/// Maximum number of candidates for each bit of a prime. At 2048 bits one in 710 is prime, so the
/// candidates run out with a probability of 2^-266.
const TRIES_PER_BIT: usize = 64;
/// The primes of a key differ by more than `2^(bits - APART_BITS)` (FIPS 186-5, appendix A.1.3,
/// step 5.4).
const APART_BITS: usize = 100;
/// Number of random bytes drawn at once.
const POOL_BYTES: usize = 8192;

/// A buffer of random limbs. A request for each single limb takes longer than its generation.
pub(super) struct RandomLimbs {
    bytes: Zeroizing<Vec<u8>>,
    used: usize,
}

impl RandomLimbs {
    pub(super) fn new() -> Self {
        Self { bytes: Zeroizing::new(vec![0; POOL_BYTES]), used: POOL_BYTES }
    }

    fn limb(&mut self) -> u64 {
        if self.used == POOL_BYTES {
            crate::rand::fill(&mut self.bytes);
            self.used = 0;
        }
        let (limbs, _) = self.bytes.as_chunks::<8>();
        let limb = u64::from_le_bytes(limbs[self.used / 8]);
        self.used += 8;
        limb
    }
}

/// Returns a random prime of `64·limbs` bits.
///
/// The prime is at least √2 times the least number of that length, is not 1 modulo [`E`](super::E),
/// and differs from `other` by more than `2^(64·limbs - 100)`. Returns `None` where the processor
/// does not support the kernel, or the candidates run out.
pub(super) fn random(
    limbs: usize,
    other: Option<&[u64]>,
    pool: &mut RandomLimbs,
) -> Option<Zeroizing<Vec<u64>>> {
    let mut tries = TRIES_PER_BIT * 64 * limbs;
    while tries > 0 {
        let mut numbers = Vec::with_capacity(eight::COUNT);
        while numbers.len() < eight::COUNT && tries > 0 {
            numbers.extend(candidate(limbs, other, pool));
            tries -= 1;
        }
        keep_likely_primes(&mut numbers);
        for number in numbers {
            if is_probable_prime(&Modulus::new(&number)?, &number, rounds(64 * limbs), pool) {
                return Some(number);
            }
        }
    }
    None
}

/// Returns a random number without small divisors that meets the other conditions of [`random`], or
/// `None` if the number drawn does not.
fn candidate(
    limbs: usize,
    other: Option<&[u64]>,
    pool: &mut RandomLimbs,
) -> Option<Zeroizing<Vec<u64>>> {
    let mut number = Zeroizing::new(vec![0; limbs]);
    for limb in &mut number[..limbs - 1] {
        *limb = pool.limb();
    }
    number[limbs - 1] = std::iter::repeat_with(|| pool.limb()).find(|top| *top > SQRT_2)?;
    number[0] |= 1;
    let is_taken = !trial::has_small_divisor(&number)
        && super::modulo_e(&number) != 1
        && other.is_none_or(|other| are_apart(&number, other));
    is_taken.then_some(number)
}

/// Removes composite numbers that a test of [eight at a time](eight) finds, which is faster than
/// testing them one by one.
///
/// A prime is never removed, so the guarantees for the remaining numbers are unchanged.
fn keep_likely_primes(numbers: &mut Vec<Zeroizing<Vec<u64>>>) {
    if let [a, b, c, d, e, f, g, h] = &numbers[..]
        && eight::is_available(a.len())
    {
        let mut passed = eight::pass_euler_test(&[a, b, c, d, e, f, g, h]).into_iter();
        numbers.retain(|_| passed.next() == Some(true));
    }
}

/// Returns the number of rounds for a random number of `bits` bits.
///
/// The probability that it is composite is then below 2^-112 from 1024 bits on, 2^-128 from 1536
/// on, and 2^-144 from 2048 on (FIPS 186-5, table B.1). The bound for k bits and t rounds is `k^1.5
/// · 2^t · t^-0.5 · 4^(2 - √(t·k))` (Damgård, Landrock, Pomerance, "Average case error estimates
/// for the strong probable prime test", 1993). It yields 2^-120, 2^-134 and 2^-157.
pub(super) const fn rounds(bits: usize) -> usize {
    if bits < 1536 { 5 } else { 4 }
}

/// Returns whether `number`, from 5 on, passes the Miller–Rabin test with `rounds` random bases.
/// `modulus` is `number`.
///
/// A number that is 1 modulo 2^64 does not pass.
pub(super) fn is_probable_prime(
    modulus: &Modulus,
    number: &[u64],
    rounds: usize,
    pool: &mut RandomLimbs,
) -> bool {
    let zeros = (number[0] ^ 1).trailing_zeros();
    if zeros == 64 {
        return false;
    }
    let above = number[1..].iter().copied().chain([0]);
    let odd: Zeroizing<Vec<u64>> = Zeroizing::new(
        number
            .iter()
            .zip(above)
            .map(|(limb, above)| limb >> zeros | above << 1 << (63 - zeros))
            .collect(),
    );
    (0..rounds).all(|_| {
        let base = random_base(number, pool);
        modulus.is_strong_probable_prime(&base, &odd, zeros)
    })
}

/// Returns a random number from 2 to `n - 2`: 2 plus the integer part of `n - 3` times a random
/// fraction, which has 64 bits more than `n`.
///
/// Rejection sampling would reveal something about `n`.
fn random_base(n: &[u64], pool: &mut RandomLimbs) -> Zeroizing<Vec<u64>> {
    let mut range = Zeroizing::new(n.to_vec());
    product::subtract_assign(&mut range, &[3]);
    let fraction: Zeroizing<Vec<u64>> =
        Zeroizing::new((0..=n.len()).map(|_| pool.limb()).collect());
    let mut product = Zeroizing::new(vec![0; 2 * n.len() + 1]);
    product::multiply(&mut product, &fraction, &range);
    let mut base = Zeroizing::new(product[n.len() + 1..].to_vec());
    product::add_assign(&mut base, &[2]);
    base
}

/// Returns whether two numbers of equal length differ by at least `2^(bits - 99)`, and so by more
/// than `2^(bits - 100)`.
fn are_apart(a: &[u64], b: &[u64]) -> bool {
    let [mut a_less_b, b_less_a] = [(a, b), (b, a)].map(|(a, b)| {
        let mut difference = Zeroizing::new(a.to_vec());
        let borrow = product::subtract_assign(&mut difference, b);
        let keep = borrow.wrapping_sub(1);
        difference.iter_mut().for_each(|limb| *limb &= keep);
        difference
    });
    product::add_assign(&mut a_less_b, &b_less_a);
    let bit = 64 * a.len() - APART_BITS + 1;
    let high = a_less_b[bit / 64 + 1..].iter().fold(0, |all, limb| all | limb);
    high | a_less_b[bit / 64] >> (bit % 64) != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a pool of `bytes`, of which the first `used` are used up.
    fn pool(bytes: &[u8], used: usize) -> RandomLimbs {
        RandomLimbs { bytes: Zeroizing::new(bytes.to_vec()), used }
    }

    #[test]
    fn rounds_are_those_of_table_b_1_of_fips_186_5() {
        let lengths = [1024, 1088, 1535, 1536, 2048];
        assert_eq!(lengths.map(rounds), [5, 5, 5, 4, 4]);
    }

    #[test]
    fn numbers_are_apart_from_a_difference_of_2_to_the_bits_less_99_on() {
        for limbs in [16, 17, 24, 32] {
            let base = vec![u64::MAX / 3; limbs];
            let bit = 64 * limbs - 99;
            let mut least = vec![0; limbs];
            least[bit / 64] = 1 << (bit % 64);
            let mut less = least.clone();
            product::subtract_assign(&mut less, &[1]);
            let mut top = vec![0; limbs];
            top[limbs - 1] = 1 << 62;
            let cases = [
                (least, true),
                (less, false),
                (vec![0; limbs], false),
                (vec![1], false),
                (top, true),
            ];
            for (difference, expected) in cases {
                let mut sum = base.clone();
                assert_eq!(product::add_assign(&mut sum, &difference), 0);
                let found = [are_apart(&sum, &base), are_apart(&base, &sum)];
                assert_eq!(found, [expected; 2], "{limbs} {difference:x?}");
            }
        }
    }

    #[test]
    fn a_candidate_is_apart_from_the_other_prime_and_its_top_is_above_the_root_of_two() {
        let bytes = crate::kernels::tests::bytes(POOL_BYTES);
        let mut taken = 0;
        for start in (0..POOL_BYTES / 2).step_by(8) {
            let from = || pool(&bytes, start);
            let Some(number) = candidate(16, None, &mut from()) else { continue };
            assert!(number[15] > SQRT_2 && number[0] & 1 == 1);
            // Differences of 2^924 and 2^925.
            let [near, far] = [28, 29].map(|bit| {
                let mut other = number.to_vec();
                other[14] ^= 1 << bit;
                other
            });
            for other in [&number, &near] {
                assert!(candidate(16, Some(other), &mut from()).is_none());
            }
            assert_eq!(candidate(16, Some(&far), &mut from()), Some(number));
            taken += 1;
        }
        assert!(taken > 10);
    }

    #[test]
    fn bases_are_all_from_2_to_n_less_2() {
        for n in [5, 7, 11, 101] {
            let mut pool = RandomLimbs::new();
            let bases: std::collections::BTreeSet<u64> =
                (0..200 * n).map(|_| random_base(&[n], &mut pool)[0]).collect();
            assert!(bases.into_iter().eq(2..=n - 2), "{n}");
        }
        let n = crate::kernels::tests::bytes(128);
        let n: Vec<u64> =
            n.as_chunks::<8>().0.iter().map(|limb| u64::from_le_bytes(*limb)).collect();
        let mut last = n.clone();
        product::subtract_assign(&mut last, &[2]);
        let [least, most] =
            [0, 0xff].map(|byte| random_base(&n, &mut pool(&[byte; POOL_BYTES], 0)).to_vec());
        assert!(least[0] == 2 && least[1..].iter().all(|limb| *limb == 0) && most == last);
    }
}
