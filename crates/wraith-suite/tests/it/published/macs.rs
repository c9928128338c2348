//! Message authentication codes.

use wraith_suite::mac;

use super::{ensure, hex, message, published, same};

/// Checks `MAC|key|nonce|message|tag`. A shorter tag is compared with the beginning of ours. After
/// `!` stands a tag that is wrong.
fn check(fields: &[&'static str]) -> Result<(), String> {
    let [name, key, nonce, text, tag] = fields else { return Err("five fields".into()) };
    let (is_wrong, tag) = (tag.starts_with('!'), tag.trim_start_matches('!'));
    let [key, nonce, text, tag] = [*key, *nonce, *text, tag].map(hex);
    let algorithm: mac::Algorithm = name.parse().map_err(message)?;
    let start = || -> Result<_, String> {
        let mut mac = algorithm.start(&key, &nonce).map_err(message)?;
        mac.update(&text);
        Ok(mac)
    };
    let mut out = vec![0; algorithm.tag_bytes()];
    start()?.finish_into(&mut out);
    let ours = out.get(..tag.len()).ok_or("a tag is too long")?;
    match is_wrong {
        true => ensure("a wrong tag", ours != tag)?,
        false => same("tag", ours, &tag)?,
    }
    start()?.verify(&out).map_err(message)?;
    out[0] ^= 1;
    ensure("a forgery is refused", start()?.verify(&out).is_err())
}

published! {
    openssl_s_macs_come_out: check("openssl/macs.txt", 59);
    cmac_of_cavp_and_aws_lc_s_hmac_come_out: check("aws_lc/macs.txt", 441);
    botan_s_macs_come_out: check("botan/macs.txt", 303);
}
