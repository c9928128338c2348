//! AES-256-GCM from the `aes` crate and the portable GHASH, as NIST SP 800-38D writes it: the twin
//! of this module's kernels.

use aes::Aes256Enc;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};

use super::BLOCK;
use crate::ghash_portable::absorb;

/// Encrypts `text` in place and returns the tag. The nonce has 12 bytes.
pub(crate) fn seal(key: &[u8; 32], nonce: &[u8; 12], aad: &[u8], text: &mut [u8]) -> [u8; BLOCK] {
    let cipher = Aes256Enc::new(key.into());
    let encrypted = |block: [u8; BLOCK]| {
        let mut block = Array::from(block);
        cipher.encrypt_block(&mut block);
        <[u8; BLOCK]>::from(block)
    };
    let counter = |count: u32| {
        let mut block = [0; BLOCK];
        block[..12].copy_from_slice(nonce);
        block[12..].copy_from_slice(&count.to_be_bytes());
        encrypted(block)
    };
    for (block, count) in text.chunks_mut(BLOCK).zip(2..) {
        block.iter_mut().zip(counter(count)).for_each(|(byte, key)| *byte ^= key);
    }
    let hash_key = u128::from_be_bytes(encrypted([0; BLOCK]));
    let lengths = (aad.len() as u128) << 67 | (text.len() as u128) << 3;
    let sum = absorb(hash_key, absorb(hash_key, 0, aad), text);
    let sum = absorb(hash_key, sum, &lengths.to_be_bytes());
    (sum ^ u128::from_be_bytes(counter(1))).to_be_bytes()
}
