//! SLH-DSA (FIPS 205): signatures based on nothing but hash functions, in all twelve parameter
//! sets.
//!
//! Almost all of the time goes into independent hash chains. So [`hashes`] computes many of SHAKE at
//! once, with the kernel `keccak_lanes`, and [`tree`] is organised to supply many at a time.
//!
//! Invariant: the sequence of hashes depends on the message and on public parts of the signature,
//! never on a secret.

mod address;
mod hashes;
mod parameters;
mod tree;

use zeroize::Zeroizing;

use super::{Algorithm, SignError, context_bytes};
use crate::Backend;
use crate::encoding::oid;
use crate::encoding::pkcs8::PrivateKeyInfo;
use crate::encoding::spki::{AlgorithmIdentifier, SubjectPublicKeyInfo};
use hashes::{Hashes, Node, node};
use parameters::{Family, Parameters};
use tree::Leaf;
use wraith_kernels::keccak_lanes;

/// Returns the length of a signature in bytes, or `None` if `algorithm` is not SLH-DSA.
#[must_use]
pub const fn signature_bytes(algorithm: Algorithm) -> Option<usize> {
    match Parameters::of(algorithm) {
        Some(parameters) => Some(parameters.signature_bytes()),
        None => None,
    }
}

/// Returns the implementation of `algorithm` on this processor.
pub(crate) fn backend(algorithm: Algorithm) -> Backend {
    let of_shake = |set: Parameters| set.family == Family::Shake;
    let is_shake = Parameters::of(algorithm).is_some_and(of_shake);
    match is_shake {
        true => Backend::own(keccak_lanes::features()),
        false => Backend::own(None),
    }
}

fn parameters(algorithm: Algorithm) -> Result<Parameters, SignError> {
    Parameters::of(algorithm).ok_or(SignError::InvalidKey { algorithm })
}

/// A public key: PK.seed and PK.root.
pub struct VerifyingKey {
    hashes: Hashes,
    root: Node,
}

impl VerifyingKey {
    /// Parses PK.seed ‖ PK.root, n bytes each.
    ///
    /// # Errors
    /// [`SignError::InvalidKey`] for another length, or if `algorithm` is not SLH-DSA.
    pub fn from_raw(algorithm: Algorithm, raw: &[u8]) -> Result<Self, SignError> {
        let parameters = parameters(algorithm)?;
        if raw.len() != 2 * parameters.n {
            return Err(SignError::InvalidKey { algorithm });
        }
        let (seed, root) = raw.split_at(parameters.n);
        Ok(Self { hashes: Hashes::new(parameters, node(seed)), root: node(root) })
    }

    /// Parses a key in SubjectPublicKeyInfo (RFC 9909).
    ///
    /// # Errors
    /// [`SignError::InvalidKey`] if `der` is invalid, or for another algorithm.
    pub fn from_spki(algorithm: Algorithm, der: &[u8]) -> Result<Self, SignError> {
        let oid = oid::nist_signature(parameters(algorithm)?.oid);
        SubjectPublicKeyInfo::from_der(der)
            .ok()
            .filter(|info| info.algorithm == AlgorithmIdentifier::new(oid))
            .ok_or(SignError::InvalidKey { algorithm })
            .and_then(|info| Self::from_raw(algorithm, info.key))
    }

    /// Verifies a signature over `message` in `context`.
    ///
    /// # Errors
    /// [`SignError::Context`], or [`SignError::Unauthentic`] for any defect of the signature.
    pub fn verify_with_context(
        &self,
        context: &[u8],
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), SignError> {
        self.verify_parts(&[&prefix(context)?, context, message], signature)
    }

    // For published test vectors, which are for this function.
    #[doc(hidden)]
    /// slh_verify_internal (Algorithm 20): verifies a message that already includes its prefix.
    ///
    /// # Errors
    /// [`SignError::Unauthentic`].
    pub fn verify_internal(&self, message: &[u8], signature: &[u8]) -> Result<(), SignError> {
        self.verify_parts(&[message], signature)
    }

    fn verify_parts(&self, message: &[&[u8]], signature: &[u8]) -> Result<(), SignError> {
        let (hashes, set) = (&self.hashes, &self.hashes.parameters);
        if signature.len() != set.signature_bytes() {
            return Err(SignError::Unauthentic);
        }
        let (randomizer, rest) = signature.split_at(set.n);
        let (fors, layers) = rest.split_at(set.fors_bytes());
        let digest = hashes.digest(randomizer, &self.root[..set.n], message);
        let (digest, path) = places(hashes, &digest);
        let mut value = tree::fors_key_of(hashes, path[0], digest, fors);
        for (leaf, layer) in path.iter().zip(layers.chunks(set.layer_bytes())) {
            value = tree::root_of_layer(hashes, *leaf, &value, layer);
        }
        if crate::equal(&value[..set.n], &self.root[..set.n]) {
            Ok(())
        } else {
            Err(SignError::Unauthentic)
        }
    }
}

impl super::VerifyingKey for VerifyingKey {
    fn algorithm(&self) -> Algorithm {
        self.hashes.parameters.algorithm
    }

    fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), SignError> {
        self.verify_with_context(&[], message, signature)
    }

    fn to_raw(&self) -> Vec<u8> {
        let n = self.hashes.parameters.n;
        [&self.hashes.seed[..n], &self.root[..n]].concat()
    }

    fn to_spki(&self) -> Vec<u8> {
        let oid = oid::nist_signature(self.hashes.parameters.oid);
        let algorithm = AlgorithmIdentifier::new(oid);
        SubjectPublicKeyInfo { algorithm, key: &self.to_raw() }.to_der()
    }
}

wraith_crypto::redacted_debug!(|it: VerifyingKey| algorithm: it.hashes.parameters.algorithm);

/// A private key: SK.seed, SK.prf and the public key.
pub struct SigningKey {
    seed: Zeroizing<Node>,
    prf: Zeroizing<Node>,
    public: VerifyingKey,
}

impl SigningKey {
    /// Generates a key.
    ///
    /// # Errors
    /// [`SignError::InvalidKey`] if `algorithm` is not SLH-DSA.
    pub fn generate(algorithm: Algorithm) -> Result<Self, SignError> {
        let mut seeds = Zeroizing::new(vec![0; 3 * parameters(algorithm)?.n]);
        crate::rand::fill(&mut seeds);
        Self::from_seeds(algorithm, &seeds)
    }

    /// Derives the key from SK.seed ‖ SK.prf ‖ PK.seed, n bytes each (Algorithm 18).
    ///
    /// # Errors
    /// [`SignError::InvalidKey`] for another length, or if `algorithm` is not SLH-DSA.
    pub fn from_seeds(algorithm: Algorithm, seeds: &[u8]) -> Result<Self, SignError> {
        let n = parameters(algorithm)?.n;
        if seeds.len() != 3 * n {
            return Err(SignError::InvalidKey { algorithm });
        }
        let raw = Zeroizing::new([seeds, &[0; 32][..n]].concat());
        let mut key = Self::from_raw(algorithm, &raw)?;
        let hashes = &key.public.hashes;
        let top = Leaf { layer: hashes.parameters.d - 1, tree: 0, index: 0 };
        key.public.root = tree::hypertree(hashes, &key.seed, &[top])[0].root;
        Ok(key)
    }

    /// Parses SK.seed ‖ SK.prf ‖ PK.seed ‖ PK.root, n bytes each. Does not check that the root
    /// matches the seeds, which would take as long as generating a key.
    ///
    /// # Errors
    /// [`SignError::InvalidKey`] for another length, or if `algorithm` is not SLH-DSA.
    pub fn from_raw(algorithm: Algorithm, raw: &[u8]) -> Result<Self, SignError> {
        let n = parameters(algorithm)?.n;
        if raw.len() != 4 * n {
            return Err(SignError::InvalidKey { algorithm });
        }
        Ok(Self {
            seed: Zeroizing::new(node(&raw[..n])),
            prf: Zeroizing::new(node(&raw[n..2 * n])),
            public: VerifyingKey::from_raw(algorithm, &raw[2 * n..])?,
        })
    }

    /// Parses a key in PKCS #8 (RFC 9909).
    ///
    /// # Errors
    /// [`SignError::InvalidKey`] if `der` is invalid, for another algorithm, or if a separate
    /// public key in it does not match.
    pub fn from_pkcs8(algorithm: Algorithm, der: &[u8]) -> Result<Self, SignError> {
        let oid = oid::nist_signature(parameters(algorithm)?.oid);
        let invalid = SignError::InvalidKey { algorithm };
        let info = PrivateKeyInfo::from_der(der)
            .ok()
            .filter(|info| info.algorithm == AlgorithmIdentifier::new(oid))
            .ok_or(invalid)?;
        let key = Self::from_raw(algorithm, info.private_key)?;
        let own = super::VerifyingKey::to_raw(&key.public);
        let fits = info.public_key.is_none_or(|public| public == own);
        if fits { Ok(key) } else { Err(invalid) }
    }

    /// Returns the public key.
    #[must_use]
    pub const fn public(&self) -> &VerifyingKey {
        &self.public
    }

    /// Signs `message` in `context`, hedged: with fresh randomness, so that a fault or a
    /// side-channel trace of one signature does not help with the next.
    ///
    /// # Errors
    /// [`SignError::Context`].
    /// [`SignError::Context`].
    pub fn sign_with_context(&self, context: &[u8], message: &[u8]) -> Result<Vec<u8>, SignError> {
        let mut fresh = Zeroizing::new(Node::default());
        crate::rand::fill(&mut *fresh);
        self.sign_parts(&[&prefix(context)?, context, message], Some(&fresh))
    }

    /// Signs `message` in `context` without randomness. Deterministic.
    ///
    /// # Errors
    /// [`SignError::Context`].
    pub fn sign_deterministic_with_context(
        &self,
        context: &[u8],
        message: &[u8],
    ) -> Result<Vec<u8>, SignError> {
        self.sign_parts(&[&prefix(context)?, context, message], None)
    }

    // For published test vectors, which are for this function. Not for general use: a signature
    // over raw bytes may also be valid with another kind of prefix.
    #[doc(hidden)]
    /// slh_sign_internal (Algorithm 19): signs a message that already includes its prefix, with or
    /// without `randomness` of n bytes.
    ///
    /// # Errors
    /// [`SignError::InvalidKey`] if the randomness has another length.
    pub fn sign_internal(
        &self,
        message: &[u8],
        randomness: Option<&[u8]>,
    ) -> Result<Vec<u8>, SignError> {
        let set = &self.public.hashes.parameters;
        if randomness.is_some_and(|fresh| fresh.len() != set.n) {
            return Err(SignError::InvalidKey { algorithm: set.algorithm });
        }
        let fresh = randomness.map(node);
        self.sign_parts(&[message], fresh.as_ref())
    }

    fn sign_parts(&self, message: &[&[u8]], fresh: Option<&Node>) -> Result<Vec<u8>, SignError> {
        let (hashes, set) = (&self.public.hashes, &self.public.hashes.parameters);
        let fresh = fresh.unwrap_or(&hashes.seed);
        let randomizer = hashes.randomizer(&self.prf[..set.n], &fresh[..set.n], message);
        let randomizer = &randomizer[..set.n];
        let digest = hashes.digest(randomizer, &self.public.root[..set.n], message);
        let (digest, path) = places(hashes, &digest);

        let mut signature = Vec::with_capacity(set.signature_bytes());
        signature.extend_from_slice(randomizer);
        let key = tree::sign_fors(hashes, &self.seed, path[0], digest, &mut signature);
        let proofs = tree::hypertree(hashes, &self.seed, &path);
        let below: Vec<Node> =
            [key].into_iter().chain(proofs.iter().map(|proof| proof.root)).take(set.d).collect();
        let links = tree::sign_roots(hashes, &self.seed, &path, &below);
        for (proof, links) in proofs.iter().zip(links.chunks(set.chains())) {
            for node in links.iter().chain(&proof.siblings) {
                signature.extend_from_slice(&node[..set.n]);
            }
        }
        Ok(signature)
    }
}

impl super::SigningKey for SigningKey {
    fn algorithm(&self) -> Algorithm {
        self.public.hashes.parameters.algorithm
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, SignError> {
        self.sign_with_context(&[], message)
    }

    fn verifying_key(&self) -> Box<dyn super::VerifyingKey> {
        let (seed, root) = (self.public.hashes.seed, self.public.root);
        Box::new(VerifyingKey { hashes: Hashes::new(self.public.hashes.parameters, seed), root })
    }

    fn to_raw(&self) -> Zeroizing<Vec<u8>> {
        let n = self.public.hashes.parameters.n;
        let public = super::VerifyingKey::to_raw(&self.public);
        Zeroizing::new([&self.seed[..n], &self.prf[..n], &public].concat())
    }

    fn to_pkcs8(&self) -> Zeroizing<Vec<u8>> {
        let oid = oid::nist_signature(self.public.hashes.parameters.oid);
        PrivateKeyInfo::new(AlgorithmIdentifier::new(oid), &self.to_raw()).to_der()
    }
}

wraith_crypto::redacted_debug!(|it: SigningKey| algorithm: it.public.hashes.parameters.algorithm);

/// Returns the prefix of context and message (Algorithm 22): no pre-hash, and the length of the
/// context.
fn prefix(context: &[u8]) -> Result<[u8; 2], SignError> {
    Ok([0, context_bytes(context)?])
}

/// Splits the digest of a message into the input of FORS and the path through the hypertree.
fn places<'a>(hashes: &Hashes, digest: &'a [u8]) -> (&'a [u8], Vec<Leaf>) {
    let set = &hashes.parameters;
    let (digest, rest) = digest.split_at(set.fors_digest_bytes());
    let (tree, leaf) = rest.split_at(set.tree_bytes());
    let number = |bytes: &[u8], bits: usize| {
        let all = bytes.iter().fold(0u64, |number, byte| (number << 8) | u64::from(*byte));
        all & (u64::MAX >> (64 - bits))
    };
    let tree = number(tree, set.height * (set.d - 1));
    (digest, tree::path(hashes, tree, number(leaf, set.height) as u32))
}
