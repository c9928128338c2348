//! Cookies: proof that an initiator receives at its address. A responder under load demands a
//! cookie before any public-key operation (SPEC §3.6).
//!
//! The scheme is WireGuard's. A cookie is a MAC over the initiator's address under a secret of the
//! responder, so the responder keeps no state per address. The cookie is sent encrypted and
//! authenticated. Reading or forging it needs both the access key and the first handshake message
//! (H1) that the cookie answers. The initiator then repeats its H1 with a second MAC, keyed with
//! the cookie.

use std::ops::RangeInclusive;

use rand_core::CryptoRng;
use wraith_crypto::aead::{AeadKey, NONCE_BYTES};
use wraith_crypto::{Suite, TAG_BYTES, equal, kdf};
use zeroize::{ZeroizeOnDrop, Zeroizing};

use crate::access_key::AccessKey;
use crate::flight::draw_len;
use crate::h1::{H1_MACS_BYTES, MAC2_BYTES};

/// Length of a cookie in bytes.
const COOKIE_BYTES: usize = 32;
/// Length of a cookie datagram: less than half of the shortest first datagram of H1.
pub const COOKIE_DATAGRAM_BYTES: RangeInclusive<usize> = 64..=300;

/// Secret from which a responder derives cookies. Wiped when dropped.
#[derive(Clone, ZeroizeOnDrop)]
pub struct CookieSecret([u8; 32]);

impl CookieSecret {
    /// Draws a secret from `rng`.
    #[must_use]
    pub fn draw(rng: &mut impl CryptoRng) -> Self {
        let mut secret = Self([0; 32]);
        rng.fill_bytes(&mut secret.0);
        secret
    }

    /// Returns the cookie of `address`. The encoding of `address` must differ for different
    /// addresses.
    #[must_use]
    pub fn cookie(&self, address: &[u8]) -> Cookie {
        Cookie(kdf::keyed(&self.0, address))
    }
}

wraith_crypto::redacted_debug!(CookieSecret);

/// Proof that the sender also receives at its source address. Wiped when dropped.
#[derive(Clone, ZeroizeOnDrop)]
pub struct Cookie([u8; COOKIE_BYTES]);

impl Cookie {
    /// Returns whether the mac2 of `h1` was made with this cookie.
    #[must_use]
    pub fn verifies(&self, h1: &[u8]) -> bool {
        let Some((rest, macs)) = h1.split_last_chunk::<H1_MACS_BYTES>() else { return false };
        equal(&kdf::keyed(&self.0, rest)[..MAC2_BYTES], &macs[..MAC2_BYTES])
    }

    /// Writes the mac2 of an H1. The caller has to write the mac1 afterwards.
    pub(crate) fn write_mac2(&self, h1: &mut [u8]) {
        let (rest, macs) = h1.split_at_mut(h1.len() - H1_MACS_BYTES);
        macs[..MAC2_BYTES].copy_from_slice(&kdf::keyed(&self.0, rest)[..MAC2_BYTES]);
    }

    /// Seals the cookie into a datagram for the sender of `h1`. The length is drawn from
    /// [`COOKIE_DATAGRAM_BYTES`].
    #[must_use]
    pub fn seal(&self, access_key: &AccessKey, h1: &[u8], rng: &mut impl CryptoRng) -> Vec<u8> {
        let len = draw_len(rng, COOKIE_DATAGRAM_BYTES);
        let mut datagram = vec![0; len];
        let (nonce, sealed) = datagram.split_at_mut(NONCE_BYTES);
        rng.fill_bytes(nonce);
        let (text, tag) = sealed.split_at_mut(len - NONCE_BYTES - TAG_BYTES);
        text[..COOKIE_BYTES].copy_from_slice(&self.0);
        let nonce = *nonce.first_chunk().expect("it has the length of a nonce");
        tag.copy_from_slice(&CookieKey::new(access_key, h1).0.seal(nonce, &[], text));
        datagram
    }
}

wraith_crypto::redacted_debug!(Cookie);

/// Key that seals the cookie for one H1.
pub(crate) struct CookieKey(AeadKey);

impl CookieKey {
    pub(crate) fn new(access_key: &AccessKey, h1: &[u8]) -> Self {
        let parts: [&[u8]; 2] = [access_key.as_bytes(), &kdf::hash(h1)];
        let key = Zeroizing::new(kdf::derive_parts("wraith/2 cookie", &parts));
        Self(AeadKey::library(Suite::ChaCha20Poly1305, &key))
    }

    /// Returns the cookie in `datagram` if it answers the H1 of this key.
    pub(crate) fn open(&self, datagram: &[u8]) -> Option<Cookie> {
        if !COOKIE_DATAGRAM_BYTES.contains(&datagram.len()) {
            return None;
        }
        let (nonce, sealed) = datagram.split_first_chunk::<NONCE_BYTES>()?;
        let mut text = Zeroizing::new(sealed.to_vec());
        self.0.open(*nonce, &[], &mut text).ok()?;
        text.first_chunk().copied().map(Cookie)
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha20Rng;
    use rand_chacha::rand_core::SeedableRng;

    use wraith_crypto::NodeId;

    use super::*;

    fn bob() -> AccessKey {
        AccessKey::public(NodeId([5; 32]))
    }

    fn sealed(seed: u8) -> Vec<u8> {
        let mut rng = ChaCha20Rng::from_seed([seed; 32]);
        CookieSecret([1; 32]).cookie(b"address").seal(&bob(), b"H1", &mut rng)
    }

    #[test]
    fn only_the_sender_of_h1_with_the_access_key_reads_the_cookie() {
        let read = CookieKey::new(&bob(), b"H1").open(&sealed(1)).expect("ours");
        assert_eq!(read.0, kdf::keyed(&[1; 32], b"address"));
        assert!(CookieKey::new(&bob(), b"another").open(&sealed(1)).is_none());
        assert!(
            CookieKey::new(&AccessKey::public(NodeId([6; 32])), b"H1").open(&sealed(1)).is_none()
        );
    }

    #[test]
    fn no_changed_byte_and_no_other_length_is_taken_for_one() {
        let (key, datagram) = (CookieKey::new(&bob(), b"H1"), sealed(1));
        for byte in 0..datagram.len() {
            let mut changed = datagram.clone();
            changed[byte] ^= 1;
            assert!(key.open(&changed).is_none(), "byte {byte}");
            assert!(key.open(&datagram[..byte]).is_none());
        }
    }

    #[test]
    fn lengths_and_bytes_differ_from_one_to_the_next() {
        let lens: std::collections::HashSet<_> = (0..200).map(|seed| sealed(seed).len()).collect();
        assert!(lens.len() > 50 && lens.iter().all(|len| COOKIE_DATAGRAM_BYTES.contains(len)));
        assert_ne!(sealed(1)[..44], sealed(2)[..44]);
    }

    #[test]
    fn mac2_is_under_the_cookie_and_over_everything_before_it() {
        let cookie = CookieSecret([1; 32]).cookie(b"address");
        let mut h1 = vec![7; 900];
        assert!(!cookie.verifies(&h1));
        cookie.write_mac2(&mut h1);
        assert_eq!(h1[868..884], kdf::keyed(&cookie.0, &[7; 868])[..16]);
        assert!(cookie.verifies(&h1));
        assert!(!CookieSecret([2; 32]).cookie(b"address").verifies(&h1));
        assert!(!CookieSecret([1; 32]).cookie(b"elsewhere").verifies(&h1));
        h1[0] ^= 1;
        assert!(!cookie.verifies(&h1));
    }
}
