//! Big integers: [`Uint`], a non-negative number of up to [`Uint::BITS_MAX`] bits.
//!
//! Additions and short products are our own code; AWS-LC computes long products, powers, divisions,
//! divisors and inverses.
//!
//! The time of sums, products and powers depends only on lengths in limbs, never on values. So the
//! value of a number may be secret in these operations, but not its length. The time of division,
//! comparison, divisors and inverses depends on values. Memory is wiped when a number is dropped.

mod limbs;
mod product;

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use thiserror::Error;
use zeroize::Zeroizing;

use crate::Backend;
use wraith_aws_lc::bignum as aws;

use limbs::Limbs;

/// The reason why an operation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// The number would have more than [`Uint::BITS_MAX`] bits.
    #[error("the result is longer than {} bits", Uint::BITS_MAX)]
    TooLarge,
    /// The number subtracted is the larger one.
    #[error("the difference would be negative")]
    Negative,
    /// Division by zero, or modulo zero.
    #[error("division by zero")]
    DivisionByZero,
    /// The modulus of a power is even.
    #[error("the modulus of a power must be odd")]
    EvenModulus,
    /// The number and the modulus have a common divisor.
    #[error("the number has no inverse")]
    NoInverse,
    /// The number has more bytes than the buffer.
    #[error("the number does not fit into the buffer")]
    NoRoom,
    /// The input is not a string of hexadecimal digits.
    #[error("not a hexadecimal number")]
    InvalidHex,
    /// AWS-LC had no memory.
    #[error("out of memory")]
    OutOfMemory,
}

/// A non-negative integer.
///
/// Invariant: there are at most [`Self::LIMBS_MAX`] little-endian limbs, of which the last is not
/// zero.
///
/// ```
/// use wraith_suite::bignum::Uint;
///
/// let prime = Uint::from_hex("ffffffff00000001000000000000000000000000ffffffffffffffffffffffff")?;
/// let exponent = prime.sub(&Uint::from(1))?;
/// assert_eq!(Uint::from(3).mod_exp(&exponent, &prime)?, Uint::from(1));
/// # Ok::<(), wraith_suite::bignum::Error>(())
/// ```
#[derive(Clone)]
pub struct Uint {
    limbs: Limbs,
}

impl Uint {
    /// Maximum number of bits.
    pub const BITS_MAX: usize = 65_536;
    /// Maximum number of limbs of 64 bits.
    pub const LIMBS_MAX: usize = Self::BITS_MAX / 64;

    /// Returns zero.
    #[must_use]
    pub const fn zero() -> Self {
        Self { limbs: Limbs::new() }
    }

    /// Creates a number from little-endian limbs.
    ///
    /// # Errors
    /// [`Error::TooLarge`].
    pub fn from_limbs(limbs: Vec<u64>) -> Result<Self, Error> {
        let mut number = Self { limbs: limbs.into() };
        number.limbs.trim();
        if number.limbs.len() > Self::LIMBS_MAX { Err(Error::TooLarge) } else { Ok(number) }
    }

    /// Creates a number from big-endian bytes of any length. The empty slice is 0.
    ///
    /// # Errors
    /// [`Error::TooLarge`]; leading zeros do not count.
    pub fn from_be_bytes(bytes: &[u8]) -> Result<Self, Error> {
        Self::from_digits(bytes, 0, 8, |byte| Some(byte.into()))
    }

    /// Creates a number from digits of `bits` bits each, the most significant first.
    fn from_digits(
        digits: &[u8],
        zero: u8,
        bits: usize,
        value: impl Fn(u8) -> Option<u64>,
    ) -> Result<Self, Error> {
        let zeros = digits.iter().take_while(|digit| **digit == zero).count();
        let digits = &digits[zeros..];
        if digits.len() > Self::BITS_MAX / bits {
            return Err(Error::TooLarge);
        }
        let mut number = Self::zero();
        let limbs = number.limbs.room(digits.len().div_ceil(64 / bits));
        for (limb, chunk) in limbs.iter_mut().zip(digits.rchunks(64 / bits)) {
            *limb = 0;
            for &digit in chunk {
                *limb = *limb << bits | value(digit).ok_or(Error::InvalidHex)?;
            }
        }
        Ok(number)
    }

    /// Creates a number from hexadecimal digits of either case.
    ///
    /// # Errors
    /// [`Error::InvalidHex`] for an invalid digit or an empty string; [`Error::TooLarge`].
    pub fn from_hex(digits: &str) -> Result<Self, Error> {
        let digits = digits.as_bytes();
        if digits.is_empty() {
            return Err(Error::InvalidHex);
        }
        Self::from_digits(digits, b'0', 4, |digit| char::from(digit).to_digit(16).map(u64::from))
    }

    /// Writes the number to all of `out`, big-endian, with leading zeros.
    ///
    /// # Errors
    /// [`Error::NoRoom`]; `out` is then unchanged.
    pub fn write_be_bytes(&self, out: &mut [u8]) -> Result<(), Error> {
        if self.bits().div_ceil(8) > out.len() {
            return Err(Error::NoRoom);
        }
        let limbs = self.limbs.iter().copied().chain(std::iter::repeat(0));
        for (chunk, limb) in out.rchunks_mut(8).zip(limbs) {
            chunk.copy_from_slice(&limb.to_be_bytes()[8 - chunk.len()..]);
        }
        Ok(())
    }

    /// Returns the big-endian bytes of the number. 0 has none.
    #[must_use]
    pub fn to_be_bytes(&self) -> Zeroizing<Vec<u8>> {
        let mut bytes = Zeroizing::new(vec![0; self.bits().div_ceil(8)]);
        self.write_be_bytes(&mut bytes).expect("there is room for all its bits");
        bytes
    }

    /// Returns lower-case hexadecimal digits without leading zeros.
    #[must_use]
    pub fn to_hex(&self) -> Zeroizing<String> {
        let digits = data_encoding::HEXLOWER.encode(&self.to_be_bytes());
        let digits = Zeroizing::new(digits);
        match digits.strip_prefix('0').unwrap_or(&digits) {
            "" => Zeroizing::new("0".into()),
            trimmed => Zeroizing::new(trimmed.into()),
        }
    }

    /// Returns the little-endian limbs without zeros at the end.
    #[must_use]
    pub fn limbs(&self) -> &[u64] {
        &self.limbs
    }

    /// Returns the number of bits without leading zeros.
    #[must_use]
    pub fn bits(&self) -> usize {
        self.limbs.last().map_or(0, |top| 64 * self.limbs.len() - top.leading_zeros() as usize)
    }

    /// Returns whether the number is 0.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.limbs.is_empty()
    }

    /// Returns whether the number is odd.
    #[must_use]
    pub fn is_odd(&self) -> bool {
        self.limbs.first().is_some_and(|limb| limb & 1 == 1)
    }

    /// Returns the sum.
    ///
    /// # Errors
    /// [`Error::TooLarge`].
    pub fn add(&self, other: &Self) -> Result<Self, Error> {
        let mut out = Self::zero();
        self.add_into(other, &mut out)?;
        Ok(out)
    }

    /// Computes [`Self::add`] into the memory of `out`, if it has enough. After an error, `out` is
    /// unspecified.
    ///
    /// # Errors
    /// [`Error::TooLarge`].
    pub fn add_into(&self, other: &Self, out: &mut Self) -> Result<(), Error> {
        let (long, short) =
            if self.limbs.len() >= other.limbs.len() { (self, other) } else { (other, self) };
        let (low, top) = out.limbs.room(long.limbs.len() + 1).split_at_mut(long.limbs.len());
        low.copy_from_slice(&long.limbs);
        top[0] = product::add_assign(low, &short.limbs);
        out.limbs.trim();
        if out.limbs.len() > Self::LIMBS_MAX { Err(Error::TooLarge) } else { Ok(()) }
    }

    /// Returns the difference.
    ///
    /// # Errors
    /// [`Error::Negative`].
    pub fn sub(&self, other: &Self) -> Result<Self, Error> {
        let mut out = Self::zero();
        self.sub_into(other, &mut out)?;
        Ok(out)
    }

    /// Computes [`Self::sub`] into the memory of `out`, if it has enough. After an error, `out` is
    /// unspecified.
    ///
    /// # Errors
    /// [`Error::Negative`].
    pub fn sub_into(&self, other: &Self, out: &mut Self) -> Result<(), Error> {
        if other.limbs.len() > self.limbs.len() {
            return Err(Error::Negative);
        }
        let limbs = out.limbs.room(self.limbs.len());
        limbs.copy_from_slice(&self.limbs);
        let borrow = product::subtract_assign(limbs, &other.limbs);
        out.limbs.trim();
        if borrow == 1 { Err(Error::Negative) } else { Ok(()) }
    }

    /// Returns the product.
    ///
    /// # Errors
    /// [`Error::TooLarge`], if the lengths in limbs allow more than [`Self::BITS_MAX`] bits.
    /// [`Error::OutOfMemory`].
    pub fn mul(&self, other: &Self) -> Result<Self, Error> {
        let mut out = Self::zero();
        self.mul_into(other, &mut out)?;
        Ok(out)
    }

    /// Computes [`Self::mul`] into the memory of `out`, if it has enough.
    ///
    /// # Errors
    /// [`Error::TooLarge`], as for [`Self::mul`]; `out` is then unchanged. [`Error::OutOfMemory`].
    pub fn mul_into(&self, other: &Self, out: &mut Self) -> Result<(), Error> {
        let count = self.limbs.len() + other.limbs.len();
        if self.is_zero() || other.is_zero() {
            out.limbs.room(0);
            return Ok(());
        }
        if count > Self::LIMBS_MAX {
            return Err(Error::TooLarge);
        }
        let product = product::multiply(out.limbs.room(count), &self.limbs, &other.limbs);
        product.ok_or(Error::OutOfMemory)?;
        out.limbs.trim();
        Ok(())
    }

    /// Returns quotient and remainder, in time that depends on both numbers.
    ///
    /// # Errors
    /// [`Error::DivisionByZero`], [`Error::OutOfMemory`].
    pub fn div_rem(&self, divisor: &Self) -> Result<(Self, Self), Error> {
        if divisor.is_zero() {
            return Err(Error::DivisionByZero);
        }
        let (quotient, remainder) =
            aws::divide(&self.limbs, &divisor.limbs).ok_or(Error::OutOfMemory)?;
        Ok((Self::from_limbs(quotient)?, Self::from_limbs(remainder)?))
    }

    /// Returns the remainder, in time that depends on both numbers.
    ///
    /// # Errors
    /// The errors of [`Self::div_rem`].
    pub fn rem(&self, modulus: &Self) -> Result<Self, Error> {
        Ok(self.div_rem(modulus)?.1)
    }

    /// Returns this number to the power of `exponent`, modulo an odd `modulus`.
    ///
    /// The time reveals neither the exponent nor, if it is below the modulus, this number.
    ///
    /// # Errors
    /// [`Error::DivisionByZero`], [`Error::EvenModulus`], [`Error::OutOfMemory`].
    pub fn mod_exp(&self, exponent: &Self, modulus: &Self) -> Result<Self, Error> {
        if modulus.is_zero() {
            return Err(Error::DivisionByZero);
        }
        if !modulus.is_odd() {
            return Err(Error::EvenModulus);
        }
        let reduced;
        let mut base = self;
        if *self >= *modulus {
            reduced = self.rem(modulus)?;
            base = &reduced;
        }
        let power = aws::Modulus::new(&modulus.limbs)
            .and_then(|modulus| modulus.power(&base.limbs, &exponent.limbs));
        Self::from_limbs(power.ok_or(Error::OutOfMemory)?)
    }

    /// Returns the greatest common divisor. That of 0 and another number is the other number.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn gcd(&self, other: &Self) -> Result<Self, Error> {
        Self::from_limbs(aws::gcd(&self.limbs, &other.limbs).ok_or(Error::OutOfMemory)?)
    }

    /// Returns the inverse modulo `modulus`, which is below `modulus`. The time depends on both
    /// numbers.
    ///
    /// # Errors
    /// [`Error::DivisionByZero`]; [`Error::NoInverse`], also if `modulus` is 1;
    /// [`Error::OutOfMemory`].
    pub fn mod_inverse(&self, modulus: &Self) -> Result<Self, Error> {
        let reduced = self.rem(modulus)?;
        if *modulus == Self::from(1) || reduced.gcd(modulus)? != Self::from(1) {
            return Err(Error::NoInverse);
        }
        Self::from_limbs(aws::inverse(&reduced.limbs, &modulus.limbs).ok_or(Error::OutOfMemory)?)
    }
}

/// Returns the implementation of products of two numbers of `bits` bits on this processor.
#[must_use]
pub fn product_backend(bits: usize) -> Backend {
    product::backend(bits.div_ceil(64))
}

impl From<u64> for Uint {
    fn from(value: u64) -> Self {
        let mut number = Self::zero();
        number.limbs.room(1)[0] = value;
        number.limbs.trim();
        number
    }
}

impl Ord for Uint {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_length = self.limbs.len().cmp(&other.limbs.len());
        by_length.then_with(|| self.limbs.iter().rev().cmp(other.limbs.iter().rev()))
    }
}

impl PartialOrd for Uint {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Uint {
    fn eq(&self, other: &Self) -> bool {
        *self.limbs == *other.limbs
    }
}

impl Eq for Uint {}

impl Hash for Uint {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.limbs.hash(state);
    }
}

impl Default for Uint {
    fn default() -> Self {
        Self::zero()
    }
}

wraith_crypto::redacted_debug!(|it: Uint| bits: it.bits());
