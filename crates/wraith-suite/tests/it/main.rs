//! Published vectors, and comparisons of this crate's implementations with independent ones: all
//! those of AES-256-GCM, and those of X25519, ML-KEM and Elligator2.

use std::io::Write;

mod acvp;
mod aeads;
mod aes_ciphers;
mod aes_macs;
mod agreement;
mod bignum;
mod cavp;
mod differential;
mod ecdsa;
mod eddsa;
mod encryption;
mod ffdhe;
mod hash;
mod hpke;
mod implementations;
mod kdf;
mod kem;
mod key_formats;
mod lines;
mod mac;
mod ml_dsa;
mod published;
mod rand;
mod rsa;
mod rsa_keys;
mod slh_dsa;
mod sm2;
mod sm4;
mod verdicts;
mod wycheproof;

/// Reports past the test harness that a test proved nothing here. CI fails for it, because an
/// installation could provide the missing part.
pub(crate) fn skipped(why: &str) {
    say("skipped", why);
}

fn say(what: &str, why: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    std::io::stderr().write_all(format!("{what}: {test}: {why}\n").as_bytes()).unwrap();
}
