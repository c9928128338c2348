//! Elligator2 for Curve25519: public keys of X25519 that look like random bytes on the wire.
//!
//! Source: Bernstein, Hamburg, Krasnova, Lange: "Elligator: elliptic-curve points indistinguishable
//! from uniform random strings", 2013. The map is that of RFC 9380 §6.7.1 with Z = 2.
//!
//! A *representative* is 32 bytes. Each represents some public key ([`decode`]), and half of the
//! public keys have two representatives ([`encode`]). An observer could distinguish keys from
//! random bytes by these properties. [`EphemeralKey::generate`] prevents all of them:
//!
//! | property observed | random bytes | countermeasure |
//! |---|---|---|
//! | the top two bits | noise | they are random; [`decode`] ignores them |
//! | which of its key's two representatives it is | one of the two, by chance | one of the two is chosen at random |
//! | whether the decoded point has prime order | true for one in eight | the point is *dirty*: a random one of the eight points of low order is added. X25519 multiplies by multiples of eight, so both sides still agree |
//! | the frequency of a value | uniform | a key without a representative is discarded entirely, never replaced by a neighbouring key, so the remaining keys are uniform |
//!
//! A representative can be changed without changing its key (the two top bits). So compare and
//! store the output of [`decode`], never the representative, and authenticate the 32 bytes of a
//! message as received.
//!
//! Constant time: no branch and no memory index depends on a secret value. The time of
//! [`EphemeralKey::generate`] reveals its number of attempts, which depends only on discarded keys.

mod low_order;

use rand_core::CryptoRng;
use zeroize::{ZeroizeOnDrop, Zeroizing};

use self::low_order::add_low_order;
use crate::agree::x25519_public;
use crate::field::{A, Field};

/// The bits of the last byte of a representative that are not part of the number.
const SPARE_BITS: u8 = 0b1100_0000;

/// A key pair for one handshake, whose public key has a representative.
#[derive(Clone)]
pub struct EphemeralKey {
    secret: Zeroizing<[u8; 32]>,
    public: [u8; 32],
    representative: [u8; 32],
}

impl EphemeralKey {
    /// Generates keys until one has a representative, on average every second one.
    #[must_use]
    pub fn generate(rng: &mut impl CryptoRng) -> Self {
        loop {
            let mut secret = Zeroizing::new([0; 32]);
            rng.fill_bytes(&mut *secret);
            let mut tweak = [0];
            rng.fill_bytes(&mut tweak);
            let [tweak] = tweak;
            let clean = Field::from_bytes(&x25519_public(&secret));
            // The index may be public, because anyone can compute it from the public key. Its bits
            // are different from those that `represent` reads.
            let (numerator, denominator) = add_low_order(clean, usize::from(tweak >> 1 & 7));
            if let Some((public, representative)) = represent(numerator, denominator, tweak) {
                return Self { secret, public, representative };
            }
        }
    }

    /// Returns the secret key as X25519 takes it. X25519 clamps it.
    #[must_use]
    pub fn secret(&self) -> &[u8; 32] {
        &self.secret
    }

    /// Returns the u-coordinate of the dirty point, below p. The peer decodes the same value.
    #[must_use]
    pub fn public(&self) -> &[u8; 32] {
        &self.public
    }

    /// Returns the bytes to send on the wire.
    #[must_use]
    pub fn representative(&self) -> &[u8; 32] {
        &self.representative
    }
}

impl ZeroizeOnDrop for EphemeralKey {}

crate::redacted_debug!(EphemeralKey);

/// Returns the public key of a representative: the u-coordinate, below p, of a point of the curve.
/// Every 32 bytes have one. The top two bits are ignored.
#[must_use]
pub fn decode(representative: &[u8; 32]) -> [u8; 32] {
    let mut number = *representative;
    number[31] &= !SPARE_BITS;
    let r = Field::from_bytes(&number);
    // One of d = −A / (1 + 2r²) and −d − A is on the curve: d, if d³ + A·d² + d is a square. With w
    // = 2r² and D = 1 + w that is N / D³ for N = A·(A²·w − D²), which is a square if x = N·D is.
    // The power of x also yields 1 / x, and 1 / D is N / x.
    //
    // Nothing in this function is ever zero. −1/2 is not a square, so D is not zero. A² − 4 is not
    // a square either, so N is not zero.
    let w = r.squared().plus(r.squared());
    let denominator = Field::ONE.plus(w);
    let numerator = A.times(A.squared().times(w).minus(denominator.squared()));
    let x = numerator.times(denominator);
    let y_squared = x.power().squared();
    let root = x.times(y_squared);
    let is_square = root.squared().equals(Field::ONE);
    // 1 / x, up to the sign if x is not a square. If x is a square, u is −A·N / x. If not, u is
    // −A·w·N / x, and the sign is in A·w.
    let inverse = root.times(y_squared);
    let factor = Field::select(is_square, A.negated(), A.times(w));
    factor.times(numerator).times(inverse).to_bytes()
}

/// Returns a representative of the public key `u`, or `None` if it has none.
///
/// There are two representatives; bit 0 of `tweak` selects one. Bits 6 and 7 of `tweak` become the
/// top two bits of the representative; its other bits are ignored. Half of the public keys, and all
/// `u` that are not on the curve, have no representative. The top bit of `u` is ignored, and `u` is
/// taken modulo p.
#[must_use]
pub fn encode(u: &[u8; 32], tweak: u8) -> Option<[u8; 32]> {
    let u = Field::from_bytes(u);
    let v_squared = u.times(u.times(u.plus(A)).plus(Field::ONE));
    let sign = v_squared.times(v_squared.power().squared()).squared();
    let on_curve = !sign.equals(Field::ONE.negated());
    let (_, representative) = represent(u, Field::ONE, tweak)?;
    on_curve.then_some(representative)
}

/// Returns the public key u = n / d, a point of the curve, and its representative (see
/// [`encode()`]).
///
/// The two representatives are the roots of −u / (2·(u + A)) and of −(u + A) / (2·u). With m = n +
/// A·d and x = −2·n·m these are n / √x and m / √x.
fn represent(n: Field, d: Field, tweak: u8) -> Option<([u8; 32], [u8; 32])> {
    let m = n.plus(A.times(d));
    let half = n.times(m).negated();
    let x = half.plus(half);
    // 1 / (d·√x): one power yields both the root and the inverse.
    let (is_square, root) = x.times(d.squared()).inverse_root();
    let u = n.times(root.squared().times(x).times(d));
    let r = Field::select(tweak & 1 == 1, m, n).times(root).times(d);
    let r = Field::select(r.is_upper_half(), r.negated(), r);
    let mut representative = r.to_bytes();
    representative[31] |= tweak & SPARE_BITS;
    // u = 0 is represented by zero.
    let is_represented = is_square | n.equals(Field::ZERO);
    is_represented.then(|| (u.to_bytes(), representative))
}

#[cfg(test)]
mod tests {
    use curve25519_dalek::constants::EIGHT_TORSION;
    use curve25519_dalek::montgomery::MontgomeryPoint;
    use curve25519_dalek::{EdwardsPoint, Scalar};
    use rand_chacha::ChaCha20Rng;
    use rand_core::{Rng, SeedableRng};

    use super::*;
    use crate::agree::x25519;

    fn random(rng: &mut ChaCha20Rng) -> [u8; 32] {
        let mut bytes = [0; 32];
        rng.fill_bytes(&mut bytes);
        bytes
    }

    /// The representative of a clean key: an [`EphemeralKey`] without a point of low order.
    fn clean(rng: &mut ChaCha20Rng) -> [u8; 32] {
        loop {
            let tweak = random(rng)[0];
            if let Some(representative) = encode(&x25519_public(&random(rng)), tweak) {
                return representative;
            }
        }
    }

    fn generated(rng: &mut ChaCha20Rng) -> [u8; 32] {
        *EphemeralKey::generate(rng).representative()
    }

    /// Returns whether `found` of `draws` is within four standard deviations of the probability
    /// `p`.
    fn is_likely(found: usize, draws: usize, p: f64) -> bool {
        let (found, draws) = (found as f64, draws as f64);
        (found - draws * p).abs() < 4.0 * (draws * p * (1.0 - p)).sqrt()
    }

    fn draws(count: usize, draw: fn(&mut ChaCha20Rng) -> [u8; 32]) -> Vec<[u8; 32]> {
        let mut rng = ChaCha20Rng::from_seed([7; 32]);
        (0..count).map(|_| draw(&mut rng)).collect()
    }

    /// Returns the number of `representatives` that decode to a point of prime order.
    fn of_prime_order(representatives: &[[u8; 32]]) -> usize {
        let points = representatives.iter().map(|bytes| MontgomeryPoint(decode(bytes)));
        let points = points.map(|u| u.to_edwards(0).expect("a point of the curve"));
        points.filter(EdwardsPoint::is_torsion_free).count()
    }

    #[test]
    fn one_in_eight_has_prime_order_as_of_random_bytes() {
        let (of_random, ours) = (draws(4000, random), draws(4000, generated));
        let (of_random, ours) = (of_prime_order(&of_random), of_prime_order(&ours));
        assert!(is_likely(of_random, 4000, 0.125), "{of_random} of random bytes");
        assert!(is_likely(ours, 4000, 0.125), "{ours} of generated keys");
        assert_eq!(of_prime_order(&draws(200, clean)), 200, "what clean keys would show");
    }

    /// Counts the `representatives` by the point of low order in the decoded point.
    fn of_each_low_order(representatives: &[[u8; 32]]) -> [usize; 8] {
        let mut found = [0; 8];
        for representative in representatives {
            let point = MontgomeryPoint(decode(representative)).to_edwards(0).unwrap();
            // Multiplies by the prime order (5 modulo 8), which leaves five times the low-order
            // part.
            let low = point * -Scalar::ONE + point;
            found[EIGHT_TORSION.iter().position(|&other| other == low).unwrap()] += 1;
        }
        found
    }

    #[test]
    fn all_eight_points_of_low_order_are_added_alike() {
        for draw in [random, generated] {
            let found = of_each_low_order(&draws(4000, draw));
            assert!(found.iter().all(|&found| is_likely(found, 4000, 0.125)), "{found:?}");
        }
        assert_eq!(of_each_low_order(&draws(200, clean)), [200, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn every_bit_is_set_half_of_the_time() {
        let unlikely = |representatives: &[[u8; 32]]| -> Vec<usize> {
            let is_set = |bytes: &&[u8; 32], bit| bytes[bit / 8] >> (bit % 8) & 1 == 1;
            let set = |bit| representatives.iter().filter(|bytes| is_set(bytes, bit)).count();
            (0..256).filter(|&bit| !is_likely(set(bit), representatives.len(), 0.5)).collect()
        };
        assert_eq!(unlikely(&draws(4000, random)), [0; 0]);
        assert_eq!(unlikely(&draws(4000, generated)), [0; 0]);
        // Without bits 6 and 7 of the tweak, the top two bits would stand out.
        let mut bare = draws(200, generated);
        bare.iter_mut().for_each(|bytes| bytes[31] &= !SPARE_BITS);
        assert_eq!(unlikely(&bare), [254, 255]);
    }

    #[test]
    fn the_two_spare_bits_and_the_sign_are_independent_of_each_other() {
        let mut cells = [0; 8];
        for representative in draws(4000, generated) {
            let u = decode(&representative);
            let sign = encode(&u, 1).expect("it has one")[..31] == representative[..31];
            cells[usize::from(representative[31] >> 6) * 2 + usize::from(sign)] += 1;
        }
        assert!(cells.iter().all(|&found| is_likely(found, 4000, 0.125)), "{cells:?}");
    }

    #[test]
    fn generated_keys_are_decoded() {
        let mut rng = ChaCha20Rng::from_seed([1; 32]);
        for _ in 0..200 {
            let key = EphemeralKey::generate(&mut rng);
            assert_eq!(decode(key.representative()), *key.public());
        }
    }

    #[test]
    fn the_same_randomness_generates_the_same_key() {
        let key = |seed| EphemeralKey::generate(&mut ChaCha20Rng::from_seed([seed; 32]));
        let (one, again, other) = (key(1), key(1), key(2));
        assert_eq!((one.secret(), one.representative()), (again.secret(), again.representative()));
        assert_ne!(one.secret(), other.secret());
        assert_eq!(format!("{one:?}"), "EphemeralKey { .. }");
    }

    #[test]
    fn a_dirty_key_and_a_clean_one_agree() {
        let mut rng = ChaCha20Rng::from_seed([2; 32]);
        let mut dirty_keys = 0;
        for _ in 0..100 {
            let (dirty, other) = (EphemeralKey::generate(&mut rng), random(&mut rng));
            let ours = x25519(dirty.secret(), &x25519_public(&other)).unwrap();
            assert_eq!(ours, x25519(&other, dirty.public()).unwrap());
            assert_eq!(ours, x25519(&other, &x25519_public(dirty.secret())).unwrap());
            dirty_keys += u32::from(*dirty.public() != x25519_public(dirty.secret()));
        }
        assert!((70..100).contains(&dirty_keys), "{dirty_keys}: seven of eight");
    }

    #[test]
    fn two_dirty_keys_agree() {
        let mut rng = ChaCha20Rng::from_seed([3; 32]);
        for _ in 0..100 {
            let [one, two] = [(); 2].map(|()| EphemeralKey::generate(&mut rng));
            let secret = x25519(one.secret(), two.public()).unwrap();
            assert_eq!(secret, x25519(two.secret(), one.public()).unwrap());
        }
    }

    #[test]
    fn encoded_points_decode_with_every_tweak() {
        let mut rng = ChaCha20Rng::from_seed([4; 32]);
        for _ in 0..100 {
            let u = decode(&random(&mut rng));
            let [lower, upper] = [0, 1].map(|sign| encode(&u, sign).expect("what was decoded"));
            assert_ne!(lower, upper);
            for tweak in 0..=255 {
                let representative = encode(&u, tweak).unwrap();
                let mut expected = if tweak & 1 == 0 { lower } else { upper };
                expected[31] |= tweak & SPARE_BITS;
                assert_eq!(representative, expected);
                assert_eq!(decode(&representative), u);
            }
        }
    }

    #[test]
    fn points_off_the_curve_have_no_representative() {
        let mut rng = ChaCha20Rng::from_seed([5; 32]);
        let mut on_curve = 0;
        for _ in 0..1000 {
            let u = random(&mut rng);
            if let Some(representative) = encode(&u, 0) {
                assert_eq!(decode(&representative), Field::from_bytes(&u).to_bytes());
                on_curve += 1;
            }
        }
        assert!(is_likely(on_curve, 1000, 0.25), "{on_curve}");
        // u + A is zero, and the point of order four of the twist.
        assert_eq!(encode(&A.negated().to_bytes(), 0), None);
        assert_eq!(encode(&Field::ONE.negated().to_bytes(), 0), None);
    }

    #[test]
    fn every_32_bytes_decode_to_a_point_of_the_curve() {
        let mut rng = ChaCha20Rng::from_seed([6; 32]);
        let mut edges = vec![[0; 32], [0xff; 32], [0x80; 32]];
        // The smallest numbers, and the numbers around (p−1)/2 and around p.
        for low in 0..=u8::MAX {
            for (rest, high) in [(0, 0), (0xff, 0x3f), (0xff, 0x7f)] {
                let mut bytes = [rest; 32];
                (bytes[0], bytes[31]) = (low, high);
                edges.push(bytes);
            }
        }
        edges.extend((0..1000).map(|_| random(&mut rng)));
        for bytes in edges {
            let u = decode(&bytes);
            assert_eq!(u, Field::from_bytes(&u).to_bytes(), "below p");
            assert!(MontgomeryPoint(u).to_edwards(0).is_some(), "{bytes:?}");
        }
    }

    #[test]
    fn representatives_of_points_of_low_order_agree_on_nothing() {
        let mut found = 0;
        for point in EIGHT_TORSION {
            let u = point.to_montgomery().to_bytes();
            for tweak in [0, 1, 0xc0] {
                let Some(representative) = encode(&u, tweak) else { continue };
                assert_eq!(decode(&representative), u);
                assert_eq!(x25519(&[9; 32], &decode(&representative)), None);
                found += 1;
            }
        }
        assert!(found >= 3, "zero at the least: {found}");
    }
}
