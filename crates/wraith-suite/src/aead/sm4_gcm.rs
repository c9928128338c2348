//! SM4-GCM (RFC 8998) behind the trait.

use super::gcm::verified;
use super::{Aead, AeadError, Algorithm, Sm4Gcm};

impl Aead for Sm4Gcm {
    fn algorithm(&self) -> Algorithm {
        Algorithm::Sm4Gcm
    }

    fn seal_detached(
        &self,
        nonce: &[u8],
        aad: &[u8],
        in_out: &mut [u8],
        tag: &mut [u8],
    ) -> Result<(), AeadError> {
        let tag = Algorithm::Sm4Gcm.check_seal(nonce, in_out.len(), tag)?;
        *tag = Self::seal(self, nonce.try_into().expect("the length was checked"), aad, in_out);
        Ok(())
    }

    fn open_detached(
        &self,
        nonce: &[u8],
        aad: &[u8],
        in_out: &mut [u8],
        tag: &[u8],
    ) -> Result<(), AeadError> {
        let tag = Algorithm::Sm4Gcm.check_open(nonce, in_out.len(), tag)?;
        let nonce = nonce.try_into().expect("the length was checked");
        verified(Self::open(self, nonce, aad, in_out), tag, in_out)
    }
}
