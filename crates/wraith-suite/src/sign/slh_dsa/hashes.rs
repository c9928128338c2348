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
use crate::hash::compression::sha_512;
use crate::hash::{Function, Sha256, Sha512, Shake256};
use crate::mac::Hmac;

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

/// Returns the HMAC of `fresh` and `message`, in the front of the result.
fn hmac<F: Function>(secret: &[u8], fresh: &[u8], message: &[&[u8]]) -> [u8; 64] {
    let (mut mac, mut tag) = (Hmac::<F>::new(secret), [0; 64]);
    for part in [fresh].iter().chain(message) {
        mac.update(part);
    }
    mac.finish(&mut tag);
    tag
}

/// Initial state of the hashes of a key.
enum SeededState {
    /// States of SHA-256 and SHA-512 after the block with the seed. H and T use SHA-512 if n is
    /// more than 16.
    Sha2 {
        short: [u32; 8],
        long: Option<[u64; 8]>,
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
                let (mut short, mut block) = (SHA_256, [0; 128]);
                block[..parameters.n].copy_from_slice(&seed[..parameters.n]);
                let first = &block[..64];
                compress_sha_256(&mut short, first);
                let long = (parameters.n > 16).then(|| {
                    let mut long = SHA_512;
                    sha_512(&mut long, &block);
                    long
                });
                SeededState::Sha2 { short, long }
            }
        };
        Self { parameters, seed, seeded }
    }

    /// Computes `chains`. The time depends on the number of steps of each.
    pub(super) fn run(&self, chains: &mut [Chain]) {
        match &self.seeded {
            SeededState::Sha2 { short, .. } => run_sha2(short, self.parameters.n, chains),
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
        let each = || addresses.iter().zip(messages);
        match &self.seeded {
            SeededState::Sha2 { long: Some(long), .. } => each()
                .map(|(address, message)| {
                    let mut state = *long;
                    sha_512(&mut state, &padded(address, message, 128));
                    node_of(state.map(u64::to_be_bytes).as_flattened())
                })
                .collect(),
            SeededState::Sha2 { short, long: None } => each()
                .map(|(address, message)| {
                    let mut state = *short;
                    compress_sha_256(&mut state, &padded(address, message, 64));
                    node_of(state.map(u32::to_be_bytes).as_flattened())
                })
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
        let mut node = [0; NODE_MAX];
        let n = self.parameters.n;
        if self.parameters.family == Family::Shake {
            let mut hash = Shake256::new();
            for part in [secret, fresh].iter().chain(message) {
                hash.update(part);
            }
            hash.finish(&mut node[..n]);
        } else {
            let mac = if n > 16 { hmac::<Sha512> } else { hmac::<Sha256> };
            node[..n].copy_from_slice(&mac(secret, fresh, message)[..n]);
        }
        node
    }

    /// H_msg: computes the digest of a message, of the length in the parameter set.
    pub(super) fn digest(&self, randomizer: &[u8], root: &[u8], message: &[&[u8]]) -> Vec<u8> {
        let n = self.parameters.n;
        let mut out = vec![0; self.parameters.digest_bytes()];
        let seed = &self.seed[..n];
        let all = [randomizer, seed, root];
        let parts = || all.iter().chain(message);
        if self.parameters.family == Family::Shake {
            let mut hash = Shake256::new();
            parts().for_each(|part| hash.update(part));
            hash.finish(&mut out);
            return out;
        }
        // MGF1 (RFC 8017, §B.2.1) over the randomizer, the seed and the hash of all inputs.
        macro_rules! mgf1 {
            ($hash:ty) => {{
                let mut inner = <$hash>::new();
                parts().for_each(|part| inner.update(part));
                let inner = inner.finish();
                for (counter, out) in (0u32..).zip(out.chunks_mut(inner.len())) {
                    let mut hash = <$hash>::new();
                    for part in [randomizer, seed, &inner, &counter.to_be_bytes()] {
                        hash.update(part);
                    }
                    out.copy_from_slice(&hash.finish()[..out.len()]);
                }
            }};
        }
        if n > 16 {
            mgf1!(Sha512)
        } else {
            mgf1!(Sha256)
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

/// Returns the compressed address, the message, and the padding of SHA-2 with blocks of
/// `block_bytes`. The padding counts the block of the seed before them.
fn padded(address: &Address, message: &[u8], block_bytes: usize) -> Vec<u8> {
    let mut padded =
        Vec::with_capacity((message.len() + 22 + 1 + 16).next_multiple_of(block_bytes));
    padded.extend_from_slice(&address.compressed());
    padded.extend_from_slice(message);
    let bits = 8 * (block_bytes + padded.len()) as u64;
    padded.push(0x80);
    padded.resize((padded.len() + block_bytes / 8).next_multiple_of(block_bytes), 0);
    let end = padded.len();
    padded[end - 8..].copy_from_slice(&bits.to_be_bytes());
    padded
}

/// Returns the node at the front of a digest.
fn node_of(digest: &[u8]) -> Node {
    let mut node = [0; NODE_MAX];
    node.copy_from_slice(&digest[..NODE_MAX]);
    node
}

/// Initial hash values (FIPS 180-4, §5.3).
const SHA_256: [u32; 8] = {
    let (mut words, mut i) = ([0; 8], 0);
    while i < 8 {
        words[i] = (SHA_512[i] >> 32) as u32;
        i += 1;
    }
    words
};
const SHA_512: [u64; 8] = [
    0x6a09_e667_f3bc_c908,
    0xbb67_ae85_84ca_a73b,
    0x3c6e_f372_fe94_f82b,
    0xa54f_f53a_5f1d_36f1,
    0x510e_527f_ade6_82d1,
    0x9b05_688c_2b3e_6c1f,
    0x1f83_d9ab_fb41_bd6b,
    0x5be0_cd19_137e_2179,
];
