//! The block modes over the `aes` crate, which computes several blocks at a time in hardware or in
//! constant-time software.

use aes::cipher::{Array, BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Aes192, Aes256};

use super::{BLOCK, times_x};

type Block = [u8; BLOCK];

/// Number of blocks passed to the `aes` crate at once.
const BATCH: usize = 32;

#[derive(Clone)]
pub(super) enum Keys {
    Bits128(Aes128),
    Bits192(Aes192),
    Bits256(Aes256),
}

impl Keys {
    pub(super) fn new(key: &[u8]) -> Option<Self> {
        match key.len() {
            16 => Aes128::new_from_slice(key).ok().map(Self::Bits128),
            24 => Aes192::new_from_slice(key).ok().map(Self::Bits192),
            32 => Aes256::new_from_slice(key).ok().map(Self::Bits256),
            _ => None,
        }
    }

    pub(super) fn encrypt_block(&self, block: &mut Block) {
        self.ecb_encrypt(std::slice::from_mut(block));
    }

    pub(super) fn ecb_encrypt(&self, text: &mut [Block]) {
        let blocks = Array::cast_slice_from_core_mut(text);
        match self {
            Self::Bits128(key) => key.encrypt_blocks(blocks),
            Self::Bits192(key) => key.encrypt_blocks(blocks),
            Self::Bits256(key) => key.encrypt_blocks(blocks),
        }
    }

    pub(super) fn ecb_decrypt(&self, text: &mut [Block]) {
        let blocks = Array::cast_slice_from_core_mut(text);
        match self {
            Self::Bits128(key) => key.decrypt_blocks(blocks),
            Self::Bits192(key) => key.decrypt_blocks(blocks),
            Self::Bits256(key) => key.decrypt_blocks(blocks),
        }
    }

    pub(super) fn cbc_encrypt(&self, iv: &mut Block, text: &mut [Block]) {
        for block in text {
            xor(block, iv);
            self.encrypt_block(block);
            *iv = *block;
        }
    }

    pub(super) fn cbc_decrypt(&self, iv: &mut Block, text: &mut [Block]) {
        let mut before = [[0; BLOCK]; BATCH];
        for batch in text.chunks_mut(BATCH) {
            let before = &mut before[..batch.len()];
            before.copy_from_slice(batch);
            self.ecb_decrypt(batch);
            for (block, before) in batch.iter_mut().zip(before) {
                xor(block, iv);
                *iv = *before;
            }
        }
    }

    pub(super) fn cfb_encrypt(&self, iv: &mut Block, text: &mut [Block]) {
        for block in text {
            self.encrypt_block(iv);
            xor(block, iv);
            *iv = *block;
        }
    }

    pub(super) fn cfb_decrypt(&self, iv: &mut Block, text: &mut [Block]) {
        let mut stream = [[0; BLOCK]; BATCH];
        for batch in text.chunks_mut(BATCH) {
            let stream = &mut stream[..batch.len()];
            for (key, block) in stream.iter_mut().zip(&*batch) {
                *key = std::mem::replace(iv, *block);
            }
            self.ecb_encrypt(stream);
            batch.iter_mut().zip(stream).for_each(|(block, key)| xor(block, key));
        }
    }

    pub(super) fn ofb(&self, iv: &mut Block, text: &mut [Block]) {
        for block in text {
            self.encrypt_block(iv);
            xor(block, iv);
        }
    }

    pub(super) fn ctr(&self, counter: &mut Block, text: &mut [Block]) {
        let mut stream = [[0; BLOCK]; BATCH];
        let mut next = u128::from_be_bytes(*counter);
        for batch in text.chunks_mut(BATCH) {
            let stream = &mut stream[..batch.len()];
            for key in stream.iter_mut() {
                *key = next.to_be_bytes();
                next = next.wrapping_add(1);
            }
            self.ecb_encrypt(stream);
            batch.iter_mut().zip(stream).for_each(|(block, key)| xor(block, key));
        }
        *counter = next.to_be_bytes();
    }

    pub(super) fn xts_encrypt(&self, tweak: &mut Block, text: &mut [Block]) {
        Self::xts(tweak, text, |batch| self.ecb_encrypt(batch));
    }

    pub(super) fn xts_decrypt(&self, tweak: &mut Block, text: &mut [Block]) {
        Self::xts(tweak, text, |batch| self.ecb_decrypt(batch));
    }

    fn xts(tweak: &mut Block, text: &mut [Block], blocks: impl Fn(&mut [Block])) {
        let mut tweaks = [[0; BLOCK]; BATCH];
        let mut next = u128::from_le_bytes(*tweak);
        for batch in text.chunks_mut(BATCH) {
            for (block, tweak) in batch.iter_mut().zip(&mut tweaks) {
                *tweak = next.to_le_bytes();
                xor(block, tweak);
                next = times_x(next);
            }
            blocks(batch);
            batch.iter_mut().zip(&tweaks).for_each(|(block, tweak)| xor(block, tweak));
        }
        *tweak = next.to_le_bytes();
    }

    pub(super) fn cbc_mac(&self, state: &mut Block, data: &[Block]) {
        for block in data {
            xor(state, block);
            self.encrypt_block(state);
        }
    }

    pub(super) fn ccm<const SEAL: bool>(
        &self,
        mac: &mut Block,
        counter: &mut Block,
        text: &mut [Block],
    ) {
        if SEAL {
            self.cbc_mac(mac, text);
        }
        self.ctr(counter, text);
        if !SEAL {
            self.cbc_mac(mac, text);
        }
    }
}

fn xor(block: &mut Block, other: &Block) {
    *block = (u128::from_ne_bytes(*block) ^ u128::from_ne_bytes(*other)).to_ne_bytes();
}
