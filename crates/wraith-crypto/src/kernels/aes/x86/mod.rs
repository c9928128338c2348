//! AES with the instructions of x86-64: the key schedule, the choice of vector width, and dispatch
//! to the code of each mode.
//!
//! Invariant: [`Keys`] exist only on a processor that has the instructions of their width.
#![allow(unsafe_code)]

mod chain;
mod expand;
mod vector;
mod wide;

use std::arch::x86_64::*;

use zeroize::{Zeroize, ZeroizeOnDrop};

use super::BLOCK;
pub(crate) use expand::expand_with;
use wide::{CbcDecrypt, CfbDecrypt, Ctr, EcbDecrypt, EcbEncrypt, Mode, XtsDecrypt, XtsEncrypt};

type Block = [u8; BLOCK];

/// Number of round keys of the largest key: 14 rounds and the initial one.
const KEYS_MAX: usize = 15;

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
        use std::arch::is_x86_feature_detected as has;
        match self {
            Self::Bits128 => has!("aes") && has!("pclmulqdq") && has!("ssse3"),
            Self::Bits256 => {
                Self::Bits128.is_available() && has!("avx2") && has!("vaes") && has!("vpclmulqdq")
            }
            Self::Bits512 => Self::Bits256.is_available() && has!("avx512f") && has!("avx512bw"),
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
    /// Expands a key of 16, 24 or 32 bytes for a width that this processor supports.
    ///
    /// Panics if the processor does not support the width.
    #[inline]
    pub(super) fn new(key: &[u8], width: Width) -> Self {
        assert!(width.is_available(), "the caller checked the processor features");
        let rounds = key.len() / 4 + 6;
        // SAFETY: the assertion above checked the instructions.
        unsafe {
            let encrypt = expand::expand(key);
            Self { decrypt: expand::inverse(&encrypt, rounds), encrypt, rounds, width }
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

    pub(super) fn xts_encrypt(&self, tweak: &mut Block, text: &mut [Block]) {
        self.wide::<XtsEncrypt>(tweak, text);
    }

    pub(super) fn xts_decrypt(&self, tweak: &mut Block, text: &mut [Block]) {
        self.wide::<XtsDecrypt>(tweak, text);
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
