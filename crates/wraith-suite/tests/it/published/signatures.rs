//! Signatures.

use wraith_suite::{
    hash,
    sign::{Algorithm, SigningKey, VerifyingKey, ecdsa, ed448, ml_dsa, slh_dsa, sm2},
};

use super::{ensure, hex, message, published, same};

/// One vector: `algorithm|verdict|key|form|message|context|signature`.
struct Vector {
    algorithm: Algorithm,
    /// `message`, `mu` (ML-DSA), `digest` (ECDSA), `internal` (SLH-DSA), or the hash function that
    /// ECDSA uses instead of its own.
    form: &'static str,
    text: Vec<u8>,
    context: Vec<u8>,
    signature: Vec<u8>,
}

fn curve(algorithm: Algorithm) -> Result<ecdsa::Curve, String> {
    use ecdsa::Curve;
    Ok(match algorithm {
        Algorithm::EcdsaP224 => Curve::P224,
        Algorithm::EcdsaP256 => Curve::P256,
        Algorithm::EcdsaP384 => Curve::P384,
        Algorithm::EcdsaP521 => Curve::P521,
        Algorithm::EcdsaBrainpoolP256r1 => Curve::BrainpoolP256r1,
        Algorithm::EcdsaBrainpoolP384r1 => Curve::BrainpoolP384r1,
        Algorithm::EcdsaBrainpoolP512r1 => Curve::BrainpoolP512r1,
        _ => return Err(format!("{algorithm} has no curve")),
    })
}

fn set(algorithm: Algorithm) -> Option<ml_dsa::Set> {
    Some(match algorithm {
        Algorithm::MlDsa44 => ml_dsa::Set::MlDsa44,
        Algorithm::MlDsa65 => ml_dsa::Set::MlDsa65,
        Algorithm::MlDsa87 => ml_dsa::Set::MlDsa87,
        _ => return None,
    })
}

impl Vector {
    /// Verifies the signature with a raw public key.
    fn verify(&self, public: &dyn VerifyingKey) -> Result<(), String> {
        let (raw, algorithm) = (public.to_raw(), self.algorithm);
        let Self { text, context, signature, .. } = self;
        let ecdsa_key = || -> Result<_, String> {
            ecdsa::VerifyingKey::from_point(curve(algorithm)?, &raw).map_err(message)
        };
        let verdict = match self.form {
            "message" if context.is_empty() => public.verify(text, signature),
            "message" => return self.verify_with_context(&raw),
            "mu" => {
                let set = set(algorithm).ok_or("a set of ML-DSA")?;
                let key = ml_dsa::VerifyingKey::from_raw(set, &raw).map_err(message)?;
                key.verify_mu(text[..].try_into().map_err(message)?, signature)
            }
            "internal" => slh_dsa::VerifyingKey::from_raw(algorithm, &raw)
                .and_then(|key| key.verify_internal(text, signature)),
            "digest" => ecdsa_key()?.verify_hash(text, signature),
            name => {
                let hash: hash::Algorithm = name.parse().map_err(message)?;
                ecdsa_key()?.verify_hash(&hash::digest(hash, text), signature)
            }
        };
        verdict.map_err(message)
    }

    fn verify_with_context(&self, raw: &[u8]) -> Result<(), String> {
        let Self { text, context, signature, .. } = self;
        let algorithm = self.algorithm;
        let verdict = if let Some(set) = set(algorithm) {
            ml_dsa::VerifyingKey::from_raw(set, raw)
                .and_then(|key| key.verify_with_context(context, text, signature))
        } else if algorithm == Algorithm::Ed448 {
            let raw = raw.try_into().map_err(message)?;
            let key = ed448::VerifyingKey::from_bytes(raw).ok_or("a key of Ed448")?;
            key.verify_with_context(context, text, signature)
        } else if algorithm == Algorithm::Sm2 {
            sm2::VerifyingKey::from_raw(raw)
                .and_then(|key| key.with_identity(context))
                .and_then(|key| key.verify(text, signature))
        } else {
            slh_dsa::VerifyingKey::from_raw(algorithm, raw)
                .and_then(|key| key.verify_with_context(context, text, signature))
        };
        verdict.map_err(message)
    }

    /// Signs with an algorithm that always makes the same signature.
    fn sign(&self, key: &dyn SigningKey) -> Result<Vec<u8>, String> {
        if self.algorithm == Algorithm::Ed448 {
            let seed = key.to_raw();
            let key = ed448::SigningKey::from_seed(seed[..].try_into().map_err(message)?);
            return Ok(key.sign_with_context(&self.context, &self.text).map_err(message)?.to_vec());
        }
        ensure("no context", self.context.is_empty())?;
        key.sign(&self.text).map_err(message)
    }
}

fn private_key(algorithm: Algorithm, key: &str) -> Result<Box<dyn SigningKey>, String> {
    let parsed = match key.strip_prefix("raw:") {
        Some(raw) => algorithm.signing_key(&hex(raw)),
        None => algorithm.signing_key_pkcs8(&hex(key)),
    };
    parsed.map_err(message)
}

fn public_key(algorithm: Algorithm, key: &str) -> Result<Box<dyn VerifyingKey>, String> {
    let parsed = match key.strip_prefix("raw:") {
        Some(raw) => algorithm.verifying_key(&hex(raw)),
        None => algorithm.verifying_key_spki(&hex(key)),
    };
    parsed.map_err(message)
}

/// Checks a vector. The verdict is `good`, `bad`, `sign` (a private key has to make the signature),
/// `private good` or `private bad` (as `good` and `bad`, and the key is private).
fn check(fields: &[&'static str]) -> Result<(), String> {
    let [name, verdict, key, form, text, context, signature] = fields else {
        return Err("seven fields".into());
    };
    let algorithm: Algorithm = name.parse().map_err(message)?;
    let [text, context, signature] = [text, context, signature].map(|field| hex(field));
    let vector = Vector { algorithm, form, text, context, signature };
    let public = match *verdict {
        "good" | "bad" => public_key(algorithm, key),
        _ => private_key(algorithm, key).map(|key| key.verifying_key()),
    };
    let verified = public.and_then(|key| vector.verify(&*key));
    match *verdict {
        "good" | "private good" => verified,
        "bad" | "private bad" => ensure("a bad signature is refused", verified.is_err()),
        "sign" => {
            verified?;
            same("signature", &vector.sign(&*private_key(algorithm, key)?)?, &vector.signature)
        }
        _ => Err("a known verdict".into()),
    }
}

/// Checks `algorithm|private key|randomness|message|SHA-256 of the signature`.
fn check_slh_dsa(fields: &[&'static str]) -> Result<(), String> {
    let [name, key, randomness, text, digest] = fields else { return Err("five fields".into()) };
    let algorithm: Algorithm = name.parse().map_err(message)?;
    let [key, randomness, text] = [key, randomness, text].map(|field| hex(field));
    let key = slh_dsa::SigningKey::from_raw(algorithm, &key).map_err(message)?;
    let randomness = (!randomness.is_empty()).then_some(&randomness[..]);
    let signature = key.sign_internal(&text, randomness).map_err(message)?;
    key.public().verify_internal(&text, &signature).map_err(message)?;
    same("digest", &hash::digest(hash::Algorithm::Sha256, &signature), &hex(digest))
}

published! {
    openssl_s_signatures_come_out: check("openssl/signatures.txt", 195);
    cctv_s_edge_cases_of_ed25519_have_one_verdict: check("cctv/ed25519.txt", 914);
    ecdsa_of_cavp_and_aws_lc_s_ml_dsa_come_out: check("aws_lc/signatures.txt", 606);
    boringssl_s_ml_dsa_and_slh_dsa_come_out: check("boringssl/signatures.txt", 29);
    slh_dsa_makes_boringssl_s_signatures: check_slh_dsa("boringssl/slh_dsa.txt", 14);
    botan_s_signatures_come_out: check("botan/signatures.txt", 381);
    certificates_of_tongsuo_with_sm2_verify: check("tongsuo/signatures.txt", 25);
}
