//! Powers modulo an odd number of up to 8318 bits, in time that does not depend on the base, the
//! exponent or the modulus.
//!
//! `ifma` computes the products, in Montgomery form. This module splits exponents into windows and
//! builds combs for fixed bases. A [`Modulus`] exists only where the processor has the instructions
//! of `ifma`; elsewhere AWS-LC computes the powers.
//!
//! Numbers are little-endian: limbs of 64 bits in the interface, of 52 bits inside. Their lengths,
//! and the bit lengths of exponent and modulus, are public.

#[cfg(all(target_arch = "x86_64", feature = "simd"))]
mod ifma;
#[cfg(all(target_arch = "x86_64", feature = "simd"))]
pub(crate) use ifma::KERNEL;
mod portable;
#[cfg(test)]
mod tests;

#[cfg(not(all(target_arch = "x86_64", feature = "simd")))]
use portable as ifma;

use zeroize::{DefaultIsZeroes, Zeroize, Zeroizing};

/// Bits of an inner limb.
const LIMB_BITS: usize = 52;
const LIMB_MASK: u64 = (1 << LIMB_BITS) - 1;
/// Exponent bits consumed by one product.
const WINDOW: usize = 5;
/// Number of entries in a table of powers.
const ENTRIES: usize = 1 << WINDOW;
/// Number of tables of a comb.
const BLOCKS: usize = 5;
/// The bit length of a comb's exponents is a multiple of this.
pub const COMB_BITS_UNIT: usize = WINDOW * BLOCKS;

/// Eight limbs.
#[derive(Clone, Copy, Default)]
#[repr(C, align(64))]
struct Lanes([u64; 8]);

impl DefaultIsZeroes for Lanes {}

type Number<const V: usize> = [Lanes; V];

/// An odd modulus.
pub struct Modulus {
    n: Zeroizing<Vec<Lanes>>,
    /// `R²` modulo `n`, where `R` is `2^(52·steps)`.
    rr: Zeroizing<Vec<Lanes>>,
    /// `-1/n` modulo 2^52.
    n0: u64,
    steps: usize,
    /// Length in limbs of 64 bits.
    limbs: usize,
}

/// Precomputed powers of one base. A product of few of them is any power of it.
///
/// An exponent of `25·rows` bits is split into five teeth of `5·rows` bits, and each tooth into
/// five blocks of `rows` bits. For every set of teeth, table `k` holds the product of
/// `base^(2^(rows·(5·tooth + k)))` (Lim, Lee: "More flexible exponentiation with precomputation",
/// CRYPTO 1994).
pub struct Comb {
    table: Vec<Lanes>,
    rows: usize,
}

/// Calls a function with two constants: the number of vectors, and whether `n0` is 1.
macro_rules! with_size {
    ($modulus:expr, $function:ident($($argument:expr),*)) => {{
        let modulus: &Modulus = $modulus;
        match (modulus.n.len(), modulus.n0 == 1) {
            (3, false) => $function::<3, false>($($argument),*),
            (5, false) => $function::<5, false>($($argument),*),
            (8, false) => $function::<8, false>($($argument),*),
            (10, false) => $function::<10, false>($($argument),*),
            (15, false) => $function::<15, false>($($argument),*),
            (20, false) => $function::<20, false>($($argument),*),
            (3, true) => $function::<3, true>($($argument),*),
            (5, true) => $function::<5, true>($($argument),*),
            (8, true) => $function::<8, true>($($argument),*),
            (10, true) => $function::<10, true>($($argument),*),
            (15, true) => $function::<15, true>($($argument),*),
            _ => $function::<20, true>($($argument),*),
        }
    }};
}

/// Returns whether this processor supports a [`Modulus`].
pub fn is_available() -> bool {
    #[cfg(all(target_arch = "x86_64", feature = "simd"))]
    {
        KERNEL.is_available()
    }
    #[cfg(not(all(target_arch = "x86_64", feature = "simd")))]
    {
        false
    }
}

/// Supported sizes in vectors: 1024, 2048, 3072, 4096, 6144 and 8192 bits, and somewhat more.
const SIZES: [usize; 6] = [3, 5, 8, 10, 15, 20];

impl Modulus {
    /// Creates a modulus. The last limb of `n` is not zero.
    ///
    /// Returns `None` if `n` is even or 1, has too many bits, or the processor lacks the
    /// instructions.
    pub fn new(n: &[u64]) -> Option<Self> {
        let top = n.last().copied().unwrap_or(0);
        if !is_available() || top == 0 || n[0] & 1 == 0 || n == [1] {
            return None;
        }
        let bits = 64 * n.len() - top.leading_zeros() as usize;
        let steps = (bits + 2).div_ceil(LIMB_BITS);
        let vectors = SIZES.into_iter().find(|size| 8 * size >= steps)?;
        // Newton's method. An odd number is its own inverse modulo 8, so three bits are correct at
        // first; each round doubles them.
        let mut inverse = n[0];
        for _ in 0..5 {
            inverse = inverse.wrapping_mul(2_u64.wrapping_sub(n[0].wrapping_mul(inverse)));
        }
        let mut modulus = Self {
            n: Zeroizing::new(vec![Lanes::default(); vectors]),
            rr: Zeroizing::new(vec![Lanes::default(); vectors]),
            n0: inverse.wrapping_neg() & LIMB_MASK,
            steps,
            limbs: n.len(),
        };
        to_lanes(&mut modulus.n, n);
        modulus.rr = with_size!(&modulus, square_of_radix(&modulus, n, bits));
        Some(modulus)
    }

    /// Returns `base` to the power of the low `bits` bits of `exponent`, modulo `n`. `base` is
    /// below `n`.
    pub fn power(&self, base: &[u64], exponent: &[u64], bits: usize) -> Zeroizing<Vec<u64>> {
        with_size!(self, power(self, base, exponent, bits))
    }

    /// Builds the comb of `base` for exponents of `bits` bits, a multiple of [`COMB_BITS_UNIT`]. A
    /// comb has 160 numbers.
    pub fn comb(&self, base: &[u64], bits: usize) -> Comb {
        debug_assert!(bits.is_multiple_of(COMB_BITS_UNIT) && bits > 0);
        with_size!(self, comb(self, base, bits / COMB_BITS_UNIT))
    }

    /// Returns the base of `comb` to the power of `exponent`. `comb` was built with this modulus.
    pub fn comb_power(&self, comb: &Comb, exponent: &[u64]) -> Zeroizing<Vec<u64>> {
        with_size!(self, comb_power(self, comb, exponent))
    }

    /// Returns the product of `a` and `b` in Montgomery form, by the kernel and by its twin. Both
    /// factors are below `2n`. For tests.
    #[doc(hidden)]
    pub fn product_by_both(&self, a: &[u64], b: &[u64]) -> [Vec<u64>; 2] {
        with_size!(self, product_by_both(self, a, b))
    }

    /// Takes `number` out of Montgomery form. A number below `2n` is at most `n` after a product
    /// with 1.
    fn finish<const V: usize, const UNIT: bool>(&self, number: &Number<V>) -> Zeroizing<Vec<u64>> {
        let reduced = self.multiply::<V, UNIT>(number, &small(1));
        let mut limbs = Zeroizing::new(from_lanes(&*reduced, self.limbs));
        let mut n = from_lanes(&self.n, self.limbs);
        let difference = limbs.iter().zip(&n).fold(0, |bits, (a, b)| bits | (a ^ b));
        let keep = 0_u64.wrapping_sub((difference | difference.wrapping_neg()) >> 63);
        limbs.iter_mut().for_each(|limb| *limb &= keep);
        n.zeroize();
        limbs
    }

    fn vectors<const V: usize>(lanes: &[Lanes]) -> &Number<V> {
        lanes.try_into().expect("the size was chosen by this length")
    }

    #[inline(always)]
    fn multiply<const V: usize, const UNIT: bool>(
        &self,
        a: &Number<V>,
        b: &Number<V>,
    ) -> Zeroizing<Number<V>> {
        let mut out = Zeroizing::new([Lanes::default(); V]);
        self.multiply_into::<V, UNIT>(&mut out, a, b);
        out
    }

    #[inline(always)]
    fn multiply_into<const V: usize, const UNIT: bool>(
        &self,
        out: &mut Number<V>,
        a: &Number<V>,
        b: &Number<V>,
    ) {
        ifma::multiply::<V, UNIT>(out, a, b, Self::vectors(&self.n), self.n0, self.steps);
    }
}

/// Returns a number of one limb.
fn small<const V: usize>(value: u64) -> Number<V> {
    let mut number = [Lanes::default(); V];
    number[0].0[0] = value;
    number
}

/// Splits `limbs` into limbs of 52 bits. They must fit into `out`.
fn to_lanes(out: &mut [Lanes], limbs: &[u64]) {
    for (index, limb) in out.iter_mut().flat_map(|lanes| &mut lanes.0).enumerate() {
        *limb = bits_at(limbs, index * LIMB_BITS) & LIMB_MASK;
    }
}

/// Returns the first `count` limbs of 64 bits of `lanes`.
fn from_lanes(lanes: &[Lanes], count: usize) -> Vec<u64> {
    let mut limbs = vec![0; count];
    for (index, limb) in lanes.iter().flat_map(|lanes| &lanes.0).enumerate() {
        let (at, shift) = (index * LIMB_BITS / 64, index * LIMB_BITS % 64);
        if at < count {
            limbs[at] |= limb << shift;
        }
        if shift > 64 - LIMB_BITS && at + 1 < count {
            limbs[at + 1] |= limb >> (64 - shift);
        }
    }
    limbs
}

/// Returns 64 bits of `limbs`, starting at bit `at`.
fn bits_at(limbs: &[u64], at: usize) -> u64 {
    let (index, shift) = (at / 64, at % 64);
    let low = limbs.get(index).map_or(0, |limb| limb >> shift);
    let high = limbs.get(index + 1).map_or(0, |limb| (limb << 1) << (63 - shift));
    low | high
}

/// Returns `R²` modulo `n`, which has `bits` bits.
///
/// `2^bits - n` is a power of two modulo `n`. Doublings turn it into `2^t·R` for a small `t`, and
/// products raise that to the wanted exponent.
fn square_of_radix<const V: usize, const UNIT: bool>(
    modulus: &Modulus,
    n: &[u64],
    bits: usize,
) -> Zeroizing<Vec<Lanes>> {
    let exponent = LIMB_BITS * modulus.steps;
    let squarings = exponent.ilog2() - 5;
    let mut power = Zeroizing::new(n.iter().map(|limb| !limb).collect::<Vec<_>>());
    power[0] += 1;
    if !bits.is_multiple_of(64) {
        power[n.len() - 1] &= (1 << (bits % 64)) - 1;
    }
    let in_lanes = |power: &[u64]| {
        let mut number = Zeroizing::new([Lanes::default(); V]);
        to_lanes(&mut *number, power);
        number
    };
    double(&mut power, n, exponent - bits + 1);
    let two = in_lanes(&power);
    double(&mut power, n, (exponent >> squarings) - 1);
    let mut number = in_lanes(&power);
    for shift in (0..squarings).rev() {
        number = modulus.multiply::<V, UNIT>(&number, &number);
        if exponent >> shift & 1 == 1 {
            number = modulus.multiply::<V, UNIT>(&number, &two);
        }
    }
    Zeroizing::new(number.to_vec())
}

/// Doubles `number` modulo `n`, repeated `times` times. `number` is below `n`.
fn double(number: &mut [u64], n: &[u64], times: usize) {
    let mut less = Zeroizing::new(vec![0; n.len()]);
    for _ in 0..times {
        let mut carry = 0;
        let mut borrow = false;
        for ((limb, less), &n) in number.iter_mut().zip(&mut *less).zip(n) {
            (*limb, carry) = (*limb << 1 | carry, *limb >> 63);
            (*less, borrow) = limb.borrowing_sub(n, borrow);
        }
        let keep = 0_u64.wrapping_sub(u64::from(borrow) & !carry);
        for (limb, less) in number.iter_mut().zip(&*less) {
            *limb = *limb & keep | less & !keep;
        }
    }
}

fn window(exponent: &[u64], at: usize, end: usize) -> usize {
    let kept = (end - at).min(WINDOW);
    bits_at(exponent, at) as usize & ((1 << kept) - 1)
}

fn power<const V: usize, const UNIT: bool>(
    modulus: &Modulus,
    base: &[u64],
    exponent: &[u64],
    bits: usize,
) -> Zeroizing<Vec<u64>> {
    let rr = Modulus::vectors(&modulus.rr);
    let mut number = Zeroizing::new([Lanes::default(); V]);
    to_lanes(&mut *number, base);
    let mut table = Zeroizing::new(vec![[Lanes::default(); V]; ENTRIES]);
    modulus.multiply_into::<V, UNIT>(&mut table[0], rr, &small(1));
    modulus.multiply_into::<V, UNIT>(&mut table[1], rr, &number);
    for index in 2..ENTRIES {
        let (a, b) = if index % 2 == 0 { (index / 2, index / 2) } else { (index - 1, 1) };
        let product = modulus.multiply::<V, UNIT>(&table[a], &table[b]);
        table[index] = *product;
    }
    let mut power = Zeroizing::new(table[0]);
    let mut chosen = Zeroizing::new([Lanes::default(); V]);
    let mut squared = Zeroizing::new([Lanes::default(); V]);
    let windows = bits.div_ceil(WINDOW);
    for number in (0..windows).rev() {
        ifma::select(&mut chosen, &table, window(exponent, number * WINDOW, bits));
        if number == windows - 1 {
            *power = *chosen;
            continue;
        }
        modulus.multiply_into::<V, UNIT>(&mut squared, &power, &power);
        for _ in 0..WINDOW / 2 {
            modulus.multiply_into::<V, UNIT>(&mut power, &squared, &squared);
            modulus.multiply_into::<V, UNIT>(&mut squared, &power, &power);
        }
        modulus.multiply_into::<V, UNIT>(&mut power, &squared, &chosen);
    }
    modulus.finish::<V, UNIT>(&power)
}

fn product_by_both<const V: usize, const UNIT: bool>(
    modulus: &Modulus,
    a: &[u64],
    b: &[u64],
) -> [Vec<u64>; 2] {
    let [mut x, mut y, mut out, mut twin] = [[Lanes::default(); V]; 4];
    to_lanes(&mut x, a);
    to_lanes(&mut y, b);
    modulus.multiply_into::<V, UNIT>(&mut out, &x, &y);
    let n = Modulus::vectors(&modulus.n);
    portable::multiply::<V, UNIT>(&mut twin, &x, &y, n, modulus.n0, modulus.steps);
    [out, twin].map(|number| from_lanes(&number, modulus.limbs + 1))
}

fn comb<const V: usize, const UNIT: bool>(modulus: &Modulus, base: &[u64], rows: usize) -> Comb {
    let rr = Modulus::vectors::<V>(&modulus.rr);
    let mut number = [Lanes::default(); V];
    to_lanes(&mut number, base);
    let one = modulus.multiply::<V, UNIT>(rr, &small(1));
    let mut power = modulus.multiply::<V, UNIT>(rr, &number);
    let mut table = vec![*one; BLOCKS * ENTRIES];
    for tooth in 0..WINDOW {
        for block in 0..BLOCKS {
            let table = &mut table[block * ENTRIES..][..ENTRIES];
            for index in 0..1 << tooth {
                table[index | 1 << tooth] = *modulus.multiply::<V, UNIT>(&table[index], &power);
            }
            for _ in 0..rows {
                power = modulus.multiply::<V, UNIT>(&power, &power);
            }
        }
    }
    Comb { table: table.into_iter().flatten().collect(), rows }
}

fn comb_power<const V: usize, const UNIT: bool>(
    modulus: &Modulus,
    comb: &Comb,
    exponent: &[u64],
) -> Zeroizing<Vec<u64>> {
    let (table, _) = comb.table.as_chunks::<V>();
    let mut power = modulus.multiply::<V, UNIT>(Modulus::vectors(&modulus.rr), &small(1));
    let mut chosen = Zeroizing::new([Lanes::default(); V]);
    let mut product = Zeroizing::new([Lanes::default(); V]);
    for row in (0..comb.rows).rev() {
        if row != comb.rows - 1 {
            modulus.multiply_into::<V, UNIT>(&mut product, &power, &power);
            *power = *product;
        }
        for (block, table) in table.chunks_exact(ENTRIES).enumerate() {
            let bit = |tooth| {
                let at = comb.rows * (BLOCKS * tooth + block) + row;
                (bits_at(exponent, at) as usize & 1) << tooth
            };
            let index = (0..WINDOW).map(bit).sum();
            ifma::select(&mut chosen, table, index);
            modulus.multiply_into::<V, UNIT>(&mut product, &power, &chosen);
            *power = *product;
        }
    }
    modulus.finish::<V, UNIT>(&power)
}
