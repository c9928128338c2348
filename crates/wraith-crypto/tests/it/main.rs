//! Published vectors, and implementations beside each other: of AES-256-GCM all that we have, of X25519, ML-KEM and Elligator2
//! ours beside somebody else's.

mod agreement;
mod aeads;
mod aes_ciphers;
mod aes_macs;
mod cavp;
mod differential;
mod ecdsa;
mod eddsa;
mod elligator;
mod hash;
mod implementations;
mod kdf;
mod lines;
mod mac;
mod ml_kem;
mod rand;
mod encryption;
mod hpke;
mod implementations;
mod kem;
mod key_formats;
mod ml_dsa;
mod rsa;
mod sm2;
mod wycheproof;
mod x25519;
