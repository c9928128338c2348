//! Diffie-Hellman over the finite fields of RFC 7919, and those of RFC 3526 from 2048 bits on.
//!
//! All primes are safe: `p = 2q + 1`, and 2 generates the subgroup of order q. Private keys are as
//! short as RFC 7919 §5.2 and SP 800-56A Rev. 3 §5.6.1.1 allow. The time of an exponentiation with
//! a short exponent reveals only the exponent's length, which is public.
//!
//! **Checks of a peer's key.** Rejected are 0, 1, p - 1 and values that are not below p. With a
//! safe prime, all other values below p have a large order (SP 800-56A Rev. 3, §5.6.2.3.2, and RFC
//! 7919 §5.1).
//!
//! **Omitted check.** This module does not check that the peer's key is a square, that is, of order
//! q and not 2q. That check is the full validation of SP 800-56A (§5.6.2.3.1), which the standard
//! makes optional for ephemeral keys over safe primes. A Jacobi symbol would decide whether the key
//! is a square. Computing it costs 15 % of an agreement with 2048 bits, 11 % with 3072 and 6 % with
//! 8192. (Measured on Zen 4, in batches of 62 divsteps in variable time.) A peer with an invalid
//! key that can observe the secret learns at most the parity of the private key, the same bit each
//! time. The private key lengths of RFC 7919 have one bit to spare. That holds for a static key as
//! well, with any number of such peers. Full validation, as some standards require for static keys,
//! is the caller's task: reject a peer's key whose power `(p - 1) / 2` is not 1.
//!
//! Attacks that cannot happen here:
//!
//! - small subgroups, because of the checks;
//! - secrets of different lengths (Raccoon): a secret is always as long as the prime, and its
//!   computation always takes the same time.

mod digits;
#[cfg(test)]
mod tests;

use std::sync::OnceLock;

use zeroize::Zeroizing;

use super::{AgreeError, Algorithm};
use crate::Backend;
use crate::bignum::Uint;
use digits::{DIGITS, E, PI};
use wraith_aws_lc::bignum::Modulus;

/// A Diffie-Hellman group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Group {
    /// ffdhe2048 (RFC 7919).
    Ffdhe2048,
    /// ffdhe3072 (RFC 7919).
    Ffdhe3072,
    /// ffdhe4096 (RFC 7919).
    Ffdhe4096,
    /// ffdhe6144 (RFC 7919).
    Ffdhe6144,
    /// ffdhe8192 (RFC 7919).
    Ffdhe8192,
    /// Group 14 (RFC 3526).
    Modp2048,
    /// Group 15 (RFC 3526).
    Modp3072,
    /// Group 16 (RFC 3526).
    Modp4096,
    /// Group 17 (RFC 3526).
    Modp6144,
    /// Group 18 (RFC 3526).
    Modp8192,
}

/// Precomputed values of a group, computed on first use.
struct Field {
    prime: Uint,
    /// `(p - 1) / 2`, the order of 2.
    order: Uint,
    /// The prime, prepared for powers.
    modulus: Modulus,
}

static FIELDS: [OnceLock<Field>; Group::ALL.len()] = [const { OnceLock::new() }; Group::ALL.len()];

impl Group {
    /// Every group.
    pub const ALL: [Self; 10] = [
        Self::Ffdhe2048,
        Self::Ffdhe3072,
        Self::Ffdhe4096,
        Self::Ffdhe6144,
        Self::Ffdhe8192,
        Self::Modp2048,
        Self::Modp3072,
        Self::Modp4096,
        Self::Modp6144,
        Self::Modp8192,
    ];

    /// Returns the key agreement with this group.
    #[must_use]
    pub const fn algorithm(self) -> Algorithm {
        match self {
            Self::Ffdhe2048 => Algorithm::Ffdhe2048,
            Self::Ffdhe3072 => Algorithm::Ffdhe3072,
            Self::Ffdhe4096 => Algorithm::Ffdhe4096,
            Self::Ffdhe6144 => Algorithm::Ffdhe6144,
            Self::Ffdhe8192 => Algorithm::Ffdhe8192,
            Self::Modp2048 => Algorithm::Modp2048,
            Self::Modp3072 => Algorithm::Modp3072,
            Self::Modp4096 => Algorithm::Modp4096,
            Self::Modp6144 => Algorithm::Modp6144,
            Self::Modp8192 => Algorithm::Modp8192,
        }
    }

    /// Returns the length of the prime in bits.
    #[must_use]
    pub const fn bits(self) -> usize {
        match self {
            Self::Ffdhe2048 | Self::Modp2048 => 2048,
            Self::Ffdhe3072 | Self::Modp3072 => 3072,
            Self::Ffdhe4096 | Self::Modp4096 => 4096,
            Self::Ffdhe6144 | Self::Modp6144 => 6144,
            Self::Ffdhe8192 | Self::Modp8192 => 8192,
        }
    }

    /// Returns the length of public keys and shared secrets in bytes.
    #[must_use]
    pub const fn bytes(self) -> usize {
        self.bits() / 8
    }

    /// Returns the length of generated private keys in bits (RFC 7919, appendix A).
    #[must_use]
    pub const fn exponent_bits(self) -> usize {
        match self.bits() {
            2048 => 225,
            3072 => 275,
            4096 => 325,
            6144 => 375,
            _ => 400,
        }
    }

    /// Returns the prime.
    #[must_use]
    pub fn prime(self) -> &'static Uint {
        &self.field().prime
    }

    /// Returns the implementation on this processor.
    #[must_use]
    pub fn backend(self) -> Backend {
        Backend::AwsLc
    }

    /// Computes the prime from the digits of `c`, e or π: 64 ones, digits, 64 ones.
    ///
    /// `2^bits - 2^(bits - 64) + (floor(2^(bits - 130) · c) + correction) · 2^64 - 1`
    fn prime_limbs(self) -> Vec<u64> {
        let (constant, correction): (&[u64; DIGITS], u64) = match self {
            Self::Ffdhe2048 => (&E, 560_316),
            Self::Ffdhe3072 => (&E, 2_625_351),
            Self::Ffdhe4096 => (&E, 5_736_041),
            Self::Ffdhe6144 => (&E, 15_705_020),
            Self::Ffdhe8192 => (&E, 10_965_728),
            Self::Modp2048 => (&PI, 124_476),
            Self::Modp3072 => (&PI, 1_690_314),
            Self::Modp4096 => (&PI, 240_904),
            Self::Modp6144 => (&PI, 929_484),
            Self::Modp8192 => (&PI, 4_743_158),
        };
        let digits = &constant[DIGITS - (self.bits() / 64 - 2)..];
        let mut limbs = vec![u64::MAX];
        // The subtracted 1 is borrowed from the digits.
        let mut carry = correction - 1;
        for digit in digits {
            let (sum, is_carried) = digit.overflowing_add(carry);
            limbs.push(sum);
            carry = u64::from(is_carried);
        }
        limbs.push(u64::MAX);
        limbs
    }

    fn field(self) -> &'static Field {
        FIELDS[self as usize].get_or_init(|| {
            let limbs = self.prime_limbs();
            let mut order = limbs.clone();
            for index in 0..order.len() {
                let above = order.get(index + 1).copied().unwrap_or(0);
                order[index] = order[index] >> 1 | above << 63;
            }
            let number = |limbs| Uint::from_limbs(limbs).expect("8192 bits are not too many");
            let (prime, order) = (number(limbs), number(order));
            let modulus = Modulus::new(prime.limbs()).expect("there is memory for a number");
            Field { prime, order, modulus }
        })
    }

    /// Returns `base` (or 2) to the power of `exponent`, big-endian and as long as the prime.
    fn power(
        self,
        base: Option<&Uint>,
        exponent: &Exponent,
    ) -> Result<Zeroizing<Vec<u8>>, AgreeError> {
        let two = Uint::from(2);
        let base = base.unwrap_or(&two);
        let power = self.field().modulus.power(base.limbs(), &exponent.limbs);
        let failed = AgreeError::Failed { algorithm: self.algorithm() };
        let power = Zeroizing::new(power.ok_or(failed)?);
        let mut out = Zeroizing::new(vec![0; self.bytes()]);
        for (out, limb) in out.rchunks_exact_mut(8).zip(&*power) {
            out.copy_from_slice(&limb.to_be_bytes());
        }
        Ok(out)
    }
}

/// A private exponent: little-endian limbs, padded with zeros. Its length is public.
struct Exponent {
    limbs: Zeroizing<Vec<u64>>,
    bits: usize,
}

/// A private key with its public key.
pub struct PrivateKey {
    group: Group,
    exponent: Exponent,
    public: Vec<u8>,
}

impl PrivateKey {
    /// Generates a key of [`Group::exponent_bits`] bits.
    ///
    /// # Errors
    /// [`AgreeError::Failed`].
    pub fn generate(group: Group) -> Result<Self, AgreeError> {
        let bits = group.exponent_bits();
        let mut raw = Zeroizing::new(vec![0; bits.div_ceil(8)]);
        loop {
            crate::rand::fill(&mut raw);
            raw[0] &= 0xff >> (8 * bits.div_ceil(8) - bits);
            // Zero is not a valid key. This does not happen in practice.
            if raw.iter().fold(0, |all, byte| all | byte) != 0 {
                return Self::from_exponent(group, &raw, bits);
            }
        }
    }

    /// Creates a key from an exponent, big-endian: the output of
    /// [`to_raw`](super::PrivateKey::to_raw), or one from another program. Its length in bytes is
    /// public; longer exponents make agreements slower.
    ///
    /// # Errors
    /// [`AgreeError::InvalidPrivateKey`] if it is 0, not below `(p - 1) / 2`, or longer than the
    /// prime.
    pub fn from_raw(group: Group, raw: &[u8]) -> Result<Self, AgreeError> {
        let invalid = AgreeError::InvalidPrivateKey { algorithm: group.algorithm() };
        if raw.len() > group.bytes() {
            return Err(invalid);
        }
        let exponent = Uint::from_be_bytes(raw).map_err(|_| invalid)?;
        // A subtraction, because the time of a comparison would depend on the key.
        let below = group.field().order.sub(&exponent).map_err(|_| invalid)?;
        if exponent.is_zero() || below.is_zero() {
            return Err(invalid);
        }
        let short = group.exponent_bits();
        let is_short = raw.len() <= short.div_ceil(8) && exponent.bits() <= short;
        Self::from_exponent(group, raw, if is_short { short } else { 8 * raw.len() })
    }

    fn from_exponent(group: Group, raw: &[u8], bits: usize) -> Result<Self, AgreeError> {
        let mut limbs = Zeroizing::new(vec![0; bits.div_ceil(64)]);
        for (limb, chunk) in limbs.iter_mut().zip(raw.rchunks(8)) {
            *limb = chunk.iter().fold(0, |limb, byte| limb << 8 | u64::from(*byte));
        }
        let exponent = Exponent { limbs, bits };
        let public = group.power(None, &exponent)?.to_vec();
        Ok(Self { group, exponent, public })
    }

    /// Returns the group.
    #[must_use]
    pub const fn group(&self) -> Group {
        self.group
    }
}

impl super::PrivateKey for PrivateKey {
    fn algorithm(&self) -> Algorithm {
        self.group.algorithm()
    }

    fn public_key(&self) -> Vec<u8> {
        self.public.clone()
    }

    /// `peer` is as long as the prime, with leading zeros.
    fn agree(&self, peer: &[u8]) -> Result<Zeroizing<Vec<u8>>, AgreeError> {
        let invalid = AgreeError::InvalidPublicKey { algorithm: self.group.algorithm() };
        if peer.len() != self.group.bytes() {
            return Err(invalid);
        }
        let peer = Uint::from_be_bytes(peer).map_err(|_| invalid)?;
        let one = Uint::from(1);
        let last = self.group.prime().sub(&one).map_err(|_| invalid)?;
        if peer <= one || peer >= last {
            return Err(invalid);
        }
        let secret = self.group.power(Some(&peer), &self.exponent)?;
        // Rejects the trivial secrets 0, 1 and p - 1. The exponent is below the order of the
        // checked key, so they cannot occur.
        let mut trivial = Zeroizing::new(vec![0; secret.len()]);
        for value in [&Uint::zero(), &one, &last] {
            value.write_be_bytes(&mut trivial).map_err(|_| invalid)?;
            if crate::equal(&secret, &trivial) {
                return Err(invalid);
            }
        }
        Ok(secret)
    }

    /// Returns the exponent, big-endian, padded to the public length.
    fn to_raw(&self) -> Zeroizing<Vec<u8>> {
        let mut raw = Zeroizing::new(vec![0; self.exponent.bits.div_ceil(8)]);
        for (out, limb) in raw.rchunks_mut(8).zip(&*self.exponent.limbs) {
            out.copy_from_slice(&limb.to_be_bytes()[8 - out.len()..]);
        }
        raw
    }
}

wraith_crypto::redacted_debug!(PrivateKey, group);
