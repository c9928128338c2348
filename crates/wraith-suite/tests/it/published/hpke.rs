//! HPKE with every message of a context, so with sequence numbers of more than one byte.

use wraith_suite::encrypt::hpke::{Aead, Kdf, Kem, PrivateKey, PublicKey, Recipient, Suite};

use super::{each, hex, message, same};

/// Sets up the recipient of `AEAD|info|private key|encapsulated key|public key of the sender`.
fn recipient(fields: &[&'static str]) -> Result<Recipient, String> {
    let [aead, info, key, encapsulated, identity] = fields else {
        return Err("five fields".into());
    };
    let aead = match *aead {
        "Aes128Gcm" => Aead::Aes128Gcm,
        "Aes256Gcm" => Aead::Aes256Gcm,
        "ChaCha20Poly1305" => Aead::ChaCha20Poly1305,
        _ => return Err("a known AEAD".into()),
    };
    let suite = Suite { kem: Kem::X25519, kdf: Kdf::Sha256, aead };
    let key = PrivateKey::from_raw(suite.kem, &hex(key)).map_err(message)?;
    let identity = (!identity.is_empty()).then(|| PublicKey::from_raw(suite.kem, &hex(identity)));
    let identity = identity.transpose().map_err(message)?;
    suite.recipient(&hex(encapsulated), &key, &hex(info), None, identity.as_ref()).map_err(message)
}

#[test]
fn each_of_257_messages_opens() {
    let mut context: Option<Recipient> = None;
    each(include_str!("../../vectors/aws_lc/hpke.txt"), 1566, |fields| {
        match (fields, &mut context) {
            (["setup", fields @ ..], context) => {
                *context = Some(recipient(fields)?);
                Ok(())
            }
            (["message", aad, text, sealed], Some(context)) => {
                same("text", &context.open(&hex(aad), &hex(sealed)).map_err(message)?, &hex(text))
            }
            (["export", label, secret], Some(context)) => {
                let secret = hex(secret);
                let mut out = vec![0; secret.len()];
                context.export(&hex(label), &mut out).map_err(message)?;
                same("secret", &out, &secret)
            }
            _ => Err("a known line".into()),
        }
    });
}
