//! Modes of SM4 (GB/T 17964-2021).
//!
//! XTS has two variants: the Chinese standard numbers the bits of a tweak from the other end than
//! IEEE 1619, so the variants differ from the second block on. openHiTLS has only the Chinese
//! variant. OpenSSL has both and uses the Chinese variant by default, as [`Sm4Xts::new`] does.

use std::fmt;

use zeroize::ZeroizeOnDrop;

use super::modes::Text;
use super::xts::Xts;
use super::{Algorithm, Cipher, CipherError};
use crate::Backend;
use wraith_kernels::sm4::{Implementation, Sm4};

/// Returns the implementation of all modes.
pub(crate) fn backend() -> Backend {
    Backend::Own(Implementation::best().features().into())
}

/// Defines the public type of one mode.
macro_rules! mode {
    ($(#[$meta:meta])* $name:ident, $state:ty) => {
        $(#[$meta])*
        #[derive(Clone)]
        pub struct $name($state);

        impl ZeroizeOnDrop for $name {}

        impl Cipher for $name {
            fn algorithm(&self) -> Algorithm {
                Algorithm::$name
            }

            fn encrypt(&mut self, in_out: &mut [u8]) -> Result<(), CipherError> {
                self.0.encrypt(in_out)
            }

            fn decrypt(&mut self, in_out: &mut [u8]) -> Result<(), CipherError> {
                self.0.decrypt(in_out)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    };
}

mode!(/** SM4 in ECB mode. Wiped when dropped. */ Sm4Ecb, Text<Sm4>);
mode!(/** SM4 in CBC mode. Wiped when dropped. */ Sm4Cbc, Text<Sm4>);
mode!(/** SM4 in CTR mode, with a 128-bit counter. Wiped when dropped. */ Sm4Ctr, Text<Sm4>);
mode!(/** SM4 in OFB mode. Wiped when dropped. */ Sm4Ofb, Text<Sm4>);
mode!(/** SM4 in CFB mode, with feedback of whole blocks. Wiped when dropped. */ Sm4Cfb, Text<Sm4>);
mode!(/** SM4 in XTS mode. Wiped when dropped. */ Sm4Xts, Xts<Sm4>);

impl Sm4Ecb {
    /// Expands a key.
    #[must_use]
    pub fn new(key: &[u8; 16]) -> Self {
        Self(Text::with(Algorithm::Sm4Ecb, Sm4::new(key), [0; 16]))
    }
}

macro_rules! constructor {
    ($($name:ident)+) => { $(
        impl $name {
            /// Starts a text, with the first counter block (CTR) or the IV.
            #[must_use]
            pub fn new(key: &[u8; 16], first: &[u8; 16]) -> Self {
                Self(Text::with(Algorithm::$name, Sm4::new(key), *first))
            }
        }
    )+ };
}

constructor!(Sm4Cbc Sm4Ctr Sm4Ofb Sm4Cfb);

impl Sm4Xts {
    /// Starts the variant of GB/T 17964. `key` is the text key followed by the tweak key; `unit` is
    /// the number of the first data unit, little-endian.
    ///
    /// # Errors
    /// [`CipherError::EqualHalves`].
    pub fn new(key: &[u8; 32], unit: &[u8; 16]) -> Result<Self, CipherError> {
        Ok(Self(Xts::new(Algorithm::Sm4Xts, key, *unit)?))
    }

    /// Starts the variant of IEEE 1619.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn new_ieee(key: &[u8; 32], unit: &[u8; 16]) -> Result<Self, CipherError> {
        let mut xts = Self::new(key, unit)?;
        xts.0.use_ieee();
        Ok(xts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mode_begins_by_name_with_keys_and_ivs_of_its_lengths_only() {
        let modes = Algorithm::ALL.iter().filter(|each| each.name().starts_with("SM4"));
        for &algorithm in modes {
            let (key_bytes, iv_bytes) = (algorithm.key_bytes(), algorithm.iv_bytes());
            let key: Vec<u8> = (0..key_bytes as u8).collect();
            let iv = vec![1; iv_bytes];
            assert_eq!(algorithm.start(&key, &iv).unwrap().algorithm(), algorithm);
            let found = key_bytes - 1;
            let short = algorithm.start(&key[1..], &iv).err();
            assert_eq!(short, Some(CipherError::KeyLength { algorithm, found }));
            let found = iv_bytes + 1;
            let long = algorithm.start(&key, &vec![1; found]).err();
            assert_eq!(long, Some(CipherError::IvLength { algorithm, found }));
        }
    }
}
