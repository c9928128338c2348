//! Private keys with their public keys: raw, or as PKCS #8 and SubjectPublicKeyInfo.

use wraith_suite::{agree, hash, sign};

use super::{ensure, hex, message, published, same};

/// Returns the public half of a private key, in the format of the private key.
fn public_half(name: &str, private: &str) -> Result<Vec<u8>, String> {
    let raw = private.strip_prefix("raw:");
    if let Ok(algorithm) = name.parse::<agree::Algorithm>() {
        let key = algorithm.private_key(&hex(raw.ok_or("a raw key")?));
        return Ok(key.map_err(message)?.public_key());
    }
    let algorithm: sign::Algorithm = name.parse().map_err(message)?;
    Ok(match raw {
        Some(raw) => algorithm.signing_key(&hex(raw)).map_err(message)?.verifying_key().to_raw(),
        None => {
            let key = algorithm.signing_key_pkcs8(&hex(private)).map_err(message)?;
            let public = key.verifying_key();
            let read = algorithm.verifying_key_spki(&public.to_spki()).map_err(message)?;
            same("public key read again", &read.to_raw(), &public.to_raw())?;
            let again = algorithm.signing_key_pkcs8(&key.to_pkcs8()).map_err(message)?;
            same("private key read again", &again.to_raw(), &key.to_raw())?;
            public.to_spki()
        }
    })
}

/// Checks `algorithm|verdict|private key|public key`. The public key may be `sha256:` and its digest.
/// With the verdicts `key` and `no key`, it is alone.
fn check(fields: &[&'static str]) -> Result<(), String> {
    let [name, verdict, private, public] = fields else { return Err("four fields".into()) };
    if matches!(*verdict, "key" | "no key") {
        let algorithm: sign::Algorithm = name.parse().map_err(message)?;
        let raw = hex(public.strip_prefix("raw:").ok_or("a raw key")?);
        return ensure(verdict, algorithm.verifying_key(&raw).is_ok() == (*verdict == "key"));
    }
    let made = public_half(name, private);
    if let Some(digest) = public.strip_prefix("sha256:") {
        return same("digest", &hash::digest(hash::Algorithm::Sha256, &made?), &hex(digest));
    }
    let public = hex(public.trim_start_matches("raw:"));
    match *verdict {
        "pair" => same("public key", &made?, &public),
        "mismatch" => ensure("the keys differ", made.is_err() || made? != public),
        _ => Err("a known verdict".into()),
    }
}

/// Checks `algorithm|generate|seed|SHA-256 of the public key`.
fn check_generated(fields: &[&'static str]) -> Result<(), String> {
    let [name, _, seed, digest] = fields else { return Err("four fields".into()) };
    let algorithm: sign::Algorithm = name.parse().map_err(message)?;
    let key = match name.starts_with("SLH-DSA") {
        true => sign::slh_dsa::SigningKey::from_seeds(algorithm, &hex(seed))
            .map(|key| sign::SigningKey::verifying_key(&key)),
        false => algorithm.signing_key(&hex(seed)).map(|key| key.verifying_key()),
    };
    let key = key.map_err(message)?.to_raw();
    same("digest", &hash::digest(hash::Algorithm::Sha256, &key), &hex(digest))
}

published! {
    openssl_s_pairs_belong_together: check("openssl/pairs.txt", 200);
    keys_of_openssl_s_seeds_are_the_published_ones:
        check_generated("openssl/generated_keys.txt", 195);
    pairs_of_cavp_and_aws_lc_belong_together: check("aws_lc/pairs.txt", 648);
    keys_of_boringssl_s_seeds_are_the_published_ones:
        check_generated("boringssl/generated_keys.txt", 95);
    botan_s_pairs_belong_together: check("botan/pairs.txt", 164);
    sm2_keys_of_tongsuo_belong_together: check("tongsuo/pairs.txt", 11);
}
