//! The rows of the race: what each contender calls the operation. A name that nobody else has is no row.

/// How `openssl speed` measures it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenSsl {
    /// The words behind `openssl speed`.
    pub words: Vec<&'static str>,
    /// The figure in the line of results: bytes a second of a text, or operations a second.
    pub figure: Figure,
}

/// Where the figure stands in a line with `-mr`, and what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// The last, in bytes a second.
    BytesPerSecond,
    /// The last but one, in operations a second.
    First,
    /// The last, in operations a second.
    Second,
}

/// How openHiTLS in C measures it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct C {
    /// Behind `-a`: the group and the operation.
    pub group: &'static str,
    /// Behind `-p`, where there are several.
    pub parameter: Option<String>,
    /// The first column of its line.
    pub name: String,
    /// Behind `-l`.
    pub bytes: u32,
}

/// One row.
#[derive(Clone, Debug)]
pub struct Contest {
    /// As `wraith speed --list` calls it.
    pub row: String,
    pub openssl: Option<OpenSsl>,
    pub c: Option<C>,
    /// The name of the benchmark in openhitls-rs.
    pub rs: Option<String>,
}

/// Bytes of a text: what the others' reports have.
pub const TEXT_BYTES: u32 = 8192;
/// Bytes that are signed, so that hashing them costs nothing beside.
const MESSAGE_BYTES: u32 = 32;

/// Name here, at openssl, at openHiTLS in C, at openhitls-rs; `""` where there is none.
type Names = (&'static str, &'static str, &'static str, &'static str);

const HASHES: [Names; 17] = [
    ("SHA-224", "sha224", "sha224", ""),
    ("SHA-256", "sha256", "sha256", "sha/sha256"),
    ("SHA-384", "sha384", "sha384", "sha/sha384"),
    ("SHA-512", "sha512", "sha512", "sha/sha512"),
    ("SHA-512/256", "sha512-256", "", ""),
    ("SHA3-224", "sha3-224", "sha3-224", ""),
    ("SHA3-256", "sha3-256", "sha3-256", "sha3/sha3-256"),
    ("SHA3-384", "sha3-384", "sha3-384", "sha3/sha3-384"),
    ("SHA3-512", "sha3-512", "sha3-512", "sha3/sha3-512"),
    ("SHAKE128", "shake128", "shake128", "shake/shake128"),
    ("SHAKE256", "shake256", "shake256", "shake/shake256"),
    ("SM3", "sm3", "sm3", "sm3/hash"),
    ("BLAKE2s", "blake2s256", "", ""),
    ("BLAKE2b", "blake2b512", "", ""),
    ("BLAKE3", "", "", ""),
    ("SHA-1", "sha1", "sha1", "sha1/hash"),
    ("MD5", "md5", "md5", "md5/hash"),
];

/// Names of openhitls-rs end where `/encrypt` or `/decrypt` follows.
const CIPHERS: [Names; 22] = [
    ("AES-128-ECB", "aes-128-ecb", "aes128-ecb", "aes-ecb/aes-128-ecb"),
    ("AES-192-ECB", "aes-192-ecb", "aes192-ecb", ""),
    ("AES-256-ECB", "aes-256-ecb", "aes256-ecb", "aes-ecb/aes-256-ecb"),
    ("AES-128-CBC", "aes-128-cbc", "aes128-cbc", "aes-cbc/aes-128-cbc"),
    ("AES-192-CBC", "aes-192-cbc", "aes192-cbc", ""),
    ("AES-256-CBC", "aes-256-cbc", "aes256-cbc", "aes-cbc/aes-256-cbc"),
    ("AES-128-CTR", "aes-128-ctr", "aes128-ctr", "aes-ctr/aes-128-ctr"),
    ("AES-192-CTR", "aes-192-ctr", "aes192-ctr", ""),
    ("AES-256-CTR", "aes-256-ctr", "aes256-ctr", "aes-ctr/aes-256-ctr"),
    ("AES-128-CFB", "aes-128-cfb", "aes128-cfb", "aes-cfb/aes-128-cfb"),
    ("AES-192-CFB", "aes-192-cfb", "aes192-cfb", ""),
    ("AES-256-CFB", "aes-256-cfb", "aes256-cfb", "aes-cfb/aes-256-cfb"),
    ("AES-128-OFB", "aes-128-ofb", "aes128-ofb", "aes-ofb/aes-128-ofb"),
    ("AES-192-OFB", "aes-192-ofb", "aes192-ofb", ""),
    ("AES-256-OFB", "aes-256-ofb", "aes256-ofb", "aes-ofb/aes-256-ofb"),
    ("AES-128-XTS", "aes-128-xts", "aes128-xts", "aes-xts/aes-128-xts"),
    ("AES-256-XTS", "aes-256-xts", "aes256-xts", "aes-xts/aes-256-xts"),
    ("SM4-ECB", "sm4-ecb", "sm4-ecb", ""),
    ("SM4-CBC", "sm4-cbc", "sm4-cbc", "sm4-cbc"),
    ("SM4-CTR", "sm4-ctr", "sm4-ctr", ""),
    ("SM4-CFB", "sm4-cfb", "sm4-cfb", ""),
    ("SM4-OFB", "sm4-ofb", "sm4-ofb", ""),
];

const AEADS: [Names; 9] = [
    ("AES-128-GCM", "aes-128-gcm", "aes128-gcm", "aes-gcm/aes-128-gcm"),
    ("AES-192-GCM", "aes-192-gcm", "aes192-gcm", ""),
    ("AES-256-GCM", "aes-256-gcm", "aes256-gcm", "aes-gcm/aes-256-gcm"),
    ("AES-128-CCM", "aes-128-ccm", "aes128-ccm", "aes-ccm/aes-128-ccm"),
    ("AES-192-CCM", "aes-192-ccm", "aes192-ccm", ""),
    ("AES-256-CCM", "aes-256-ccm", "aes256-ccm", ""),
    ("ChaCha20-Poly1305", "chacha20-poly1305", "chacha20-poly1305", "chacha20-poly1305"),
    ("SM4-GCM", "", "sm4-gcm", "sm4-gcm"),
    ("SM4-CCM", "", "", "sm4-ccm"),
];

/// At openssl the hash of an HMAC, or the cipher of a CMAC.
const MACS: [Names; 21] = [
    ("HMAC-MD5", "md5", "hmac-md5", ""),
    ("HMAC-SHA-1", "sha1", "hmac-sha1", ""),
    ("HMAC-SHA-224", "sha224", "hmac-sha224", ""),
    ("HMAC-SHA-256", "sha256", "hmac-sha256", "hmac-sha256/compute"),
    ("HMAC-SHA-384", "sha384", "hmac-sha384", "hmac-sha384/compute"),
    ("HMAC-SHA-512", "sha512", "hmac-sha512", "hmac-sha512/compute"),
    ("HMAC-SHA3-224", "sha3-224", "hmac-sha3-224", ""),
    ("HMAC-SHA3-256", "sha3-256", "hmac-sha3-256", ""),
    ("HMAC-SHA3-384", "sha3-384", "hmac-sha3-384", ""),
    ("HMAC-SHA3-512", "sha3-512", "hmac-sha3-512", ""),
    ("HMAC-SM3", "sm3", "hmac-sm3", "hmac-sm3/compute"),
    ("CMAC-AES-128", "aes-128-cbc", "cmac-aes128", "cmac/aes-128/compute"),
    ("CMAC-AES-192", "aes-192-cbc", "cmac-aes192", ""),
    ("CMAC-AES-256", "aes-256-cbc", "cmac-aes256", "cmac/aes-256/compute"),
    ("CMAC-SM4", "", "cmac-sm4", ""),
    ("CBC-MAC-SM4", "", "cbc-mac-sm4", "cbc-mac-sm4/compute"),
    ("GMAC-AES-128", "", "gmac-aes128", "gmac/aes-128/compute"),
    ("GMAC-AES-192", "", "gmac-aes192", ""),
    ("GMAC-AES-256", "", "gmac-aes256", ""),
    ("SipHash-64", "", "siphash64", "siphash/hash"),
    ("SipHash-128", "", "siphash128", ""),
];

/// Curve here, of signatures and of agreements at openssl, at C, and at Rust.
const CURVES: [(&str, &str, &str, &str, &str); 7] = [
    ("P-224", "ecdsap224", "ecdhp224", "nistp224", ""),
    ("P-256", "ecdsap256", "ecdhp256", "nistp256", "p256"),
    ("P-384", "ecdsap384", "ecdhp384", "nistp384", "p384"),
    ("P-521", "ecdsap521", "ecdhp521", "nistp521", "p521"),
    ("brainpoolP256r1", "ecdsabrp256r1", "ecdhbrp256r1", "brainpoolP256r1", ""),
    ("brainpoolP384r1", "ecdsabrp384r1", "ecdhbrp384r1", "brainpoolP384r1", ""),
    ("brainpoolP512r1", "ecdsabrp512r1", "ecdhbrp512r1", "brainpoolP512r1", ""),
];

pub fn all() -> Vec<Contest> {
    let mut all = Vec::new();
    symmetric(&mut all);
    curves(&mut all);
    edwards_and_montgomery(&mut all);
    sm2(&mut all);
    rsa(&mut all);
    groups(&mut all);
    post_quantum(&mut all);
    derivation(&mut all);
    big_integers(&mut all);
    all.retain(|contest| contest.openssl.is_some() || contest.c.is_some() || contest.rs.is_some());
    all
}

fn speed(words: &[&'static str], name: &'static str, figure: Figure) -> Option<OpenSsl> {
    let words = words.iter().copied().chain([name]).collect();
    (!name.is_empty()).then_some(OpenSsl { words, figure })
}

fn c(group: &'static str, parameter: &str, name: String, bytes: u32) -> Option<C> {
    let parameter = (!parameter.is_empty()).then(|| parameter.to_owned());
    Some(C { group, parameter, name, bytes })
}

fn rs(name: &str, rest: &str) -> Option<String> {
    (!name.is_empty()).then(|| format!("{name}{rest}"))
}

fn symmetric(all: &mut Vec<Contest>) {
    let text = |group, name: &str, what: &str| {
        let of = || c(group, name, format!("{name} {what}"), TEXT_BYTES);
        if name.is_empty() { None } else { of() }
    };
    let rate = Figure::BytesPerSecond;
    for (ours, openssl, of_c, of_rs) in HASHES {
        all.push(Contest {
            row: format!("{ours} hash"),
            openssl: speed(&["-evp"], openssl, rate),
            c: text("Md", of_c, "digest"),
            rs: rs(of_rs, "/8192"),
        });
    }
    for (operation, group, decrypt) in
        [("encrypt", "Cipher-Enc", false), ("decrypt", "Cipher-Dec", true)]
    {
        for (ours, openssl, of_c, of_rs) in CIPHERS {
            let words: &[&str] = if decrypt { &["-decrypt", "-evp"] } else { &["-evp"] };
            let is_one_way = ours.ends_with("CTR") || ours.ends_with("OFB");
            let rest =
                if is_one_way { "/crypt/8192".to_owned() } else { format!("/{operation}/8192") };
            all.push(Contest {
                row: format!("{ours} {operation}"),
                openssl: speed(words, openssl, rate),
                c: text(group, of_c, operation),
                rs: rs(of_rs, &rest),
            });
        }
        for (ours, openssl, of_c, of_rs) in AEADS {
            let words: &[&str] =
                if decrypt { &["-aead", "-decrypt", "-evp"] } else { &["-aead", "-evp"] };
            all.push(Contest {
                row: format!("{ours} {operation}"),
                openssl: speed(words, openssl, rate),
                c: text(group, of_c, operation),
                rs: rs(of_rs, &format!("/{operation}/8192")),
            });
        }
    }
    for (ours, _, of_c, of_rs) in AEADS {
        // The others set the key up with every text.
        all.push(Contest {
            row: format!("{ours} encrypt, new key"),
            openssl: None,
            c: text("Cipher-Enc", of_c, "encrypt"),
            rs: rs(of_rs, "/encrypt/8192"),
        });
    }
    for (ours, openssl, of_c, of_rs) in MACS {
        let option: &[&str] = if ours.starts_with("HMAC") { &["-hmac"] } else { &["-cmac"] };
        let words: Vec<_> = option.to_vec();
        all.push(Contest {
            row: format!("{ours} mac"),
            openssl: speed(&words, openssl, rate),
            c: text("Mac", of_c, "mac"),
            rs: rs(of_rs, "/8192"),
        });
    }
}

fn curves(all: &mut Vec<Contest>) {
    for (curve, signature, agreement, of_c, of_rs) in CURVES {
        let of = |group, rest: &str| c(group, of_c, format!("{of_c}{rest}"), MESSAGE_BYTES);
        let group = if of_rs.is_empty() { String::new() } else { format!("ecdsa-{of_rs}") };
        let rows = [
            (format!("ECDSA-{curve} keygen"), None, of("Ecdsa-KeyGen", " keyGen"), None),
            (
                format!("ECDSA-{curve} sign"),
                speed(&[], signature, Figure::First),
                of("Ecdsa-Sign", "-sha256 sign"),
                rs(&group, "/sign"),
            ),
            (
                format!("ECDSA-{curve} verify"),
                speed(&[], signature, Figure::Second),
                of("Ecdsa-Verify", "-sha256 verify"),
                rs(&group, "/verify"),
            ),
            (format!("ECDH-{curve} keygen"), None, of("Ecdh-KeyGen", " ecdh keyGen"), None),
            (
                format!("ECDH-{curve} derive"),
                speed(&[], agreement, Figure::First),
                of("Ecdh-KeyDerive", " ecdh keyDerive"),
                if of_rs.is_empty() { None } else { Some(format!("ecdh/{of_rs}/key_derive")) },
            ),
        ];
        all.extend(rows.map(|(row, openssl, c, rs)| Contest { row, openssl, c, rs }));
    }
}

fn edwards_and_montgomery(all: &mut Vec<Contest>) {
    let of = |group, name: &str| c(group, "", name.to_owned(), MESSAGE_BYTES);
    let mut add = |row: &str, openssl, c, rs: &str| {
        let rs = (!rs.is_empty()).then(|| rs.to_owned());
        all.push(Contest { row: row.to_owned(), openssl, c, rs });
    };
    let (first, second) = (Figure::First, Figure::Second);
    add("Ed25519 keygen", None, of("Ed25519-KeyGen", "Ed25519 keyGen"), "");
    let c = of("Ed25519-Sign", "ed25519 sign");
    add("Ed25519 sign", speed(&[], "ed25519", first), c, "ed25519/sign");
    let c = of("Ed25519-Verify", "ed25519 verify");
    add("Ed25519 verify", speed(&[], "ed25519", second), c, "ed25519/verify");
    add("Ed448 sign", speed(&[], "ed448", first), None, "ed448/sign");
    add("Ed448 verify", speed(&[], "ed448", second), None, "ed448/verify");
    add("X25519 keygen", None, of("X25519-KeyGen", "X25519 keyGen"), "");
    let c = of("X25519-KeyDerive", "X25519 keyDerive");
    add("X25519 derive", speed(&[], "ecdhx25519", first), c, "x25519/diffie_hellman");
    add("X448 derive", speed(&[], "ecdhx448", first), None, "x448/diffie_hellman");
}

fn sm2(all: &mut Vec<Contest>) {
    for (operation, group, at_c, openssl) in [
        ("keygen", "Sm2-KeyGen", "keyGen", None),
        ("sign", "Sm2-Sign", "sign", Some(Figure::First)),
        ("verify", "Sm2-Verify", "verify", Some(Figure::Second)),
        ("encrypt", "Sm2-Enc", "enc", None),
        ("decrypt", "Sm2-Dec", "dec", None),
    ] {
        all.push(Contest {
            row: format!("SM2 {operation}"),
            openssl: openssl.and_then(|figure| speed(&[], "sm2", figure)),
            c: c(group, "", format!("sm2 {at_c}"), MESSAGE_BYTES),
            rs: (operation != "keygen").then(|| format!("sm2/{operation}")),
        });
    }
}

fn rsa(all: &mut Vec<Contest>) {
    for (bits, openssl) in [(2048, "rsa2048"), (3072, "rsa3072"), (4096, "rsa4096")] {
        // The C program has this one alone.
        let of = |group, what: &str| {
            let of = c(group, "", format!("rsa-{bits}-sha256 {what}"), MESSAGE_BYTES);
            if bits == 2048 { of } else { None }
        };
        let at_rs = |what: &str| Some(format!("rsa-{bits}/{what}"));
        let rows = [
            (
                format!("RSA-{bits}-PSS-SHA-256 sign"),
                None,
                of("Rsa-Sign", "sign"),
                at_rs("sign_pss"),
            ),
            (
                format!("RSA-{bits}-PSS-SHA-256 verify"),
                None,
                of("Rsa-Verify", "verify"),
                at_rs("verify_pss"),
            ),
            (
                format!("RSA-{bits}-PKCS1-SHA-256 sign"),
                speed(&[], openssl, Figure::First),
                None,
                None,
            ),
            (
                format!("RSA-{bits}-PKCS1-SHA-256 verify"),
                speed(&[], openssl, Figure::Second),
                None,
                None,
            ),
            (
                format!("RSA-{bits}-OAEP-SHA-256 encrypt"),
                None,
                of("Rsa-Enc", "enc"),
                at_rs("encrypt_oaep"),
            ),
            (
                format!("RSA-{bits}-OAEP-SHA-256 decrypt"),
                None,
                of("Rsa-Dec", "dec"),
                at_rs("decrypt_oaep"),
            ),
        ];
        all.extend(rows.map(|(row, openssl, c, rs)| Contest { row, openssl, c, rs }));
    }
}

fn groups(all: &mut Vec<Contest>) {
    for (bits, openssl) in [
        (2048, "ffdh2048"),
        (3072, "ffdh3072"),
        (4096, "ffdh4096"),
        (6144, "ffdh6144"),
        (8192, "ffdh8192"),
    ] {
        let at_c = format!("dh-rfc7919-{bits}");
        let at_rs = |what: &str| (bits <= 4096).then(|| format!("dh/ffdhe{bits}/{what}"));
        all.push(Contest {
            row: format!("FFDHE-{bits} keygen"),
            openssl: None,
            c: c("Dh-KeyGen", &at_c, format!("{at_c} dh keyGen"), MESSAGE_BYTES),
            rs: at_rs("keygen"),
        });
        all.push(Contest {
            row: format!("FFDHE-{bits} derive"),
            openssl: speed(&[], openssl, Figure::First),
            // It is spelled so.
            c: c("Dh-KeyDerive", &at_c, format!("{at_c} dh keyDervie"), MESSAGE_BYTES),
            rs: at_rs("key_derive"),
        });
    }
}

fn post_quantum(all: &mut Vec<Contest>) {
    let operations = [
        ("keygen", "keyGen", "KeyGen"),
        ("encaps", "encaps", "Encaps"),
        ("decaps", "decaps", "Decaps"),
    ];
    for set in ["512", "768", "1024"] {
        for (ours, at_c, _) in operations {
            let group = match ours {
                "keygen" => "Mlkem-KeyGen",
                "encaps" => "Mlkem-Encaps",
                _ => "Mlkem-Decaps",
            };
            let name = format!("mlkem-{set}");
            all.push(Contest {
                row: format!("ML-KEM-{set} {ours}"),
                openssl: None,
                c: c(group, &name, format!("{name} {at_c}"), MESSAGE_BYTES),
                rs: Some(format!("mlkem/{name}/{ours}")),
            });
        }
    }
    for ours in ["keygen", "encaps", "decaps"] {
        all.push(Contest {
            row: format!("X25519MLKEM768 {ours}"),
            openssl: None,
            c: None,
            rs: Some(format!("hybridkem/x25519-mlkem768/{ours}")),
        });
    }
    let operations = [("keygen", "keyGen"), ("sign", "sign"), ("verify", "verify")];
    for set in ["44", "65", "87"] {
        for (ours, at_c) in operations {
            let group = match ours {
                "keygen" => "Mldsa-KeyGen",
                "sign" => "Mldsa-Sign",
                _ => "Mldsa-Verify",
            };
            let name = format!("mldsa-{set}");
            all.push(Contest {
                row: format!("ML-DSA-{set} {ours}"),
                openssl: None,
                // Its names of these sets are not among those that -p takes.
                c: c(group, "", format!("{name} {at_c}"), MESSAGE_BYTES),
                rs: Some(format!("mldsa/{name}/{ours}")),
            });
        }
    }
    slh_dsa(all, &operations);
}

fn slh_dsa(all: &mut Vec<Contest>, operations: &[(&str, &str)]) {
    for hash in ["SHA2", "SHAKE"] {
        for set in ["128s", "128f", "192s", "192f", "256s", "256f"] {
            for &(ours, at_c) in operations {
                let group = match ours {
                    "keygen" => "SlhDsa-KeyGen",
                    "sign" => "SlhDsa-Sign",
                    _ => "SlhDsa-Verify",
                };
                let name = format!("SLH-DSA-{hash}-{}", set.to_uppercase());
                let is_at_rs = set.ends_with('f') && (hash == "SHA2" || set == "128f");
                let at_rs = format!("slh-dsa/{}-{set}/{ours}", hash.to_lowercase());
                all.push(Contest {
                    row: format!("SLH-DSA-{hash}-{set} {ours}"),
                    openssl: None,
                    c: c(group, &name, format!("{name} {at_c}"), MESSAGE_BYTES),
                    rs: is_at_rs.then_some(at_rs),
                });
            }
        }
    }
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
        all.push(Contest { row: ours.to_owned(), openssl: None, c: None, rs: Some(rs.to_owned()) });
    }
}

fn big_integers(all: &mut Vec<Contest>) {
    for bits in [256, 512, 1024, 2048, 4096] {
        for (ours, at_rs) in [("multiply", "mul"), ("add", "add"), ("power", "mod_exp")] {
            if ours != "power" || bits >= 1024 {
                all.push(Contest {
                    row: format!("big integers {bits} bits {ours}"),
                    openssl: None,
                    c: None,
                    rs: Some(format!("bignum/{at_rs}/{bits}")),
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_there_once_and_has_somebody_to_race() {
        let all = all();
        let names: std::collections::BTreeSet<_> = all.iter().map(|each| &each.row).collect();
        assert_eq!(names.len(), all.len());
        assert!(all.len() > 200, "{}", all.len());
        assert!(!names.contains(&"BLAKE3 hash".to_owned()), "nobody else has it");
    }
}
