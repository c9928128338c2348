//! Single blocks, pairs and the block modes of AES. Invariant: every kernel, the `aes` crate and
//! AWS-LC compute the same, and a text in two pieces is the text as a whole.

use wraith_aws_lc::reference::{self, AesMode};
use wraith_kernels::aes::Aes;
use wraith_kernels::aes_gcm::RoundKeys;
use wraith_kernels::modes::{BLOCK, Block, BlockCipher, Tweaks};

use crate::guarded::Buffer;
use crate::input::Input;
use crate::levels::{portable, same};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Plain(AesMode, bool),
    /// With the tweak of the first block already encrypted.
    Xts(bool),
    CbcMac,
    Ccm(bool),
}

const MODES: [Mode; 13] = [
    Mode::Plain(AesMode::Ecb, true),
    Mode::Plain(AesMode::Ecb, false),
    Mode::Plain(AesMode::Cbc, true),
    Mode::Plain(AesMode::Cbc, false),
    Mode::Plain(AesMode::Cfb, true),
    Mode::Plain(AesMode::Cfb, false),
    Mode::Plain(AesMode::Ofb, true),
    Mode::Plain(AesMode::Ctr, true),
    Mode::Xts(true),
    Mode::Xts(false),
    Mode::CbcMac,
    Mode::Ccm(true),
    Mode::Ccm(false),
];

pub(crate) fn run(input: &[u8]) {
    let mut input = Input(input);
    let (operation, key_bytes) = (input.byte() % 15, 16 + 8 * usize::from(input.byte() % 3));
    let key = input.content(key_bytes);
    let Some(&mode) = MODES.get(usize::from(operation)) else {
        return blocks(&mut input, &key);
    };
    let (mut iv, len) = (input.content_array(), input.below(100));
    let text = input.content(len * BLOCK);
    let (place, split) = (input.place(), input.below(len + 1) * BLOCK);
    wrap_soon(&mut input, &mut iv);
    // The lower half of this counter must not overflow.
    let mut counter: Block = input.content_array();
    counter[8] &= 0x7f;

    let found = same(|| {
        let aes = Aes::new(&key).expect("a length of a key");
        let (mut iv, mut counter) = (iv, counter);
        let mut text = Buffer::new(place, &text);
        let (first, second) = text.split_at_mut(split);
        for piece in [first, second] {
            compute(&aes, mode, &mut iv, &mut counter, piece.as_chunks_mut().0);
        }
        (iv, counter, text.to_vec())
    });
    let mut text = text;
    expect(mode, &key, &mut iv, &counter, &mut text);
    assert_eq!(found.2, text, "AWS-LC, {mode:?}");
    if matches!(mode, Mode::CbcMac | Mode::Ccm(_)) {
        assert_eq!(found.0, iv, "AWS-LC, {mode:?}");
    }
    if mode == Mode::Xts(true) {
        xts_with_unit(&mut input, &key, &text);
    }
}

/// Lets the counter in `iv` overflow in its lower 32, 64 or 128 bits after few blocks.
fn wrap_soon(input: &mut Input<'_>, iv: &mut Block) {
    let (kind, before) = (input.byte() % 4, input.byte());
    let from = match kind {
        0 => return,
        1 => 12,
        2 => 8,
        _ => 0,
    };
    iv[from..].fill(0xff);
    iv[BLOCK - 1] -= before;
}

fn compute(aes: &Aes, mode: Mode, iv: &mut Block, counter: &mut Block, text: &mut [Block]) {
    match mode {
        Mode::Plain(AesMode::Ecb, true) => aes.ecb_encrypt(text),
        Mode::Plain(AesMode::Ecb, false) => aes.ecb_decrypt(text),
        Mode::Plain(AesMode::Cbc, true) => aes.cbc_encrypt(iv, text),
        Mode::Plain(AesMode::Cbc, false) => aes.cbc_decrypt(iv, text),
        Mode::Plain(AesMode::Cfb, true) => aes.cfb_encrypt(iv, text),
        Mode::Plain(AesMode::Cfb, false) => aes.cfb_decrypt(iv, text),
        Mode::Plain(AesMode::Ofb, _) => aes.ofb(iv, text),
        Mode::Plain(AesMode::Ctr, _) => aes.ctr(iv, text),
        Mode::Xts(true) | Mode::Plain(AesMode::Xts, true) => xts::<true>(aes, iv, text),
        Mode::Xts(false) | Mode::Plain(AesMode::Xts, false) => xts::<false>(aes, iv, text),
        Mode::CbcMac => aes.cbc_mac(iv, text),
        Mode::Ccm(true) => aes.ccm::<true>(iv, counter, text),
        Mode::Ccm(false) => aes.ccm::<false>(iv, counter, text),
    }
}

/// Computes XTS from the tweak in `iv` on.
fn xts<const ENCRYPT: bool>(aes: &Aes, iv: &mut Block, text: &mut [Block]) {
    let mut tweaks = Tweaks { next: *iv, ieee: true };
    aes.xts::<ENCRYPT>(&mut tweaks, text);
    *iv = tweaks.next;
}

/// Computes the same with AWS-LC. Of the values that the next piece would continue with, only that
/// of a MAC is set.
fn expect(mode: Mode, key: &[u8], iv: &mut Block, counter: &Block, text: &mut [u8]) {
    let aws_lc = |mode, encrypt, iv: &Block, text: &mut [u8]| {
        assert!(reference::aes(mode, encrypt, key, iv, text), "AWS-LC takes whole blocks");
    };
    let mac = |iv: &mut Block, text: &[u8]| {
        let mut text = text.to_vec();
        aws_lc(AesMode::Cbc, true, iv, &mut text);
        *iv = text.last_chunk().copied().unwrap_or(*iv);
    };
    match mode {
        Mode::Plain(mode, encrypt) => aws_lc(mode, encrypt, iv, text),
        Mode::Xts(encrypt) => {
            let mut tweaks = text.to_vec();
            for tweak in tweaks.as_chunks_mut().0 {
                *tweak = *iv;
                *iv = next_tweak(*iv);
            }
            add(text, &tweaks);
            aws_lc(AesMode::Ecb, encrypt, iv, text);
            add(text, &tweaks);
        }
        Mode::CbcMac => mac(iv, text),
        Mode::Ccm(seal) => {
            if seal {
                mac(iv, text);
            }
            aws_lc(AesMode::Ctr, true, counter, text);
            if !seal {
                mac(iv, text);
            }
        }
    }
}

/// Compares XTS with that of AWS-LC, which encrypts the tweak itself.
fn xts_with_unit(input: &mut Input<'_>, key: &[u8], text: &[u8]) {
    let (other_key, unit): ([u8; 32], Block) = (input.content_array(), input.content_array());
    let both = [key, &other_key].concat();
    let mut expected = text.to_vec();
    if !reference::aes(AesMode::Xts, true, &both, &unit, &mut expected) {
        // No blocks, a shorter key, or two equal keys.
        return;
    }
    let found = same(|| {
        let [aes, other] = [key, &other_key].map(|key| Aes::new(key).expect("a key of 32 bytes"));
        let (mut tweak, mut text) = (unit, text.to_vec());
        other.encrypt_block(&mut tweak);
        xts::<true>(&aes, &mut tweak, text.as_chunks_mut().0);
        text
    });
    assert_eq!(found, expected, "XTS of AWS-LC");
}

fn blocks(input: &mut Input<'_>, key: &[u8]) {
    let (other, block): (Vec<u8>, Block) = (input.content(key.len()), input.content_array());
    let expected = [key, &other].map(|key| {
        let mut expected = block;
        assert!(reference::aes(AesMode::Ecb, true, key, &[0; BLOCK], &mut expected));
        expected
    });
    let one = same(|| {
        let mut block = block;
        Aes::new(key).expect("a length of a key").encrypt_block(&mut block);
        block
    });
    assert_eq!(one, expected[0], "a block, AWS-LC");
    match key.len() {
        16 => pair::<11>(key, &other, &block, expected),
        24 => pair::<13>(key, &other, &block, expected),
        _ => pair::<15>(key, &other, &block, expected),
    }
}

fn pair<const KEYS: usize>(key: &[u8], other: &[u8], block: &Block, expected: [Block; 2]) {
    assert!(portable(|| RoundKeys::<KEYS>::new(key)).is_none(), "there is no twin");
    let keys = crate::levels::fastest(|| [key, other].map(RoundKeys::<KEYS>::new));
    let [Some(a), Some(b)] = keys else { return };
    assert_eq!(a.encrypt(block), expected[0], "a block");
    assert_eq!(RoundKeys::encrypt_pair(&a, &b, block), expected.into(), "a pair");
}

/// Xors `b` onto `a`.
pub(super) fn add(a: &mut [u8], b: &[u8]) {
    a.iter_mut().zip(b).for_each(|(a, b)| *a ^= b);
}

/// Multiplies a tweak by x in the field of XTS (IEEE 1619 §5.2).
fn next_tweak(tweak: [u8; BLOCK]) -> [u8; BLOCK] {
    let tweak = u128::from_le_bytes(tweak);
    let carry = if tweak >> 127 == 1 { 0x87 } else { 0 };
    (tweak << 1 ^ carry).to_le_bytes()
}
