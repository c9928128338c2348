//! Adapter from `wraith-crypto` to the traits of snow. The handshake of the transport and those of
//! `wraith-session` are built on it; no other crate should need it. The only hash function is
//! SHA-256; `wraith-session` adds the others.
//!
//! The caller generates the ephemeral keys and the KEM seed beforehand, so there is no random
//! source. A handshake state is therefore a function of its inputs, and can be tested with
//! published vectors.
//!
//! Secrets on this side of the adapter are wiped when dropped. snow does not wipe its chaining key.
//! snow's states therefore have to be in memory that is wiped on drop ([`wraith_crypto::Wiped`]).
//! Values that snow's functions leave on the stack are not wiped.

use snow::Error;
use snow::params::{CipherChoice, DHChoice, HashChoice, KemChoice};
use snow::resolvers::CryptoResolver;
use snow::types::{Cipher, Dh, Hash, Kem, Random};
use wraith_crypto::elligator::EphemeralKey;
use wraith_crypto::hash::Sha256;
use wraith_crypto::{AeadKey, Suite, TAG_BYTES, agree};
use zeroize::Zeroizing;

pub use crate::ml_kem::MlKem;

/// Returns the nonce for a counter: 32 zero bits, then the counter in the cipher's byte order
/// (Noise revision 34 §12.3 and §12.4).
#[must_use]
pub fn nonce(suite: Suite, counter: u64) -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&match suite {
        Suite::Aes256Gcm | Suite::Sm4Gcm => counter.to_be_bytes(),
        Suite::ChaCha20Poly1305 => counter.to_le_bytes(),
    });
    nonce
}

/// Supplies snow with the primitives of one side, made from keys and seeds drawn beforehand.
pub struct Resolver {
    /// Key pair that is returned when snow generates an ephemeral key.
    pub ephemeral: KeyPair,
    /// The side's own static key, if any. Saves the computation of its public half.
    pub local: Option<KeyPair>,
    /// The cipher in use. snow's name for it is ignored, because snow has none for SM4-GCM.
    pub suite: Suite,
    /// This side's half of the KEM. Only the hybrid variants use it.
    pub kem: MlKem,
}

wraith_crypto::redacted_debug!(Resolver);

/// An X25519 key pair. The secret half is wiped when dropped.
#[derive(Clone, Default)]
pub struct KeyPair {
    secret: Zeroizing<[u8; 32]>,
    public: [u8; 32],
}

impl KeyPair {
    /// Computes the key pair of `secret`, any 32 random bytes.
    #[must_use]
    pub fn of(secret: Zeroizing<[u8; 32]>) -> Self {
        Self { public: agree::x25519_public(&secret), secret }
    }

    /// Returns the secret half.
    #[must_use]
    pub fn secret(&self) -> &[u8; 32] {
        &self.secret
    }

    /// Returns the public half.
    #[must_use]
    pub const fn public(&self) -> &[u8; 32] {
        &self.public
    }
}

impl From<&EphemeralKey> for KeyPair {
    fn from(key: &EphemeralKey) -> Self {
        Self { secret: Zeroizing::new(*key.secret()), public: *key.public() }
    }
}

wraith_crypto::redacted_debug!(KeyPair);

impl CryptoResolver for Resolver {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(NoRandom))
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        match choice {
            DHChoice::Curve25519 => Some(Box::new(X25519 {
                ephemeral: self.ephemeral.clone(),
                local: self.local.clone(),
                key: KeyPair::default(),
            })),
            _ => None,
        }
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        match choice {
            HashChoice::SHA256 => Some(Box::new(HashState(Sha256::new()))),
            _ => None,
        }
    }

    fn resolve_cipher(&self, _: &CipherChoice) -> Option<Box<dyn Cipher>> {
        Some(Box::new(Aead::new(self.suite)))
    }

    fn resolve_kem(&self, _: &KemChoice) -> Option<Box<dyn Kem>> {
        Some(Box::new(self.kem.clone_seed()))
    }
}

/// Random source that always fails: the caller supplies all randomness.
struct NoRandom;

impl Random for NoRandom {
    fn try_fill_bytes(&mut self, _: &mut [u8]) -> Result<(), Error> {
        Err(Error::Rng)
    }
}

struct X25519 {
    ephemeral: KeyPair,
    local: Option<KeyPair>,
    key: KeyPair,
}

impl Dh for X25519 {
    fn name(&self) -> &'static str {
        "25519"
    }

    fn pub_len(&self) -> usize {
        32
    }

    fn priv_len(&self) -> usize {
        32
    }

    fn set(&mut self, privkey: &[u8]) {
        self.key = match &self.local {
            Some(local) if wraith_crypto::equal(local.secret(), privkey) => local.clone(),
            _ => {
                let mut secret = Zeroizing::new([0; 32]);
                secret.copy_from_slice(privkey);
                KeyPair::of(secret)
            }
        };
    }

    fn generate(&mut self, _: &mut dyn Random) -> Result<(), Error> {
        self.key = self.ephemeral.clone();
        Ok(())
    }

    fn pubkey(&self) -> &[u8] {
        &self.key.public
    }

    fn privkey(&self) -> &[u8] {
        &*self.key.secret
    }

    fn dh(&self, pubkey: &[u8], out: &mut [u8]) -> Result<(), Error> {
        // snow passes a buffer for the longest curve it supports; the key is at the front.
        let public = pubkey.first_chunk().ok_or(Error::Dh)?;
        let shared = agree::x25519(&self.key.secret, public).ok_or(Error::Dh)?;
        out.get_mut(..32).ok_or(Error::Dh)?.copy_from_slice(&*shared);
        Ok(())
    }
}

struct HashState(Sha256);

impl Hash for HashState {
    fn name(&self) -> &'static str {
        "SHA256"
    }

    fn block_len(&self) -> usize {
        Sha256::BLOCK_BYTES
    }

    fn hash_len(&self) -> usize {
        Sha256::DIGEST_BYTES
    }

    fn reset(&mut self) {
        self.0 = Sha256::new();
    }

    fn input(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    fn result(&mut self, out: &mut [u8]) {
        out[..Sha256::DIGEST_BYTES].copy_from_slice(&std::mem::take(&mut self.0).finish());
    }
}

pub(crate) struct Aead {
    suite: Suite,
    /// `None` until Noise sets a key.
    key: Option<AeadKey>,
}

impl Aead {
    pub(crate) const fn new(suite: Suite) -> Self {
        Self { suite, key: None }
    }

    pub(crate) fn key(&self) -> &AeadKey {
        self.key.as_ref().expect("Noise sets a key before it encrypts anything")
    }

    fn nonce(&self, counter: u64) -> [u8; 12] {
        nonce(self.suite, counter)
    }
}

impl Cipher for Aead {
    fn name(&self) -> &'static str {
        match self.suite {
            Suite::Aes256Gcm => "AESGCM",
            Suite::ChaCha20Poly1305 => "ChaChaPoly",
            Suite::Sm4Gcm => "SM4GCM",
        }
    }

    fn set(&mut self, key: &[u8; 32]) {
        self.key = Some(AeadKey::library(self.suite, key));
    }

    fn encrypt(&self, nonce: u64, authtext: &[u8], plaintext: &[u8], out: &mut [u8]) -> usize {
        let (text, rest) = out.split_at_mut(plaintext.len());
        text.copy_from_slice(plaintext);
        let tag = self.key().seal(self.nonce(nonce), authtext, text);
        rest[..TAG_BYTES].copy_from_slice(&tag);
        plaintext.len() + TAG_BYTES
    }

    fn decrypt(
        &self,
        nonce: u64,
        authtext: &[u8],
        ciphertext: &[u8],
        out: &mut [u8],
    ) -> Result<usize, Error> {
        let mut text = Zeroizing::new(ciphertext.to_vec());
        self.key().open(self.nonce(nonce), authtext, &mut text).map_err(|_| Error::Decrypt)?;
        let len = ciphertext.len() - TAG_BYTES;
        out.get_mut(..len).ok_or(Error::Decrypt)?.copy_from_slice(&text[..len]);
        Ok(len)
    }
}
