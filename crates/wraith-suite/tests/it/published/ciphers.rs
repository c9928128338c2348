//! Ciphers, AEADs and key wrap.

use wraith_suite::{
    aead::{self, Aead, AesCcm, AesGcm, key_wrap},
    cipher::{self, Cipher},
};

use super::{ensure, hex, message, published, same};

/// Starts a text. "SM4-XTS-IEEE" is SM4-XTS with the tweak of IEEE 1619.
fn start(name: &str, key: &[u8], iv: &[u8]) -> Result<Box<dyn Cipher>, String> {
    if name == "SM4-XTS-IEEE" {
        let unit = iv.try_into().map_err(message)?;
        return cipher::start_sm4_xts_ieee(key, unit).map_err(message);
    }
    name.parse::<cipher::Algorithm>().map_err(message)?.start(key, iv).map_err(message)
}

/// Checks `cipher|operation|key|IV|text|ciphertext`.
fn check_cipher(fields: &[&'static str]) -> Result<(), String> {
    let [name, operation, key, iv, text, sealed] = fields else { return Err("six fields".into()) };
    let [key, iv, text, sealed] = [key, iv, text, sealed].map(|field| hex(field));
    if *operation == "no key" {
        return ensure("a bad key is refused", start(name, &key, &iv).is_err());
    }
    if matches!(*operation, "both" | "encrypt") {
        let mut out = text.clone();
        start(name, &key, &iv)?.encrypt(&mut out).map_err(message)?;
        same("encrypted", &out, &sealed)?;
    }
    if matches!(*operation, "both" | "decrypt") {
        let mut out = sealed;
        start(name, &key, &iv)?.decrypt(&mut out).map_err(message)?;
        same("decrypted", &out, &text)?;
    }
    ensure("a known operation", matches!(*operation, "both" | "encrypt" | "decrypt"))
}

/// Key of an AEAD vector. GCM takes nonces, and CCM nonces and tags, of other lengths too.
enum Key {
    Whole(Box<dyn Aead>),
    AnyNonce(AesGcm),
}

impl Key {
    fn new(
        algorithm: aead::Algorithm,
        key: &[u8],
        nonce: usize,
        tag: usize,
    ) -> Result<Self, String> {
        let name = algorithm.name();
        if nonce != 12 && name.starts_with("AES") && name.ends_with("GCM") {
            return Ok(Self::AnyNonce(AesGcm::new(key).ok_or("a key of AES")?));
        }
        if name.starts_with("AES") && name.ends_with("CCM") {
            let key = AesCcm::with_lengths(key, nonce, tag).ok_or("lengths of CCM")?;
            return Ok(Self::Whole(Box::new(key)));
        }
        algorithm.key(key).map(Self::Whole).map_err(message)
    }

    fn tag_bytes(&self) -> usize {
        match self {
            Self::Whole(key) => key.tag_bytes(),
            Self::AnyNonce(_) => aead::TAG_BYTES,
        }
    }

    /// Returns the ciphertext and the whole tag.
    fn seal(&self, nonce: &[u8], aad: &[u8], text: &[u8]) -> Result<(Vec<u8>, Vec<u8>), String> {
        let (mut out, mut tag) = (text.to_vec(), vec![0; self.tag_bytes()]);
        let sealed = match self {
            Self::Whole(key) => key.seal_detached(nonce, aad, &mut out, &mut tag),
            Self::AnyNonce(key) => key.seal_with_nonce(nonce, aad, &mut out, &mut tag),
        };
        sealed.map_err(message)?;
        Ok((out, tag))
    }

    fn open(&self, nonce: &[u8], aad: &[u8], sealed: &[u8], tag: &[u8]) -> Result<Vec<u8>, String> {
        let mut out = sealed.to_vec();
        let opened = match self {
            Self::Whole(key) => key.open_detached(nonce, aad, &mut out, tag),
            Self::AnyNonce(key) => key.open_with_nonce(nonce, aad, &mut out, tag),
        };
        opened.map_err(message)?;
        Ok(out)
    }
}

/// Checks `AEAD|operation|key|nonce|associated data|text|ciphertext|tag`. A tag of GCM that is
/// shorter than ours is compared with the beginning of ours.
fn check_aead(fields: &[&'static str]) -> Result<(), String> {
    let [name, operation, rest @ ..] = fields else { return Err("eight fields".into()) };
    let rest: Vec<_> = rest.iter().map(|field| hex(field)).collect();
    let [key, nonce, aad, text, sealed, tag] = &rest[..] else { return Err("eight fields".into()) };
    let algorithm: aead::Algorithm = name.parse().map_err(message)?;
    let key = Key::new(algorithm, key, nonce.len(), tag.len())?;
    let opened = || key.open(nonce, aad, sealed, tag);
    match *operation {
        "both" | "open" | "seal" => {
            let (out, whole) = key.seal(nonce, aad, text)?;
            same("sealed", &out, sealed)?;
            same("tag", &whole[..tag.len()], tag)?;
            let opened = key.open(nonce, aad, sealed, &whole)?;
            same("opened", &opened, text)
        }
        "forged" => {
            ensure("a whole tag", tag.len() == key.tag_bytes())?;
            ensure("a forgery is refused", opened().is_err())
        }
        "no nonce" => ensure("a bad nonce is refused", opened().is_err()),
        _ => Err("a known operation".into()),
    }
}

/// Checks `function|operation|key|IV|key to wrap|wrapped key`.
fn check_wrap(fields: &[&'static str]) -> Result<(), String> {
    let [function, operation, key, iv, secret, wrapped] = fields else {
        return Err("six fields".into());
    };
    ensure("the IV of the standard", iv.is_empty())?;
    let [key, secret, wrapped] = [key, secret, wrapped].map(|field| hex(field));
    let opened = match *function {
        "wrap" => key_wrap::unwrap(&key, &wrapped),
        _ => key_wrap::unwrap_padded(&key, &wrapped),
    };
    if *operation == "forged" {
        return ensure("a forgery is refused", opened.is_err());
    }
    let made = match *function {
        "wrap" => key_wrap::wrap(&key, &secret),
        _ => key_wrap::wrap_padded(&key, &secret),
    };
    same("wrapped", &made.map_err(message)?, &wrapped)?;
    same("unwrapped", &opened.map_err(message)?, &secret)
}

published! {
    openssl_s_ciphers_come_out: check_cipher("openssl/ciphers.txt", 142);
    openssl_s_aeads_come_out: check_aead("openssl/aeads.txt", 224);
    ccm_of_cavp_comes_out_with_every_length_of_nonce_and_tag: check_aead("openssl/ccm.txt", 2865);
    openssl_s_wrapped_keys_come_out: check_wrap("openssl/wraps.txt", 8);
    cbc_and_ctr_of_cavp_come_out: check_cipher("aws_lc/ciphers.txt", 1560);
    botan_s_ciphers_come_out: check_cipher("botan/ciphers.txt", 149);
    botan_s_aeads_come_out: check_aead("botan/aeads.txt", 380);
    botan_s_wrapped_keys_come_out: check_wrap("botan/wraps.txt", 27);
}
