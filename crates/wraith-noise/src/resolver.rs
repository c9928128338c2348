//! Construction of snow's handshake states with the [`primitives`](crate::primitives) of this
//! crate.
//!
//! The pattern is XK with the hybrid forward secrecy extension (the `hfs` modifier of the Noise
//! extension of that name). `e1` is an ML-KEM-768 encapsulation key, sealed under `es`. `ekem1` is
//! its ciphertext, sealed under `ee`; its shared secret is mixed in before anything else is sealed.

use snow::params::{
    BaseChoice, CipherChoice, DHChoice, HandshakeChoice, HandshakeModifier, HandshakeModifierList,
    HandshakePattern, HashChoice, KemChoice, NoiseParams,
};
use snow::{Builder, HandshakeState};
use wraith_crypto::elligator::EphemeralKey;
use wraith_crypto::{Suite, Wiped};
use zeroize::Zeroizing;

use crate::primitives::{KeyPair, MlKem, Resolver};

/// Noise protocol name of the handshake (SPEC §3).
const PROTOCOL: &str = "Noise_XKhfs_25519+MLKEM768_ChaChaPoly_SHA256";
const PROLOGUE: &[u8] = b"wraith/2";

/// Creates the initiator's state before H1. The prologue contains the representative, so that the
/// sealed parts also authenticate its spare bits.
pub(crate) fn initiator(
    static_secret: &[u8; 32],
    responder: &[u8; 32],
    ephemeral: &EphemeralKey,
    kem_seed: Zeroizing<[u8; 64]>,
) -> Wiped<HandshakeState> {
    let kem = MlKem::Generates(kem_seed);
    let state = builder(protocol(), KeyPair::from(ephemeral), kem)
        .prologue(&prologue(ephemeral.representative()))
        .and_then(|b| b.local_private_key(static_secret))
        .and_then(|b| b.remote_public_key(responder))
        .and_then(Builder::build_initiator);
    Wiped::new(
        state.expect("XK's initiator needs its own secret and the responder's key, and has both"),
    )
}

/// Creates the responder's state before it reads an H1 with the representative `theirs`.
pub(crate) fn responder(
    static_secret: &[u8; 32],
    ephemeral: &EphemeralKey,
    theirs: &[u8; 32],
    kem_seed: Zeroizing<[u8; 32]>,
) -> Wiped<HandshakeState> {
    let kem = MlKem::Encapsulates(kem_seed);
    let state = builder(protocol(), KeyPair::from(ephemeral), kem)
        .prologue(&prologue(theirs))
        .and_then(|b| b.local_private_key(static_secret))
        .and_then(Builder::build_responder);
    Wiped::new(state.expect("XK's responder needs its own secret and has it"))
}

fn prologue(representative: &[u8; 32]) -> Vec<u8> {
    [PROLOGUE, representative].concat()
}

/// Represents ML-KEM-768 in the parameters, because snow names no newer KEM. [`Resolver`] computes
/// ML-KEM-768, and [`PROTOCOL`] names it.
const MLKEM768: KemChoice = KemChoice::Kyber1024;

fn protocol() -> NoiseParams {
    NoiseParams::new(
        PROTOCOL.to_owned(),
        BaseChoice::Noise,
        HandshakeChoice {
            pattern: HandshakePattern::XK,
            modifiers: HandshakeModifierList { list: vec![HandshakeModifier::Hfs] },
        },
        DHChoice::Curve25519,
        Some(MLKEM768),
        CipherChoice::ChaChaPoly,
        HashChoice::SHA256,
    )
}

fn builder<'a>(params: NoiseParams, ephemeral: KeyPair, kem: MlKem) -> Builder<'a> {
    let suite = match params.cipher {
        CipherChoice::AESGCM => Suite::Aes256Gcm,
        CipherChoice::ChaChaPoly => Suite::ChaCha20Poly1305,
    };
    Builder::with_resolver(params, Box::new(Resolver { ephemeral, local: None, suite, kem }))
}

#[cfg(test)]
mod tests {
    use snow::types::Cipher;

    use super::*;
    use crate::primitives::Aead;

    struct Vector {
        pattern: &'static str,
        handshake_hash: &'static str,
        /// Pairs of payload and message, alternating between initiator and responder. The first
        /// three are the handshake.
        messages: [(&'static str, &'static str); 5],
    }

    #[test]
    fn aws_lc_computes_the_aead_of_handshakes() {
        let mut aead = Aead::new(Suite::ChaCha20Poly1305);
        aead.set(&[1; 32]);
        assert_eq!(aead.key().implementation(), wraith_crypto::Implementation::AwsLc);
    }

    const PAYLOADS: [&str; 5] = [
        "4c756477696720766f6e204d69736573",
        "4d757272617920526f746862617264",
        "462e20412e20486179656b",
        "4361726c204d656e676572",
        "4a65616e2d426170746973746520536179",
    ];

    /// The XK vectors for this crate's primitives in the Cacophony collection of Noise test
    /// vectors.
    const VECTORS: [Vector; 2] = [
        Vector {
            pattern: "Noise_XK_25519_ChaChaPoly_SHA256",
            handshake_hash: "cefffc5d1074126cc980ebfe902587ff36ba61dc77d4447ebe0f96dc22ae59d7",
            messages: [
                (
                    PAYLOADS[0],
                    "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c7944\
                     a3785af283c991bab613473804356ef6931f83acf64f99c274b93570857cfc5e",
                ),
                (
                    PAYLOADS[1],
                    "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f144808843\
                     3a4534805fa9fe4eb8343ace6609160c767ad9b832e8eea1d9b7a2111818dd",
                ),
                (
                    PAYLOADS[2],
                    "5d8e67b9c1b8e36f5dc674bc5cd2ce243fb5d1710fa57de0370da7cc97901539\
                     8eaad94603b05498ba9a613d2fd923dcaa6fd4288dfd8d70f419bf737efb4cd3\
                     7f5da37ebb728849318c82",
                ),
                (PAYLOADS[3], "3205e1265f809505e6edc092839d3156745d2abafbfd946b261e41"),
                (PAYLOADS[4], "470bcb1ae099555ff0d729500df550418d6ee5149d9e40bd2f4c6b3d263cc818d5"),
            ],
        },
        Vector {
            pattern: "Noise_XK_25519_AESGCM_SHA256",
            handshake_hash: "4f5a40e425d3adcdb2c715d988e4ef8763ed0f8aa0fe78e2d2879d71b2d38186",
            messages: [
                (
                    PAYLOADS[0],
                    "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c7944\
                     e11634ba393ac9f93896f767741fe7297c64b52a95b20bc07a8c5983eb100a5e",
                ),
                (
                    PAYLOADS[1],
                    "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f144808843\
                     aabea6c8883a5a6de7804420322c70994289ffe724df10411be50430b113da",
                ),
                (
                    PAYLOADS[2],
                    "99e0eed98437100ab575e5aa157f20ae23f024a43c58628646991c47e81e64af\
                     9c46165872069c5794e99a6d116142986f3b803df2a6c12f39702f669d5d7818\
                     511d6b41218f19cea974ea",
                ),
                (PAYLOADS[3], "c0502067840ee81f03a76badcc8c4264847069452a9f7531d74f68"),
                (PAYLOADS[4], "e2ce8208bd0c04c6ad779ae52b429d8cb6128a245297857e2c593576c75098b071"),
            ],
        },
    ];

    fn hex(text: &str) -> Vec<u8> {
        let digit = |c: u8| (c as char).to_digit(16).unwrap() as u8;
        text.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
    }

    /// Returns a builder for XK without the extension, as in the published vectors.
    fn plain<'a>(pattern: &str, ephemeral: &str) -> Builder<'a> {
        let secret: Zeroizing<[u8; 32]> = Zeroizing::new(hex(ephemeral).try_into().unwrap());
        builder(
            pattern.parse().unwrap(),
            KeyPair::of(secret),
            MlKem::Encapsulates(Zeroizing::default()),
        )
    }

    /// Returns both sides of a vector, before the first message.
    fn states(vector: &Vector) -> (HandshakeState, HandshakeState) {
        let prologue = hex("4a6f686e2047616c74");
        let initiator_secret =
            hex("e61ef9919cde45dd5f82166404bd08e38bceb5dfdfded0a34c8df7ed542214d1");
        let responder_secret =
            hex("4a3acbfdb163dec651dfa3194dece676d437029c62a408b4c5ea9114246e4893");
        let responder_public =
            hex("31e0303fd6418d2f8c0e78b91f22e8caed0fbe48656dcf4767e4834f701b8f62");
        let e = "893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a";
        let initiator = plain(vector.pattern, e)
            .prologue(&prologue)
            .and_then(|b| b.local_private_key(&initiator_secret))
            .and_then(|b| b.remote_public_key(&responder_public))
            .and_then(Builder::build_initiator)
            .unwrap();
        let e = "bbdb4cdbd309f1a1f2e1456967fe288cadd6f712d65dc7b7793d5e63da6b375b";
        let responder = plain(vector.pattern, e)
            .prologue(&prologue)
            .and_then(|b| b.local_private_key(&responder_secret))
            .and_then(Builder::build_responder)
            .unwrap();
        (initiator, responder)
    }

    #[test]
    fn our_primitives_reproduce_the_published_xk_vectors() {
        for vector in &VECTORS {
            let (mut writer, mut reader) = states(vector);
            for (payload, expected) in &vector.messages[..3] {
                let (payload, expected) = (hex(payload), hex(expected));
                let mut message = vec![0; expected.len()];
                assert_eq!(writer.write_message(&payload, &mut message), Ok(expected.len()));
                assert_eq!(message, expected);
                let mut read = vec![0; payload.len()];
                assert_eq!(reader.read_message(&message, &mut read), Ok(payload.len()));
                assert_eq!(read, payload);
                std::mem::swap(&mut writer, &mut reader);
            }
            // After three messages, `writer` is the responder.
            let split = writer.dangerously_get_raw_split();
            assert_eq!(split, reader.dangerously_get_raw_split());
            assert_eq!(writer.get_handshake_hash(), hex(vector.handshake_hash));
            let mut keys = [split.1, split.0].into_iter();
            for (payload, expected) in &vector.messages[3..] {
                let (payload, expected) = (hex(payload), hex(expected));
                let mut cipher = match vector.pattern.contains("AESGCM") {
                    true => Aead::new(Suite::Aes256Gcm),
                    false => Aead::new(Suite::ChaCha20Poly1305),
                };
                cipher.set(&keys.next().unwrap());
                let mut message = vec![0; expected.len()];
                assert_eq!(cipher.encrypt(0, &[], &payload, &mut message), expected.len());
                assert_eq!(message, expected);
            }
        }
    }

    #[test]
    fn the_pattern_is_xk_with_the_hybrid_extension() {
        let params = protocol();
        assert!(params.handshake.is_hfs() && !params.handshake.is_psk());
        assert_eq!(params.name, "Noise_XKhfs_25519+MLKEM768_ChaChaPoly_SHA256");
    }
}
