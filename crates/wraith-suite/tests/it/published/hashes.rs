//! Hash functions.

use wraith_suite::hash;

use super::{ensure, hex, message, published, same};

/// Checks `hash|message|repetitions|digest`. The message comes once, or as often as the third field
/// says.
fn check(fields: &[&'static str]) -> Result<(), String> {
    let [name, text, repetitions, digest] = fields else { return Err("four fields".into()) };
    let algorithm: hash::Algorithm = name.parse().map_err(message)?;
    let times = if repetitions.is_empty() { 1 } else { repetitions.parse().map_err(message)? };
    let (text, digest) = (hex(text).repeat(times), hex(digest));
    let is_whole = digest.len() == algorithm.digest_bytes();
    ensure("the length of the digest", is_whole || algorithm.is_extendable())?;
    for pieces in [text.len().max(1), 61] {
        let mut hasher = algorithm.hasher();
        text.chunks(pieces).for_each(|piece| hasher.update(piece));
        let mut out = vec![0; digest.len()];
        hasher.finish_into(&mut out);
        same("digest", &out, &digest)?;
    }
    Ok(())
}

published! {
    openssl_s_digests_come_out: check("openssl/hashes.txt", 82);
    sha_3_and_shake_of_cavp_come_out: check("aws_lc/hashes.txt", 767);
    botan_s_digests_come_out: check("botan/hashes.txt", 523);
}
