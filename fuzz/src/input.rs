//! Arbitrary bytes as a source of decisions. Reads beyond the end return zeros, so every input is
//! valid.

use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use wraith_noise::Parameters;

use crate::guarded::Place;

pub(crate) struct Input<'a>(pub(crate) &'a [u8]);

impl<'a> Input<'a> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        let [byte] = self.array();
        byte
    }

    pub(crate) fn u16(&mut self) -> u16 {
        u16::from_be_bytes(self.array())
    }

    pub(crate) fn u64(&mut self) -> u64 {
        u64::from_be_bytes(self.array())
    }

    pub(crate) fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut array = [0; N];
        let taken = self.bytes(N);
        array[..taken.len()].copy_from_slice(taken);
        array
    }

    /// Returns up to `len` bytes.
    pub(crate) fn bytes(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// Returns `genuine` unchanged, damaged in one of several ways, or replaced by arbitrary bytes.
    pub(crate) fn tampered(&mut self, genuine: &[u8], other: &[u8]) -> Vec<u8> {
        let (kind, at) = (self.byte(), usize::from(self.u16()));
        let cut = |bytes: &[u8]| at % (bytes.len() + 1);
        let mut bytes = genuine.to_vec();
        match kind % 6 {
            0 => {}
            1 if bytes.is_empty() => {}
            1 => {
                let at = at % bytes.len();
                bytes[at] ^= self.byte();
            }
            2 => bytes.truncate(cut(genuine)),
            3 => bytes.extend_from_slice(self.bytes(1 + at % 64)),
            4 => {
                bytes.truncate(cut(genuine));
                bytes.extend_from_slice(&other[cut(genuine).min(other.len())..]);
            }
            _ => bytes = self.bytes(at).to_vec(),
        }
        bytes
    }

    /// Returns `len` bytes with the content that the input chooses: its own bytes, one byte repeated,
    /// or pseudorandom bytes.
    pub(crate) fn content(&mut self, len: usize) -> Vec<u8> {
        match self.byte() % 4 {
            0 => {
                let mut bytes = self.bytes(len).to_vec();
                bytes.resize(len, 0);
                bytes
            }
            1 => vec![self.byte(); len],
            _ => {
                let mut bytes = vec![0; len];
                ChaCha20Rng::seed_from_u64(self.u16().into()).fill_bytes(&mut bytes);
                bytes
            }
        }
    }

    /// Returns the same as an array.
    pub(crate) fn content_array<const N: usize>(&mut self) -> [u8; N] {
        self.content(N).try_into().expect("so many bytes were requested")
    }

    /// Returns the same as words.
    pub(crate) fn words(&mut self, len: usize) -> Vec<u64> {
        let bytes = self.content(8 * len);
        bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
    }

    /// Returns a place of a buffer.
    pub(crate) fn place(&mut self) -> Place {
        Place::of(self.byte())
    }

    /// Returns a length below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::from(self.u16()) % end
    }

    /// Parameters that a peer may claim. They favour the ends of the range and powers of two, where
    /// mistakes are likely.
    pub(crate) fn parameters(&mut self) -> Parameters {
        let mut number = || match self.byte() {
            0..64 => 0,
            64..200 => 1 << (self.byte() % 62),
            200..250 => u64::from(self.u16()),
            _ => (1 << 62) - 1,
        };
        Parameters {
            max_idle_timeout_ms: number(),
            initial_max_data: number(),
            initial_max_stream_data: number(),
            initial_max_streams: number(),
            max_datagram_frame_size: number(),
            max_udp_payload: number(),
            max_ack_delay_us: number(),
        }
    }
}
