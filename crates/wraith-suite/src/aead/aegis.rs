//! AEGIS (RFC 10032), computed by the `aegis` crate: libaegis in C, with the AES instructions of
//! x86-64 and AArch64, or constant-time software.
//!
//! Key and nonce together form the initial state, so a key needs no precomputation.

use ::aegis::aegis128l::Aegis128L;
use ::aegis::aegis128x2::Aegis128X2;
use ::aegis::aegis256::Aegis256;
use ::aegis::aegis256x2::Aegis256X2;
use zeroize::ZeroizeOnDrop;

use super::algorithm::Lengths;
use super::key::{Tag, UncheckedAead};
use super::{Algorithm, TAG_BYTES};

/// A key of any variant. Wiped when dropped.
#[derive(ZeroizeOnDrop)]
pub(super) struct Key {
    #[zeroize(skip)]
    algorithm: Algorithm,
    /// The key. AEGIS-128 uses its first 16 bytes.
    key: [u8; 32],
}

/// Calls a method of the state type that belongs to the algorithm. Returns `None` from the caller
/// if the nonce has the wrong length.
macro_rules! state {
    ($self:ident, $nonce:ident, $method:ident($($argument:expr),*)) => {{
        let (short, long) = ($self.key.first_chunk()?, &$self.key);
        macro_rules! call {
            ($variant:ident, $key:ident) => {
                $variant::<TAG_BYTES>::new($key, $nonce.try_into().ok()?).$method($($argument),*)
            };
        }
        match $self.algorithm {
            Algorithm::Aegis128L => call!(Aegis128L, short),
            Algorithm::Aegis128X2 => call!(Aegis128X2, short),
            Algorithm::Aegis256 => call!(Aegis256, long),
            _ => call!(Aegis256X2, long),
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

impl UncheckedAead for Key {
    fn lengths(&self) -> Lengths {
        self.algorithm.lengths()
    }

    fn encrypt(&self, nonce: &[u8], aad: &[u8], text: &mut [u8]) -> Option<Tag> {
        Some(state!(self, nonce, encrypt_in_place(text, aad)))
    }

    fn decrypt(&self, nonce: &[u8], aad: &[u8], text: &mut [u8], tag: &[u8]) -> Option<()> {
        state!(self, nonce, decrypt_in_place(text, tag.try_into().ok()?, aad)).ok()
    }
}
