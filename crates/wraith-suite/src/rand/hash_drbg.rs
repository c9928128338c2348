//! Hash_DRBG (NIST SP 800-90A, §10.1.1) over any hash function.

use super::{
    Drbg, DrbgError, INPUT_BYTES_MAX, REQUEST_BYTES_MAX, REQUESTS_MAX, check, impl_rng, wipe,
};
use crate::hash::{DIGEST_MAX, Function};

/// Maximum length of V and of C in bytes (table 2: 888 bits; 440 bits for digests of up to 32
/// bytes).
const STATE_MAX: usize = 111;

/// Hash_DRBG generator. Wiped when dropped.
pub struct HashDrbg<F: Function> {
    /// V and C, big-endian numbers in the first bytes.
    value: [u8; STATE_MAX],
    constant: [u8; STATE_MAX],
    /// One more than the number of requests since the seed.
    counter: u64,
    function: std::marker::PhantomData<F>,
}

impl<F: Function> HashDrbg<F> {
    const STATE_BYTES: usize = if F::DIGEST_BYTES <= 32 { 55 } else { STATE_MAX };

    /// Creates a generator from `entropy` (at least half as many bytes as a digest), a `nonce`, and
    /// a `personalization`, which may be empty.
    ///
    /// # Errors
    /// [`DrbgError::InputLength`] if a length is invalid.
    pub fn new(entropy: &[u8], nonce: &[u8], personalization: &[u8]) -> Result<Self, DrbgError> {
        check(entropy, F::DIGEST_BYTES / 2, INPUT_BYTES_MAX)?;
        check(nonce, 0, INPUT_BYTES_MAX)?;
        check(personalization, 0, INPUT_BYTES_MAX)?;
        let mut drbg = Self {
            value: [0; STATE_MAX],
            constant: [0; STATE_MAX],
            counter: 1,
            function: std::marker::PhantomData,
        };
        drbg.seed(&[entropy, nonce, personalization]);
        Ok(drbg)
    }

    /// Derives V and C from `inputs` (§10.1.1.2 and §10.1.1.3).
    fn seed(&mut self, inputs: &[&[u8]]) {
        let mut value = [0; STATE_MAX];
        derive::<F>(inputs, &mut value[..Self::STATE_BYTES]);
        self.value = value;
        wipe(&mut value);
        let value = &self.value[..Self::STATE_BYTES];
        derive::<F>(&[&[0], value], &mut self.constant[..Self::STATE_BYTES]);
        self.counter = 1;
    }

    /// V ← V + the digest of `prefix`, V and `input`.
    fn add_digest(&mut self, prefix: u8, input: &[u8]) {
        let value = &mut self.value[..Self::STATE_BYTES];
        let mut digest = [0; DIGEST_MAX];
        digest_of::<F>(&[&[prefix], value, input], &mut digest);
        add(value, &digest[..F::DIGEST_BYTES]);
        wipe(&mut digest);
    }
}

fn digest_of<F: Function>(inputs: &[&[u8]], digest: &mut [u8]) {
    let mut hash = F::default();
    inputs.iter().for_each(|input| hash.update(input));
    hash.write(digest);
}

/// Hash_df (§10.3.1).
fn derive<F: Function>(inputs: &[&[u8]], out: &mut [u8]) {
    let bits = (out.len() as u32 * 8).to_be_bytes();
    for (counter, part) in (1..).zip(out.chunks_mut(F::DIGEST_BYTES)) {
        let mut hash = F::default();
        hash.update(&[counter]);
        hash.update(&bits);
        inputs.iter().for_each(|input| hash.update(input));
        let mut digest = [0; DIGEST_MAX];
        hash.write(&mut digest);
        part.copy_from_slice(&digest[..part.len()]);
        wipe(&mut digest);
    }
}

/// Adds `addend` to `number`, both big-endian, modulo the size of `number`.
fn add(number: &mut [u8], addend: &[u8]) {
    let mut carry = false;
    let mut addend = addend.rchunks(8).map(word);
    for part in number.rchunks_mut(8) {
        let (sum, over) = word(part).overflowing_add(addend.next().unwrap_or(0));
        let (sum, over_again) = sum.overflowing_add(carry.into());
        carry = over | over_again;
        part.copy_from_slice(&sum.to_be_bytes()[8 - part.len()..]);
    }
}

/// Reads at most eight bytes as a big-endian number.
fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[8 - bytes.len()..].copy_from_slice(bytes);
    u64::from_be_bytes(word)
}

impl<F: Function> Drbg for HashDrbg<F> {
    fn reseed(&mut self, entropy: &[u8], additional: &[u8]) -> Result<(), DrbgError> {
        check(entropy, F::DIGEST_BYTES / 2, INPUT_BYTES_MAX)?;
        check(additional, 0, INPUT_BYTES_MAX)?;
        let mut value = self.value;
        self.seed(&[&[1], &value[..Self::STATE_BYTES], entropy, additional]);
        wipe(&mut value);
        Ok(())
    }

    fn generate(&mut self, out: &mut [u8], additional: &[u8]) -> Result<(), DrbgError> {
        check(additional, 0, INPUT_BYTES_MAX)?;
        if out.len() > REQUEST_BYTES_MAX {
            return Err(DrbgError::RequestLength);
        }
        if self.counter > REQUESTS_MAX {
            return Err(DrbgError::Spent);
        }
        if !additional.is_empty() {
            self.add_digest(2, additional);
        }
        let mut data = self.value;
        let mut digest = [0; DIGEST_MAX];
        for part in out.chunks_mut(F::DIGEST_BYTES) {
            digest_of::<F>(&[&data[..Self::STATE_BYTES]], &mut digest);
            part.copy_from_slice(&digest[..part.len()]);
            add(&mut data[..Self::STATE_BYTES], &[1]);
        }
        wipe(&mut data);
        wipe(&mut digest);
        self.add_digest(3, &[]);
        let value = &mut self.value[..Self::STATE_BYTES];
        add(value, &self.constant[..Self::STATE_BYTES]);
        add(value, &self.counter.to_be_bytes());
        self.counter += 1;
        Ok(())
    }
}

impl<F: Function> Drop for HashDrbg<F> {
    fn drop(&mut self) {
        wipe(&mut self.value);
        wipe(&mut self.constant);
    }
}

wraith_crypto::redacted_debug!([F: Function] |it: HashDrbg<F>| hash: F::ALGORITHM);

impl_rng!(F: Function, HashDrbg<F>);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::Sha512;

    #[test]
    fn a_spent_generator_has_to_be_reseeded() {
        let mut drbg = HashDrbg::<Sha512>::new(&[7; 32], &[8; 16], b"").unwrap();
        drbg.counter = REQUESTS_MAX;
        assert_eq!(drbg.generate(&mut [0; 4], b""), Ok(()));
        assert_eq!(drbg.generate(&mut [0; 4], b""), Err(DrbgError::Spent));
        drbg.reseed(&[9; 32], b"").unwrap();
        assert_eq!(drbg.generate(&mut [0; 4], b""), Ok(()));
    }
}
