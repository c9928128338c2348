//! What the suite adds to AWS-LC's curves: object identifiers, digests, and implementations.

use der::asn1::ObjectIdentifier;
use wraith_aws_lc::hash::Digest;
#[cfg(all(target_arch = "x86_64", feature = "kernels"))]
use wraith_kernels::p256::P256;

use crate::Backend;
use crate::encoding::oid;

pub use wraith_aws_lc::ec::Curve;

/// Properties of a curve beside AWS-LC's.
pub(crate) trait CurveExt: Copy {
    /// Returns the object identifier.
    fn oid(self) -> &'static ObjectIdentifier;

    /// Returns the SHA-2 hash of matching strength.
    fn digest(self) -> Digest;

    /// Returns the implementation of key generation on this processor.
    fn key_pair_backend(self) -> Backend;
}

impl CurveExt for Curve {
    fn oid(self) -> &'static ObjectIdentifier {
        match self {
            Self::P224 => &oid::P224,
            Self::P256 => &oid::P256,
            Self::P384 => &oid::P384,
            Self::P521 => &oid::P521,
            Self::BrainpoolP256r1 => &oid::BRAINPOOL_P256R1,
            Self::BrainpoolP384r1 => &oid::BRAINPOOL_P384R1,
            _ => &oid::BRAINPOOL_P512R1,
        }
    }

    fn digest(self) -> Digest {
        match self {
            Self::P224 => Digest::Sha224,
            Self::P256 | Self::BrainpoolP256r1 => Digest::Sha256,
            Self::P384 | Self::BrainpoolP384r1 => Digest::Sha384,
            _ => Digest::Sha512,
        }
    }

    fn key_pair_backend(self) -> Backend {
        #[cfg(all(target_arch = "x86_64", feature = "kernels"))]
        if self == Self::P256 && P256::new().is_some() {
            return Backend::Own(P256::FEATURES.into());
        }
        Backend::AwsLc
    }
}
