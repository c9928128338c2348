//! Object identifiers of key algorithms and curves, as the content of their DER encoding.

/// 1.2.840.113549.1.1.1, rsaEncryption (RFC 8017).
pub const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1];
/// 1.2.840.10045.2.1, id-ecPublicKey (RFC 5480). Its parameter is the curve.
pub const EC_PUBLIC_KEY: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1];
/// 1.3.132.0.33, secp224r1 (RFC 5480).
pub const P224: &[u8] = &[0x2b, 0x81, 4, 0, 33];
/// 1.2.840.10045.3.1.7, secp256r1 (RFC 5480).
pub const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
/// 1.3.132.0.34, secp384r1 (RFC 5480).
pub const P384: &[u8] = &[0x2b, 0x81, 4, 0, 34];
/// 1.3.132.0.35, secp521r1 (RFC 5480).
pub const P521: &[u8] = &[0x2b, 0x81, 4, 0, 35];
/// 1.3.36.3.3.2.8.1.1.7, brainpoolP256r1 (RFC 5639).
pub const BRAINPOOL_P256R1: &[u8] = &[0x2b, 0x24, 3, 3, 2, 8, 1, 1, 7];
/// 1.3.36.3.3.2.8.1.1.11, brainpoolP384r1 (RFC 5639).
pub const BRAINPOOL_P384R1: &[u8] = &[0x2b, 0x24, 3, 3, 2, 8, 1, 1, 11];
/// 1.3.36.3.3.2.8.1.1.13, brainpoolP512r1 (RFC 5639).
pub const BRAINPOOL_P512R1: &[u8] = &[0x2b, 0x24, 3, 3, 2, 8, 1, 1, 13];
/// 1.2.156.10197.1.301, the curve of SM2 (RFC 8998).
pub const SM2: &[u8] = &[0x2a, 0x81, 0x1c, 0xcf, 0x55, 1, 0x82, 0x2d];
/// 1.3.101.112, Ed25519 (RFC 8410).
pub const ED25519: &[u8] = &[0x2b, 0x65, 112];
/// 1.3.101.113, Ed448 (RFC 8410).
pub const ED448: &[u8] = &[0x2b, 0x65, 113];
/// 1.3.6.1.4.1.62253.25722, X-Wing (draft-connolly-cfrg-xwing-kem).
pub const X_WING: &[u8] = &[0x2b, 6, 1, 4, 1, 0x83, 0xe6, 0x2d, 0x81, 0xc8, 0x7a];

/// 2.16.840.1.101.3.4.3.`n`, the signature algorithms of NIST. 17 to 19 are ML-DSA-44/65/87 (RFC
/// 9881), 20 to 31 are SLH-DSA (RFC 9909).
#[must_use]
pub const fn nist_signature(n: u8) -> [u8; 9] {
    assert!(n < 128, "larger numbers take two bytes");
    [0x60, 0x86, 0x48, 1, 0x65, 3, 4, 3, n]
}

/// 2.16.840.1.101.3.4.4.`n`, the KEMs of NIST. 1 to 3 are ML-KEM-512/768/1024 (RFC 9935).
#[must_use]
pub const fn nist_kem(n: u8) -> [u8; 9] {
    assert!(n < 128, "larger numbers take two bytes");
    [0x60, 0x86, 0x48, 1, 0x65, 3, 4, 4, n]
}
