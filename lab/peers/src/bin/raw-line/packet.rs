//! A datagram: `number(8) | sealed | tag(16)`. The number is the nonce, determines the expected
//! bytes, and is authenticated.
//!
//! Number: bit 63 = end of the round; bits 40–55 = round; bits 0–39 = datagram within the round. So
//! no nonce is used twice.

use anyhow::{Result, anyhow, ensure};
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

const NUMBER_BYTES: usize = 8;
const TAG_BYTES: usize = 16;
/// Bytes of a datagram besides its payload.
pub const OVERHEAD_BYTES: usize = NUMBER_BYTES + TAG_BYTES;
const END_BIT: u64 = 1 << 63;
const ROUND_SHIFT: u32 = 40;
/// Public, as a benchmark has no secrets.
const KEY: [u8; 32] = [7; 32];

/// The decoded number of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number {
    pub round: u16,
    /// Position in the round.
    pub index: u64,
    pub end: bool,
}

impl Number {
    fn to_wire(self) -> u64 {
        let end = if self.end { END_BIT } else { 0 };
        end | u64::from(self.round) << ROUND_SHIFT | self.index
    }

    const fn from_wire(wire: u64) -> Self {
        let index = wire & ((1 << ROUND_SHIFT) - 1);
        Self { round: (wire >> ROUND_SHIFT) as u16, index, end: wire & END_BIT != 0 }
    }
}

/// The cipher that seals and opens datagrams.
#[derive(Debug)]
pub struct Cipher(LessSafeKey);

impl Cipher {
    pub fn new() -> Result<Self> {
        let key = UnboundKey::new(&AES_256_GCM, &KEY).map_err(|_| anyhow!("no AES-256-GCM"))?;
        Ok(Self(LessSafeKey::new(key)))
    }

    /// Seals `payload` into `datagram`; the payload must be [`OVERHEAD_BYTES`] shorter.
    pub fn seal(&self, number: Number, payload: &[u8], datagram: &mut [u8]) -> Result<()> {
        let (header, rest) = datagram.split_at_mut(NUMBER_BYTES);
        let (body, tag) = rest.split_at_mut(rest.len() - TAG_BYTES);
        header.copy_from_slice(&number.to_wire().to_be_bytes());
        body.copy_from_slice(payload);
        let sealed = self
            .0
            .seal_in_place_separate_tag(nonce(header), Aad::from(header), body)
            .map_err(|_| anyhow!("cannot seal"))?;
        tag.copy_from_slice(sealed.as_ref());
        Ok(())
    }

    /// Opens `datagram` in place.
    pub fn open<'a>(&self, datagram: &'a mut [u8]) -> Result<(Number, &'a [u8])> {
        ensure!(datagram.len() >= OVERHEAD_BYTES, "a datagram of {} bytes", datagram.len());
        let (header, sealed) = datagram.split_at_mut(NUMBER_BYTES);
        let header: &[u8; NUMBER_BYTES] = (&*header).try_into()?;
        let payload = self
            .0
            .open_in_place(nonce(header), Aad::from(header), sealed)
            .map_err(|_| anyhow!("a datagram is not authentic"))?;
        Ok((Number::from_wire(u64::from_be_bytes(*header)), payload))
    }
}

fn nonce(number: &[u8]) -> Nonce {
    let mut nonce = [0; 12];
    nonce[12 - NUMBER_BYTES..].copy_from_slice(number);
    Nonce::assume_unique_for_key(nonce)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sealed_packets_open_and_changed_ones_do_not() {
        let cipher = Cipher::new().unwrap();
        let number = Number { round: 3, index: (1 << 40) - 1, end: true };
        let mut datagram = [0; 5 + OVERHEAD_BYTES];
        cipher.seal(number, b"hello", &mut datagram).unwrap();
        for at in 0..datagram.len() {
            let mut touched = datagram;
            touched[at] ^= 1;
            assert!(cipher.open(&mut touched).is_err(), "byte {at}");
        }
        assert_eq!(cipher.open(&mut datagram).unwrap(), (number, b"hello".as_slice()));
        assert!(cipher.open(&mut [0; OVERHEAD_BYTES - 1]).is_err());
    }
}
