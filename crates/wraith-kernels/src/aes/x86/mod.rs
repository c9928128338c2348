//! AES with the instructions of x86-64: the key schedule, the choice of vector width, and dispatch
//! to the code of each mode.
//!
//! Invariant: [`Keys`] exist only on a processor that has the instructions of their width.
#![allow(unsafe_code)]

mod chain;
mod vector;
mod wide;

use std::arch::x86_64::*;

use zeroize::{Zeroize, ZeroizeOnDrop};

use super::portable;
use crate::aes_expand::{self, KEYS_MAX};
use crate::detect::{Kernel, Purpose, needs};
use crate::modes::{BLOCK, Block, BlockCipher, Tweaks};
use crate::self_test::Inputs;
use wide::{CbcDecrypt, CfbDecrypt, Ctr, EcbDecrypt, EcbEncrypt, Mode, XtsDecrypt, XtsEncrypt};

/// Vector width in bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    /// AES-NI: one block per vector.
    Bits128,
    /// VAES without AVX-512: two blocks per vector.
    Bits256,
    /// VAES with AVX-512: four blocks per vector.
    Bits512,
}

impl Width {
    #[cfg(test)]
    pub(super) const ALL: [Self; 3] = [Self::Bits128, Self::Bits256, Self::Bits512];

    /// Returns the widest vectors that this processor supports.
    #[inline]
    pub(super) fn best() -> Option<Self> {
        [Self::Bits512, Self::Bits256, Self::Bits128].into_iter().find(|width| width.is_available())
    }

    /// Returns whether this processor has the instructions.
    #[inline]
    pub(super) fn is_available(self) -> bool {
        match self {
            Self::Bits128 => AES_128.is_available(),
            Self::Bits256 => AES_256.is_available(),
            Self::Bits512 => AES_512.is_available(),
        }
    }

    pub(super) const fn features(self) -> &'static str {
        match self {
            Self::Bits128 => "AES-NI",
            Self::Bits256 => "VAES",
            Self::Bits512 => "AVX-512, VAES",
        }
    }
}

pub(crate) static AES_128: Kernel =
    Kernel::new("modes of AES", needs::AES_128, Purpose::Bulk, || self_test(Width::Bits128));
pub(crate) static AES_256: Kernel =
    Kernel::new("modes of AES", needs::AES_256, Purpose::Bulk, || self_test(Width::Bits256));
pub(crate) static AES_512: Kernel =
    Kernel::new("modes of AES", needs::AES_512, Purpose::Bulk, || self_test(Width::Bits512));

/// Runs every mode over texts around the borders of a vector's blocks.
fn self_test(width: Width) -> bool {
    /// Applies each mode in turn to the same text.
    macro_rules! modes {
        ($keys:expr, $iv:expr, $text:expr) => {{
            let (keys, mut iv, text) = ($keys, $iv, &mut *$text);
            let mut tweaks = Tweaks { next: iv, ieee: true };
            keys.ecb_encrypt(text);
            keys.cbc_encrypt(&mut iv, text);
            keys.cfb_encrypt(&mut iv, text);
            keys.ofb(&mut iv, text);
            keys.ctr(&mut [7; BLOCK], text);
            keys.xts::<true>(&mut tweaks, text);
            keys.ecb_decrypt(text);
            keys.cbc_decrypt(&mut iv, text);
            keys.cfb_decrypt(&mut iv, text);
            keys.xts::<false>(&mut tweaks, text);
            keys.cbc_mac(&mut iv, text);
            keys.ccm::<true>(&mut iv, &mut [7; BLOCK], text);
            keys.ccm::<false>(&mut iv, &mut [7; BLOCK], text);
            (iv, tweaks.next)
        }};
    }
    let mut inputs = Inputs::new();
    let (key, iv): ([u8; 32], _) = (inputs.bytes(), inputs.bytes());
    let text: [Block; 33] = std::array::from_fn(|_| inputs.bytes());
    // FIPS 197, C.3.
    let mut known = [0x0011_2233_4455_6677_8899_aabb_ccdd_eeff_u128.to_be_bytes()];
    Keys::new(&std::array::from_fn::<u8, 32, _>(|i| i as u8), width).ecb_encrypt(&mut known);
    let is_known = known[0] == 0x8ea2_b7ca_5167_45bf_eafc_4990_4b49_6089_u128.to_be_bytes();
    is_known
        && [(16, 33), (24, 9), (32, 16), (32, 1)].into_iter().all(|(key_bytes, blocks)| {
            let key = &key[..key_bytes];
            let Some(twin) = portable::Keys::new(key) else { return false };
            let (mut ours, mut expected) = (text, text);
            let iv_ours = modes!(Keys::new(key, width), iv, &mut ours[..blocks]);
            let iv_twin = modes!(twin, iv, &mut expected[..blocks]);
            iv_ours == iv_twin && ours == expected
        })
}

/// The round keys of both directions. Wiped when dropped.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
#[repr(align(64))]
pub(super) struct Keys {
    encrypt: [__m128i; KEYS_MAX],
    /// In the order of decryption. The keys between the first and the last have passed through
    /// InvMixColumns (FIPS 197 §5.3.5).
    decrypt: [__m128i; KEYS_MAX],
    rounds: usize,
    #[zeroize(skip)]
    width: Width,
}

/// Calls a function of `chain` for the key's number of rounds.
macro_rules! chain {
    ($self:ident, $function:ident $(::<$c:ident>)? ( $($argument:expr),* )) => {
        // SAFETY: `self` exists, so the processor has the instructions.
        unsafe {
            match $self.rounds {
                10 => chain::$function::<$($c,)? 10>(&$self.encrypt, $($argument),*),
                12 => chain::$function::<$($c,)? 12>(&$self.encrypt, $($argument),*),
                _ => chain::$function::<$($c,)? 14>(&$self.encrypt, $($argument),*),
            }
        }
    };
}

impl Keys {
    /// Expands a key of 16, 24 or 32 bytes. The caller has checked that this processor has the
    /// instructions of the width.
    #[inline]
    pub(super) fn new(key: &[u8], width: Width) -> Self {
        let rounds = key.len() / 4 + 6;
        // SAFETY: the caller checked the instructions.
        unsafe {
            let encrypt = aes_expand::expand(key);
            Self { decrypt: aes_expand::inverse(&encrypt, rounds), encrypt, rounds, width }
        }
    }

    pub(super) fn encrypt_block(&self, block: &mut Block) {
        chain!(self, block(block));
    }

    pub(super) fn ecb_encrypt(&self, text: &mut [Block]) {
        self.wide::<EcbEncrypt>(&mut [0; BLOCK], text);
    }

    pub(super) fn ecb_decrypt(&self, text: &mut [Block]) {
        self.wide::<EcbDecrypt>(&mut [0; BLOCK], text);
    }

    pub(super) fn cbc_encrypt(&self, iv: &mut Block, text: &mut [Block]) {
        chain!(self, cbc(iv, text));
    }

    pub(super) fn cbc_decrypt(&self, iv: &mut Block, text: &mut [Block]) {
        self.wide::<CbcDecrypt>(iv, text);
    }

    pub(super) fn cfb_encrypt(&self, iv: &mut Block, text: &mut [Block]) {
        chain!(self, cfb(iv, text));
    }

    pub(super) fn cfb_decrypt(&self, iv: &mut Block, text: &mut [Block]) {
        self.wide::<CfbDecrypt>(iv, text);
    }

    pub(super) fn ofb(&self, iv: &mut Block, text: &mut [Block]) {
        chain!(self, ofb(iv, text));
    }

    /// The lower half of the counter must not overflow before the end of the text.
    pub(super) fn ctr(&self, counter: &mut Block, text: &mut [Block]) {
        self.wide::<Ctr>(counter, text);
    }

    /// The tweaks are those of IEEE 1619.
    pub(super) fn xts<const ENCRYPT: bool>(&self, tweaks: &mut Tweaks, text: &mut [Block]) {
        assert!(tweaks.ieee, "AES has the tweaks of IEEE 1619 alone");
        match ENCRYPT {
            true => self.wide::<XtsEncrypt>(&mut tweaks.next, text),
            false => self.wide::<XtsDecrypt>(&mut tweaks.next, text),
        }
    }

    pub(super) fn cbc_mac(&self, state: &mut Block, data: &[Block]) {
        chain!(self, mac(state, data));
    }

    pub(super) fn ccm<const SEAL: bool>(
        &self,
        mac: &mut Block,
        counter: &mut Block,
        text: &mut [Block],
    ) {
        chain!(self, ccm::<SEAL>(mac, counter, text));
    }

    fn wide<M: Mode>(&self, iv: &mut Block, text: &mut [Block]) {
        let keys = if M::DECRYPT { &self.decrypt } else { &self.encrypt };
        // The keys of all rounds, including the first and the last, without the unused ones.
        let keys = &keys[..=self.rounds];
        // SAFETY: `self` exists, so the processor has the instructions of its width.
        unsafe {
            match self.width {
                Width::Bits128 => wide::with_128::<M>(keys, iv, text),
                Width::Bits256 => wide::with_256::<M>(keys, iv, text),
                Width::Bits512 => wide::with_512::<M>(keys, iv, text),
            }
        }
    }
}

/// Loads a block into a register.
#[target_feature(enable = "sse2")]
#[inline]
fn load(block: &Block) -> __m128i {
    // SAFETY: the reference covers 16 readable bytes.
    unsafe { _mm_loadu_si128(block.as_ptr().cast()) }
}

/// Stores a register to a block.
#[target_feature(enable = "sse2")]
#[inline]
fn store(block: &mut Block, value: __m128i) {
    // SAFETY: the reference covers 16 writable bytes.
    unsafe { _mm_storeu_si128(block.as_mut_ptr().cast(), value) }
}
