//! The functions F, PRF, H and T (FIPS 205, §11), each for many inputs at once, and the functions
//! over the message.
//!
//! All inputs begin with PK.seed. With SHA-2 it fills a block of its own, so the state after that
//! block is computed once and kept ([`SeededState`]).

use wraith_aws_lc::hash::compress_sha_256;
use wraith_kernels::keccak_lanes::{self, STATES, States};
use zeroize::{Zeroize, Zeroizing};

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

/// State of the hashes of a key, in the forms in which they need it.
enum SeededState {
    /// States after the block with the seed: of SHA-256 for chains, and of the hash function of H
    /// and T.
    Sha2 {
        chain: [u32; 8],
        tree: Hasher,
    },
    Shake,
}

/// The hash functions of a parameter set with PK.seed.
pub(super) struct Hashes {
    pub parameters: Parameters,
    pub seed: Node,
    seeded: SeededState,
}

impl Hashes {
    pub(super) fn new(parameters: Parameters, seed: Node) -> Self {
        let seeded = match parameters.family {
            Family::Shake => SeededState::Shake,
            Family::Sha2 => {
                let (mut chain, mut block) = (SHA_256, [0; 128]);
                block[..parameters.n].copy_from_slice(&seed[..parameters.n]);
                compress_sha_256(&mut chain, &block[..64]);
                let algorithm = parameters.hash();
                let mut tree = algorithm.hasher();
                tree.update(&block[..algorithm.block_bytes()]);
                SeededState::Sha2 { chain, tree }
            }
        };
        Self { parameters, seed, seeded }
    }

    /// Computes `chains`. The time depends on the number of steps of each.
    pub(super) fn run(&self, chains: &mut [Chain]) {
        match &self.seeded {
            SeededState::Sha2 { chain, .. } => run_sha2(chain, self.parameters.n, chains),
            SeededState::Shake => self.run_shake(chains),
        }
    }

    fn run_shake(&self, chains: &mut [Chain]) {
        let words = self.parameters.n / 8;
        for chains in chains.chunks_mut(STATES) {
            let steps = || chains.iter().map(|chain| (chain.begin, chain.end));
            let first = steps().map(|each| each.0).min().unwrap_or(0);
            let last = steps().map(|each| each.1).max().unwrap_or(0);
            let mut states: States = [[0; STATES]; 25];
            for step in first..last {
                let mut running = 0;
                for (lane, chain) in chains.iter().enumerate() {
                    if !(chain.begin..chain.end).contains(&step) {
                        continue;
                    }
                    running = lane + 1;
                    for (i, word) in self.seed.as_chunks().0[..words].iter().enumerate() {
                        states[i][lane] = u64::from_le_bytes(*word);
                    }
                    for (i, word) in chain.address.bytes().as_chunks().0.iter().enumerate() {
                        states[words + i][lane] = u64::from_le_bytes(*word);
                    }
                    states[words + 3][lane] += u64::from(step) << 56;
                    for (i, word) in chain.value.as_chunks().0[..words].iter().enumerate() {
                        states[words + 4 + i][lane] = u64::from_le_bytes(*word);
                    }
                    states[2 * words + 4][lane] = 0x1f;
                    for row in &mut states[2 * words + 5..] {
                        row[lane] = 0;
                    }
                    states[16][lane] |= 1 << 63;
                }
                keccak_lanes::permute(&mut states, running);
                for (lane, chain) in chains.iter_mut().enumerate() {
                    if (chain.begin..chain.end).contains(&step) {
                        for (i, out) in
                            chain.value.as_chunks_mut().0[..words].iter_mut().enumerate()
                        {
                            *out = states[i][lane].to_le_bytes();
                        }
                    }
                }
            }
            states.as_flattened_mut().zeroize();
        }
    }

    /// Computes H or T of every message: the nodes `messages[i]`, all of the same length, at
    /// `addresses[i]`.
    pub(super) fn compress(&self, addresses: &[Address], messages: &[&[u8]]) -> Vec<Node> {
        match &self.seeded {
            SeededState::Sha2 { tree, .. } => (addresses.iter().zip(messages))
                .map(|(address, message)| node(&hash(tree, [&address.compressed()[..], message])))
                .collect(),
            SeededState::Shake => {
                let mut nodes = Vec::with_capacity(messages.len());
                for (addresses, messages) in addresses.chunks(STATES).zip(messages.chunks(STATES)) {
                    self.absorb(addresses, messages, &mut nodes);
                }
                nodes
            }
        }
    }

    /// Computes SHAKE256 of at most eight messages.
    fn absorb(&self, addresses: &[Address], messages: &[&[u8]], nodes: &mut Vec<Node>) {
        const RATE: usize = 136;
        let n = self.parameters.n;
        let len = messages.first().map_or(0, |message| message.len()) + n + 32;
        let mut states: States = [[0; STATES]; 25];
        let mut padded = vec![0; (len / RATE + 1) * RATE];
        let mut inputs = vec![0; padded.len() * messages.len()];
        let each = inputs.chunks_mut(padded.len());
        for (out, (address, message)) in each.zip(addresses.iter().zip(messages)) {
            padded[..n].copy_from_slice(&self.seed[..n]);
            padded[n..n + 32].copy_from_slice(address.bytes());
            padded[n + 32..len].copy_from_slice(message);
            out.copy_from_slice(&padded);
            out[len] = 0x1f;
            let last = out.len() - 1;
            out[last] |= 0x80;
        }
        for at in (0..padded.len()).step_by(RATE) {
            for (lane, input) in inputs.chunks(padded.len()).enumerate() {
                for (row, word) in states.iter_mut().zip(input[at..at + RATE].as_chunks().0) {
                    row[lane] ^= u64::from_le_bytes(*word);
                }
            }
            keccak_lanes::permute(&mut states, messages.len());
        }
        nodes.extend((0..messages.len()).map(|lane| {
            let mut node = [0; NODE_MAX];
            for (out, row) in node.as_chunks_mut().0.iter_mut().zip(&states) {
                *out = row[lane].to_le_bytes();
            }
            node
        }));
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
