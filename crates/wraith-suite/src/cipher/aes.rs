//! Modes of AES, over [`wraith_kernels::aes`].

use zeroize::Zeroize;

use super::stream::Stream;
use super::{Algorithm, BLOCK_BYTES, Cipher, CipherError};
use wraith_kernels::aes::Aes;

type Block = [u8; BLOCK_BYTES];

/// Maximum length of an XTS data unit in bytes: 2^20 blocks (SP 800-38E §4).
const UNIT_MAX: usize = BLOCK_BYTES << 20;

/// Starts a text. `algorithm` has to be one of AES.
pub(super) fn start(
    algorithm: Algorithm,
    key: &[u8],
    iv: &[u8],
) -> Result<Box<dyn Cipher>, CipherError> {
    use Algorithm::*;
    let wrong_key = CipherError::KeyLength { algorithm, found: key.len() };
    if key.len() != algorithm.key_bytes() {
        return Err(wrong_key);
    }
    if iv.len() != algorithm.iv_bytes() {
        return Err(CipherError::IvLength { algorithm, found: iv.len() });
    }
    // ECB has no IV.
    let iv = iv.first_chunk().copied().unwrap_or_default();
    if matches!(algorithm, Aes128Xts | Aes256Xts) {
        return Ok(Box::new(Xts::new(algorithm, key, iv)?));
    }
    let key = Aes::new(key).ok_or(wrong_key)?;
    Ok(match algorithm {
        Aes128Ecb | Aes192Ecb | Aes256Ecb => Box::new(Ecb { key, algorithm }),
        Aes128Cbc | Aes192Cbc | Aes256Cbc => Box::new(Cbc { key, algorithm, iv }),
        Aes128Ctr | Aes192Ctr | Aes256Ctr => Box::new(Ctr(algorithm, Stream::new(key, iv))),
        Aes128Ofb | Aes192Ofb | Aes256Ofb => Box::new(Ofb(algorithm, Stream::new(key, iv))),
        _ => Box::new(Cfb(algorithm, Stream::new(key, iv))),
    })
}

struct Ecb {
    key: Aes,
    algorithm: Algorithm,
}

/// `iv` is the previous ciphertext block.
struct Cbc {
    key: Aes,
    algorithm: Algorithm,
    iv: Block,
}

struct Ctr(Algorithm, Stream<Aes>);
struct Ofb(Algorithm, Stream<Aes>);
struct Cfb(Algorithm, Stream<Aes>);

/// XTS over consecutive data units.
struct Xts {
    key: Aes,
    tweak_key: Aes,
    algorithm: Algorithm,
    /// Number of the next data unit.
    unit: u128,
}

fn whole_blocks(algorithm: Algorithm, text: &[u8]) -> Result<(), CipherError> {
    match text.len().is_multiple_of(BLOCK_BYTES) {
        true => Ok(()),
        false => Err(CipherError::Partial { algorithm, found: text.len() }),
    }
}

impl Cipher for Ecb {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    fn encrypt(&mut self, in_out: &mut [u8]) -> Result<(), CipherError> {
        whole_blocks(self.algorithm, in_out)?;
        self.key.ecb_encrypt(in_out);
        Ok(())
    }

    fn decrypt(&mut self, in_out: &mut [u8]) -> Result<(), CipherError> {
        whole_blocks(self.algorithm, in_out)?;
        self.key.ecb_decrypt(in_out);
        Ok(())
    }
}

impl Cipher for Cbc {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    fn encrypt(&mut self, in_out: &mut [u8]) -> Result<(), CipherError> {
        whole_blocks(self.algorithm, in_out)?;
        self.key.cbc_encrypt(&mut self.iv, in_out);
        Ok(())
    }

    fn decrypt(&mut self, in_out: &mut [u8]) -> Result<(), CipherError> {
        whole_blocks(self.algorithm, in_out)?;
        self.key.cbc_decrypt(&mut self.iv, in_out);
        Ok(())
    }
}

/// The modes for texts of any length.
macro_rules! streaming {
    ($($mode:ident: $self:ident, $text:ident, $encrypt:expr, $decrypt:expr;)+) => { $(
        impl Cipher for $mode {
            fn algorithm(&self) -> Algorithm {
                self.0
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
    Ctr: self, text, self.1.ctr(text), self.1.ctr(text);
    Ofb: self, text, self.1.ofb(text), self.1.ofb(text);
    Cfb: self, text, self.1.cfb::<false>(text), self.1.cfb::<true>(text);
}

impl Xts {
    fn new(algorithm: Algorithm, keys: &[u8], unit: Block) -> Result<Self, CipherError> {
        let (key, tweak_key) = keys.split_at(keys.len() / 2);
        if crate::equal(key, tweak_key) {
            return Err(CipherError::EqualHalves);
        }
        let wrong_key = CipherError::KeyLength { algorithm, found: keys.len() };
        let (key, tweak_key) = Aes::new(key).zip(Aes::new(tweak_key)).ok_or(wrong_key)?;
        Ok(Self { key, tweak_key, algorithm, unit: u128::from_le_bytes(unit) })
    }

    /// Returns the tweak of the first block of the next data unit, and advances the unit number.
    fn start_unit(&mut self, text: &[u8]) -> Result<Block, CipherError> {
        if !(BLOCK_BYTES..=UNIT_MAX).contains(&text.len()) {
            return Err(CipherError::Partial { algorithm: self.algorithm, found: text.len() });
        }
        let mut tweak = self.unit.to_le_bytes();
        self.unit = self.unit.wrapping_add(1);
        self.tweak_key.encrypt_block(&mut tweak);
        Ok(tweak)
    }
}

impl Cipher for Xts {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Encrypts a data unit. A partial last block takes its end from the block before (ciphertext
    /// stealing, IEEE 1619 §5.3.2).
    fn encrypt(&mut self, in_out: &mut [u8]) -> Result<(), CipherError> {
        let mut tweak = self.start_unit(in_out)?;
        let whole = in_out.len() / BLOCK_BYTES * BLOCK_BYTES;
        let (text, end) = in_out.split_at_mut(whole);
        self.key.xts_encrypt(&mut tweak, text);
        if !end.is_empty() {
            let last = &mut text[whole - BLOCK_BYTES..];
            last[..end.len()].swap_with_slice(end);
            self.key.xts_encrypt(&mut tweak, last);
        }
        tweak.zeroize();
        Ok(())
    }

    /// Decrypts a data unit. With a partial last block, the block before uses the last tweak, and
    /// the partial one the tweak before that.
    fn decrypt(&mut self, in_out: &mut [u8]) -> Result<(), CipherError> {
        let mut tweak = self.start_unit(in_out)?;
        let whole = in_out.len() / BLOCK_BYTES * BLOCK_BYTES;
        let (text, end) = in_out.split_at_mut(whole);
        if end.is_empty() {
            self.key.xts_decrypt(&mut tweak, text);
        } else {
            let (text, last) = text.split_at_mut(whole - BLOCK_BYTES);
            self.key.xts_decrypt(&mut tweak, text);
            let mut after = wraith_kernels::aes::next_tweak(tweak);
            self.key.xts_decrypt(&mut after, last);
            last[..end.len()].swap_with_slice(end);
            self.key.xts_decrypt(&mut tweak, last);
            after.zeroize();
        }
        tweak.zeroize();
        Ok(())
    }
}
