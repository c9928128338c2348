//! GHASH (NIST SP 800-38D §6.4), with or without the processor's carry-less multiplication.
//!
//! | with | cycles per byte, about (Zen 4) |
//! |---|---|
//! | VPCLMULQDQ, AVX-512 | 0.25 |
//! | PCLMULQDQ | 0.5 |
//! | integer multiplications | 8 |

use zeroize::{Zeroize, ZeroizeOnDrop};

#[cfg(all(target_arch = "x86_64", feature = "simd"))]
use crate::aes_gcm::GhashKey;
use crate::ghash_portable;

/// A hash key. Wiped when dropped.
#[derive(Clone, ZeroizeOnDrop)]
pub struct Ghash(Key);

#[derive(Clone, Zeroize, ZeroizeOnDrop)]
#[allow(clippy::large_enum_variant, reason = "it is the one that is used")]
enum Key {
    #[cfg(all(target_arch = "x86_64", feature = "simd"))]
    X86(GhashKey),
    Portable(u128),
}

impl Ghash {
    /// Creates a key for the fastest instructions that this processor has.
    pub fn new(hash_key: &[u8; 16]) -> Self {
        #[cfg(all(target_arch = "x86_64", feature = "simd"))]
        if let Some(key) = [true, false].into_iter().find_map(|wide| GhashKey::new(hash_key, wide))
        {
            return Self(Key::X86(key));
        }
        Self::portable(hash_key)
    }

    const fn portable(hash_key: &[u8; 16]) -> Self {
        Self(Key::Portable(u128::from_be_bytes(*hash_key)))
    }

    /// Returns the key for each instruction set that this processor has, the fastest first.
    #[cfg(test)]
    #[allow(clippy::vec_init_then_push, reason = "without kernels")]
    fn all(hash_key: &[u8; 16]) -> Vec<Self> {
        let mut all = Vec::new();
        #[cfg(all(target_arch = "x86_64", feature = "simd"))]
        for wide in [true, false] {
            all.extend(GhashKey::new(hash_key, wide).map(|key| Self(Key::X86(key))));
        }
        all.push(Self::portable(hash_key));
        all
    }

    /// Returns the hash after `text`, padded with zeros to a whole block. The initial hash is 0.
    #[must_use]
    pub fn absorb(&self, hash: u128, text: &[u8]) -> u128 {
        match &self.0 {
            #[cfg(all(target_arch = "x86_64", feature = "simd"))]
            Key::X86(key) => key.absorb(hash, text),
            Key::Portable(key) => ghash_portable::absorb(*key, hash, text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::bytes;

    #[test]
    fn every_implementation_hashes_texts_of_any_length_alike() {
        let random = bytes(32 + 1200);
        let all = Ghash::all(random.first_chunk().unwrap());
        let first = u128::from_be_bytes(random[16..32].try_into().unwrap());
        let portable = all.last().unwrap();
        for (len, ghash) in (0..1200).flat_map(|len| all.iter().map(move |each| (len, each))) {
            let text = &random[32..32 + len];
            assert_eq!(ghash.absorb(first, text), portable.absorb(first, text), "{len} bytes");
        }
    }
}
