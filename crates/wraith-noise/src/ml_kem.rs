//! ML-KEM-768 behind snow's `Kem` trait, for the hybrid extension of the pattern.

use snow::Error;
use snow::types::{Kem, Random};
use wraith_crypto::ml_kem_768 as kem;
use zeroize::Zeroizing;

/// ML-KEM-768 in the role of one side.
pub enum MlKem {
    /// The initiator, before it has generated its key.
    Generates(Zeroizing<[u8; 64]>),
    /// The initiator with its decapsulation key and the matching encapsulation key.
    Decapsulates(Box<(kem::DecapsulationKey, [u8; kem::ENCAPSULATION_KEY_BYTES])>),
    /// The responder.
    Encapsulates(Zeroizing<[u8; 32]>),
}

wraith_crypto::redacted_debug!(MlKem);

impl MlKem {
    /// Returns a fresh instance with the same inputs, before any key is generated.
    pub(crate) fn clone_seed(&self) -> Self {
        match self {
            Self::Generates(seed) => Self::Generates(seed.clone()),
            Self::Encapsulates(seed) => Self::Encapsulates(seed.clone()),
            Self::Decapsulates(_) => unreachable!("a resolver's own makes nothing"),
        }
    }
}

impl Kem for MlKem {
    fn name(&self) -> &'static str {
        "MLKEM768"
    }

    fn pub_len(&self) -> usize {
        kem::ENCAPSULATION_KEY_BYTES
    }

    fn ciphertext_len(&self) -> usize {
        kem::CIPHERTEXT_BYTES
    }

    fn shared_secret_len(&self) -> usize {
        32
    }

    fn generate(&mut self, _: &mut dyn Random) {
        if let Self::Generates(seed) = self {
            let key = kem::DecapsulationKey::from_seed(seed);
            let public = key.encapsulation_key();
            *self = Self::Decapsulates(Box::new((key, public)));
        }
    }

    fn pubkey(&self) -> &[u8] {
        match self {
            Self::Decapsulates(key) => &key.1,
            Self::Generates(_) | Self::Encapsulates(_) => &[],
        }
    }

    fn encapsulate(
        &self,
        pubkey: &[u8],
        shared_secret_out: &mut [u8],
        ciphertext_out: &mut [u8],
    ) -> Result<(usize, usize), Error> {
        let Self::Encapsulates(seed) = self else { return Err(Error::Kem) };
        let pubkey = pubkey.first_chunk().ok_or(Error::Kem)?;
        let (ciphertext, secret) = kem::encapsulate(pubkey, seed).ok_or(Error::Kem)?;
        ciphertext_out.get_mut(..ciphertext.len()).ok_or(Error::Kem)?.copy_from_slice(&ciphertext);
        shared_secret_out.get_mut(..32).ok_or(Error::Kem)?.copy_from_slice(&*secret);
        Ok((32, ciphertext.len()))
    }

    fn decapsulate(&self, ciphertext: &[u8], shared_secret_out: &mut [u8]) -> Result<usize, Error> {
        let Self::Decapsulates(key) = self else { return Err(Error::Kem) };
        let secret = key.0.decapsulate(ciphertext.first_chunk().ok_or(Error::Kem)?);
        shared_secret_out.get_mut(..32).ok_or(Error::Kem)?.copy_from_slice(&*secret);
        Ok(32)
    }
}
