//! Key agreement.

use wraith_suite::agree::{self, PrivateKey, ecdh};

use super::{ensure, hex, message, published, same};

fn curve(name: &str) -> Result<ecdh::Curve, String> {
    use ecdh::Curve;
    Ok(match name {
        "ECDH-P-224" => Curve::P224,
        "ECDH-P-256" => Curve::P256,
        "ECDH-P-384" => Curve::P384,
        "ECDH-P-521" => Curve::P521,
        "ECDH-brainpoolP256r1" => Curve::BrainpoolP256r1,
        "ECDH-brainpoolP384r1" => Curve::BrainpoolP384r1,
        "ECDH-brainpoolP512r1" => Curve::BrainpoolP512r1,
        _ => return Err(format!("{name} has no curve")),
    })
}

/// Checks `agreement|private key|public key of the peer|secret`. The private key is PKCS #8, or raw
/// after `raw:`. The secret is `!` if the agreement has to fail.
fn check(fields: &[&'static str]) -> Result<(), String> {
    let [name, private, public, secret] = fields else { return Err("four fields".into()) };
    let key: Result<Box<dyn PrivateKey>, _> = match private.strip_prefix("raw:") {
        Some(raw) => name.parse::<agree::Algorithm>().map_err(message)?.private_key(&hex(raw)),
        None => {
            ecdh::PrivateKey::from_pkcs8(curve(name)?, &hex(private)).map(|key| Box::new(key) as _)
        }
    };
    let agreed = key.and_then(|key| key.agree(&hex(public)));
    if *secret == "!" {
        return ensure("a bad key is refused", agreed.is_err());
    }
    same("secret", &agreed.map_err(message)?, &hex(secret))
}

published! {
    openssl_s_secrets_come_out: check("openssl/agreements.txt", 173);
    ecdh_of_cavp_comes_out: check("aws_lc/agreements.txt", 100);
    botan_s_secrets_come_out: check("botan/agreements.txt", 181);
}
