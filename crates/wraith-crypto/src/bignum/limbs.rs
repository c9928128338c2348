//! Where the limbs of a number lie: those of short numbers in the number itself, because to ask for memory takes longer than to add or
//! multiply them.

use std::ops::{Deref, DerefMut};

use zeroize::Zeroize;

/// Limbs that lie in the number itself: enough for products of two of 512 bits.
const SHORT: usize = 16;

/// Little-endian limbs. Wiped when dropped; but as with any value, a short number that the compiler moves leaves a copy in its old place.
///
/// Invariant: `long`, if it has any places, has the limbs, else `short`. The first `len` places count, and the others are zero.
pub(super) struct Limbs {
    len: usize,
    short: [u64; SHORT],
    long: Vec<u64>,
}

impl Limbs {
    pub(super) const fn new() -> Self {
        Self { len: 0, short: [0; SHORT], long: Vec::new() }
    }

    /// `len` limbs in place of those that were, none of which is known.
    pub(super) fn room(&mut self, len: usize) -> &mut [u64] {
        if len < self.len {
            let cut = len;
            self[cut..].zeroize();
        }
        if len > SHORT && len > self.long.len() {
            (**self).zeroize();
            // Zeros of the allocator's own take longer.
            self.long = Vec::with_capacity(len);
            self.long.resize(len, 0);
        }
        self.len = len;
        self
    }

    /// Takes zeros at the end away.
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
        // What does not count is zero.
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
