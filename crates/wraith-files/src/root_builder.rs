//! Composes the root of a file from the hashes of its chunks, added in any order.
//!
//! Invariant: a parent node is formed as soon as both children are known. Exception: the node above
//! chunk 0 is formed later, because it might be the root, which is hashed differently. Runs of
//! zeros behind a gap stay runs until they have a sibling with data, or the gap is closed.

use std::collections::BTreeMap;
use std::ops::Range;

use blake3::hazmat::{Mode, merge_subtrees_root};

use crate::hash::{CHUNK_BYTES, Cv, Root, chunk_count, parent, small_root};
use crate::interval_set::IntervalSet;
use crate::tree::Tree;

/// Composes a root from chunks in any order. Holds one node for each gap and level, not one for
/// each chunk: about 50 for a terabyte in order. A chunk in order costs its share of the hashing
/// and little else. In a tree that [knows zeros](Tree::knows_zeros), a run of zeros of any length
/// costs no more than that.
#[derive(Clone, Debug, Default)]
pub struct RootBuilder {
    tree: Tree,
    /// Subtrees that cover the chunks before `prefix`, from the left.
    spine: Vec<Node>,
    /// Number of chunks known from the first on without a gap.
    prefix: u64,
    /// Subtrees behind a gap, by first chunk. They do not overlap.
    ahead: BTreeMap<u64, Node>,
    /// Whole chunks of zeros behind a gap that are in no subtree. Only in a tree that knows zeros.
    zeros: IntervalSet,
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

    /// Merges this subtree with its right sibling of the same size.
    fn joined(&self, right: &Self) -> Self {
        Self { level: self.level + 1, cv: parent(&self.cv, &right.cv) }
    }
}

impl RootBuilder {
    /// Creates a builder for a file whose root is its BLAKE3 hash.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a builder for a file with this hash tree.
    pub fn of(tree: Tree) -> Self {
        Self { tree, ..Self::default() }
    }

    /// Adds the chunk after the last one pushed.
    pub fn push(&mut self, cv: Cv) {
        self.set(self.next, cv);
    }

    /// Adds chunk `index`. A chunk that was added before is ignored. For a file of one chunk, pass
    /// its [`small_root`].
    pub fn set(&mut self, index: u64, cv: Cv) {
        self.next = index + 1;
        let node = Node { level: 0, cv };
        if index == self.prefix {
            self.append(node);
            self.close_gap();
        } else if !self.contains(index) {
            self.put_ahead(index, node);
        }
    }

    /// Adds `chunks` of zeros of a file of `size` bytes. Chunks added before are ignored. Where the
    /// tree knows zeros, this costs O(log n) for each range not known before; otherwise all chunks
    /// are hashed.
    pub fn set_zeros(&mut self, chunks: Range<u64>, size: u64) {
        if !self.tree.knows_zeros() || chunk_count(size) < 2 {
            chunks.for_each(|index| self.set(index, self.tree.zero_chunk_hash(size, index)));
            return;
        }
        let whole = size / CHUNK_BYTES as u64;
        let (mut at, end) = (chunks.start.max(self.prefix), chunks.end.min(whole));
        while at < end {
            let known = self.ahead.range(..=at).next_back();
            if let Some(behind) = known.map(|(first, node)| first + node.chunks())
                && behind > at
            {
                at = behind;
                continue;
            }
            let known = self.ahead.range(at..end).next();
            let next = known.map_or(end, |(&first, _)| first);
            self.put_zeros(at..next);
            at = next;
        }
        // The last chunk may be shorter than the chunks in the table.
        if chunks.contains(&whole) && whole < chunk_count(size) {
            self.set(whole, self.tree.zero_chunk_hash(size, whole));
        }
        self.next = chunks.end;
    }

    /// Adds whole chunks of zeros at or behind the prefix, none of which is in a subtree.
    fn put_zeros(&mut self, chunks: Range<u64>) {
        self.zeros.insert(chunks.clone());
        // Subtrees beside the run may now have their sibling in it.
        let run = self.zeros.range_of(chunks.start).expect("it was just put there");
        let left = self.ahead.range(..run.start).next_back();
        let left = left.filter(|(first, node)| *first + node.chunks() == run.start);
        if let Some(first) = left.map(|(&first, _)| first) {
            self.put_again(first);
        }
        if self.ahead.contains_key(&run.end) {
            self.put_again(run.end);
        }
        self.close_gap();
    }

    fn put_again(&mut self, first: u64) {
        let node = self.ahead.remove(&first).expect("it was looked at");
        self.put_ahead(first, node);
    }

    /// Appends known subtrees and zeros from the end of the spine on.
    fn close_gap(&mut self) {
        loop {
            if let Some(entry) = self.ahead.first_entry()
                && *entry.key() == self.prefix
            {
                let node = entry.remove();
                self.append(node);
            } else if !self.zeros.is_empty()
                && let Some(run) = self.zeros.range_of(self.prefix)
            {
                self.zeros.remove(run.clone());
                self.append_zeros(run.end);
            } else {
                return;
            }
        }
    }

    /// Appends zeros up to chunk `end`, in the largest aligned subtrees.
    fn append_zeros(&mut self, end: u64) {
        while self.prefix < end {
            let largest = (end - self.prefix).ilog2();
            // While only chunk 0 is known, the node above it might be the root.
            let aligned = if self.prefix == 0 { 0 } else { self.prefix.trailing_zeros() };
            let level = largest.min(aligned);
            self.append(Node { level, cv: self.tree.zero_subtree_cv(level) });
        }
    }

    /// Adds the subtree that begins at the end of the spine.
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
        // The node above chunk 0 might be the root.
        while first >= 2 * node.chunks() {
            let left = left_sibling(first, node.level);
            let sibling = left.unwrap_or(first + node.chunks());
            let Some(other) = self.take_ahead(sibling, node.level) else { break };
            node = if left.is_some() { other.joined(&node) } else { node.joined(&other) };
            first = first.min(sibling);
        }
        self.ahead.insert(first, node);
    }

    /// Takes the subtree of this level that starts at chunk `first`, if it is complete.
    fn take_ahead(&mut self, first: u64, level: u32) -> Option<Node> {
        if let Some(node) = self.ahead.get(&first).copied() {
            return (node.level == level).then(|| {
                self.ahead.remove(&first);
                node
            });
        }
        let chunks = first..first + (1 << level);
        (!self.zeros.is_empty() && self.zeros.contains_range(&chunks)).then(|| {
            self.zeros.remove(chunks);
            Node { level, cv: self.tree.zero_subtree_cv(level) }
        })
    }

    /// Returns true if chunk `index` was added.
    pub fn contains(&self, index: u64) -> bool {
        let behind = || self.ahead.range(..=index).next_back();
        index < self.prefix
            || behind().is_some_and(|(first, node)| index - first < node.chunks())
            || (!self.zeros.is_empty() && self.zeros.contains(index))
    }

    /// Returns the root of a file of `size` bytes; `None` while a chunk is missing.
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
        // From the left: subtrees as large as all before them (1, 1, 2, 4, … chunks), together one
        // power of two. Then ever smaller ones, which hang to the right of it (BLAKE3 §2.1).
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

/// Returns the first chunk of the left sibling of the subtree of `2^level` chunks at `first`.
/// `None` if this subtree is the left one, or if their parent would begin with chunk 0 and might be
/// the root.
fn left_sibling(first: u64, level: u32) -> Option<u64> {
    let index = first >> level;
    (index % 2 == 1 && index > 1).then(|| (index - 1) << level)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::hash::tests::content;

    fn parts(bytes: &[u8]) -> Vec<(u64, Cv)> {
        parts_in(Tree::Blake3, bytes)
    }

    fn parts_in(tree: Tree, bytes: &[u8]) -> Vec<(u64, Cv)> {
        let size = bytes.len() as u64;
        let hash = |(index, chunk)| (index as u64, tree.chunk_hash(size, index as u64, &[chunk]));
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
        let size = bytes.len() as u64;
        for tree in [Tree::Blake3, Tree::PositionFree] {
            assert_eq!(tree.zero_chunk_cv(1, 5), parts_in(tree, &bytes)[1].1);
            assert_eq!(tree.zero_chunk_hash(size, 0), parts_in(tree, &bytes)[0].1);
            assert_eq!(tree.zero_chunk_hash(9, 0), small_root(&[0; 9]));
        }
    }

    /// Reference implementation of the position-free root in the specification: every chunk is
    /// hashed by itself, from its first byte on.
    fn position_free_root(bytes: &[u8]) -> Root {
        let chunks: Vec<&[u8]> = bytes.chunks(CHUNK_BYTES).collect();
        match chunks[..] {
            [] | [_] => expected(bytes),
            _ => {
                let (left, right) = halves(&chunks);
                merge_subtrees_root(&subtree(left), &subtree(right), Mode::Hash).into()
            }
        }
    }

    fn subtree(chunks: &[&[u8]]) -> Cv {
        use blake3::hazmat::HasherExt;
        if let [chunk] = chunks {
            return blake3::Hasher::new().update(chunk).finalize_non_root();
        }
        let (left, right) = halves(chunks);
        parent(&subtree(left), &subtree(right))
    }

    /// The left half is the largest power of two that leaves something for the right one (BLAKE3
    /// §2.1).
    fn halves<'a>(chunks: &'a [&'a [u8]]) -> (&'a [&'a [u8]], &'a [&'a [u8]]) {
        chunks.split_at(chunks.len().next_power_of_two() / 2)
    }

    fn root_of(tree: Tree, bytes: &[u8]) -> Root {
        let mut builder = RootBuilder::of(tree);
        parts_in(tree, bytes).into_iter().for_each(|(_, cv)| builder.push(cv));
        builder.finish(bytes.len() as u64).unwrap()
    }

    #[test]
    fn a_position_free_root_is_of_chunks_that_are_hashed_for_themselves() {
        let all = content(9 * CHUNK_BYTES + 7);
        for len in [0, 5, CHUNK_BYTES, CHUNK_BYTES + 1, 2 * CHUNK_BYTES, 7 * CHUNK_BYTES, all.len()]
        {
            let bytes = &all[..len];
            assert_eq!(root_of(Tree::PositionFree, bytes), position_free_root(bytes), "{len}");
            let is_same = root_of(Tree::PositionFree, bytes) == expected(bytes);
            assert_eq!(is_same, len <= CHUNK_BYTES, "{len} bytes");
        }
    }

    #[test]
    fn a_position_free_root_depends_on_positions_and_size() {
        let mut roots = std::collections::HashSet::new();
        for at in 0..8 {
            let mut bytes = vec![0; 8 * CHUNK_BYTES];
            bytes[at * CHUNK_BYTES..][..CHUNK_BYTES].copy_from_slice(&content(CHUNK_BYTES));
            assert!(roots.insert(root_of(Tree::PositionFree, &bytes)), "in chunk {at}");
        }
        for len in [2, 3, 4, 5, 8, 9, 16].map(|chunks| chunks * CHUNK_BYTES) {
            for len in [len - 1, len, len + 1] {
                assert!(roots.insert(root_of(Tree::PositionFree, &vec![0; len])), "{len} zeros");
            }
        }
    }

    #[test]
    fn a_hole_of_any_length_takes_no_time_and_next_to_no_memory() {
        let size = crate::entry::FILE_BYTES_MAX;
        let chunks = chunk_count(size);
        let nodes = |builder: &RootBuilder| builder.spine.len() + builder.ahead.len();
        let mut whole = RootBuilder::of(Tree::PositionFree);
        whole.set_zeros(0..chunks, size);
        assert!(nodes(&whole) <= 100, "{} nodes", nodes(&whole));

        // With chunks missing in between, and in any order.
        let mut torn = RootBuilder::of(Tree::PositionFree);
        let missing: Vec<u64> = (0..1000).map(|n| n * (chunks / 1000)).collect();
        let ends = missing.iter().skip(1).copied().chain([chunks]);
        let runs: Vec<_> = missing.iter().zip(ends).map(|(from, to)| from + 1..to).collect();
        runs.iter().rev().for_each(|run| torn.set_zeros(run.clone(), size));
        assert!(nodes(&torn) <= 1, "{} nodes", nodes(&torn));
        assert_eq!(torn.finish(size), None);
        missing.iter().for_each(|&index| torn.set_zeros(index..index + 1, size));
        assert_eq!(torn.finish(size), whole.finish(size));
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
                    let cv = Tree::Blake3.chunk_hash(len as u64, index as u64, &[a, b]);
                    builder.set(index as u64, cv);
                }
            }
            prop_assert_eq!(builder.finish(len as u64), Some(expected(&bytes)));
        }
    }

    proptest! {
        #[test]
        fn runs_of_zeros_in_any_order_count_as_their_chunks(
            chunks in 1u64..70,
            tail in prop_oneof![Just(0), 1..CHUNK_BYTES as u64],
            data in prop::collection::btree_set(0u64..70, 0..8),
            steps in prop::collection::vec((0u64..70, 1u64..40), 0..20),
            order in any::<u64>(),
        ) {
            let size = (chunks - 1) * CHUNK_BYTES as u64 + if tail == 0 { CHUNK_BYTES as u64 } else { tail };
            let tree = Tree::PositionFree;
            let cv = |index: u64| match data.contains(&index) {
                true => [index as u8 + 1; 32],
                false => tree.zero_chunk_hash(size, index),
            };
            let mut expected = RootBuilder::of(tree);
            (0..chunks).for_each(|index| expected.push(cv(index)));

            let mut builder = RootBuilder::of(tree);
            let mut known = IntervalSet::new();
            // Runs that may overlap, then all chunks, one by one or in runs.
            let all = (0..chunks).map(|n| ((n * 31 + order % 97) % 97, 1)).chain((0..chunks).map(|n| (n, 1)));
            for (first, count) in steps.into_iter().chain(all) {
                let end = chunks.min(first + count);
                let run = first..data.range(first..).next().map_or(end, |&next| next.min(end));
                if run.is_empty() {
                    if first < chunks {
                        builder.set(first, cv(first));
                        known.insert(first..first + 1);
                    }
                } else {
                    builder.set_zeros(run.clone(), size);
                    known.insert(run);
                }
                for index in 0..chunks {
                    prop_assert_eq!(builder.contains(index), known.contains(index), "chunk {}", index);
                }
                prop_assert_eq!(builder.finish(size).is_some(), known.count() == chunks);
            }
            prop_assert_eq!(builder.finish(size), expected.finish(size));
        }
    }
}
