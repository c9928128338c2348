//! Addresses (FIPS 205, §4.2): the position of a hash in the structure. They ensure that no two
//! hashes of a key have the same input.

/// An address of 32 bytes: layer, tree, kind, and three words that depend on the kind.
#[derive(Clone, Copy, Default)]
pub(super) struct Address([u8; 32]);

/// Kind of a hash input.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    WotsHash = 0,
    WotsKey = 1,
    Tree = 2,
    ForsTree = 3,
    ForsRoots = 4,
    WotsSecret = 5,
    ForsSecret = 6,
}

impl Address {
    pub(super) fn new(layer: usize, tree: u64, kind: Kind, words: [u32; 3]) -> Self {
        let mut bytes = [0; 32];
        // There are at most 22 layers.
        bytes[3] = layer as u8;
        bytes[8..16].copy_from_slice(&tree.to_be_bytes());
        bytes[19] = kind as u8;
        for (out, word) in bytes[20..].as_chunks_mut::<4>().0.iter_mut().zip(words) {
            *out = word.to_be_bytes();
        }
        Self(bytes)
    }

    /// Returns the address of another step of a chain.
    pub(super) const fn at_step(mut self, step: u8) -> Self {
        self.0[31] += step;
        self
    }

    pub(super) const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns the short form for SHA-2 (§11.2), without the bytes that are always zero.
    pub(super) fn compressed(&self) -> [u8; 22] {
        let a = &self.0;
        let mut short = [0; 22];
        short[0] = a[3];
        short[1..9].copy_from_slice(&a[8..16]);
        short[9] = a[19];
        short[10..].copy_from_slice(&a[20..]);
        short
    }
}
