//! SM2 signatures (GB/T 32918.2) with SM3.
//!
//! A key signs under an identity, and the hash of that identity precedes the message. The default
//! is [`IDENTITY_DEFAULT`]; TLS 1.3 (RFC 8998) uses "TLSv1.3+GM+Cipher+Suite". A signature is DER,
//! a SEQUENCE of r and s; a raw signature is the 64 bytes of both.

use std::sync::OnceLock;

use zeroize::Zeroizing;

use super::{Algorithm, SignError};
use crate::encoding::signature;
use crate::hash::Sm3;
use crate::sm2::{Public, SCALAR_BYTES, Secret, constructors, random_scalar};
use wraith_kernels::sm2::{self as kernel, Scalar};

pub use crate::sm2::{IDENTITY_DEFAULT, IDENTITY_MAX};

/// Length of a raw signature in bytes.
pub const SIGNATURE_BYTES: usize = 2 * SCALAR_BYTES;

const INVALID: SignError = SignError::InvalidKey { algorithm: Algorithm::Sm2 };

/// A private key with the identity of its owner.
#[derive(Clone, Debug)]
pub struct SigningKey {
    secret: Secret,
    /// 1 / (1 + d), computed on the first signature.
    inverse: OnceLock<Zeroizing<RedactedScalar>>,
    owner: [u8; 32],
}

/// A scalar that `Debug` does not print.
#[derive(Clone)]
struct RedactedScalar(Scalar);

impl std::fmt::Debug for RedactedScalar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("..")
    }
}

impl zeroize::Zeroize for RedactedScalar {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}

constructors!(SigningKey, Secret, SignError);

impl SigningKey {
    /// Parses an ECPrivateKey (RFC 5915, DER), which OpenSSL writes as "EC PRIVATE KEY".
    ///
    /// # Errors
    /// [`SignError::InvalidKey`].
    pub fn from_sec1(der: &[u8]) -> Result<Self, SignError> {
        Secret::from_sec1(der).map(Self::new).ok_or(INVALID)
    }

    fn new(secret: Secret) -> Self {
        let owner = secret.public.owner_hash(IDENTITY_DEFAULT).expect("16 bytes are not too long");
        Self { secret, inverse: OnceLock::new(), owner }
    }

    fn inverse(&self) -> &Scalar {
        let invert =
            || Zeroizing::new(RedactedScalar(self.secret.scalar.add(&Scalar::ONE).invert()));
        &self.inverse.get_or_init(invert).0
    }

    /// Sets the identity under which the key signs.
    ///
    /// # Errors
    /// [`SignError::Identity`] if it has more than [`IDENTITY_MAX`] bytes.
    pub fn with_identity(mut self, identity: &[u8]) -> Result<Self, SignError> {
        self.owner = owner(&self.secret.public, identity)?;
        Ok(self)
    }

    /// Returns the public key, with the same identity.
    #[must_use]
    pub fn public(&self) -> VerifyingKey {
        VerifyingKey { public: self.secret.public, owner: self.owner }
    }

    /// Signs `message`. Returns r ‖ s.
    #[must_use]
    pub fn sign_fixed(&self, message: &[u8]) -> [u8; SIGNATURE_BYTES] {
        let hash = message_hash(&self.owner, message);
        loop {
            let scalar = Zeroizing::new(self.secret.scalar.to_bytes());
            let nonce = Zeroizing::new(random_scalar(&[&scalar[..], &hash, b"SM2 nonce"]));
            if let Some(signature) = self.sign_with(&hash, &nonce) {
                return signature;
            }
        }
    }

    /// Signs with the nonce k. Returns `None` if k, r, s or r + k is zero.
    fn sign_with(&self, hash: &[u8; 32], nonce: &Scalar) -> Option<[u8; SIGNATURE_BYTES]> {
        if nonce.is_zero() {
            return None;
        }
        let (x, _) = kernel::multiply_base(nonce).to_coordinates();
        let r = Scalar::reduced(hash).add(&Scalar::reduced(&x));
        // s = (k − r · d) / (1 + d) = (k + r) / (1 + d) − r.
        let sum = Zeroizing::new(r.add(nonce));
        let s = sum.mul(self.inverse()).sub(&r);
        if r.is_zero() || sum.is_zero() || s.is_zero() {
            return None;
        }
        let mut signature = [0; SIGNATURE_BYTES];
        signature[..SCALAR_BYTES].copy_from_slice(&r.to_bytes());
        signature[SCALAR_BYTES..].copy_from_slice(&s.to_bytes());
        Some(signature)
    }
}

impl super::SigningKey for SigningKey {
    fn algorithm(&self) -> Algorithm {
        Algorithm::Sm2
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, SignError> {
        Ok(signature::to_der(&self.sign_fixed(message)))
    }

    fn verifying_key(&self) -> Box<dyn super::VerifyingKey> {
        Box::new(self.public())
    }

    fn to_raw(&self) -> Zeroizing<Vec<u8>> {
        self.secret.to_bytes()
    }

    fn to_pkcs8(&self) -> Zeroizing<Vec<u8>> {
        self.secret.to_pkcs8()
    }
}

/// A public key with the identity of its owner.
#[derive(Clone, Debug)]
pub struct VerifyingKey {
    public: Public,
    owner: [u8; 32],
}

constructors!(VerifyingKey, Public, SignError);

impl VerifyingKey {
    fn new(public: Public) -> Self {
        let owner = public.owner_hash(IDENTITY_DEFAULT).expect("16 bytes are not too long");
        Self { public, owner }
    }

    /// Sets the expected identity of the signer.
    ///
    /// # Errors
    /// [`SignError::Identity`] if it has more than [`IDENTITY_MAX`] bytes.
    pub fn with_identity(mut self, identity: &[u8]) -> Result<Self, SignError> {
        self.owner = owner(&self.public, identity)?;
        Ok(self)
    }

    /// Verifies a signature r ‖ s over `message`.
    ///
    /// # Errors
    /// [`SignError::Unauthentic`].
    pub fn verify_fixed(&self, message: &[u8], signature: &[u8]) -> Result<(), SignError> {
        let hash = message_hash(&self.owner, message);
        self.is_signed(&hash, signature).filter(|&yes| yes).map(drop).ok_or(SignError::Unauthentic)
    }

    fn is_signed(&self, hash: &[u8; 32], signature: &[u8]) -> Option<bool> {
        let (r, s) = signature.split_first_chunk()?;
        let (r, s) = (Scalar::from_bytes(r)?, Scalar::from_bytes(s.try_into().ok()?)?);
        let t = r.add(&s);
        if r.is_zero() || s.is_zero() || t.is_zero() {
            return None;
        }
        let x = r.sub(&Scalar::reduced(hash));
        Some(kernel::sum_has_x(&s, &t, &self.public.point, &x))
    }
}

impl super::VerifyingKey for VerifyingKey {
    fn algorithm(&self) -> Algorithm {
        Algorithm::Sm2
    }

    fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), SignError> {
        let raw = signature::from_der(signature, SCALAR_BYTES).ok_or(SignError::Unauthentic)?;
        self.verify_fixed(message, &raw)
    }

    fn to_raw(&self) -> Vec<u8> {
        self.public.to_bytes().to_vec()
    }

    fn to_spki(&self) -> Vec<u8> {
        self.public.to_spki()
    }
}

fn owner(public: &Public, identity: &[u8]) -> Result<[u8; 32], SignError> {
    public.owner_hash(identity).ok_or(SignError::Identity { found: identity.len() })
}

fn message_hash(owner: &[u8; 32], message: &[u8]) -> [u8; 32] {
    let mut hash = Sm3::new();
    hash.update(owner);
    hash.update(message);
    hash.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex<const N: usize>(text: &str) -> [u8; N] {
        let bytes = data_encoding::HEXUPPER_PERMISSIVE.decode(text.as_bytes()).unwrap();
        bytes.try_into().unwrap()
    }

    /// GB/T 32918.5 Annex A.2.
    const KEY: &str = "3945208F7B2144B13F36E38AC6D39F95889393692860B51A42FB81EF4DF7C5B8";
    const NONCE: &str = "59276E27D506861A16680F3AD9C02DCCEF3CC1FA3CDBE4CE6D54B80DEAC1BC21";
    const R: &str = "F5A03B0648D2C4630EEAC513E1BB81A15944DA3827D5B74143AC7EACEEE720B3";
    const S: &str = "B1B6AA29DF212FD8763182BC0D421CA1BB9038FD1F7F42D4840B69C485BBC1AA";

    #[test]
    fn the_signature_of_the_standard_is_made_and_accepted() {
        let key = SigningKey::from_raw(&hex::<32>(KEY)).unwrap();
        let public = crate::sign::VerifyingKey::to_raw(&key.public());
        let point = "0409F9DF311E5421A150DD7D161E4BC5C672179FAD1833FC076BB08FF356F35020\
                     CCEA490CE26775A52DC6EA718CC1AA600AED05FBF35E084A6632F6072DA9AD13";
        assert_eq!(public, hex::<65>(point));
        let owner = "B2E14C5C79C6DF5B85F4FE7ED8DB7A262B9DA7E07CCB0EA9F4747B8CCDA8A4F3";
        assert_eq!(key.owner, hex(owner));
        let hash = message_hash(&key.owner, b"message digest");
        let expected = "F0B43E94BA45ACCAACE692ED534382EB17E6AB5A19CE7B31F4486FDFC0D28640";
        assert_eq!(hash, hex(expected));
        let nonce = Scalar::from_bytes(&hex(NONCE)).unwrap();
        let signature = key.sign_with(&hash, &nonce).unwrap();
        assert_eq!(signature, hex(&[R, S].concat()));
        key.public().verify_fixed(b"message digest", &signature).unwrap();
    }

    #[test]
    fn a_nonce_that_leads_to_zero_is_refused() {
        let key = SigningKey::from_raw(&hex::<32>(KEY)).unwrap();
        let nonce = Scalar::from_bytes(&hex(NONCE)).unwrap();
        let zero = nonce.sub(&nonce);
        assert!(key.sign_with(&[1; 32], &zero).is_none());
        let (x, _) = kernel::multiply_base(&nonce).to_coordinates();
        let x = Scalar::reduced(&x);
        // e = −x makes r zero, e = −x − k makes r + k zero, and k = r · d makes s zero.
        assert!(key.sign_with(&zero.sub(&x).to_bytes(), &nonce).is_none());
        assert!(key.sign_with(&zero.sub(&x).sub(&nonce).to_bytes(), &nonce).is_none());
        let r = nonce.mul(&key.secret.scalar.invert());
        assert!(key.sign_with(&r.sub(&x).to_bytes(), &nonce).is_none());
        assert!(key.sign_with(&[1; 32], &nonce).is_some());
    }

    #[test]
    fn an_x_between_n_and_p_is_found_again() {
        // The verifier sees only x modulo n. There are 2^224 such x; a signer does not meet one by
        // chance.
        let n = Scalar::from_bytes(&[0; 32]).unwrap().sub(&Scalar::ONE);
        let mut bytes = n.to_bytes();
        let point = (1..40)
            .find_map(|i| {
                bytes[31] = n.to_bytes()[31] + i;
                kernel::Affine::from_x(&bytes, false)
            })
            .unwrap();
        // With s = 0 the term s · G vanishes: 1 · P has this x.
        let zero = Scalar::ONE.sub(&Scalar::ONE);
        let x = Scalar::reduced(&bytes);
        assert!(x.to_bytes()[..31].iter().all(|&byte| byte == 0), "it was reduced");
        assert!(kernel::sum_has_x(&zero, &Scalar::ONE, &point, &x));
        assert!(!kernel::sum_has_x(&zero, &Scalar::ONE, &point, &x.add(&Scalar::ONE)));
    }
}
