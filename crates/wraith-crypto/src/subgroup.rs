//! The test whether a point of Curve25519 is in the subgroup of prime order, as the point of a
//! NodeId must be.
//!
//! The group is Z/8 × Z/ℓ, so the subgroup consists of the points that can be halved three times.
//! That takes seven powers in the field; multiplying by ℓ takes twice the time. (The same idea, on
//! the Edwards form of the curve: Pornin, "Point-Halving and Subgroup Membership in Twisted Edwards
//! Curves", 2022.)
//!
//! On v² = u·(u² + A·u + 1) a point can be halved if u is a square, because (0, 0) is the only
//! point of order two. Let u be a square, so that t² = u² + A·u + 1 has a root t, and let q be the
//! u-coordinate of a half. The doubling formula is 4·u·q·(q² + A·q + 1) = (q² − 1)². With q + 1/q =
//! 2·h it becomes h = u ± t. So q = h + √(h² − 1), and:
//!
//! - The sign is the one for which h² − 1 is a square. It is a square for exactly one sign: the
//!   product of the values for both signs is (A² − 4)·u², and A² − 4 is not a square.
//! - q is a square if 2·(h − 1) = (√q − 1/√q)² is one. That holds for both signs or for neither,
//!   because the product of the values for both signs is −4·(A + 2)·u, and −1 and A + 2 are
//!   squares.
//! - Both roots of h² − 1 are suitable. They yield q and 1/q, two halves that differ by (0, 0),
//!   which can itself be halved twice.
//!
//! All inputs are public, so the time may depend on them.

use crate::field::{A, Field};

/// Returns the u-coordinate of the point of edwards25519 with the given compressed form.
///
/// Returns `None` unless the form is canonical and the point is in the subgroup of prime order and
/// not the neutral point.
pub(crate) fn u_of_prime_order(compressed: &[u8; 32]) -> Option<[u8; 32]> {
    let mut y = *compressed;
    y[31] &= 0x7f;
    let number = Field::from_canonical(&y)?;
    // u = n / d, which is a square if x = n·d is. If x is zero, the point is refused: its
    // x-coordinate is zero then, and the sign bit of the form would be ambiguous.
    let (n, d) = (Field::ONE.plus(number), Field::ONE.minus(number));
    let (is_square, inverse_root) = n.times(d).inverse_root();
    if !is_square {
        return None;
    }
    let u = n.squared().times(inverse_root.squared());
    let half = half(u)?;
    let quarter_is_square = root_if_half_is_square(half).is_some();
    quarter_is_square.then(|| u.to_bytes())
}

/// Returns the u-coordinate of a half of the point with the u-coordinate `u`, which is a square.
/// Returns `None` unless the result is a square too.
fn half(u: Field) -> Option<Field> {
    let t = root_if_half_is_square(u)?;
    [u.plus(t), u.minus(t)].into_iter().find_map(|h| {
        let root = root(h.squared().minus(Field::ONE))?;
        Some(h.plus(root))
    })
}

/// Returns the t of the square `u` if the u-coordinates of the halves are squares. Returns `None`
/// if they are not, or if no point of the curve has that `u`.
fn root_if_half_is_square(u: Field) -> Option<Field> {
    let t = root(u.squared().plus(A.times(u)).plus(Field::ONE))?;
    let h_less_1 = u.plus(t).minus(Field::ONE);
    let (is_square, _) = h_less_1.plus(h_less_1).inverse_root();
    is_square.then_some(t)
}

/// Returns a root of `x`, or `None` if `x` is zero or not a square.
fn root(x: Field) -> Option<Field> {
    let (is_square, inverse_root) = x.inverse_root();
    is_square.then(|| x.times(inverse_root))
}

#[cfg(test)]
mod tests {
    use curve25519_dalek::constants::EIGHT_TORSION;
    use curve25519_dalek::edwards::{CompressedEdwardsY, EdwardsPoint};
    use rand_chacha::ChaCha20Rng;
    use rand_core::{Rng, SeedableRng};

    use super::*;

    /// Applies the definition: multiplies by the order.
    fn defined(compressed: &[u8; 32]) -> Option<[u8; 32]> {
        let point = CompressedEdwardsY(*compressed).decompress()?;
        let taken =
            point.compress().0 == *compressed && point.is_torsion_free() && !point.is_small_order();
        taken.then(|| point.to_montgomery().to_bytes())
    }

    fn points(count: usize) -> impl Iterator<Item = EdwardsPoint> {
        let mut rng = ChaCha20Rng::from_seed([5; 32]);
        let draws = std::iter::repeat_with(move || {
            let mut bytes = [0; 32];
            rng.fill_bytes(&mut bytes);
            CompressedEdwardsY(bytes).decompress()
        });
        draws.flatten().take(count)
    }

    #[test]
    fn of_the_eight_that_differ_by_low_order_the_same_one_is_taken_as_by_the_order() {
        for point in points(300) {
            let coset = EIGHT_TORSION.map(|torsion| (point + torsion).compress().0);
            assert_eq!(coset.iter().filter(|bytes| u_of_prime_order(bytes).is_some()).count(), 1);
            for bytes in coset {
                assert_eq!(u_of_prime_order(&bytes), defined(&bytes));
            }
        }
    }

    #[test]
    fn random_bytes_are_taken_as_by_the_order() {
        let mut rng = ChaCha20Rng::from_seed([6; 32]);
        let mut taken = 0;
        for _ in 0..4000 {
            let mut bytes = [0; 32];
            rng.fill_bytes(&mut bytes);
            assert_eq!(u_of_prime_order(&bytes), defined(&bytes));
            taken += usize::from(defined(&bytes).is_some());
        }
        // One half is on the curve, and one eighth of these in the subgroup.
        assert!((150..350).contains(&taken), "{taken}");
    }

    #[test]
    fn numbers_at_the_ends_of_the_field_are_taken_as_by_the_order() {
        let mut last = [0xff; 32];
        let mut first = [0; 32];
        for low in 0..=0xff {
            for sign in [0, 0x80] {
                (first[0], first[31]) = (low, sign);
                (last[0], last[31]) = (low, 0x7f | sign);
                assert_eq!(u_of_prime_order(&first), defined(&first));
                assert_eq!(u_of_prime_order(&last), defined(&last));
            }
        }
    }
}
