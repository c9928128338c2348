//! SM4: blocks, blocks with masks, counters, chains and CBC-MAC. Invariant: every kernel, the
//! portable code and the modes written with the `sm4` crate compute the same.

use sm4::cipher::{BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use wraith_kernels::modes::BlockCipher;
use wraith_kernels::sm4::{Block, Chain, Counter, Sm4, add};

use crate::guarded::Buffer;
use crate::input::Input;
use crate::levels::same;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    /// With a counter of all bits, or else of the lowest 32.
    Count {
        is_whole: bool,
    },
    Encrypt,
    Decrypt,
    EncryptMasked,
    DecryptMasked,
    Chain(Chain),
    Absorb,
}

const OPERATIONS: [Operation; 10] = [
    Operation::Count { is_whole: true },
    Operation::Count { is_whole: false },
    Operation::Encrypt,
    Operation::Decrypt,
    Operation::EncryptMasked,
    Operation::DecryptMasked,
    Operation::Chain(Chain::Cbc),
    Operation::Chain(Chain::Cfb),
    Operation::Chain(Chain::Ofb),
    Operation::Absorb,
];

pub(crate) fn run(input: &[u8]) {
    let mut input = Input(input);
    let operation = OPERATIONS[usize::from(input.byte()) % OPERATIONS.len()];
    let key = input.content_array();
    let (mut iv, mut len): (Block, _) = (input.content_array(), 16 * input.below(100));
    let split = 16 * input.below(len / 16 + 1);
    let places = [(); 2].map(|()| input.place());
    let (wrap, partial) = (input.byte(), usize::from(input.byte() % 16));
    if let Operation::Count { .. } = operation {
        // A counter also encrypts a part of a block.
        len += partial;
        let before = wrap / 4;
        match wrap % 4 {
            0 => {}
            1 => iv[12..].copy_from_slice(&(u32::MAX - u32::from(before)).to_be_bytes()),
            2 => iv[8..].copy_from_slice(&(u64::MAX - u64::from(before)).to_be_bytes()),
            _ => iv = (u128::MAX - u128::from(before)).to_be_bytes(),
        }
    }
    let (text, masks) = (input.content(len), input.content(len));
    let found = same(|| {
        let (sm4, mut iv) = (Sm4::new(&key), iv);
        let mut text = Buffer::new(places[0], &text);
        let masks = Buffer::new(places[1], &masks);
        let (first, second) = text.split_at_mut(split);
        let (first_masks, second_masks) = masks.split_at(split);
        iv = by_kernel(&sm4, operation, iv, first, first_masks);
        iv = by_kernel(&sm4, operation, iv, second, second_masks);
        (iv, text.to_vec())
    });
    let mut text = text;
    let iv = by_library(&key, operation, iv, &mut text, &masks);
    assert_eq!(found, (iv, text), "the crate sm4, {operation:?}");
}

/// Returns the value with which the next piece continues.
fn by_kernel(
    sm4: &Sm4,
    operation: Operation,
    mut iv: Block,
    text: &mut [u8],
    masks: &[u8],
) -> Block {
    if let Operation::Count { is_whole } = operation {
        let mut counter = if is_whole { Counter::whole(iv) } else { Counter::last_word(iv) };
        sm4.count(&mut counter, text);
        return counter.block();
    }
    let (blocks, masks) = (text.as_chunks_mut().0, masks.as_chunks().0);
    match operation {
        Operation::Encrypt | Operation::Count { .. } => sm4.ecb_encrypt(blocks),
        Operation::Decrypt => sm4.ecb_decrypt(blocks),
        Operation::EncryptMasked => sm4.masked::<true>(blocks, masks),
        Operation::DecryptMasked => sm4.masked::<false>(blocks, masks),
        Operation::Chain(chain) => sm4.chain(chain, &mut iv, blocks),
        Operation::Absorb => sm4.absorb(&mut iv, blocks),
    }
    iv
}

/// Does the same with one block after another of the crate.
fn by_library(
    key: &Block,
    operation: Operation,
    mut iv: Block,
    text: &mut [u8],
    masks: &[u8],
) -> Block {
    let sm4 = sm4::Sm4::new(key.into());
    let encrypt = |block: &mut [u8]| sm4.encrypt_block(block.try_into().expect("16 bytes"));
    let decrypt = |block: &mut [u8]| sm4.decrypt_block(block.try_into().expect("16 bytes"));
    for (block, mask) in text.chunks_mut(16).zip(masks.chunks(16)) {
        match operation {
            Operation::Count { is_whole } => {
                let mut stream = iv;
                encrypt(&mut stream);
                add(block, &stream);
                let next = u128::from_be_bytes(iv).wrapping_add(1).to_be_bytes();
                let counting = if is_whole { 0 } else { 12 };
                iv[counting..].copy_from_slice(&next[counting..]);
            }
            Operation::Encrypt => encrypt(block),
            Operation::Decrypt => decrypt(block),
            Operation::EncryptMasked | Operation::DecryptMasked => {
                add(block, mask);
                if operation == Operation::EncryptMasked {
                    encrypt(block)
                } else {
                    decrypt(block)
                }
                add(block, mask);
            }
            Operation::Chain(Chain::Cbc) => {
                add(block, &iv);
                encrypt(block);
                iv.copy_from_slice(block);
            }
            Operation::Chain(Chain::Cfb) => {
                encrypt(&mut iv);
                add(block, &iv);
                iv.copy_from_slice(block);
            }
            Operation::Chain(Chain::Ofb) => {
                encrypt(&mut iv);
                add(block, &iv);
            }
            Operation::Absorb => {
                add(&mut iv, block);
                encrypt(&mut iv);
            }
        }
    }
    iv
}
