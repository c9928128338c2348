//! Multiples of the base point of P-256, y² = x³ − 3x + b, in constant time.
//!
//! - The scalar is made odd (k, or n − k) and split into 56 windows of five bits. The digits are
//!   odd, from −31 to 31, so no digit is zero.
//! - Each window has a table of 16 points, which is always read from end to end.
//! - Eight lanes sum seven windows each; then the lanes are added.
//!
//! So each sum is of two different points, neither of which is at infinity, and there are no
//! doublings. Only in the last sum may both points be the same.
#![allow(unsafe_code)]

use std::sync::OnceLock;

use zeroize::{Zeroize, Zeroizing};

use super::super::limbs::{Limbs, sub};
use super::field::{Cpu, Fe};
use super::lanes::{BITS, Entry, LANES, POINTS, ROUNDS, Table};
use super::{N, lanes};

/// A point in affine coordinates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Affine {
    pub(super) x: Fe,
    pub(super) y: Fe,
}

/// The base point (SP 800-186 §3.2.1.3).
const G: Affine = Affine {
    x: Fe([
        0x79e7_30d4_18a9_143c,
        0x75ba_95fc_5fed_b601,
        0x79fb_732b_7762_2510,
        0x1890_5f76_a537_55c6,
    ]),
    y: Fe([
        0xddf2_5357_ce95_560a,
        0x8b4a_b8e4_ba19_e45c,
        0xd2e8_8688_dd21_f325,
        0x8571_ff18_2588_5d85,
    ]),
};

/// A point in Jacobian coordinates: (X / Z², Y / Z³). Not at infinity.
#[derive(Clone, Copy, Zeroize)]
struct Jacobian {
    x: Fe,
    y: Fe,
    z: Fe,
}

impl Jacobian {
    fn new(Affine { x, y }: Affine) -> Self {
        Self { x, y, z: Fe::ONE }
    }

    /// Doubles the point: 5 multiplications and 4 squares.
    fn double(&self, cpu: Cpu) -> Self {
        let y_twice = self.y.add(&self.y);
        let z_square = self.z.sqr(cpu);
        let y_square = y_twice.sqr(cpu);
        let slope = self.x.sub(&z_square).mul(&self.x.add(&z_square), cpu);
        let s = self.x.mul(&y_square, cpu);
        let slope = slope.add(&slope).add(&slope);
        // 8y⁴ is 4y² times 2y².
        let y_fourth = y_square.mul(&self.y.sqr(cpu), cpu);
        let y_fourth = y_fourth.add(&y_fourth);
        let x = slope.sqr(cpu).sub(&s.add(&s));
        let y = slope.mul(&s.sub(&x), cpu).sub(&y_fourth);
        Self { x, y, z: y_twice.mul(&self.z, cpu) }
    }

    /// Adds two points, which may be equal: 12 multiplications and 4 squares, and a doubling.
    fn add(&self, other: &Self, cpu: Cpu) -> Self {
        let (square, other_square) = (self.z.sqr(cpu), other.z.sqr(cpu));
        let (zy, other_zy) = (self.y.mul(&other.z, cpu), other.y.mul(&self.z, cpu));
        let u = self.x.mul(&other_square, cpu);
        let s = zy.mul(&other_square, cpu);
        let h = other.x.mul(&square, cpu).sub(&u);
        let r = other_zy.mul(&square, cpu).sub(&s);
        let twice = self.double(cpu);
        let h_square = h.sqr(cpu);
        let h_cube = h_square.mul(&h, cpu);
        let v = u.mul(&h_square, cpu);
        let x = r.sqr(cpu).sub(&h_cube).sub(&v.add(&v));
        let y = r.mul(&v.sub(&x), cpu).sub(&s.mul(&h_cube, cpu));
        let z = self.z.mul(&other.z, cpu).mul(&h, cpu);
        let same = h.zero_mask() & r.zero_mask();
        Self {
            x: x.select(&twice.x, same),
            y: y.select(&twice.y, same),
            z: z.select(&twice.z, same),
        }
    }

    /// Converts to affine coordinates, given 1 / Z.
    fn divided(&self, inverse: &Fe, cpu: Cpu) -> Affine {
        let square = inverse.sqr(cpu);
        let cube = square.mul(inverse, cpu);
        Affine { x: self.x.mul(&square, cpu), y: self.y.mul(&cube, cpu) }
    }
}

/// Returns the table of the base point: 70 KiB, built on first use.
fn table(cpu: Cpu) -> &'static Table {
    static TABLE: OnceLock<Box<Table>> = OnceLock::new();
    TABLE.get_or_init(|| make_table(cpu))
}

fn make_table(cpu: Cpu) -> Box<Table> {
    let mut table = Box::new([[Entry::EMPTY; POINTS]; ROUNDS]);
    let mut first = Jacobian::new(G);
    for lane in 0..LANES {
        for window in table.iter_mut() {
            let twice = first.double(cpu);
            let mut points = [first; POINTS];
            for i in 1..POINTS {
                points[i] = points[i - 1].add(&twice, cpu);
            }
            for (entry, Affine { x, y }) in window.iter_mut().zip(all_affine(&points, cpu)) {
                entry.set(lane, &x, &y);
            }
            first = (0..BITS).fold(first, |first, _| first.double(cpu));
        }
    }
    table
}

/// Converts points to affine coordinates, with one inversion for all.
fn all_affine(points: &[Jacobian; POINTS], cpu: Cpu) -> [Affine; POINTS] {
    let mut products = [Fe::ONE; POINTS];
    for i in 1..POINTS {
        products[i] = products[i - 1].mul(&points[i - 1].z, cpu);
    }
    let mut inverse = products[POINTS - 1].mul(&points[POINTS - 1].z, cpu).invert(cpu);
    let mut all = [G; POINTS];
    for i in (0..POINTS).rev() {
        all[i] = points[i].divided(&inverse.mul(&products[i], cpu), cpu);
        inverse = inverse.mul(&points[i].z, cpu);
    }
    all
}

/// Returns `scalar` · G, in constant time. The scalar is above zero and below n.
pub(super) fn multiply(scalar: &Limbs, cpu: Cpu) -> Affine {
    let even = (scalar[0] & 1).wrapping_sub(1);
    let (other, _) = sub(&N, scalar);
    let odd = Zeroizing::new(Fe(*scalar).select(&Fe(other), even).0);
    let chunks = Zeroizing::new(chunks(&odd));
    // SAFETY: a `Cpu` proves that the processor has AVX-512F and IFMA.
    let sums = Zeroizing::new(unsafe { lanes::multiply(table(cpu), &chunks) });
    let [a, b] = [0, 1].map(|i| {
        let [x, y, z] = sums.map(|halves| halves[i]);
        Zeroizing::new(Jacobian { x, y, z })
    });
    let sum = Zeroizing::new(a.add(&b, cpu));
    let mut product = sum.divided(&sum.z.invert(cpu), cpu);
    product.y = product.y.negate_if(even);
    product
}

/// Splits an odd number into the windows of each lane.
///
/// A one is 2^280 minus all the 2^i below it. So each bit decides whether the 2^i one place further
/// down is added or subtracted.
fn chunks(odd: &Limbs) -> [u64; LANES] {
    const WIDTH: usize = BITS * ROUNDS;
    let limb = |i: usize| odd.get(i).copied().unwrap_or(0);
    let mut chunks = std::array::from_fn(|lane| {
        let (at, shift) = ((lane * WIDTH + 1) / 64, (lane * WIDTH + 1) % 64);
        (limb(at) >> shift | (limb(at + 1) << 1) << (63 - shift)) & ((1 << WIDTH) - 1)
    });
    // The topmost bit, above those of the number, is set.
    chunks[LANES - 1] |= 1 << (WIDTH - 1);
    chunks
}
