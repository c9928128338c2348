//! Rows about key pairs: signatures, key agreements, KEMs, public-key encryption.

use super::{Contest, Figure, MESSAGE_BYTES, c, rs, speed};

/// Curve names: ours, OpenSSL's of signatures and of agreements, the C program's, and
/// openhitls-rs's.
const CURVES: [(&str, &str, &str, &str, &str); 7] = [
    ("P-224", "ecdsap224", "ecdhp224", "nistp224", ""),
    ("P-256", "ecdsap256", "ecdhp256", "nistp256", "p256"),
    ("P-384", "ecdsap384", "ecdhp384", "nistp384", "p384"),
    ("P-521", "ecdsap521", "ecdhp521", "nistp521", "p521"),
    ("brainpoolP256r1", "ecdsabrp256r1", "ecdhbrp256r1", "brainpoolP256r1", ""),
    ("brainpoolP384r1", "ecdsabrp384r1", "ecdhbrp384r1", "brainpoolP384r1", ""),
    ("brainpoolP512r1", "ecdsabrp512r1", "ecdhbrp512r1", "brainpoolP512r1", ""),
];

pub fn contests(all: &mut Vec<Contest>) {
    curves(all);
    edwards_and_montgomery(all);
    sm2(all);
    rsa(all);
    groups(all);
    post_quantum(all);
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
        all.extend(rows.map(|(row, openssl, c, rs)| Contest {
            family: "NIST and Brainpool curves",
            row,
            bytes: None,
            openssl,
            c,
            rs,
        }));
    }
}

fn edwards_and_montgomery(all: &mut Vec<Contest>) {
    let of = |group, name: &str| c(group, "", name.to_owned(), MESSAGE_BYTES);
    let mut add = |row: &str, openssl, c, rs: &str| {
        let rs = (!rs.is_empty()).then(|| rs.to_owned());
        let family = "Ed25519, X25519, Ed448, X448";
        all.push(Contest { family, row: row.to_owned(), bytes: None, openssl, c, rs });
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
        ("exchange", "Sm2-KeyDerive", "keyDerive", None),
    ] {
        all.push(Contest {
            family: "SM2",
            bytes: None,
            row: format!("SM2 {operation}"),
            openssl: openssl.and_then(|figure| speed(&[], "sm2", figure)),
            c: c(group, "", format!("sm2 {at_c}"), MESSAGE_BYTES),
            rs: (!matches!(operation, "keygen" | "exchange")).then(|| format!("sm2/{operation}")),
        });
    }
}

fn rsa(all: &mut Vec<Contest>) {
    let family = "RSA";
    // The C program has only this length.
    let of = |group, what: &str| c(group, "", format!("rsa-2048{what}"), MESSAGE_BYTES);
    all.push(Contest {
        family,
        row: "RSA-2048-PSS-SHA-256 keygen".to_owned(),
        bytes: None,
        openssl: None,
        c: of("Rsa-KeyGen", " keyGen"),
        rs: None,
    });
    for (bits, openssl) in [(2048, "rsa2048"), (3072, "rsa3072"), (4096, "rsa4096")] {
        let of = |group, what| if bits == 2048 { of(group, what) } else { None };
        let at_rs = |what: &str| Some(format!("rsa-{bits}/{what}"));
        let openssl = |figure| speed(&[], openssl, figure);
        let (sign, verify) = (Figure::First, Figure::Second);
        let rows = [
            ("PSS-SHA-256 sign", None, None, at_rs("sign_pss")),
            ("PSS-SHA-256 verify", None, None, at_rs("verify_pss")),
            ("PKCS1-SHA-256 sign", openssl(sign), of("Rsa-Sign", "-sha256 sign"), None),
            ("PKCS1-SHA-256 verify", openssl(verify), of("Rsa-Verify", "-sha256 verify"), None),
            ("OAEP-SHA-256 encrypt", None, of("Rsa-Enc", "-sha256 enc"), at_rs("encrypt_oaep")),
            ("OAEP-SHA-256 decrypt", None, of("Rsa-Dec", "-sha256 dec"), at_rs("decrypt_oaep")),
        ];
        all.extend(rows.map(|(name, openssl, c, rs)| {
            let row = format!("RSA-{bits}-{name}");
            Contest { family, row, bytes: None, openssl, c, rs }
        }));
    }
}

fn groups(all: &mut Vec<Contest>) {
    let family = "groups of integers";
    let sizes = [
        (2048, "ffdh2048"),
        (3072, "ffdh3072"),
        (4096, "ffdh4096"),
        (6144, "ffdh6144"),
        (8192, "ffdh8192"),
    ];
    for (name, standard) in [("FFDHE", "rfc7919"), ("MODP", "rfc3526")] {
        for (bits, openssl) in sizes {
            let is_ffdhe = name == "FFDHE";
            let at_c = format!("dh-{standard}-{bits}");
            let at_rs =
                |what: &str| (is_ffdhe && bits <= 4096).then(|| format!("dh/ffdhe{bits}/{what}"));
            all.push(Contest {
                family,
                row: format!("{name}-{bits} keygen"),
                bytes: None,
                openssl: None,
                c: c("Dh-KeyGen", &at_c, format!("{at_c} dh keyGen"), MESSAGE_BYTES),
                rs: at_rs("keygen"),
            });
            let openssl = if is_ffdhe { openssl } else { "" };
            all.push(Contest {
                family,
                row: format!("{name}-{bits} derive"),
                bytes: None,
                openssl: speed(&[], openssl, Figure::First),
                // The misspelling is the program's own.
                c: c("Dh-KeyDerive", &at_c, format!("{at_c} dh keyDervie"), MESSAGE_BYTES),
                rs: at_rs("key_derive"),
            });
        }
    }
}

fn post_quantum(all: &mut Vec<Contest>) {
    let operations = [("keygen", "keyGen"), ("encaps", "encaps"), ("decaps", "decaps")];
    for set in ["512", "768", "1024"] {
        for (ours, at_c) in operations {
            let group = match ours {
                "keygen" => "Mlkem-KeyGen",
                "encaps" => "Mlkem-Encaps",
                _ => "Mlkem-Decaps",
            };
            let name = format!("mlkem-{set}");
            all.push(Contest {
                family: "ML-KEM",
                bytes: None,
                row: format!("ML-KEM-{set} {ours}"),
                openssl: None,
                c: c(group, &name, format!("{name} {at_c}"), MESSAGE_BYTES),
                rs: Some(format!("mlkem/{name}/{ours}")),
            });
        }
    }
    for ours in ["keygen", "encaps", "decaps"] {
        all.push(Contest {
            family: "ML-KEM",
            bytes: None,
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
                family: "ML-DSA",
                bytes: None,
                row: format!("ML-DSA-{set} {ours}"),
                openssl: None,
                // `-p` does not accept the program's names of these parameter sets.
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
                    family: "SLH-DSA",
                    bytes: None,
                    row: format!("SLH-DSA-{hash}-{set} {ours}"),
                    openssl: None,
                    c: c(group, &name, format!("{name} {at_c}"), MESSAGE_BYTES),
                    rs: is_at_rs.then_some(at_rs),
                });
            }
        }
    }
}
