//! The curves: sizes, object identifiers, and implementations.
#![allow(unsafe_code)]

use std::ptr;

use aws::point_conversion_form_t::POINT_CONVERSION_UNCOMPRESSED;
use aws_lc_sys as aws;
use zeroize::Zeroizing;

use crate::Backend;
use crate::aws::{Digest, Owned, succeeded};
use crate::encoding::der::Writer;
use crate::encoding::oid;
#[cfg(target_arch = "x86_64")]
use crate::kernels::p256::P256;
use crate::kernels::weierstrass;

/// An elliptic curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Curve {
    /// NIST's secp224r1.
    P224,
    /// NIST's secp256r1.
    P256,
    /// NIST's secp384r1.
    P384,
    /// NIST's secp521r1.
    P521,
    /// brainpoolP256r1 (RFC 5639).
    BrainpoolP256r1,
    /// brainpoolP384r1 (RFC 5639).
    BrainpoolP384r1,
    /// brainpoolP512r1 (RFC 5639).
    BrainpoolP512r1,
}

impl Curve {
    /// Returns the size of a coordinate in bytes. A scalar has the same size.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::P224 => 28,
            Self::P256 | Self::BrainpoolP256r1 => 32,
            Self::P384 | Self::BrainpoolP384r1 => 48,
            Self::P521 => 66,
            Self::BrainpoolP512r1 => 64,
        }
    }

    pub(super) const fn oid(self) -> &'static [u8] {
        match self {
            Self::P224 => oid::P224,
            Self::P256 => oid::P256,
            Self::P384 => oid::P384,
            Self::P521 => oid::P521,
            Self::BrainpoolP256r1 => oid::BRAINPOOL_P256R1,
            Self::BrainpoolP384r1 => oid::BRAINPOOL_P384R1,
            Self::BrainpoolP512r1 => oid::BRAINPOOL_P512R1,
        }
    }

    /// Returns the SHA-2 hash of matching strength.
    pub(crate) const fn digest(self) -> Digest {
        match self {
            Self::P224 => Digest::Sha224,
            Self::P256 | Self::BrainpoolP256r1 => Digest::Sha256,
            Self::P384 | Self::BrainpoolP384r1 => Digest::Sha384,
            Self::P521 | Self::BrainpoolP512r1 => Digest::Sha512,
        }
    }

    /// Returns AWS-LC's group, which is static.
    pub(super) fn group(self) -> *const aws::EC_GROUP {
        // SAFETY: the calls have no preconditions.
        unsafe {
            match self {
                Self::P224 => aws::EC_group_p224(),
                Self::P256 => aws::EC_group_p256(),
                Self::P384 => aws::EC_group_p384(),
                Self::P521 => aws::EC_group_p521(),
                Self::BrainpoolP256r1 => aws::EC_group_brainpoolP256r1(),
                Self::BrainpoolP384r1 => aws::EC_group_brainpoolP384r1(),
                Self::BrainpoolP512r1 => aws::EC_group_brainpoolP512r1(),
            }
        }
    }

    /// Returns our implementation of the curve, if there is one.
    pub(crate) fn own(self) -> Option<&'static dyn weierstrass::Curve> {
        match self {
            Self::P224 => Some(weierstrass::p224()),
            Self::BrainpoolP256r1 => Some(weierstrass::brainpool_p256r1()),
            Self::BrainpoolP384r1 => Some(weierstrass::brainpool_p384r1()),
            Self::BrainpoolP512r1 => Some(weierstrass::brainpool_p512r1()),
            _ => None,
        }
    }

    /// Returns the implementation of the curve.
    pub(crate) fn backend(self) -> Backend {
        match self.own() {
            Some(_) => Backend::Own("portable".into()),
            None => Backend::AwsLc,
        }
    }

    /// Returns the implementation of key generation on this processor.
    pub(crate) fn key_pair_backend(self) -> Backend {
        #[cfg(target_arch = "x86_64")]
        if self == Self::P256 && P256::new().is_some() {
            return Backend::Own(P256::FEATURES.into());
        }
        self.backend()
    }

    /// Returns the parameters that identify the curve in an encoded key.
    pub(super) fn identifier(self) -> Zeroizing<Vec<u8>> {
        let mut parameters = Writer::new();
        parameters.oid(self.oid());
        parameters.finish()
    }

    pub(super) fn new_key(self) -> Option<Owned<aws::EC_KEY>> {
        // SAFETY: the key is new and ours, and the group is static.
        unsafe {
            let key = Owned::new(aws::EC_KEY_new())?;
            succeeded(aws::EC_KEY_set_group(key.as_ptr(), self.group())).then_some(key)
        }
    }

    /// Parses a point. Returns `None` unless it is on the curve.
    pub(super) fn point(self, bytes: &[u8]) -> Option<Owned<aws::EC_POINT>> {
        if bytes.len() != 1 + 2 * self.bytes() || bytes[0] != 4 {
            return None;
        }
        // SAFETY: the point is new and ours, and `bytes` has the length passed.
        unsafe {
            let point = Owned::new(aws::EC_POINT_new(self.group()))?;
            let (data, len) = (bytes.as_ptr(), bytes.len());
            let read =
                aws::EC_POINT_oct2point(self.group(), point.as_ptr(), data, len, ptr::null_mut());
            succeeded(read).then_some(point)
        }
    }

    /// Encodes `point`, which is not the point at infinity.
    ///
    /// # Safety
    /// `point` is a live point of this curve.
    pub(super) unsafe fn write_point(self, point: *const aws::EC_POINT) -> Vec<u8> {
        let mut bytes = vec![0; 1 + 2 * self.bytes()];
        let (data, len) = (bytes.as_mut_ptr(), bytes.len());
        let form = POINT_CONVERSION_UNCOMPRESSED;
        // SAFETY: the caller guarantees the point, and `bytes` has the length passed.
        let written = unsafe {
            aws::EC_POINT_point2oct(self.group(), point, form, data, len, ptr::null_mut())
        };
        assert_eq!(written, len, "a public key is never the point at infinity");
        bytes
    }
}
