//! Points of the Edwards curve x² + y² = 1 − 39081 x² y² (RFC 8032 §5.2). The formulas are
//! complete: they hold for every pair of points.

use std::sync::OnceLock;

use super::{Element, Scalar};

/// Size of an encoded point in bytes: y, and the sign of x.
pub(crate) const POINT_BYTES: usize = 57;

/// −d.
const MINUS_D: u32 = 39_081;
/// Digit width of public scalars in bits: for a point that is used once, and for the base point.
const WIDTH: u32 = 5;
const BASE_WIDTH: u32 = 8;
const ODD: usize = 1 << (WIDTH - 2);
const BASE_ODD: usize = 1 << (BASE_WIDTH - 2);

/// The base point: y and the sign of x.
const BASE: [u8; POINT_BYTES] = [
    0x14, 0xfa, 0x30, 0xf2, 0x5b, 0x79, 0x08, 0x98, 0xad, 0xc8, 0xd7, 0x4e, 0x2c, 0x13, 0xbd, 0xfd,
    0xc4, 0x39, 0x7c, 0xe6, 0x1c, 0xff, 0xd3, 0x3a, 0xd7, 0xc2, 0xa0, 0x05, 0x1e, 0x9c, 0x78, 0x87,
    0x40, 0x98, 0xa3, 0x6c, 0x73, 0x73, 0xea, 0x4b, 0x62, 0xc7, 0xc9, 0x56, 0x37, 0x20, 0x76, 0x88,
    0x24, 0xbc, 0xb6, 0x6e, 0x71, 0x46, 0x3f, 0x69, 0x00,
];

/// A point in projective coordinates: x = `x / z`, y = `y / z`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Point {
    x: Element,
    y: Element,
    z: Element,
}

/// A point with z = 1.
#[derive(Clone, Copy, Debug)]
struct Affine {
    x: Element,
    y: Element,
}

impl Affine {
    const IDENTITY: Self = Self { x: Element::ZERO, y: Element::ONE };
}

impl Point {
    const IDENTITY: Self = Self { x: Element::ZERO, y: Element::ONE, z: Element::ONE };

    /// Decodes a point (RFC 8032 §5.2.3). Returns `None` if the bytes are no point or not its
    /// canonical encoding. The time depends on the bytes.
    pub(crate) fn from_bytes(bytes: &[u8; POINT_BYTES]) -> Option<Self> {
        let (y_bytes, sign) = bytes.split_first_chunk::<56>()?;
        let y = Element::from_bytes(y_bytes);
        if sign[0] & 0x7f != 0 || y.to_bytes() != *y_bytes {
            return None;
        }
        // x² = u / v, and x = u³ v (u⁵ v³)^((p − 3) / 4) if u / v is a square.
        let y2 = y.square();
        let u = y2.sub(&Element::ONE);
        let v = y2.times(MINUS_D).add(&Element::ONE).negated();
        let u3v = u.square().mul(&u).mul(&v);
        let u5v3 = u3v.mul(&u.square()).mul(&v.square());
        let x = u3v.mul(&u5v3.power_of_root());
        let is_square = x.square().mul(&v).add(&Element::ONE).sub(&y2).is_zero();
        let is_negative = sign[0] == 0x80;
        if !is_square || (x.is_zero() && is_negative) {
            return None;
        }
        let x = if x.is_odd() == is_negative { x } else { x.negated() };
        Some(Self { x, y, z: Element::ONE })
    }

    /// Encodes the point.
    pub(crate) fn to_bytes(self) -> [u8; POINT_BYTES] {
        let inverse = self.z.inverse();
        let mut bytes = [0; POINT_BYTES];
        bytes[..56].copy_from_slice(&self.y.mul(&inverse).to_bytes());
        bytes[56] = u8::from(self.x.mul(&inverse).is_odd()) << 7;
        bytes
    }

    /// Returns whether the order is 1, 2 or 4, the cofactor. These are the four points in which the
    /// curve crosses the axes. Variable time.
    pub(crate) fn is_small_order(&self) -> bool {
        self.x.is_zero() || self.y.is_zero()
    }

    pub(crate) fn negated(&self) -> Self {
        Self { x: self.x.negated(), ..*self }
    }

    fn doubled(&self) -> Self {
        let b = self.x.add(&self.y).square();
        let c = self.x.square();
        let d = self.y.square();
        let e = c.add(&d);
        let h = self.z.square();
        let j = e.sub(&h.add(&h));
        Self { x: b.sub(&e).mul(&j), y: e.mul(&c.sub(&d)), z: e.mul(&j) }
    }

    fn plus(&self, other: &Self) -> Self {
        let a = self.z.mul(&other.z);
        let b = a.square();
        self.plus_with(&a, &b, &other.x, &other.y)
    }

    fn plus_affine(&self, other: &Affine) -> Self {
        self.plus_with(&self.z, &self.z.square(), &other.x, &other.y)
    }

    /// Returns the sum, where `a` is the product of both z and `b` is its square.
    fn plus_with(&self, a: &Element, b: &Element, x: &Element, y: &Element) -> Self {
        let c = self.x.mul(x);
        let d = self.y.mul(y);
        let minus_e = c.mul(&d).times(MINUS_D);
        let f = b.add(&minus_e);
        let g = b.sub(&minus_e);
        let h = self.x.add(&self.y).mul(&x.add(y));
        let x = a.mul(&f).mul(&h.sub(&c.add(&d)));
        let y = a.mul(&g).mul(&d.sub(&c));
        Self { x, y, z: f.mul(&g) }
    }

    /// Returns `scalar` times the base point.
    pub(crate) fn base_times(scalar: &Scalar) -> Self {
        let table = table();
        let digits = scalar.digits();
        let add = |mut sum: Self, parity: usize| {
            for (row, pair) in table.rows.iter().zip(digits.chunks_exact(2)) {
                sum = sum.plus_affine(&select(row, pair[parity]));
            }
            sum
        };
        let odd = add(Self::IDENTITY, 1);
        add((0..4).fold(odd, |sum, _| sum.doubled()), 0)
    }

    /// Returns `base_scalar` times the base point plus `scalar` times `self`. The time depends on
    /// all of them: nothing is secret.
    pub(crate) fn times_plus_base_vartime(&self, scalar: &Scalar, base_scalar: &Scalar) -> Self {
        let base = &table().odd;
        let mut odd = [*self; ODD];
        let twice = self.doubled();
        for i in 1..ODD {
            odd[i] = odd[i - 1].plus(&twice);
        }
        let digits = scalar.sparse_digits(WIDTH);
        let base_digits = base_scalar.sparse_digits(BASE_WIDTH);
        let mut sum = Self::IDENTITY;
        for i in (0..digits.len()).rev() {
            sum = sum.doubled();
            let at = |digit: i8| usize::from(digit.unsigned_abs() / 2);
            match digits[i] {
                0 => {}
                digit @ 1.. => sum = sum.plus(&odd[at(digit)]),
                digit => sum = sum.plus(&odd[at(digit)].negated()),
            }
            match base_digits[i] {
                0 => {}
                digit @ 1.. => sum = sum.plus_affine(&base[at(digit)]),
                digit => {
                    let Affine { x, y } = base[at(digit)];
                    sum = sum.plus_affine(&Affine { x: x.negated(), y });
                }
            }
        }
        sum
    }
}

/// Returns `digit`, from −8 to 8, times the first point of `multiples`. Reads all of them.
fn select(multiples: &[Affine; 8], digit: i8) -> Affine {
    let is_negative = (digit >> 7) as u64;
    let size = (digit ^ (digit >> 7)) - (digit >> 7);
    let mut found = Affine::IDENTITY;
    for (i, multiple) in (1..).zip(multiples) {
        // All ones if they are equal.
        let mask = (((size ^ i) as u64).wrapping_sub(1) as i64 >> 63) as u64;
        found.x.assign_where(mask, &multiple.x);
        found.y.assign_where(mask, &multiple.y);
    }
    let negated = found.x.negated();
    found.x.assign_where(is_negative, &negated);
    found
}

/// Multiples of the base point.
struct Table {
    /// Row i has 1, 2 … 8 times 256^i times the base point.
    rows: Box<[[Affine; 8]]>,
    /// The odd multiples 1, 3, 5 … of the base point.
    odd: Box<[Affine]>,
}

fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        let base = Point::from_bytes(&BASE).expect("the base point is a point");
        let mut points = Vec::with_capacity(56 * 8 + BASE_ODD);
        let mut first = base;
        for _ in 0..56 {
            let mut multiple = first;
            for _ in 0..8 {
                points.push(multiple);
                multiple = multiple.plus(&first);
            }
            first = (0..8).fold(first, |point, _| point.doubled());
        }
        let mut multiple = base;
        for _ in 0..BASE_ODD {
            points.push(multiple);
            multiple = multiple.plus(&base.doubled());
        }
        let all = to_affine(&points);
        let (rows, odd) = all.split_at(56 * 8);
        Table { rows: rows.as_chunks().0.into(), odd: odd.into() }
    })
}

/// Converts the points to z = 1 with one inversion (Montgomery's trick).
fn to_affine(points: &[Point]) -> Vec<Affine> {
    let mut products = Vec::with_capacity(points.len());
    let mut product = Element::ONE;
    for point in points {
        products.push(product);
        product = product.mul(&point.z);
    }
    let mut inverse = product.inverse();
    let mut affine: Vec<Affine> = Vec::with_capacity(points.len());
    for (point, before) in points.iter().zip(&products).rev() {
        let own = inverse.mul(before);
        inverse = inverse.mul(&point.z);
        affine.push(Affine { x: point.x.mul(&own), y: point.y.mul(&own) });
    }
    affine.reverse();
    affine
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Multiplies by double-and-add, bit by bit.
    fn slow_times(point: &Point, bytes: &[u8]) -> Point {
        (0..8 * bytes.len()).rev().fold(Point::IDENTITY, |sum, bit| {
            let sum = sum.doubled();
            if bytes[bit / 8] >> (bit % 8) & 1 == 1 { sum.plus(point) } else { sum }
        })
    }

    fn base() -> Point {
        Point::from_bytes(&BASE).unwrap()
    }

    #[test]
    fn the_base_point_has_the_order_l() {
        let less_one = Scalar::reduced(&[1]).negated().to_bytes();
        let almost = slow_times(&base(), &less_one);
        assert_eq!(almost.to_bytes(), base().negated().to_bytes());
        assert_eq!(almost.plus(&base()).to_bytes(), Point::IDENTITY.to_bytes());
    }

    #[test]
    fn doubling_is_adding_to_itself_for_every_point_of_small_order_too() {
        let mut zero = [0; POINT_BYTES];
        // y = 1, −1, and 0 with either sign.
        let mut points = vec![Point::IDENTITY, base()];
        points.push(Point::from_bytes(&zero).unwrap());
        zero[56] = 0x80;
        points.push(Point::from_bytes(&zero).unwrap());
        let minus_one = Element::ONE.negated().to_bytes();
        let minus_one = [&minus_one[..], &[0]].concat();
        points.push(Point::from_bytes(&minus_one.try_into().unwrap()).unwrap());
        for a in &points {
            assert_eq!(a.doubled().to_bytes(), a.plus(a).to_bytes());
            for b in &points {
                assert_eq!(a.plus(b).to_bytes(), b.plus(a).to_bytes());
                assert_eq!(a.plus(b).plus(&b.negated()).to_bytes(), a.to_bytes());
            }
        }
    }

    #[test]
    fn a_point_is_of_small_order_if_four_times_it_is_neutral() {
        let mut zero = [0; POINT_BYTES];
        let quarter = Point::from_bytes(&zero).unwrap();
        zero[56] = 0x80;
        assert_eq!(Point::from_bytes(&zero).unwrap().to_bytes(), quarter.negated().to_bytes());
        let (mut point, mut of_small_order) = (Point::IDENTITY, 0);
        for _ in 0..20 {
            let mut coset = point;
            for _ in 0..4 {
                let neutral = coset.doubled().doubled().to_bytes() == Point::IDENTITY.to_bytes();
                assert_eq!(coset.is_small_order(), neutral);
                of_small_order += usize::from(neutral);
                coset = coset.plus(&quarter);
            }
            point = point.plus(&base());
        }
        assert_eq!(of_small_order, 4);
    }

    #[test]
    fn a_second_spelling_is_no_point() {
        let mut identity = Point::IDENTITY.to_bytes();
        assert!(Point::from_bytes(&identity).is_some());
        identity[56] = 0x80;
        assert!(Point::from_bytes(&identity).is_none(), "zero has no sign");
        let mut bytes = [0xff; POINT_BYTES];
        bytes[56] = 0;
        bytes[28] = 0xfe;
        assert!(Point::from_bytes(&bytes).is_none(), "p instead of zero");
        let mut bytes = BASE;
        bytes[56] = 0x40;
        assert!(Point::from_bytes(&bytes).is_none());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn products_are_those_of_the_slow_twin(a in any::<[u8; 32]>(), b in any::<[u8; 24]>()) {
            let a = Scalar::reduced(&[a, a].concat());
            let b = Scalar::reduced(&[b, b].concat());
            let expected = slow_times(&base(), &a.to_bytes());
            prop_assert_eq!(Point::base_times(&a).to_bytes(), expected.to_bytes());
            let expected = slow_times(&expected, &b.to_bytes()).plus(&expected);
            let point = Point::base_times(&a);
            let found = point.times_plus_base_vartime(&b, &a);
            prop_assert_eq!(found.to_bytes(), expected.to_bytes());
            prop_assert_eq!(Point::from_bytes(&found.to_bytes()).unwrap().to_bytes(), found.to_bytes());
        }
    }
}
