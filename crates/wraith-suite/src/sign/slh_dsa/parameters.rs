//! Parameter sets (FIPS 205, §11, table 2), and the layout of a signature.

use super::super::Algorithm;
use crate::hash;

/// Maximum length of a node in bytes, the greatest n.
pub(super) const NODE_MAX: usize = 32;
/// w, the number of values of a WOTS+ digit.
pub(super) const DIGITS: u8 = 16;

/// Family of hash functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Sha2,
    Shake,
}

/// A parameter set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parameters {
    pub algorithm: Algorithm,
    pub family: Family,
    /// Length of a node in bytes.
    pub n: usize,
    /// Number of layers of the hypertree.
    pub d: usize,
    /// h', the height of each tree in the hypertree.
    pub height: usize,
    /// Height of a FORS tree.
    pub a: usize,
    /// Number of FORS trees.
    pub k: usize,
    /// Last arc of the object identifier (RFC 9909).
    pub oid: u8,
}

impl Parameters {
    /// Returns the parameters of `algorithm`, or `None` if it is not SLH-DSA.
    pub(super) const fn of(algorithm: Algorithm) -> Option<Self> {
        use Algorithm as A;
        use Family::{Sha2, Shake};
        let (family, [n, d, height, a, k], oid) = match algorithm {
            A::SlhDsaSha2_128s => (Sha2, [16, 7, 9, 12, 14], 20),
            A::SlhDsaSha2_128f => (Sha2, [16, 22, 3, 6, 33], 21),
            A::SlhDsaSha2_192s => (Sha2, [24, 7, 9, 14, 17], 22),
            A::SlhDsaSha2_192f => (Sha2, [24, 22, 3, 8, 33], 23),
            A::SlhDsaSha2_256s => (Sha2, [32, 8, 8, 14, 22], 24),
            A::SlhDsaSha2_256f => (Sha2, [32, 17, 4, 9, 35], 25),
            A::SlhDsaShake128s => (Shake, [16, 7, 9, 12, 14], 26),
            A::SlhDsaShake128f => (Shake, [16, 22, 3, 6, 33], 27),
            A::SlhDsaShake192s => (Shake, [24, 7, 9, 14, 17], 28),
            A::SlhDsaShake192f => (Shake, [24, 22, 3, 8, 33], 29),
            A::SlhDsaShake256s => (Shake, [32, 8, 8, 14, 22], 30),
            A::SlhDsaShake256f => (Shake, [32, 17, 4, 9, 35], 31),
            _ => return None,
        };
        Some(Self { algorithm, family, n, d, height, a, k, oid })
    }

    /// Returns the hash function of H, T and the message.
    pub(super) const fn hash(&self) -> hash::Algorithm {
        match self.family {
            Family::Shake => hash::Algorithm::Shake256,
            Family::Sha2 if self.n > 16 => hash::Algorithm::Sha512,
            Family::Sha2 => hash::Algorithm::Sha256,
        }
    }

    /// Returns the number of chains of a WOTS+ key: two for each byte, and three for the checksum.
    pub(super) const fn chains(&self) -> usize {
        2 * self.n + 3
    }

    /// Returns the length of a FORS signature in bytes.
    pub(super) const fn fors_bytes(&self) -> usize {
        self.k * (1 + self.a) * self.n
    }

    /// Returns the length of one layer in a signature in bytes: the chains, and the authentication
    /// path.
    pub(super) const fn layer_bytes(&self) -> usize {
        (self.chains() + self.height) * self.n
    }

    /// Returns the length of a signature in bytes.
    pub(super) const fn signature_bytes(&self) -> usize {
        self.n + self.fors_bytes() + self.d * self.layer_bytes()
    }

    /// Returns the length of a message digest in bytes: the input of FORS, the tree and its leaf.
    pub(super) const fn digest_bytes(&self) -> usize {
        self.fors_digest_bytes() + self.tree_bytes() + self.leaf_bytes()
    }

    pub(super) const fn fors_digest_bytes(&self) -> usize {
        (self.k * self.a).div_ceil(8)
    }

    pub(super) const fn tree_bytes(&self) -> usize {
        (self.height * (self.d - 1)).div_ceil(8)
    }

    pub(super) const fn leaf_bytes(&self) -> usize {
        self.height.div_ceil(8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_those_of_table_2() {
        let lengths: Vec<(usize, usize)> = Algorithm::ALL
            .iter()
            .filter_map(|each| Parameters::of(*each))
            .map(|set| (set.digest_bytes(), set.signature_bytes()))
            .collect();
        let table = [(30, 7856), (34, 17088), (39, 16224), (42, 35664), (47, 29792), (49, 49856)];
        assert_eq!(lengths, [table, table].concat());
    }
}
