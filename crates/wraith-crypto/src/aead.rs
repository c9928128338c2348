//! Authenticated encryption (AEAD). [`AeadKey`] seals with an explicit nonce. [`PacketKey`] seals
//! the packets of the transport; its nonce is the packet number (SPEC §4.2).
//!
//! The packet suites have these implementations, and [`Implementation`] names the one in use ("our
//! own" is a kernel of `wraith-kernels`, unless [`Backends`](crate::Backends) exclude it):
//!
//! - AES-256-GCM: our own on x86-64 with vector AES (VAES) of 512 or 256 bits, where it is at least
//!   1.5 times as fast on packets (`aes_gcm`); otherwise AWS-LC.
//! - ChaCha20-Poly1305: our own with AVX-512 and IFMA; otherwise AWS-LC.
//! - SM4-GCM: our own, compiled by the feature `sm4`.
//!
//! Invariant, which callers must keep: no nonce is used for two seals under one key.

mod implementation;
#[cfg(feature = "sm4")]
pub mod sm4_gcm;

use thiserror::Error;
use wraith_aws_lc::aead::{Aead as Library, AeadKey as LibraryKey};
use wraith_kernels::aes_gcm::{GcmKey, Width};
use wraith_kernels::chacha20_poly1305;
use zeroize::{ZeroizeOnDrop, Zeroizing};

pub use implementation::Implementation;
pub use wraith_kernels::detect::aes_hardware;

use crate::kdf;

/// Length of an authentication tag in bytes, the same for every suite.
pub const TAG_BYTES: usize = 16;
/// Length of a nonce in bytes, the same for every suite.
pub const NONCE_BYTES: usize = 12;

/// Error: a tag or a signature did not verify. Deliberately without details.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not authentic")]
pub struct Unauthentic;

/// Packet suite: the AEAD that seals packets. Negotiated in the handshake (SPEC §3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Suite {
    /// AES-256-GCM (NIST SP 800-38D): the faster suite on processors with AES instructions.
    Aes256Gcm,
    /// ChaCha20-Poly1305 (RFC 8439): fast in software, on any processor.
    ChaCha20Poly1305,
    /// SM4-GCM (RFC 8998), for users whose [policy](crate::Policy) demands it. Uses the first 16
    /// bytes of a 32-byte key. Only the feature `sm4` compiles it.
    Sm4Gcm,
}

impl Suite {
    /// Decodes the suite byte of payload 2. Returns `None` for a suite that is unknown or [not
    /// built](Self::is_built).
    #[must_use]
    pub const fn from_wire(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::Aes256Gcm),
            2 => Some(Self::ChaCha20Poly1305),
            3 if Self::Sm4Gcm.is_built() => Some(Self::Sm4Gcm),
            _ => None,
        }
    }

    /// Returns the suite byte of payload 2.
    #[must_use]
    pub const fn to_wire(self) -> u8 {
        match self {
            Self::Aes256Gcm => 1,
            Self::ChaCha20Poly1305 => 2,
            Self::Sm4Gcm => 3,
        }
    }

    /// Returns this suite's bit in the `suites` byte of payload 1.
    #[must_use]
    pub const fn bit(self) -> u8 {
        match self {
            Self::Aes256Gcm => 1,
            Self::ChaCha20Poly1305 => 2,
            Self::Sm4Gcm => 4,
        }
    }

    /// Returns the name of the algorithm.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Aes256Gcm => "AES-256-GCM",
            Self::ChaCha20Poly1305 => "ChaCha20-Poly1305",
            Self::Sm4Gcm => "SM4-GCM",
        }
    }

    /// Returns whether this build has the code of the suite: every suite but SM4-GCM, which needs
    /// the feature `sm4`.
    #[must_use]
    pub const fn is_built(self) -> bool {
        cfg!(feature = "sm4") || !matches!(self, Self::Sm4Gcm)
    }

    /// Every suite, also one that is not [built](Self::is_built).
    pub const ALL: [Self; 3] = [Self::Aes256Gcm, Self::ChaCha20Poly1305, Self::Sm4Gcm];
}

/// A key of one suite, for explicit nonces. Wiped when dropped; AWS-LC itself wipes all memory that
/// it frees.
pub struct AeadKey {
    cipher: Cipher,
    suite: Suite,
    implementation: Implementation,
}

impl ZeroizeOnDrop for AeadKey {}

enum Cipher {
    Own(Box<GcmKey>),
    ChaCha(chacha20_poly1305::Key),
    Library(LibraryKey),
    #[cfg(feature = "sm4")]
    Sm4(Box<sm4_gcm::Sm4Gcm>),
}

impl AeadKey {
    /// Creates a key from 32 bytes, with the fastest implementation on this processor.
    ///
    /// # Panics
    /// If the suite is not [built](Suite::is_built). Negotiation selects no such suite.
    #[must_use]
    pub fn new(suite: Suite, key: &[u8; 32]) -> Self {
        let mut able = Implementation::ALL.into_iter();
        able.find_map(|each| Self::with_implementation(suite, key, each))
            .expect("every built suite is computed everywhere, by AWS-LC or ours")
    }

    /// Creates a key from 32 bytes that AWS-LC computes, if it has the suite: for handshakes, codes
    /// and datagrams. Their texts are short, and strangers send some of them.
    ///
    /// # Panics
    /// As [`Self::new`].
    #[must_use]
    pub fn library(suite: Suite, key: &[u8; 32]) -> Self {
        let library = Self::with_implementation(suite, key, Implementation::AwsLc);
        library.unwrap_or_else(|| Self::new(suite, key))
    }

    /// Creates a key from 32 bytes, with the given implementation. Returns `None` if it is
    /// not [available](Implementation::is_available), or does not have this suite.
    #[must_use]
    pub fn with_implementation(
        suite: Suite,
        key: &[u8; 32],
        implementation: Implementation,
    ) -> Option<Self> {
        let cipher = match (implementation, suite) {
            (Implementation::AwsLc, Suite::Aes256Gcm) => Cipher::library(Library::Aes256Gcm, key),
            (Implementation::AwsLc, Suite::ChaCha20Poly1305) => {
                Cipher::library(Library::ChaCha20Poly1305, key)
            }
            #[cfg(feature = "sm4")]
            (Implementation::Sm4, Suite::Sm4Gcm) => {
                let key = key.first_chunk().expect("32 bytes hold 16");
                Cipher::Sm4(Box::new(sm4_gcm::Sm4Gcm::new(key)))
            }
            (Implementation::Vaes512, Suite::Aes256Gcm) => Cipher::own(key, Width::Bits512)?,
            (Implementation::Vaes256, Suite::Aes256Gcm) => Cipher::own(key, Width::Bits256)?,
            (Implementation::Ifma, Suite::ChaCha20Poly1305) => {
                Cipher::ChaCha(chacha20_poly1305::Key::new(key)?)
            }
            _ => return None,
        };
        Some(Self { cipher, suite, implementation })
    }

    /// Returns the implementation that this key uses.
    #[must_use]
    pub const fn implementation(&self) -> Implementation {
        self.implementation
    }

    /// Returns the suite of the key.
    #[must_use]
    pub const fn suite(&self) -> Suite {
        self.suite
    }

    /// Encrypts `in_out` in place and returns the tag over it and `aad`.
    #[must_use]
    pub fn seal(&self, nonce: [u8; NONCE_BYTES], aad: &[u8], in_out: &mut [u8]) -> [u8; TAG_BYTES] {
        match &self.cipher {
            Cipher::Own(key) => key.seal(&nonce, aad, in_out),
            Cipher::ChaCha(key) => key.crypt(true, &nonce, aad, in_out),
            Cipher::Library(key) => key
                .seal(&nonce, aad, in_out)
                .expect("messages are far below the suites' limit of 64 GiB"),
            #[cfg(feature = "sm4")]
            Cipher::Sm4(key) => key.seal(&nonce, aad, in_out),
        }
    }

    /// Encrypts `out[..filled]` ‖ `source` into `out` and returns the tag. Equivalent to copying
    /// `source` after the first `filled` bytes, then [`Self::seal`], but in one pass where the
    /// processor allows it.
    ///
    /// # Panics
    /// If the length of `out` is not `filled` plus the length of `source`.
    #[must_use]
    pub fn seal_from(
        &self,
        nonce: [u8; NONCE_BYTES],
        aad: &[u8],
        out: &mut [u8],
        filled: usize,
        source: &[u8],
    ) -> [u8; TAG_BYTES] {
        match &self.cipher {
            Cipher::Own(key) => key.seal_from(&nonce, aad, out, filled, source),
            _ => {
                assert_eq!(out.len(), filled + source.len(), "the source fills the rest");
                out[filled..].copy_from_slice(source);
                self.seal(nonce, aad, out)
            }
        }
    }

    /// Verifies and decrypts `in_out`, ciphertext ‖ tag, in place. The plaintext ends before the
    /// last 16 bytes.
    ///
    /// # Errors
    /// [`Unauthentic`] if the tag does not verify, or if `in_out` is shorter than a tag. The
    /// content of `in_out` is then unspecified.
    pub fn open(
        &self,
        nonce: [u8; NONCE_BYTES],
        aad: &[u8],
        in_out: &mut [u8],
    ) -> Result<(), Unauthentic> {
        match &self.cipher {
            Cipher::Own(key) => verified(in_out, |text| key.open(&nonce, aad, text)),
            Cipher::ChaCha(key) => verified(in_out, |text| key.crypt(false, &nonce, aad, text)),
            Cipher::Library(key) => {
                let (text, tag) = in_out.split_last_chunk_mut().ok_or(Unauthentic)?;
                key.open(&nonce, aad, text, tag).then_some(()).ok_or(Unauthentic)
            }
            #[cfg(feature = "sm4")]
            Cipher::Sm4(key) => verified(in_out, |text| key.open(&nonce, aad, text)),
        }
    }
}

/// Decrypts the bytes before the tag and compares the tag. `open` returns the expected tag.
#[inline]
fn verified(
    in_out: &mut [u8],
    open: impl FnOnce(&mut [u8]) -> [u8; TAG_BYTES],
) -> Result<(), Unauthentic> {
    let (text, tag) = in_out.split_last_chunk_mut().ok_or(Unauthentic)?;
    let expected = open(text);
    // One comparison of 128 bits, so its time does not depend on where the tags differ.
    let differs = u128::from_ne_bytes(*tag) ^ u128::from_ne_bytes(expected);
    if differs == 0 { Ok(()) } else { Err(Unauthentic) }
}

/// Describes the implementation of a suite on this processor, for people.
///
/// # Panics
/// As [`AeadKey::new`].
#[must_use]
pub fn implementation(suite: Suite) -> String {
    let implementation = AeadKey::new(suite, &[0; 32]).implementation();
    match (implementation, suite) {
        (Implementation::AwsLc, Suite::Aes256Gcm) if aes_hardware() => {
            format!("{implementation}, AES instructions")
        }
        (Implementation::AwsLc, Suite::Aes256Gcm) => {
            format!("{implementation}, no AES instructions")
        }
        _ => implementation.to_string(),
    }
}

impl Cipher {
    fn own(key: &[u8; 32], width: Width) -> Option<Self> {
        Some(Self::Own(GcmKey::new(key, width)?))
    }

    fn library(aead: Library, key: &[u8; 32]) -> Self {
        Self::Library(LibraryKey::new(aead, key).expect("these AEADs take 32-byte keys"))
    }
}

crate::redacted_debug!(AeadKey, suite);

/// Key of one direction in one key phase: the AEAD key and the IV derived from a packet secret
/// (SPEC §3.5). Wiped when dropped.
#[derive(ZeroizeOnDrop)]
pub struct PacketKey {
    key: AeadKey,
    iv: [u8; NONCE_BYTES],
}

impl PacketKey {
    /// Derives `key_n` and `iv_n` from `secret_n`.
    ///
    /// # Panics
    /// As [`AeadKey::new`].
    #[must_use]
    pub fn new(suite: Suite, secret: &[u8; 32]) -> Self {
        let key = Zeroizing::new(kdf::derive("wraith/1 packet key", secret));
        let iv = Zeroizing::new(kdf::derive("wraith/1 packet iv", secret));
        let iv = *iv.first_chunk().expect("32 bytes hold 12");
        Self { key: AeadKey::new(suite, &key), iv }
    }

    /// Encrypts `in_out` in place and returns the tag. `pn` must never have been sealed under this
    /// key before.
    #[must_use]
    pub fn seal(&self, pn: u64, aad: &[u8], in_out: &mut [u8]) -> [u8; TAG_BYTES] {
        self.key.seal(self.nonce(pn), aad, in_out)
    }

    /// Like [`AeadKey::seal_from`], with the nonce of [`Self::seal`].
    #[must_use]
    pub fn seal_from(
        &self,
        pn: u64,
        aad: &[u8],
        out: &mut [u8],
        filled: usize,
        source: &[u8],
    ) -> [u8; TAG_BYTES] {
        self.key.seal_from(self.nonce(pn), aad, out, filled, source)
    }

    /// Verifies and decrypts `in_out`, ciphertext ‖ tag, in place. The plaintext ends before the
    /// last 16 bytes.
    ///
    /// # Errors
    /// As [`AeadKey::open`].
    pub fn open(&self, pn: u64, aad: &[u8], in_out: &mut [u8]) -> Result<(), Unauthentic> {
        self.key.open(self.nonce(pn), aad, in_out)
    }

    /// Returns the IV XOR the 64-bit packet number, right-aligned (SPEC §4.2).
    fn nonce(&self, pn: u64) -> [u8; NONCE_BYTES] {
        let mut nonce = self.iv;
        for (byte, pn) in nonce[4..].iter_mut().zip(pn.to_be_bytes()) {
            *byte ^= pn;
        }
        nonce
    }
}

crate::redacted_debug!(|it: PacketKey| suite: it.key.suite);

#[cfg(test)]
mod tests {
    use data_encoding::HEXLOWER;
    use proptest::prelude::*;

    use super::*;

    fn suites() -> Vec<Suite> {
        Suite::ALL.into_iter().filter(|suite| suite.is_built()).collect()
    }

    fn hex(text: &str) -> Vec<u8> {
        HEXLOWER.decode(text.as_bytes()).unwrap()
    }

    fn known_answer(suite: Suite, key: &str, nonce: &str, aad: &str, plain: &[u8], sealed: &str) {
        let key = AeadKey::new(suite, hex(key).as_slice().try_into().unwrap());
        let nonce: [u8; 12] = hex(nonce).as_slice().try_into().unwrap();
        let mut text = plain.to_vec();
        let tag = key.seal(nonce, &hex(aad), &mut text);
        text.extend(tag);
        assert_eq!(HEXLOWER.encode(&text), sealed);
        key.open(nonce, &hex(aad), &mut text).unwrap();
        assert_eq!(&text[..plain.len()], plain);
    }

    #[test]
    fn chacha20_poly1305_matches_rfc_8439_section_2_8_2() {
        known_answer(
            Suite::ChaCha20Poly1305,
            "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f",
            "070000004041424344454647",
            "50515253c0c1c2c3c4c5c6c7",
            b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the \
              future, sunscreen would be it.",
            "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d6\
             3dbea45e8ca9671282fafb69da92728b1a71de0a9e060b2905d6a5b67ecd3b36\
             92ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc\
             3ff4def08e4b7a9de576d26586cec64b61161ae10b594f09e26a7e902ecbd0600691",
        );
    }

    #[test]
    fn aes_256_gcm_matches_test_case_16_of_the_gcm_submission() {
        known_answer(
            Suite::Aes256Gcm,
            "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308",
            "cafebabefacedbaddecaf888",
            "feedfacedeadbeeffeedfacedeadbeefabaddad2",
            &hex("d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72\
                  1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39"),
            "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa\
             8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f66276fc6ece0f4e1768cddf8853bb2d551b",
        );
    }

    #[test]
    fn short_texts_are_computed_by_the_library() {
        for suite in suites() {
            let found = AeadKey::library(suite, &[1; 32]).implementation();
            let has_none = suite == Suite::Sm4Gcm;
            assert_eq!(found == Implementation::AwsLc, !has_none, "{suite:?}");
        }
    }

    #[test]
    #[should_panic(expected = "the source fills the rest")]
    fn a_source_of_the_wrong_length_is_refused() {
        let key = AeadKey::new(Suite::Aes256Gcm, &[1; 32]);
        let _ = key.seal_from([0; 12], b"", &mut [0; 20], 4, &[0; 15]);
    }

    #[test]
    fn the_nonce_is_the_iv_xor_the_packet_number() {
        for suite in suites() {
            let secret = [7; 32];
            let packet = PacketKey::new(suite, &secret);
            let plain = AeadKey::new(suite, &kdf::derive("wraith/1 packet key", &secret));
            let mut nonce: [u8; 12] =
                kdf::derive("wraith/1 packet iv", &secret)[..12].try_into().unwrap();
            nonce[11] ^= 0x02;
            nonce[4] ^= 0x01;
            let (mut a, mut b) = (*b"same text", *b"same text");
            let tag = packet.seal(0x0100_0000_0000_0002, b"aad", &mut a);
            assert_eq!(tag, plain.seal(nonce, b"aad", &mut b));
            assert_eq!(a, b);
        }
    }

    #[test]
    fn a_message_shorter_than_a_tag_is_not_authentic() {
        for suite in suites() {
            for len in 0..TAG_BYTES {
                let key = PacketKey::new(suite, &[1; 32]);
                assert_eq!(key.open(0, b"", &mut vec![0; len]), Err(Unauthentic));
            }
        }
    }

    #[test]
    fn the_wire_bytes_of_the_suites_are_those_of_the_specification() {
        assert_eq!(Suite::ALL.map(Suite::to_wire), [1, 2, 3]);
        assert_eq!(Suite::ALL.map(Suite::bit), [1, 2, 4]);
        for byte in 0..=u8::MAX {
            assert!(Suite::from_wire(byte).is_none_or(|suite| suite.to_wire() == byte));
        }
        assert_eq!(Suite::from_wire(0), None);
        assert_eq!(Suite::from_wire(4), None);
    }

    #[test]
    fn a_suite_that_is_not_built_has_no_wire_byte_and_no_key() {
        for suite in Suite::ALL {
            let found = Suite::from_wire(suite.to_wire());
            assert_eq!(found, suite.is_built().then_some(suite));
            let made = |each| AeadKey::with_implementation(suite, &[1; 32], each).is_some();
            assert_eq!(Implementation::ALL.into_iter().any(made), suite.is_built());
        }
        assert_eq!(Suite::Sm4Gcm.is_built(), cfg!(feature = "sm4"));
    }

    proptest! {
        #[test]
        fn sealed_texts_open_and_modified_ones_do_not(
            suite in prop::sample::select(suites()), secret: [u8; 32], pn: u64, aad in prop::collection::vec(any::<u8>(), 0..20),
            text in prop::collection::vec(any::<u8>(), 0..300), flip: prop::sample::Index, bit in 0..8u8,
        ) {
            let key = PacketKey::new(suite, &secret);
            let mut sealed = text.clone();
            let tag = key.seal(pn, &aad, &mut sealed);
            sealed.extend(tag);

            let mut changed = sealed.clone();
            changed[flip.index(sealed.len())] ^= 1 << bit;
            prop_assert_eq!(key.open(pn, &aad, &mut changed), Err(Unauthentic));
            prop_assert_eq!(key.open(pn ^ 1, &aad, &mut sealed.clone()), Err(Unauthentic));
            prop_assert_eq!(key.open(pn, b"some other associated data", &mut sealed.clone()), Err(Unauthentic));

            prop_assert_eq!(key.open(pn, &aad, &mut sealed), Ok(()));
            prop_assert_eq!(&sealed[..text.len()], &text[..]);
        }
    }
}
