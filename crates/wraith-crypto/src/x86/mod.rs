//! What x86-64 processors can do that no crate offers at the speed we need: single AES blocks ([`aes`]), AES-GCM
//! with keys of every size ([`gcm`]) and GMAC, of [`ghash`] and [`text`], with vectors of one width or the other ([`vaes256`], [`vaes512`]). This
//! is what packets are sealed with; other algorithms have their loops in `kernels`, which take the hash of GCM from here.

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
