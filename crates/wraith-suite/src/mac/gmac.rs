//! GMAC over AES (NIST SP 800-38D): AES-GCM with associated data only. A nonce must never be used
//! twice under one key: two tags with the same nonce let an attacker forge others.
//!
//! On x86-64 with vector AES, our own code computes it. Elsewhere AWS-LC's AES-GCM computes it,
//! which accepts associated data in pieces.

use wraith_aws_lc::gmac::Gmac as AwsLcGmac;
use wraith_kernels::aes_gcm::{GcmKey, Ghash, Width};

use super::{Algorithm, block_mac};
use crate::Backend;

/// GMAC over one message. Wiped when dropped.
pub struct GmacAes(State);

struct State {
    algorithm: Algorithm,
    inner: Inner,
}

enum Inner {
    Bits128(Box<GcmKey<11>>, Ghash),
    Bits192(Box<GcmKey<13>>, Ghash),
    Bits256(Box<GcmKey<15>>, Ghash),
    AwsLcGmac(AwsLcGmac),
}

impl GmacAes {
    /// Starts a message. Returns `None` unless the key has 16, 24 or 32 bytes.
    #[must_use]
    pub fn new(key: &[u8], nonce: &[u8; 12]) -> Option<Self> {
        let algorithm = match key.len() {
            16 => Algorithm::GmacAes128,
            24 => Algorithm::GmacAes192,
            32 => Algorithm::GmacAes256,
            _ => return None,
        };
        let own = Self::own(key, nonce);
        let inner = own.or_else(|| AwsLcGmac::new(key, nonce).map(Inner::AwsLcGmac))?;
        Some(Self(State { algorithm, inner }))
    }

    fn own(key: &[u8], nonce: &[u8; 12]) -> Option<Inner> {
        let width = Width::best()?;
        let hash = Ghash::new(nonce);
        Some(match key.len() {
            16 => Inner::Bits128(GcmKey::new(key, width)?, hash),
            24 => Inner::Bits192(GcmKey::new(key, width)?, hash),
            _ => Inner::Bits256(GcmKey::new(key, width)?, hash),
        })
    }

    /// Returns the implementation on this processor.
    pub(super) fn backend() -> Backend {
        Backend::own_or(Width::best().map(Width::features), Backend::AwsLc)
    }
}

impl State {
    fn update(&mut self, data: &[u8]) {
        match &mut self.inner {
            Inner::Bits128(key, hash) => hash.update(key, data),
            Inner::Bits192(key, hash) => hash.update(key, data),
            Inner::Bits256(key, hash) => hash.update(key, data),
            Inner::AwsLcGmac(context) => context.update(data),
        }
    }

    /// Returns the tag. Takes a reference, because the state is too large to move. The caller must
    /// not add data afterwards.
    fn tag(&mut self) -> [u8; 16] {
        match &mut self.inner {
            Inner::Bits128(key, hash) => hash.finish(key),
            Inner::Bits192(key, hash) => hash.finish(key),
            Inner::Bits256(key, hash) => hash.finish(key),
            Inner::AwsLcGmac(context) => context.finish(),
        }
    }
}

block_mac!(GmacAes, tag);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_computes_what_aws_lc_does_for_every_length_and_cut() {
        let data: Vec<u8> = (0..=255).cycle().take(9000).collect();
        for (len, cut) in (0..800).map(|len| (len, len / 3)).chain([(8192, 100), (8999, 300)]) {
            for key_bytes in [16, 24, 32] {
                let (key, nonce) = (&data[len % 7..][..key_bytes], &[len as u8; 12]);
                let mut ours = GmacAes::new(key, nonce).unwrap();
                let mut library = AwsLcGmac::new(key, nonce).unwrap();
                ours.update(&data[..cut]);
                ours.update(&data[cut..len]);
                library.update(&data[..len]);
                assert_eq!(ours.finish(), library.finish(), "{key_bytes} {len}");
            }
        }
    }
}
