//! Hash functions.

use wraith_suite::hash;

use super::{each, ensure, hex, message, same};

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

#[test]
fn openssl_s_digests_come_out() {
    each(include_str!("../../vectors/openssl/hashes.txt"), 82, check);
}

#[test]
fn sha_3_and_shake_of_cavp_come_out() {
    each(include_str!("../../vectors/aws_lc/hashes.txt"), 767, check);
}

#[test]
fn botan_s_digests_come_out() {
    each(include_str!("../../vectors/botan/hashes.txt"), 523, check);
}
