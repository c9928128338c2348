//! The functions F, PRF, H and T (FIPS 205, §11), each for many inputs at once, and the functions
//! over the message.
//!
//! All inputs begin with PK.seed. With SHA-2 it fills a block of its own, so the state after that
//! block is computed once and kept.

use wraith_aws_lc::hash::compress_sha_256;
use wraith_kernels::keccak_lanes::{self, STATES, States};
use zeroize::{Zeroize, Zeroizing, optimization_barrier};

use super::address::Address;
use super::parameters::{Family, NODE_MAX, Parameters};
use crate::hash::compression::SHA_256;
use crate::hash::{self, DIGEST_MAX, Hasher};
use crate::mac::Algorithm as Mac;

/// A node, a link of a chain or a secret. Only the first n bytes are used.
pub(super) type Node = [u8; NODE_MAX];

/// A hash chain: one hash for each step from `begin` to before `end`. The end of the chain replaces
/// `value`.
#[derive(Clone, Copy)]
pub(super) struct Chain {
    /// Address of step 0. The number of the step is added to its last byte.
    pub address: Address,
    pub value: Node,
    pub begin: u8,
    pub end: u8,
}

impl Chain {
    /// Returns a chain for a single F or PRF.
    pub(super) const fn once(address: Address, value: Node) -> Self {
        Self { address, value, begin: 0, end: 1 }
    }
}

/// The hash functions of a parameter set with PK.seed.
pub(super) struct Hashes {
    pub parameters: Parameters,
    pub seed: Node,
    /// With SHA-2: the states of SHA-256, for chains, and of the hash function of H and T, after
    /// the block with the seed.
    sha2: Option<Box<([u32; 8], Hasher)>>,
}

impl Hashes {
    pub(super) fn new(parameters: Parameters, seed: Node) -> Self {
        let seeded = || {
            let (mut chain, mut block) = (SHA_256, [0; 128]);
            block[..parameters.n].copy_from_slice(&seed[..parameters.n]);
            compress_sha_256(&mut chain, &block[..64]);
            let algorithm = parameters.hash();
            let mut tree = algorithm.hasher();
            tree.update(&block[..algorithm.block_bytes()]);
            Box::new((chain, tree))
        };
        let sha2 = (parameters.family == Family::Sha2).then(seeded);
        Self { parameters, seed, sha2 }
    }

    /// Computes `chains`. The time depends on the number of steps of each.
    pub(super) fn run(&self, chains: &mut [Chain]) {
        match &self.sha2 {
            Some(states) => run_sha2(&states.0, self.parameters.n, chains),
            None => self.run_shake(chains),
        }
    }

    fn run_shake(&self, chains: &mut [Chain]) {
        for chains in chains.chunks_mut(STATES) {
            let first = chains.iter().map(|chain| chain.begin).min().unwrap_or(0);
            let last = chains.iter().map(|chain| chain.end).max().unwrap_or(0);
            for step in first..last {
                let running = |chain: &&Chain| (chain.begin..chain.end).contains(&step);
                let inputs = chains.iter().filter(running);
                let inputs = inputs
                    .map(|chain| (chain.address.at_step(step), &chain.value[..self.parameters.n]));
                let nodes = self.shake(inputs);
                let running = |chain: &&mut Chain| (chain.begin..chain.end).contains(&step);
                for (chain, node) in chains.iter_mut().filter(running).zip(nodes) {
                    chain.value = node;
                }
            }
        }
    }

    /// Computes H or T of every message: the nodes `messages[i]`, all of the same length, at
    /// `addresses[i]`.
    pub(super) fn compress(&self, addresses: &[Address], messages: &[&[u8]]) -> Vec<Node> {
        if let Some(states) = &self.sha2 {
            return (addresses.iter().zip(messages))
                .map(|(address, message)| {
                    node(&hash(&states.1, [&address.compressed()[..], message]))
                })
                .collect();
        }
        let mut nodes = Vec::with_capacity(messages.len());
        for (addresses, messages) in addresses.chunks(STATES).zip(messages.chunks(STATES)) {
            let inputs = addresses.iter().copied().zip(messages.iter().copied());
            nodes.extend_from_slice(&self.shake(inputs)[..messages.len()]);
        }
        nodes
    }

    /// Computes SHAKE256 of PK.seed, an address and a message, for at most [`STATES`] messages of
    /// the same length.
    fn shake<'a>(&self, inputs: impl Iterator<Item = (Address, &'a [u8])>) -> [Node; STATES] {
        const RATE: usize = 136;
        let n = self.parameters.n;
        let header = n + 32;
        let (mut addresses, mut messages) = ([Address::default(); STATES], [&[][..]; STATES]);
        let mut used = 0;
        for (address, message) in inputs {
            (addresses[used], messages[used]) = (address, message);
            used += 1;
        }
        let len = header + messages[0].len();
        let (mut states, mut block): (States, _) = ([[0; STATES]; 25], [0; RATE]);
        for at in (0..=len).step_by(RATE) {
            for lane in 0..used {
                block.fill(0);
                let start = if at == 0 { header } else { 0 };
                if at == 0 {
                    block[..n].copy_from_slice(&self.seed[..n]);
                    block[n..header].copy_from_slice(addresses[lane].bytes());
                }
                let message = &messages[lane][at + start - header..];
                let now = message.len().min(RATE - start);
                block[start..start + now].copy_from_slice(&message[..now]);
                if len - at < RATE {
                    block[len - at] = 0x1f;
                    block[RATE - 1] |= 0x80;
                }
                for (row, word) in states.iter_mut().zip(block.as_chunks().0) {
                    row[lane] ^= u64::from_le_bytes(*word);
                }
            }
            keccak_lanes::permute(&mut states, used);
        }
        let mut nodes = [[0; NODE_MAX]; STATES];
        for (lane, node) in nodes[..used].iter_mut().enumerate() {
            for (out, row) in node.as_chunks_mut().0.iter_mut().zip(&states) {
                *out = row[lane].to_le_bytes();
            }
        }
        (states, block) = ([[0; STATES]; 25], [0; RATE]);
        optimization_barrier(&states);
        optimization_barrier(&block);
        nodes
    }

    /// PRF_msg: computes the randomizer of a message from SK.prf, and from fresh randomness or
    /// PK.seed.
    pub(super) fn randomizer(&self, secret: &[u8], fresh: &[u8], message: &[&[u8]]) -> Node {
        let parts = [fresh].into_iter().chain(message.iter().copied());
        let digest = if self.parameters.family == Family::Shake {
            hash(&hash::Algorithm::Shake256.hasher(), [secret].into_iter().chain(parts))
        } else {
            let hmac = if self.parameters.n > 16 { Mac::HmacSha512 } else { Mac::HmacSha256 };
            let mut hmac = hmac.start(secret, &[]).expect("HMAC takes keys of any length");
            parts.for_each(|part| hmac.update(part));
            let mut tag = [0; DIGEST_MAX];
            hmac.finish_into(&mut tag);
            tag
        };
        node(&digest[..self.parameters.n])
    }

    /// H_msg: computes the digest of a message, of the length in the parameter set.
    pub(super) fn digest(&self, randomizer: &[u8], root: &[u8], message: &[&[u8]]) -> Vec<u8> {
        let seed = &self.seed[..self.parameters.n];
        let parts = [randomizer, seed, root].into_iter().chain(message.iter().copied());
        let algorithm = self.parameters.hash();
        let start = algorithm.hasher();
        let mut out = vec![0; self.parameters.digest_bytes()];
        if self.parameters.family == Family::Shake {
            let mut hash = start;
            parts.for_each(|part| hash.update(part));
            hash.finish_into(&mut out);
            return out;
        }
        // MGF1 (RFC 8017, §B.2.1) over the randomizer, the seed and the hash of all inputs.
        let inner = &hash(&start, parts)[..algorithm.digest_bytes()];
        for (counter, out) in (0u32..).zip(out.chunks_mut(inner.len())) {
            let digest = hash(&start, [randomizer, seed, inner, &counter.to_be_bytes()]);
            out.copy_from_slice(&digest[..out.len()]);
        }
        out
    }

    /// Computes PRF at every address. Returns the secrets.
    pub(super) fn secrets(&self, secret: &Node, addresses: &[Address]) -> Zeroizing<Vec<Node>> {
        let mut chains: Vec<Chain> =
            addresses.iter().map(|address| Chain::once(*address, *secret)).collect();
        self.run(&mut chains);
        let secrets = chains.iter().map(|chain| chain.value).collect();
        wipe(&mut chains);
        Zeroizing::new(secrets)
    }
}

/// Wipes the values of `chains`.
pub(super) fn wipe(chains: &mut [Chain]) {
    for chain in chains {
        chain.value.zeroize();
    }
}

/// Runs chains of SHA-256, with values of `n` bytes.
fn run_sha2(state: &[u32; 8], n: usize, chains: &mut [Chain]) {
    for chain in chains {
        let mut block = [0; 64];
        block[..22].copy_from_slice(&chain.address.compressed());
        block[22..22 + n].copy_from_slice(&chain.value[..n]);
        block[22 + n] = 0x80;
        block[56..].copy_from_slice(&(8 * (64 + 22 + n) as u64).to_be_bytes());
        let first = block[21];
        for step in chain.begin..chain.end {
            block[21] = first.wrapping_add(step);
            let mut state = *state;
            compress_sha_256(&mut state, &block);
            block[22..22 + n].copy_from_slice(&state.map(u32::to_be_bytes).as_flattened()[..n]);
        }
        chain.value[..n].copy_from_slice(&block[22..22 + n]);
        block.zeroize();
    }
}

/// Returns the digest of `parts` after what `start` has absorbed, in the front of the result.
fn hash<'a>(start: &Hasher, parts: impl IntoIterator<Item = &'a [u8]>) -> [u8; DIGEST_MAX] {
    let (mut hash, mut digest) = (start.clone(), [0; DIGEST_MAX]);
    parts.into_iter().for_each(|part| hash.update(part));
    hash.finish_into(&mut digest);
    digest
}

/// Returns the node at the front of `bytes`.
pub(super) fn node(bytes: &[u8]) -> Node {
    let mut node = Node::default();
    let len = bytes.len().min(NODE_MAX);
    node[..len].copy_from_slice(&bytes[..len]);
    node
}
