//! Types of the hash functions with digests of a fixed length.

use blake2::digest::Digest;
use wraith_aws_lc::keccak::Keccak;
use zeroize::Zeroize;

use super::blocks::Blocks;
use super::{Algorithm, Function, Hash, compression};

/// Implements the traits that all hash types share. The type needs `new`, `update` and `write_to`.
macro_rules! hash_traits {
    ($name:ident) => {
        impl Default for $name {
            fn default() -> Self {
                Self::new()
            }
        }

        wraith_crypto::redacted_debug!($name);

        impl Hash for $name {
            fn algorithm(&self) -> Algorithm {
                Algorithm::$name
            }

            fn update(&mut self, data: &[u8]) {
                self.0.update(data);
            }

            fn finish_into(self: Box<Self>, out: &mut [u8]) {
                self.write_to(out);
            }

            fn boxed_clone(&self) -> Box<dyn Hash> {
                Box::new(self.clone())
            }
        }
    };
}
pub(super) use hash_traits;

/// A running hash. [`Blocks`] has these methods too, with a faster `digest`.
trait Running: Sized {
    fn new() -> Self;

    fn update(&mut self, data: &[u8]);

    /// Fills `out` with the digest.
    fn finish(self, out: &mut [u8]);

    /// Fills `out` with the digest of `data`.
    fn digest(data: &[u8], out: &mut [u8]) {
        let mut hash = Self::new();
        hash.update(data);
        hash.finish(out);
    }
}

/// Defines the type of one function. `$running` has the methods of [`Running`].
macro_rules! hash_type {
    ($(#[$meta:meta])* $name:ident, $digest:literal, $block:literal, $running:ty) => {
        $(#[$meta])*
        #[derive(Clone)]
        pub struct $name($running);

        impl $name {
            /// Length of the digest in bytes.
            pub const DIGEST_BYTES: usize = $digest;
            /// Length of an input block in bytes, needed by HMAC.
            pub const BLOCK_BYTES: usize = $block;

            /// Creates the state of an empty message.
            #[must_use]
            pub fn new() -> Self {
                Self(<$running>::new())
            }

            /// Hashes the next piece of the message.
            #[inline]
            pub fn update(&mut self, data: &[u8]) {
                self.0.update(data);
            }

            /// Returns the digest of the message.
            #[must_use]
            #[inline]
            pub fn finish(self) -> [u8; Self::DIGEST_BYTES] {
                let mut digest = [0; Self::DIGEST_BYTES];
                self.0.finish(&mut digest);
                digest
            }

            /// Returns the digest of `data`.
            #[must_use]
            pub fn digest(data: &[u8]) -> [u8; Self::DIGEST_BYTES] {
                let mut digest = [0; Self::DIGEST_BYTES];
                <$running>::digest(data, &mut digest);
                digest
            }

            #[inline]
            pub(super) fn write_to(self, out: &mut [u8]) {
                self.0.finish(&mut out[..Self::DIGEST_BYTES]);
            }
        }

        hash_traits!($name);

        impl Function for $name {
            const ALGORITHM: Algorithm = Algorithm::$name;
            const DIGEST_BYTES: usize = Self::DIGEST_BYTES;
            const BLOCK_BYTES: usize = Self::BLOCK_BYTES;

            #[inline]
            fn write(self, out: &mut [u8]) {
                self.write_to(out);
            }
        }
    };
}
pub(super) use hash_type;

hash_type!(/** Incremental state of SHA-224. */ Sha224, 28, 64, Blocks<compression::Sha224>);
hash_type!(/** Incremental state of SHA-256. */ Sha256, 32, 64, Blocks<compression::Sha256>);
hash_type!(/** Incremental state of SHA-384. */ Sha384, 48, 128, Blocks<compression::Sha384>);
hash_type!(/** Incremental state of SHA-512. */ Sha512, 64, 128, Blocks<compression::Sha512>);
hash_type!(/** Incremental state of SHA-512/256. */ Sha512_256, 32, 128, Blocks<compression::Sha512_256>);
hash_type!(/** Incremental state of SM3. */ Sm3, 32, 64, Blocks<compression::Sm3>);
hash_type!(/** Incremental state of SHA3-224. */ Sha3_224, 28, 144, Sha3<28>);
hash_type!(/** Incremental state of SHA3-256. */ Sha3_256, 32, 136, Sha3<32>);
hash_type!(/** Incremental state of SHA3-384. */ Sha3_384, 48, 104, Sha3<48>);
hash_type!(/** Incremental state of SHA3-512. */ Sha3_512, 64, 72, Sha3<64>);
hash_type!(/** Incremental state of BLAKE2s, with digests of 32 bytes. */ Blake2s, 32, 64, Blake2<blake2::Blake2s256>);
hash_type!(/** Incremental state of BLAKE2b, with digests of 64 bytes. */ Blake2b, 64, 128, Blake2<blake2::Blake2b512>);
hash_type!(/** Incremental state of BLAKE3. For keys see [`crate::kdf`]. */ Blake3, 32, 64, Blake3State);

/// A state of SHA-3 with digests of so many bytes.
#[derive(Clone)]
struct Sha3<const DIGEST_BYTES: usize>(Keccak);

impl<const DIGEST_BYTES: usize> Running for Sha3<DIGEST_BYTES> {
    fn new() -> Self {
        Self(Keccak::sha_3(DIGEST_BYTES))
    }

    fn update(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    fn finish(self, out: &mut [u8]) {
        self.0.finish(out);
    }
}

/// A state of the crate `blake2`, which wipes it.
#[derive(Clone)]
struct Blake2<D>(D);

impl<D: Digest> Running for Blake2<D> {
    fn new() -> Self {
        Self(D::new())
    }

    fn update(&mut self, data: &[u8]) {
        Digest::update(&mut self.0, data);
    }

    fn finish(self, out: &mut [u8]) {
        out.copy_from_slice(&self.0.finalize());
    }
}

/// BLAKE3 state, boxed because its tree takes 2 KB.
#[derive(Clone)]
struct Blake3State(Box<blake3::Hasher>);

impl Running for Blake3State {
    fn new() -> Self {
        Self(Box::default())
    }

    fn update(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    fn finish(self, out: &mut [u8]) {
        out.copy_from_slice(self.0.finalize().as_bytes());
    }
}

impl Drop for Blake3State {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}
