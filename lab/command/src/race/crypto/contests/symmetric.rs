//! Rows about a text: hash functions, ciphers, AEADs, authentication codes.

use super::{C, Contest, Figure, TEXT_BYTES, c, rs, speed};

/// Text lengths of openhitls-rs, in bytes.
const LENGTHS: [u32; 3] = [1024, 8192, 16384];
/// Text length of rows without openhitls-rs.
const ONE_LENGTH: [u32; 1] = [TEXT_BYTES];
/// Text lengths with one that openhitls-rs lacks, and that openHiTLS accepts with larger buffers.
const MORE_LENGTHS: [u32; 4] = [1024, 8192, 16384, 65536];
/// The C program counts the blocks of XTS without a reset, and fails after this many bytes.
const XTS_BYTES_MAX: u64 = 16 << 20;

/// Names in wraith, in OpenSSL, in openHiTLS in C, and in openhitls-rs; `""` if there is none.
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
    ("SHAKE128", "shake128", "shake128", ""),
    ("SHAKE256", "shake256", "shake256", ""),
    ("SM3", "sm3", "sm3", "sm3/hash"),
    ("BLAKE2s", "blake2s256", "", ""),
    ("BLAKE2b", "blake2b512", "", ""),
    ("BLAKE3", "", "", ""),
    ("SHA-1", "sha1", "sha1", "sha1/hash"),
    ("MD5", "md5", "md5", "md5/hash"),
];

/// The names of openhitls-rs end before `/encrypt` or `/decrypt`.
const CIPHERS: [Names; 23] = [
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
    ("SM4-XTS", "", "sm4-xts", ""),
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

/// OpenSSL's name is the hash of an HMAC, or the cipher of a CMAC.
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

pub fn contests(all: &mut Vec<Contest>) {
    hashes(all);
    ciphers(all);
    aeads(all);
    macs(all);
}

/// The row of a text of `bytes` bytes in the C program.
fn of_c(group: &'static str, name: &str, operation: &str, bytes: u32) -> Option<C> {
    let of = c(group, name, format!("{name} {operation}"), bytes)?;
    let times_max = name.ends_with("xts").then_some(XTS_BYTES_MAX / u64::from(bytes));
    (!name.is_empty()).then_some(C { times_max, ..of })
}

fn lengths(of_rs: &str) -> &'static [u32] {
    if of_rs.is_empty() { &ONE_LENGTH } else { &LENGTHS }
}

fn hashes(all: &mut Vec<Contest>) {
    let family = "hash functions";
    for (ours, openssl, at_c, at_rs) in HASHES {
        for &bytes in lengths(at_rs) {
            all.push(Contest {
                family,
                row: format!("{ours} hash"),
                bytes: Some(bytes),
                openssl: speed(&["-evp"], openssl, Figure::BytesPerSecond),
                c: of_c("Md", at_c, "digest", bytes),
                rs: rs(at_rs, &format!("/{bytes}")),
            });
        }
    }
    for (ours, at_rs) in [("SHAKE128", "shake/shake128"), ("SHAKE256", "shake/shake256")] {
        for bytes in LENGTHS {
            all.push(Contest {
                family,
                row: format!("{ours} hash, long output"),
                bytes: Some(bytes),
                openssl: None,
                c: None,
                rs: rs(at_rs, &format!("/{bytes}")),
            });
        }
    }
}

fn family(cipher: &str) -> &'static str {
    match cipher.rsplit('-').next() {
        _ if cipher.starts_with("SM4") => "SM4",
        Some("ECB" | "CBC") => "AES-ECB, AES-CBC",
        Some("XTS") => "AES-XTS",
        _ => "AES-CTR, AES-CFB, AES-OFB",
    }
}

fn ciphers(all: &mut Vec<Contest>) {
    for (ours, openssl, at_c, at_rs) in CIPHERS {
        let is_one_way = ours.ends_with("CTR") || ours.ends_with("OFB");
        for operation in ["encrypt", "decrypt"] {
            let is_decrypt = operation == "decrypt";
            let words: &[&str] = if is_decrypt { &["-decrypt", "-evp"] } else { &["-evp"] };
            let group = if is_decrypt { "Cipher-Dec" } else { "Cipher-Enc" };
            let contest = Contest {
                family: family(ours),
                row: format!("{ours} {operation}"),
                bytes: Some(TEXT_BYTES),
                openssl: speed(words, openssl, Figure::BytesPerSecond),
                c: of_c(group, at_c, operation, TEXT_BYTES),
                rs: None,
            };
            // A single block, with an existing key schedule.
            if let Some(cipher) = block(ours) {
                let rs = Some(format!("{cipher}/{operation}_block"));
                let (openssl, c) = (None, None);
                all.push(Contest { bytes: Some(16), openssl, c, rs, ..contest.clone() });
            }
            all.push(contest.clone());
            if at_rs.is_empty() || (is_decrypt && is_one_way) {
                continue;
            }
            for bytes in LENGTHS {
                let operation_of_rs = if is_one_way { "crypt" } else { operation };
                all.push(Contest {
                    row: format!("{ours} {operation}, new key"),
                    bytes: Some(bytes),
                    openssl: None,
                    c: None,
                    rs: rs(at_rs, &format!("/{operation_of_rs}/{bytes}")),
                    ..contest.clone()
                });
            }
        }
    }
}

/// Name of the bare block cipher in openhitls-rs.
fn block(ours: &str) -> Option<&'static str> {
    match ours {
        "AES-128-ECB" => Some("aes/aes-128"),
        "AES-256-ECB" => Some("aes/aes-256"),
        "SM4-ECB" => Some("sm4"),
        _ => None,
    }
}

fn aeads(all: &mut Vec<Contest>) {
    for (ours, openssl, at_c, at_rs) in AEADS {
        // All contenders set up the key of ChaCha20 beforehand. For other ciphers, all but OpenSSL
        // set it up with every text.
        let is_chacha = ours.starts_with("ChaCha20");
        for operation in ["encrypt", "decrypt"] {
            let words: &[&str] = match operation {
                "decrypt" => &["-aead", "-decrypt", "-evp"],
                _ => &["-aead", "-evp"],
            };
            let group = if operation == "decrypt" { "Cipher-Dec" } else { "Cipher-Enc" };
            let others = |bytes: u32| {
                let c = of_c(group, at_c, operation, bytes);
                let at_rs = if LENGTHS.contains(&bytes) { at_rs } else { "" };
                (c, rs(at_rs, &format!("/{operation}/{bytes}")))
            };
            let (ready, new_key): (&[u32], &[u32]) = match ours {
                "AES-128-GCM" | "AES-256-GCM" => (&MORE_LENGTHS, &MORE_LENGTHS),
                _ if is_chacha => (&LENGTHS, &[]),
                _ => (&ONE_LENGTH, lengths(at_rs)),
            };
            for &bytes in ready {
                let (c, rs) = if is_chacha { others(bytes) } else { (None, None) };
                all.push(Contest {
                    family: "AEADs",
                    row: format!("{ours} {operation}"),
                    bytes: Some(bytes),
                    openssl: speed(words, openssl, Figure::BytesPerSecond),
                    c,
                    rs,
                });
            }
            for &bytes in new_key {
                let (c, rs) = others(bytes);
                all.push(Contest {
                    family: "AEADs",
                    row: format!("{ours} {operation}, new key"),
                    bytes: Some(bytes),
                    openssl: None,
                    c,
                    rs,
                });
            }
        }
    }
}

fn macs(all: &mut Vec<Contest>) {
    for (ours, openssl, at_c, at_rs) in MACS {
        let option = if ours.starts_with("HMAC") { "-hmac" } else { "-cmac" };
        let lengths: &[u32] = match ours {
            "SipHash-64" => &[64, 1024, 8192],
            _ => lengths(at_rs),
        };
        for &bytes in lengths {
            all.push(Contest {
                family: "authentication codes",
                row: format!("{ours} mac"),
                bytes: Some(bytes),
                openssl: speed(&[option], openssl, Figure::BytesPerSecond),
                c: of_c("Mac", at_c, "mac", bytes),
                rs: rs(at_rs, &format!("/{bytes}")),
            });
        }
    }
}
