//! Storage of limbs. Short numbers are stored inline, because an allocation takes longer than
//! adding or multiplying them.

use std::ops::{Deref, DerefMut};

use zeroize::Zeroize;

/// Number of inline limbs: enough for the product of two numbers of 512 bits.
const SHORT: usize = 16;

/// Little-endian limbs. Wiped when dropped. As with any value, a move of a short number leaves a
/// copy in its old place.
///
/// Invariant: the limbs are in `long` if it is not empty, else in `short`. Only the first `len`
/// places count; all others are zero.
pub(super) struct Limbs {
    len: usize,
    short: [u64; SHORT],
    long: Vec<u64>,
}

impl Limbs {
    pub(super) const fn new() -> Self {
        Self { len: 0, short: [0; SHORT], long: Vec::new() }
    }

    /// Resizes to `len` limbs and returns them. Their contents are unspecified.
    pub(super) fn room(&mut self, len: usize) -> &mut [u64] {
        if len < self.len {
            let cut = len;
            self[cut..].zeroize();
        }
        if len > SHORT && len > self.long.len() {
            (**self).zeroize();
            // The allocator's zeroed memory takes longer.
            self.long = Vec::with_capacity(len);
            self.long.resize(len, 0);
        }
        self.len = len;
        self
    }

    /// Removes zeros at the most significant end.
    pub(super) fn trim(&mut self) {
        let zeros = self.iter().rev().take_while(|limb| **limb == 0).count();
        self.len -= zeros;
    }
}

impl Deref for Limbs {
    type Target = [u64];

    #[inline]
    fn deref(&self) -> &[u64] {
        let places: &[u64] = if self.long.is_empty() { &self.short } else { &self.long };
        &places[..self.len]
    }
}

impl DerefMut for Limbs {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u64] {
        let places: &mut [u64] =
            if self.long.is_empty() { &mut self.short } else { &mut self.long };
        &mut places[..self.len]
    }
}

impl From<Vec<u64>> for Limbs {
    fn from(mut limbs: Vec<u64>) -> Self {
        let mut found = Self::new();
        if limbs.len() > SHORT {
            found.len = limbs.len();
            found.long = limbs;
        } else {
            found.room(limbs.len()).copy_from_slice(&limbs);
            limbs.zeroize();
        }
        found
    }
}

impl Clone for Limbs {
    fn clone(&self) -> Self {
        let mut copy = Self::new();
        copy.room(self.len).copy_from_slice(self);
        copy
    }
}

impl Drop for Limbs {
    fn drop(&mut self) {
        // All places beyond `len` are zero.
        (**self).zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_that_do_not_count_are_zero() {
        let mut limbs = Limbs::new();
        for len in [3, SHORT, 2, SHORT + 1, 5, SHORT + 9, SHORT + 1, 1, 0] {
            limbs.room(len).fill(u64::MAX);
            assert_eq!(limbs.len(), len);
            let all = limbs.short.iter().chain(&limbs.long);
            assert_eq!(all.filter(|limb| **limb != 0).count(), len);
            assert_eq!(limbs.clone()[..], limbs[..]);
        }
    }

    #[test]
    fn vectors_of_any_length_become_limbs() {
        for len in 0..=2 * SHORT {
            let vector: Vec<u64> = (0..len as u64).collect();
            assert_eq!(Limbs::from(vector.clone())[..], vector[..]);
        }
    }
}
