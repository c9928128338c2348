//! Modes of SM4 (GB/T 17964-2021).
//!
//! Modes with independent blocks process 64 blocks at a time.
//!
//! XTS has two variants: the Chinese standard numbers the bits of a tweak from the other end than
//! IEEE 1619, so the variants differ from the second block on. openHiTLS has only the Chinese
//! variant. OpenSSL has both and uses the Chinese variant by default, as [`Sm4Xts::new`] does.

use std::fmt;

use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::stream::Stream;
use super::{Algorithm, Cipher, CipherError};
use crate::Backend;
use wraith_kernels::sm4::{Block, Chain, Implementation, Sm4, add};

/// Number of blocks processed together.
const PIECE: usize = 64;
/// Maximum length of an XTS data unit in bytes (2^20 blocks, IEEE 1619 §5.1).
const UNIT_MAX: usize = 16 << 20;

/// Returns the implementation of all modes.
pub(crate) fn backend() -> Backend {
    Backend::Own(Implementation::best().features().into())
}

/// Starts a text. `algorithm` has to be one of SM4.
pub(super) fn start(
    algorithm: Algorithm,
    key: &[u8],
    iv: &[u8],
) -> Result<Box<dyn Cipher>, CipherError> {
    let wrong_key = CipherError::KeyLength { algorithm, found: key.len() };
    let wrong_iv = CipherError::IvLength { algorithm, found: iv.len() };
    if algorithm == Algorithm::Sm4Xts {
        let key = key.try_into().map_err(|_| wrong_key)?;
        return Ok(Box::new(Sm4Xts::new(key, iv.try_into().map_err(|_| wrong_iv)?)?));
    }
    let key = key.try_into().map_err(|_| wrong_key)?;
    if algorithm == Algorithm::Sm4Ecb {
        return match iv.is_empty() {
            true => Ok(Box::new(Sm4Ecb::new(key))),
            false => Err(wrong_iv),
        };
    }
    let iv = iv.try_into().map_err(|_| wrong_iv)?;
    Ok(match algorithm {
        Algorithm::Sm4Cbc => Box::new(Sm4Cbc::new(key, iv)),
        Algorithm::Sm4Cfb => Box::new(Sm4Cfb::new(key, iv)),
        Algorithm::Sm4Ofb => Box::new(Sm4Ofb::new(key, iv)),
        _ => Box::new(Sm4Ctr::new(key, iv)),
    })
}

fn whole_blocks(algorithm: Algorithm, text: &mut [u8]) -> Result<&mut [Block], CipherError> {
    let found = text.len();
    match text.as_chunks_mut() {
        (blocks, []) => Ok(blocks),
        _ => Err(CipherError::Partial { algorithm, found }),
    }
}

/// SM4 in ECB mode. Wiped when dropped.
#[derive(Clone, ZeroizeOnDrop)]
pub struct Sm4Ecb(Sm4);

impl Sm4Ecb {
    /// Expands a key.
    #[must_use]
    pub fn new(key: &[u8; 16]) -> Self {
        Self(Sm4::new(key))
    }
}

impl Cipher for Sm4Ecb {
    fn algorithm(&self) -> Algorithm {
        Algorithm::Sm4Ecb
    }

    fn encrypt(&mut self, in_out: &mut [u8]) -> Result<(), CipherError> {
        self.0.encrypt(whole_blocks(Algorithm::Sm4Ecb, in_out)?);
        Ok(())
    }

    fn decrypt(&mut self, in_out: &mut [u8]) -> Result<(), CipherError> {
        self.0.decrypt(whole_blocks(Algorithm::Sm4Ecb, in_out)?);
        Ok(())
    }
}

/// SM4 in CBC mode. Wiped when dropped.
#[derive(Clone, ZeroizeOnDrop)]
pub struct Sm4Cbc {
    cipher: Sm4,
    /// The previous ciphertext block.
    before: Block,
}

impl Sm4Cbc {
    /// Starts a text.
    #[must_use]
    pub fn new(key: &[u8; 16], iv: &[u8; 16]) -> Self {
        Self { cipher: Sm4::new(key), before: *iv }
    }
}

impl Cipher for Sm4Cbc {
    fn algorithm(&self) -> Algorithm {
        Algorithm::Sm4Cbc
    }

    fn encrypt(&mut self, in_out: &mut [u8]) -> Result<(), CipherError> {
        let blocks = whole_blocks(Algorithm::Sm4Cbc, in_out)?;
        self.cipher.chain(Chain::Cbc, &mut self.before, blocks);
        Ok(())
    }

    fn decrypt(&mut self, in_out: &mut [u8]) -> Result<(), CipherError> {
        let mut ciphertext = [[0; 16]; PIECE];
        for blocks in whole_blocks(Algorithm::Sm4Cbc, in_out)?.chunks_mut(PIECE) {
            let ciphertext = &mut ciphertext[..blocks.len()];
            ciphertext.copy_from_slice(blocks);
            self.cipher.decrypt(blocks);
            let (first, others) = blocks.split_at_mut(1);
            add(&mut first[0], &self.before);
            add(others.as_flattened_mut(), ciphertext.as_flattened());
            self.before = ciphertext[ciphertext.len() - 1];
        }
        Ok(())
    }
}

/// SM4 in CTR mode, with a 128-bit counter. Wiped when dropped.
#[derive(Clone)]
pub struct Sm4Ctr(Stream<Sm4>);

/// SM4 in OFB mode. Wiped when dropped.
#[derive(Clone)]
pub struct Sm4Ofb(Stream<Sm4>);

/// SM4 in CFB mode, with feedback of whole blocks. Wiped when dropped.
#[derive(Clone)]
pub struct Sm4Cfb(Stream<Sm4>);

/// The modes for texts of any length. Each starts with a counter block or an IV.
macro_rules! streaming {
    ($($mode:ident: $self:ident, $text:ident, $encrypt:expr, $decrypt:expr;)+) => { $(
        impl $mode {
            /// Starts a text, with the first counter block (CTR) or the IV.
            #[must_use]
            pub fn new(key: &[u8; 16], first: &[u8; 16]) -> Self {
                Self(Stream::new(Sm4::new(key), *first))
            }
        }

        impl ZeroizeOnDrop for $mode {}

        impl Cipher for $mode {
            fn algorithm(&self) -> Algorithm {
                Algorithm::$mode
            }

            fn encrypt(&mut $self, $text: &mut [u8]) -> Result<(), CipherError> {
                $encrypt;
                Ok(())
            }

            fn decrypt(&mut $self, $text: &mut [u8]) -> Result<(), CipherError> {
                $decrypt;
                Ok(())
            }
        }
    )+ };
}

streaming! {
    Sm4Ctr: self, text, self.0.ctr(text), self.0.ctr(text);
    Sm4Ofb: self, text, self.0.ofb(text), self.0.ofb(text);
    Sm4Cfb: self, text, self.0.cfb::<false>(text), self.0.cfb::<true>(text);
}

/// SM4 in XTS mode. Wiped when dropped.
#[derive(Clone, ZeroizeOnDrop)]
pub struct Sm4Xts {
    text: Sm4,
    tweak: Sm4,
    /// Number of the next data unit.
    unit: u128,
    #[zeroize(skip)]
    ieee: bool,
}

impl Sm4Xts {
    /// Starts the variant of GB/T 17964. `key` is the text key followed by the tweak key; `unit` is
    /// the number of the first data unit, little-endian.
    ///
    /// # Errors
    /// [`CipherError::EqualHalves`].
    pub fn new(key: &[u8; 32], unit: &[u8; 16]) -> Result<Self, CipherError> {
        let halves = key.as_chunks().0;
        if crate::equal(&halves[0], &halves[1]) {
            return Err(CipherError::EqualHalves);
        }
        let (text, tweak) = (Sm4::new(&halves[0]), Sm4::new(&halves[1]));
        Ok(Self { text, tweak, unit: u128::from_le_bytes(*unit), ieee: false })
    }

    /// Starts the variant of IEEE 1619.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn new_ieee(key: &[u8; 32], unit: &[u8; 16]) -> Result<Self, CipherError> {
        let mut xts = Self::new(key, unit)?;
        xts.ieee = true;
        Ok(xts)
    }

    fn crypt(&mut self, text: &mut [u8], encrypt: bool) -> Result<(), CipherError> {
        let found = text.len();
        if !(16..=UNIT_MAX).contains(&found) {
            return Err(CipherError::Partial { algorithm: Algorithm::Sm4Xts, found });
        }
        let first = self.tweak.encrypted(self.unit.to_le_bytes());
        self.unit = self.unit.wrapping_add(1);
        let mut tweaks = Zeroizing::new(Tweaks::new(first, self.ieee));
        let (blocks, rest) = text.as_chunks_mut();
        if rest.is_empty() {
            self.blocks(&mut tweaks, blocks, encrypt);
            return Ok(());
        }
        let (last, others) = blocks.split_last_mut().expect("16 bytes and more");
        self.blocks(&mut tweaks, others, encrypt);
        // Ciphertext stealing. For decryption, the last two tweaks are swapped.
        let (before, after) = (tweaks.next(), tweaks.next());
        let (first, second) = if encrypt { (before, after) } else { (after, before) };
        self.block(last, first, encrypt);
        rest.swap_with_slice(&mut last[..rest.len()]);
        self.block(last, second, encrypt);
        Ok(())
    }

    fn block(&self, block: &mut Block, tweak: Block, encrypt: bool) {
        add(block, &tweak);
        let blocks = std::slice::from_mut(block);
        if encrypt {
            self.text.encrypt(blocks)
        } else {
            self.text.decrypt(blocks)
        }
        add(block, &tweak);
    }

    fn blocks(&self, tweaks: &mut Tweaks, blocks: &mut [Block], encrypt: bool) {
        let mut masks = [[0; 16]; PIECE];
        for blocks in blocks.chunks_mut(PIECE) {
            let masks = &mut masks[..blocks.len()];
            tweaks.fill(masks);
            match encrypt {
                true => self.text.encrypt_masked(blocks, masks),
                false => self.text.decrypt_masked(blocks, masks),
            }
        }
    }
}

impl Cipher for Sm4Xts {
    fn algorithm(&self) -> Algorithm {
        Algorithm::Sm4Xts
    }

    fn encrypt(&mut self, in_out: &mut [u8]) -> Result<(), CipherError> {
        self.crypt(in_out, true)
    }

    fn decrypt(&mut self, in_out: &mut [u8]) -> Result<(), CipherError> {
        self.crypt(in_out, false)
    }
}

/// The tweaks of one data unit. Each is x times the tweak before.
#[derive(Clone, Copy, Zeroize)]
struct Tweaks {
    /// The next tweak. The coefficient of x^0 is its lowest bit for IEEE 1619, its highest for GB/T
    /// 17964.
    next: u128,
    ieee: bool,
}

impl Tweaks {
    fn new(first: Block, ieee: bool) -> Self {
        let next = if ieee { u128::from_le_bytes(first) } else { u128::from_be_bytes(first) };
        Self { next, ieee }
    }

    fn next(&mut self) -> Block {
        let mut one = [[0; 16]];
        self.fill(&mut one);
        one[0]
    }

    fn fill(&mut self, tweaks: &mut [Block]) {
        if self.ieee {
            for tweak in tweaks {
                *tweak = self.next.to_le_bytes();
                self.next = self.next << 1 ^ (0_u128.wrapping_sub(self.next >> 127) & 0x87);
            }
        } else {
            for tweak in tweaks {
                *tweak = self.next.to_be_bytes();
                let out = 0_u128.wrapping_sub(self.next & 1);
                self.next = self.next >> 1 ^ (out & 0xe1 << 120);
            }
        }
    }
}

macro_rules! hide {
    ($($name:ident)*) => {$(
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    )*};
}

hide!(Sm4Ecb Sm4Cbc Sm4Ctr Sm4Ofb Sm4Cfb Sm4Xts);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mode_begins_by_name_with_keys_and_ivs_of_its_lengths_only() {
        let modes = Algorithm::ALL.iter().filter(|each| each.name().starts_with("SM4"));
        for &algorithm in modes {
            let (key_bytes, iv_bytes) = (algorithm.key_bytes(), algorithm.iv_bytes());
            let key: Vec<u8> = (0..key_bytes as u8).collect();
            let iv = vec![1; iv_bytes];
            assert_eq!(start(algorithm, &key, &iv).unwrap().algorithm(), algorithm);
            let found = key_bytes - 1;
            let short = start(algorithm, &key[1..], &iv).err();
            assert_eq!(short, Some(CipherError::KeyLength { algorithm, found }));
            let found = iv_bytes + 1;
            let long = start(algorithm, &key, &vec![1; found]).err();
            assert_eq!(long, Some(CipherError::IvLength { algorithm, found }));
        }
    }
}
