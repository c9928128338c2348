//! Message authentication codes.

use wraith_crypto::mac;

use super::{each, ensure, hex, message, same};

/// Checks `MAC|key|nonce|message|tag`.
fn check(fields: &[&'static str]) -> Result<(), String> {
    let [name, key, nonce, text, tag] = fields else { return Err("five fields".into()) };
    let [key, nonce, text, tag] = [key, nonce, text, tag].map(|field| hex(field));
    let algorithm: mac::Algorithm = name.parse().map_err(message)?;
    let start = || -> Result<_, String> {
        let mut mac = algorithm.start(&key, &nonce).map_err(message)?;
        mac.update(&text);
        Ok(mac)
    };
    let mut out = vec![0; algorithm.tag_bytes()];
    start()?.finish_into(&mut out);
    same("tag", &out[..tag.len().min(out.len())], &tag)?;
    start()?.verify(&out).map_err(message)?;
    out[0] ^= 1;
    ensure("a forgery is refused", start()?.verify(&out).is_err())
}

#[test]
fn openssl_s_macs_come_out() {
    each(include_str!("../../vectors/openssl/macs.txt"), 59, check);
}
