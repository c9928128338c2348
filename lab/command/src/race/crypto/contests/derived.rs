//! Rows about keys from secrets and passwords, random bytes, wrapped keys, HPKE and big integers,
//! which only openhitls-rs measures too.

use super::Contest;

pub fn contests(all: &mut Vec<Contest>) {
    derivation(all);
    big_integers(all);
}

fn of_rs(family: &'static str, row: String, rs: String) -> Contest {
    Contest { family, row, bytes: None, openssl: None, c: None, rs: Some(rs) }
}

fn derivation(all: &mut Vec<Contest>) {
    for (ours, rs) in [
        ("HKDF-SHA-256 32 bytes", "hkdf/extract+expand/32B"),
        ("HKDF-SHA-256 64 bytes", "hkdf/extract+expand/64B"),
        ("PBKDF2-HMAC-SHA-256 1000 times", "pbkdf2/1000_iters"),
        ("PBKDF2-HMAC-SHA-256 10000 times", "pbkdf2/10000_iters"),
        ("scrypt N=1024 r=8 p=1", "scrypt/n1024_r8_p1"),
        ("scrypt N=16384 r=8 p=1", "scrypt/n16384_r8_p1"),
        ("CTR_DRBG-AES-256 32 bytes", "drbg/ctr-drbg/generate_32B"),
        ("HMAC_DRBG-SHA-256 32 bytes", "drbg/hmac-drbg/generate_32B"),
        ("Hash_DRBG-SHA-256 32 bytes", "drbg-extra/hash-drbg-sha256/generate_32B"),
        ("AES-128-KW wrap", "aes-wrap/aes-128/wrap"),
        ("AES-128-KW unwrap", "aes-wrap/aes-128/unwrap"),
        ("AES-256-KW wrap", "aes-wrap/aes-256/wrap"),
        ("AES-256-KW unwrap", "aes-wrap/aes-256/unwrap"),
        ("HPKE X25519, HKDF-SHA-256, AES-128-GCM seal", "hpke/setup+seal"),
        ("HPKE X25519, HKDF-SHA-256, AES-128-GCM open", "hpke/setup+open"),
    ] {
        all.push(of_rs("keys and random bytes", ours.to_owned(), rs.to_owned()));
    }
}

fn big_integers(all: &mut Vec<Contest>) {
    for bits in [256, 512, 1024, 2048, 4096] {
        for (ours, at_rs) in [("multiply", "mul"), ("add", "add"), ("power", "mod_exp")] {
            if ours != "power" || bits >= 1024 {
                let (row, rs) =
                    (format!("big integers {bits} bits {ours}"), format!("bignum/{at_rs}/{bits}"));
                all.push(of_rs("big integers", row, rs));
            }
        }
    }
}
