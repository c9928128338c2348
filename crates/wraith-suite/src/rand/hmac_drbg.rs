//! HMAC_DRBG (NIST SP 800-90A, §10.1.2) over any hash function.

use super::{
    Drbg, DrbgError, INPUT_BYTES_MAX, REQUEST_BYTES_MAX, REQUESTS_MAX, check, impl_rng, wipe,
};
use crate::hash::{DIGEST_MAX, Function};
use crate::mac::Hmac;

/// HMAC_DRBG generator. Wiped when dropped.
pub struct HmacDrbg<F: Function> {
    /// HMAC under K, before any input.
    key: Hmac<F>,
    /// V, in the first bytes.
    value: [u8; DIGEST_MAX],
    requests: u64,
}

impl<F: Function> HmacDrbg<F> {
    /// Creates a generator from `entropy` (at least half as many bytes as a digest), a `nonce`, and
    /// a `personalization`, which may be empty.
    ///
    /// # Errors
    /// [`DrbgError::InputLength`] if a length is invalid.
    pub fn new(entropy: &[u8], nonce: &[u8], personalization: &[u8]) -> Result<Self, DrbgError> {
        check(entropy, F::DIGEST_BYTES / 2, INPUT_BYTES_MAX)?;
        check(nonce, 0, INPUT_BYTES_MAX)?;
        check(personalization, 0, INPUT_BYTES_MAX)?;
        let key = Hmac::new(&[0; DIGEST_MAX][..F::DIGEST_BYTES]);
        let mut drbg = Self { key, value: [1; DIGEST_MAX], requests: 0 };
        drbg.take_in(&[entropy, nonce, personalization]);
        Ok(drbg)
    }

    /// HMAC_DRBG_Update (§10.1.2.2).
    fn take_in(&mut self, inputs: &[&[u8]]) {
        let empty = inputs.iter().all(|input| input.is_empty());
        for round in [0, 1] {
            let mut mac = self.key.clone();
            mac.update(&self.value[..F::DIGEST_BYTES]);
            mac.update(&[round]);
            inputs.iter().for_each(|input| mac.update(input));
            let mut key = [0; DIGEST_MAX];
            mac.finish(&mut key[..F::DIGEST_BYTES]);
            self.key = Hmac::new(&key[..F::DIGEST_BYTES]);
            wipe(&mut key);
            self.step();
            if empty {
                return;
            }
        }
    }

    /// Computes the next V.
    fn step(&mut self) {
        let value = &mut self.value[..F::DIGEST_BYTES];
        let mut mac = self.key.clone();
        mac.update(value);
        mac.finish(value);
    }
}

impl<F: Function> Drbg for HmacDrbg<F> {
    fn reseed(&mut self, entropy: &[u8], additional: &[u8]) -> Result<(), DrbgError> {
        check(entropy, F::DIGEST_BYTES / 2, INPUT_BYTES_MAX)?;
        check(additional, 0, INPUT_BYTES_MAX)?;
        self.take_in(&[entropy, additional]);
        self.requests = 0;
        Ok(())
    }

    fn generate(&mut self, out: &mut [u8], additional: &[u8]) -> Result<(), DrbgError> {
        check(additional, 0, INPUT_BYTES_MAX)?;
        if out.len() > REQUEST_BYTES_MAX {
            return Err(DrbgError::RequestLength);
        }
        if self.requests >= REQUESTS_MAX {
            return Err(DrbgError::Spent);
        }
        if !additional.is_empty() {
            self.take_in(&[additional]);
        }
        for part in out.chunks_mut(F::DIGEST_BYTES) {
            self.step();
            part.copy_from_slice(&self.value[..part.len()]);
        }
        self.take_in(&[additional]);
        self.requests += 1;
        Ok(())
    }
}

impl<F: Function> Drop for HmacDrbg<F> {
    fn drop(&mut self) {
        wipe(&mut self.value);
    }
}

wraith_crypto::redacted_debug!([F: Function] |it: HmacDrbg<F>| hash: F::ALGORITHM);

impl_rng!(F: Function, HmacDrbg<F>);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::Sha256;

    #[test]
    fn a_spent_generator_has_to_be_reseeded() {
        let mut drbg = HmacDrbg::<Sha256>::new(&[7; 32], &[8; 16], b"").unwrap();
        drbg.requests = REQUESTS_MAX - 1;
        assert_eq!(drbg.generate(&mut [0; 4], b""), Ok(()));
        assert_eq!(drbg.generate(&mut [0; 4], b""), Err(DrbgError::Spent));
        drbg.reseed(&[9; 32], b"").unwrap();
        assert_eq!(drbg.generate(&mut [0; 4], b""), Ok(()));
    }
}
