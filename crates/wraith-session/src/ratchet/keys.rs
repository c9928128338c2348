//! The key schedule of the ratchet: derivation of root, chain, header and body keys. All of it uses
//! BLAKE3.
//!
//! | function | computation |
//! |---|---|
//! | root step | `seed = derive(context, root ‖ dh)`, or of `root ‖ dh ‖ ss ‖ hash(ek ‖ ct)` in a hybrid step; new root, chain key and next header key are `keyed(seed, 1)`, `keyed(seed, 2)`, `keyed(seed, 3)` |
//! | chain step | message key, next key and first key of the level below: `keyed(key, 1)`, `keyed(key, 2)`, `keyed(key, 3)` (module `chain`) |
//! | body key | `keyed(message key, all fields in front of the body)` |
//!
//! Invariant: a body key seals one text. The body key depends on the 16 random bytes at the front
//! of the message. So the invariant holds even if a rolled-back state derives the same message key
//! again.

use wraith_crypto::{AeadKey, Suite, kdf, redacted_debug};
use zeroize::Zeroizing;

/// 32 secret bytes, wiped when dropped.
pub(super) type Secret = Zeroizing<[u8; 32]>;

/// Length from which an implementation with a longer key setup is faster. On a processor with
/// AVX-512 the implementation of this project takes 380 ns per key and 0.14 ns per byte, AWS-LC 170
/// ns and 0.2 ns.
const LONG_TEXT_BYTES: usize = 4096;

const ROOT: &str = "wraith session/1 ratchet root";
const HYBRID_ROOT: &str = "wraith session/1 ratchet hybrid root";
const KEM_PART: &str = "wraith session/1 ratchet kem part";

/// Returns `keyed(key, [label])`.
pub(super) fn expand(key: &[u8; 32], label: u8) -> Secret {
    Zeroizing::new(kdf::keyed(key, &[label]))
}

/// Contribution of ML-KEM to a root step: the secret, and the hash of key and ciphertext.
pub(super) struct KemShare {
    pub(super) secret: Secret,
    pub(super) transcript: [u8; 32],
}

impl KemShare {
    /// Binds `secret` to the `key` and `ciphertext` that agreed on it.
    pub(super) fn new(secret: Secret, key: &[u8], ciphertext: &[u8]) -> Self {
        let transcript =
            kdf::derive_parts("wraith session/1 ratchet kem transcript", &[key, ciphertext]);
        Self { secret, transcript }
    }
}

/// Output of one half of a DH ratchet step.
pub(super) struct RootStep {
    pub(super) root: Secret,
    pub(super) chain: Secret,
    pub(super) next_header: Secret,
}

/// KDF_RK_HE of the specification, with an optional ML-KEM contribution.
pub(super) fn root_step(root: &Secret, dh: &Secret, kem: Option<&KemShare>) -> RootStep {
    let seed = Zeroizing::new(match kem {
        None => kdf::derive_parts(ROOT, &[&root[..], &dh[..]]),
        Some(kem) => {
            let parts = [&root[..], &dh[..], &kem.secret[..], &kem.transcript[..]];
            kdf::derive_parts(HYBRID_ROOT, &parts)
        }
    });
    RootStep { root: expand(&seed, 1), chain: expand(&seed, 2), next_header: expand(&seed, 3) }
}

/// Returns the key of one body. `bound` holds the fields in front of it in its message.
pub(super) fn body_key(suite: Suite, message_key: &Secret, bound: &[u8], len: usize) -> AeadKey {
    let key = Zeroizing::new(kdf::keyed(message_key, bound));
    if len < LONG_TEXT_BYTES { quick_key(suite, &key) } else { AeadKey::new(suite, &key) }
}

/// Returns the key of the ML-KEM part of one message.
pub(super) fn kem_part_key(suite: Suite, header: &Secret, salt: &[u8]) -> AeadKey {
    quick_key(suite, &Zeroizing::new(kdf::derive_parts(KEM_PART, &[&header[..], salt])))
}

/// Returns a key for few bytes, from the implementation with the shortest setup. For AES-256-GCM
/// that is not the one with the highest throughput.
pub(super) fn quick_key(suite: Suite, key: &[u8; 32]) -> AeadKey {
    match suite {
        Suite::Aes256Gcm => AeadKey::library(suite, key),
        _ => AeadKey::new(suite, key),
    }
}

/// The expanded header key of a current chain.
pub(super) struct HeaderKey {
    pub(super) secret: Secret,
    pub(super) cipher: AeadKey,
}

impl HeaderKey {
    pub(super) fn new(suite: Suite, secret: Secret) -> Self {
        let cipher = quick_key(suite, &secret);
        Self { secret, cipher }
    }
}

redacted_debug!(HeaderKey);
