//! Merkle trees, the few-time signature FORS over a message, and the one-time signatures WOTS+ over
//! roots (FIPS 205, §5 to §8).
//!
//! The trees of all layers are independent, so they are computed together, level by level. The
//! signature of a root needs the tree below. The signatures of all roots are therefore computed
//! together afterwards, once every root is known.

use zeroize::Zeroizing;

use super::address::{Address, Kind};
use super::hashes::{Chain, Hashes, Node, node, wipe};
use super::parameters::DIGITS;

/// Number of WOTS+ keys computed together: a multiple of the lanes of a vector, so that their
/// chains fill vectors.
const KEYS: usize = 16;
/// Number of FORS leaves computed together, unless a single tree has more.
const LEAVES: usize = 4096;

/// A leaf of the hypertree: its layer, its tree and its index in the tree.
#[derive(Clone, Copy)]
pub(super) struct Leaf {
    pub layer: usize,
    pub tree: u64,
    pub index: u32,
}

/// Returns the leaf that signs in each layer, from the lowest layer up (Algorithm 12).
pub(super) fn path(hashes: &Hashes, mut tree: u64, mut index: u32) -> Vec<Leaf> {
    let (d, height) = (hashes.parameters.d, hashes.parameters.height);
    (0..d)
        .map(|layer| {
            let leaf = Leaf { layer, tree, index };
            index = (tree & ((1 << height) - 1)) as u32;
            tree >>= height;
            leaf
        })
        .collect()
}

/// Root of a tree, with the authentication path from a leaf to it.
pub(super) struct AuthenticationPath {
    pub root: Node,
    pub siblings: Vec<Node>,
}

/// Computes trees of 2^`height` leaves each. `nodes` holds the leaves, one tree after another.
/// Returns for each tree the root and the path of its leaf `chosen`. `address` returns the address
/// of a node from its tree, its height and its index in the level.
fn trees(
    hashes: &Hashes,
    mut nodes: Vec<Node>,
    height: usize,
    chosen: &[u32],
    address: impl Fn(usize, u32, u32) -> Address,
) -> Vec<AuthenticationPath> {
    let n = hashes.parameters.n;
    let mut siblings = vec![Vec::with_capacity(height); chosen.len()];
    for level in 0..height {
        let width = 1 << (height - level);
        for (tree, (siblings, leaf)) in siblings.iter_mut().zip(chosen).enumerate() {
            siblings.push(nodes[tree * width + ((*leaf as usize >> level) ^ 1)]);
        }
        let pairs: Vec<u8> = nodes.iter().flat_map(|node| node[..n].iter().copied()).collect();
        let messages: Vec<&[u8]> = pairs.chunks(2 * n).collect();
        let addresses: Vec<Address> = (0..messages.len())
            .map(|i| address(i / (width / 2), level as u32 + 1, (i % (width / 2)) as u32))
            .collect();
        nodes = hashes.compress(&addresses, &messages);
    }
    nodes
        .into_iter()
        .zip(siblings)
        .map(|(root, siblings)| AuthenticationPath { root, siblings })
        .collect()
}

/// Computes for each of `nodes` the root, from the leaf's index and the siblings on its path.
fn climb(
    hashes: &Hashes,
    mut nodes: Vec<Node>,
    indices: &[u32],
    siblings: &[&[u8]],
    address: impl Fn(usize, u32, u32) -> Address,
) -> Vec<Node> {
    let n = hashes.parameters.n;
    let height = siblings.first().map_or(0, |path| path.len() / n);
    for level in 0..height {
        let mut pairs = Vec::with_capacity(2 * n * nodes.len());
        for ((node, index), siblings) in nodes.iter().zip(indices).zip(siblings) {
            let sibling = &siblings[level * n..][..n];
            let is_right = (index >> level) & 1 == 1;
            let (left, right) =
                if is_right { (sibling, &node[..n]) } else { (&node[..n], sibling) };
            pairs.extend_from_slice(left);
            pairs.extend_from_slice(right);
        }
        let addresses: Vec<Address> = indices
            .iter()
            .enumerate()
            .map(|(i, index)| address(i, level as u32 + 1, index >> (level + 1)))
            .collect();
        let messages: Vec<&[u8]> = pairs.chunks(2 * n).collect();
        nodes = hashes.compress(&addresses, &messages);
    }
    nodes
}

/// Returns the chains of the keys of `leaves`, positioned at their secret starts.
fn secret_chains(hashes: &Hashes, secret: &Node, leaves: &[Leaf]) -> Vec<Chain> {
    let chains = hashes.parameters.chains();
    let address =
        |leaf: &Leaf, kind, i| Address::new(leaf.layer, leaf.tree, kind, [leaf.index, i, 0]);
    let mut all: Vec<Chain> = Vec::with_capacity(leaves.len() * chains);
    for leaf in leaves {
        let of_leaf = (0..chains as u32).map(|i| address(leaf, Kind::WotsSecret, i));
        all.extend(of_leaf.map(|address| Chain::once(address, *secret)));
    }
    hashes.run(&mut all);
    for (leaf, chains) in leaves.iter().zip(all.chunks_mut(chains)) {
        for (i, chain) in (0..).zip(chains) {
            chain.address = address(leaf, Kind::WotsHash, i);
            (chain.begin, chain.end) = (0, DIGITS - 1);
        }
    }
    all
}

/// Computes the WOTS+ public keys of `leaves` from the ends of their chains.
fn keys(hashes: &Hashes, leaves: &[Leaf], ends: &[Chain]) -> Vec<Node> {
    let (n, chains) = (hashes.parameters.n, hashes.parameters.chains());
    let flat: Vec<u8> = ends.iter().flat_map(|chain| chain.value[..n].iter().copied()).collect();
    let messages: Vec<&[u8]> = flat.chunks(n * chains).collect();
    let addresses: Vec<Address> = leaves
        .iter()
        .map(|leaf| Address::new(leaf.layer, leaf.tree, Kind::WotsKey, [leaf.index, 0, 0]))
        .collect();
    hashes.compress(&addresses, &messages)
}

/// Computes the tree of each leaf on the path.
pub(super) fn hypertree(hashes: &Hashes, secret: &Node, path: &[Leaf]) -> Vec<AuthenticationPath> {
    let height = hashes.parameters.height;
    let leaves: Vec<Leaf> = path
        .iter()
        .flat_map(|leaf| (0..1 << height).map(|index| Leaf { index, ..*leaf }))
        .collect();
    let mut nodes = Vec::with_capacity(leaves.len());
    for leaves in leaves.chunks(KEYS) {
        let mut chains = secret_chains(hashes, secret, leaves);
        hashes.run(&mut chains);
        nodes.extend(keys(hashes, leaves, &chains));
    }
    let chosen: Vec<u32> = path.iter().map(|leaf| leaf.index).collect();
    trees(hashes, nodes, height, &chosen, |tree, level, index| {
        let leaf = &path[tree];
        Address::new(leaf.layer, leaf.tree, Kind::Tree, [0, level, index])
    })
}

/// Returns the base-16 digits of a node, followed by those of their checksum (Algorithm 7).
fn digits(bytes: &[u8]) -> Vec<u8> {
    let mut digits: Vec<u8> = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).collect();
    let checksum: u16 = digits.iter().map(|digit| u16::from(DIGITS - 1 - digit)).sum();
    digits.extend([8, 4, 0].map(|shift| ((checksum >> shift) & 15) as u8));
    digits
}

/// Signs `roots[i]` with the key of leaf `path[i]`. Returns the links of the chains.
pub(super) fn sign_roots(
    hashes: &Hashes,
    secret: &Node,
    path: &[Leaf],
    roots: &[Node],
) -> Vec<Node> {
    let (n, count) = (hashes.parameters.n, hashes.parameters.chains());
    let mut chains = secret_chains(hashes, secret, path);
    for (root, chains) in roots.iter().zip(chains.chunks_mut(count)) {
        for (digit, chain) in digits(&root[..n]).into_iter().zip(chains) {
            chain.end = digit;
        }
    }
    hashes.run(&mut chains);
    let links = chains.iter().map(|chain| chain.value).collect();
    wipe(&mut chains);
    links
}

/// Computes the root of the tree of `leaf` from a signature of `message`: chains, then path.
pub(super) fn root_of_layer(hashes: &Hashes, leaf: Leaf, message: &Node, signature: &[u8]) -> Node {
    let (n, count) = (hashes.parameters.n, hashes.parameters.chains());
    let (links, siblings) = signature.split_at(n * count);
    let mut chains: Vec<Chain> = (0..)
        .zip(links.chunks(n).zip(digits(&message[..n])))
        .map(|(i, (link, digit))| Chain {
            address: Address::new(leaf.layer, leaf.tree, Kind::WotsHash, [leaf.index, i, 0]),
            value: node(link),
            begin: digit,
            end: DIGITS - 1,
        })
        .collect();
    hashes.run(&mut chains);
    let key = keys(hashes, &[leaf], &chains);
    let roots = climb(hashes, key, &[leaf.index], &[siblings], |_, level, index| {
        Address::new(leaf.layer, leaf.tree, Kind::Tree, [0, level, index])
    });
    roots[0]
}

/// Returns the leaf index in each FORS tree for `digest`, `a` bits each.
fn fors_indices(hashes: &Hashes, digest: &[u8]) -> Vec<u32> {
    let (a, k) = (hashes.parameters.a, hashes.parameters.k);
    let bit = |i: usize| u32::from((digest[i / 8] >> (7 - i % 8)) & 1);
    (0..k).map(|tree| (0..a).fold(0, |index, i| (index << 1) | bit(tree * a + i))).collect()
}

fn fors_address(
    hashes: &Hashes,
    leaf: Leaf,
    kind: Kind,
    tree: usize,
    level: u32,
    index: u32,
) -> Address {
    let first = (tree << (hashes.parameters.a - level as usize)) as u32;
    Address::new(0, leaf.tree, kind, [leaf.index, level, first + index])
}

fn fors_key(hashes: &Hashes, leaf: Leaf, roots: impl Iterator<Item = Node>) -> Node {
    let n = hashes.parameters.n;
    let roots: Vec<u8> = roots.flat_map(|root| root.into_iter().take(n)).collect();
    let address = Address::new(0, leaf.tree, Kind::ForsRoots, [leaf.index, 0, 0]);
    hashes.compress(&[address], &[&roots])[0]
}

/// Appends the FORS signature of `digest` at `leaf` to `out`. Returns the FORS public key.
pub(super) fn sign_fors(
    hashes: &Hashes,
    secret: &Node,
    leaf: Leaf,
    digest: &[u8],
    out: &mut Vec<u8>,
) -> Node {
    let (n, a) = (hashes.parameters.n, hashes.parameters.a);
    let indices = fors_indices(hashes, digest);
    let at = |kind, tree, index| fors_address(hashes, leaf, kind, tree, 0, index);
    let mut roots = Vec::with_capacity(indices.len());
    let at_once = (LEAVES >> a).max(1);
    for (group, chosen) in indices.chunks(at_once).enumerate() {
        let first = group * at_once;
        let places =
            || (first..first + chosen.len()).flat_map(|tree| (0..1 << a).map(move |i| (tree, i)));
        let addresses: Vec<Address> =
            places().map(|(tree, i)| at(Kind::ForsSecret, tree, i)).collect();
        let secrets: Zeroizing<Vec<Node>> = hashes.secrets(secret, &addresses);
        let mut leaves: Vec<Chain> = places()
            .zip(secrets.iter())
            .map(|((tree, i), secret)| Chain::once(at(Kind::ForsTree, tree, i), *secret))
            .collect();
        hashes.run(&mut leaves);
        let leaves = leaves.iter().map(|chain| chain.value).collect();
        let proofs = trees(hashes, leaves, a, chosen, |tree, level, index| {
            fors_address(hashes, leaf, Kind::ForsTree, first + tree, level, index)
        });
        for (tree, (proof, index)) in proofs.iter().zip(chosen).enumerate() {
            out.extend_from_slice(&secrets[(tree << a) + *index as usize][..n]);
            proof.siblings.iter().for_each(|sibling| out.extend_from_slice(&sibling[..n]));
        }
        roots.extend(proofs.into_iter().map(|proof| proof.root));
    }
    fors_key(hashes, leaf, roots.into_iter())
}

/// Computes the FORS public key at `leaf` from a signature of `digest`.
pub(super) fn fors_key_of(hashes: &Hashes, leaf: Leaf, digest: &[u8], signature: &[u8]) -> Node {
    let (n, a) = (hashes.parameters.n, hashes.parameters.a);
    let indices = fors_indices(hashes, digest);
    let parts = || signature.chunks(n * (a + 1));
    let mut leaves: Vec<Chain> = parts()
        .zip(&indices)
        .enumerate()
        .map(|(tree, (part, index))| {
            let address = fors_address(hashes, leaf, Kind::ForsTree, tree, 0, *index);
            Chain::once(address, node(&part[..n]))
        })
        .collect();
    hashes.run(&mut leaves);
    let leaves = leaves.iter().map(|chain| chain.value).collect();
    let siblings: Vec<&[u8]> = parts().map(|part| &part[n..]).collect();
    let roots = climb(hashes, leaves, &indices, &siblings, |tree, level, index| {
        fors_address(hashes, leaf, Kind::ForsTree, tree, level, index)
    });
    fors_key(hashes, leaf, roots.into_iter())
}
