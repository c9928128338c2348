//! Public-key encryption.

use wraith_suite::encrypt::{self, DecryptionKey, sm2};

use super::{ensure, hex, message, published, same};

/// Checks `encryption|private key|ciphertext|message`. The message is `!` if the ciphertext has to
/// be refused. Ciphertexts of SM2 are DER, and its private keys may be raw, after `raw:`.
fn check(fields: &[&'static str]) -> Result<(), String> {
    let [name, private, ciphertext, text] = fields else { return Err("four fields".into()) };
    let algorithm: encrypt::Algorithm = name.parse().map_err(message)?;
    let ciphertext = hex(ciphertext);
    let key: Box<dyn DecryptionKey> = match algorithm {
        encrypt::Algorithm::Sm2 => {
            let key = match private.strip_prefix("raw:") {
                Some(raw) => sm2::DecryptionKey::from_raw(&hex(raw)),
                None => sm2::DecryptionKey::from_pkcs8(&hex(private)),
            };
            Box::new(key.map_err(message)?.with_layout(sm2::Layout::Der))
        }
        _ => algorithm.decryption_key_pkcs8(&hex(private)).map_err(message)?,
    };
    let opened = key.decrypt(&ciphertext);
    if *text == "!" {
        return ensure("a bad ciphertext is refused", opened.is_err());
    }
    same("message", &opened.map_err(message)?, &hex(text))
}

published! {
    openssl_s_ciphertexts_open: check("openssl/decryptions.txt", 52);
    botan_s_ciphertexts_open: check("botan/decryptions.txt", 22);
}
