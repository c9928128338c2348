//! Addition of one of the eight points of low order to a point of which only the u-coordinate is
//! known.
//!
//! Two points have this u-coordinate, P and −P. For a random low-order point T it makes no
//! difference to which of them T is added: −P + T is −(P − T), and −T is as likely as T.

use crate::field::{A, Field};

/// d = −121665/121666 of edwards25519, −x² + y² = 1 + d·x²·y².
const D: Field = Field::limbs([
    0x34dca135978a3,
    0x1a8283b156ebd,
    0x5e7a26001c029,
    0x739c663a03cbb,
    0x52036cee2b6ff,
]);

/// A square root c of −486664. With it x = c·u / v, and y = (u − 1) / (u + 1) (RFC 7748 §4.1).
const C: Field = Field::limbs([
    0x604aaff457e06,
    0x2296fa350598d,
    0x7f13dfb16874f,
    0x35de93d846e01,
    0x0f26edf460a00,
]);

/// A point of order eight of edwards25519: (X, Y). Other signs give the other points of that order.
const X: Field = Field::limbs([
    0x14646c545d14a,
    0x6027cbc471bd4,
    0x3792aed7064f1,
    0x5147499cc991c,
    0x1fd5b9a006394,
]);
const Y: Field = Field::limbs([
    0x04d3d706a17c7,
    0x1aec1679749fb,
    0x14c80a83d9c40,
    0x3a763661c967d,
    0x7a03ac9277fdc,
]);

/// The points of low order: (x, y) on edwards25519.
const LOW_ORDER: [(Field, Field); 8] = [
    (Field::ZERO, Field::ONE),
    (Field::ZERO, Field::ONE.negated()),
    (Field::ROOT_OF_MINUS_ONE, Field::ZERO),
    (Field::ROOT_OF_MINUS_ONE.negated(), Field::ZERO),
    (X, Y),
    (X, Y.negated()),
    (X.negated(), Y),
    (X.negated(), Y.negated()),
];

/// Adds the low-order point number `index` to a point with the coordinate `u`. Returns the
/// u-coordinate of the sum as numerator and denominator.
///
/// The point is on the curve, and not itself of low order. `index` is below 8 and not secret.
pub(super) fn add_low_order(u: Field, index: usize) -> (Field, Field) {
    let (low_x, low_y) = LOW_ORDER[index];
    let v_squared = u.times(u.times(u.plus(A)).plus(Field::ONE));
    let (_, inverse_v) = v_squared.inverse_root();
    let x = C.times(u).times(inverse_v);
    // The y-coordinate is y / z.
    let (y, z) = (u.minus(Field::ONE), u.plus(Field::ONE));
    // The y of the sum is (y·y' + x·x') / (1 − d·x·x'·y·y').
    let (x, y) = (x.times(low_x), y.times(low_y));
    let numerator = y.plus(z.times(x));
    let denominator = z.minus(D.times(x).times(y));
    // The u of the sum is (1 + y) / (1 − y).
    (denominator.plus(numerator), denominator.minus(numerator))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use curve25519_dalek::EdwardsPoint;
    use curve25519_dalek::constants::EIGHT_TORSION;

    use super::*;

    #[test]
    fn the_eight_sums_are_those_of_the_curve_library() {
        for seed in 0..100 {
            let point = EdwardsPoint::mul_base_clamped([seed; 32]);
            let expected = EIGHT_TORSION.map(|low| (point + low).to_montgomery().to_bytes());
            let u = Field::from_bytes(&point.to_montgomery().to_bytes());
            let found = [0, 1, 2, 3, 4, 5, 6, 7].map(|index| {
                let (numerator, denominator) = add_low_order(u, index);
                let (_, inverse_root) = denominator.squared().inverse_root();
                let quotient = numerator.times(inverse_root);
                // The root of a square is known only up to its sign.
                let is_right = quotient.times(denominator).equals(numerator);
                Field::select(is_right, quotient, quotient.negated()).to_bytes()
            });
            assert_eq!(BTreeSet::from(found), BTreeSet::from(expected));
            assert_eq!(BTreeSet::from(found).len(), 8);
        }
    }
}
