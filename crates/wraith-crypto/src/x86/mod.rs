//! The encryption of packets with x86-64 instructions, where no crate is fast enough:
//!
//! - single AES blocks ([`aes`]);
//! - AES-GCM with keys of every size ([`gcm`]), and GMAC, built from [`ghash`] and [`text`], with
//!   vectors of 256 or 512 bits ([`vaes256`], [`vaes512`]).
//!
//! The loops of other algorithms are in `kernels`. Some of them use the GHASH of this module.

mod absorb;
mod aes;
mod gcm;
mod ghash;
mod gmac;
mod short;
mod text;
mod vaes256;
mod vaes512;

pub(crate) use absorb::GhashKey;
pub(crate) use aes::RoundKeys;
pub(crate) use gcm::{GcmKey, Width};
pub(crate) use gmac::Ghash;

#[cfg(test)]
mod tests;
