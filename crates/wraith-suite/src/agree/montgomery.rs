//! Keys of X25519 and X448 behind the trait of all key agreements.

use zeroize::Zeroizing;

use super::{AgreeError, Algorithm, x448, x448_public, x25519, x25519_public};

macro_rules! key {
    ($(#[$meta:meta])* $key:ident, $algorithm:ident, $bytes:literal, $public:ident, $agree:ident) => {
        $(#[$meta])*
        pub struct $key(Zeroizing<[u8; $bytes]>);

        impl $key {
            /// Generates a key.
            #[must_use]
            pub fn generate() -> Self {
                Self(crate::rand::secret())
            }

            /// Creates a key from `secret`. Every value is valid.
            #[must_use]
            pub fn from_bytes(secret: &[u8; $bytes]) -> Self {
                Self(Zeroizing::new(*secret))
            }

            pub(super) fn from_raw(secret: &[u8]) -> Result<Self, AgreeError> {
                let algorithm = Algorithm::$algorithm;
                let secret = secret.try_into();
                let secret = secret.map_err(|_| AgreeError::InvalidPrivateKey { algorithm })?;
                Ok(Self::from_bytes(secret))
            }
        }

        wraith_crypto::redacted_debug!($key);

        impl super::PrivateKey for $key {
            fn algorithm(&self) -> Algorithm {
                Algorithm::$algorithm
            }

            fn public_key(&self) -> Vec<u8> {
                $public(&self.0).to_vec()
            }

            fn agree(&self, peer: &[u8]) -> Result<Zeroizing<Vec<u8>>, AgreeError> {
                let algorithm = Algorithm::$algorithm;
                let secret = peer.try_into().ok().and_then(|peer| $agree(&self.0, peer));
                let secret = secret.ok_or(AgreeError::InvalidPublicKey { algorithm })?;
                Ok(Zeroizing::new(secret.to_vec()))
            }

            fn to_raw(&self) -> Zeroizing<Vec<u8>> {
                Zeroizing::new(self.0.to_vec())
            }
        }
    };
}

key! {
    /// A private key of X25519.
    X25519Key, X25519, 32, x25519_public, x25519
}

key! {
    /// A private key of X448.
    X448Key, X448, 56, x448_public, x448
}
