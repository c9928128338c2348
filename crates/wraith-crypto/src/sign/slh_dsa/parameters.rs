//! The parameter sets (FIPS 205, §11, table 2), and where things lie in a signature.

use super::super::Algorithm;

/// Bytes of the longest node: n is at most this.
pub(super) const NODE_MAX: usize = 32;
/// Values of a digit of WOTS+: w.
pub(super) const DIGITS: u8 = 16;

/// Which hash functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Sha2,
    Shake,
}

/// One set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parameters {
    pub algorithm: Algorithm,
    pub family: Family,
    /// Bytes of a node.
    pub n: usize,
    /// Layers of the hypertree.
    pub d: usize,
    /// Height of each of its trees: h'.
    pub height: usize,
    /// Height of a tree of FORS.
    pub a: usize,
    /// Trees of FORS.
    pub k: usize,
    /// The last arc of its object identifier (RFC 9909).
    pub oid: u8,
}

impl Parameters {
    /// Those of `algorithm`, if it is SLH-DSA.
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

    /// Chains of a key of WOTS+: two for each byte, and three of the checksum.
    pub(super) const fn chains(&self) -> usize {
        2 * self.n + 3
    }

    /// Bytes of the part of FORS.
    pub(super) const fn fors_bytes(&self) -> usize {
        self.k * (1 + self.a) * self.n
    }

    /// Bytes of the part of one layer: the chains, and the authentication path.
    pub(super) const fn layer_bytes(&self) -> usize {
        (self.chains() + self.height) * self.n
    }

    /// Bytes of a signature.
    pub(super) const fn signature_bytes(&self) -> usize {
        self.n + self.fors_bytes() + self.d * self.layer_bytes()
    }

    /// Bytes of the digest of a message: what FORS signs, the tree and its leaf.
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
