//! The two trees of a file that a root can be of (SPEC §10.6), and what a chunk is in each.
//!
//! In the tree of BLAKE3 the hash of a chunk depends on its place, so a hole costs hashing its zeros: three minutes of a core for
//! a terabyte. In the position-free tree every chunk is hashed as if it were the first. All subtrees of zeros of one size
//! then have the same chaining value, which a table knows (a sparse Merkle tree). Parents and root are formed alike.
//!
//! A root still says which bytes stand where: a parent tells its left child from its right one, and the length of the last
//! chunk is hashed with it. No two contents of more than one chunk have the same root in the one tree and in the other: the places
//! are hashed as counters, so that would be a collision of BLAKE3. A content of one chunk has the same root in both.

use std::sync::LazyLock;

use blake3::hazmat::HasherExt;

use crate::hash::{CHUNK_BYTES, Cv, chunk_len, parent, slices_root, update_pieces};

/// Bytes of holes from which a file gets a position-free tree, and so bytes of the smallest such file: to hash them takes 3 to 5 s
/// of a core on both sides. With less of them, a root that other programs can compare is worth more.
pub const POSITION_FREE_BYTES_MIN: u64 = 16 << 30;

/// The content of a hole.
static ZEROS: [u8; CHUNK_BYTES] = [0; CHUNK_BYTES];

/// Levels of subtrees that a file can have: 2^45 chunks are more bytes than a file offset counts.
const LEVELS: usize = 46;

/// Chaining values of position-free subtrees of zeros, by level.
static ZERO_SUBTREES: LazyLock<[Cv; LEVELS]> = LazyLock::new(|| {
    let mut cv = Tree::PositionFree.chunk_cv(0, &[&ZEROS]);
    std::array::from_fn(|_| {
        let above = parent(&cv, &cv);
        std::mem::replace(&mut cv, above)
    })
});

/// Which tree a chaining value or a root is of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Tree {
    /// That of BLAKE3: its root is what `b3sum` prints.
    #[default]
    Blake3,
    /// Every chunk hashed as if it were the first: for sparse files, whose zeros cost nothing then.
    PositionFree,
}

impl Tree {
    /// True if zeros cost no hashing, however many they are.
    pub fn knows_zeros(self) -> bool {
        self == Self::PositionFree
    }

    /// Chaining value of chunk `index` (of a file of more than one chunk), whose bytes are the `pieces` one after the other:
    /// [`CHUNK_BYTES`], or fewer in the last chunk, at least 1.
    pub fn chunk_cv(self, index: u64, pieces: &[&[u8]]) -> Cv {
        let mut hasher = blake3::Hasher::new();
        if self == Self::Blake3 {
            hasher.set_input_offset(index * CHUNK_BYTES as u64);
        }
        update_pieces(&mut hasher, pieces);
        hasher.finalize_non_root()
    }

    /// Chaining value of chunk `index` of `len` zero bytes, 1 to [`CHUNK_BYTES`].
    pub fn zero_chunk_cv(self, index: u64, len: usize) -> Cv {
        if self.knows_zeros() && len == CHUNK_BYTES {
            return self.zero_subtree_cv(0);
        }
        self.chunk_cv(index, &[&ZEROS[..len]])
    }

    /// Chaining value of `2^level` chunks of zeros, in a tree that knows them.
    pub(crate) fn zero_subtree_cv(self, level: u32) -> Cv {
        debug_assert!(self.knows_zeros());
        ZERO_SUBTREES[level as usize]
    }

    /// What identifies chunk `index` of a file of `size` bytes: its chaining value, or the root if it is the only chunk.
    pub(crate) fn chunk_hash(self, size: u64, index: u64, pieces: &[&[u8]]) -> Cv {
        if size <= CHUNK_BYTES as u64 { slices_root(pieces) } else { self.chunk_cv(index, pieces) }
    }

    /// The same for a chunk of zeros.
    pub(crate) fn zero_chunk_hash(self, size: u64, index: u64) -> Cv {
        let len = chunk_len(size, index);
        if size <= CHUNK_BYTES as u64 {
            return slices_root(&[&ZEROS[..len]]);
        }
        self.zero_chunk_cv(index, len)
    }
}
