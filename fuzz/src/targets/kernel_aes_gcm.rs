//! AES-GCM and GMAC. Invariant: the kernels of both widths, AWS-LC, and GCM written with the portable
//! AES and GHASH compute the same, with nonces of any length and messages in any pieces.

use wraith_aws_lc::aead::{Aead, AeadKey};
use wraith_aws_lc::gmac::Gmac;
use wraith_kernels::aes::Aes;
use wraith_kernels::aes_gcm::{GcmKey, Ghash, Width};
use wraith_kernels::ghash;
use wraith_kernels::modes::{BLOCK, BlockCipher};

use super::kernel_aes::add;
use super::kernel_ghash::{inverse, product};
use crate::guarded::{Buffer, Place};
use crate::input::Input;
use crate::levels::{fastest, portable};

type Tag = [u8; BLOCK];

/// The kind of a nonce with which the counter overflows.
const WRAPPING: u8 = 112;

/// A message, and how it is passed to a kernel.
struct Message {
    key: Vec<u8>,
    nonce: Vec<u8>,
    aad: Vec<u8>,
    text: Vec<u8>,
    /// Of the text, the associated data, and the source of a gathered text.
    places: [Place; 3],
    /// The length of the part of the text that is already in its place.
    filled: usize,
    /// The lengths of the first pieces of a message of GMAC.
    pieces: [usize; 4],
}

pub(crate) fn run(input: &[u8]) {
    let mut input = Input(input);
    let key_bytes = 16 + 8 * usize::from(input.byte() % 3);
    let (nonce_kind, before) = (input.byte(), input.byte());
    let nonce_bytes = match nonce_kind {
        0..112 => 12,
        WRAPPING => 16,
        other => usize::from(other - 112),
    };
    let (aad_len, len) = (input.below(600), input.below(1600));
    let mut message = Message {
        places: [(); 3].map(|()| input.place()),
        filled: input.below(len + 1),
        pieces: [(); 4].map(|()| input.below(len + 1)),
        key: input.content(key_bytes),
        nonce: input.content(nonce_bytes),
        aad: input.content(aad_len),
        text: input.content(len),
    };
    if nonce_kind == WRAPPING {
        message.nonce = wrapping_nonce(&message, before);
    }
    match key_bytes {
        16 => compare::<11>(&message, Aead::Aes128Gcm),
        24 => compare::<13>(&message, Aead::Aes192Gcm),
        _ => compare::<15>(&message, Aead::Aes256Gcm),
    }
}

/// Returns a nonce of 16 bytes whose first counter is `before` counts before the overflow of its 32
/// bits. The other bits are those of the message's nonce.
fn wrapping_nonce(message: &Message, before: u8) -> Vec<u8> {
    let mut hash_key = [0; BLOCK];
    portable(|| Aes::new(&message.key).expect("a length of a key").encrypt_block(&mut hash_key));
    let mut first: [u8; BLOCK] = message.nonce[..].try_into().expect("16 bytes");
    first[12..].copy_from_slice(&(u32::MAX - u32::from(before)).to_be_bytes());
    // The counter is (nonce · H ^ length) · H (SP 800-38D §7.1).
    let inverse = inverse(u128::from_be_bytes(hash_key));
    let sum = product(u128::from_be_bytes(first), inverse) ^ (8 * BLOCK as u128);
    product(sum, inverse).to_be_bytes().to_vec()
}

fn compare<const KEYS: usize>(message: &Message, aead: Aead) {
    let Message { key, nonce, aad, text, .. } = message;
    let mut sealed = text.clone();
    let aws_lc = AeadKey::new(aead, key).expect("a length of a key");
    let tag = aws_lc.seal(nonce, aad, &mut sealed).expect("AWS-LC takes any nonce");
    let mut twin = text.clone();
    assert_eq!(seal(key, nonce, aad, &mut twin), tag, "the twin, and AWS-LC");
    assert_eq!(twin, sealed, "the twin, and AWS-LC");
    let mac = nonce.first_chunk().filter(|_| nonce.len() == 12).map(|nonce| {
        let mut mac = Gmac::new(key, nonce).expect("a length of a key");
        mac.update(text);
        mac.finish()
    });
    for width in [Width::Bits256, Width::Bits512] {
        let Some(key) = fastest(|| GcmKey::<KEYS>::new(key, width)) else { continue };
        check(&key, message, &sealed, tag);
        if let Some(mac) = mac {
            check_nonce_of_12(&key, message, &sealed, [tag, mac]);
        }
    }
}

fn check<const KEYS: usize>(key: &GcmKey<KEYS>, message: &Message, sealed: &[u8], tag: Tag) {
    let (width, [place, aad, _]) = (key.width(), message.places);
    let mut text = Buffer::new(place, &message.text);
    let aad = Buffer::new(aad, &message.aad);
    assert_eq!(key.seal_any(&message.nonce, &aad, &mut text), tag, "sealed, {width:?}");
    assert_eq!(&*text, sealed, "sealed, {width:?}");
    assert_eq!(key.open_any(&message.nonce, &aad, &mut text), tag, "opened, {width:?}");
    assert_eq!(*text, message.text, "opened, {width:?}");
}

fn check_nonce_of_12<const KEYS: usize>(
    key: &GcmKey<KEYS>,
    message: &Message,
    sealed: &[u8],
    [tag, mac]: [Tag; 2],
) {
    let (width, [place, aad_place, source_place]) = (key.width(), message.places);
    let nonce = message.nonce.first_chunk().expect("12 bytes");
    let mut text = Buffer::new(place, &message.text);
    let aad = Buffer::new(aad_place, &message.aad);
    assert_eq!(key.seal(nonce, &aad, &mut text), tag, "{width:?}");
    assert_eq!(&*text, sealed, "{width:?}");
    assert_eq!(key.open(nonce, &aad, &mut text), tag, "{width:?}");
    assert_eq!(*text, message.text, "{width:?}");

    let (filled, source) = message.text.split_at(message.filled);
    let source = Buffer::new(source_place, source);
    let mut gathered = Buffer::new(place, &vec![0; message.text.len()]);
    gathered[..filled.len()].copy_from_slice(filled);
    let found = key.seal_from(nonce, &aad, &mut gathered, filled.len(), &source);
    assert_eq!(found, tag, "gathered, {width:?}");
    assert_eq!(&*gathered, sealed, "gathered, {width:?}");

    let (mut ghash, mut rest) = (Ghash::new(nonce), &message.text[..]);
    for len in message.pieces {
        let (piece, later) = rest.split_at(len.min(rest.len()));
        ghash.update(key, &Buffer::new(place, piece));
        rest = later;
    }
    ghash.update(key, rest);
    assert_eq!(ghash.finish(key), mac, "GMAC, {width:?}");
}

/// Encrypts `text` and returns the tag, as NIST SP 800-38D §7.1 writes it.
fn seal(key: &[u8], nonce: &[u8], aad: &[u8], text: &mut [u8]) -> Tag {
    portable(|| {
        let aes = Aes::new(key).expect("a length of a key");
        let encrypted = |mut block| {
            aes.encrypt_block(&mut block);
            block
        };
        let hash = ghash::Ghash::new(&encrypted([0; BLOCK]));
        let lengths = |aad: usize, text: usize| (aad as u128) << 67 | (text as u128) << 3;
        let first: u128 = match <[u8; 12]>::try_from(nonce) {
            Ok(nonce) => {
                let mut block = [0; BLOCK];
                block[..12].copy_from_slice(&nonce);
                u128::from_be_bytes(block) | 1
            }
            Err(_) => {
                let lengths = lengths(0, nonce.len()).to_be_bytes();
                hash.absorb(hash.absorb(0, nonce), &lengths)
            }
        };
        let counter = |count: u32| {
            let low = (first as u32).wrapping_add(count);
            encrypted((first >> 32 << 32 | u128::from(low)).to_be_bytes())
        };
        for (block, count) in text.chunks_mut(BLOCK).zip(1..) {
            add(block, &counter(count));
        }
        let sum = hash.absorb(hash.absorb(0, aad), text);
        let sum = hash.absorb(sum, &lengths(aad.len(), text.len()).to_be_bytes());
        (sum ^ u128::from_be_bytes(counter(0))).to_be_bytes()
    })
}
