//! What x86-64 processors can do that no crate offers at the speed we need: single AES blocks ([`aes`]), and AES-256-GCM
//! over packets ([`gcm`], of [`vectors`] and [`ghash`]). The only code of wraith with `unsafe`: it calls instructions after having made sure of them.

mod aes;
mod gcm;
mod ghash;
mod vectors;

pub(crate) use aes::RoundKeys;
pub(crate) use gcm::GcmKey;
