//! The algorithms that each [`Policy`] permits.

pub use wraith_crypto::Policy;

use crate::{aead, agree, cipher, encrypt, hash, kem, mac, sign};

impl hash::Algorithm {
    /// Returns whether `policy` permits this algorithm.
    #[must_use]
    pub const fn is_allowed_by(self, policy: Policy) -> bool {
        use hash::Algorithm::*;
        match policy {
            Policy::Default => !matches!(self, Md5 | Sha1),
            Policy::FipsLike => !matches!(self, Md5 | Sha1 | Sm3 | Blake2s | Blake2b | Blake3),
            Policy::Sm => matches!(self, Sm3),
            Policy::PqOnly => !matches!(self, Md5 | Sha1 | Sha224 | Sha3_224),
        }
    }
}

impl aead::Algorithm {
    /// Returns whether `policy` permits this algorithm.
    #[must_use]
    pub const fn is_allowed_by(self, policy: Policy) -> bool {
        use aead::Algorithm::*;
        match policy {
            Policy::Default => true,
            Policy::FipsLike => matches!(
                self,
                Aes128Gcm | Aes192Gcm | Aes256Gcm | Aes128Ccm | Aes192Ccm | Aes256Ccm
            ),
            Policy::Sm => matches!(self, Sm4Gcm | Sm4Ccm),
            Policy::PqOnly => self.key_bytes() >= 32,
        }
    }
}

impl cipher::Algorithm {
    /// Returns whether `policy` permits this algorithm. ECB reveals which blocks are equal. Only
    /// NIST permits it and leaves the decision to the user, so only `FipsLike` does.
    #[must_use]
    pub const fn is_allowed_by(self, policy: Policy) -> bool {
        use cipher::Algorithm::*;
        let is_ecb = matches!(self, Aes128Ecb | Aes192Ecb | Aes256Ecb | Sm4Ecb);
        let is_sm4 = matches!(self, Sm4Ecb | Sm4Cbc | Sm4Ctr | Sm4Cfb | Sm4Ofb | Sm4Xts);
        match policy {
            Policy::Default => !is_ecb,
            Policy::FipsLike => !is_sm4,
            Policy::Sm => is_sm4 && !is_ecb,
            Policy::PqOnly => {
                matches!(self, Aes256Cbc | Aes256Ctr | Aes256Cfb | Aes256Ofb | Aes256Xts)
            }
        }
    }
}

impl mac::Algorithm {
    /// Returns whether `policy` permits this algorithm.
    #[must_use]
    pub const fn is_allowed_by(self, policy: Policy) -> bool {
        use mac::Algorithm::*;
        match policy {
            // CBC-MAC is secure only for messages of one length. SipHash has the tag of a hash
            // table.
            Policy::Default => {
                !matches!(self, HmacMd5 | HmacSha1 | CbcMacSm4 | SipHash64 | SipHash128)
            }
            Policy::FipsLike => {
                !matches!(self, HmacMd5 | HmacSm3 | CmacSm4 | CbcMacSm4 | SipHash64 | SipHash128)
            }
            Policy::Sm => matches!(self, HmacSm3 | CmacSm4 | CbcMacSm4),
            Policy::PqOnly => matches!(
                self,
                HmacSha256
                    | HmacSha384
                    | HmacSha512
                    | HmacSha3_256
                    | HmacSha3_384
                    | HmacSha3_512
                    | HmacSm3
                    | CmacAes256
                    | GmacAes256
            ),
        }
    }
}

impl sign::Algorithm {
    /// Returns whether `policy` permits this algorithm.
    #[must_use]
    pub const fn is_allowed_by(self, policy: Policy) -> bool {
        use sign::Algorithm::*;
        match policy {
            Policy::Default => true,
            Policy::FipsLike => !matches!(
                self,
                EcdsaBrainpoolP256r1 | EcdsaBrainpoolP384r1 | EcdsaBrainpoolP512r1 | Sm2
            ),
            Policy::Sm => matches!(self, Sm2),
            Policy::PqOnly => {
                matches!(self, MlDsa44 | MlDsa65 | MlDsa87)
                    || sign::slh_dsa::signature_bytes(self).is_some()
            }
        }
    }
}

impl agree::Algorithm {
    /// Returns whether `policy` permits this algorithm. None of these alone protects recorded
    /// traffic from a future quantum computer.
    #[must_use]
    pub const fn is_allowed_by(self, policy: Policy) -> bool {
        use agree::Algorithm::*;
        match policy {
            Policy::Default => true,
            Policy::FipsLike => !matches!(
                self,
                X25519 | X448 | EcdhBrainpoolP256r1 | EcdhBrainpoolP384r1 | EcdhBrainpoolP512r1
            ),
            Policy::Sm | Policy::PqOnly => false,
        }
    }
}

impl kem::Algorithm {
    /// Returns whether `policy` permits this algorithm. NIST approves a hybrid whose secret begins
    /// with that of ML-KEM (SP 800-227 §4.6).
    #[must_use]
    pub const fn is_allowed_by(self, policy: Policy) -> bool {
        match policy {
            Policy::Default | Policy::PqOnly => true,
            Policy::FipsLike => !matches!(self, Self::XWing),
            Policy::Sm => false,
        }
    }
}

impl encrypt::Algorithm {
    /// Returns whether `policy` permits this algorithm.
    #[must_use]
    pub const fn is_allowed_by(self, policy: Policy) -> bool {
        match policy {
            Policy::Default => !matches!(self, Self::RsaPkcs1),
            Policy::FipsLike => !matches!(self, Self::Sm2 | Self::RsaOaepSha1 | Self::RsaPkcs1),
            Policy::Sm => matches!(self, Self::Sm2),
            Policy::PqOnly => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use wraith_crypto::Suite;

    use super::*;

    #[test]
    fn each_policy_permits_exactly_its_algorithms() {
        let aeads = |policy| {
            let allowed = aead::Algorithm::ALL.iter().filter(|each| each.is_allowed_by(policy));
            allowed.map(|each| each.name()).collect::<Vec<_>>()
        };
        assert_eq!(aeads(Policy::Sm), ["SM4-GCM", "SM4-CCM"]);
        assert!(aeads(Policy::FipsLike).iter().all(|name| name.starts_with("AES-")));
        assert!(
            aeads(Policy::PqOnly).iter().all(|name| name.contains("256") || name.contains("20"))
        );
        for each in hash::Algorithm::ALL {
            assert_eq!(each.is_allowed_by(Policy::Sm), each.name() == "SM3");
            assert_eq!(
                each.is_allowed_by(Policy::FipsLike),
                each.standard().starts_with("FIPS") && each.name() != "SHA-1"
            );
            assert_eq!(each.is_allowed_by(Policy::PqOnly), each.digest_bytes() >= 32);
        }
        for each in sign::Algorithm::ALL {
            let name = each.name();
            assert_eq!(each.is_allowed_by(Policy::Sm), name == "SM2");
            assert_eq!(
                each.is_allowed_by(Policy::PqOnly),
                name.contains("DSA-") && !name.contains("ECDSA")
            );
            assert_eq!(
                each.is_allowed_by(Policy::FipsLike),
                !name.contains("brainpool") && name != "SM2"
            );
        }
        for each in kem::Algorithm::ALL {
            assert!(each.is_allowed_by(Policy::PqOnly) && !each.is_allowed_by(Policy::Sm));
        }
        for each in encrypt::Algorithm::ALL {
            let name = each.name();
            assert_eq!(each.is_allowed_by(Policy::Default), name != "RSA-PKCS1");
            let oaep = name.starts_with("RSA-OAEP-SHA-") && name != "RSA-OAEP-SHA-1";
            assert_eq!(each.is_allowed_by(Policy::FipsLike), oaep);
            assert_eq!(each.is_allowed_by(Policy::Sm), name == "SM2");
            assert!(!each.is_allowed_by(Policy::PqOnly));
        }
        for each in mac::Algorithm::ALL {
            let name = each.name();
            assert_eq!(each.is_allowed_by(Policy::Sm), name.contains("SM"));
            assert!(!each.is_allowed_by(Policy::FipsLike) || !name.contains("SM"));
            assert!(!each.is_allowed_by(Policy::PqOnly) || each.tag_bytes() >= 16);
        }
        assert!(agree::Algorithm::ALL.iter().all(|each| !each.is_allowed_by(Policy::PqOnly)));
        assert!(cipher::Algorithm::ALL.iter().all(|each| {
            each.is_allowed_by(Policy::FipsLike) == each.name().starts_with("AES")
        }));
    }

    #[test]
    fn packets_are_sealed_with_what_the_policy_allows() {
        for policy in Policy::ALL {
            for suite in [Suite::Aes256Gcm, Suite::ChaCha20Poly1305, Suite::Sm4Gcm] {
                let offered = policy.packet_suites() & suite.bit() != 0;
                let allowed = aead::Algorithm::of_suite(suite).is_allowed_by(policy);
                // SM4 has 128-bit keys, and is offered only under the policy that demands it.
                assert_eq!(
                    offered,
                    allowed && (suite != Suite::Sm4Gcm || policy == Policy::Sm),
                    "{policy} {suite:?}"
                );
            }
        }
    }
}
