//! Hash functions.
//!
//! There is a type per function, for programs that choose at compile time ([`Sha256`],
//! [`Sha3_256`], [`Sm3`] …). [`Algorithm`] and its [`Hasher`] serve programs that choose at run
//! time. [`Shake128`] and [`Shake256`] have digests of any length. The functions in [`legacy`] are
//! not collision resistant; use them only for compatibility.
//!
//! A hash state is wiped when dropped.

use std::fmt;

use crate::Backend;
use crate::algorithm::algorithms;
use wraith_kernels as kernels;

mod blocks;
pub(crate) mod compression;
pub mod legacy;
mod types;
mod xof;

pub use types::{
    Blake2b, Blake2s, Blake3, Sha3_224, Sha3_256, Sha3_384, Sha3_512, Sha224, Sha256, Sha384,
    Sha512, Sha512_256, Sm3,
};
pub use xof::{Shake128, Shake128Reader, Shake256, Shake256Reader};

/// Incremental hash state of some algorithm.
pub trait Hash: Send {
    /// Returns the algorithm.
    fn algorithm(&self) -> Algorithm;

    /// Hashes the next piece of the message.
    fn update(&mut self, data: &[u8]);

    /// Writes the digest to the front of `out`. An extendable function fills all of `out`.
    ///
    /// # Panics
    /// If `out` is shorter than the digest of a function that is not extendable.
    fn finish_into(self: Box<Self>, out: &mut [u8]);

    /// Returns a copy of the state.
    fn boxed_clone(&self) -> Box<dyn Hash>;
}

/// A hash function chosen at compile time, with digests of a fixed length.
pub trait Function: Hash + Clone + Default + fmt::Debug + 'static {
    /// The algorithm.
    const ALGORITHM: Algorithm;
    /// Length of the digest in bytes.
    const DIGEST_BYTES: usize;
    /// Length of an input block in bytes, needed by HMAC.
    const BLOCK_BYTES: usize;

    /// Writes the digest to the front of `out`.
    ///
    /// # Panics
    /// If `out` is shorter than the digest.
    fn write(self, out: &mut [u8]);
}

/// Maximum length of a digest in bytes, among functions with a fixed length.
pub const DIGEST_MAX: usize = 64;

algorithms! {
    /// A hash function.
    "hash function";
    "FIPS 180-4" {
        Sha224 = "SHA-224", Sha256 = "SHA-256", Sha384 = "SHA-384", Sha512 = "SHA-512",
        Sha512_256 = "SHA-512/256",
    }
    "FIPS 202" {
        Sha3_224 = "SHA3-224", Sha3_256 = "SHA3-256", Sha3_384 = "SHA3-384", Sha3_512 = "SHA3-512",
        Shake128 = "SHAKE128", Shake256 = "SHAKE256",
    }
    "GB/T 32905" {
        Sm3 = "SM3",
    }
    "RFC 7693" {
        Blake2s = "BLAKE2s", Blake2b = "BLAKE2b",
    }
    "BLAKE3: one function, fast everywhere" {
        Blake3 = "BLAKE3",
    }
    "FIPS 180-4" {
        Sha1 = "SHA-1",
    }
    "RFC 1321" {
        Md5 = "MD5",
    }
}

impl Algorithm {
    /// Returns the length of the digest in bytes. For SHAKE128 and SHAKE256, which allow any
    /// length, it is the length with the full security level.
    #[must_use]
    pub const fn digest_bytes(self) -> usize {
        match self {
            Self::Md5 => 16,
            Self::Sha1 => 20,
            Self::Sha224 | Self::Sha3_224 => 28,
            Self::Sha256 | Self::Sha512_256 | Self::Sha3_256 | Self::Shake128 => 32,
            Self::Sm3 | Self::Blake2s | Self::Blake3 => 32,
            Self::Sha384 | Self::Sha3_384 => 48,
            Self::Sha512 | Self::Sha3_512 | Self::Shake256 | Self::Blake2b => 64,
        }
    }

    /// Returns the length of an input block in bytes.
    #[must_use]
    pub const fn block_bytes(self) -> usize {
        match self {
            Self::Md5 | Self::Sha1 | Self::Sha224 | Self::Sha256 => 64,
            Self::Sm3 | Self::Blake2s | Self::Blake3 => 64,
            Self::Sha384 | Self::Sha512 | Self::Sha512_256 | Self::Blake2b => 128,
            Self::Sha3_224 => 144,
            Self::Sha3_256 | Self::Shake256 => 136,
            Self::Sha3_384 => 104,
            Self::Sha3_512 => 72,
            Self::Shake128 => 168,
        }
    }

    /// Returns whether digests may have any length.
    #[must_use]
    pub const fn is_extendable(self) -> bool {
        matches!(self, Self::Shake128 | Self::Shake256)
    }

    /// Returns the implementation on this processor.
    #[must_use]
    pub fn backend(self) -> Backend {
        match self {
            Self::Md5 | Self::Sha1 | Self::Sha224 | Self::Sha256 => Backend::AwsLc,
            Self::Sha384 | Self::Sha512 | Self::Sha512_256 => {
                Backend::own_or(kernels::sha512::features(), Backend::AwsLc)
            }
            Self::Sm3 => Backend::own(kernels::sm3::features()),
            Self::Sha3_224 | Self::Sha3_256 | Self::Sha3_384 | Self::Sha3_512 => Backend::AwsLc,
            Self::Shake128 | Self::Shake256 => Backend::AwsLc,
            Self::Blake2s | Self::Blake2b => Backend::Library("blake2"),
            Self::Blake3 => Backend::Library("blake3"),
        }
    }

    /// Returns the state of an empty message.
    #[must_use]
    pub fn hasher(self) -> Hasher {
        Hasher::new(self)
    }
}

/// Returns the digest of `data`.
#[must_use]
pub fn digest(algorithm: Algorithm, data: &[u8]) -> Vec<u8> {
    let mut hasher = algorithm.hasher();
    hasher.update(data);
    let mut digest = vec![0; algorithm.digest_bytes()];
    hasher.finish_into(&mut digest);
    digest
}

/// Evaluates `$then` with `$function` as the type of `$algorithm`, or `$xof` if the algorithm is
/// extendable.
macro_rules! with_function {
    ($algorithm:expr, $function:ident => $then:expr, $xof:expr) => {
        $crate::hash::with_function!(@ $algorithm, $function => $then, $xof;
            Sha224 Sha256 Sha384 Sha512 Sha512_256 Sha3_224 Sha3_256 Sha3_384 Sha3_512 Sm3 Blake2s Blake2b Blake3;
            Sha1 Md5)
    };
    (@ $algorithm:expr, $function:ident => $then:expr, $xof:expr; $($name:ident)+; $($legacy:ident)+) => {
        match $algorithm {
            $( $crate::hash::Algorithm::$name => { type $function = $crate::hash::$name; $then } )+
            $( $crate::hash::Algorithm::$legacy => { type $function = $crate::hash::legacy::$legacy; $then } )+
            $crate::hash::Algorithm::Shake128 | $crate::hash::Algorithm::Shake256 => $xof,
        }
    };
}
pub(crate) use with_function;

/// Incremental hash state of any [`Algorithm`].
#[derive(Clone)]
pub struct Hasher(HasherState);

macro_rules! running {
    ($($name:ident: $type:ty;)+) => {
        #[derive(Clone)]
        enum HasherState { $( $name($type), )+ }

        impl Hasher {
            /// Creates the state of an empty message.
            #[must_use]
            pub fn new(algorithm: Algorithm) -> Self {
                Self(match algorithm {
                    $( Algorithm::$name => HasherState::$name(<$type>::new()), )+
                })
            }

            /// Returns the algorithm.
            #[must_use]
            pub const fn algorithm(&self) -> Algorithm {
                match &self.0 { $( HasherState::$name(_) => Algorithm::$name, )+ }
            }

            /// Hashes the next piece of the message.
            pub fn update(&mut self, data: &[u8]) {
                match &mut self.0 { $( HasherState::$name(hash) => hash.update(data), )+ }
            }

            /// Writes the digest to the front of `out`. An extendable function fills all of `out`.
            ///
            /// # Panics
            /// If `out` is shorter than the digest of a function that is not extendable.
            pub fn finish_into(self, out: &mut [u8]) {
                match self.0 { $( HasherState::$name(hash) => hash.write_to(out), )+ }
            }
        }
    };
}

running! {
    Sha224: Sha224;
    Sha256: Sha256;
    Sha384: Sha384;
    Sha512: Sha512;
    Sha512_256: Sha512_256;
    Sha3_224: Sha3_224;
    Sha3_256: Sha3_256;
    Sha3_384: Sha3_384;
    Sha3_512: Sha3_512;
    Shake128: Shake128;
    Shake256: Shake256;
    Sm3: Sm3;
    Blake2s: Blake2s;
    Blake2b: Blake2b;
    Blake3: Blake3;
    Sha1: legacy::Sha1;
    Md5: legacy::Md5;
}

impl Hash for Hasher {
    fn algorithm(&self) -> Algorithm {
        self.algorithm()
    }

    fn update(&mut self, data: &[u8]) {
        self.update(data);
    }

    fn finish_into(self: Box<Self>, out: &mut [u8]) {
        (*self).finish_into(out);
    }

    fn boxed_clone(&self) -> Box<dyn Hash> {
        Box::new(self.clone())
    }
}

impl fmt::Debug for Hasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hasher").field(&self.algorithm()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_types_agree_with_their_algorithm() {
        for algorithm in Algorithm::ALL {
            assert_eq!(algorithm.hasher().algorithm(), *algorithm);
            assert!(algorithm.digest_bytes() <= DIGEST_MAX);
            let (found, digest, block) = with_function!(
                *algorithm,
                F => (F::ALGORITHM, F::DIGEST_BYTES, F::BLOCK_BYTES),
                (*algorithm, algorithm.digest_bytes(), algorithm.block_bytes())
            );
            assert_eq!(found, *algorithm);
            assert_eq!(digest, algorithm.digest_bytes(), "{algorithm}");
            assert_eq!(block, algorithm.block_bytes(), "{algorithm}");
        }
    }

    #[test]
    fn debug_prints_no_state() {
        let mut hasher = Algorithm::Sha256.hasher();
        hasher.update(b"secret");
        assert_eq!(format!("{hasher:?}"), "Hasher(Sha256)");
        assert_eq!(format!("{:?}", Sha256::new()), "Sha256 { .. }");
    }
}
