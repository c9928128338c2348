//! Key pairs of P-256 (secp256r1): multiples of the base point, for processors with AVX-512 IFMA.
//! AWS-LC computes everything else on the curve.
//!
//! This is our own implementation. The formulas are related to madd-2007-bl and dbl-2001-b of the
//! Explicit-Formulas Database. The odd digits follow Joye and Tunstall, "Exponent recoding and
//! regular exponentiation algorithms", 2009. On Zen 4 a public key takes about 17,500 cycles, 5,000
//! of them for the division by Z; AWS-LC takes 31,000.

mod base;
mod field;
mod lanes;
#[cfg(test)]
mod tests;

use field::{Cpu, P};
use zeroize::Zeroizing;

use crate::detect::{Kernel, Purpose, needs};
use crate::limbs::{Limbs, add, bytes, is_below, limbs, sub, zero_mask};
use crate::self_test::Inputs;

/// The order of the base point (SP 800-186 §3.2.1.3).
const N: Limbs = [0xf3b9_cac2_fc63_2551, 0xbce6_faad_a717_9e84, u64::MAX, 0xffff_ffff_0000_0000];

pub(crate) static KERNEL: Kernel =
    Kernel::new("key pairs of P-256", needs::IFMA_ADX, Purpose::Keys, self_test);

/// Compares a known answer, and the public halves of a random scalar and its negative: the same x,
/// and two y whose sum is p.
fn self_test() -> bool {
    // RFC 6979, A.2.5.
    const SECRET: Limbs = [
        0x7b8a_622b_120f_6721,
        0x4e50_c3db_36e8_9b12,
        0x6b5c_2157_67b1_d693,
        0xc9af_a9d8_45ba_7516,
    ];
    const X: Limbs = [
        0xe669_622e_60f2_9fb6,
        0xc049_b892_3b61_fa6c,
        0xc961_eb74_c635_6d68,
        0x60fe_d4ba_255a_9d31,
    ];
    let own = P256(Cpu::for_self_test());
    let mut scalar: [u8; 32] = Inputs::new().bytes();
    scalar[0] &= 0x7f;
    let negative = bytes(&sub(&N, &limbs(&scalar)).0);
    let (Some(a), Some(b)) = (own.public_key(&scalar), own.public_key(&negative)) else {
        return false;
    };
    let known = own.public_key(&bytes(&SECRET));
    let y = |key: &[u8; 65]| limbs(key[33..].try_into().expect("32 bytes"));
    let (sum, carry) = add(&y(&a), &y(&b));
    known.is_some_and(|key| key[1..33] == bytes(&X)) && a[1..33] == b[1..33] && !carry & (sum == P)
}

/// The implementation, on a processor that supports it.
#[derive(Clone, Copy)]
pub struct P256(Cpu);

impl P256 {
    /// The processor features in use.
    pub const FEATURES: &str = needs::IFMA_ADX.1;

    /// Returns `None` unless the kernel may be used.
    pub fn new() -> Option<Self> {
        Cpu::new().map(Self)
    }

    /// Returns whether 32 big-endian bytes are a private key: above zero and below the order.
    pub fn is_scalar(scalar: &[u8; 32]) -> bool {
        let scalar = Zeroizing::new(limbs(scalar));
        is_below(&scalar, &N) & (zero_mask(&scalar) == 0)
    }

    /// Returns the public half of a private key, uncompressed (SEC 1 §2.3.3), in constant time.
    /// Returns `None` if the bytes are no private key.
    pub fn public_key(self, scalar: &[u8; 32]) -> Option<[u8; 65]> {
        Self::is_scalar(scalar).then_some(())?;
        let point = base::multiply(&Zeroizing::new(limbs(scalar)), self.0);
        let mut out = [4; 65];
        out[1..33].copy_from_slice(&bytes(&point.x.to_limbs(self.0)));
        out[33..].copy_from_slice(&bytes(&point.y.to_limbs(self.0)));
        Some(out)
    }
}
