//! Content hashes: the BLAKE3 of a file, put together from the chaining values of its 256 KiB chunks.
//!
//! A chunk is an aligned subtree of the file's BLAKE3 tree (SPEC §10.6), so each byte is hashed once, chunks can be
//! verified on their own and in any order, and the root still equals `b3sum`. Invariant of [`RootBuilder`]: a parent is
//! formed as soon as both children are known, except above chunk 0, where it might be the root.

use std::collections::BTreeMap;

use blake3::hazmat::{HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root};

/// Bytes of a chunk: 256 of BLAKE3's own 1 KiB chunks.
pub const CHUNK_BYTES: usize = 256 * 1024;

/// Chaining value of a chunk, or of a larger subtree.
pub type Cv = [u8; 32];

/// BLAKE3 of a whole file, as `b3sum` prints it.
pub type Root = [u8; 32];

/// The content of a hole.
static ZEROS: [u8; CHUNK_BYTES] = [0; CHUNK_BYTES];

/// Number of chunks of a file of `size` bytes; 0 for an empty one.
pub fn chunk_count(size: u64) -> u64 {
    size.div_ceil(CHUNK_BYTES as u64)
}

/// Bytes of chunk `index` of a file of `size` bytes; 0 if it has no such chunk.
pub fn chunk_len(size: u64, index: u64) -> usize {
    let start = index.saturating_mul(CHUNK_BYTES as u64);
    size.saturating_sub(start).min(CHUNK_BYTES as u64) as usize
}

/// Bytes that BLAKE3 hashes at once with the widest vectors: 16 of its 1 KiB chunks.
const STRIDE_BYTES: usize = 16 * 1024;

/// Hashes the `pieces` one after the other, from a multiple of [`STRIDE_BYTES`] on. Received data comes in pieces that end
/// anywhere; given to the hasher like that, each border costs two small subtrees on either side, a fifth of all the hashing
/// of a chunk in three pieces. So the hasher gets whole strides, and those that lie across a border are copied together.
fn update_pieces(hasher: &mut blake3::Hasher, pieces: &[&[u8]]) {
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

/// Chaining value of chunk `index` (of a file of more than one chunk), whose bytes are the `pieces` one after the other:
/// [`CHUNK_BYTES`], or fewer in the last chunk, at least 1.
pub fn chunk_cv(index: u64, pieces: &[&[u8]]) -> Cv {
    let mut hasher = blake3::Hasher::new();
    hasher.set_input_offset(index * CHUNK_BYTES as u64);
    update_pieces(&mut hasher, pieces);
    hasher.finalize_non_root()
}

/// Root of a file whose whole content is at hand.
pub fn small_root(content: &[u8]) -> Root {
    slices_root(&[content])
}

/// Root of a file whose whole content is the `pieces` one after the other.
pub fn slices_root(pieces: &[&[u8]]) -> Root {
    let mut hasher = blake3::Hasher::new();
    update_pieces(&mut hasher, pieces);
    hasher.finalize().into()
}

/// Chaining value of chunk `index` of `len` zero bytes, 1 to [`CHUNK_BYTES`].
pub fn zero_chunk_cv(index: u64, len: usize) -> Cv {
    chunk_cv(index, &[&ZEROS[..len]])
}

/// What identifies chunk `index` of a file of `size` bytes: its chaining value, or the root if it is the only chunk.
pub(crate) fn chunk_hash(size: u64, index: u64, pieces: &[&[u8]]) -> Cv {
    if size <= CHUNK_BYTES as u64 { slices_root(pieces) } else { chunk_cv(index, pieces) }
}

/// The same for a chunk of zeros.
pub(crate) fn zero_chunk_hash(size: u64, index: u64) -> Cv {
    chunk_hash(size, index, &[&ZEROS[..chunk_len(size, index)]])
}

/// Composes a root from chunks in any order. Holds one node for each gap and level, not one for each chunk: a terabyte
/// in order takes about 50. A chunk in order costs its share of the hashing and little else.
#[derive(Clone, Debug, Default)]
pub struct RootBuilder {
    /// Subtrees that cover the chunks before `prefix`, from the left.
    spine: Vec<Node>,
    /// Chunks from the first on without a gap.
    prefix: u64,
    /// Subtrees behind a gap, by first chunk; none inside another.
    ahead: BTreeMap<u64, Node>,
    next: u64,
}

/// A subtree of `2^level` chunks, aligned to its size.
#[derive(Clone, Copy, Debug)]
struct Node {
    level: u32,
    cv: Cv,
}

impl Node {
    fn chunks(&self) -> u64 {
        1 << self.level
    }

    /// With the subtree of the same size behind it.
    fn joined(&self, right: &Self) -> Self {
        Self { level: self.level + 1, cv: parent(&self.cv, &right.cv) }
    }
}

impl RootBuilder {
    /// Nothing known yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the chunk after the last one pushed.
    pub fn push(&mut self, cv: Cv) {
        self.set(self.next, cv);
    }

    /// Adds chunk `index`. A chunk that was added before is ignored. For a file of one chunk, pass its [`small_root`].
    pub fn set(&mut self, index: u64, cv: Cv) {
        self.next = index + 1;
        let node = Node { level: 0, cv };
        if index == self.prefix {
            self.append(node);
            while let Some(entry) = self.ahead.first_entry()
                && *entry.key() == self.prefix
            {
                let node = entry.remove();
                self.append(node);
            }
        } else if !self.contains(index) {
            self.put_ahead(index, node);
        }
    }

    /// Adds the subtree that begins where the spine ends.
    fn append(&mut self, mut node: Node) {
        let mut first = self.prefix;
        self.prefix += node.chunks();
        while let Some(left) = left_sibling(first, node.level)
            && let Some(last) = self.spine.pop_if(|last| last.level == node.level)
        {
            node = last.joined(&node);
            first = left;
        }
        self.spine.push(node);
    }

    /// Adds a subtree behind a gap.
    fn put_ahead(&mut self, mut first: u64, mut node: Node) {
        loop {
            let left = left_sibling(first, node.level);
            let sibling = left.unwrap_or(first + node.chunks());
            if first < 2 * node.chunks()
                || self.ahead.get(&sibling).is_none_or(|other| other.level != node.level)
            {
                break;
            }
            let other = self.ahead.remove(&sibling).expect("it was looked at");
            node = if left.is_some() { other.joined(&node) } else { node.joined(&other) };
            first = first.min(sibling);
        }
        self.ahead.insert(first, node);
    }

    /// True if chunk `index` was added.
    pub fn contains(&self, index: u64) -> bool {
        let behind = || self.ahead.range(..=index).next_back();
        index < self.prefix || behind().is_some_and(|(first, node)| index - first < node.chunks())
    }

    /// The root of a file of `size` bytes; `None` while a chunk is missing.
    pub fn finish(&self, size: u64) -> Option<Root> {
        let count = chunk_count(size);
        if count == 0 {
            return Some(small_root(b""));
        }
        if self.prefix != count {
            return None;
        }
        if let [only] = &self.spine[..] {
            return Some(only.cv);
        }
        // From the left, subtrees as large as all before them (1, 1, 2, 4, … chunks): together one power of two. Then
        // ever smaller ones, which hang to the right of it (BLAKE3 §2.1).
        let doubles = |(i, node): &(usize, &Node)| *i == 0 || node.level as usize == i - 1;
        let doubling = self.spine.iter().enumerate().take_while(doubles).count();
        let (left, right) = self.spine.split_at(match doubling {
            all if all == self.spine.len() => all - 1,
            some => some,
        });
        let cvs = |nodes: &[Node]| nodes.iter().map(|node| node.cv).collect::<Vec<_>>();
        let left = cvs(left).into_iter().reduce(|left, right| parent(&left, &right))?;
        let right = cvs(right).into_iter().rev().reduce(|right, left| parent(&left, &right))?;
        Some(merge_subtrees_root(&left, &right, Mode::Hash).into())
    }
}

/// First chunk of the subtree of `2^level` chunks that the one from `first` on is the right sibling of. `None` if it is the
/// left one, or their parent would begin with chunk 0: that might be the root.
fn left_sibling(first: u64, level: u32) -> Option<u64> {
    let index = first >> level;
    (index % 2 == 1 && index > 1).then(|| (index - 1) << level)
}

fn parent(left: &Cv, right: &Cv) -> Cv {
    merge_subtrees_non_root(left, right, Mode::Hash)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn content(len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        blake3::Hasher::new().update(b"content").finalize_xof().fill(&mut bytes);
        bytes
    }

    fn parts(bytes: &[u8]) -> Vec<(u64, Cv)> {
        let size = bytes.len() as u64;
        let hash = |(index, chunk)| (index as u64, chunk_hash(size, index as u64, &[chunk]));
        bytes.chunks(CHUNK_BYTES).enumerate().map(hash).collect()
    }

    fn expected(bytes: &[u8]) -> Root {
        blake3::hash(bytes).into()
    }

    #[test]
    fn the_root_is_that_of_b3sum_for_every_kind_of_length() {
        let k = 1024;
        let c = CHUNK_BYTES;
        let mut lengths = vec![0, 1, k - 1, k, k + 1, 64 * k - 1, 64 * k, 64 * k + 1];
        for count in [1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 31, 33] {
            lengths.extend([count * c - 1, count * c, count * c + 1]);
        }
        let all = content(34 * c);
        for len in lengths {
            let bytes = &all[..len];
            let mut builder = RootBuilder::new();
            parts(bytes).into_iter().for_each(|(_, cv)| builder.push(cv));
            assert_eq!(builder.finish(len as u64), Some(expected(bytes)), "{len} bytes");
        }
        assert_eq!(
            data_encoding_hex(&small_root(b"")),
            "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"
        );
    }

    fn data_encoding_hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn a_missing_chunk_is_noticed_and_a_repeated_one_ignored() {
        let bytes = content(8 * CHUNK_BYTES);
        let size = bytes.len() as u64;
        for missing in 0..8 {
            let mut builder = RootBuilder::new();
            for (index, cv) in parts(&bytes).into_iter().filter(|(index, _)| *index != missing) {
                builder.set(index, cv);
                builder.set(index, [0; 32]);
            }
            assert_eq!(builder.finish(size), None, "without chunk {missing}");
            assert!(!builder.contains(missing));
            builder.set(missing, parts(&bytes)[missing as usize].1);
            (0..8).for_each(|index| builder.set(index, [1; 32]));
            assert_eq!(builder.finish(size), Some(expected(&bytes)));
        }
    }

    #[test]
    fn memory_for_a_file_in_order_grows_with_the_logarithm() {
        let mut builder = RootBuilder::new();
        (0..1 << 16).for_each(|_| builder.push([7; 32]));
        assert!(builder.spine.len() <= 17, "{} nodes", builder.spine.len());
        assert!(builder.ahead.is_empty());
    }

    #[test]
    fn a_chunk_of_zeros_hashes_like_written_zeros() {
        let bytes = vec![0; CHUNK_BYTES + 5];
        assert_eq!(zero_chunk_cv(1, 5), parts(&bytes)[1].1);
        assert_eq!(zero_chunk_hash(bytes.len() as u64, 0), parts(&bytes)[0].1);
        assert_eq!(zero_chunk_hash(9, 0), small_root(&[0; 9]));
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
            prop_assert_eq!(chunk_cv(3, &pieces), chunk_cv(3, &[&bytes]));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn any_order_of_chunks_gives_the_same_root(
            len in 0usize..12 * CHUNK_BYTES,
            order in Just((0..12usize).collect::<Vec<_>>()).prop_shuffle(),
            cut in 0usize..CHUNK_BYTES,
        ) {
            let bytes = content(len);
            let mut builder = RootBuilder::new();
            for index in order {
                let start = index * CHUNK_BYTES;
                if start < len {
                    let chunk = &bytes[start..len.min(start + CHUNK_BYTES)];
                    let (a, b) = chunk.split_at(cut.min(chunk.len()));
                    builder.set(index as u64, chunk_hash(len as u64, index as u64, &[a, b]));
                }
            }
            prop_assert_eq!(builder.finish(len as u64), Some(expected(&bytes)));
        }
    }
}
