//! Ratchet: a new key agreement on an established connection (SPEC §4.6). It uses X25519 and
//! ML-KEM-768, as the handshake does, with one message in each direction.
//!
//! The messages are sent inside packets, so they are authentic and confidential. An attacker that
//! has stolen the keys of these packets can read the messages, but still cannot compute the shared
//! secret. [`Sealer::ratchet`](crate::Sealer::ratchet) and
//! [`Opener::ratchet`](crate::Opener::ratchet) mix the shared secret into the keys of the next
//! phase.

use rand_core::CryptoRng;
use thiserror::Error;
use wraith_crypto::agree::{x25519, x25519_public};
use wraith_crypto::kdf;
use wraith_crypto::ml_kem_768::{
    self as kem, CIPHERTEXT_BYTES, DecapsulationKey, ENCAPSULATION_KEY_BYTES,
};
use zeroize::{ZeroizeOnDrop, Zeroizing};

/// Length of an X25519 public key in bytes.
const SHARE_BYTES: usize = 32;
/// Length of the initiator's message in bytes: its share and its encapsulation key.
pub const RATCHET_REQUEST_BYTES: usize = SHARE_BYTES + ENCAPSULATION_KEY_BYTES;
/// Length of the responder's message in bytes: its share and the ciphertext.
pub const RATCHET_RESPONSE_BYTES: usize = SHARE_BYTES + CIPHERTEXT_BYTES;

/// Error for unusable shares: a point of low order, or an invalid encapsulation key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("invalid key shares")]
pub struct InvalidShares;

/// The initiator's half, kept until the response arrives. Wiped when dropped.
pub struct Ratchet {
    share: Zeroizing<[u8; 32]>,
    key: DecapsulationKey,
    request: [u8; RATCHET_REQUEST_BYTES],
}

impl Ratchet {
    /// Draws both keys.
    #[must_use]
    pub fn begin(rng: &mut impl CryptoRng) -> Self {
        let (mut share, mut seed) = (Zeroizing::new([0; 32]), Zeroizing::new([0; 64]));
        rng.fill_bytes(&mut *share);
        rng.fill_bytes(&mut *seed);
        let key = DecapsulationKey::from_seed(&seed);
        let mut request = [0; RATCHET_REQUEST_BYTES];
        request[..SHARE_BYTES].copy_from_slice(&x25519_public(&share));
        request[SHARE_BYTES..].copy_from_slice(&key.encapsulation_key());
        Self { share, key, request }
    }

    /// Returns the message for the responder.
    #[must_use]
    pub fn request(&self) -> &[u8; RATCHET_REQUEST_BYTES] {
        &self.request
    }

    /// Returns the shared secret. A ciphertext made for another key gives a secret that nobody else
    /// has.
    ///
    /// Takes `self` by reference: a value moved out of a box stays in the freed memory.
    ///
    /// # Errors
    /// [`InvalidShares`] if the responder's share is of low order.
    pub fn finish(
        &self,
        response: &[u8; RATCHET_RESPONSE_BYTES],
    ) -> Result<Zeroizing<[u8; 32]>, InvalidShares> {
        let (share, ciphertext) = response.split_first_chunk().expect("it is longer");
        let dh = x25519(&self.share, share).ok_or(InvalidShares)?;
        let kem = self.key.decapsulate(ciphertext.first_chunk().expect("the rest is one"));
        Ok(agreed(&dh, &kem, &self.request, response))
    }
}

impl ZeroizeOnDrop for Ratchet {}

wraith_crypto::redacted_debug!(Ratchet);

/// Performs the responder's half. Returns the response and the shared secret.
///
/// # Errors
/// [`InvalidShares`] if the initiator's share is of low order or its encapsulation key is invalid.
pub fn respond_to_ratchet(
    request: &[u8; RATCHET_REQUEST_BYTES],
    rng: &mut impl CryptoRng,
) -> Result<([u8; RATCHET_RESPONSE_BYTES], Zeroizing<[u8; 32]>), InvalidShares> {
    let (mut secret, mut seed) = (Zeroizing::new([0; 32]), Zeroizing::new([0; 32]));
    rng.fill_bytes(&mut *secret);
    rng.fill_bytes(&mut *seed);
    let (share, key) = request.split_first_chunk().expect("it is longer");
    let dh = x25519(&secret, share).ok_or(InvalidShares)?;
    let key = key.first_chunk().expect("the rest is one");
    let (ciphertext, kem) = kem::encapsulate(key, &seed).ok_or(InvalidShares)?;
    let mut response = [0; RATCHET_RESPONSE_BYTES];
    response[..SHARE_BYTES].copy_from_slice(&x25519_public(&secret));
    response[SHARE_BYTES..].copy_from_slice(&ciphertext);
    let agreed = agreed(&dh, &kem, request, &response);
    Ok((response, agreed))
}

fn agreed(
    dh: &[u8; 32],
    kem: &[u8; 32],
    request: &[u8; RATCHET_REQUEST_BYTES],
    response: &[u8; RATCHET_RESPONSE_BYTES],
) -> Zeroizing<[u8; 32]> {
    Zeroizing::new(kdf::derive_parts("wraith/2 ratchet", &[dh, kem, request, response]))
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;

    use super::*;

    fn rng(seed: u8) -> ChaCha20Rng {
        ChaCha20Rng::from_seed([seed; 32])
    }

    #[test]
    fn both_sides_agree_and_on_something_else_each_time() {
        let (mut alice, mut bob) = (rng(1), rng(2));
        let mut all = Vec::new();
        for _ in 0..4 {
            let ratchet = Ratchet::begin(&mut alice);
            let (response, bobs) = respond_to_ratchet(ratchet.request(), &mut bob).unwrap();
            assert_eq!(ratchet.finish(&response).unwrap(), bobs);
            assert!(!all.contains(&*bobs));
            all.push(*bobs);
        }
    }

    #[test]
    fn each_share_matters() {
        let request = *Ratchet::begin(&mut rng(1)).request();
        let (response, agreed) = respond_to_ratchet(&request, &mut rng(2)).unwrap();
        // One bit of either share, of the ciphertext, and of the encapsulation key. (X25519 ignores
        // the top bit of a share.)
        for at in [0, SHARE_BYTES, RATCHET_RESPONSE_BYTES - 1] {
            let mut changed = response;
            changed[at] ^= 1;
            assert_ne!(Ratchet::begin(&mut rng(1)).finish(&changed).ok(), Some(agreed.clone()));
        }
        for at in [0, RATCHET_REQUEST_BYTES - 1] {
            let mut changed = request;
            changed[at] ^= 1;
            let (_, other) = respond_to_ratchet(&changed, &mut rng(2)).unwrap();
            assert_ne!(other, agreed);
        }
    }

    #[test]
    fn shares_of_low_order_and_keys_that_are_none_are_refused() {
        let request = *Ratchet::begin(&mut rng(1)).request();
        let (response, _) = respond_to_ratchet(&request, &mut rng(2)).unwrap();
        for low in [[0; 32], {
            let mut one = [0; 32];
            one[0] = 1;
            one
        }] {
            let mut changed = request;
            changed[..SHARE_BYTES].copy_from_slice(&low);
            assert_eq!(respond_to_ratchet(&changed, &mut rng(2)).unwrap_err(), InvalidShares);
            let mut changed = response;
            changed[..SHARE_BYTES].copy_from_slice(&low);
            assert_eq!(Ratchet::begin(&mut rng(1)).finish(&changed), Err(InvalidShares));
        }
        // Coefficients of 4095, above the modulus 3329.
        let mut changed = request;
        changed[SHARE_BYTES..].fill(0xff);
        assert_eq!(respond_to_ratchet(&changed, &mut rng(2)).unwrap_err(), InvalidShares);
    }
}
