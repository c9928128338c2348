//! AEGIS (RFC 10032), computed by the `aegis` crate: libaegis in C, with the AES instructions of
//! x86-64 and AArch64, or constant-time software.
//!
//! Key and nonce together form the initial state, so a key needs no precomputation.

use ::aegis::aegis128l::Aegis128L;
use ::aegis::aegis128x2::Aegis128X2;
use ::aegis::aegis256::Aegis256;
use ::aegis::aegis256x2::Aegis256X2;
use zeroize::{Zeroize, ZeroizeOnDrop};

use super::{Aead, AeadError, Algorithm, TAG_BYTES};

/// A key of any variant. Wiped when dropped.
pub(super) struct Key {
    algorithm: Algorithm,
    /// The key. AEGIS-128 uses its first 16 bytes.
    key: [u8; 32],
}

impl Drop for Key {
    fn drop(&mut self) {
        self.key.zeroize();
    }
}

impl ZeroizeOnDrop for Key {}

/// Calls a method of the state type that belongs to the algorithm.
macro_rules! state {
    ($self:ident, $nonce:ident, $method:ident($($argument:expr),*), $result:expr) => {{
        let wrong = $self.algorithm.nonce_length($nonce.len());
        let short = $self.key.first_chunk().ok_or(wrong)?;
        match $self.algorithm {
            Algorithm::Aegis128L => {
                let nonce = $nonce.try_into().map_err(|_| wrong)?;
                $result(Aegis128L::<TAG_BYTES>::new(short, nonce).$method($($argument),*))
            }
            Algorithm::Aegis128X2 => {
                let nonce = $nonce.try_into().map_err(|_| wrong)?;
                $result(Aegis128X2::<TAG_BYTES>::new(short, nonce).$method($($argument),*))
            }
            Algorithm::Aegis256 => {
                let nonce = $nonce.try_into().map_err(|_| wrong)?;
                $result(Aegis256::<TAG_BYTES>::new(&$self.key, nonce).$method($($argument),*))
            }
            _ => {
                let nonce = $nonce.try_into().map_err(|_| wrong)?;
                $result(Aegis256X2::<TAG_BYTES>::new(&$self.key, nonce).$method($($argument),*))
            }
        }
    }};
}

impl Key {
    /// Returns `None` if the algorithm is not a variant of AEGIS, or the key has the wrong length.
    pub(super) fn new(algorithm: Algorithm, key: &[u8]) -> Option<Self> {
        use Algorithm::*;
        let fits = matches!(algorithm, Aegis128L | Aegis128X2 | Aegis256 | Aegis256X2)
            && key.len() == algorithm.key_bytes();
        let mut own = Self { algorithm, key: [0; 32] };
        own.key.get_mut(..key.len()).filter(|_| fits)?.copy_from_slice(key);
        Some(own)
    }
}

impl Aead for Key {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    fn seal_detached(
        &self,
        nonce: &[u8],
        aad: &[u8],
        in_out: &mut [u8],
        tag: &mut [u8],
    ) -> Result<(), AeadError> {
        let tag = self.algorithm.check_seal(nonce, in_out.len(), tag)?;
        *tag = state!(self, nonce, encrypt_in_place(in_out, aad), |tag| tag);
        Ok(())
    }

    fn open_detached(
        &self,
        nonce: &[u8],
        aad: &[u8],
        in_out: &mut [u8],
        tag: &[u8],
    ) -> Result<(), AeadError> {
        let tag = self.algorithm.check_open(nonce, in_out.len(), tag)?;
        let opened = state!(self, nonce, decrypt_in_place(in_out, tag, aad), |opened: Result<
            (),
            ::aegis::Error,
        >| opened
            .is_ok());
        if opened {
            return Ok(());
        }
        in_out.fill(0);
        Err(AeadError::Unauthentic)
    }
}
