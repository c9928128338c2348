//! The hash functions of the Noise framework, for snow.

use snow::params::{CipherChoice, DHChoice, HashChoice, KemChoice};
use snow::resolvers::CryptoResolver;
use snow::types::{Cipher, Dh, Hash, Kem, Random};
use wraith_noise::primitives::Resolver;
use wraith_suite::hash::{Algorithm, Hasher};

/// Hash function of the Noise framework (revision 34, §12).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HashFunction {
    /// FIPS 180-4, 32 bytes.
    Sha256,
    /// FIPS 180-4, 64 bytes.
    Sha512,
    /// RFC 7693, 32 bytes.
    Blake2s,
    /// RFC 7693, 64 bytes.
    Blake2b,
}

impl HashFunction {
    /// Every hash function.
    pub const ALL: [Self; 4] = [Self::Sha256, Self::Sha512, Self::Blake2s, Self::Blake2b];

    /// Returns the algorithm that computes it.
    #[must_use]
    pub const fn algorithm(self) -> Algorithm {
        match self {
            Self::Sha256 => Algorithm::Sha256,
            Self::Sha512 => Algorithm::Sha512,
            Self::Blake2s => Algorithm::Blake2s,
            Self::Blake2b => Algorithm::Blake2b,
        }
    }

    /// Returns its name as part of a Noise protocol name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "SHA256",
            Self::Sha512 => "SHA512",
            Self::Blake2s => "BLAKE2s",
            Self::Blake2b => "BLAKE2b",
        }
    }
}

/// The resolver of `wraith-noise`, with every hash function.
pub(crate) struct SuiteResolver(pub(crate) Resolver);

impl CryptoResolver for SuiteResolver {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        self.0.resolve_rng()
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        self.0.resolve_dh(choice)
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        let function = match choice {
            HashChoice::SHA256 => HashFunction::Sha256,
            HashChoice::SHA512 => HashFunction::Sha512,
            HashChoice::Blake2s => HashFunction::Blake2s,
            HashChoice::Blake2b => HashFunction::Blake2b,
        };
        Some(Box::new(HashState { function, running: function.algorithm().hasher() }))
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        self.0.resolve_cipher(choice)
    }

    fn resolve_kem(&self, choice: &KemChoice) -> Option<Box<dyn Kem>> {
        self.0.resolve_kem(choice)
    }
}

struct HashState {
    function: HashFunction,
    running: Hasher,
}

impl Hash for HashState {
    fn name(&self) -> &'static str {
        self.function.name()
    }

    fn block_len(&self) -> usize {
        self.function.algorithm().block_bytes()
    }

    fn hash_len(&self) -> usize {
        self.function.algorithm().digest_bytes()
    }

    fn reset(&mut self) {
        self.running = self.function.algorithm().hasher();
    }

    fn input(&mut self, data: &[u8]) {
        self.running.update(data);
    }

    fn result(&mut self, out: &mut [u8]) {
        let running = std::mem::replace(&mut self.running, self.function.algorithm().hasher());
        running.finish_into(out);
    }
}
