//! Content hashes: composes a file's root from the chaining values of its 256 KiB chunks.
//!
//! A chunk is an aligned subtree of the file's hash tree (SPEC §10.6). Each byte is thus hashed
//! once, and chunks can be verified on their own and in any order. The root equals the output of
//! `b3sum`, except with the position-free [`Tree`](crate::Tree).

use blake3::hazmat::{Mode, merge_subtrees_non_root};

/// Length of a chunk in bytes: 256 of BLAKE3's own 1 KiB chunks.
pub const CHUNK_BYTES: usize = 256 * 1024;

/// Chaining value of a chunk or a larger subtree.
pub type Cv = [u8; 32];

/// Hash of a whole file: its BLAKE3 hash as `b3sum` prints it, except with the position-free
/// [`Tree`](crate::Tree).
pub type Root = [u8; 32];

/// Returns the number of chunks of a file of `size` bytes; 0 for an empty file.
pub fn chunk_count(size: u64) -> u64 {
    size.div_ceil(CHUNK_BYTES as u64)
}

/// Returns the length of chunk `index` of a file of `size` bytes; 0 if the file has no such chunk.
pub fn chunk_len(size: u64, index: u64) -> usize {
    let start = index.saturating_mul(CHUNK_BYTES as u64);
    size.saturating_sub(start).min(CHUNK_BYTES as u64) as usize
}

/// Bytes that BLAKE3 hashes at once with the widest vectors: 16 of its 1 KiB chunks.
const STRIDE_BYTES: usize = 16 * 1024;

/// Hashes the concatenation of `pieces` in units of [`STRIDE_BYTES`]. Received data comes in pieces
/// with arbitrary boundaries. If the pieces were passed to the hasher directly, each boundary would
/// cost two small subtrees on either side: a fifth of all hashing for a chunk in three pieces. The
/// hasher therefore gets whole strides. The pieces of a stride that crosses a boundary are first
/// copied into one buffer.
pub(crate) fn update_pieces(hasher: &mut blake3::Hasher, pieces: &[&[u8]]) {
    if let [piece] = pieces {
        hasher.update(piece);
        return;
    }
    let mut across = [0; STRIDE_BYTES];
    let mut filled = 0;
    for &piece in pieces {
        let mut rest = piece;
        if filled > 0 {
            let (completing, behind) = rest.split_at(rest.len().min(STRIDE_BYTES - filled));
            across[filled..filled + completing.len()].copy_from_slice(completing);
            filled += completing.len();
            if filled < STRIDE_BYTES {
                continue;
            }
            hasher.update(&across);
            rest = behind;
        }
        let (whole, begun) = rest.split_at(rest.len() - rest.len() % STRIDE_BYTES);
        hasher.update(whole);
        across[..begun.len()].copy_from_slice(begun);
        filled = begun.len();
    }
    hasher.update(&across[..filled]);
}

/// Returns the root of a file from its whole content.
pub fn small_root(content: &[u8]) -> Root {
    slices_root(&[content])
}

/// Returns the root of a file with the concatenation of `pieces` as its content.
pub fn slices_root(pieces: &[&[u8]]) -> Root {
    let mut hasher = blake3::Hasher::new();
    update_pieces(&mut hasher, pieces);
    hasher.finalize().into()
}

/// Returns the chaining value of a subtree that is not the root.
pub(crate) fn parent(left: &Cv, right: &Cv) -> Cv {
    merge_subtrees_non_root(left, right, Mode::Hash)
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(crate) fn content(len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        blake3::Hasher::new().update(b"content").finalize_xof().fill(&mut bytes);
        bytes
    }

    fn expected(bytes: &[u8]) -> Root {
        blake3::hash(bytes).into()
    }

    #[test]
    fn chunk_lengths_add_up() {
        for size in [0, 1, CHUNK_BYTES as u64, CHUNK_BYTES as u64 + 1, 10_000_000, u64::MAX] {
            let count = chunk_count(size);
            if size < 1 << 30 {
                let sum: u64 = (0..count).map(|index| chunk_len(size, index) as u64).sum();
                assert_eq!(sum, size);
            }
            assert_eq!(chunk_len(size, count), 0);
        }
    }

    proptest! {
        #[test]
        fn pieces_hash_as_the_whole_does_wherever_they_end(
            len in 0usize..=CHUNK_BYTES,
            near in prop::collection::vec((0usize..=16, -2i64..=2), 0..6),
            anywhere in prop::collection::vec(0usize..=CHUNK_BYTES, 0..6),
        ) {
            let bytes = content(len);
            let strides = near.iter().map(|(stride, off)| {
                (stride * STRIDE_BYTES).saturating_add_signed(*off as isize)
            });
            let mut cuts: Vec<usize> = strides.chain(anywhere).map(|cut| cut.min(len)).collect();
            cuts.extend([0, len]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
            prop_assert_eq!(slices_root(&pieces), expected(&bytes));
        }
    }
}
