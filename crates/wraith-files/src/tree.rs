//! The two hash trees that a file's root may come from (SPEC §10.6), and the hash of a chunk in
//! each.
//!
//! In BLAKE3's tree the hash of a chunk depends on its position. The zeros of a hole must therefore
//! be hashed, which takes one core three minutes per terabyte. In the position-free tree every
//! chunk is hashed as if it were the first. All subtrees of zeros of one size therefore have the
//! same chaining value (the hash of a subtree), which a table holds (a sparse Merkle tree). Parents
//! and root are formed alike.
//!
//! A root still determines the position of every byte: a parent distinguishes its left child from
//! its right one, and the length of the last chunk is hashed. Two contents of more than one chunk
//! never have the same root in different trees. Positions are hashed as counters, so equal roots
//! would be a collision of BLAKE3. A content of one chunk has the same root in both trees.

use std::sync::LazyLock;

use blake3::hazmat::HasherExt;

use crate::hash::{CHUNK_BYTES, Cv, chunk_len, parent, slices_root, update_pieces};

/// Minimum bytes of holes for a position-free tree, and so the minimum size of such a file. Hashing
/// that many zeros takes 3 to 5 s of one core on each side. Below this size, a root that other
/// programs can compare is worth more than that time.
pub const POSITION_FREE_BYTES_MIN: u64 = 16 << 30;

/// The content of a hole: one chunk. On the heap, so that the program does not carry it.
static ZEROS: LazyLock<Box<[u8]>> = LazyLock::new(|| vec![0; CHUNK_BYTES].into());

/// Maximum number of subtree levels of a file: 2^45 chunks exceed the largest file offset.
const LEVELS: usize = 46;

/// Chaining values of position-free subtrees of zeros, by level.
static ZERO_SUBTREES: LazyLock<[Cv; LEVELS]> = LazyLock::new(|| {
    let mut cv = Tree::PositionFree.chunk_cv(0, &[&ZEROS]);
    std::array::from_fn(|_| {
        let above = parent(&cv, &cv);
        std::mem::replace(&mut cv, above)
    })
});

/// The hash tree of a chaining value or a root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Tree {
    /// BLAKE3's own tree; its root is the hash that `b3sum` prints.
    #[default]
    Blake3,
    /// Every chunk is hashed as if it were the first. For sparse files, because their zeros then
    /// cost nothing.
    PositionFree,
}

impl Tree {
    /// Returns true if any number of zeros costs no hashing.
    pub fn knows_zeros(self) -> bool {
        self == Self::PositionFree
    }

    /// Returns the chaining value of chunk `index` of a file of more than one chunk. Its content is
    /// the concatenation of `pieces`: [`CHUNK_BYTES`], or 1 or more bytes in the last chunk.
    pub fn chunk_cv(self, index: u64, pieces: &[&[u8]]) -> Cv {
        let mut hasher = blake3::Hasher::new();
        if self == Self::Blake3 {
            hasher.set_input_offset(index * CHUNK_BYTES as u64);
        }
        update_pieces(&mut hasher, pieces);
        hasher.finalize_non_root()
    }

    /// Returns the chaining value of chunk `index` of `len` zero bytes, 1 to [`CHUNK_BYTES`].
    pub fn zero_chunk_cv(self, index: u64, len: usize) -> Cv {
        if self.knows_zeros() && len == CHUNK_BYTES {
            return self.zero_subtree_cv(0);
        }
        self.chunk_cv(index, &[&ZEROS[..len]])
    }

    /// Returns the chaining value of `2^level` chunks of zeros, in a tree that knows zeros.
    pub(crate) fn zero_subtree_cv(self, level: u32) -> Cv {
        debug_assert!(self.knows_zeros());
        ZERO_SUBTREES[level as usize]
    }

    /// Returns the hash of chunk `index` of a file of `size` bytes: its chaining value, or the root
    /// if it is the only chunk.
    pub(crate) fn chunk_hash(self, size: u64, index: u64, pieces: &[&[u8]]) -> Cv {
        if size <= CHUNK_BYTES as u64 { slices_root(pieces) } else { self.chunk_cv(index, pieces) }
    }

    /// Like [`Self::chunk_hash`], for a chunk of zeros.
    pub(crate) fn zero_chunk_hash(self, size: u64, index: u64) -> Cv {
        let len = chunk_len(size, index);
        if size <= CHUNK_BYTES as u64 {
            return slices_root(&[&ZEROS[..len]]);
        }
        self.zero_chunk_cv(index, len)
    }
}
