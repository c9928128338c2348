//! SHAKE128 and SHAKE256 (FIPS 202, §6.2): extendable-output functions, with digests of any length.

use wraith_aws_lc::keccak::Keccak;

use super::types::hash_traits;
use super::{Algorithm, Hash};

macro_rules! xof_type {
    ($(#[$meta:meta])* $name:ident, $reader:ident, $new:ident) => {
        $(#[$meta])*
        #[derive(Clone)]
        pub struct $name(Keccak);

        impl $name {
            /// Creates the state of an empty message.
            #[must_use]
            pub fn new() -> Self {
                Self(Keccak::$new())
            }

            /// Hashes the next piece of the message.
            pub fn update(&mut self, data: &[u8]) {
                self.0.update(data);
            }

            /// Returns a reader that gives the digest piece by piece.
            #[must_use]
            pub fn reader(self) -> $reader {
                $reader(self.0)
            }

            /// Fills `out` with the digest.
            pub fn finish(self, out: &mut [u8]) {
                self.reader().read(out);
            }

            /// Returns the first `N` bytes of the digest of `data`.
            #[must_use]
            pub fn digest<const N: usize>(data: &[u8]) -> [u8; N] {
                let (mut hash, mut digest) = (Self::new(), [0; N]);
                hash.update(data);
                hash.finish(&mut digest);
                digest
            }

            pub(super) fn write_to(self, out: &mut [u8]) {
                self.finish(out);
            }
        }

        hash_traits!($name);

        /// A digest of unlimited length.
        #[derive(Clone)]
        pub struct $reader(Keccak);

        impl $reader {
            /// Fills `out` with the next bytes of the digest.
            pub fn read(&mut self, out: &mut [u8]) {
                self.0.squeeze(out);
            }
        }

        wraith_crypto::redacted_debug!($reader);
    };
}

xof_type!(/** Incremental state of SHAKE128: 128 bits of security with a digest of 32 bytes or more. */ Shake128, Shake128Reader, shake_128);
xof_type!(/** Incremental state of SHAKE256: 256 bits of security with a digest of 64 bytes or more. */ Shake256, Shake256Reader, shake_256);
