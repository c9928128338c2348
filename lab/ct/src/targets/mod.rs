//! The code that must run in constant time: each target is one real function of our crates and two
//! classes of inputs.
//!
//! | targets | content |
//! |---|---|
//! | [`elligator`] | representatives of ephemeral keys: `wraith_crypto::elligator` |
//! | [`comparison`] | comparing secrets and tags: `wraith_crypto::equal`, the mac1 of H1, capabilities |
//! | [`symmetric`] | masks of header protection, sealing, tags that do not verify |
//! | [`agreement`] | X25519, ML-KEM-768 |
//! | [`kernels`] | ciphers, MACs and paddings of the suite that our code computes |
//! | [`public_key`] | public-key algorithms of the suite: ours, and the answers of RSA |
//! | [`code`] | both sides of a code's exchange |

pub mod agreement;
pub mod code;
pub mod comparison;
pub mod elligator;
pub mod kernels;
pub mod public_key;
pub mod symmetric;

use std::fmt;

use rand_chacha::ChaCha20Rng;
use rand_core::Rng;

use crate::measure::{Plan, Times};

/// An operation and its two classes of inputs.
#[derive(Clone, Copy)]
pub struct Target {
    /// Name on the command line and in the tables.
    pub name: &'static str,
    /// Descriptions of class A and class B.
    pub classes: [&'static str; 2],
    /// Measurements of the full form.
    pub plan: Plan,
    /// Measures the target. Returns `None` if the processor does not support it.
    pub measure: fn(Plan, &mut ChaCha20Rng) -> Option<Times>,
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Every target.
pub fn all() -> Vec<Target> {
    [
        elligator::TARGETS,
        comparison::TARGETS,
        symmetric::TARGETS,
        agreement::TARGETS,
        code::TARGETS,
        kernels::TARGETS,
        public_key::TARGETS,
    ]
    .concat()
}

/// The targets that kernels compute in part or in whole, unless [`Backends::Conservative`] excludes
/// them. Libraries or portable code then compute the same.
///
/// [`Backends::Conservative`]: wraith_suite::Backends::Conservative
pub fn with_kernels_and_without() -> Vec<Target> {
    [kernels::TARGETS, public_key::TARGETS].concat()
}

/// Random bytes.
pub fn random<const N: usize>(rng: &mut ChaCha20Rng) -> [u8; N] {
    let mut bytes = [0; N];
    rng.fill_bytes(&mut bytes);
    bytes
}
