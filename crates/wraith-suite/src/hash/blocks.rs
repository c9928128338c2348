//! Block-wise hash functions (Merkle–Damgård): buffering of partial blocks, and padding of the last
//! one.

use zeroize::optimization_barrier;

/// A compression function, with its initial state and the format of its digest.
pub(super) trait Compression: 'static {
    type State: Copy + Send + Sync;
    type Block: Copy + Send + Sync + AsRef<[u8]> + AsMut<[u8]>;
    /// A buffer of two blocks.
    type Blocks: Copy + AsMut<[u8]>;

    const START: Self::State;
    const ZERO: Self::State;
    const EMPTY: Self::Block;
    const EMPTIES: Self::Blocks;
    /// Bytes of the message length in bits, at the end of the last block.
    const LENGTH_BYTES: usize;
    /// Whether the message length and the digest are little-endian.
    const IS_LITTLE_ENDIAN: bool;

    /// Absorbs `blocks`, whole ones.
    fn compress(state: &mut Self::State, blocks: &[u8]);

    /// Fills `out` with the first bytes of the state.
    fn write(state: &Self::State, out: &mut [u8]);

    /// Encodes the length of a message for the last block, in the first [`Self::LENGTH_BYTES`]
    /// bytes.
    fn length(bits: u128) -> [u8; 16] {
        match Self::IS_LITTLE_ENDIAN {
            true => bits.to_le_bytes(),
            false => (bits << (128 - 8 * Self::LENGTH_BYTES)).to_be_bytes(),
        }
    }
}

/// Incremental hash state. Wiped when dropped, because the state after a key is as sensitive as the
/// key.
///
/// Invariant: only the first `taken % block length` bytes of `pending` are in use, so it is never
/// full.
pub(super) struct Blocks<C: Compression> {
    state: C::State,
    pending: C::Block,
    taken: u64,
}

impl<C: Compression> Blocks<C> {
    pub(super) const fn new() -> Self {
        Self { state: C::START, pending: C::EMPTY, taken: 0 }
    }

    /// Fills `out` with the first bytes of the digest of `data`. Avoids buffering, and compresses
    /// the last blocks in one call.
    #[inline]
    pub(super) fn digest(data: &[u8], out: &mut [u8]) {
        let mut last = C::EMPTIES;
        let blocks = last.as_mut();
        let block = blocks.len() / 2;
        let (whole, rest) = data.split_at(data.len() - data.len() % block);
        let fits = rest.len() + 1 + C::LENGTH_BYTES <= block;
        let end = if fits { block } else { 2 * block };
        blocks[..rest.len()].copy_from_slice(rest);
        blocks[rest.len()] = 0x80;
        let length = C::length(data.len() as u128 * 8);
        blocks[end - C::LENGTH_BYTES..end].copy_from_slice(&length[..C::LENGTH_BYTES]);
        let mut state = C::START;
        if !whole.is_empty() {
            C::compress(&mut state, whole);
        }
        C::compress(&mut state, &blocks[..end]);
        C::write(&state, out);
        (state, last) = (C::ZERO, C::EMPTIES);
        optimization_barrier(&state);
        optimization_barrier(&last);
    }

    #[inline]
    fn waiting(&self) -> usize {
        let block = C::EMPTY.as_ref().len();
        (self.taken % block as u64) as usize
    }

    #[inline]
    pub(super) fn update(&mut self, mut data: &[u8]) {
        let waiting = self.waiting();
        self.taken = self.taken.wrapping_add(data.len() as u64);
        let pending = self.pending.as_mut();
        let block = pending.len();
        if waiting > 0 {
            let (head, rest) = data.split_at(data.len().min(block - waiting));
            pending[waiting..][..head.len()].copy_from_slice(head);
            if waiting + head.len() < block {
                return;
            }
            C::compress(&mut self.state, pending);
            data = rest;
        }
        let (whole, rest) = data.split_at(data.len() - data.len() % block);
        if !whole.is_empty() {
            C::compress(&mut self.state, whole);
        }
        pending[..rest.len()].copy_from_slice(rest);
    }

    /// Fills `out` with the first bytes of the digest.
    #[inline]
    pub(super) fn finish(mut self, out: &mut [u8]) {
        let waiting = self.waiting();
        let bits = u128::from(self.taken) * 8;
        let pending = self.pending.as_mut();
        let length_at = pending.len() - C::LENGTH_BYTES;
        pending[waiting] = 0x80;
        pending[waiting + 1..].fill(0);
        if waiting >= length_at {
            C::compress(&mut self.state, pending);
            pending.fill(0);
        }
        pending[length_at..].copy_from_slice(&C::length(bits)[..C::LENGTH_BYTES]);
        C::compress(&mut self.state, pending);
        C::write(&self.state, out);
    }
}

impl<C: Compression> Clone for Blocks<C> {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

impl<C: Compression> Drop for Blocks<C> {
    fn drop(&mut self) {
        self.state = C::ZERO;
        self.pending = C::EMPTY;
        optimization_barrier(self);
    }
}
